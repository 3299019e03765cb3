// Switches of a build of the library. A build that needs less defines them by -D, or in its own
// copy of this file:
//
//   PT_NO_PROGRAMS  .ptm files only: no .pte file, no .ptd file, no delegates
//   PT_NO_PTM       .pte files only
//   PT_NO_DYNAMIC   .ptm files whose instructions are kernel calls, and in which only data changes:
//                   no sizes, numbers, jumps or moves
//   PT_NO_TEXTS     errors have numbers and no text, and the arguments of operators no names
//   PT_NO_TRACER    no tracing
//   PT_NO_CHECKS    .ptm files are a part of the firmware and trusted, except for their header
//   PT_NO_PACKING   no packing of weights: pt_options.pack_weights is rejected; implied by
//                   PT_NO_PROGRAMS
//   PT_ANY_CORE     packs weights for the requested core, and runs weights packed for any core
//   PT_NO_WINOGRAD, PT_NO_POINTWISE, PT_NO_IM2ROW
//                   convolutions without that variant of arch/conv_variants.h: smaller, and slower
//   PT_PLAIN_LOOPS  int8 kernels with the inner loops of plain C, not the core's: half the size
//
// Switches of the subjects of kernels/extra, which few models need. A program that needs an
// operator of an excluded subject is rejected with the operator's name:
//
//   PT_NO_LINALG      linear algebra: inverse, solve, det, qr, svd, eigh, cholesky
//   PT_NO_FFT         Fourier transforms
//   PT_NO_COMPLEX     complex tensors, also in arithmetic of other operators
//   PT_NO_GRADIENTS   backward passes of convolution and max pooling
//   PT_NO_VOLUMES     3-d convolution and pooling, and adaptive max pooling
//   PT_NO_DETECTION   nms and roi_align
//   PT_NO_COUNTING    bincount and unique_consecutive
//   PT_NO_RECURRENT   gru and lstm as one operator each
//   PT_NO_FLOAT64     float64 in mathematical functions, linear algebra and Fourier transforms
#ifndef PT_CORE_CONFIG_H
#define PT_CORE_CONFIG_H

#include <stdint.h>

#ifdef PT_NO_PROGRAMS
#define PT_HAS_PROGRAMS 0
#else
#define PT_HAS_PROGRAMS 1
#endif

#ifdef PT_NO_PTM
#define PT_HAS_PTM 0
#else
#define PT_HAS_PTM 1
#endif

#ifdef PT_NO_DYNAMIC
#define PT_HAS_DYNAMIC 0
#else
#define PT_HAS_DYNAMIC 1
#endif

#ifdef PT_NO_TRACER
#define PT_HAS_TRACER 0
#else
#define PT_HAS_TRACER 1
#endif

#ifdef PT_NO_CHECKS
#define PT_HAS_CHECKS 0
#else
#define PT_HAS_CHECKS 1
#endif

#if !PT_HAS_PROGRAMS || defined(PT_NO_PACKING) // a .ptm file contains its packed weights
#define PT_HAS_PACKING 0
#else
#define PT_HAS_PACKING 1
#endif

#ifdef PT_ANY_CORE
#define PT_HAS_ANY_CORE 1
#else
#define PT_HAS_ANY_CORE 0
#endif

// ---- subjects of kernels/extra

#ifdef PT_NO_LINALG
#define PT_HAS_LINALG 0
#else
#define PT_HAS_LINALG 1
#endif

#ifdef PT_NO_FFT
#define PT_HAS_FFT 0
#else
#define PT_HAS_FFT 1
#endif

#ifdef PT_NO_COMPLEX
#define PT_HAS_COMPLEX 0
#else
#define PT_HAS_COMPLEX 1
#endif

#ifdef PT_NO_GRADIENTS
#define PT_HAS_GRADIENTS 0
#else
#define PT_HAS_GRADIENTS 1
#endif

#ifdef PT_NO_VOLUMES
#define PT_HAS_VOLUMES 0
#else
#define PT_HAS_VOLUMES 1
#endif

#ifdef PT_NO_DETECTION
#define PT_HAS_DETECTION 0
#else
#define PT_HAS_DETECTION 1
#endif

#ifdef PT_NO_COUNTING
#define PT_HAS_COUNTING 0
#else
#define PT_HAS_COUNTING 1
#endif

