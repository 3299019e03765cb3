// pixel_shuffle and pixel_unshuffle: channels to positions of an image, and back.
#include "core/generated/operator_arguments.h"
#include "portable/arguments.h"
#include "portable/copy.h"

// (self, factor, out). `many` is the side with factor * factor times as many channels, `large` the
// one with factor times the height and width.
static int read_factor(pt_context *c, pt_ref arg, const pt_tensor *self, int32_t *factor) {
    int64_t value = pt_get_int(c, arg);
    if (self->rank < 3 || self->rank + 2 > PT_MAX_RANK) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the input must have 3 to 14 dims");
    }
    if (value < 1 || value > INT16_MAX) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the factor is out of range");
    }
    *factor = (int32_t)value;
    return PT_ERROR_OK;
}

static int check_shuffled(pt_context *c, const pt_ref *args, bool unshuffles) {
    pt_tensor self = pt_get_tensor(c, args[PIXEL_SHUFFLE_SELF]);
    pt_tensor out = pt_get_tensor(c, args[PIXEL_SHUFFLE_OUT]);
    int32_t r, sizes[PT_MAX_RANK];
    PT_TRY(read_factor(c, args[PIXEL_SHUFFLE_UPSCALE_FACTOR], &self, &r));
    for (uint32_t d = 0; d < self.rank; d++) {
        int32_t factor = d + 3 < self.rank ? 1 : d + 3 == self.rank ? r * r : r;
        bool divides = (d + 3 == self.rank) != unshuffles;
        if (divides ? self.sizes[d] % factor : self.sizes[d] > INT32_MAX / factor) {
            return pt_fail(c, PT_ERROR_INVALID_ARGUMENT,
                           "the factor does not fit the input's sizes");
        }
        sizes[d] = divides ? self.sizes[d] / factor : self.sizes[d] * factor;
    }
    PT_TRY(pt_check_same_dtype(c, &out, &self));
    return pt_expect_sizes(c, args[PIXEL_SHUFFLE_OUT], self.rank, sizes);
}

// Walks (..., channel, row, column, row in a pixel, column in a pixel); operand k is `many`.
static void start_pixels(pt_walk *w, uint32_t k, const pt_tensor *many, const pt_tensor *large,
                         int32_t r) {
    const uint32_t channel = many->rank - 3u, row = channel + 1, column = channel + 2;
    int32_t *of_many = w->strides[k], *of_large = w->strides[1 - k];
    w->rank = (uint8_t)(many->rank + 2);
    w->operands = 2;
    w->offset[0] = w->offset[1] = 0;
    pt_strides(many, of_many);
    pt_strides(large, of_large);
    for (uint32_t d = 0; d < many->rank; d++) {
        w->sizes[d] = many->sizes[d];
    }
    w->sizes[channel] = large->sizes[channel];
    w->sizes[column + 1] = w->sizes[column + 2] = r;
    of_many[column + 1] = of_many[channel] * r;
    of_many[column + 2] = of_many[channel];
    of_many[channel] *= r * r;
    of_large[column + 1] = of_large[row];
    of_large[column + 2] = of_large[column];
    of_large[row] *= r;
    of_large[column] *= r;
}

static int run_shuffled(pt_context *c, const pt_ref *args, bool unshuffles) {
    pt_tensor self = pt_get_tensor(c, args[PIXEL_SHUFFLE_SELF]);
    pt_tensor out = pt_get_tensor(c, args[PIXEL_SHUFFLE_OUT]);
    int32_t r = (int32_t)pt_get_int(c, args[PIXEL_SHUFFLE_UPSCALE_FACTOR]);
    if (pt_numel(&out) != 0) {
        pt_walk w;
        start_pixels(&w, unshuffles ? 0 : 1, unshuffles ? &out : &self, unshuffles ? &self : &out,
                     r);
        return pt_copy_run(c, &w, &out, &self);
    }
    return PT_ERROR_OK;
}

static int check_shuffle(pt_context *c, const pt_ref *args) {
    return check_shuffled(c, args, false);
}

static int run_shuffle(pt_context *c, const pt_ref *args) {
    return run_shuffled(c, args, false);
}

static int check_unshuffle(pt_context *c, const pt_ref *args) {
    return check_shuffled(c, args, true);
}

static int run_unshuffle(pt_context *c, const pt_ref *args) {
    return run_shuffled(c, args, true);
}

const pt_kernel pt_aten_pixel_shuffle_out = PT_KERNEL(check_shuffle, run_shuffle);
const pt_kernel pt_aten_pixel_unshuffle_out = PT_KERNEL(check_unshuffle, run_unshuffle);
