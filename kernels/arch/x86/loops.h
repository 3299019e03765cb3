// The loops for one kind of vectors: included for each, with
//
//     PT_LOOP(name)     the name of a function
//     PT_TARGET         the attribute by which it may take these vectors
//     PT_LANES          values of 16 bits in a vector
//     pt_vector         a vector, of values of 16 or of 32 bits
//     PT_LOAD(p), PT_STORE(p, v)
//     PT_WIDEN(p)       PT_LANES values of 8 bits as 16 bits
//     PT_SPREAD(x)      x in all 16 bits
//     PT_ADD16, PT_ADD32
//     PT_PRODUCTS(a, b) of values of 16 bits, two neighbours added
//     sum_lanes         of four vectors, and four more, the sum of each
//     finisher, begin_finish, finish
//                       from sums of two patches and four channels to outputs

#define PT_ADD_PRODUCTS(sum, a, b) (sum = PT_ADD32(sum, PT_PRODUCTS(a, b)))

static PT_TARGET int32_t PT_LOOP(dot)(const int8_t *x, int32_t offset, const int8_t *w,
                                      int32_t stride, int32_t n, int32_t sums[4]) {
    pt_vector offsets = PT_SPREAD((int16_t)offset), zero = PT_SPREAD(0);
    pt_vector s0 = zero, s1 = zero, s2 = zero, s3 = zero;
    int32_t k = 0, all[8];
    for (; n - k >= PT_LANES; k += PT_LANES, w += PT_LANES) {
        pt_vector values = PT_ADD16(PT_WIDEN(x + k), offsets);
        PT_ADD_PRODUCTS(s0, values, PT_WIDEN(w));
        PT_ADD_PRODUCTS(s1, values, PT_WIDEN(w + stride));
        PT_ADD_PRODUCTS(s2, values, PT_WIDEN(w + 2 * stride));
        PT_ADD_PRODUCTS(s3, values, PT_WIDEN(w + 3 * stride));
    }
    PT_LOOP(sum_lanes)(s0, s1, s2, s3, zero, zero, zero, zero, all);
    for (int32_t j = 0; j < 4; j++) {
        sums[j] = pt_add_int32(sums[j], all[j]);
    }
    return k;
}

// A patch in 16 bits, its offset added, and zeros up to `padded`.
static PT_TARGET void PT_LOOP(widen_patch)(const pt_layer *layer, const int8_t *patch,
                                           int32_t padded, int16_t *to) {
    pt_vector offsets = PT_SPREAD((int16_t)layer->offset);
    int32_t k = 0;
    for (; layer->depth - k >= PT_LANES; k += PT_LANES) {
        PT_STORE(to + k, PT_ADD16(PT_WIDEN(patch + k), offsets));
    }
    for (; k < padded; k++) {
        to[k] = k < layer->depth ? (int16_t)(patch[k] + layer->offset) : 0;
    }
}

// Sums of two patches and four channels.
static inline PT_TARGET void PT_LOOP(multiply_block)(const int16_t *x0, const int16_t *x1,
                                                     const int8_t *const rows[4], int32_t padded,
                                                     int32_t sums[8]) {
    const int8_t *w0 = rows[0], *w1 = rows[1], *w2 = rows[2], *w3 = rows[3];
    pt_vector s0 = PT_SPREAD(0), s1 = s0, s2 = s0, s3 = s0, t0 = s0, t1 = s0, t2 = s0, t3 = s0;
    for (int32_t k = 0; k < padded; k += PT_LANES) {
        pt_vector a = PT_LOAD(x0 + k), b = PT_LOAD(x1 + k), w = PT_WIDEN(w0 + k);
        PT_ADD_PRODUCTS(s0, a, w);
        PT_ADD_PRODUCTS(t0, b, w);
        w = PT_WIDEN(w1 + k);
        PT_ADD_PRODUCTS(s1, a, w);
        PT_ADD_PRODUCTS(t1, b, w);
        w = PT_WIDEN(w2 + k);
        PT_ADD_PRODUCTS(s2, a, w);
        PT_ADD_PRODUCTS(t2, b, w);
        w = PT_WIDEN(w3 + k);
        PT_ADD_PRODUCTS(s3, a, w);
        PT_ADD_PRODUCTS(t3, b, w);
    }
    PT_LOOP(sum_lanes)(s0, s1, s2, s3, t0, t1, t2, t3, sums);
}

static PT_TARGET void PT_LOOP(multiply)(const pt_layer *layer, const int8_t *patches,
                                        int32_t stride, int32_t n, int8_t *out) {
    int16_t widened[PT_ROOM];
    int8_t last[PT_ROOM / 2];
    int32_t padded = padded_depth(layer->depth, PT_LANES), some;
    const bool fast = pt_scales_by_vectors(&layer->output, layer->channels);
    const int32_t inside = copy_last_rows(layer, padded, last);
    for (; n > 0; n -= some, patches += some * stride, out += some * layer->out_stride) {
        some = patches_of(padded, n);
        for (int32_t i = 0; i < some; i++) {
            PT_LOOP(widen_patch)(layer, patches + i * stride, padded, widened + i * padded);
        }
        for (int32_t o = 0; o < layer->channels; o += 4) {
            int32_t channels = layer->channels - o < 4 ? layer->channels - o : 4, sums[8];
            const int8_t *rows[4];
            for (int32_t j = 0; j < 4; j++) {
                int32_t row = o + (j < channels ? j : 0);
                rows[j] = row < inside ? layer->weights + row * layer->depth
                                       : last + (row - inside) * padded;
            }
            PT_LOOP(finisher) f;
            bool whole = fast && channels == 4;
            if (whole) {
                f = PT_LOOP(begin_finish)(layer, o);
            }
            for (int32_t i = 0; i < some; i += 2) {
                const int16_t *x = widened + i * padded;
                int32_t both = i + 1 < some;
                PT_LOOP(multiply_block)(x, x + both * padded, rows, padded, sums);
                int8_t *to = out + i * layer->out_stride + o;
                if (whole) {
                    PT_LOOP(finish)(&f, sums, to, both ? to + layer->out_stride : to);
                } else {
                    finish_channels(layer, o, channels, sums, to);
                    finish_channels(layer, o, channels, sums + 4 * both,
                                    to + both * layer->out_stride);
                }
            }
        }
    }
}
