// Fourier transforms over any dims: _fft_c2c, _fft_r2c, _fft_c2r. Each dim takes one pass.
//
// float32 is computed in float32, float64 in float64. The largest error found, relative to the
// largest magnitude of the exact result, is 5e-7 in float32 for up to 4096 points whose factors are
// 2, 3 and 5; a prime factor p adds about 1e-8 p (tests/kernels/test_fft.py).
#include "core/generated/operator_arguments.h"
#include "portable/arguments.h"
#include "portable/complex.h"
#include "portable/double_math.h"

// The kind of the lines: complex, real before the transform (FFT_FORTH), or real after it
// (FFT_BACK).
typedef enum kind { FFT_COMPLEX, FFT_FORTH, FFT_BACK } kind;

// The transform of all lines along one dim.
typedef struct pass {
    kind kind;
    bool inverse;
    bool half;       // a real line has only its first n / 2 + 1 coefficients
    bool root;       // divide by the square root of `divide`
    int32_t divide;  // divisor of the results; 0: none
    char *workspace; // scratch for a line, see fft_lines.inc; NULL if there are no elements
    int32_t n;       // points of a line
    const void *in;
    void *out;
    int32_t in_step, out_step;
} pass;

// Returns the number of complex points of the transform for a line of n points.
static int32_t points_of(kind kind, int32_t n) {
    return kind == FFT_COMPLEX || n % 2 ? n : n / 2;
}

static int32_t smallest_factor(int32_t n) {
    if (n % 4 == 0) {
        return 4;
    }
    if (n % 2 == 0) {
        return 2;
    }
    for (int32_t factor = 3; factor <= n / factor; factor += 2) {
        if (n % factor == 0) {
            return factor;
        }
    }
    return n;
}

// The functions are not inlined, so that the values of different stages are not on the stack
// together.
#define NOINLINE static __attribute__((noinline))

#define PT_REAL float
#define PT_LINE(name) name##_f32
#define PT_SIN pt_sinf
#define PT_COS pt_cosf
#define PT_SQRT pt_sqrtf
#include "extra/fft/fft_lines.inc"
#undef PT_REAL
#undef PT_LINE
#undef PT_SIN
#undef PT_COS
#undef PT_SQRT

#define PT_REAL double
#define PT_ANY_FACTOR // for small code: few models use float64
#define PT_LINE(name) name##_f64
#define PT_SIN pt_float64->sin
#define PT_COS pt_float64->cos
#define PT_SQRT pt_float64->sqrt
#include "extra/fft/fft_lines.inc"

// ---- the operators

// The arguments of a call. The three operators have self, dim and normalization at the same
// positions.
typedef struct fft {
    pt_tensor in, out;
    kind kind;
    uint32_t n_dims;
    uint8_t dims[PT_MAX_RANK]; // the last dim is real before or after the transform of real tensors
    uint32_t last;             // dims[n_dims - 1]
    int32_t n;                 // points along the last dim
    uint64_t lines;            // bytes of scratch for the lines; the scratch tensor follows
} fft;

enum { OUT = FFT_C2C_OUT, SELF = FFT_C2C_SELF, DIM = FFT_C2C_DIM };
enum { BY_NOTHING, BY_ROOT, BY_ALL }; // values of normalization

static int read_call(pt_context *c, const pt_ref *args, kind kind, fft *f) {
    uint32_t dims, dim;
    f->in = pt_get_tensor(c, args[SELF]);
    f->out = pt_get_tensor(c, args[OUT]);
    f->kind = kind;
    PT_TRY(pt_read_dims(c, args[DIM], f->in.rank, &dims));
    f->n_dims = pt_list_length(c, args[DIM]);
    if (f->n_dims == 0 || f->in.rank == 0) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "a transform must have a dim");
    }
    for (uint32_t i = 0; i < f->n_dims; i++) {
        PT_TRY(pt_read_dim(c, pt_list_int(c, args[DIM], i), f->in.rank, &dim));
        f->dims[i] = (uint8_t)dim;
        f->last = dim;
    }
    f->n = (kind == FFT_BACK ? &f->out : &f->in)->sizes[f->last];
    return PT_ERROR_OK;
}

// Returns the points of a line along a dim.
static int32_t points_along(const fft *f, uint32_t dim) {
    return dim == f->last ? f->n : f->in.sizes[dim];
}

// Returns the bytes of scratch: bytes for the lines, plus bytes for the tensor between the passes
// of FFT_BACK.
static uint64_t fft_scratch(const pt_context *c, const pt_ref *args, fft *f) {
    const uint32_t pair = pt_element_size(f->kind == FFT_FORTH ? f->out.dtype : f->in.dtype);
    uint64_t max = 0;
    for (uint32_t i = 0; i < f->n_dims; i++) {
        const int32_t n = points_along(f, f->dims[i]);
        const kind kind = i + 1 == f->n_dims ? f->kind : FFT_COMPLEX;
        // An odd number of points needs more scratch than a larger even number.
        const bool may_be_odd = (f->in.flags | f->out.flags) & PT_VALUE_DYNAMIC || n % 2;
        const uint32_t pairs =
            may_be_odd ? 3u * (uint32_t)n : (uint32_t)n / 2 + 2u * (uint32_t)points_of(kind, n);
        max = pairs > max ? pairs : max;
    }
    f->lines = max * pair;
    return f->lines + (f->kind == FFT_BACK && f->n_dims > 1
                           ? (uint64_t)pt_capacity(c, args[SELF]) * pt_element_size(f->in.dtype)
                           : 0);
}

