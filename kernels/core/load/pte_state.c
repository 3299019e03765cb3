// Tensors of a .pte file in planned memory, and their initial values.
#include "core/format/program.h"
#include "core/format/pte.h"
#include "core/method.h"
#include "core/record.h"
#include "core/report.h"
#include <string.h>

int pt_find_planned(const pt_method *m, pt_reader *r, const pt_tensor_table *t, uint32_t value,
                    pt_ref *data, pt_error *error) {
    pt_table allocation = pt_table_at(r, t->allocation);
    uint32_t memory = pt_field_u32(r, &allocation, PT_SLOT_ALLOCATION_DETAILS_MEMORY_ID);
    uint32_t offset = pt_field_u32(r, &allocation, PT_SLOT_ALLOCATION_DETAILS_MEMORY_OFFSET_LOW);
    uint32_t high = pt_field_u32(r, &allocation, PT_SLOT_ALLOCATION_DETAILS_MEMORY_OFFSET_HIGH);
    bool valid = !high && memory > 0 && memory <= m->n_planned; // memory 0 is reserved
    memory += PT_MEMORY_PLANNED - 1;
    if (!valid || offset > m->c.memory_size[memory] ||
        t->nbytes > m->c.memory_size[memory] - offset) {
        return pt_report(error, PT_ERROR_INVALID_PROGRAM, PT_SUBJECT_VALUE, (int32_t)value,
                         "lies outside the planned buffers");
    }
    uint32_t misplaced = pt_misplaced(offset, t->dtype);
    if (misplaced) {
        return pt_report(error, PT_ERROR_NOT_SUPPORTED, PT_SUBJECT_VALUE, (int32_t)value,
                         misplaced == 4 ? "planned memory not aligned to 4 bytes"
                                        : "planned memory not aligned to 8 bytes");
    }
    *data = pt_refer(m, memory, offset);
    return PT_ERROR_OK;
}

int pt_put_initial_value(const pt_method *m, pt_data_search *search, pt_reader *r,
                         const pt_tensor_table *t, uint8_t *to, uint32_t value, pt_error *error) {
    const pt_context *c = &m->c;
    uint32_t position = 0, memory = PT_MEMORY_PROGRAM;
    if (t->location == PT_TENSOR_DATA_LOCATION_EXTERNAL) {
        uint32_t file = 0;
        PT_TRY(pt_find_external(search, r, t, false, value, &file, &position, error));
        memory = PT_MEMORY_PLANNED + m->n_planned + file;
    } else if (t->constant) {
        pt_table extra = pt_table_at(r, t->extra);
        uint32_t entry =
            pt_field_u32(r, &extra, PT_SLOT_EXTRA_TENSOR_INFO_MUTABLE_DATA_SEGMENTS_IDX);
        PT_TRY(pt_find_initial_value(m->meta.program, r, entry, t->constant, t->nbytes, &position,
                                     error));
    } else {
        return PT_ERROR_OK;
    }
    search->copied += t->nbytes;            // at most 2^31 bytes
    if (search->copied > PT_MEMORY_LIMIT) { // many tensors may share one long initial value
        return pt_report(error, PT_ERROR_NOT_SUPPORTED, PT_SUBJECT_VALUE, (int32_t)value,
                         "initial values of more than 128 MiB together");
    }
    memcpy(to, c->memory[memory] + position, t->nbytes);
    return PT_ERROR_OK;
}

static int reset_tensor(pt_method *m, pt_data_search *search, pt_reader *r, pt_values *values,
                        uint32_t index, uint32_t table, pt_error *error) {
    pt_tensor_table t;
    PT_TRY(pt_read_tensor(r, values, table, &t, error));
    if (t.dynamism) {
        const int refused =
            pt_resize_tensor(&m->c, pt_find_value(&m->c, index), t.flags & PT_VALUE_RANK,
                             (const int32_t *)(const void *)(r->data + t.sizes + 4));
        (void)refused; // a refused view of fewer elements keeps its sizes until an instruction
                       // makes it again
    }
    if (!t.allocation || t.nbytes == 0) {
        return PT_ERROR_OK;
    }
    pt_ref to = 0; // the program's position, since a view may lie in a smaller or constant memory
    PT_TRY(pt_find_planned(m, r, &t, index, &to, error));
    return pt_put_initial_value(m, search, r, &t, pt_at(&m->c, to), index, error);
}

// Returns the number of data files. They are the memories between planned buffers and external
// memories, without further memories.
static uint32_t count_files(const pt_method *m) {
    const uint32_t *size = m->c.memory_size;
    uint32_t first = PT_MEMORY_PLANNED + m->n_planned, end = m->first_external;
    if (PT_PROGRAM_LIMIT > PT_MEMORY_LIMIT) {
        end -= pt_further_memories(size[PT_MEMORY_PROGRAM]);
        for (uint32_t i = PT_MEMORY_PLANNED; i < end; i++) {
            end -= pt_further_memories(size[i]);
        }
    }
    return end - first;
}

int pt_pte_reset(pt_method *m, pt_error *error) {
    pt_reader r = pt_program_reader(m->meta.program);
    pt_data_search search = pt_data_search_start(m->data, count_files(m));
    pt_values values;
    pt_start_values(&values, &r, &m->meta);
    for (uint32_t i = 0; i < values.n; i++) {
        uint32_t table = pt_tensor_at(&r, &values, i);
        if (table) {
            PT_TRY(reset_tensor(m, &search, &r, &values, i, table, error));
        }
    }
    pt_reset_variables(&m->c);
    return r.bad ? pt_report_outside(error) : PT_ERROR_OK;
}
