// The formats of a program: a .pte or a .ptm file.
#ifndef PT_CORE_FORMAT_H
#define PT_CORE_FORMAT_H

#include <picotorch/picotorch.h>

// The functions of picotorch.h on programs and methods, for one format. The callers of these
// functions have checked the indexes, and that an item is a tensor. A program that only runs a
// method links pt_format alone.
typedef struct pt_format {
    uint8_t number; // number of the format's description: PT_FORMAT_...
    int (*find)(pt_method_meta *meta, const pt_program *program, const char *name, uint32_t length,
                pt_error *error);
    // Counts instructions, or arguments of delegates.
    uint32_t (*count)(const pt_method_meta *meta, pt_section what);
    int (*item)(const pt_method_meta *meta, uint32_t index, pt_evalue *item, pt_error *error);
    int (*tensor)(const pt_method_meta *meta, const pt_evalue *item, pt_tensor_info *info,
                  pt_error *error);
    int (*load)(pt_method *m, const pt_memories *memories, const pt_options *options,
                pt_error *error);
} pt_format;

typedef struct pt_description {
    bool (*begins)(const void *data, uint32_t size);
    int (*open)(pt_program *program, const void *data, uint32_t size, pt_verification verification,
                pt_error *error);
    int (*at)(pt_method_meta *meta, const pt_program *program, uint32_t i, pt_error *error);
    pt_text (*name)(const pt_method_meta *meta);
    int64_t (*entry)(const pt_method_meta *meta, const pt_evalue *list, uint32_t i);
    bool (*has_name)(const pt_method_meta *meta, const pt_evalue *item);
    bool (*find_attribute)(const pt_method_meta *meta, const char *name, uint32_t length,
                           uint32_t *value);
    int (*find_operator)(const pt_method_meta *meta, uint32_t i, pt_text *name, pt_text *overload,
                         int32_t *number, pt_error *error);
    bool (*walk_next)(pt_instruction_walk *walk);
    int32_t (*walk_argument)(const pt_instruction_walk *walk, uint32_t k);
    int32_t (*walk_view)(const pt_instruction_walk *walk);
    // Resets tensors, and numbers that instructions write, to their values after load.
    int (*reset)(pt_method *m, pt_error *error);
} pt_description;

enum { PT_FORMAT_PTM, PT_FORMAT_PTE, PT_FORMAT_END }; // the order of the search

extern const pt_format pt_pte_format, pt_ptm_format;
extern const pt_description pt_pte_description, pt_ptm_description;

// The formats by number; NULL for a format that this build does not support. See registry.c.
extern const pt_description *const pt_descriptions[];

static inline const pt_description *pt_describe(const pt_program *program) {
    return pt_descriptions[program->format->number];
}

#endif