static int check_fft(pt_context *c, const pt_ref *args, fft *f, const int32_t *sizes) {
    const uint8_t whole = f->kind == FFT_FORTH ? f->out.dtype : f->in.dtype;
    const uint8_t wanted_in = f->kind == FFT_FORTH ? pt_part_dtype(whole) : whole;
    const uint8_t wanted_out = f->kind == FFT_BACK ? pt_part_dtype(whole) : whole;
    if ((whole != PT_DTYPE_COMPLEX_FLOAT && whole != PT_DTYPE_COMPLEX_DOUBLE) ||
        f->in.dtype != wanted_in || f->out.dtype != wanted_out) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "no such transform of these dtypes");
    }
    PT_TRY(pt_check_math(c, pt_part_dtype(whole), PT_REASON_DTYPE));
    const int64_t normalization = pt_get_int(c, args[FFT_C2C_NORMALIZATION]);
    if (normalization < BY_NOTHING || normalization > BY_ALL) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "normalization must be 0, 1 or 2");
    }
    PT_TRY(pt_expect_sizes(c, args[OUT], f->in.rank, sizes));
    for (uint32_t i = 0; i < f->n_dims; i++) {
        if (points_along(f, f->dims[i]) < 1) {
            return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "a transform must have a point");
        }
    }
    if (pt_product(sizes, f->in.rank) == 0) {
        return PT_ERROR_OK; // a line may have any length
    }
    const uint64_t bytes = fft_scratch(c, args, f);
    if (bytes > UINT32_MAX) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "the transform is too large");
    }
    pt_request_scratch(c, (uint32_t)bytes);
    return PT_ERROR_OK;
}

static void copy_sizes(const pt_tensor *t, int32_t *sizes) {
    for (uint32_t d = 0; d < t->rank; d++) {
        sizes[d] = t->sizes[d];
    }
}

// Sets the divisor: the product of the points of all dims; 0 without normalization.
static void read_scale(const pt_context *c, const pt_ref *args, const fft *f, pass *p) {
    const int64_t normalization = pt_get_int(c, args[FFT_C2C_NORMALIZATION]);
    int32_t product = 1;
    for (uint32_t i = 0; i < f->n_dims; i++) {
        product *= points_along(f, f->dims[i]);
    }
    p->divide = normalization == BY_NOTHING ? 0 : product;
    p->root = normalization == BY_ROOT;
}

// For a run: reads a call and its scale, and gets its scratch.
NOINLINE int start_call(pt_context *c, const pt_ref *args, fft *f, pass *p) {
    void *scratch = NULL;
    PT_TRY(read_call(c, args, p->kind, f));
    if (pt_numel(&f->out) > 0) {
        PT_TRY(pt_get_scratch(c, (uint32_t)fft_scratch(c, args, f), &scratch));
        read_scale(c, args, f, p);
    }
    p->workspace = scratch;
    return PT_ERROR_OK;
}

// Sets up a pass along `dim` between tensors of the same rank; both may be the same tensor.
static void start_along(pass *p, pt_walk *w, uint32_t dim, const pt_tensor *out,
                        const pt_tensor *in) {
    w->rank = in->rank;
    w->operands = 2;
    copy_sizes(in, w->sizes);
    w->sizes[dim] = 1;
    pt_strides(out, w->strides[0]);
    pt_strides(in, w->strides[1]);
    w->offset[0] = w->offset[1] = 0;
    p->n = (p->kind == FFT_BACK ? out : in)->sizes[dim];
    p->out = out->data;
    p->in = in->data;
    p->out_step = w->strides[0][dim];
    p->in_step = w->strides[1][dim];
    pt_walk_start(w);
}

NOINLINE int run_float32(pt_context *c, pass *p, uint32_t dim, const pt_tensor *out,
                         const pt_tensor *in) {
    pt_walk w;
    start_along(p, &w, dim, out, in);
    return run_pass_f32(c, p, &w);
}

NOINLINE int run_float64(pt_context *c, pass *p, uint32_t dim, const pt_tensor *out,
                         const pt_tensor *in) {
    pt_walk w;
    start_along(p, &w, dim, out, in);
    return run_pass_f64(c, p, &w);
}

// Each function has two copies, one without float64 and one with it (`wide`).
#define TWICE static inline __attribute__((always_inline))

TWICE int run_along(pt_context *c, pass *p, uint32_t dim, const pt_tensor *out, const pt_tensor *in,
                    const bool is_double) {
    const pt_tensor *whole = p->kind == FFT_FORTH ? out : in;
    return is_double && whole->dtype == PT_DTYPE_COMPLEX_DOUBLE ? run_float64(c, p, dim, out, in)
                                                                : run_float32(c, p, dim, out, in);
}

