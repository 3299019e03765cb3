// A loaded method: functions that loading and running share.
#ifndef PT_CORE_METHOD_H
#define PT_CORE_METHOD_H

#include "core/format/ptd.h"
#include "core/record.h"

// Returns the offset of a method's part of the pool.
static inline uint32_t pt_begin_of(const pt_method *m) {
    return pt_is_ptm(&m->c) ? m->c.pool_before : m->c.method;
}

// Sets a method up for loading, with no memory bound.
void pt_set_up_method(pt_method *m, const pt_method_meta *meta, const pt_memories *memories,
                      const pt_delegates *delegates);
// Binds pool and planned buffers.
int pt_bind_memories(pt_method *m, const pt_memories *memories, pt_error *error);
void pt_clear_planned(const pt_method *m);
// Checks all instructions. With `packs` the checks may request memory for packed weights.
int pt_check_calls(pt_method *m, bool packs, pt_error *error);
// Binds temp memory, after kernels and delegates have requested temp memory, and the memory of
// events.
int pt_bind_rest(pt_method *m, const pt_memories *memories, const pt_options *options,
                 pt_error *error);
// Ends a load with a code: either the method is loaded, or all its memories are released.
int pt_end_load(pt_method *m, int code);
// Destroys the delegates that are ready, and releases all memories.
void pt_release(pt_method *m);
// Marks all inputs as not set.
void pt_forget_inputs(pt_method *m);
// Sets is_ready if every input is set and every unplanned tensor has memory.
void pt_update_ready(pt_method *m);
// Returns InvalidState while the method is loading, unloading or running.
int pt_report_busy(const pt_method *m, pt_error *error);
// Reports the error of a check or a run of instruction `index`.
int pt_report_kernel(const pt_context *c, int code, uint32_t index, pt_error *error);
// Stores in the error the code that a delegate returned, and returns the code. If it is no error
// code, Internal replaces it.
int pt_set_error_code(pt_error *error, int code);
// Returns the number of further memories of a memory of `size` bytes, see PT_PROGRAM_LIMIT.
static inline uint32_t pt_further_memories(uint32_t size) {
    return size > 0 ? (size - 1) / PT_MEMORY_LIMIT : 0;
}
// Returns a reference to a position in a memory. A position beyond a reference's reach lies in a
// further memory. The position behind the last byte, of 0 bytes, may lie anywhere.
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
// Finds a tensor with elements, value number `value`, in planned memory. InvalidProgram,
// NotSupported.
int pt_find_planned(const pt_method *m, pt_reader *r, const pt_tensor_table *t, uint32_t value,
                    pt_ref *data, pt_error *error);
// Copies the initial value of a mutable buffer, value number `value`, to its memory. Does nothing
// for a tensor without one.
int pt_put_initial_value(const pt_method *m, pt_data_search *search, pt_reader *r,
                         const pt_tensor_table *t, uint8_t *to, uint32_t value, pt_error *error);
// Returns InvalidState in a delegate that the method calls, and in other threads.
int pt_check_idle(const pt_method *m, const char *what, pt_error *error);
#endif
