// Sets up the tracer of a method, and measures the overhead of tracing.
#include "core/record.h"
#include <string.h>

enum { N = 8, ROUNDS = 16 };

// The pool of a method of up to N instructions that do nothing.
typedef struct idle {
    pt_method_record method;
    struct {
        uint16_t kernel;
        uint8_t n_args, op;
    } instructions[N]; // each a pt_instruction without arguments
} idle;

// Returns the minimum time of ROUNDS executions.
static uint64_t time_of(pt_context *c, uint64_t (*clock)(void), uint64_t mask) {
    uint64_t min = UINT64_MAX;
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t start = clock();
        (void)pt_context_execute(c);
        uint64_t ticks = (clock() - start) & mask;
        min = ticks < min ? ticks : min;
    }
    return min;
}

// Measures the extra time of N traced instructions. It is the difference to an execution without
// instructions, in which the other costs cancel out.
static uint32_t overhead(uint64_t (*clock)(void), uint64_t mask) {
    idle pool;
    pt_event events[N + 1];
    pt_context c;
    memset(&pool, 0, sizeof(pool));
    memset(&events, 0, sizeof(events));
    memset(&c, 0, sizeof(c));
    pool.method.instructions = pt_make_ref(PT_MEMORY_POOL, sizeof(pt_method_record));
    for (int i = 0; i < N; i++) {
        pool.instructions[i].op = PT_OP_NOTHING;
    }
    c.records = (uint8_t *)&pool;
    pt_start(&c);
    uint64_t none = time_of(&c, clock, mask);
    c.tracer.events = events;
    c.tracer.clock = clock;
    c.tracer.mask = mask;
    uint64_t none_traced = time_of(&c, clock, mask);
    pool.method.n_instructions = N;
    uint64_t all_traced = time_of(&c, clock, mask);
    c.tracer.events = NULL;
    uint64_t all = time_of(&c, clock, mask);
    uint64_t traced = all_traced - none_traced, plain = all - none;
    return traced > plain ? (uint32_t)((traced - plain + N / 2) / N) : 0;
}

void pt_set_tracer(pt_context *c, pt_event *events, uint64_t (*clock)(void), uint64_t mask) {
    c->tracer.events = events;
    c->tracer.clock = clock;
    c->tracer.mask = mask;
    c->tracer.overhead = events ? overhead(clock, mask) : 0;
}
