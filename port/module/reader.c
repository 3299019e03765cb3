// _picotorch.Reader: bounds-checked reading of a FlatBuffer at any alignment.
#include "core.h"
#include "modpicotorch.h"
#include "py/objstr.h"
#include "py/runtime.h"
#include <string.h>

typedef struct reader {
    mp_obj_base_t base;
    mp_obj_t buffer; // keeps `data` alive
    const uint8_t *data;
    uint32_t size;
} reader;

static mp_obj_t reader_make_new(const mp_obj_type_t *type, size_t n_args, size_t n_kw,
                                const mp_obj_t *args) {
    mp_arg_check_num(n_args, n_kw, 1, 1, false);
    mp_buffer_info_t buffer;
    mp_get_buffer_raise(args[0], &buffer, MP_BUFFER_READ);
    if (buffer.len > PT_SMALL_INT_MAX) {
        pt_raise_value_error();
    }
    reader *self = mp_obj_malloc(reader, type);
    self->buffer = args[0];
    self->data = buffer.buf;
    self->size = (uint32_t)buffer.len;
    return MP_OBJ_FROM_PTR(self);
}

static mp_obj_t reader_unary_op(mp_unary_op_t op, mp_obj_t self_in) {
    const reader *self = MP_OBJ_TO_PTR(self_in);
    return op == MP_UNARY_OP_LEN ? pt_small_int(self->size) : MP_OBJ_NULL;
}

// ---- bytes and numbers at a position
//
// Positions are counted modulo 2**32: what is negative or too large ends up behind the file, whose
// size is below 2**30.

static const uint8_t *bytes_at(const reader *r, uint32_t position, uint32_t size) {
    if (position > r->size || size > r->size - position) {
        pt_raise_value_error();
    }
    return r->data + position;
}

static uint16_t u16_from(const uint8_t *p) {
    return (uint16_t)(p[0] | p[1] << 8);
}

static uint32_t u32_from(const uint8_t *p) {
    return u16_from(p) | (uint32_t)u16_from(p + 2) << 16;
}

static uint8_t u8_at(const reader *r, uint32_t position) {
    return *bytes_at(r, position, 1);
}

static uint16_t u16_at(const reader *r, uint32_t position) {
    return u16_from(bytes_at(r, position, 2));
}

static uint32_t u32_at(const reader *r, uint32_t position) {
    return u32_from(bytes_at(r, position, 4));
}

static int64_t i64_at(const reader *r, uint32_t position) {
    const uint8_t *p = bytes_at(r, position, 8);
    return (int64_t)((uint64_t)u32_from(p + 4) << 32 | u32_from(p));
}

// ---- tables and vectors

typedef struct table {
    uint32_t position;
    uint32_t vtable;
    uint32_t vtable_size;
} table;

static table table_at(const reader *r, uint32_t position) {
    uint32_t vtable = position - u32_at(r, position);
    return (table){position, vtable, u16_at(r, vtable)};
}

// Position of a field; 0 when the file leaves it out.
static uint32_t field(const reader *r, const table *t, uint32_t slot) {
    if (slot >= t->vtable_size / 2 || 6 + 2 * slot > t->vtable_size) {
        return 0;
    }
    uint32_t offset = u16_at(r, t->vtable + 4 + 2 * slot);
    return offset ? t->position + offset : 0;
}

static uint32_t follow(const reader *r, uint32_t position) {
    uint32_t offset = u32_at(r, position);
    uint32_t target = offset <= r->size ? position + offset : r->size;
    bytes_at(r, target, 4);
    return target;
}

static uint32_t length(const reader *r, uint32_t vector) {
    return vector ? u32_at(r, vector) : 0;
}

static uint32_t item_at(const reader *r, uint32_t vector, uint32_t i, uint32_t size) {
    if (i >= length(r, vector) || i > r->size / size) {
        pt_raise_value_error();
    }
    return vector + 4 + i * size;
}

// Position of the item that the arguments name, a vector and an index.
static uint32_t item(const reader *r, mp_obj_t vector, mp_obj_t i, uint32_t size) {
    return item_at(r, (uint32_t)mp_obj_get_int(vector), (uint32_t)mp_obj_get_int(i), size);
}

