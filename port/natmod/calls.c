// C library functions that the compiler and the library call, provided by MicroPython.
#include "native.h"

void *memset(void *to, int value, size_t size) {
    return mp_fun_table.memset_(to, value, size);
}

void *memmove(void *to, const void *from, size_t size) {
    return mp_fun_table.memmove_(to, from, size);
}

void *memcpy(void *to, const void *from, size_t size) {
    return mp_fun_table.memmove_(to, from, size);
}
