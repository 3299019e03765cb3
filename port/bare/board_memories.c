#include "board_memories.h"
#include "board.h"
#include <string.h>

#define ARENA(name, size, memory)                \
    __attribute__((section(".bss.arena_" #name), \
                   aligned(PT_ARENA_ALIGNMENT))) static uint8_t arena_##name[size];
PT_BOARD_ARENAS(ARENA)

#define ROW(name, size, memory) \
    {#name, arena_##name, size, \
     "; the board has no more in arena " #name ", which is in its memory " #memory, 0},
static arena arenas[] = {PT_BOARD_ARENAS(ROW)};

arena *arena_find(const char *name) {
    for (uint32_t i = 0; i < sizeof(arenas) / sizeof(*arenas); i++) {
        const char *listed = arenas[i].name, *wanted = name;
        while (*listed && *listed == *wanted) {
            listed++;
            wanted++;
        }
        if (*listed == *wanted) {
            return &arenas[i];
        }
    }
    return NULL;
}

int arena_allocate(arena *from, uint32_t size, uint8_t subject, int32_t index, pt_span *span,
                   pt_error *error) {
    uint32_t start = (from->used + 15) & ~15u;
    uint32_t left = from->size > start ? from->size - start : 0;
    if (size > left) {
        *error = (pt_error){
            PT_ERROR_MEMORY_ALLOCATION_FAILED, subject, PT_NO_INDEX, index, size, left, from->full};
        return error->code;
    }
    from->used = start + size;
    *span = (pt_span){from->data + start, size, false};
    return PT_ERROR_OK;
}