// Position of the field that the arguments name, a table and a slot.
static uint32_t field_of(const reader *r, mp_obj_t table_in, mp_obj_t slot_in) {
    mp_int_t slot = mp_obj_get_int(slot_in);
    if (slot < 0) {
        pt_raise_value_error();
    }
    table t = table_at(r, (uint32_t)mp_obj_get_int(table_in));
    return field(r, &t, (uint32_t)slot);
}

// ---- methods

static mp_obj_t reader_verify(size_t n_args, const mp_obj_t *args) {
    const reader *self = MP_OBJ_TO_PTR(args[0]);
    mp_int_t format = n_args > 1 ? mp_obj_get_int(args[1]) : PT_FORMAT_PROGRAM;
    if (format < 0 || format >= PT_FORMATS || pt_is_misaligned(self->data, self->size, 4)) {
        pt_raise_value_error();
    }
    pt_check_stack();
    return pt_small_int(pt_verify(self->data, self->size, (uint32_t)format));
}
static MP_DEFINE_CONST_FUN_OBJ_VAR_BETWEEN(reader_verify_obj, 1, 2, reader_verify);

static mp_obj_t reader_field(mp_obj_t self_in, mp_obj_t table, mp_obj_t slot) {
    return pt_small_int(field_of(MP_OBJ_TO_PTR(self_in), table, slot));
}
static MP_DEFINE_CONST_FUN_OBJ_3(reader_field_obj, reader_field);

static mp_obj_t reader_root(mp_obj_t self_in) {
    return pt_small_int(follow(MP_OBJ_TO_PTR(self_in), 0));
}
static MP_DEFINE_CONST_FUN_OBJ_1(reader_root_obj, reader_root);

// The field at a position as a letter of a layout says.
static int64_t value_at(const reader *r, uint32_t position, uint8_t letter) {
    switch (letter) {
    case 'B':
        return u8_at(r, position);
    case 'i':
        return (int32_t)u32_at(r, position);
    case 'I':
        return u32_at(r, position);
    case 'q':
        return i64_at(r, position);
    case 'o':
        return follow(r, position);
    default:
        return 0;
    }
}

static mp_obj_t one_field(mp_obj_t self_in, mp_obj_t table, mp_obj_t slot, uint8_t letter) {
    const reader *self = MP_OBJ_TO_PTR(self_in);
    uint32_t position = field_of(self, table, slot);
    return pt_small_int(position ? value_at(self, position, letter) : 0);
}

static mp_obj_t reader_table(mp_obj_t self_in, mp_obj_t table, mp_obj_t slot) {
    return one_field(self_in, table, slot, 'o');
}
static MP_DEFINE_CONST_FUN_OBJ_3(reader_table_obj, reader_table);

static mp_obj_t reader_u8(mp_obj_t self_in, mp_obj_t table, mp_obj_t slot) {
    return one_field(self_in, table, slot, 'B');
}
static MP_DEFINE_CONST_FUN_OBJ_3(reader_u8_obj, reader_u8);

static mp_obj_t reader_i32(mp_obj_t self_in, mp_obj_t table, mp_obj_t slot) {
    return one_field(self_in, table, slot, 'i');
}
static MP_DEFINE_CONST_FUN_OBJ_3(reader_i32_obj, reader_i32);

static mp_obj_t reader_u32(mp_obj_t self_in, mp_obj_t table, mp_obj_t slot) {
    return one_field(self_in, table, slot, 'I');
}
static MP_DEFINE_CONST_FUN_OBJ_3(reader_u32_obj, reader_u32);

static mp_obj_t reader_i64(mp_obj_t self_in, mp_obj_t table, mp_obj_t slot) {
    return one_field(self_in, table, slot, 'q');
}
static MP_DEFINE_CONST_FUN_OBJ_3(reader_i64_obj, reader_i64);

// Reads the fields of the table at a position in slot order, as the letters of a layout say.
static void read(const reader *r, uint32_t position, mp_obj_t layout_in, mp_obj_t into_in) {
    mp_buffer_info_t layout;
    mp_get_buffer_raise(layout_in, &layout, MP_BUFFER_READ);
    size_t length;
    mp_obj_t *into;
    mp_obj_list_get(into_in, &length, &into);
    if (length < layout.len) {
        pt_raise_value_error();
    }
    table t = table_at(r, position);
    for (uint32_t slot = 0; slot < layout.len; slot++) {
        uint32_t found = field(r, &t, slot);
        uint8_t letter = ((const uint8_t *)layout.buf)[slot];
        into[slot] = pt_small_int(found ? value_at(r, found, letter) : 0);
    }
}

