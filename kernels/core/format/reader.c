// Reading a FlatBuffer whose every position is checked.
#include "core/format/reader.h"
#include <string.h>

extern inline uint16_t pt_read_u16(const uint8_t *p);
extern inline uint32_t pt_read_u32(const uint8_t *p);
extern inline const uint8_t *pt_table_field(const uint8_t *table, uint32_t slot);
extern inline const uint8_t *pt_table_follow(const uint8_t *table, uint32_t slot);
extern inline uint32_t pt_bad(pt_reader *r);
extern inline uint32_t pt_u8_at(pt_reader *r, uint32_t position);
extern inline uint32_t pt_u32_at(pt_reader *r, uint32_t position);
extern inline uint32_t pt_offset_to(pt_reader *r, uint32_t position, uint32_t offset);
extern inline uint32_t pt_follow(pt_reader *r, uint32_t position);
extern inline uint32_t pt_field(const pt_reader *r, const pt_table *t, uint32_t slot);
extern inline uint32_t pt_field_u8(pt_reader *r, const pt_table *t, uint32_t slot);
extern inline uint32_t pt_field_u32(pt_reader *r, const pt_table *t, uint32_t slot);
extern inline uint32_t pt_field_follow(pt_reader *r, const pt_table *t, uint32_t slot);
extern inline uint32_t pt_length(pt_reader *r, uint32_t vector);
extern inline const uint8_t *pt_evalues(pt_reader *r, uint32_t vector, uint32_t size,
                                        uint32_t *length);

int64_t pt_i64_at(pt_reader *r, uint32_t position) {
    uint32_t low = pt_u32_at(r, position), high = pt_u32_at(r, position + 4);
    return (int64_t)((uint64_t)high << 32 | low);
}

pt_table pt_table_at(pt_reader *r, uint32_t position) {
    pt_table t = {position, 0, 0};
    if (position == 0) {
        return t;
    }
    t.vtable = position - pt_u32_at(r, position);
    if (t.vtable % 2 || t.vtable > r->size - 4) {
        pt_bad(r);
        return t;
    }
    uint32_t size = pt_read_u16(r->data + t.vtable);
    if (size > r->size - t.vtable) {
        pt_bad(r);
    } else if (size >= 6) {
        t.n_slots = (size - 4) / 2;
    }
    return t;
}

int64_t pt_field_i64(pt_reader *r, const pt_table *t, uint32_t slot) {
    uint32_t position = pt_field(r, t, slot);
    return position ? pt_i64_at(r, position) : 0;
}

uint32_t pt_follow_slot(pt_reader *r, uint32_t table, uint32_t slot) {
    pt_table t = pt_table_at(r, table);
    return pt_field_follow(r, &t, slot);
}

uint32_t pt_evalue_at(pt_reader *r, uint32_t vector, uint32_t i, uint32_t size) {
    bool inside = i < pt_length(r, vector) && i < (r->size - vector - 4) / size;
    return inside ? vector + 4 + i * size : pt_bad(r);
}

int32_t pt_i32_item(pt_reader *r, uint32_t vector, uint32_t i) {
    return (int32_t)pt_u32_at(r, pt_evalue_at(r, vector, i, 4));
}

uint32_t pt_table_item(pt_reader *r, uint32_t vector, uint32_t i) {
    uint32_t position = pt_evalue_at(r, vector, i, 4);
    return position ? pt_follow(r, position) : 0;
}

pt_text pt_text_at(pt_reader *r, uint32_t position) {
    pt_text text;
    text.data = (const char *)pt_evalues(r, position, 1, &text.length);
    return text;
}

bool pt_text_is(pt_text text, const char *data, uint32_t length) {
    return text.length == length && (length == 0 || memcmp(text.data, data, length) == 0);
}
