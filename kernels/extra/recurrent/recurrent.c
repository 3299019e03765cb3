// picotorch::gru and picotorch::lstm: one direction of one layer over all steps of a sequence.
//
// Tensors are float32. Each operation is rounded as in a program with an instruction for it, so
// that the bytes are equal. Weights may be int8 with a scale for each row; a row is summed, and the
// sum is multiplied by the scale. h_n and c_n contain the state between the steps.
#include "core/generated/operator_arguments.h"
#include "portable/dtype_access.h"
#include "portable/float_math.h"
#include "portable/products.h"
#include <string.h>

enum {
    GRU_GATES = 3,
    LSTM_GATES = 4,
    // Offsets from the argument of weights to the arguments of their bias and scales.
    BIAS_OF = GRU_BIAS_IH - GRU_WEIGHT_IH,
    SCALES_OF = GRU_SCALE_IH - GRU_WEIGHT_IH,
    MAX_EMPTY_STEPS = 1 << 16,
    MAX_ROWS = 4, // rows of int8 weights that are computed together
    MAX_WIDTH = PT_POLL_WORK / MAX_ROWS,
};

// The differences between both operators: the number of gates and states, and the positions of
// arguments. Other arguments have equal positions.
typedef struct kind {
    uint8_t gates, states, first_state, output;
} kind;

static const kind gru = {GRU_GATES, 1, GRU_HX, GRU_OUTPUT};
static const kind lstm = {LSTM_GATES, 2, LSTM_HX, LSTM_OUTPUT};

// Checks that a tensor is float32, or int8 if it is a weight with scales.
static int recurrent_check_tensor(pt_context *c, const pt_ref *args, uint32_t i) {
    const pt_tensor t = pt_get_tensor(c, args[i]);
    const bool has_scales =
        (i == GRU_WEIGHT_IH || i == GRU_WEIGHT_HH) && !pt_is_none(args[i + SCALES_OF]);
    if (t.dtype != (has_scales ? PT_DTYPE_CHAR : PT_DTYPE_FLOAT)) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED,
                       "a recurrent layer takes float32, and int8 weights that have scales");
    }
    if ((t.flags & PT_VALUE_CONTIGUOUS) == 0) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "a recurrent layer needs contiguous tensors");
    }
    return PT_ERROR_OK;
}

static bool recurrent_is_matrix(const pt_tensor *t, int32_t rows, int32_t columns) {
    return t->rank == 2 && t->sizes[0] == rows && t->sizes[1] == columns;
}

static int check_weights(pt_context *c, const pt_ref *args, const pt_tensor *input, int32_t gates) {
    const pt_tensor weight_ih = pt_get_tensor(c, args[GRU_WEIGHT_IH]);
    const pt_tensor weight_hh = pt_get_tensor(c, args[GRU_WEIGHT_HH]);
    const int32_t rows = weight_ih.rank == 2 ? weight_ih.sizes[0] : -1;
    if (rows < 0 || rows % gates != 0 || input->rank != 3 ||
        !recurrent_is_matrix(&weight_ih, rows, input->sizes[2]) ||
        !recurrent_is_matrix(&weight_hh, rows, rows / gates)) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT,
                       "the weights do not fit the input and each other");
    }
    if (weight_ih.dtype == PT_DTYPE_CHAR && weight_ih.sizes[1] > MAX_WIDTH) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "an input of int8 weights has too many features");
    }
    for (uint32_t i = GRU_BIAS_IH; i <= GRU_SCALE_HH; i++) {
        if (pt_is_none(args[i])) {
            continue;
        }
        const pt_tensor t = pt_get_tensor(c, args[i]);
        if (t.rank != 1 || t.sizes[0] != rows) {
            return pt_fail(c, PT_ERROR_INVALID_ARGUMENT,
                           "a bias or scale does not fit the weights");
        }
    }
    return PT_ERROR_OK;
}

// Returns the bytes of the products of all gates for one step: the products with the input, and
// with the state.
static uint32_t layer_scratch(const kind *k, int32_t batch, int32_t hidden) {
    const int32_t sizes[] = {2 * k->gates, batch, hidden, sizeof(float)};
    return pt_product(sizes, 4);
}

