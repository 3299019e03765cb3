// The inputs of an execution, read from the job.
#ifndef PT_BARE_INPUTS_H
#define PT_BARE_INPUTS_H

#include "board_memories.h"

// Reads the inputs of execution `number`. Tensors that the method may change in place are copied
// once, into memory of `from`. MemoryAllocationFailed, OutOfResources, and the errors of the
// program.
int inputs_set_up(const pt_method_meta *meta, uint32_t number, arena *from, pt_error *error);
int inputs_set(pt_method *method, pt_error *error);

#endif
