// Tensors in data files, for the loader.
#ifndef PT_CORE_PTD_H
#define PT_CORE_PTD_H

#include "core/format/program.h"

// A search for the tensors of one load, or of one reset. The number of keys it looks at and the
// number of bytes it copies are bounded, for all tensors together.
typedef struct pt_data_search {
    pt_data *const *files;
    uint32_t n_files;
    uint32_t visits;
    uint32_t copied; // bytes of initial values
} pt_data_search;

pt_data_search pt_data_search_start(pt_data *const *files, uint32_t n_files);
// Finds file and position of the data of external tensor `value`. `in_place`: kernels read the data
// in the file. NotFound, InvalidExternalData, InvalidState.
int pt_find_external(pt_data_search *search, pt_reader *r, const pt_tensor_table *t, bool in_place,
                     uint32_t value, uint32_t *file, uint32_t *position, pt_error *error);

#endif
