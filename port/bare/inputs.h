// The inputs of an execution, as the job has them.
#ifndef PT_BARE_INPUTS_H
#define PT_BARE_INPUTS_H

#include "arenas.h"

// Those of execution `number` get ready to be set. What the method may change in place is copied
// into memory of `from`, once. MemoryAllocationFailed, OutOfResources, what the program is refused
// for.
int inputs_prepare(const pt_plan *plan, uint32_t number, arena *from, pt_error *error);
int inputs_set(pt_method *method, pt_error *error);

#endif
