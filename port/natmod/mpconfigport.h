// The part of MicroPython's configuration that its headers need; no function of MicroPython is
// compiled.
#include <stdint.h>

typedef intptr_t mp_int_t;
typedef uintptr_t mp_uint_t;
typedef intptr_t mp_off_t;

// The module does no arithmetic with the firmware's floats, but passes them as bytes of a double.
#define MICROPY_FLOAT_IMPL MICROPY_FLOAT_IMPL_FLOAT
#define MICROPY_LONGINT_IMPL MICROPY_LONGINT_IMPL_MPZ

#ifndef PT_COLLECT_NAMES
#include "names.h"
#endif
