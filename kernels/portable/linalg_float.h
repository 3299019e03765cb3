// Makes the header behind it one of float32, see linalg.h.
#include <float.h>

#undef PT_REAL
#undef PT_TYPED
#undef PT_SQRT
#undef PT_LOG
#undef PT_EPSILON
#undef PT_SMALLEST
#define PT_REAL float
#define PT_TYPED(name) name##_f32
#define PT_SQRT pt_sqrtf
#define PT_LOG pt_logf
#define PT_EPSILON FLT_EPSILON
#define PT_SMALLEST FLT_MIN
#include "linalg_real.h"