static mp_obj_t reader_read(size_t n_args, const mp_obj_t *args) {
    (void)n_args;
    read(MP_OBJ_TO_PTR(args[0]), (uint32_t)mp_obj_get_int(args[1]), args[2], args[3]);
    return mp_const_none;
}
static MP_DEFINE_CONST_FUN_OBJ_VAR_BETWEEN(reader_read_obj, 4, 4, reader_read);

static mp_obj_t reader_length(mp_obj_t self_in, mp_obj_t vector) {
    return pt_small_int(length(MP_OBJ_TO_PTR(self_in), (uint32_t)mp_obj_get_int(vector)));
}
static MP_DEFINE_CONST_FUN_OBJ_2(reader_length_obj, reader_length);

static mp_obj_t reader_item(mp_obj_t self_in, mp_obj_t vector, mp_obj_t i) {
    const reader *self = MP_OBJ_TO_PTR(self_in);
    return pt_small_int(follow(self, item(self, vector, i, 4)));
}
static MP_DEFINE_CONST_FUN_OBJ_3(reader_item_obj, reader_item);

// Table `i` of a vector of tables.
static table table_item(const reader *r, uint32_t vector, uint32_t i) {
    return table_at(r, follow(r, item_at(r, vector, i, 4)));
}

// A union: its type is in slot 0, its member in slot 1, in all tables that have one.
static uint8_t union_type(const reader *r, const table *t) {
    uint32_t position = field(r, t, PT_SLOT_EVALUE_VAL_TYPE);
    return position ? u8_at(r, position) : 0;
}

static void read_member(const reader *r, const table *t, mp_obj_t layout, mp_obj_t into) {
    uint32_t position = field(r, t, PT_SLOT_EVALUE_VAL);
    read(r, position ? follow(r, position) : 0, layout, into);
}

static mp_obj_t reader_read_union(size_t n_args, const mp_obj_t *args) {
    (void)n_args;
    const reader *self = MP_OBJ_TO_PTR(args[0]);
    table t =
        table_item(self, (uint32_t)mp_obj_get_int(args[1]), (uint32_t)mp_obj_get_int(args[2]));
    uint8_t type = union_type(self, &t);
    size_t n_layouts;
    mp_obj_t *layouts;
    mp_obj_get_array(args[3], &n_layouts, &layouts);
    if (type < n_layouts && layouts[type] != mp_const_none) {
        read_member(self, &t, layouts[type], args[4]);
    }
    return MP_OBJ_NEW_SMALL_INT(type);
}
static MP_DEFINE_CONST_FUN_OBJ_VAR_BETWEEN(reader_read_union_obj, 5, 5, reader_read_union);

// Words that the sizes of a tensor take in the pool: none of a static one.
static uint32_t dynamic_words(const reader *r, const table *evalue) {
    uint32_t position = field(r, evalue, PT_SLOT_EVALUE_VAL);
    table tensor = table_at(r, position ? follow(r, position) : 0);
    uint32_t dynamism = field(r, &tensor, PT_SLOT_TENSOR_SHAPE_DYNAMISM);
    if (!dynamism || !u8_at(r, dynamism)) {
        return 0;
    }
    uint32_t sizes = field(r, &tensor, PT_SLOT_TENSOR_SIZES);
    return 1 + (sizes ? length(r, follow(r, sizes)) : 0);
}

static mp_obj_t reader_count_tensors(mp_obj_t self_in, mp_obj_t values_in, mp_obj_t into_in) {
    const reader *self = MP_OBJ_TO_PTR(self_in);
    uint32_t values = (uint32_t)mp_obj_get_int(values_in);
    uint32_t n = length(self, values), tensors = 0;
    uint64_t words = 0;
    for (uint32_t i = 0; i < n; i++) {
        table evalue = table_item(self, values, i);
        if (union_type(self, &evalue) == PT_TYPE_TENSOR) {
            tensors++;
            words += dynamic_words(self, &evalue);
        }
    }
    size_t length;
    mp_obj_t *into;
    mp_obj_list_get(into_in, &length, &into);
    if (length < 2) {
        pt_raise_value_error();
    }
    into[0] = pt_small_int(tensors);
    into[1] = pt_small_int((int64_t)words);
    return mp_const_none;
}
static MP_DEFINE_CONST_FUN_OBJ_3(reader_count_tensors_obj, reader_count_tensors);

