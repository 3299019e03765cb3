// Checks of the caller's memories.
#ifndef PT_CORE_MEMORIES_H
#define PT_CORE_MEMORIES_H

#include <picotorch/picotorch.h>

static inline void pt_bind(pt_context *c, uint32_t memory, uint8_t *data, uint32_t size) {
    c->memory[memory] = data;
    c->memory_size[memory] = size;
}

// InvalidArgument for a size above 0 without an address.
int pt_check_address(const pt_span *span, uint8_t subject, int32_t index, pt_error *error);
// InvalidArgument for a memory that is not aligned to 8.
int pt_check_alignment(const pt_span *span, uint8_t subject, int32_t index, pt_error *error);
// Makes both checks, and rejects a constant memory (InvalidArgument).
int pt_check_memory(const pt_span *span, uint8_t subject, int32_t index, pt_error *error);
// InvalidArgument for a memory that shares bytes with a bound memory.
int pt_check_memory_apart(const pt_context *c, const pt_span *span, uint8_t subject, int32_t index,
                          pt_error *error);
// Checks pool and planned buffers against the number and sizes that the method declares.
int pt_check_memories(pt_method *m, const pt_memories *memories, pt_error *error);
// Reserves the pool up to offset `end`. MemoryAllocationFailed, NotSupported.
int pt_reserve_pool(pt_method *m, uint64_t end, pt_error *error);

#endif
