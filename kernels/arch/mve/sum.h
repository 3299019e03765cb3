// Sum int8 values with MVE (VADDVA, 16 at a time): the sums of weights that fold an input offset
// into the bias.
#ifndef PT_ARCH_MVE_SUM_H
#define PT_ARCH_MVE_SUM_H

#include <stdint.h>

static inline int32_t pt_sum_bytes(const int8_t *bytes, int32_t n) {
    register int32_t sum __asm__("r2") = 0;
    __asm__ volatile("wlstp.8 lr, %[n], 2f\n"
                     "1:\n\t"
                     "vldrb.u8 q0, [%[bytes]], #16\n\t"
                     "vaddva.s8 %[sum], q0\n\t"
                     "letp lr, 1b\n"
                     "2:"
                     : [bytes] "+r"(bytes), [sum] "+r"(sum)
                     : [n] "r"(n)
                     : "lr", "q0", "memory");
    return sum;
}

#endif
