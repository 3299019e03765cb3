/* Run the cases of a job one after the other: check, pack and execute the one instruction of a
 * small method. Each case writes a file, named by its number, with the result, the method's
 * memories, the packed weights and the scratch. The formats are those of
 * tests/support/board_call.py.
 */

#include <string.h>

#include "board.h"
#include "core/record.h"
#include "counter.h"
#include "interrupt.h"
#include "job.h"
#include "protect.h"
#include "semihosting.h"
#include "stack.h"

#define ALIGNMENT 128u
#define FILL 0xa5
#define SCRATCH_GUARD 64u
#define EXACTLY 0x80000000u /* a flag of the bytes of scratch */
#define DENIED_LOG2_SIZE 12
#define DENIED_SIZE (1u << DENIED_LOG2_SIZE)

int main(void);

/* The only section of the job. */
typedef struct {
    uint32_t offset;
    uint32_t size;
    char name[24];
} section;

typedef struct {
    uint32_t memory;
    uint32_t offset; /* offset of its bytes in the case */
    uint32_t size;
    uint32_t shift; /* distance of its address above a multiple of ALIGNMENT; or AT_END */
} image;

enum { AT_END = 128 }; /* the last word ends accessible memory */

typedef struct {
    uint32_t size;     /* bytes from one case to the next */
    uint32_t position; /* position of the instruction in the pool; the method is at 0 */
    uint32_t pack_weights;
    uint32_t scratch; /* provided bytes, or the requested bytes if these are more */
    uint32_t n_images;
    image images[]; /* the last image is for the pool; the program is used in place */
} test_case;

typedef struct {
    uint32_t error;
    uint32_t stage; /* stage in which the error occurred */
    uint32_t argument;
    uint32_t scratch; /* bytes that the check requested */
    uint32_t stack;
    uint32_t used; /* bytes in front of the scratch */
    uint64_t instructions;
    uint32_t packed; /* bytes behind the pool */
    uint32_t given;  /* provided bytes of scratch */
    char reason[216];
} result;

enum { STAGE_CHECK, STAGE_RUN };

#define SIZE_OF(name, size, place) size_##name = size,
enum { PT_BOARD_ARENAS(SIZE_OF) };
static uint8_t memory[size_planned]
    __attribute__((section(".bss.arena_planned"), aligned(PT_ARENA_ALIGNMENT)));

/* The last part of the arena, to which access is denied. */
static uint8_t *denied(void) {
    return (uint8_t *)(((uint32_t)memory + size_planned - DENIED_SIZE) & ~(DENIED_SIZE - 1));
}

static uint8_t *aligned(uint8_t *at) {
    return memory + ((uint32_t)(at - memory) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static uint8_t *place_memories(pt_context *c, const test_case *one, uint8_t *free) {
    for (uint32_t i = 0; i < one->n_images; i++) {
        const image *from = &one->images[i];
        uint8_t *at = (uint8_t *)one + from->offset;
        if (from->shift == AT_END) {
            at = memcpy(denied() - ((from->size + 3) & ~3u), at, from->size);
        } else if (from->memory != PT_MEMORY_PROGRAM) {
            at = memcpy(aligned(free) + from->shift, at, from->size);
            free = at + from->size;
        }
        c->memory[from->memory] = at;
        c->records = from->memory == PT_MEMORY_POOL ? at : c->records;
        c->memory_size[from->memory] = from->size;
    }
    return free;
}

/* Pack weights behind the pool, which ends at `free`. */
static uint8_t *pack(pt_context *c, uint8_t *free) {
    uint32_t position = c->memory_size[PT_MEMORY_POOL];
    uint32_t bytes = pt_packed_bytes(c);
    c->memory_size[PT_MEMORY_POOL] += bytes;
    memset(free, FILL, bytes);
    if (bytes) {
        pt_pack_weights(c, position);
    }
    return free + bytes;
}

static int check(pt_context *c, const test_case *one, result *to) {
    c->packs = one->pack_weights;
    pt_start(c);
    int error = pt_check_instruction(c, one->position);
    to->argument = c->argument;
    to->scratch = c->scratch_needed;
    to->packed = pt_packed_bytes(c);
    return error;
}

static int execute(pt_context *c, result *to) {
    memset(c->scratch, FILL, c->scratch_size + SCRATCH_GUARD);
    pt_stack_paint();
    pt_counter_start();
    int error = pt_context_execute(c);
    to->instructions = pt_counter_stop();
    to->stack = pt_stack_used();
    return error;
}

static void run(const test_case *one, const char *name) {
    pt_context c = {0};
    result *to = (result *)(void *)memory;
    memset(to, 0, sizeof(*to));
    uint8_t *free = place_memories(&c, one, memory + sizeof(*to));
    int error = check(&c, one, to);
    if (error == PT_ERROR_OK) {
        free = pack(&c, free);
        c.scratch = aligned(free);
        to->given = one->scratch > c.scratch_needed ? one->scratch : c.scratch_needed;
        if (one->scratch & EXACTLY) {
            to->given = one->scratch & ~EXACTLY;
        }
        c.scratch_size = to->given;
        to->stage = STAGE_RUN;
        error = execute(&c, to);
        free = c.scratch + c.scratch_size + SCRATCH_GUARD;
    }
    to->used = (uint32_t)(c.scratch - memory);
    to->error = (uint32_t)error;
    if (c.reason != NULL) {
        strncpy(to->reason, c.reason, sizeof(to->reason) - 1);
    }
    pt_write_file(name, memory, (size_t)(free - memory));
}

static void name_of(uint32_t number, char name[5]) {
    for (uint32_t i = 4; i-- > 0; number /= 10) {
        name[i] = (char)('0' + number % 10);
    }
    name[4] = '\0';
}

/* Do nothing in the timer's handler: the timer is never started here. */
void pt_interrupt_entry(void) {
}

static void measure_overhead(void) {
    pt_counter_set_overhead(0);
    pt_counter_start();
    pt_counter_set_overhead((uint32_t)pt_counter_stop());
}

int main(void) {
    size_t size;
    const uint8_t *job = pt_job(&size);
    if (job == NULL) {
        return 2;
    }
    const section *cases = (const section *)(const void *)(job + 16);
    const uint8_t *at = job + cases->offset, *end = at + cases->size;
    measure_overhead();
    pt_protect_deny((uint32_t)denied(), DENIED_LOG2_SIZE);
    for (uint32_t i = 0; at < end; i++) {
        char name[5];
        const test_case *one = (const test_case *)(const void *)at;
        name_of(i, name);
        run(one, name);
        at += one->size;
    }
    return 0;
}
