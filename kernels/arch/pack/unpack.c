// Run packed weights of any core in plain C, for builds with PT_ANY_CORE: unpacks them channel by
// channel, or once a layer if the context has memory for it. Also decides which layers of a core
// leave plain weights out of a .ptm file.
#include "arch/pack/pack.h"

#if PT_HAS_ANY_CORE

// ---- the use of packed weights

// True if both weights of a word of the v6m loops are -128.
static bool has_lowest_pair(const pt_gemm_s8 *layer) {
    const int8_t *w = layer->weights;
    for (int32_t o = 0; o < layer->channels; o++, w += layer->depth) {
        for (int32_t k = 0; k + 1 < layer->depth; k += 2) {
            if (w[k] + w[k + 1] == 2 * INT8_MIN) {
                return true;
            }
        }
    }
    return false;
}

pt_packed_use pt_gemm_s8_use(uint8_t core, const pt_gemm_s8 *layer, bool in_rows) {
    const pt_range *range = &layer->output.range;
    int32_t depth = layer->depth;
    bool takes;
    switch (core) {
    case PT_CORE_V6M:
        takes = pt_v6m_uses_packed(depth) && !pt_narrows(range) &&
                range->offset == (int8_t)range->offset && !has_lowest_pair(layer);
        return takes ? PT_USES_PACKED : PT_USES_PLAIN;
    case PT_CORE_DSP:
        takes =
            layer->channels % 2 == 0 && !(in_rows && pt_dsp_prefers_six(depth, layer->channels));
        return takes ? PT_USES_PACKED : PT_USES_BOTH;
    default:
        return PT_USES_BOTH;
    }
}

pt_packed_use pt_rows_use(uint8_t core, const pt_linear *p, bool constant) {
    bool takes = core == PT_CORE_DSP && p->w_offset == 0 && (constant || !p->addends) &&
                 pt_rows_are_fast(p) && pt_packed_outputs(p->outputs) == p->outputs;
    return takes ? PT_USES_PACKED : PT_USES_BOTH;
}

// ---- layers

typedef struct channel {
    int32_t bias, multiplier, shift;
} channel;

static int32_t negative(uint32_t value) {
    return (int32_t)-value;
}

static int32_t half_of(uint32_t value) {
    return (int32_t)value / 2;
}

// Unpacks weights by twos, see v6m/pair_channel.c. Returns the end, and the sum of the weights in
// *sum.
static const uint32_t *unpack_pairs(const uint32_t *words, int32_t depth, int8_t *weights,
                                    uint32_t *sum) {
    for (int32_t k = 0; k < ((depth + 3) & ~3); k += 2, words++) {
        int32_t second = (int16_t)*words, first = (int32_t)(*words - (uint32_t)second) >> 16;
        *sum += (uint32_t)first + (uint32_t)second;
        if (k < depth) {
            weights[k] = (int8_t)first;
        }
        if (k + 1 < depth) {
            weights[k + 1] = (int8_t)second;
        }
    }
    return words;
}

static channel unpack_v6m(const pt_gemm_s8 *layer, int32_t o, int8_t *weights) {
    const uint32_t *words = layer->packed;
    uint32_t sum = 0;
    words = unpack_pairs(words + o * ((layer->depth + 3) / 4 * 2 + 4), layer->depth, weights, &sum);
    return (channel){(int32_t)(words[0] - (uint32_t)layer->offset * sum), (int32_t)words[2],
                     (int32_t)words[1]};
}

static channel unpack_dsp(const pt_gemm_s8 *layer, int32_t o, int8_t *weights) {
    int32_t whole = (layer->depth + 3) & ~3;
    const uint32_t *words = (const uint32_t *)layer->packed + o / 2 * (whole + 8);
    const int16_t *halves = (const int16_t *)(const void *)(words + 2 + o % 2 * 2);
    const uint32_t *behind = words + 2 + whole + o % 2 * 3;
    for (int32_t k = 0; k < layer->depth; k++) {
        weights[k] = (int8_t)(halves[k / 4 * 8 + k % 2 * 2 + k / 2 % 2] / 2);
    }
    return (channel){half_of(words[o % 2]), (int32_t)behind[0], negative(behind[1])};
}

// The DSP layout does not contain the last of an odd number of channels.
static channel unpack(const pt_gemm_s8 *layer, int32_t o, int8_t *weights) {
    const pt_channels *output = &layer->output;
    if (layer->core == PT_CORE_DSP && o == (layer->channels & ~1)) {
        memcpy(weights, layer->weights + o * layer->depth, (size_t)layer->depth);
        return (channel){pt_bias_of(output, o), output->multipliers[o], output->shifts[o]};
    }
    return layer->core == PT_CORE_V6M ? unpack_v6m(layer, o, weights)
                                      : unpack_dsp(layer, o, weights);
}

