// Sets the inputs of a method, and the memory of its unplanned tensors.
#include "core/format/program.h"
#include "core/load/memories.h"
#include "core/method.h"
#include "core/record.h"
#include "core/report.h"
#include <float.h>
#include <string.h>

// Typecodes that a tensor of each dtype accepts besides bytes; the first one is the typecode of its
// elements.
static const char *typecodes(uint8_t dtype) {
    static const char codes[][2] = {
        [PT_DTYPE_BYTE] = "B",          [PT_DTYPE_CHAR] = "b",
        [PT_DTYPE_SHORT] = "h",         [PT_DTYPE_INT] = "i",
        [PT_DTYPE_LONG] = "q",          [PT_DTYPE_HALF] = "He",
        [PT_DTYPE_FLOAT] = "f",         [PT_DTYPE_DOUBLE] = "d",
        [PT_DTYPE_BOOL] = "B?",         [PT_DTYPE_COMPLEX_HALF] = "He",
        [PT_DTYPE_COMPLEX_FLOAT] = "f", [PT_DTYPE_COMPLEX_DOUBLE] = "d",
        [PT_DTYPE_QINT8] = "b",         [PT_DTYPE_QINT32] = "i",
        [PT_DTYPE_BFLOAT16] = "H",      [PT_DTYPE_BITS16] = "H",
        [PT_DTYPE_UINT16] = "H",        [PT_DTYPE_UINT32] = "I",
        [PT_DTYPE_UINT64] = "Q",
    };
    return dtype < sizeof(codes) / sizeof(*codes) && codes[dtype][0] ? codes[dtype]
                                                                     : codes[PT_DTYPE_BYTE];
}

char pt_typecode(uint8_t dtype) {
    return typecodes(dtype)[0];
}

bool pt_accepts(uint8_t dtype, char typecode) {
    const char *codes = typecodes(dtype);
    return typecode == 0 || typecode == 'B' || typecode == codes[0] || typecode == codes[1];
}

// ---- checks of an array against the tensor of an input

typedef struct target {
    pt_method *m;
    uint8_t subject;
    int32_t index;
    uint32_t value;
    pt_ref ref;
    pt_tensor_info info; // the tensor as the program has it
    pt_error *error;
} target;

static int inputs_refuse(const target *t, const char *what) {
    return pt_report(t->error, PT_ERROR_INVALID_ARGUMENT, t->subject, t->index, what);
}

static int refuse_size(const target *t, uint32_t wanted, uint32_t buffer, const char *what) {
    return pt_report_bytes(t->error, PT_ERROR_INVALID_ARGUMENT, t->subject, t->index, wanted,
                           buffer, what);
}

static const pt_value *inputs_record_of(const target *t) {
    return (const pt_value *)(const void *)pt_at(&t->m->c, t->ref);
}

static uint32_t inputs_memory_of(const target *t) {
    return inputs_record_of(t)->data >> PT_REF_OFFSET_BITS;
}

static int inputs_refuse_type(const target *t, uint8_t type) {
    if (t->subject != PT_SUBJECT_INPUT || type == PT_TYPE_TENSOR) {
        return inputs_refuse(t, "is not a tensor");
    }
    return inputs_refuse(
        t, type >= PT_TYPE_INT_LIST
               ? "is a list, which cannot be an input"
               : "is not the value that the program was exported with; give the same, "
                 "of the same type");
}

static int find_target(target *t) {
    pt_evalue item;
    t->ref = pt_find_value(&t->m->c, t->value);
    if (!t->ref) {
        PT_TRY(pt_method_meta_evalue(&t->m->meta, PT_VALUES, t->value, NULL, &item, t->error));
        return inputs_refuse_type(t, item.type);
    }
    pt_tensor tensor = pt_get_tensor(&t->m->c, t->ref);
    if (tensor.flags & PT_VALUE_DYNAMIC) { // the bounds are in the program
        PT_TRY(pt_method_meta_evalue(&t->m->meta, PT_VALUES, t->value, NULL, &item, t->error));
        return pt_method_meta_tensor(&t->m->meta, &item, &t->info, t->error);
    }
    t->info = (pt_tensor_info){.sizes = tensor.sizes,
                               .dim_order = tensor.dim_order,
                               .dtype = tensor.dtype,
                               .rank = tensor.rank,
                               .nbytes = pt_nbytes(&tensor)};
    return PT_ERROR_OK;
}

static int check_dtype(const target *t, const pt_input_buffer *buffer) {
    bool is_same = !buffer->has_shape || buffer->dtype == t->info.dtype;
    return is_same && pt_accepts(t->info.dtype, buffer->typecode)
               ? PT_ERROR_OK
               : inputs_refuse(t, "has another dtype than the program; give its dtype");
}

// Returns the bytes of a shape; UINT32_MAX if they are too many. A negative size is too large.
static uint32_t bytes_of(const pt_input_buffer *buffer) {
    uint64_t bytes = pt_element_size(buffer->dtype);
    bytes *= pt_product(buffer->sizes, buffer->rank);
    return bytes > INT32_MAX ? UINT32_MAX : (uint32_t)bytes;
}

