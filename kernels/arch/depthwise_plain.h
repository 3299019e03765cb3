// One output after the other.

enum { PT_PLANE_OFFSET = 0 };

// Bias and weights are doubled, for pt_scale.
typedef struct pt_depthwise_channel {
    int32_t bias;
    int32_t weights[3][3];
    int32_t multiplier, right, rounding;
} pt_depthwise_channel;

static inline void pt_set_bias(pt_depthwise_channel *channel, int32_t bias) {
    channel->bias = 2 * bias;
}

static inline void pt_set_weights(pt_depthwise_channel *channel, int32_t row, int32_t w0,
                                  int32_t w1, int32_t w2) {
    channel->weights[row][0] = 2 * w0;
    channel->weights[row][1] = 2 * w1;
    channel->weights[row][2] = 2 * w2;
}

static inline void pt_set_scale(pt_depthwise_channel *channel, int32_t multiplier, int32_t right,
                                int32_t rounding) {
    channel->multiplier = multiplier;
    channel->right = right;
    channel->rounding = rounding;
}

static inline void pt_widen(const pt_pixels *pixels, const int8_t *in, pt_plane *to) {
    for (int32_t n = pixels->n; n > 0; n--, in += pixels->step, to++) {
        for (int32_t c = 0; c < 4; c++) {
            to[c * pixels->plane] = in[c];
        }
    }
}

static inline void pt_multiply_row(const pt_depthwise_channel *channel, const pt_depthwise_row *row,
                                   int32_t c) {
    int32_t skip = c * row->plane;
    const pt_plane *x0 = row->rows[0] + skip, *x1 = row->rows[1] + skip, *x2 = row->rows[2] + skip;
    const int32_t *w = channel->weights[0];
    int8_t *out = row->out + c;
    for (int32_t n = row->n; n > 0; n--, out += row->step) {
        int32_t sum = channel->bias;
        sum += x0[0] * w[0] + x0[1] * w[1] + x0[2] * w[2];
        sum += x1[0] * w[3] + x1[1] * w[4] + x1[2] * w[5];
        sum += x2[0] * w[6] + x2[1] * w[7] + x2[2] * w[8];
        *out = (int8_t)pt_saturate_int8(
            pt_scale(sum, channel->multiplier, channel->right, channel->rounding));
        x0 += row->stride, x1 += row->stride, x2 += row->stride;
    }
}

typedef struct pt_depthwise_plan {
    int32_t nothing;
} pt_depthwise_plan;

static inline void pt_plan_rows(pt_depthwise_plan *plan, const pt_depthwise_channel *channels,
                                const pt_depthwise_row *row) {
    (void)plan, (void)channels, (void)row;
}

static inline void pt_multiply_rows(pt_depthwise_plan *plan, pt_depthwise_channel *channels,
                                    const pt_depthwise_row *row) {
    (void)plan;
    for (int32_t c = 0; c < row->channels; c++) {
        pt_multiply_row(&channels[c], row, c);
    }
}
