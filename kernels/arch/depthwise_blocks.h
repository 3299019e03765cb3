// Rows of outputs by four, and two, and what is left, for instruction sets whose loops are
// assembler.

// Arguments of the loops besides the channels, in the order that they read them.
typedef struct pt_blocks {
    int32_t step, second, third; // bytes from the first output of four to the others
    const int8_t *end;           // where the output after the last four of a channel would go
    int32_t two;                 // true when two more follow,
    int32_t last;                // bytes from the first to the second
    int32_t plane_gap, out_gap;  // bytes from where a channel ends to where the next starts
    const struct pt_depthwise_channel *channels_end;
} pt_blocks;

PT_OFFSET(pt_blocks, step, 0);
PT_OFFSET(pt_blocks, second, 4);
PT_OFFSET(pt_blocks, third, 8);
PT_OFFSET(pt_blocks, end, 12);
PT_OFFSET(pt_blocks, two, 16);
PT_OFFSET(pt_blocks, last, 20);
PT_OFFSET(pt_blocks, plane_gap, 24);
PT_OFFSET(pt_blocks, out_gap, 28);
PT_OFFSET(pt_blocks, channels_end, 32);

#if defined(PT_LOOPS_DSP)
#include "dsp/depthwise.h"
#else
#include "v7m/depthwise.h"
#endif

typedef void pt_multiply_blocks(const pt_depthwise_channel *channels, const pt_plane *const *rows,
                                int8_t *out, pt_blocks *blocks);

typedef struct pt_depthwise_plan {
    pt_multiply_blocks *multiply;
    pt_blocks whole, rest;
    int32_t n_whole; // outputs of `whole`, without the two that may follow
} pt_depthwise_plan;

// Outputs are stored from the last to the first. One that is not wanted goes to the place of the
// last that is, before that.
static inline void pt_plan_rows(pt_depthwise_plan *plan, const pt_depthwise_channel *channels,
                                const pt_depthwise_row *row) {
    int32_t step = row->step, rest = row->n & 3, whole = row->n - rest;
    int32_t plane = row->plane * (int32_t)sizeof(pt_plane);
    int32_t four = 4 * row->stride * (int32_t)sizeof(pt_plane);
    bool two = whole && (rest == 1 || rest == 2);
    int32_t first = rest > 1 ? step : 0, second = rest > 2 ? 2 * step : first;
    plan->multiply = row->stride == 1 ? pt_multiply_at_stride_1 : pt_multiply_at_stride_2;
    plan->n_whole = whole;
    plan->whole = (pt_blocks){.step = step,
                              .second = 2 * step,
                              .third = 3 * step,
                              .two = two,
                              .last = first,
                              .plane_gap = plane - whole / 4 * four -
                                           (two ? pt_bytes_of_two(row->stride) : 0),
                              .out_gap = 1 - whole * step,
                              .channels_end = channels + row->channels};
    plan->rest = (pt_blocks){.step = first,
                             .second = second,
                             .third = second,
                             .two = 0,
                             .plane_gap = plane - four,
                             .out_gap = 1 - 4 * first,
                             .channels_end = rest && !two ? channels + row->channels : NULL};
}

static inline void pt_multiply_rows(pt_depthwise_plan *plan, pt_depthwise_channel *channels,
                                    const pt_depthwise_row *row) {
    int32_t whole = plan->n_whole;
    pt_set_gaps(channels, row);
    if (whole) {
        plan->whole.end = row->out + whole * row->step;
        plan->multiply(channels, row->rows, row->out, &plan->whole);
    }
    if (plan->rest.channels_end) {
        int32_t done = whole * row->stride;
        const pt_plane *rows[3] = {row->rows[0] + done, row->rows[1] + done, row->rows[2] + done};
        int8_t *out = row->out + whole * row->step;
        plan->rest.end = out + 4 * plan->rest.step;
        plan->multiply(channels, rows, out, &plan->rest);
    }
}