// Defines the kernel of an operator, and the kernel of a build with float64: see
// PT_EXTENDED_OPERATOR in operators.def. The check of the first rejects float64, since pt_float64
// is NULL.
#define FFT_KERNELS(name)                                                            \
    static int name##_run(pt_context *c, const pt_ref *args) {                       \
        return run_##name(c, args, false);                                           \
    }                                                                                \
    static int name##_run_wide(pt_context *c, const pt_ref *args) {                  \
        return run_##name(c, args, true);                                            \
    }                                                                                \
    const pt_kernel pt_aten__fft_##name##_out = PT_KERNEL(name##_check, name##_run); \
    const pt_kernel pt_wide_fft_##name##_out = PT_KERNEL(name##_check, name##_run_wide);

// ---- complex to complex: all of the transform, or its passes over the first `n_dims` dims

TWICE int run_dims(pt_context *c, const fft *f, pass p, uint32_t n_dims, const pt_tensor *out,
                   const pt_tensor *in, const bool is_double) {
    const int32_t divide = p.divide;
    for (uint32_t i = 0; i < n_dims; i++) {
        p.divide = i == 0 ? divide : 0;
        PT_TRY(run_along(c, &p, f->dims[i], out, i == 0 ? in : out, is_double));
    }
    return PT_ERROR_OK;
}

static int c2c_check(pt_context *c, const pt_ref *args) {
    fft f;
    PT_TRY(read_call(c, args, FFT_COMPLEX, &f));
    return check_fft(c, args, &f, f.in.sizes);
}

TWICE int run_c2c(pt_context *c, const pt_ref *args, const bool is_double) {
    fft f;
    pass p = {.kind = FFT_COMPLEX, .inverse = !pt_get_bool(c, args[FFT_C2C_FORWARD])};
    PT_TRY(start_call(c, args, &f, &p));
    return p.workspace ? run_dims(c, &f, p, f.n_dims, &f.out, &f.in, is_double) : PT_ERROR_OK;
}

FFT_KERNELS(c2c)

// ---- real to complex: the last dim, then the other dims

static int r2c_check(pt_context *c, const pt_ref *args) {
    fft f;
    int32_t sizes[PT_MAX_RANK];
    PT_TRY(read_call(c, args, FFT_FORTH, &f));
    copy_sizes(&f.in, sizes);
    if (pt_get_bool(c, args[FFT_R2C_ONESIDED])) {
        sizes[f.last] = sizes[f.last] / 2 + 1;
    }
    return check_fft(c, args, &f, sizes);
}

TWICE int run_r2c(pt_context *c, const pt_ref *args, const bool is_double) {
    fft f;
    pass p = {.kind = FFT_FORTH, .half = pt_get_bool(c, args[FFT_R2C_ONESIDED])};
    PT_TRY(start_call(c, args, &f, &p));
    if (!p.workspace) {
        return PT_ERROR_OK;
    }
    PT_TRY(run_along(c, &p, f.last, &f.out, &f.in, is_double));
    const pass others = {.kind = FFT_COMPLEX, .workspace = p.workspace};
    return run_dims(c, &f, others, f.n_dims - 1, &f.out, &f.out, is_double);
}

FFT_KERNELS(r2c)

// ---- complex to real: the other dims, then the last dim

static int c2r_check(pt_context *c, const pt_ref *args) {
    fft f;
    int32_t sizes[PT_MAX_RANK];
    PT_TRY(read_call(c, args, FFT_BACK, &f));
    copy_sizes(&f.in, sizes);
    f.n = 2 * f.in.sizes[f.last] - 1; // the maximum number of points
    if (c->checking != PT_CHECK_BOUNDS) {
        const int64_t last = pt_get_int(c, args[FFT_C2R_LAST_DIM_SIZE]);
        if (last < 1 || last > f.n) {
            return pt_fail(c, PT_ERROR_INVALID_ARGUMENT,
                           "last_dim_size must be at least 1, and the input have "
                           "last_dim_size / 2 + 1 coefficients");
        }
        f.n = (int32_t)last;
    }
    sizes[f.last] = f.n;
    return check_fft(c, args, &f, sizes);
}

TWICE int run_c2r(pt_context *c, const pt_ref *args, const bool is_double) {
    fft f;
    pass p = {.kind = FFT_BACK, .inverse = true};
    PT_TRY(start_call(c, args, &f, &p));
    if (!p.workspace) {
        return PT_ERROR_OK;
    }
    pt_tensor between = f.in;
    if (f.n_dims > 1) {
        const pass others = {.kind = FFT_COMPLEX, .inverse = true, .workspace = p.workspace};
        between.data = p.workspace + f.lines;
        PT_TRY(run_dims(c, &f, others, f.n_dims - 1, &between, &f.in, is_double));
    }
    return run_along(c, &p, f.last, &f.out, &between, is_double);
}

FFT_KERNELS(c2r)