static mp_obj_t reader_read_tensor(size_t n_args, const mp_obj_t *args) {
    (void)n_args;
    const reader *self = MP_OBJ_TO_PTR(args[0]);
    uint32_t values = (uint32_t)mp_obj_get_int(args[1]);
    uint32_t n = length(self, values);
    mp_int_t start = mp_obj_get_int(args[2]);
    if (start < 0) {
        pt_raise_value_error();
    }
    for (uint32_t i = (uint32_t)start; i < n; i++) {
        table evalue = table_item(self, values, i);
        if (union_type(self, &evalue) == PT_TYPE_TENSOR) {
            read_member(self, &evalue, args[3], args[4]);
            return pt_small_int(i);
        }
    }
    return MP_OBJ_NEW_SMALL_INT(-1);
}
static MP_DEFINE_CONST_FUN_OBJ_VAR_BETWEEN(reader_read_tensor_obj, 5, 5, reader_read_tensor);

static mp_obj_t reader_u8_item(mp_obj_t self_in, mp_obj_t vector, mp_obj_t i) {
    const reader *self = MP_OBJ_TO_PTR(self_in);
    return pt_small_int(u8_at(self, item(self, vector, i, 1)));
}
static MP_DEFINE_CONST_FUN_OBJ_3(reader_u8_item_obj, reader_u8_item);

static mp_obj_t reader_i32_item(mp_obj_t self_in, mp_obj_t vector, mp_obj_t i) {
    const reader *self = MP_OBJ_TO_PTR(self_in);
    return pt_small_int((int32_t)u32_at(self, item(self, vector, i, 4)));
}
static MP_DEFINE_CONST_FUN_OBJ_3(reader_i32_item_obj, reader_i32_item);

static mp_obj_t reader_i64_item(mp_obj_t self_in, mp_obj_t vector, mp_obj_t i) {
    const reader *self = MP_OBJ_TO_PTR(self_in);
    return pt_small_int(i64_at(self, item(self, vector, i, 8)));
}
static MP_DEFINE_CONST_FUN_OBJ_3(reader_i64_item_obj, reader_i64_item);

// The items of a vector, which all lie in the file.
static const uint8_t *items(const reader *r, mp_obj_t vector_in, uint32_t size, uint32_t *n) {
    uint32_t vector = (uint32_t)mp_obj_get_int(vector_in);
    *n = length(r, vector);
    return *n ? bytes_at(r, item_at(r, vector, *n - 1, size), size) - (*n - 1) * size : NULL;
}

// True when two vectors of items of `size` bytes, each in a file of its own, are equal.
static bool same_items(const reader *r, uint32_t vector, uint32_t size, const reader *other,
                       uint32_t other_vector) {
    uint32_t n = length(r, vector);
    if (n != length(other, other_vector) || n > r->size / size) {
        return false;
    }
    return n == 0 || memcmp(bytes_at(r, vector + 4, n * size),
                            bytes_at(other, other_vector + 4, n * size), n * size) == 0;
}

static const reader *reader_of(mp_obj_t reader_in) {
    if (!mp_obj_is_type(reader_in, &pt_reader_type)) {
        mp_raise_type(&mp_type_TypeError);
    }
    return MP_OBJ_TO_PTR(reader_in);
}

static mp_obj_t reader_same_items(size_t n_args, const mp_obj_t *args) {
    (void)n_args;
    mp_int_t size = mp_obj_get_int(args[2]);
    if (size < 1 || size > 8) {
        pt_raise_value_error();
    }
    return mp_obj_new_bool(same_items(MP_OBJ_TO_PTR(args[0]), (uint32_t)mp_obj_get_int(args[1]),
                                      (uint32_t)size, reader_of(args[3]),
                                      (uint32_t)mp_obj_get_int(args[4])));
}
static MP_DEFINE_CONST_FUN_OBJ_VAR_BETWEEN(reader_same_items_obj, 5, 5, reader_same_items);