static int inputs_check_shape(const target *t, const pt_input_buffer *buffer) {
    if (!buffer->has_shape) {
        return buffer->data.size == t->info.nbytes
                   ? PT_ERROR_OK
                   : refuse_size(t, t->info.nbytes, buffer->data.size,
                                 "; give as many bytes as the program's sizes take");
    }
    if (bytes_of(buffer) != buffer->data.size) {
        return inputs_refuse(t, "its sizes have changed since; get the output again");
    }
    if (buffer->rank == t->info.rank && buffer->rank > 0 && buffer->dim_order &&
        memcmp(buffer->dim_order, t->info.dim_order, buffer->rank) != 0) {
        return inputs_refuse(t, "has another dim order than the program");
    }
    return PT_ERROR_OK;
}

static int resize(const target *t, const pt_input_buffer *buffer) {
    pt_context *c = &t->m->c;
    int code = buffer->has_shape ? pt_resize_tensor(c, t->ref, buffer->rank, buffer->sizes)
                                 : pt_resize_tensor(c, t->ref, t->info.rank, t->info.sizes);
    if (code != PT_ERROR_OK) {
        pt_report(t->error, code, t->subject, t->index, c->reason);
    }
    return code;
}

static int check_shared(const target *t, uint32_t shared) {
    return shared
               ? inputs_refuse(t, "shares bytes with the program or the method's memories; pass a "
                                  "copy")
               : PT_ERROR_OK;
}

// Binds a buffer as the memory of a tensor outside the planned memory.
static void inputs_bind(const target *t, pt_input_buffer *buffer) {
    pt_method *m = t->m;
    uint32_t memory = inputs_memory_of(t);
    pt_bind(&m->c, memory, buffer->data.data, buffer->data.size);
    m->has_memory |= 1u << memory;
    buffer->memory = (uint8_t)memory;
}

// ---- inputs

// Checks a buffer as the memory of an input and of its views. If no instruction writes to it, it
// may be read-only or part of the program; else it needs the bytes of the bound.
static int check_input_memory(const target *t, const pt_input_buffer *buffer, uint32_t memory) {
    const pt_method *m = t->m;
    const pt_context *c = &m->c;
    const pt_span *data = &buffer->data;
    PT_TRY(pt_check_alignment(data, t->subject, t->index, t->error));
    uint32_t shared = pt_find_overlap(c, data->data, data->size, 0, m->first_external);
    bool written = pt_is_written(c, memory);
    uint32_t needed = pt_memory_needed(c, memory, written);
    if (written) {
        PT_TRY(pt_check_memory(data, t->subject, t->index, t->error));
    }
    while (!written && pt_is_constant_memory(m, shared)) { // the memory may have further memories
        shared = pt_find_overlap(c, data->data, data->size, shared + 1, m->first_external);
    }
    if (data->size < needed) {
        return refuse_size(t, needed, data->size,
                           written
                               ? "the program writes to it; give as many bytes as the "
                                 "program's sizes say"
                               : "it has views; give as many bytes as the program's sizes take");
    }
    return check_shared(t, shared);
}

static void mark_set(pt_method *m, uint32_t i) {
    uint32_t bit = 1u << i % 32;
    m->missing -= !(m->set[i / 32] & bit);
    m->set[i / 32] |= bit;
}

// All checks come before any change.
static int set_tensor(target *t, pt_input_buffer *buffer) {
    pt_context *c = &t->m->c;
    PT_TRY(pt_check_address(&buffer->data, t->subject, t->index, t->error));
    PT_TRY(check_dtype(t, buffer));
    PT_TRY(inputs_check_shape(t, buffer));
    uint32_t memory = inputs_memory_of(t);
    if (pt_is_constant_memory(t->m, memory)) {
        return inputs_refuse(t, "is constant in the program");
    }
    if (memory < t->m->first_external) {
        PT_TRY(resize(t, buffer));
        uint8_t *to =
            buffer->data.size > 0 ? pt_at(c, inputs_record_of(t)->data) : buffer->data.data;
        if (to != buffer->data.data) { // else the input is already in place
            memmove(to, buffer->data.data, buffer->data.size);
        }
        return PT_ERROR_OK;
    }
    PT_TRY(check_input_memory(t, buffer, memory));
    PT_TRY(resize(t, buffer));
    t->m->is_ready = false;
    inputs_bind(t, buffer);
    pt_clear_oversized(c, memory);
    return PT_ERROR_OK;
}

static int start_input(target *t, pt_method *m, uint32_t i, pt_error *error) {
    *t = (target){.m = m, .subject = PT_SUBJECT_INPUT, .index = (int32_t)i, .error = error};
    PT_TRY(pt_check_loaded(m, error));
    PT_TRY(pt_value_index(&m->meta, PT_INPUTS, i, &t->value, error));
    PT_TRY(pt_check_idle(m, "is executing", error));
    return m->c.instruction == 0
               ? PT_ERROR_OK
               : pt_report(error, PT_ERROR_INVALID_STATE, PT_SUBJECT_INPUT, (int32_t)i,
                           "cannot be set between steps; reset the execution first");
}

