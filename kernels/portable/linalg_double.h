// Makes the header behind it one of float64, see linalg.h.
#include <float.h>

#undef PT_REAL
#undef PT_TYPED
#undef PT_SQRT
#undef PT_LOG
#undef PT_EPSILON
#undef PT_SMALLEST
#define PT_REAL double
#define PT_TYPED(name) name##_f64
#define PT_SQRT pt_float64->sqrt
#define PT_LOG pt_float64->log
#define PT_EPSILON DBL_EPSILON
#define PT_SMALLEST DBL_MIN
#include "linalg_real.h"
