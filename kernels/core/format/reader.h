// Reading a FlatBuffer: little-endian, every table and vector at a multiple of 4, every vtable at
// one of 2.
//
// A pt_reader checks every position that it reads. A position outside the file reads as 0 and sets
// `bad`, which stays set: the caller tests it once, before it uses the values. Position 0, where no
// object can lie, stands for a missing object: its fields are 0, its length is 0.
//
// The functions on pointers trust the file: they are for objects that were checked before.
//
// Functions here are inline in files compiled for speed; other files call the functions of
// reader.c.
#ifndef PT_CORE_READER_H
#define PT_CORE_READER_H

#include "core/generated/schema_slots.h"
#include <picotorch/picotorch.h>

inline uint16_t pt_read_u16(const uint8_t *p) {
    uint16_t value;
    __builtin_memcpy(&value, __builtin_assume_aligned(p, 2), 2);
    return value;
}

inline uint32_t pt_read_u32(const uint8_t *p) {
    uint32_t value;
    __builtin_memcpy(&value, __builtin_assume_aligned(p, 4), 4);
    return value;
}

// ---- trusting

// Returns field `slot` of a table; NULL for a missing field.
inline const uint8_t *pt_table_field(const uint8_t *table, uint32_t slot) {
    const uint8_t *vtable = table - (int32_t)pt_read_u32(table);
    uint32_t entry = 4 + 2 * slot;
    if (entry + 2 > pt_read_u16(vtable)) {
        return NULL;
    }
    uint32_t offset = pt_read_u16(vtable + entry);
    return offset ? table + offset : NULL;
}

// Follows the offset in field `slot`; NULL for a missing field.
inline const uint8_t *pt_table_follow(const uint8_t *table, uint32_t slot) {
    const uint8_t *field = pt_table_field(table, slot);
    return field ? field + pt_read_u32(field) : NULL;
}

// ---- checked

typedef struct pt_reader {
    const uint8_t *data;
    uint32_t size; // at least 8
    bool bad;
} pt_reader;

// An open table. Its vtable is looked up once for several fields.
typedef struct pt_table {
    uint32_t position;
    uint32_t vtable;
    uint32_t n_slots; // number of slots of the vtable
} pt_table;

inline uint32_t pt_bad(pt_reader *r) {
    r->bad = true;
    return 0;
}

inline uint32_t pt_u8_at(pt_reader *r, uint32_t position) {
    return position < r->size ? r->data[position] : pt_bad(r);
}

inline uint32_t pt_u32_at(pt_reader *r, uint32_t position) {
    bool inside = position <= r->size - 4 && position % 4 == 0;
    return inside ? pt_read_u32(r->data + position) : pt_bad(r);
}

// Returns the target of an offset that is stored at a position: at least 4 bytes lie there.
inline uint32_t pt_offset_to(pt_reader *r, uint32_t position, uint32_t offset) {
    uint32_t last = r->size - 4;
    return offset <= last && position <= last - offset ? position + offset : pt_bad(r);
}

// Returns the target of the offset at a position: at least 4 bytes lie there.
inline uint32_t pt_follow(pt_reader *r, uint32_t position) {
    return pt_offset_to(r, position, pt_u32_at(r, position));
}

int64_t pt_i64_at(pt_reader *r, uint32_t position);

// Opens the table at a position; 0: a table without fields.
pt_table pt_table_at(pt_reader *r, uint32_t position);

// Returns the position of field `slot`; 0 for a missing field. The field's value is not checked.
inline uint32_t pt_field(const pt_reader *r, const pt_table *t, uint32_t slot) {
    if (slot >= t->n_slots) {
        return 0;
    }
    uint32_t offset = pt_read_u16(r->data + t->vtable + 4 + 2 * slot);
    return offset ? t->position + offset : 0;
}

inline uint32_t pt_field_u8(pt_reader *r, const pt_table *t, uint32_t slot) {
    uint32_t position = pt_field(r, t, slot);
    return position ? pt_u8_at(r, position) : 0;
}

inline uint32_t pt_field_u32(pt_reader *r, const pt_table *t, uint32_t slot) {
    uint32_t position = pt_field(r, t, slot);
    return position ? pt_u32_at(r, position) : 0;
}

// Returns the position of the table, vector or string that a field refers to; 0 for a missing
// field.
inline uint32_t pt_field_follow(pt_reader *r, const pt_table *t, uint32_t slot) {
    uint32_t position = pt_field(r, t, slot);
    return position ? pt_follow(r, position) : 0;
}

// Reads an i64. Also reads a u64: a negative result then stands for a value above any limit.
int64_t pt_field_i64(pt_reader *r, const pt_table *t, uint32_t slot);
// Follows the offset in a field of the table at a position.
uint32_t pt_follow_slot(pt_reader *r, uint32_t table, uint32_t slot);

// Returns the length of a vector; 0 for a missing vector.
inline uint32_t pt_length(pt_reader *r, uint32_t vector) {
    return vector ? pt_u32_at(r, vector) : 0;
}

// Returns the position of item i, of `size` bytes, which lies in the file.
uint32_t pt_evalue_at(pt_reader *r, uint32_t vector, uint32_t i, uint32_t size);
// Return item i of a vector of i32, or of offsets to tables.
int32_t pt_i32_item(pt_reader *r, uint32_t vector, uint32_t i);
uint32_t pt_table_item(pt_reader *r, uint32_t vector, uint32_t i);

// Returns the items of a vector, of `size` bytes each, which all lie in the file; NULL for a
// missing vector.
inline const uint8_t *pt_evalues(pt_reader *r, uint32_t vector, uint32_t size, uint32_t *length) {
    uint32_t n = pt_length(r, vector);
    *length = n <= (r->size - vector - 4) / size ? n : pt_bad(r);
    return *length ? r->data + vector + 4 : NULL;
}

// Returns the string at a position; "" for 0.
pt_text pt_text_at(pt_reader *r, uint32_t position);

#endif
