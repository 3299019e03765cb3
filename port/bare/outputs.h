// The outputs of an execution, and what the program leaves without memory.
#ifndef PT_BARE_OUTPUTS_H
#define PT_BARE_OUTPUTS_H

#include "board_memories.h"

// Takes memory for outputs and mutable buffers that the program leaves unplanned. OutOfResources,
// MemoryAllocationFailed, what the program is refused for.
int outputs_set_up(const pt_method_meta *meta, arena *from, pt_error *error);
int outputs_attach(pt_method *method, pt_error *error);
// Reads all of them.
int outputs_get(const pt_method *method, pt_error *error);
// Writes what outputs_get has read: tensors into the files out0, sizes0 ..., of the execution
// `number`; all else, of the first one, into lines of the report.
int outputs_write(const pt_method *method, uint32_t number, pt_error *error);
// Name of the mutable buffer that outputs_attach was refused for.
pt_text outputs_attribute(void);

#endif
