// Functions for .pte files that loading uses.
#ifndef PT_CORE_PTE_H
#define PT_CORE_PTE_H

#include "core/format/format.h"

int pt_pte_operator(const pt_method_meta *meta, uint32_t i, pt_text *name, pt_text *overload,
                    int32_t *number, pt_error *error);
bool pt_pte_walk_next(pt_instruction_walk *w);
int pt_pte_load(pt_method *m, const pt_memories *memories, const pt_options *options,
                pt_error *error);
int pt_pte_reset(pt_method *m, pt_error *error);

#endif
