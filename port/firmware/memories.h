/* The static memories of the runtime: arenas, placed by the linker as in board.toml. */

#ifndef PT_MEMORIES_H
#define PT_MEMORIES_H

#include <stddef.h>
#include <stdint.h>

#include "py/qstr.h"

typedef struct {
    qstr_short_t name;
    uint8_t *data;
    size_t size;
    const char *place; /* the board memory that contains it */
} pt_memory;

extern const pt_memory pt_memories[];
extern const size_t pt_memory_count;

#endif
