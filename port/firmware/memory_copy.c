/* memcpy, memmove and memset in blocks of words, for tensors. No access is unaligned: if the
 * alignments of source and destination differ, bytes are copied one by one. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define WORD 4u
#define BLOCK 32u

static bool is_aligned(const void *address) {
    return ((uintptr_t)address & (WORD - 1)) == 0;
}

static bool have_same_alignment(const void *a, const void *b) {
    return (((uintptr_t)a ^ (uintptr_t)b) & (WORD - 1)) == 0;
}

/* Registers r3 to r6, which every Thumb instruction set can load and store at once. */
static void copy_blocks(uint8_t **to, const uint8_t **from, size_t count) {
    uint8_t *d = *to;
    const uint8_t *s = *from;
    __asm volatile(".syntax unified\n"
                   "1:\n"
                   "ldmia %1!, {r3-r6}\n"
                   "stmia %0!, {r3-r6}\n"
                   "ldmia %1!, {r3-r6}\n"
                   "stmia %0!, {r3-r6}\n"
                   "subs %2, #1\n"
                   "bne 1b\n"
                   : "+l"(d), "+l"(s), "+l"(count)
                   :
                   : "r3", "r4", "r5", "r6", "cc", "memory");
    *to = d;
    *from = s;
}

static void fill_blocks(uint8_t **to, uint32_t word, size_t count) {
    uint8_t *d = *to;
    __asm volatile(".syntax unified\n"
                   "mov r3, %2\n"
                   "mov r4, %2\n"
                   "mov r5, %2\n"
                   "mov r6, %2\n"
                   "1:\n"
                   "stmia %0!, {r3-r6}\n"
                   "stmia %0!, {r3-r6}\n"
                   "subs %1, #1\n"
                   "bne 1b\n"
                   : "+l"(d), "+l"(count)
                   : "l"(word)
                   : "r3", "r4", "r5", "r6", "cc", "memory");
    *to = d;
}

static void copy_upwards(uint8_t *to, const uint8_t *from, size_t size) {
    if (have_same_alignment(to, from)) {
        for (; size > 0 && !is_aligned(to); size--) {
            *to++ = *from++;
        }
        if (size >= BLOCK) {
            copy_blocks(&to, &from, size / BLOCK);
            size %= BLOCK;
        }
        for (; size >= WORD; size -= WORD) {
            *(uint32_t *)to = *(const uint32_t *)from;
            to += WORD;
            from += WORD;
        }
    }
    for (; size > 0; size--) {
        *to++ = *from++;
    }
}

static void copy_downwards(uint8_t *to, const uint8_t *from, size_t size) {
    to += size;
    from += size;
    if (have_same_alignment(to, from)) {
        for (; size > 0 && !is_aligned(to); size--) {
            *--to = *--from;
        }
        for (; size >= WORD; size -= WORD) {
            to -= WORD;
            from -= WORD;
            *(uint32_t *)to = *(const uint32_t *)from;
        }
    }
    for (; size > 0; size--) {
        *--to = *--from;
    }
}

void *memcpy(void *to, const void *from, size_t size) {
    copy_upwards(to, from, size);
    return to;
}

void *memmove(void *to, const void *from, size_t size) {
    if ((uintptr_t)to - (uintptr_t)from >= size) {
        copy_upwards(to, from, size);
    } else {
        copy_downwards(to, from, size);
    }
    return to;
}

void *memset(void *to, int value, size_t size) {
    uint8_t *d = to;
    uint32_t word = (uint8_t)value * 0x01010101u;
    for (; size > 0 && !is_aligned(d); size--) {
        *d++ = (uint8_t)value;
    }
    if (size >= BLOCK) {
        fill_blocks(&d, word, size / BLOCK);
        size %= BLOCK;
    }
    for (; size >= WORD; size -= WORD) {
        *(uint32_t *)d = word;
        d += WORD;
    }
    for (; size > 0; size--) {
        *d++ = (uint8_t)value;
    }
    return to;
}
