// Reading a FlatBuffer that has been verified: little-endian, every table and vector at a multiple
// of 4, every vtable at one of 2.
#ifndef PT_CORE_READING_H
#define PT_CORE_READING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline uint16_t pt_read_u16(const uint8_t *p) {
    uint16_t value;
    __builtin_memcpy(&value, __builtin_assume_aligned(p, 2), 2);
    return value;
}

static inline uint32_t pt_read_u32(const uint8_t *p) {
    uint32_t value;
    __builtin_memcpy(&value, __builtin_assume_aligned(p, 4), 4);
    return value;
}

// Field `slot` of a table; NULL when the file leaves it out.
static inline const uint8_t *pt_table_field(const uint8_t *table, uint32_t slot) {
    const uint8_t *vtable = table - (int32_t)pt_read_u32(table);
    uint32_t entry = 4 + 2 * slot;
    if (entry + 2 > pt_read_u16(vtable)) {
        return NULL;
    }
    uint32_t offset = pt_read_u16(vtable + entry);
    return offset ? table + offset : NULL;
}

// What the offset in field `slot` leads to; NULL when the file leaves it out.
static inline const uint8_t *pt_table_follow(const uint8_t *table, uint32_t slot) {
    const uint8_t *field = pt_table_field(table, slot);
    return field ? field + pt_read_u32(field) : NULL;
}

#endif
