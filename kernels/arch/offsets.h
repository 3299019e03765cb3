// Static asserts on the layout of structs that assembler reads: a field is an offset in bytes from
// the start of its struct. The build fails if the field lies elsewhere.
#ifndef PT_ARCH_OFFSETS_H
#define PT_ARCH_OFFSETS_H

#include <stddef.h>

#define PT_STATIC_ASSERT(condition, what) __extension__ _Static_assert(condition, what)

#define PT_OFFSET(type, field, bytes) \
    PT_STATIC_ASSERT(offsetof(type, field) == (bytes), "assembler has " #field " at " #bytes)
#define PT_SIZE(type, bytes) \
    PT_STATIC_ASSERT(sizeof(type) == (bytes), "assembler has a " #type " of " #bytes)

// Assembler takes nearly all registers: gcc allows it at -O1 and above alone, with
// -fomit-frame-pointer. The code after this is compiled at -O1 in builds without optimisation, too.
#if defined(__arm__) && defined(__GNUC__) && !defined(__clang__) && !defined(__OPTIMIZE__)
#pragma GCC optimize("O1")
#endif

#endif
