// The vectors of the computer that the host twin runs on. Only the twin's build defines PT_HOST:
// all others have the plain forms there, which are the specification.
#ifndef PT_ARCH_VECTORS_H
#define PT_ARCH_VECTORS_H

enum { PT_VECTORS_NONE, PT_VECTORS_SSE2, PT_VECTORS_AVX2 };

#if defined(PT_HOST) && defined(__x86_64__)
#define PT_X86

// Returns the kind that loops use. The library has no variables: the program around it decides.
int pt_vectors(void);

#endif

#endif
