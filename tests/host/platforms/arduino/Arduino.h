// What a sketch of these tests uses of the Arduino API, on this computer: one call of loop().
#pragma once
#include <cstdio>
#include <cstdlib>

struct Stream {
    void begin(long) {
    }
    void print(unsigned long) {
    }
    void println(const char *text) {
        puts(text);
    }
};
extern Stream Serial;

static inline unsigned long micros() {
    return 0;
}
static inline void delay(unsigned long) {
    exit(0);
}
