// The inputs of an execution, as the job has them.
#ifndef PT_BARE_INPUTS_H
#define PT_BARE_INPUTS_H

#include "board_memories.h"

// Gets the inputs of execution `number` ready to be set. Tensors that the method may change in
// place are copied into memory of `from`, once. MemoryAllocationFailed, OutOfResources, and the
// errors of the program.
int inputs_set_up(const pt_method_meta *meta, uint32_t number, arena *from, pt_error *error);
int inputs_set(pt_method *method, pt_error *error);

#endif
