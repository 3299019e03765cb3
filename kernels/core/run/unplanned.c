// Memories of unplanned tensors: a view shares the memory of its source, any other tensor has a
// memory of its own.
#include "core/record.h"
#include <string.h>

static pt_value *unplanned_record(const pt_context *c, pt_ref arg) {
    return (pt_value *)(void *)pt_at(c, arg);
}

// Limits a view to the elements of its source.
static void unplanned_limit(const pt_context *c, pt_ref view, uint32_t max) {
    pt_tensor t = pt_get_tensor(c, view);
    uint32_t *sizes = (uint32_t *)(void *)pt_at(c, unplanned_record(c, view)->sizes);
    if ((uint32_t)pt_numel(&t) > max) {
        memset(sizes, 0, t.rank * sizeof(*sizes));
    }
    sizes[-1] = sizes[-1] < max ? sizes[-1] : max;
}

// Gives a view the memory of its source. A static view may be as large as the bound of a dynamic
// source; only planned memory has the bytes for it.
static int share(pt_context *c, pt_ref from, pt_ref to, uint32_t external) {
    const pt_value *source = unplanned_record(c, from);
    pt_value *view = unplanned_record(c, to);
    uint32_t max = pt_capacity(c, from);
    if (source->type != view->type) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "a view of another dtype than its source");
    }
    bool is_static = !(view->flags & PT_VALUE_DYNAMIC);
    if (is_static && source->flags & PT_VALUE_DYNAMIC &&
        source->data >> PT_REF_OFFSET_BITS >= external) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED,
                       "a static view of a dynamic tensor outside the planned memory");
    }
    if (pt_capacity(c, to) > max) {
        if (is_static) {
            return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "a view of more elements than its source");
        }
        unplanned_limit(c, to, max);
    }
    uint8_t constant =
        source->flags & PT_VALUE_CONSTANT; // read before it changes: a view may be its own source
    view->data = source->data;
    view->flags = (uint8_t)((view->flags & ~PT_VALUE_CONSTANT) | constant);
    return PT_ERROR_OK;
}

// ---- the steps, for the arguments of each view

static int clear(pt_context *c, pt_ref from, pt_ref to, uint32_t external) {
    (void)external;
    if (!pt_has_kind(c, from, 'T') || !pt_has_kind(c, to, 'A')) {
        return pt_fail(c, PT_ERROR_INVALID_PROGRAM,
                       "a view that is not a tensor, or has no source");
    }
    pt_value *view = unplanned_record(c, to);
    view->data = view->data == PT_DATA_UNPLANNED ? 0 : view->data;
    return PT_ERROR_OK;
}

static int confirm(pt_context *c, pt_ref from, pt_ref to, uint32_t external) {
    (void)external;
    // a source without data is a view of itself, of a view of it, or of a later view
    bool has_data = unplanned_record(c, from)->data != 0 || pt_capacity(c, to) == 0;
    return has_data && unplanned_record(c, from)->data == unplanned_record(c, to)->data
               ? PT_ERROR_OK
               : pt_fail(c, PT_ERROR_NOT_SUPPORTED,
                         "a view of different tensors, or made before its source");
}

typedef int (*view_step)(pt_context *c, pt_ref from, pt_ref to, uint32_t external);

static int for_views(pt_context *c, uint32_t n, uint32_t external, view_step step) {
    int error = PT_ERROR_OK;
    const pt_instruction *at = pt_first_instruction(c);
    for (c->instruction = 0; error == PT_ERROR_OK && c->instruction < n; c->instruction++) {
        uint8_t last = at->n_args - 1;
        if (at->op == PT_OP_KERNEL_CALL && at->n_args > 1 &&
            pt_operator_signature(at->kernel)[last] == 'A') {
            error = step(c, at->args[0], at->args[last], external);
        }
        at = pt_next_instruction(at);
    }
    c->instruction -= error != PT_ERROR_OK;
    return error;
}

static int place_others(pt_context *c, const pt_method_record *method, uint32_t *external) {
    pt_value *value = unplanned_record(c, method->values);
    for (uint32_t i = 0; i < method->n_values; i++, value++) {
        if (value->data != PT_DATA_UNPLANNED) {
            continue;
        }
        if (*external >= PT_MEMORIES) {
            c->argument = value->index;
            return PT_ERROR_OUT_OF_RESOURCES;
        }
        value->data = pt_make_ref((*external)++, 0);
    }
    return PT_ERROR_OK;
}

int pt_place_unplanned(pt_context *c, bool has_views, uint32_t *external) {
    pt_start(c);
    c->argument = -1;
    c->reason = NULL;
    const pt_method_record *m = pt_record_of(c);
    uint32_t n = has_views ? m->n_instructions : 0, first = *external;
    int error = for_views(c, n, first, clear);
    if (error == PT_ERROR_OK) {
        error = place_others(c, m, external);
    }
    if (error == PT_ERROR_OK) {
        error = for_views(c, n, first, share);
    }
    return error == PT_ERROR_OK ? for_views(c, n, first, confirm) : error;
}

uint32_t pt_memory_needed(const pt_context *c, uint32_t memory, bool bounds) {
    const pt_method_record *m = pt_record_of(c);
    const pt_value *value = unplanned_record(c, m->values);
    uint32_t needed = 0;
    for (uint32_t i = 0; i < m->n_values; i++, value++) {
        bool counts = bounds || !(value->flags & PT_VALUE_DYNAMIC);
        if (counts && value->data >> PT_REF_OFFSET_BITS == memory) {
            uint32_t bytes = pt_capacity(c, m->values + i * (uint32_t)(sizeof(*value) / 4)) *
                             pt_element_size(value->type);
            needed = bytes > needed ? bytes : needed;
        }
    }
    return needed;
}

void pt_clear_oversized(const pt_context *c, uint32_t memory) {
    const pt_method_record *m = pt_record_of(c);
    const pt_value *value = unplanned_record(c, m->values);
    for (uint32_t i = 0; PT_HAS_DYNAMIC && i < m->n_values; i++, value++) {
        if (value->data >> PT_REF_OFFSET_BITS != memory || !(value->flags & PT_VALUE_DYNAMIC)) {
            continue;
        }
        pt_tensor t = pt_get_tensor(c, m->values + i * (uint32_t)(sizeof(*value) / 4));
        if ((uint64_t)(uint32_t)pt_numel(&t) * pt_element_size(t.dtype) > c->memory_size[memory]) {
            memset(pt_at(c, value->sizes), 0, t.rank * sizeof(*t.sizes));
        }
    }
}
