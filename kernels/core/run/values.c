// Reads a kernel's arguments: scalars and lists in the program, in records of the pool if they
// change, or in a .ptm file. These functions check nothing: the loader has verified the program,
// and pt_check_instruction the kinds of the arguments.
#include "core/format/reader.h"
#include "core/record.h"
#include <string.h>

uint8_t pt_value_type(const uint8_t *evalue) {
    const uint8_t *type = pt_table_field(evalue, PT_SLOT_EVALUE_VAL_TYPE);
    return type ? *type : PT_TYPE_NONE;
}

// Returns field `slot` of the table in the union of an EValue; NULL for a missing field.
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

// Returns the value of an int or bool.
static int64_t int_of(const uint8_t *evalue) {
    if (pt_value_type(evalue) == PT_TYPE_BOOL) {
        const uint8_t *p = union_field(evalue, PT_SLOT_BOOL_BOOL_VAL);
        return p && *p;
    }
    return read_i64(union_field(evalue, PT_SLOT_INT_INT_VAL));
}

static pt_scalar scalar_of(const uint8_t *evalue) {
    pt_scalar s = {.type = pt_value_type(evalue)};
    if (s.type == PT_TYPE_DOUBLE) {
        s.as.d = read_f64(union_field(evalue, PT_SLOT_DOUBLE_DOUBLE_VAL));
    } else {
        s.as.i = int_of(evalue);
    }
    return s;
}

// ---- records

static pt_value *values_record(const pt_context *c, pt_ref arg) {
    return (pt_value *)(void *)pt_at(c, arg);
}

static int64_t variable_int(const pt_value *variable) {
    return (int64_t)((uint64_t)variable->sizes << 32 | variable->data);
}

// ---- numbers

pt_scalar pt_get_scalar(const pt_context *c, pt_ref arg) {
    if (!pt_is_record(arg)) {
        return scalar_of(pt_at(c, arg));
    }
    const pt_value *variable = values_record(c, arg);
    return (pt_scalar){.type = variable->type - PT_VALUE_OTHER, .as.i = variable_int(variable)};
}

int64_t pt_get_int(const pt_context *c, pt_ref arg) {
    return pt_is_record(arg) ? variable_int(values_record(c, arg)) : int_of(pt_at(c, arg));
}

bool pt_get_bool(const pt_context *c, pt_ref arg) {
    return pt_get_int(c, arg) != 0;
}

void pt_set_scalar(const pt_context *c, pt_ref arg, pt_scalar s) {
    pt_value *variable = values_record(c, arg);
    variable->data = (uint32_t)s.as.i;
    variable->sizes = (uint32_t)((uint64_t)s.as.i >> 32);
    variable->type = PT_VALUE_OTHER + s.type;
}

void pt_set_int(const pt_context *c, pt_ref arg, int64_t value) {
    pt_set_scalar(c, arg, (pt_scalar){.type = PT_TYPE_INT, .as.i = value});
}

void pt_set_bool(const pt_context *c, pt_ref arg, bool value) {
    pt_set_scalar(c, arg, (pt_scalar){.type = PT_TYPE_BOOL, .as.i = value});
}

void pt_set_double(const pt_context *c, pt_ref arg, double value) {
    pt_set_scalar(c, arg, (pt_scalar){.type = PT_TYPE_DOUBLE, .as.d = value});
}