static int check_layer(pt_context *c, const pt_ref *args, const kind *k) {
    const pt_tensor input = pt_get_tensor(c, args[GRU_INPUT]);
    for (uint32_t i = 0; i < (uint32_t)k->output + 1 + k->states; i++) {
        const bool is_flag = i >= GRU_BATCH_FIRST && i <= GRU_SEQUENCE;
        if (!is_flag && !pt_is_none(args[i])) {
            PT_TRY(recurrent_check_tensor(c, args, i));
        }
    }
    PT_TRY(check_weights(c, args, &input, k->gates));
    const bool batch_first = pt_get_bool(c, args[GRU_BATCH_FIRST]);
    const int32_t batch = input.sizes[batch_first ? 0 : 1];
    const int32_t hidden = pt_get_tensor(c, args[GRU_WEIGHT_HH]).sizes[1];
    for (uint32_t i = 0; i < k->states; i++) {
        const pt_ref initial = args[k->first_state + i];
        if (!pt_is_none(initial)) {
            const pt_tensor state = pt_get_tensor(c, initial);
            if (!recurrent_is_matrix(&state, batch, hidden)) {
                return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the state does not fit the layer");
            }
        }
    }
    const int32_t state[] = {batch, hidden};
    for (uint32_t i = 0; i < k->states; i++) {
        PT_TRY(pt_expect_sizes(c, args[k->output + 1 + i], 2, state));
    }
    pt_request_scratch(c, layer_scratch(k, batch, hidden));
    const int32_t steps = input.sizes[batch_first ? 1 : 0];
    if (steps > MAX_EMPTY_STEPS && steps > pt_numel(&input)) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "the input has too many steps without elements");
    }
    const int32_t kept = pt_get_bool(c, args[GRU_SEQUENCE]) ? steps : 0;
    const int32_t sizes[] = {batch_first ? batch : kept, batch_first ? kept : batch, hidden};
    return pt_expect_sizes(c, args[k->output], 3, sizes);
}

// ---- run

// The products of all gates with the input or the state: for each of `batch` rows of `in`, `step`
// elements apart, the weight times the row, plus the bias.
typedef struct gates {
    pt_products p;      // its input is set later
    const float *scale; // NULL for float32 weights
} gates;

static gates get_gates(pt_context *c, const pt_ref *args, uint32_t i, int32_t batch, int32_t step,
                       float *out) {
    const pt_tensor weight = pt_get_tensor(c, args[i]);
    const pt_ref bias = args[i + BIAS_OF], scale = args[i + SCALES_OF];
    const int32_t rows = weight.sizes[0], width = weight.sizes[1];
    return (gates){.p = {.a = weight.data,
                         .bias = pt_is_none(bias) ? NULL : pt_get_data(c, bias),
                         .out = out,
                         .rows = rows,
                         .a_row = width,
                         .out_row = 1,
                         .lines = {1, 0, 0},
                         .columns = {batch, step, rows},
                         .taps = {1, 1, width},
                         .a_step = {0, 0, 1},
                         .b_step = {0, 0, 1}},
                   .scale = pt_is_none(scale) ? NULL : pt_get_data(c, scale)};
}

// Multiplies `rows` (a constant) rows of int8 weights by one row of the input.
static inline __attribute__((always_inline)) void
sum_int8(const gates *g, int32_t row, const float *in, float *out, const int rows) {
    const int32_t width = g->p.taps[2];
    const int8_t *weight = (const int8_t *)g->p.a + row * width;
    float sums[MAX_ROWS] = {0};
    for (int32_t k = 0; k < width; k++) {
#pragma GCC unroll 4
        for (int i = 0; i < rows; i++) {
            sums[i] += (float)weight[i * width + k] * in[k];
        }
    }
    for (int i = 0; i < rows; i++) {
        const float *bias = g->p.bias;
        out[row + i] = sums[i] * g->scale[row + i] + (bias ? bias[row + i] : 0);
    }
}

static int sum_gates(pt_context *c, gates *g, const float *in) {
    if (!g->scale) {
        g->p.b = in;
        return pt_sum_products(c, &g->p, PT_DTYPE_FLOAT);
    }
    const int32_t rows = g->p.rows;
    for (int32_t n = 0; n < g->p.columns.length; n++) {
        float *out = (float *)g->p.out + n * rows;
        int32_t row = 0;
        for (; row + MAX_ROWS <= rows; row += MAX_ROWS) {
            PT_TRY(pt_count_work(c, MAX_ROWS * (1 + g->p.taps[2])));
            sum_int8(g, row, in, out, MAX_ROWS);
        }
        for (; row < rows; row++) {
            PT_TRY(pt_count_work(c, 1 + g->p.taps[2]));
            sum_int8(g, row, in, out, 1);
        }
        in += g->p.columns.b_step;
    }
    return PT_ERROR_OK;
}

