// Reading a FlatBuffer whose every place is checked.
#include "reader.h"
#include <string.h>

int64_t pt_i64_at(pt_reader *r, uint32_t position) {
    uint32_t low = pt_u32_at(r, position), high = pt_u32_at(r, position + 4);
    return (int64_t)((uint64_t)high << 32 | low);
}

uint32_t pt_follow(pt_reader *r, uint32_t position) {
    return pt_offset_to(r, position, pt_u32_at(r, position));
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

uint32_t pt_field_u8(pt_reader *r, const pt_table *t, uint32_t slot) {
    uint32_t position = pt_field(r, t, slot);
    return position ? pt_u8_at(r, position) : 0;
}

uint32_t pt_field_u32(pt_reader *r, const pt_table *t, uint32_t slot) {
    uint32_t position = pt_field(r, t, slot);
    return position ? pt_u32_at(r, position) : 0;
}

int64_t pt_field_i64(pt_reader *r, const pt_table *t, uint32_t slot) {
    uint32_t position = pt_field(r, t, slot);
    return position ? pt_i64_at(r, position) : 0;
}

uint32_t pt_field_follow(pt_reader *r, const pt_table *t, uint32_t slot) {
    uint32_t position = pt_field(r, t, slot);
    return position ? pt_follow(r, position) : 0;
}

uint32_t pt_follow_slot(pt_reader *r, uint32_t table, uint32_t slot) {
    pt_table t = pt_table_at(r, table);
    return pt_field_follow(r, &t, slot);
}

void pt_read_fields(pt_reader *r, uint32_t position, const char *layout, uint32_t *fields) {
    pt_table t = pt_table_at(r, position);
    const uint8_t *slots = r->data + t.vtable + 4;
    for (uint32_t slot = 0; layout[slot]; slot++) {
        uint32_t offset = slot < t.n_slots ? pt_read_u16(slots + 2 * slot) : 0, value = 0;
        if (offset && layout[slot] != '-') {
            if (layout[slot] == 'b') {
                value = pt_u8_at(r, position + offset);
            } else {
                value = pt_u32_at(r, position + offset);
                if (layout[slot] == 'o') {
                    value = pt_offset_to(r, position + offset, value);
                }
            }
        }
        fields[slot] = value;
    }
}

uint32_t pt_item_at(pt_reader *r, uint32_t vector, uint32_t i, uint32_t size) {
    bool inside = i < pt_length(r, vector) && i < (r->size - vector - 4) / size;
    return inside ? vector + 4 + i * size : pt_bad(r);
}

int32_t pt_i32_item(pt_reader *r, uint32_t vector, uint32_t i) {
    return (int32_t)pt_u32_at(r, pt_item_at(r, vector, i, 4));
}

uint32_t pt_table_item(pt_reader *r, uint32_t vector, uint32_t i) {
    uint32_t position = pt_item_at(r, vector, i, 4);
    return position ? pt_follow(r, position) : 0;
}

const uint8_t *pt_items(pt_reader *r, uint32_t vector, uint32_t size, uint32_t *length) {
    *length = pt_length(r, vector);
    if (*length > 0 && !pt_item_at(r, vector, *length - 1, size)) {
        *length = 0;
    }
    return *length ? r->data + vector + 4 : NULL;
}

pt_text pt_text_at(pt_reader *r, uint32_t position) {
    pt_text text;
    text.data = (const char *)pt_items(r, position, 1, &text.length);
    return text;
}

bool pt_text_is(pt_text text, const char *data, uint32_t length) {
    return text.length == length && (length == 0 || memcmp(text.data, data, length) == 0);
}
