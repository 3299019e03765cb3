// What a kernel reads of its arguments: scalars and lists from the program, tensors from the pool.
// The loader has verified the program and pt_check_instruction the kinds, so nothing is checked
// here.
#include "core.h"
#include "reading.h"
#include <string.h>

static uint8_t value_type(const uint8_t *evalue) {
    const uint8_t *type = pt_table_field(evalue, PT_SLOT_EVALUE_VAL_TYPE);
    return type ? *type : PT_TYPE_NONE;
}

// Field `slot` of the table that the union of an EValue holds; NULL when the file leaves it out.
static const uint8_t *union_field(const uint8_t *evalue, uint32_t slot) {
    return pt_table_field(pt_table_follow(evalue, PT_SLOT_EVALUE_VAL), slot);
}

static int64_t read_i64(const uint8_t *p) {
    return p ? (int64_t)((uint64_t)pt_read_u32(p + 4) << 32 | pt_read_u32(p)) : 0;
}

static double read_f64(const uint8_t *p) {
    union {
        int64_t bits;
        double value;
    } u = {read_i64(p)};
    return u.value;
}

// Of an int or bool.
static int64_t int_of(const uint8_t *evalue) {
    if (value_type(evalue) == PT_TYPE_BOOL) {
        const uint8_t *p = union_field(evalue, PT_SLOT_BOOL_BOOL_VAL);
        return p && *p;
    }
    return read_i64(union_field(evalue, PT_SLOT_INT_INT_VAL));
}

pt_scalar pt_get_scalar(const pt_context *c, pt_ref arg) {
    const uint8_t *evalue = pt_at(c, arg);
    pt_scalar s = {.type = value_type(evalue)};
    if (s.type == PT_TYPE_DOUBLE) {
        s.as.d = read_f64(union_field(evalue, PT_SLOT_DOUBLE_DOUBLE_VAL));
    } else {
        s.as.i = int_of(evalue);
    }
    return s;
}

int64_t pt_get_int(const pt_context *c, pt_ref arg) {
    return int_of(pt_at(c, arg));
}

bool pt_get_bool(const pt_context *c, pt_ref arg) {
    return int_of(pt_at(c, arg)) != 0;
}

