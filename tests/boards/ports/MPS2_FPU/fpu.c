// Enables the FPU, which the start-up code of MicroPython's port qemu leaves off.
#include <stdint.h>

#define CPACR (*(volatile uint32_t *)0xE000ED88)

int __real_main(int argc, char **argv);
int __wrap_main(int argc, char **argv);

int __wrap_main(int argc, char **argv) {
    CPACR |= 0xF << 20;
    __asm volatile("dsb\nisb" ::: "memory");
    return __real_main(argc, argv);
}
