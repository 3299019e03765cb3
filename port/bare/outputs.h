// The outputs of an execution, and the memory of unplanned tensors.
#ifndef PT_BARE_OUTPUTS_H
#define PT_BARE_OUTPUTS_H

#include "board_memories.h"

// Allocates memory for unplanned outputs and mutable buffers. OutOfResources,
// MemoryAllocationFailed, and errors of the program.
int outputs_set_up(const pt_method_meta *meta, arena *from, pt_error *error);
int outputs_attach(pt_method *method, pt_error *error);
// Reads all outputs.
int outputs_get(const pt_method *method, pt_error *error);
// Writes the outputs that outputs_get has read: tensors to the files out0, sizes0 ... of execution
// `number`, and other values, of the first execution, to lines of the report.
int outputs_write(const pt_method *method, uint32_t number, pt_error *error);
// Returns the name of the mutable buffer that outputs_attach failed for.
pt_text outputs_attribute(void);

#endif