// Computes one element of the batch from the products x with the input and y with the state, in
// PyTorch's order of gates r, z, n.
static void step_gru(const float *x, const float *y, float *h, int32_t hidden) {
    for (int32_t i = 0; i < hidden; i++) {
        const float r = pt_sigmoidf(x[i] + y[i]);
        const float z = pt_sigmoidf(x[hidden + i] + y[hidden + i]);
        const float n = pt_tanhf(x[2 * hidden + i] + y[2 * hidden + i] * r);
        h[i] = (h[i] - n) * z + n;
    }
}

// Computes one element of the batch as step_gru does, with the gates i, f, g, o.
static void step_lstm(const float *x, const float *y, float *h, float *cell, int32_t hidden) {
    for (int32_t i = 0; i < hidden; i++) {
        const float in = pt_sigmoidf(y[i] + x[i]);
        const float forget = pt_sigmoidf(y[hidden + i] + x[hidden + i]);
        const float g = pt_tanhf(y[2 * hidden + i] + x[2 * hidden + i]);
        const float out = pt_sigmoidf(y[3 * hidden + i] + x[3 * hidden + i]);
        cell[i] = forget * cell[i] + in * g;
        h[i] = out * pt_tanhf(cell[i]);
    }
}

static float *begin_state(pt_context *c, pt_ref initial, pt_ref state_arg) {
    const pt_tensor state = pt_get_tensor(c, state_arg);
    if (pt_is_none(initial)) {
        memset(state.data, 0, pt_nbytes(&state));
    } else {
        memmove(state.data, pt_get_data(c, initial), pt_nbytes(&state));
    }
    return state.data;
}

static int run_layer(pt_context *c, const pt_ref *args, const kind *k) {
    const pt_tensor input = pt_get_tensor(c, args[GRU_INPUT]);
    const bool batch_first = pt_get_bool(c, args[GRU_BATCH_FIRST]);
    const bool reverse = pt_get_bool(c, args[GRU_REVERSE]);
    const bool sequence = pt_get_bool(c, args[GRU_SEQUENCE]);
    const int32_t batch = input.sizes[batch_first ? 0 : 1];
    const int32_t steps = input.sizes[batch_first ? 1 : 0], width = input.sizes[2];
    const int32_t hidden = pt_get_tensor(c, args[GRU_WEIGHT_HH]).sizes[1];
    if (batch == 0 || hidden == 0) {
        return PT_ERROR_OK;
    }
    // Elements between neighbours in the batch, and between steps, in units of `width`.
    const int32_t row = batch_first ? steps : 1, step = batch_first ? 1 : batch;
    float *output = pt_get_data(c, args[k->output]);
    float *h = begin_state(c, args[k->first_state], args[k->output + 1]);
    float *cell = k->states < 2 ? NULL : begin_state(c, args[LSTM_CX], args[LSTM_C_N]);
    void *scratch;
    PT_TRY(pt_get_scratch(c, layer_scratch(k, batch, hidden), &scratch));
    float *x = scratch;
    const int32_t rows = k->gates * hidden;
    float *y = x + batch * rows;
    gates by_input = get_gates(c, args, GRU_WEIGHT_IH, batch, row * width, x);
    gates by_state = get_gates(c, args, GRU_WEIGHT_HH, batch, hidden, y);
    for (int32_t i = 0; i < steps; i++) {
        const int32_t t = reverse ? steps - 1 - i : i;
        PT_TRY(sum_gates(c, &by_input, (const float *)input.data + t * step * width));
        PT_TRY(sum_gates(c, &by_state, h));
        for (int32_t n = 0; n < batch; n++) {
            float *own = h + n * hidden;
            PT_TRY(pt_count_elements(c, rows));
            if (cell) {
                step_lstm(x + n * rows, y + n * rows, own, cell + n * hidden, hidden);
            } else {
                step_gru(x + n * rows, y + n * rows, own, hidden);
            }
            if (sequence) {
                memcpy(output + (t * step + n * row) * hidden, own,
                       (uint32_t)hidden * sizeof(float));
            }
        }
    }
    return PT_ERROR_OK;
}

static int check_gru(pt_context *c, const pt_ref *args) {
    return check_layer(c, args, &gru);
}

static int run_gru(pt_context *c, const pt_ref *args) {
    return run_layer(c, args, &gru);
}

static int check_lstm(pt_context *c, const pt_ref *args) {
    return check_layer(c, args, &lstm);
}

static int run_lstm(pt_context *c, const pt_ref *args) {
    return run_layer(c, args, &lstm);
}

const pt_kernel pt_picotorch_gru_out = PT_KERNEL(check_gru, run_gru);
const pt_kernel pt_picotorch_lstm_out = PT_KERNEL(check_lstm, run_lstm);
