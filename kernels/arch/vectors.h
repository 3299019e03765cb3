// The vector ISA of the computer that the host twin runs on: SSE2, AVX2 or NEON. Only the twin's
// build defines PT_HOST; all other builds use the plain C loops, which are the specification.
#ifndef PT_ARCH_VECTORS_H
#define PT_ARCH_VECTORS_H

// The vector ISAs of a processor; not every processor has the upper one.
enum {
    PT_VECTORS_NONE,
    PT_VECTORS_LOWER, // SSE2, NEON
    PT_VECTORS_UPPER, // AVX2; NEON with products of bytes (FEAT_DotProd)
};

#if defined(PT_HOST) && defined(__x86_64__)
#define PT_X86
#elif defined(PT_HOST) && defined(__aarch64__)
#define PT_ARM64
#endif

#if defined(PT_X86) || defined(PT_ARM64)
#define PT_HAS_HOST_VECTORS

// Returns the vector ISA that loops use. The program around the library defines this function,
// since the library has no variables.
int pt_vectors(void);

#endif

#endif
