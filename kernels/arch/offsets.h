// Holds a struct against what assembler takes for granted of it: there a field is a number of bytes
// behind the start. The build ends where one lies elsewhere.
#ifndef PT_ARCH_OFFSETS_H
#define PT_ARCH_OFFSETS_H

#include <stddef.h>

#define PT_STATIC_ASSERT(condition, what) __extension__ _Static_assert(condition, what)

#define PT_OFFSET(type, field, bytes) \
    PT_STATIC_ASSERT(offsetof(type, field) == (bytes), "assembler has " #field " at " #bytes)
#define PT_SIZE(type, bytes) \
    PT_STATIC_ASSERT(sizeof(type) == (bytes), "assembler has a " #type " of " #bytes)

#endif