// As (double)i, which would link the addition of doubles on cores that have none.
static double double_of(int64_t i) {
    uint64_t magnitude = i < 0 ? 0 - (uint64_t)i : (uint64_t)i;
    if (magnitude == 0) {
        return 0;
    }
    uint64_t exponent = 1023 + 63;
    for (; !(magnitude >> 63); magnitude <<= 1) {
        exponent--;
    }
    uint64_t bits = magnitude >> 11, rest = magnitude & 0x7FF; // 53 bits, and what is rounded off
    bits += rest > 0x400 || (rest == 0x400 && (bits & 1));
    bits += (exponent - 1) << 52; // the leading 1 of the 53 adds one
    bits |= (uint64_t)(i < 0) << 63;
    double value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

double pt_scalar_as_double(pt_scalar s) {
    return s.type == PT_TYPE_DOUBLE ? s.as.d : double_of(s.as.i);
}

double pt_get_double(const pt_context *c, pt_ref arg) {
    return pt_scalar_as_double(pt_get_scalar(c, arg));
}

// Every list table has its items in slot 0, a string its characters.
static const uint8_t *items_of(const uint8_t *evalue) {
    return pt_table_follow(pt_table_follow(evalue, PT_SLOT_EVALUE_VAL), 0);
}

const char *pt_get_string(const pt_context *c, pt_ref arg, uint32_t *length) {
    const uint8_t *items = items_of(pt_at(c, arg));
    *length = items ? pt_read_u32(items) : 0;
    return (const char *)(items ? items + 4 : items);
}

static bool is_record(pt_ref arg) {
    return arg >> PT_REF_OFFSET_BITS == PT_MEMORY_POOL;
}

static const pt_value *record(const pt_context *c, pt_ref arg) {
    return (const pt_value *)(const void *)pt_at(c, arg);
}

uint32_t pt_list_length(const pt_context *c, pt_ref arg) {
    if (is_record(arg)) {
        return record(c, arg)->sizes;
    }
    const uint8_t *items = items_of(pt_at(c, arg));
    return items ? pt_read_u32(items) : 0;
}

// The EValue that item i of the items of a list of ints names; NULL when it names none.
static const uint8_t *int_item(const pt_context *c, const uint8_t *items, uint32_t i) {
    int64_t index = read_i64(items + 4 + 8 * (size_t)i);
    const uint8_t *values = pt_at(c, c->program_values);
    if (index < 0 || index >= pt_read_u32(values)) {
        return NULL;
    }
    const uint8_t *entry = values + 4 + 4 * (size_t)index;
    return entry + pt_read_u32(entry);
}

int64_t pt_list_int(const pt_context *c, pt_ref arg, uint32_t i) {
    return int_of(int_item(c, items_of(pt_at(c, arg)), i));
}

double pt_list_double(const pt_context *c, pt_ref arg, uint32_t i) {
    return read_f64(items_of(pt_at(c, arg)) + 4 + 8 * (size_t)i);
}

uint32_t pt_list_ints(const pt_context *c, pt_ref arg, uint32_t most, int64_t *values) {
    const uint8_t *items = items_of(pt_at(c, arg));
    uint32_t n = items ? pt_read_u32(items) : 0;
    for (uint32_t i = 0; i < n && i < most; i++) {
        values[i] = int_of(int_item(c, items, i));
    }
    return n;
}

pt_ref pt_list_item(const pt_context *c, pt_ref arg, uint32_t i) {
    return ((const pt_ref *)(const void *)pt_at(c, record(c, arg)->data))[i];
}

// ---- kinds of arguments

static bool ints_are_ints(const pt_context *c, pt_ref arg) {
    const uint8_t *items = items_of(pt_at(c, arg));
    uint32_t n = items ? pt_read_u32(items) : 0;
    for (uint32_t i = 0; i < n; i++) {
        const uint8_t *item = int_item(c, items, i);
        if (!item || value_type(item) != PT_TYPE_INT) {
            return false;
        }
    }
    return true;
}

static bool tensors_are_written(const pt_context *c, pt_ref arg) {
    for (uint32_t i = 0; i < record(c, arg)->sizes; i++) {
        pt_ref item = pt_list_item(c, arg, i);
        if (item == 0 || record(c, item)->flags & PT_VALUE_CONSTANT) {
            return false;
        }
    }
    return true;
}

static bool record_has_kind(const pt_context *c, pt_ref arg, char letter) {
    const pt_value *value = record(c, arg);
    switch (letter) {
    case 'T':
        return value->type < PT_VALUE_LIST;
    case 'O':
        return value->type < PT_VALUE_LIST && !(value->flags & PT_VALUE_CONSTANT);
    case 'V':
        return value->type == PT_VALUE_LIST + PT_TYPE_TENSOR_LIST;
    case 'W':
        return value->type == PT_VALUE_LIST + PT_TYPE_TENSOR_LIST && tensors_are_written(c, arg);
    case 'U':
        return value->type == PT_VALUE_LIST + PT_TYPE_TENSOR_LIST ||
               value->type == PT_VALUE_LIST + PT_TYPE_OPTIONAL_TENSOR_LIST;
    default:
        return false;
    }
}

bool pt_has_kind(const pt_context *c, pt_ref arg, char letter) {
    if (letter >= 'a') {
        if (pt_is_none(arg)) {
            return true;
        }
        letter = (char)(letter - 'a' + 'A');
    }
    if (pt_is_none(arg)) {
        return false;
    }
    if (is_record(arg)) {
        return record_has_kind(c, arg, letter);
    }
    uint8_t type = value_type(pt_at(c, arg));
    switch (letter) {
    case 'S':
        return type == PT_TYPE_INT || type == PT_TYPE_BOOL || type == PT_TYPE_DOUBLE;
    case 'I':
        return type == PT_TYPE_INT;
    case 'B':
        return type == PT_TYPE_BOOL;
    case 'D':
        return type == PT_TYPE_DOUBLE || type == PT_TYPE_INT;
    case 'M':
        return type == PT_TYPE_STRING;
    case 'L':
        return type == PT_TYPE_INT_LIST && ints_are_ints(c, arg);
    case 'Q':
        return type == PT_TYPE_BOOL_LIST;
    case 'R':
        return type == PT_TYPE_DOUBLE_LIST;
    default:
        return false;
    }
}
