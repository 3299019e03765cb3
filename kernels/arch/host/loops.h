// The loops for one kind of vectors: included for each, with
//
//     PT_LOOP(name)     the name of a function or type of the kind
//     PT_TARGET         the attribute by which it may take these vectors
//     PT_WIDENS         1 if values of patches have 16 bits and their offset is in them; else they
//                       are bytes, and products with the offset are added to the sums

#define PT_ADD_PRODUCTS(sum, a, b) (sum = PT_LOOP(add_products)(sum, a, b))
#define PT_LANES ((int32_t)PT_LOOP(LANES))

#if PT_WIDENS
static PT_TARGET int32_t PT_LOOP(dot)(const int8_t *x, int32_t offset, const int8_t *w,
                                      int32_t stride, int32_t n, int32_t sums[4]) {
    const PT_LOOP(values) offsets = PT_LOOP(spread)(offset);
    const PT_LOOP(totals) zero = PT_LOOP(zero)();
    PT_LOOP(totals) s0 = zero, s1 = zero, s2 = zero, s3 = zero;
    int32_t k = 0, all[8];
    for (; n - k >= PT_LANES; k += PT_LANES, w += PT_LANES) {
        PT_LOOP(values) values = PT_LOOP(add)(PT_LOOP(widen)(x + k), offsets);
        PT_ADD_PRODUCTS(s0, values, PT_LOOP(widen)(w));
        PT_ADD_PRODUCTS(s1, values, PT_LOOP(widen)(w + stride));
        PT_ADD_PRODUCTS(s2, values, PT_LOOP(widen)(w + 2 * stride));
        PT_ADD_PRODUCTS(s3, values, PT_LOOP(widen)(w + 3 * stride));
    }
    PT_LOOP(sum_lanes)(s0, s1, s2, s3, zero, zero, zero, zero, all);
    for (int32_t j = 0; j < 4; j++) {
        sums[j] = pt_add_int32(sums[j], all[j]);
    }
    return k;
}
#endif

// A patch as loops read it, with zero points up to `padded`.
static PT_TARGET void PT_LOOP(take_patch)(const pt_layer *layer, const int8_t *patch,
                                          int32_t padded, PT_LOOP(value) * to) {
    const int32_t offset = PT_WIDENS ? layer->offset : 0;
    const PT_LOOP(values) offsets = PT_LOOP(spread)(offset);
    int32_t k = 0;
    for (; layer->depth - k >= PT_LANES; k += PT_LANES) {
        PT_LOOP(store)(to + k, PT_LOOP(add)(PT_LOOP(widen)(patch + k), offsets));
    }
    for (; k < padded; k++) {
        int32_t value = k < layer->depth ? patch[k] : -layer->offset;
        to[k] = (PT_LOOP(value))(value + offset);
    }
}

// Products of the offset: to be added to the sums of four channels, whose values are bytes.
static inline PT_TARGET void PT_LOOP(multiply_offset)(int32_t offset, const int8_t *const rows[4],
                                                      int32_t padded, int32_t sums[4]) {
    const PT_LOOP(values) ones = PT_LOOP(spread)(1);
    for (int32_t j = 0; j < 4; j++) {
        const PT_LOOP(totals) zero = PT_LOOP(zero)();
        PT_LOOP(totals) s = zero;
        int32_t all[8];
        for (int32_t k = 0; k < padded; k += PT_LANES) {
            PT_ADD_PRODUCTS(s, PT_LOOP(widen)(rows[j] + k), ones);
        }
        PT_LOOP(sum_lanes)(s, zero, zero, zero, zero, zero, zero, zero, all);
        sums[j] = offset * all[0];
    }
}

