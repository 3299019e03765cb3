// Loops that threads share. Only the host twin's build has threads; elsewhere the loops run in the
// caller.
#ifndef PT_ARCH_THREADS_H
#define PT_ARCH_THREADS_H

#include <picotorch/kernel.h>

// A loop whose rounds write different outputs: each round is for one thread. The loop asks
// pt_skips_round in each, fails only where c->poll does, and uses no scratch of `c`.
typedef int pt_shared_loop(pt_context *c, const void *task);

#if defined(PT_HOST) && !defined(_WIN32)
#define PT_HAS_THREADS 1

// A kernel asks once before a loop of `steps` (see pt_count_work) with `round` of them in each
// round: true where the program around the library has threads for it.
bool pt_shares(int64_t steps, int64_t round);

// Runs a loop in all threads, after pt_shares was true for it.
PT_MUST_USE int pt_share_loop(pt_context *c, pt_shared_loop *loop, const void *task, int64_t round);

// True where another thread does the round that begins.
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
