// C library functions that the compiler and the library call, and MicroPython does not provide.
#include <stddef.h>
#include <stdint.h>
#include <string.h>

int memcmp(const void *a_in, const void *b_in, size_t size) {
    const uint8_t *a = a_in, *b = b_in;
    for (; size > 0 && *a == *b; size--) {
        a++;
        b++;
    }
    return size > 0 ? *a - *b : 0;
}

size_t strlen(const char *text) {
    const char *end = text;
    while (*end) {
        end++;
    }
    return (size_t)(end - text);
}
