#include "memories.h"

#include "py/mpconfig.h"
#include "py/obj.h"

#define ARENA(name, size, memory)                \
    __attribute__((section(".bss.arena_" #name), \
                   aligned(PT_ARENA_ALIGNMENT))) static uint8_t arena_##name[size];
PT_BOARD_ARENAS(ARENA)

#define ROW(name, size, memory) {MP_QSTR_##name, arena_##name, size, #memory},
const pt_memory pt_memories[] = {PT_BOARD_ARENAS(ROW)};
const size_t pt_memory_count = MP_ARRAY_SIZE(pt_memories);
