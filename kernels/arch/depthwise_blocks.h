// Rows of outputs by four or six, and two, and what is left, for instruction sets whose loops are
// assembler.

// Arguments of the loops besides the channels, in the order that they read them.
typedef struct pt_blocks {
    int32_t places[PT_ROW_OUTPUTS - 1]; // bytes from the first output to the others
    const int8_t *end;                  // where the output after the last of a channel would go
    int32_t two;                        // true when two more follow,
    int32_t last;                       // bytes from the first to the second
    int32_t plane_gap, out_gap;         // bytes from where a channel ends to where the next starts
    const struct pt_depthwise_channel *channels_end;
} pt_blocks;

enum { PT_END_OF_PLACES = 4 * (PT_ROW_OUTPUTS - 1) };
PT_OFFSET(pt_blocks, places, 0);
PT_OFFSET(pt_blocks, end, PT_END_OF_PLACES);
PT_OFFSET(pt_blocks, two, PT_END_OF_PLACES + 4);
PT_OFFSET(pt_blocks, last, PT_END_OF_PLACES + 8);
PT_OFFSET(pt_blocks, plane_gap, PT_END_OF_PLACES + 12);
PT_OFFSET(pt_blocks, out_gap, PT_END_OF_PLACES + 16);
PT_OFFSET(pt_blocks, channels_end, PT_END_OF_PLACES + 20);

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
static __attribute__((noinline)) void pt_plan_rows(pt_depthwise_plan *plan,
                                                   const pt_depthwise_channel *channels,
                                                   const pt_depthwise_row *row) {
    int32_t step = row->step, rest = row->n % PT_ROW_OUTPUTS, whole = row->n - rest;
    int32_t plane = row->plane * (int32_t)sizeof(pt_plane);
    int32_t bytes = PT_ROW_OUTPUTS * row->stride * (int32_t)sizeof(pt_plane); // of a block
    bool two = whole && (rest == 1 || rest == 2);
    plan->multiply = row->stride == 1 ? pt_multiply_at_stride_1 : pt_multiply_at_stride_2;
    plan->n_whole = whole;
    plan->whole.two = two;
    plan->whole.last = rest > 1 ? step : 0;
    plan->whole.plane_gap =
        plane - whole / PT_ROW_OUTPUTS * bytes - (two ? pt_bytes_of_two(row->stride) : 0);
    plan->whole.out_gap = 1 - whole * step;
    plan->whole.channels_end = channels + row->channels;
    plan->rest.two = 0;
    plan->rest.plane_gap = plane - bytes;
    plan->rest.channels_end = rest && !two ? channels + row->channels : NULL;
    for (int32_t i = 0, at = step; i < PT_ROW_OUTPUTS - 1; i++, at += step) {
        plan->whole.places[i] = at;
        plan->rest.places[i] = i + 1 < rest ? at : (rest - 1) * step;
    }
    plan->rest.out_gap = 1 - pt_bytes_of_block(&plan->rest);
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
        plan->rest.end = out + pt_bytes_of_block(&plan->rest);
        plan->multiply(channels, rows, out, &plan->rest);
    }
}