// Sums of two patches and four channels.
static inline PT_TARGET void PT_LOOP(multiply_block)(const PT_LOOP(value) * x0,
                                                     const PT_LOOP(value) * x1,
                                                     const int8_t *const rows[4], int32_t padded,
                                                     int32_t sums[8]) {
    const int8_t *w0 = rows[0], *w1 = rows[1], *w2 = rows[2], *w3 = rows[3];
    PT_LOOP(totals) s0 = PT_LOOP(zero)(), s1 = s0, s2 = s0, s3 = s0;
    PT_LOOP(totals) t0 = s0, t1 = s0, t2 = s0, t3 = s0;
    for (int32_t k = 0; k < padded; k += PT_LANES) {
        PT_LOOP(values) a = PT_LOOP(load)(x0 + k), b = PT_LOOP(load)(x1 + k);
        PT_LOOP(values) w = PT_LOOP(widen)(w0 + k);
        PT_ADD_PRODUCTS(s0, a, w);
        PT_ADD_PRODUCTS(t0, b, w);
        w = PT_LOOP(widen)(w1 + k);
        PT_ADD_PRODUCTS(s1, a, w);
        PT_ADD_PRODUCTS(t1, b, w);
        w = PT_LOOP(widen)(w2 + k);
        PT_ADD_PRODUCTS(s2, a, w);
        PT_ADD_PRODUCTS(t2, b, w);
        w = PT_LOOP(widen)(w3 + k);
        PT_ADD_PRODUCTS(s3, a, w);
        PT_ADD_PRODUCTS(t3, b, w);
    }
    PT_LOOP(sum_lanes)(s0, s1, s2, s3, t0, t1, t2, t3, sums);
}

static PT_TARGET void PT_LOOP(multiply)(const pt_layer *layer, const int8_t *patches,
                                        int32_t stride, int32_t n, int8_t *out) {
    PT_LOOP(value) taken[PT_ROOM];
    int8_t last[PT_ROOM / 2];
    int32_t padded = padded_depth(layer->depth, PT_LANES), some;
    const bool fast = pt_scales_by_vectors(&layer->output, layer->channels);
    const int32_t inside = copy_last_rows(layer, padded, last);
    for (; n > 0; n -= some, patches += some * stride, out += some * layer->out_stride) {
        some = patches_of(padded, n);
        for (int32_t i = 0; i < some; i++) {
            PT_LOOP(take_patch)(layer, patches + i * stride, padded, taken + i * padded);
        }
        for (int32_t o = 0; o < layer->channels; o += 4) {
            int32_t channels = layer->channels - o < 4 ? layer->channels - o : 4;
            int32_t sums[8], of_offset[4];
            const int8_t *rows[4];
            for (int32_t j = 0; j < 4; j++) {
                int32_t row = o + (j < channels ? j : 0);
                rows[j] = row < inside ? layer->weights + row * layer->depth
                                       : last + (row - inside) * padded;
            }
            if (!PT_WIDENS) {
                PT_LOOP(multiply_offset)(layer->offset, rows, padded, of_offset);
            }
            PT_LOOP(scales) scales;
            bool whole = fast && channels == 4;
            if (whole) {
                scales = PT_LOOP(scales_of_4)(&layer->output, o);
            }
            for (int32_t i = 0; i < some; i += 2) {
                const PT_LOOP(value) *x = taken + i * padded;
                int32_t both = i + 1 < some;
                PT_LOOP(multiply_block)(x, x + both * padded, rows, padded, sums);
                for (int32_t j = 0; j < 8 && !PT_WIDENS; j++) {
                    sums[j] = pt_add_int32(sums[j], of_offset[j % 4]);
                }
                int8_t *to = out + i * layer->out_stride + o;
                if (whole) {
                    PT_LOOP(finish_4_and_4)(&scales, sums, to, both ? to + layer->out_stride : to);
                } else {
                    finish_channels(layer, o, channels, sums, to);
                    finish_channels(layer, o, channels, sums + 4 * both,
                                    to + both * layer->out_stride);
                }
            }
        }
    }
}

#undef PT_ADD_PRODUCTS
#undef PT_LANES
#undef PT_LOOP
#undef PT_TARGET
#undef PT_WIDENS
