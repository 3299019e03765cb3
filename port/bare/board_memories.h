// The static memories of the board, which the linker places as board.toml states, and allocation
// from them.
#ifndef PT_BARE_BOARD_MEMORIES_H
#define PT_BARE_BOARD_MEMORIES_H

#include <picotorch/picotorch.h>

typedef struct arena {
    const char *name;
    uint8_t *data;
    uint32_t size;
    const char *full; // the error text of a full arena
    uint32_t used;
} arena;

// Returns NULL if the board has no arena of this name.
arena *arena_find(const char *name);
// Allocates the next bytes, at a multiple of 16. MemoryAllocationFailed.
int arena_allocate(arena *from, uint32_t size, uint8_t subject, int32_t index, pt_span *span,
                   pt_error *error);

#endif