// The header of an unpacked layer: its key, and the bytes to the next header. Instructions may
// share packed weights, but differ in the last channel or in their offsets.
typedef struct unpacked {
    const void *packed;
    uint32_t instruction, bytes;
} unpacked;

static void unpack_all(pt_gemm_s8 group, int32_t groups, int32_t *bias, int32_t *multipliers,
                       int32_t *shifts, int8_t *weights) {
    group.channels /= groups;
    for (; groups > 0; groups--, pt_skip_channels(&group)) {
        for (int32_t o = 0; o < group.channels; o++, weights += group.depth) {
            channel one = unpack(&group, o, weights);
            *bias++ = one.bias;
            *multipliers++ = one.multiplier;
            *shifts++ = one.shift;
        }
    }
}

void pt_unpack_layer(pt_context *c, pt_gemm_s8 *layer, int32_t groups) {
    const int32_t channels = layer->channels;
    uint64_t bytes = sizeof(unpacked) + (uint64_t)channels * (12 + (uint64_t)layer->depth);
    uint32_t at = 0;
    unpacked *head = (unpacked *)(void *)c->unpacked;
    while (at < c->unpacked_used &&
           (head->packed != layer->packed || head->instruction != c->instruction)) {
        at += head->bytes;
        head = (unpacked *)(void *)(c->unpacked + at);
    }
    bytes = (bytes + 7) & ~(uint64_t)7;
    if (at == c->unpacked_used && c->unpacked_bytes - at < bytes) {
        return;
    }
    int32_t *bias = (int32_t *)(head + 1), *multipliers = bias + channels;
    int32_t *shifts = multipliers + channels;
    int8_t *weights = (int8_t *)(shifts + channels);
    if (at == c->unpacked_used) {
        *head = (unpacked){layer->packed, c->instruction, (uint32_t)bytes};
        c->unpacked_used += (uint32_t)bytes;
        unpack_all(*layer, groups, bias, multipliers, shifts, weights);
    }
    layer->packed = NULL;
    layer->weights = weights;
    layer->output.bias = bias;
    layer->output.multipliers = multipliers;
    layer->output.shifts = shifts;
}

void pt_multiply_unpacked(const pt_gemm_s8 *layer, const int8_t *patches, int32_t stride, int32_t n,
                          int8_t *out) {
    for (int32_t o = 0; o < layer->channels; o++) {
        channel one = unpack(layer, o, layer->unpacked);
        pt_channels output = {&one.bias, &one.multiplier, &one.shift, layer->output.range};
        for (int32_t i = 0; i < n; i++) {
            const int8_t *patch = patches + i * stride;
            uint32_t sum = (uint32_t)one.bias;
            for (int32_t k = 0; k < layer->depth; k++) {
                sum += (uint32_t)((patch[k] + layer->offset) * layer->unpacked[k]);
            }
            out[i * layer->out_stride + o] = pt_finish(&output, 0, (int32_t)sum);
        }
    }
}

// ---- rows

// Adds the products of one input row and four rows that are packed together.
static void unpack_add_products(const int16_t *w, const int8_t *x, int32_t offset, int32_t depth,
                                int32_t sums[4]) {
    for (int32_t k = 0; k < depth; k += 4, x += 4) {
        const int32_t x0 = x[0] + offset, x1 = x[1] + offset;
        const int32_t x2 = x[2] + offset, x3 = x[3] + offset;
        for (int32_t j = 0; j < 4; j++, w += 4) {
            sums[j] += x0 * w[0] + x2 * w[1] + x1 * w[2] + x3 * w[3];
        }
    }
}

bool pt_multiply_row(const pt_linear *p, const int8_t *x, int64_t row_sum, const int8_t *w,
                     int8_t *y, void *scratch) {
    const int16_t *halves = p->packed;
    const int32_t packed = pt_packed_outputs(p->outputs);
    int32_t sums[4];
    (void)scratch;
    if (!halves || !pt_rows_are_fast(p) || row_sum >= PT_BIAS_LIMIT / 2 ||
        row_sum <= -PT_BIAS_LIMIT / 2) {
        return false;
    }
    for (int32_t j = 0; j < p->outputs; j++) {
        int32_t sum = (int32_t)row_sum + (p->addends ? p->addends[j] : 0);
        if (j < packed && j % 4 == 0) {
            memset(sums, 0, sizeof(sums));
            unpack_add_products(halves + j * p->depth, x, p->x_offset, p->depth, sums);
        }
        for (int32_t k = 0; j >= packed && k < p->depth; k++) {
            sum += (x[k] + p->x_offset) * w[j * p->depth + k];
        }
        sum += j < packed ? sums[j % 4] : 0;
        y[j] = pt_to_int8(pt_requantize(sum, p->multiplier, p->shift), &p->range);
    }
    return true;
}

#endif
