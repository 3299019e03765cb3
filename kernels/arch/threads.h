// Loops that threads share. Only the host twin's build has threads; elsewhere the loops run in the
// caller.
#ifndef PT_ARCH_THREADS_H
#define PT_ARCH_THREADS_H

#include <picotorch/kernel.h>

// A loop whose rounds write different outputs: one thread runs each round. The loop calls
// pt_skips_round in each round, fails only if c->poll does, and uses no scratch of `c`.
typedef int pt_shared_loop(pt_context *c, const void *task);

#if defined(PT_HOST) && !defined(_WIN32)
#define PT_HAS_THREADS 1

// Called once before a loop of `steps` (see pt_count_work), `round` steps in each round: true if
// the program around the library provides threads.
bool pt_shares(int64_t steps, int64_t round);

// Runs a loop in all threads, after pt_shares returned true.
PT_MUST_USE int pt_share_loop(pt_context *c, pt_shared_loop *loop, const void *task, int64_t round);

// True if another thread runs the round that begins.
bool pt_skips_round(void);

#else
#define PT_HAS_THREADS 0

static inline bool pt_shares(int64_t steps, int64_t round) {
    (void)steps, (void)round;
    return false;
}

PT_MUST_USE static inline int pt_share_loop(pt_context *c, pt_shared_loop *loop, const void *task,
                                            int64_t round) {
    (void)round;
    return loop(c, task);
}

static inline bool pt_skips_round(void) {
    return false;
}
#endif

#endif
