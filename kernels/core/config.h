// What a build of the library has. One that needs less defines so by -D, or in its own copy of this
// file:
//
//   PT_NO_PROGRAMS  it runs images only: no .pte file, no .ptd file, no delegates
//   PT_NO_IMAGES    it runs .pte files only
//   PT_NO_TEXTS     an error says what is wrong by its numbers, without a text
//   PT_NO_TRACER    nothing is measured
//   PT_NO_CHECKS    images are trusted, but for their header: they are a part of the firmware
#ifndef PT_CORE_CONFIG_H
#define PT_CORE_CONFIG_H

#ifdef PT_NO_PROGRAMS
#define PT_HAS_PROGRAMS 0
#else
#define PT_HAS_PROGRAMS 1
#endif

#ifdef PT_NO_IMAGES
#define PT_HAS_IMAGES 0
#else
#define PT_HAS_IMAGES 1
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

// Of a method: a pt_method has room for them.
#ifndef PT_MOST_MEMORIES
#define PT_MOST_MEMORIES 32 // 4, its planned buffers, and what the program leaves unplanned
#endif
#ifndef PT_MOST_INPUTS
#define PT_MOST_INPUTS 256 // a multiple of 32
#endif

#endif