// Index of the table of a vector whose string in a slot is that at a position of another reader;
// the search starts at a table of the vector and goes round.
static mp_obj_t reader_find(size_t n_args, const mp_obj_t *args) {
    (void)n_args;
    const reader *self = MP_OBJ_TO_PTR(args[0]), *other = reader_of(args[3]);
    uint32_t tables = (uint32_t)mp_obj_get_int(args[1]), n = length(self, tables);
    uint32_t slot = (uint32_t)mp_obj_get_int(args[2]), string = (uint32_t)mp_obj_get_int(args[4]);
    uint32_t i = (uint32_t)mp_obj_get_int(args[5]);
    for (uint32_t left = n; left > 0; left--, i++) {
        i = i < n ? i : 0;
        table t = table_item(self, tables, i);
        uint32_t position = field(self, &t, slot);
        if (position && same_items(self, follow(self, position), 1, other, string)) {
            return pt_small_int(i);
        }
    }
    return MP_OBJ_NEW_SMALL_INT(-1);
}
static MP_DEFINE_CONST_FUN_OBJ_VAR_BETWEEN(reader_find_obj, 6, 6, reader_find);

static mp_obj_t reader_tensor_nbytes(size_t n_args, const mp_obj_t *args) {
    (void)n_args;
    mp_int_t dtype = mp_obj_get_int(args[1]), limit = mp_obj_get_int(args[3]);
    int64_t nbytes = dtype >= 0 && dtype < 256 ? pt_element_size((uint8_t)dtype) : 0;
    uint32_t n;
    const uint8_t *sizes = items(MP_OBJ_TO_PTR(args[0]), args[2], 4, &n);
    bool fits = nbytes > 0, empty = false;
    for (uint32_t i = 0; fits && i < n; i++) {
        int32_t size = (int32_t)u32_from(sizes + 4 * i);
        empty = empty || size == 0;
        nbytes *= size == 0 ? 1 : size;
        fits = size >= 0 && nbytes <= limit;
    }
    return pt_small_int(!fits ? -1 : empty ? 0 : nbytes);
}
static MP_DEFINE_CONST_FUN_OBJ_VAR_BETWEEN(reader_tensor_nbytes_obj, 4, 4, reader_tensor_nbytes);

static mp_obj_t reader_tensor_flags(mp_obj_t self_in, mp_obj_t sizes, mp_obj_t order_in) {
    const reader *self = MP_OBJ_TO_PTR(self_in);
    uint32_t n, seen = 0;
    const uint8_t *order = items(self, order_in, 1, &n);
    uint32_t flags = n | PT_VALUE_CONTIGUOUS;
    if (n > PT_MAX_RANK || n != length(self, (uint32_t)mp_obj_get_int(sizes))) {
        return MP_OBJ_NEW_SMALL_INT(-1);
    }
    for (uint32_t i = 0; i < n; i++) {
        if (order[i] >= n || seen & 1u << order[i]) {
            return MP_OBJ_NEW_SMALL_INT(-1);
        }
        seen |= 1u << order[i];
        flags = order[i] == i ? flags : n;
    }
    return pt_small_int(flags);
}
static MP_DEFINE_CONST_FUN_OBJ_3(reader_tensor_flags_obj, reader_tensor_flags);

pt_argument pt_read_argument(mp_obj_t reader_in, uint32_t arguments, uint32_t i, uint32_t values) {
    const reader *r = MP_OBJ_TO_PTR(reader_in);
    uint32_t index = u32_at(r, item_at(r, arguments, i, 4));
    table evalue = table_item(r, values, index);
    return (pt_argument){index, evalue.position, union_type(r, &evalue)};
}

uint32_t pt_vector_length(mp_obj_t reader_in, uint32_t vector) {
    return length(MP_OBJ_TO_PTR(reader_in), vector);
}

static mp_obj_t reader_u32_at(mp_obj_t self_in, mp_obj_t position) {
    return pt_small_int(u32_at(MP_OBJ_TO_PTR(self_in), (uint32_t)mp_obj_get_int(position)));
}
static MP_DEFINE_CONST_FUN_OBJ_2(reader_u32_at_obj, reader_u32_at);

