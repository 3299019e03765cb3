// The Fourier transform of one line of complex numbers, for fft.c, which includes this file for
// each type: PT_REAL is it, PT_LINE(name) names what belongs to it, PT_SIN and PT_COS are of it.
//
// Stockham's algorithm with factors 4, 2, 3, 5 and any odd prime, which takes a step for each pair
// of points in a group of that prime; with PT_ANY_FACTOR all factors do, which is half the code.
// All is computed in PT_REAL, in a fixed order.

typedef struct PT_LINE(pair) {
    PT_REAL re, im;
} PT_LINE(pair);

#define PAIR PT_LINE(pair)
#define TABLE PT_LINE(table)
#define STAGE PT_LINE(stage)

// w[k] = exp(-2 pi i k / n): half a turn where n is even, else a whole one.
typedef struct TABLE {
    const PAIR *w;
    int32_t n, entries;
} TABLE;

static PAIR PT_LINE(times)(PAIR a, PAIR b) {
    return (PAIR){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

static PAIR PT_LINE(plus)(PAIR a, PAIR b) {
    return (PAIR){a.re + b.re, a.im + b.im};
}

static PAIR PT_LINE(minus)(PAIR a, PAIR b) {
    return (PAIR){a.re - b.re, a.im - b.im};
}

// a + i b, and a - i b.
static PAIR PT_LINE(plus_i)(PAIR a, PAIR b) {
    return (PAIR){a.re - b.im, a.im + b.re};
}

static PAIR PT_LINE(minus_i)(PAIR a, PAIR b) {
    return (PAIR){a.re + b.im, a.im - b.re};
}

static PAIR PT_LINE(scaled)(PAIR a, PT_REAL by) {
    return (PAIR){a.re * by, a.im * by};
}

// Sine and cosine are taken of at most an eighth of a turn, so that the angle is accurate.
static PAIR PT_LINE(root)(int32_t k, int32_t n) {
    const PT_REAL eighth = (PT_REAL)0x1.921fb54442d18p-1;
    const int32_t octant = (int32_t)((int64_t)8 * k / n);
    const int32_t rest = (int32_t)((int64_t)8 * k - (int64_t)octant * n);
    const PT_REAL angle = eighth * ((PT_REAL)(octant & 1 ? n - rest : rest) / (PT_REAL)n);
    const PT_REAL cos = PT_COS(angle), sin = PT_SIN(angle);
    const bool swaps = (octant + 1) & 2;
    const PT_REAL x = swaps ? sin : cos, y = swaps ? cos : sin;
    return (PAIR){octant >= 2 && octant < 6 ? -x : x, octant < 4 ? -y : y};
}

static TABLE PT_LINE(make_table)(PAIR *w, int32_t n) {
    const TABLE t = {w, n, n % 2 ? n : n / 2};
    for (int32_t k = 0; k < t.entries; k++) {
        const int32_t mirror = n % 2 ? n - k : n / 2 - k;
        if (mirror < k) { // behind half a turn, or behind a quarter
            w[k] =
                (PAIR){n % 2 ? w[mirror].re : -w[mirror].re, n % 2 ? -w[mirror].im : w[mirror].im};
        } else {
            w[k] = PT_LINE(root)(k, n);
        }
    }
    return t;
}

static PAIR PT_LINE(twiddle)(const TABLE *t, int32_t k) {
    if (k < t->entries) {
        return t->w[k];
    }
    const PAIR w = t->w[k - t->entries];
    return (PAIR){-w.re, -w.im};
}

// One factor: x is `groups` of `stride` lines from each of which `radix` points are taken.
typedef struct STAGE {
    const TABLE *t;
    int32_t turn; // entries of the table that are exp(-2 pi i / length of a line)
    int32_t radix, groups, stride;
    const PAIR *x;
    PAIR *y;
} STAGE;

#ifdef PT_ANY_FACTOR
#define STAGE_OF(factor)
#else
#define STAGE_OF(factor)            \
    if (s->radix == factor) {       \
        PT_LINE(stage_##factor)(s); \
        return PT_ERROR_OK;         \
    }

NOINLINE void PT_LINE(stage_2)(const STAGE *s) {
    const int32_t far = s->groups * s->stride;
    const PAIR *x = s->x;
    PAIR *y = s->y;
    for (int32_t p = 0; p < s->groups; p++, y += s->stride) {
        const PAIR w = PT_LINE(twiddle)(s->t, p * s->turn);
        for (int32_t q = 0; q < s->stride; q++, x++, y++) {
            const PAIR a = x[0], b = x[far];
            y[0] = PT_LINE(plus)(a, b);
            y[s->stride] = PT_LINE(times)(PT_LINE(minus)(a, b), w);
        }
    }
}

NOINLINE void PT_LINE(stage_3)(const STAGE *s) {
    const int32_t far = s->groups * s->stride, stride = s->stride;
    const PT_REAL sin = (PT_REAL)0x1.bb67ae8584caap-1; // of a third of a turn
    const PAIR *x = s->x;
    PAIR *y = s->y;
    for (int32_t p = 0; p < s->groups; p++, y += 2 * stride) {
        const PAIR w1 = PT_LINE(twiddle)(s->t, p * s->turn);
        const PAIR w2 = PT_LINE(twiddle)(s->t, 2 * p * s->turn);
        for (int32_t q = 0; q < stride; q++, x++, y++) {
            const PAIR sum = PT_LINE(plus)(x[far], x[2 * far]);
            const PAIR base = PT_LINE(minus)(x[0], PT_LINE(scaled)(sum, (PT_REAL)0.5));
            const PAIR side = PT_LINE(scaled)(PT_LINE(minus)(x[far], x[2 * far]), sin);
            y[0] = PT_LINE(plus)(x[0], sum);
            y[stride] = PT_LINE(times)(PT_LINE(minus_i)(base, side), w1);
            y[2 * stride] = PT_LINE(times)(PT_LINE(plus_i)(base, side), w2);
        }
    }
}

NOINLINE void PT_LINE(stage_4)(const STAGE *s) {
    const int32_t far = s->groups * s->stride, stride = s->stride;
    const PAIR *x = s->x;
    PAIR *y = s->y;
    for (int32_t p = 0; p < s->groups; p++, y += 3 * stride) {
        const PAIR w1 = PT_LINE(twiddle)(s->t, p * s->turn);
        const PAIR w2 = PT_LINE(twiddle)(s->t, 2 * p * s->turn);
        const PAIR w3 = PT_LINE(twiddle)(s->t, 3 * p * s->turn);
        for (int32_t q = 0; q < stride; q++, x++, y++) {
            const PAIR even = PT_LINE(plus)(x[0], x[2 * far]);
            const PAIR odd = PT_LINE(plus)(x[far], x[3 * far]);
            const PAIR a = PT_LINE(minus)(x[0], x[2 * far]);
            const PAIR b = PT_LINE(minus)(x[far], x[3 * far]);
            y[0] = PT_LINE(plus)(even, odd);
            y[stride] = PT_LINE(times)(PT_LINE(minus_i)(a, b), w1);
            y[2 * stride] = PT_LINE(times)(PT_LINE(minus)(even, odd), w2);
            y[3 * stride] = PT_LINE(times)(PT_LINE(plus_i)(a, b), w3);
        }
    }
}

NOINLINE void PT_LINE(stage_5)(const STAGE *s) {
    const int32_t far = s->groups * s->stride, stride = s->stride;
    // Cosines and sines of one fifth of a turn, and of two fifths
    const PT_REAL cos_1 = (PT_REAL)0x1.3c6ef372fe950p-2, sin_1 = (PT_REAL)0x1.e6f0e134454ffp-1;
    const PT_REAL cos_2 = (PT_REAL)-0x1.9e3779b97f4a8p-1, sin_2 = (PT_REAL)0x1.2cf2304755a5ep-1;
    const PAIR *x = s->x;
    PAIR *y = s->y;
    for (int32_t p = 0; p < s->groups; p++, y += 4 * stride) {
        PAIR w[5];
        for (int32_t k = 1; k < 5; k++) {
            w[k] = PT_LINE(twiddle)(s->t, k * p * s->turn);
        }
        for (int32_t q = 0; q < stride; q++, x++, y++) {
            const PAIR near = PT_LINE(plus)(x[far], x[4 * far]);
            const PAIR wide = PT_LINE(plus)(x[2 * far], x[3 * far]);
            const PAIR a = PT_LINE(minus)(x[far], x[4 * far]);
            const PAIR b = PT_LINE(minus)(x[2 * far], x[3 * far]);
            const PAIR base_1 = PT_LINE(plus)(
                x[0], PT_LINE(plus)(PT_LINE(scaled)(near, cos_1), PT_LINE(scaled)(wide, cos_2)));
            const PAIR base_2 = PT_LINE(plus)(
                x[0], PT_LINE(plus)(PT_LINE(scaled)(near, cos_2), PT_LINE(scaled)(wide, cos_1)));
            const PAIR side_1 = PT_LINE(plus)(PT_LINE(scaled)(a, sin_1), PT_LINE(scaled)(b, sin_2));
            const PAIR side_2 =
                PT_LINE(minus)(PT_LINE(scaled)(a, sin_2), PT_LINE(scaled)(b, sin_1));
            y[0] = PT_LINE(plus)(x[0], PT_LINE(plus)(near, wide));
            y[stride] = PT_LINE(times)(PT_LINE(minus_i)(base_1, side_1), w[1]);
            y[2 * stride] = PT_LINE(times)(PT_LINE(minus_i)(base_2, side_2), w[2]);
            y[3 * stride] = PT_LINE(times)(PT_LINE(plus_i)(base_2, side_2), w[3]);
            y[4 * stride] = PT_LINE(times)(PT_LINE(plus_i)(base_1, side_1), w[4]);
        }
    }
}

#endif

// The sum over j of x[j * far] * exp(-2 pi i j k / radix).
static PAIR PT_LINE(sum_of)(const STAGE *s, const PAIR *x, int32_t k) {
    const int32_t far = s->groups * s->stride;
    const int64_t step = (int64_t)k * (s->t->n / s->radix);
    PAIR sum = *x;
    int64_t at = 0;
    for (int32_t j = 1; j < s->radix; j++) {
        x += far;
        at += step;
        at -= at >= s->t->n ? s->t->n : 0;
        sum = PT_LINE(plus)(sum, PT_LINE(times)(*x, PT_LINE(twiddle)(s->t, (int32_t)at)));
    }
    return sum;
}

NOINLINE int PT_LINE(stage_of_factor)(pt_context *c, const STAGE *s) {
    const PAIR *x = s->x;
    PAIR *y = s->y;
    for (int32_t p = 0; p < s->groups; p++, y += (s->radix - 1) * s->stride) {
        for (int32_t q = 0; q < s->stride; q++, x++, y++) {
            for (int32_t k = 0; k < s->radix; k++) {
                PT_TRY(pt_count_work(c, s->radix));
                const PAIR w = PT_LINE(twiddle)(s->t, p * k * s->turn);
                y[k * s->stride] = PT_LINE(times)(PT_LINE(sum_of)(s, x, k), w);
            }
        }
    }
    return PT_ERROR_OK;
}

static int PT_LINE(run_stage)(pt_context *c, const STAGE *s) {
    PT_TRY(pt_count_product(c, s->groups * s->stride, s->radix));
    STAGE_OF(2)
    STAGE_OF(3)
    STAGE_OF(4)
    STAGE_OF(5)
    return PT_LINE(stage_of_factor)(c, s);
}

// Transforms n numbers from *x on; a and b have room for as many, and *x may be a. Then *x is where
// the result lies: a, b, or for n = 1 *x.
static int PT_LINE(transform)(pt_context *c, const TABLE *t, int32_t n, const PAIR **x, PAIR *a,
                              PAIR *b) {
    STAGE s = {.t = t, .turn = t->n / n, .stride = 1};
    for (int32_t left = n; left > 1; left = s.groups) {
        s.radix = smallest_factor(left);
        s.groups = left / s.radix;
        s.x = *x;
        s.y = *x == a ? b : a;
        PT_TRY(PT_LINE(run_stage)(c, &s));
        s.stride *= s.radix;
        s.turn *= s.radix;
        *x = s.y;
    }
    return PT_ERROR_OK;
}

// ---- a line of a tensor

typedef struct PT_LINE(line) {
    const TABLE *t;
    PAIR *a, *b; // room for a transform
    int32_t n;   // points, of a real line as real numbers
    bool inverse;
    bool half; // a real line has its first n / 2 + 1 coefficients only
    PT_REAL scale;
    int32_t in_step, out_step; // in elements
} PT_LINE(line);

#define LINE PT_LINE(line)

static PAIR PT_LINE(conjugate)(PAIR a) {
    return (PAIR){a.re, -a.im};
}

// The inverse is the conjugate of the transform of the conjugate.
static int PT_LINE(complex_line)(pt_context *c, const LINE *v, PAIR *out, const PAIR *in) {
    const PAIR *x = in;
    if (v->in_step != 1 || v->inverse) {
        for (int32_t k = 0; k < v->n; k++, in += v->in_step) {
            v->a[k] = v->inverse ? PT_LINE(conjugate)(*in) : *in;
        }
        x = v->a;
    }
    PT_TRY(PT_LINE(transform)(c, v->t, v->n, &x, v->a, v->b));
    for (int32_t k = 0; k < v->n; k++, out += v->out_step) {
        *out = PT_LINE(scaled)(v->inverse ? PT_LINE(conjugate)(x[k]) : x[k], v->scale);
    }
    return PT_ERROR_OK;
}

// Coefficient k, and n - k, which is its conjugate.
static void PT_LINE(put)(const LINE *v, PAIR *out, int32_t k, PAIR value) {
    value = PT_LINE(scaled)(value, v->scale);
    out[k * v->out_step] = value;
    if (!v->half && k != 0 && 2 * k != v->n) {
        out[(v->n - k) * v->out_step] = PT_LINE(conjugate)(value);
    }
}

// An even number of real ones are half as many complex ones: z[k] = x[2 k] + i x[2 k + 1].
static int PT_LINE(even_line)(pt_context *c, const LINE *v, PAIR *out, const PT_REAL *in) {
    const int32_t n = v->n / 2;
    const PAIR *z = (const PAIR *)(const void *)in;
    if (v->in_step != 1) {
        for (int32_t k = 0; k < n; k++, in += 2 * v->in_step) {
            v->a[k] = (PAIR){in[0], in[v->in_step]};
        }
        z = v->a;
    }
    PT_TRY(PT_LINE(transform)(c, v->t, n, &z, v->a, v->b));
    PT_LINE(put)(v, out, 0, (PAIR){z[0].re + z[0].im, 0});
    PT_LINE(put)(v, out, n, (PAIR){z[0].re - z[0].im, 0});
    for (int32_t k = 1; 2 * k <= n; k++) {
        const PAIR mirror = PT_LINE(conjugate)(z[n - k]);
        const PAIR even = PT_LINE(scaled)(PT_LINE(plus)(z[k], mirror), (PT_REAL)0.5);
        const PAIR half = PT_LINE(scaled)(PT_LINE(minus)(z[k], mirror), (PT_REAL)0.5);
        const PAIR odd = PT_LINE(times)(half, PT_LINE(twiddle)(v->t, k));
        PT_LINE(put)(v, out, k, PT_LINE(minus_i)(even, odd));
        if (2 * k != n) {
            PT_LINE(put)(v, out, n - k, PT_LINE(conjugate)(PT_LINE(plus_i)(even, odd)));
        }
    }
    return PT_ERROR_OK;
}

static int PT_LINE(odd_line)(pt_context *c, const LINE *v, PAIR *out, const PT_REAL *in) {
    for (int32_t k = 0; k < v->n; k++, in += v->in_step) {
        v->a[k] = (PAIR){*in, 0};
    }
    const PAIR *x = v->a;
    PT_TRY(PT_LINE(transform)(c, v->t, v->n, &x, v->a, v->b));
    PT_LINE(put)(v, out, 0, (PAIR){x[0].re, 0});
    for (int32_t k = 1; 2 * k < v->n; k++) {
        PT_LINE(put)(v, out, k, x[k]);
    }
    return PT_ERROR_OK;
}

// The way back. The imaginary parts of the first coefficient, and of the middle one, do not count.
static int PT_LINE(even_back)(pt_context *c, const LINE *v, PT_REAL *out, const PAIR *in) {
    const int32_t n = v->n / 2;
    const PT_REAL first = in[0].re, last = in[n * v->in_step].re;
    v->a[0] = (PAIR){first + last, last - first};
    for (int32_t k = 1; 2 * k <= n; k++) {
        const PAIR x = in[k * v->in_step];
        const PAIR mirror = PT_LINE(conjugate)(in[(n - k) * v->in_step]);
        const PAIR even = PT_LINE(plus)(x, mirror);
        const PAIR odd = PT_LINE(times)(PT_LINE(minus)(x, mirror),
                                        PT_LINE(conjugate)(PT_LINE(twiddle)(v->t, k)));
        v->a[k] = PT_LINE(conjugate)(PT_LINE(plus_i)(even, odd));
        v->a[n - k] = PT_LINE(minus_i)(even, odd);
    }
    const PAIR *z = v->a;
    PT_TRY(PT_LINE(transform)(c, v->t, n, &z, v->a, v->b));
    for (int32_t k = 0; k < n; k++, out += 2 * v->out_step) {
        out[0] = z[k].re * v->scale;
        out[v->out_step] = -z[k].im * v->scale;
    }
    return PT_ERROR_OK;
}

static int PT_LINE(odd_back)(pt_context *c, const LINE *v, PT_REAL *out, const PAIR *in) {
    v->a[0] = (PAIR){in[0].re, 0};
    for (int32_t k = 1; 2 * k < v->n; k++) {
        in += v->in_step;
        v->a[k] = PT_LINE(conjugate)(*in);
        v->a[v->n - k] = *in;
    }
    const PAIR *x = v->a;
    PT_TRY(PT_LINE(transform)(c, v->t, v->n, &x, v->a, v->b));
    for (int32_t k = 0; k < v->n; k++, out += v->out_step) {
        *out = x[k].re * v->scale;
    }
    return PT_ERROR_OK;
}

// ---- all lines along a dim

// The transform that a pass makes: lines are real before FFT_FORTH and behind FFT_BACK.
static int PT_LINE(run_pass)(pt_context *c, const pass *f, pt_walk *w) {
    const int32_t n = f->n;
    PAIR *room = (PAIR *)(void *)f->room;
    PT_TRY(pt_count_product(c, n, PT_ELEMENT_STEPS));
    const TABLE t = PT_LINE(make_table)(room, n);
    const int32_t pairs = points_of(f->kind, n);
    LINE v = {.t = &t,
              .a = room + t.entries,
              .b = room + t.entries + pairs,
              .n = n,
              .inverse = f->inverse,
              .half = f->half,
              .scale = (PT_REAL)1,
              .in_step = f->in_step,
              .out_step = f->out_step};
    if (f->divide) {
        v.scale = (PT_REAL)1 / (f->root ? PT_SQRT((PT_REAL)f->divide) : (PT_REAL)f->divide);
    }
    do {
        for (int32_t i = 0; i < w->n; i++) {
            const int32_t to = w->offset[0] + i * w->strides[0][0];
            const int32_t from = w->offset[1] + i * w->strides[1][0];
            PT_TRY(pt_count_product(c, n, 2));
            if (f->kind == FFT_COMPLEX) {
                PT_TRY(
                    PT_LINE(complex_line)(c, &v, (PAIR *)f->out + to, (const PAIR *)f->in + from));
            } else if (f->kind == FFT_FORTH) {
                PT_TRY((n % 2 ? PT_LINE(odd_line) : PT_LINE(even_line))(
                    c, &v, (PAIR *)f->out + to, (const PT_REAL *)f->in + from));
            } else {
                PT_TRY((n % 2 ? PT_LINE(odd_back) : PT_LINE(even_back))(
                    c, &v, (PT_REAL *)f->out + to, (const PAIR *)f->in + from));
            }
        }
    } while (pt_walk_next(c, w));
    return w->error;
}

#undef PAIR
#undef TABLE
#undef STAGE
#undef LINE
#undef STAGE_OF