// Converts without (double)i, which would link the addition of doubles on cores without it.
double pt_int_as_double(int64_t i) {
    uint64_t magnitude = i < 0 ? 0 - (uint64_t)i : (uint64_t)i;
    if (magnitude == 0) {
        return 0;
    }
    uint64_t exponent = 1023 + 63;
    for (; !(magnitude >> 63); magnitude <<= 1) {
        exponent--;
    }
    uint64_t bits = magnitude >> 11,
             rest = magnitude & 0x7FF; // 53 bits, and the bits that are rounded off
    bits += rest > 0x400 || (rest == 0x400 && (bits & 1));
    bits += (exponent - 1) << 52; // the leading 1 of the mantissa adds 1 to the exponent
    bits |= (uint64_t)(i < 0) << 63;
    double value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

double pt_scalar_as_double(pt_scalar s) {
    return s.type == PT_TYPE_DOUBLE ? s.as.d : pt_int_as_double(s.as.i);
}

double pt_get_double(const pt_context *c, pt_ref arg) {
    return pt_scalar_as_double(pt_get_scalar(c, arg));
}

// ---- strings and lists

// Every list table has its items in slot 0, a string its characters.
static const uint8_t *values_items_of(const uint8_t *evalue) {
    return pt_table_follow(pt_table_follow(evalue, PT_SLOT_EVALUE_VAL), 0);
}

const char *pt_get_string(const pt_context *c, pt_ref arg, uint32_t *length) {
    if (PT_HAS_PTM && pt_is_record(arg)) {
        *length = values_record(c, arg)->sizes;
        return (const char *)pt_at(c, values_record(c, arg)->data);
    }
    const uint8_t *items = values_items_of(pt_at(c, arg));
    *length = items ? pt_read_u32(items) : 0;
    return (const char *)(items ? items + 4 : items);
}

uint32_t pt_list_length(const pt_context *c, pt_ref arg) {
    if (pt_is_record(arg)) {
        return values_record(c, arg)->sizes;
    }
    const uint8_t *items = values_items_of(pt_at(c, arg));
    return items ? pt_read_u32(items) : 0;
}

int64_t pt_list_index(const pt_context *c, pt_ref arg, uint32_t i) {
    return read_i64(values_items_of(pt_at(c, arg)) + 4 + 8 * (size_t)i);
}

// Returns the program's vector of EValue.
static inline const uint8_t *values_of(const pt_context *c) {
    return pt_at(c, pt_record_of(c)->program_values);
}

// Returns the EValue of item i of a list of ints; NULL if the index is out of range.
static inline const uint8_t *int_item(const uint8_t *values, const uint8_t *items, uint32_t i) {
    const uint8_t *item = items + 4 + 8 * (size_t)i;
    uint32_t index = pt_read_u32(item), high = pt_read_u32(item + 4);
    if (high != 0 || index >= pt_read_u32(values)) {
        return NULL;
    }
    const uint8_t *entry = values + 4 + 4 * (size_t)index;
    return entry + pt_read_u32(entry);
}

// Returns the 8 bytes of item i of a list of numbers in a .ptm file.
static const uint8_t *number_item(const pt_context *c, const pt_value *list, uint32_t i) {
    return pt_at(c, list->data) + 8 * (size_t)i;
}

int64_t pt_list_int(const pt_context *c, pt_ref arg, uint32_t i) {
    if (!pt_is_record(arg)) {
        return int_of(int_item(values_of(c), values_items_of(pt_at(c, arg)), i));
    }
    const pt_value *list = values_record(c, arg);
    return PT_HAS_PTM && list->flags & PT_VALUE_CONSTANT ? read_i64(number_item(c, list, i))
                                                         : pt_get_int(c, pt_list_item(c, arg, i));
}

double pt_list_double(const pt_context *c, pt_ref arg, uint32_t i) {
    return read_f64(PT_HAS_PTM && pt_is_record(arg)
                        ? number_item(c, values_record(c, arg), i)
                        : values_items_of(pt_at(c, arg)) + 4 + 8 * (size_t)i);
}

bool pt_list_bool(const pt_context *c, pt_ref arg, uint32_t i) {
    return (PT_HAS_PTM && pt_is_record(arg) ? pt_at(c, values_record(c, arg)->data)
                                            : values_items_of(pt_at(c, arg)) + 4)[i] != 0;
}

uint32_t pt_list_ints(const pt_context *c, pt_ref arg, uint32_t max, int64_t *values) {
    const uint8_t *items = pt_is_record(arg) ? NULL : values_items_of(pt_at(c, arg));
    const uint8_t *program = items ? values_of(c) : NULL;
    uint32_t n = items ? pt_read_u32(items) : pt_list_length(c, arg);
    for (uint32_t i = 0; i < n && i < max; i++) {
        values[i] = items ? read_i64(union_field(int_item(program, items, i), PT_SLOT_INT_INT_VAL))
                          : pt_list_int(c, arg, i);
    }
    return n;
}

pt_ref pt_list_item(const pt_context *c, pt_ref arg, uint32_t i) {
    return ((const pt_ref *)(const void *)pt_at(c, values_record(c, arg)->data))[i];
}

// ---- kinds of arguments

static bool is_tensor(const pt_value *value) {
    return value->type < PT_VALUE_OTHER;
}

// True if all items of a list in the program are ints.
static bool ints_are_ints(const pt_context *c, pt_ref arg) {
    const uint8_t *items = values_items_of(pt_at(c, arg));
    const uint8_t *program = values_of(c);
    uint32_t n = items ? pt_read_u32(items) : 0;
    for (uint32_t i = 0; i < n; i++) {
        const uint8_t *item = int_item(program, items, i);
        if (!item || pt_value_type(item) != PT_TYPE_INT) {
            return false;
        }
    }
    return true;
}

static bool items_are(const pt_context *c, pt_ref arg, char letter) {
    for (uint32_t i = 0; i < values_record(c, arg)->sizes; i++) {
        if (!pt_has_kind(c, pt_list_item(c, arg, i), letter)) {
            return false;
        }
    }
    return true;
}

// True if a number of this type is of the kind of `letter`.
static bool number_has_kind(uint8_t type, char letter) {
    bool is_int = type == PT_TYPE_INT, is_bool = type == PT_TYPE_BOOL,
         is_double = type == PT_TYPE_DOUBLE;
    switch (letter) {
    case 'S':
        return is_int || is_bool || is_double;
    case 'I':
        return is_int;
    case 'B':
        return is_bool;
    case 'D':
        return is_double || is_int;
    default:
        return false;
    }
}

// In a .ptm file constant numbers, strings and lists of numbers have records, too.
static bool values_is_constant(const pt_value *value) {
    return PT_HAS_PTM && value->flags & PT_VALUE_CONSTANT && !is_tensor(value);
}

static bool constant_has_kind(uint8_t type, char letter) {
    switch (letter) {
    case 'L':
        return type == PT_TYPE_INT_LIST;
    case 'M':
        return type == PT_TYPE_STRING;
    case 'Q':
        return type == PT_TYPE_BOOL_LIST;
    case 'R':
        return type == PT_TYPE_DOUBLE_LIST;
    default:
        return number_has_kind(type, letter);
    }
}

static bool variable_has_kind(const pt_context *c, uint8_t type, char letter) {
    bool is_number = number_has_kind(type, 'S') || type == PT_TYPE_NULL;
    if (letter == 'N' || c->checking == PT_CHECK_BOUNDS) {
        return is_number && (letter == 'N' || number_has_kind(PT_TYPE_INT, letter) ||
                             number_has_kind(PT_TYPE_BOOL, letter));
    }
    return number_has_kind(type, letter);
}

static bool record_has_kind(const pt_context *c, pt_ref arg, char letter) {
    const pt_value *value = values_record(c, arg);
    if (values_is_constant(value)) {
        return constant_has_kind(value->type - PT_VALUE_OTHER, letter);
    }
    switch (letter) {
    case 'T':
    case 'A':
        return is_tensor(value);
    case 'O':
    case 'C':
    case 'E':
    case 'X':
        return is_tensor(value) && !(value->flags & PT_VALUE_CONSTANT);
    case 'V':
        return value->type == PT_VALUE_OTHER + PT_TYPE_TENSOR_LIST;
    case 'W':
        return value->type == PT_VALUE_OTHER + PT_TYPE_TENSOR_LIST && items_are(c, arg, 'O');
    case 'U':
        return value->type == PT_VALUE_OTHER + PT_TYPE_TENSOR_LIST ||
               value->type == PT_VALUE_OTHER + PT_TYPE_OPTIONAL_TENSOR_LIST;
    case 'L':
        return value->type == PT_VALUE_OTHER + PT_TYPE_INT_LIST && items_are(c, arg, 'I');
    default:
        return !is_tensor(value) && variable_has_kind(c, value->type - PT_VALUE_OTHER, letter);
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
    if (pt_is_record(arg)) {
        return record_has_kind(c, arg, letter);
    }
    return constant_has_kind(pt_value_type(pt_at(c, arg)), letter) &&
           (letter != 'L' || ints_are_ints(c, arg));
}