static mp_obj_t reader_u64_at(mp_obj_t self_in, mp_obj_t position) {
    return pt_small_int(i64_at(MP_OBJ_TO_PTR(self_in), (uint32_t)mp_obj_get_int(position)));
}
static MP_DEFINE_CONST_FUN_OBJ_2(reader_u64_at_obj, reader_u64_at);

// The number of the EValue at a position; of another kind: its type alone.
static pt_scalar scalar_at(const reader *r, uint32_t position) {
    table evalue = table_at(r, position);
    pt_scalar s = {.type = union_type(r, &evalue)};
    if (s.type == PT_TYPE_INT || s.type == PT_TYPE_BOOL || s.type == PT_TYPE_DOUBLE) {
        uint32_t member = field(r, &evalue, PT_SLOT_EVALUE_VAL);
        table number = table_at(r, member ? follow(r, member) : 0);
        uint32_t found = field(r, &number, 0); // the only one that each of them has
        s.as.i = !found ? 0 : s.type == PT_TYPE_BOOL ? u8_at(r, found) != 0 : i64_at(r, found);
    }
    return s;
}

static mp_obj_t reader_number(mp_obj_t self_in, mp_obj_t evalue, mp_obj_t kept) {
    return pt_number(scalar_at(MP_OBJ_TO_PTR(self_in), (uint32_t)mp_obj_get_int(evalue)), kept);
}
static MP_DEFINE_CONST_FUN_OBJ_3(reader_number_obj, reader_number);

static mp_obj_t reader_is_number(mp_obj_t self_in, mp_obj_t evalue, mp_obj_t value) {
    const reader *self = MP_OBJ_TO_PTR(self_in);
    return mp_obj_new_bool(pt_is_number(scalar_at(self, (uint32_t)mp_obj_get_int(evalue)), value));
}
static MP_DEFINE_CONST_FUN_OBJ_3(reader_is_number_obj, reader_is_number);

static mp_obj_t reader_double_item(size_t n_args, const mp_obj_t *args) {
    (void)n_args;
    const reader *self = MP_OBJ_TO_PTR(args[0]);
    pt_scalar s = {.as.i = i64_at(self, item(self, args[1], args[2], 8))};
    return pt_float(s.as.d, args[3]);
}
static MP_DEFINE_CONST_FUN_OBJ_VAR_BETWEEN(reader_double_item_obj, 4, 4, reader_double_item);

static mp_obj_t reader_string(mp_obj_t self_in, mp_obj_t string_in, mp_obj_t kept) {
    const reader *self = MP_OBJ_TO_PTR(self_in);
    uint32_t string = (uint32_t)mp_obj_get_int(string_in), n = length(self, string);
    if (!string) {
        return pt_string((const uint8_t *)"", 0, kept);
    }
    const uint8_t *text = bytes_at(self, string + 4, n);
    bytes_at(self, string + 4 + n, 1);
    return pt_string(text, n, kept);
}
static MP_DEFINE_CONST_FUN_OBJ_3(reader_string_obj, reader_string);

static mp_obj_t reader_equals(mp_obj_t self_in, mp_obj_t string_in, mp_obj_t text_in) {
    const reader *self = MP_OBJ_TO_PTR(self_in);
    uint32_t string = (uint32_t)mp_obj_get_int(string_in);
    size_t text_length;
    const char *text = mp_obj_str_get_data(text_in, &text_length);
    uint32_t string_length = length(self, string);
    const uint8_t *bytes = bytes_at(self, string + 4, string_length);
    return mp_obj_new_bool(string_length == text_length && memcmp(bytes, text, text_length) == 0);
}
static MP_DEFINE_CONST_FUN_OBJ_3(reader_equals_obj, reader_equals);

// The characters of the string at a position; none where it is 0.
static const char *string_at(const reader *r, uint32_t string, uint32_t *string_length) {
    *string_length = length(r, string);
    return string ? (const char *)bytes_at(r, string + 4, *string_length) : "";
}

static mp_obj_t reader_operator(mp_obj_t self_in, mp_obj_t name_in, mp_obj_t overload_in) {
    const reader *self = MP_OBJ_TO_PTR(self_in);
    uint32_t name_length, overload_length;
    const char *name = string_at(self, (uint32_t)mp_obj_get_int(name_in), &name_length);
    const char *overload = string_at(self, (uint32_t)mp_obj_get_int(overload_in), &overload_length);
    return pt_small_int(pt_find_operator(name, name_length, overload, overload_length));
}
static MP_DEFINE_CONST_FUN_OBJ_3(reader_operator_obj, reader_operator);

