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

// The assembler uses nearly all registers, which gcc allows only at -O1 and above, with
// -fomit-frame-pointer. Builds without optimisation compile the following code at -O1.
#if defined(__arm__) && defined(__GNUC__) && !defined(__clang__) && !defined(__OPTIMIZE__)
#pragma GCC optimize("O1")
#endif

// The start of inline assembler for ARMv6-M, which GCC assembles in the old syntax by default.
#define PT_UNIFIED ".syntax unified\n\t"

#endif
