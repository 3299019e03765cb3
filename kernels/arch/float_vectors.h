// float32 vectors of MVE: PT_FLOAT_VECTORS is 1 if the core has them. They round as scalars do, but
// flush subnormal numbers to 0 and set a flag in FPSCR. pt_was_exact reads it: if it is set, the
// caller computes the values again in plain C.
#ifndef PT_ARCH_FLOAT_VECTORS_H
#define PT_ARCH_FLOAT_VECTORS_H

#include <stdbool.h>
#include <stdint.h>

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2)
#define PT_FLOAT_VECTORS 1
#include <arm_mve.h>

// FPSCR's flags of a subnormal operand and of a subnormal result, both of which stay set.
enum { PT_SUBNORMAL = 1 << 7 | 1 << 3 };

// Starts watching for subnormal numbers; returns the argument of pt_was_exact.
static inline uint32_t pt_watch_subnormal(void) {
    const uint32_t before = __builtin_arm_get_fpscr();
    __builtin_arm_set_fpscr(before & ~(uint32_t)PT_SUBNORMAL);
    __asm__ volatile("" : : : "memory");
    return before;
}

// True if no value stored since then was subnormal. Restores the earlier flags.
static inline bool pt_was_exact(uint32_t before) {
    __asm__ volatile("" : : : "memory");
    const uint32_t after = __builtin_arm_get_fpscr();
    __builtin_arm_set_fpscr(after | before);
    return (after & PT_SUBNORMAL) == 0;
}

#endif
#endif