#ifdef PT_NO_RECURRENT
#define PT_HAS_RECURRENT 0
#else
#define PT_HAS_RECURRENT 1
#endif

#ifdef PT_NO_FLOAT64
#define PT_HAS_FLOAT64 0
#else
#define PT_HAS_FLOAT64 1
#endif

// ---- inner loops

// Select the ISA of the int8 loops. None defined: plain C. MVE has loops of its own.
#ifdef PT_PLAIN_LOOPS
#define PT_HAS_OWN_LOOPS 0
#else
#define PT_HAS_OWN_LOOPS 1
#endif

#if defined(PT_PLAIN_LOOPS) && !defined(__ARM_FEATURE_MVE)
#elif defined(__ARM_FEATURE_DSP)
#define PT_LOOPS_DSP
#elif defined(__ARM_ARCH_7M__)
#define PT_LOOPS_V7M
#elif defined(__ARM_ARCH_6M__)
#define PT_LOOPS_V6M
#endif

// Cortex-M7, recognized by its float64 FPU, issues a load beside a product, but not LDM: there a
// step of 16 instructions takes 8 cycles, and the 10 instructions with LDM take 13.
#if defined(__ARM_ARCH_7EM__) && __ARM_FP & 8
#define PT_LOADS_BESIDE
#endif

// Limits of a method, which determine the size of pt_method.
#ifndef PT_MAX_MEMORIES
#define PT_MAX_MEMORIES 32 // 4, its planned buffers, and the memories of unplanned tensors
#endif
#ifndef PT_MAX_INPUTS
#define PT_MAX_INPUTS 256 // a multiple of 32
#endif

// Maximum bytes of a .pte file, of a .ptd file and of a planned buffer. Bytes beyond a reference's
// reach, 128 MiB, are in further memories, one for each 128 MiB. Only a host has that much memory.
#ifndef PT_PROGRAM_LIMIT
#if UINTPTR_MAX > UINT32_MAX
#define PT_PROGRAM_LIMIT 0x40000000
#else
#define PT_PROGRAM_LIMIT 0x8000000
#endif
#endif

// Maximum instructions of an execution; more are an error, since the method may never end. A fuzzer
// defines fewer.
#ifndef PT_MAX_STEPS
#define PT_MAX_STEPS 10000000
#endif

// ---- switches of a build

#if PT_MAX_MEMORIES < 5 || PT_MAX_MEMORIES > 32
#error \
    "PT_MAX_MEMORIES must be 5 to 32: a reference names a memory by 5 bits, and 4 are not buffers"
#endif
#if PT_MAX_INPUTS < 32 || PT_MAX_INPUTS > 65504 || PT_MAX_INPUTS % 32
#error "PT_MAX_INPUTS must be a multiple of 32, from 32 to 65504"
#endif
#if PT_PROGRAM_LIMIT != 0x8000000 && PT_PROGRAM_LIMIT != 0x10000000 && \
    PT_PROGRAM_LIMIT != 0x20000000 && PT_PROGRAM_LIMIT != 0x40000000
#error "PT_PROGRAM_LIMIT must be 128 MiB, or on a 64-bit machine 256, 512 or 1024 MiB"
#endif
#if PT_PROGRAM_LIMIT > 0x8000000 && UINTPTR_MAX <= UINT32_MAX
#error "PT_PROGRAM_LIMIT must be 128 MiB where addresses have 32 bits"
#endif
#if PT_MAX_STEPS < 1 || PT_MAX_STEPS > 0x7FFFFFFF
#error "PT_MAX_STEPS must be 1 to 2147483647"
#endif
#if !PT_HAS_PROGRAMS && !PT_HAS_PTM
#error "PT_NO_PROGRAMS and PT_NO_PTM leave nothing to run: define at most one of them"
#endif
#if !PT_HAS_CHECKS && PT_HAS_PROGRAMS
#error "PT_NO_CHECKS is for .ptm files only: define PT_NO_PROGRAMS, too"
#endif
#if !PT_HAS_DYNAMIC && PT_HAS_PROGRAMS
#error "PT_NO_DYNAMIC is for .ptm files only: define PT_NO_PROGRAMS, too"
#endif

#endif
