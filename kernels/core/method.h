// A loaded method: what loading and using it share.
#ifndef PT_CORE_METHOD_H
#define PT_CORE_METHOD_H

#include "core/format/ptd.h"
#include "core/record.h"

// Offset in the pool of what a method has there.
static inline uint32_t pt_begin_of(const pt_method *m) {
    return pt_is_ptm(&m->c) ? m->c.pool_before : m->c.method;
}

// Before loading: nothing is bound yet.
void pt_set_up_method(pt_method *m, const pt_method_meta *meta, const pt_memories *memories,
                      const pt_delegates *delegates);
// Pool and planned buffers.
int pt_bind_memories(pt_method *m, const pt_memories *memories, pt_error *error);
void pt_clear_planned(const pt_method *m);
// Checks all instructions; `packs`: they may ask for memory for what they pack.
int pt_check_calls(pt_method *m, bool packs, pt_error *error);
// Takes temp memory, once kernels and delegates have asked for theirs, and that of events.
int pt_bind_rest(pt_method *m, const pt_memories *memories, const pt_options *options,
                 pt_error *error);
// Ends a load with a code: the method is loaded, or all is let go.
int pt_end_load(pt_method *m, int code);
// Destroys the delegates that are ready and lets all memories go.
void pt_release(pt_method *m);
// Lets all inputs be set again.
void pt_forget_inputs(pt_method *m);
// Lets execute run when every input is set and every unplanned tensor has memory of its own.
void pt_update_ready(pt_method *m);
// InvalidState while the method is being loaded or unloaded, or runs.
int pt_report_busy(const pt_method *m, pt_error *error);
// The error of a check or a run of instruction `index`.
int pt_report_kernel(const pt_context *c, int code, uint32_t index, pt_error *error);
// The code that a delegate answers with, in the error, too: Internal for what is none.
int pt_set_error_code(pt_error *error, int code);
// Returns the further memories that one of `size` bytes takes, see PT_PROGRAM_LIMIT.
static inline uint32_t pt_further_memories(uint32_t size) {
    return size > 0 ? (size - 1) / PT_MEMORY_LIMIT : 0;
}
// Refers to a position in a memory: beyond a reference's reach it lies in a further one, and one at
// the end, of no bytes, anywhere.
static inline pt_ref pt_refer(const pt_method *m, uint32_t memory, uint32_t position) {
    uint32_t offset = position % PT_MEMORY_LIMIT, further = m->first_external;
    if (PT_PROGRAM_LIMIT > PT_MEMORY_LIMIT && position > offset) {
        const uint8_t *start = m->c.memory[memory] + (position - offset);
        while (--further > memory && m->c.memory[further] != start) {
        }
        return pt_make_ref(further, offset);
    }
    return pt_make_ref(memory, position);
}
// Where a tensor with elements, value number `value`, lies in planned memory. InvalidProgram,
// NotSupported.
int pt_find_planned(const pt_method *m, pt_reader *r, const pt_tensor_table *t, uint32_t value,
                    pt_ref *data, pt_error *error);
// Copies the initial value of a mutable buffer, of value number `value`, to where it lives. Nothing
// for a tensor that has none.
int pt_put_initial_value(const pt_method *m, pt_data_search *search, pt_reader *r,
                         const pt_tensor_table *t, uint8_t *to, uint32_t value, pt_error *error);
// InvalidState in a delegate that the method calls, and in other threads.
int pt_check_idle(const pt_method *m, const char *what, pt_error *error);
#endif