int pt_give_input(pt_method *m, uint32_t i, pt_input_buffer *buffer, pt_error *error) {
    target t;
    buffer->memory = PT_MEMORY_NONE;
    PT_TRY(start_input(&t, m, i, error));
    PT_TRY(find_target(&t));
    PT_TRY(set_tensor(&t, buffer));
    mark_set(m, i);
    pt_update_ready(m);
    return PT_ERROR_OK;
}

int pt_set_input(pt_method *m, uint32_t i, void *data, uint32_t size, pt_error *error) {
    pt_input_buffer buffer = {.data = {data, size, false}};
    return pt_give_input(m, i, &buffer, error);
}

// Compares a constant input as ExecuTorch does.
static bool is_close(double value, double wanted) {
    double off = value > wanted ? value - wanted : wanted - value;
    double magnitude = wanted < 0 ? -wanted : wanted;
    bool close = magnitude <= DBL_MAX && off <= 1e-4 + 1e-5 * magnitude;
    return close || value == wanted || (value != value && wanted != wanted);
}

static bool same_value(const pt_evalue *wanted, const pt_evalue *value) {
    if (wanted->type != value->type) {
        return false;
    }
    switch (wanted->type) {
    case PT_TYPE_DOUBLE:
        return is_close(value->number.as.d, wanted->number.as.d);
    case PT_TYPE_STRING:
        return pt_text_is(wanted->text, value->text.data, value->text.length);
    case PT_TYPE_NULL:
        return true;
    default:
        return wanted->number.as.i == value->number.as.i;
    }
}

int pt_set_constant_input(pt_method *m, uint32_t i, const pt_evalue *value, pt_error *error) {
    target t;
    pt_evalue item;
    PT_TRY(start_input(&t, m, i, error));
    PT_TRY(pt_method_meta_evalue(&m->meta, PT_VALUES, t.value, NULL, &item, error));
    if (item.type == PT_TYPE_TENSOR) {
        return inputs_refuse(&t, "is a tensor; give its data");
    }
    if (item.type >= PT_TYPE_INT_LIST || item.type == PT_TYPE_NONE) {
        return inputs_refuse(&t, "is a list, which cannot be an input");
    }
    if (!same_value(&item, value)) {
        return inputs_refuse(
            &t, "is not the value that the program was exported with; give the same, of "
                "the same type");
    }
    mark_set(m, i);
    pt_update_ready(m);
    return PT_ERROR_OK;
}

// ---- outputs and mutable buffers

// Binds a buffer as the memory of an unplanned tensor; it has at least the bytes of the program's
// sizes.
static int set_memory(target *t, pt_input_buffer *buffer, const char *is_planned) {
    pt_method *m = t->m;
    PT_TRY(check_dtype(t, buffer));
    if (buffer->data.size < t->info.nbytes) {
        return refuse_size(t, t->info.nbytes, buffer->data.size,
                           "; give as many bytes as the program's sizes take");
    }
    if (t->info.nbytes == 0) {
        return PT_ERROR_OK;
    }
    uint32_t memory = inputs_memory_of(t);
    if (memory < m->first_external) {
        return pt_report(t->error, PT_ERROR_INVALID_STATE, t->subject, t->index, is_planned);
    }
    uint32_t needed = pt_memory_needed(&m->c, memory, true);
    if (buffer->data.size < needed) {
        return refuse_size(t, needed, buffer->data.size,
                           "it is a view; give as many bytes as its source has");
    }
    PT_TRY(pt_check_memory(&buffer->data, t->subject, t->index, t->error));
    PT_TRY(check_shared(
        t, pt_find_overlap(&m->c, buffer->data.data, buffer->data.size, 0, m->first_external)));
    m->is_ready = false; // until overlaps with other memories are checked
    inputs_bind(t, buffer);
    pt_update_ready(m);
    return PT_ERROR_OK;
}

int pt_set_output(pt_method *m, uint32_t i, pt_input_buffer *buffer, pt_error *error) {
    target t = {.m = m, .subject = PT_SUBJECT_OUTPUT, .index = (int32_t)i, .error = error};
    buffer->memory = PT_MEMORY_NONE;
    PT_TRY(pt_check_loaded(m, error));
    PT_TRY(pt_check_idle(m, "is executing", error));
    PT_TRY(pt_value_index(&m->meta, PT_OUTPUTS, i, &t.value, error));
    PT_TRY(find_target(&t));
    return set_memory(&t, buffer, "has planned memory; get the output instead");
}

int pt_set_attribute(pt_method *m, const char *name, uint32_t length, pt_input_buffer *buffer,
                     pt_error *error) {
    target t = {.m = m, .subject = PT_SUBJECT_ATTRIBUTE, .index = PT_NO_INDEX, .error = error};
    buffer->memory = PT_MEMORY_NONE;
    PT_TRY(pt_check_loaded(m, error));
    PT_TRY(pt_check_idle(m, "is executing", error));
    PT_TRY(pt_find_attribute(&m->meta, name, length, &t.value, error));
    PT_TRY(find_target(&t));
    return set_memory(&t, buffer, "has planned memory; get the attribute and write there");
}
