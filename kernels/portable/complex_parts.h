// Arithmetic of complex numbers in one type, PT_REAL: complex.c includes this once for float32 and
// once for float64. PT_WHOLE is the dtype whose parts are of that type.
//
// Products and quotients are computed as PyTorch does, so what is infinite becomes NaN in the same
// positions: a real operand is one with an imaginary part of 0.

#define NUMBER PT_PARTS(number)

typedef struct NUMBER {
    PT_REAL re, im;
} NUMBER;

static NUMBER PT_PARTS(load)(const pt_tensor *t, int32_t i) {
    if (t->dtype == PT_WHOLE) {
        return ((const NUMBER *)t->data)[i];
    }
    if (!pt_is_complex(t->dtype)) {
        return (NUMBER){PT_LOAD(t->data, i, t->dtype), 0};
    }
    const uint8_t part = pt_part_dtype(t->dtype);
    return (NUMBER){PT_LOAD(t->data, 2 * i, part), PT_LOAD(t->data, 2 * i + 1, part)};
}

// Stores a number; a real tensor takes only its real part.
static void PT_PARTS(store)(const pt_tensor *t, int32_t i, NUMBER v) {
    if (t->dtype == PT_WHOLE) {
        ((NUMBER *)t->data)[i] = v;
    } else if (!pt_is_complex(t->dtype)) {
        PT_STORE(t->data, i, t->dtype, v.re);
    } else {
        const uint8_t part = pt_part_dtype(t->dtype);
        PT_STORE(t->data, 2 * i, part, v.re);
        PT_STORE(t->data, 2 * i + 1, part, v.im);
    }
}

static NUMBER PT_PARTS(times)(NUMBER x, NUMBER y) {
    return (NUMBER){x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re};
}

// Smith's method: no square of a part overflows.
static NUMBER PT_PARTS(divide)(NUMBER x, NUMBER y) {
    const PT_REAL re = PT_FABS(y.re), im = PT_FABS(y.im);
    if (re == 0 && im == 0) {
        return (NUMBER){x.re / re, x.im / im};
    }
    if (re >= im) {
        const PT_REAL ratio = y.im / y.re, scale = 1 / (y.re + y.im * ratio);
        return (NUMBER){(x.re + x.im * ratio) * scale, (x.im - x.re * ratio) * scale};
    }
    const PT_REAL ratio = y.re / y.im, scale = 1 / (y.re * ratio + y.im);
    return (NUMBER){(x.re * ratio + x.im) * scale, (x.im * ratio - x.re) * scale};
}

// Infinite if a part is, even where the other is NaN. Squares of parts that are scaled by a power
// of 2 neither overflow nor vanish.
static PT_REAL PT_PARTS(size)(NUMBER x) {
    const PT_REAL re = PT_FABS(x.re), im = PT_FABS(x.im);
    const PT_REAL most = re > im ? re : im, infinity = (PT_REAL)__builtin_inf();
    if (re == infinity || im == infinity) {
        return infinity;
    }
    const PT_REAL scale = most > PT_LARGE ? 1 / PT_SCALE : most < 1 / PT_LARGE ? PT_SCALE : 1;
    const PT_REAL a = re * scale, b = im * scale;
    return PT_SQRT(a * a + b * b) / scale;
}

static NUMBER PT_PARTS(compute)(operation op, NUMBER x, NUMBER y, PT_REAL alpha) {
    switch (op) {
    case MULTIPLY:
        return PT_PARTS(times)(x, y);
    case DIVIDE:
        return PT_PARTS(divide)(x, y);
    default:
        y = PT_PARTS(times)((NUMBER){alpha, 0}, y);
        return (NUMBER){x.re + y.re, x.im + y.im};
    }
}

NOINLINE int PT_PARTS(walk_two)(pt_context *c, const operands *o) {
    const PT_REAL alpha = (PT_REAL)o->alpha;
    pt_walk w;
    pt_walk_tensors(&w, 3, (const pt_tensor *const[]){&o->out, &o->a, &o->b});
    do {
        for (int32_t i = 0; i < w.n; i++) {
            const NUMBER x = PT_PARTS(load)(&o->a, w.offset[1] + i * w.strides[1][0]);
            const NUMBER y = PT_PARTS(load)(&o->b, w.offset[2] + i * w.strides[2][0]);
            if (is_predicate(o->op)) {
                const bool equal = x.re == y.re && x.im == y.im;
                pt_store_int(o->out.data, w.offset[0] + i, o->out.dtype, equal == (o->op == EQUAL));
            } else {
                PT_PARTS(store)
                (&o->out, w.offset[0] + i, PT_PARTS(compute)(o->op, x, y, alpha));
            }
        }
    } while (pt_walk_next(c, &w));
    return w.error;
}

NOINLINE int PT_PARTS(walk_one)(pt_context *c, operation op, const pt_tensor *out,
                                const pt_tensor *in) {
    pt_walk w;
    pt_walk_tensors(&w, 2, (const pt_tensor *const[]){out, in});
    do {
        for (int32_t i = 0; i < w.n; i++) {
            NUMBER x = PT_PARTS(load)(in, w.offset[1] + i * w.strides[1][0]);
            if (op == NEGATE) {
                x = (NUMBER){-x.re, -x.im};
            } else if (op == SIZE) {
                PT_TRY(pt_count_work(c, STEPS_OF_SIZE));
                x.re = PT_PARTS(size)(x);
            }
            PT_PARTS(store)(out, w.offset[0] + i, x);
        }
    } while (pt_walk_next(c, &w));
    return w.error;
}

// out (m, n) = a (m, k) times b (k, n), each from an element on.
NOINLINE int PT_PARTS(multiply)(pt_context *c, const product *p) {
    for (int32_t i = 0; i < p->m * p->n; i++) {
        int32_t at = p->a_at + i / p->n * p->k, b_at = p->b_at + i % p->n;
        NUMBER sum = {0, 0};
        for (int32_t left = p->k; left > 0; left -= PT_PIECE) {
            const int32_t some = left < PT_PIECE ? left : PT_PIECE;
            PT_TRY(pt_count_elements(c, some));
            for (const int32_t end = at + some; at < end; at++, b_at += p->n) {
                const NUMBER y =
                    PT_PARTS(times)(PT_PARTS(load)(&p->a, at), PT_PARTS(load)(&p->b, b_at));
                sum = (NUMBER){sum.re + y.re, sum.im + y.im};
            }
        }
        PT_TRY(pt_count_work(c, 1));
        PT_PARTS(store)(&p->out, p->out_at + i, sum);
    }
    return PT_ERROR_OK;
}

#undef NUMBER