// MicroPython searches it from the start: what loading calls most comes first.
static const mp_rom_map_elem_t reader_locals_table[] = {
    {MP_ROM_QSTR(MP_QSTR_read_tensor), MP_ROM_PTR(&reader_read_tensor_obj)},
    {MP_ROM_QSTR(MP_QSTR_tensor_flags), MP_ROM_PTR(&reader_tensor_flags_obj)},
    {MP_ROM_QSTR(MP_QSTR_tensor_nbytes), MP_ROM_PTR(&reader_tensor_nbytes_obj)},
    {MP_ROM_QSTR(MP_QSTR_i64_item), MP_ROM_PTR(&reader_i64_item_obj)},
    {MP_ROM_QSTR(MP_QSTR_read), MP_ROM_PTR(&reader_read_obj)},
    {MP_ROM_QSTR(MP_QSTR_read_union), MP_ROM_PTR(&reader_read_union_obj)},
    {MP_ROM_QSTR(MP_QSTR_count_tensors), MP_ROM_PTR(&reader_count_tensors_obj)},
    {MP_ROM_QSTR(MP_QSTR_table), MP_ROM_PTR(&reader_table_obj)},
    {MP_ROM_QSTR(MP_QSTR_item), MP_ROM_PTR(&reader_item_obj)},
    {MP_ROM_QSTR(MP_QSTR_u8), MP_ROM_PTR(&reader_u8_obj)},
    {MP_ROM_QSTR(MP_QSTR_u32), MP_ROM_PTR(&reader_u32_obj)},
    {MP_ROM_QSTR(MP_QSTR_i32), MP_ROM_PTR(&reader_i32_obj)},
    {MP_ROM_QSTR(MP_QSTR_length), MP_ROM_PTR(&reader_length_obj)},
    {MP_ROM_QSTR(MP_QSTR_i32_item), MP_ROM_PTR(&reader_i32_item_obj)},
    {MP_ROM_QSTR(MP_QSTR_u8_item), MP_ROM_PTR(&reader_u8_item_obj)},
    {MP_ROM_QSTR(MP_QSTR_i64), MP_ROM_PTR(&reader_i64_obj)},
    {MP_ROM_QSTR(MP_QSTR_operator), MP_ROM_PTR(&reader_operator_obj)},
    {MP_ROM_QSTR(MP_QSTR_equals), MP_ROM_PTR(&reader_equals_obj)},
    {MP_ROM_QSTR(MP_QSTR_field), MP_ROM_PTR(&reader_field_obj)},
    {MP_ROM_QSTR(MP_QSTR_u32_at), MP_ROM_PTR(&reader_u32_at_obj)},
    {MP_ROM_QSTR(MP_QSTR_u64_at), MP_ROM_PTR(&reader_u64_at_obj)},
    {MP_ROM_QSTR(MP_QSTR_root), MP_ROM_PTR(&reader_root_obj)},
    {MP_ROM_QSTR(MP_QSTR_number), MP_ROM_PTR(&reader_number_obj)},
    {MP_ROM_QSTR(MP_QSTR_is_number), MP_ROM_PTR(&reader_is_number_obj)},
    {MP_ROM_QSTR(MP_QSTR_double_item), MP_ROM_PTR(&reader_double_item_obj)},
    {MP_ROM_QSTR(MP_QSTR_string), MP_ROM_PTR(&reader_string_obj)},
    {MP_ROM_QSTR(MP_QSTR_find), MP_ROM_PTR(&reader_find_obj)},
    {MP_ROM_QSTR(MP_QSTR_same_items), MP_ROM_PTR(&reader_same_items_obj)},
    {MP_ROM_QSTR(MP_QSTR_verify), MP_ROM_PTR(&reader_verify_obj)},
};
static MP_DEFINE_CONST_DICT(reader_locals, reader_locals_table);

MP_DEFINE_CONST_OBJ_TYPE(pt_reader_type, MP_QSTR_Reader, MP_TYPE_FLAG_NONE, make_new,
                         reader_make_new, unary_op, reader_unary_op, locals_dict, &reader_locals);
