// aten::convolution with up to three spatial dims, in any dim order. A slice of the output at one
// depth is a sum of 2-d convolutions of slices of the input, one for each tap along the depth.
#include "core/generated/operator_arguments.h"
#include "portable/convolution.h"
#include "portable/copy.h"

// The functions are not inlined, so that their stack frames are not live together.
#define NOINLINE __attribute__((noinline))

// A plane (channel, height, width) of sums at one depth; steps count elements.
typedef struct slice {
    char *data;
    uint8_t dtype;
    int32_t channel_step, y_step, x_step;
} slice;

typedef struct volume {
    pt_aten_convolution taps; // the 2-d convolution of one tap of one volume of the batch
    const char *in, *weight, *bias;
    int32_t images, channels; // batch size and channels of the output
    slice out;
    slice first; // sums of the first tap, to which the other taps are added: `out`; or scratch,
                 // since float16 and bfloat16 are summed as float32
    slice next;  // sums of another tap, in scratch
} volume;

// Returns the bytes of slices in scratch for an output of these sizes; 0 with one tap along the
// depth.
static uint32_t volume_scratch(const pt_context *c, const pt_ref *args, const int32_t *sizes) {
    const pt_tensor weight = pt_get_tensor(c, args[CONVOLUTION_WEIGHT]);
    const int32_t slice[] = {sizes[1], sizes[3], sizes[4]};
    const uint32_t max = pt_capacity(c, args[CONVOLUTION_OUT]), all = pt_product(slice, 3);
    const uint32_t bytes =
        pt_is_half(weight.dtype) ? 2 * (uint32_t)sizeof(float) : pt_element_size(weight.dtype);
    return weight.sizes[2] > 1 ? (all < max ? all : max) * bytes : 0;
}

// ---- check

static int check_volume(pt_context *c, const pt_ref *args) {
    if (pt_get_tensor(c, args[CONVOLUTION_INPUT]).rank != 5) {
        return pt_aten_convolution_out.check(c, args);
    }
    int32_t sizes[5];
    PT_TRY(pt_check_convolution(c, args, sizes));
    pt_request_scratch(c, volume_scratch(c, args, sizes));
    return PT_ERROR_OK;
}

// ---- run

// Reads a call. Scratch contains a slice in the order (channel, height, width); two for float16 and
// bfloat16.
NOINLINE static int read_volume(pt_context *c, const pt_ref *args, volume *u) {
    pt_aten_convolution *v = &u->taps;
    void *scratch;
    const uint32_t bytes = volume_scratch(c, args, pt_get_tensor(c, args[CONVOLUTION_OUT]).sizes);
    PT_TRY(pt_get_scratch(c, bytes, &scratch));
    u->images = 0;
    if (!pt_read_convolution(c, args, pt_get_bool(c, args[CONVOLUTION_TRANSPOSED]), v)) {
        return PT_ERROR_OK;
    }
    u->images = v->batch;
    u->in = v->in;
    u->weight = v->weight;
    u->bias = v->bias;
    u->channels = v->groups * v->out_channels;
    u->out = (slice){v->out, v->dtype, v->out_channel_step, v->axes[PT_AXIS_HEIGHT].out_step,
                     v->axes[PT_AXIS_WIDTH].out_step};
    const int32_t width = v->axes[PT_AXIS_WIDTH].out;
    u->next = (slice){scratch, v->dtype, v->axes[PT_AXIS_HEIGHT].out * width, width, 1};
    u->first = u->out;
    if (pt_is_half(v->dtype) && bytes) {
        u->next.dtype = PT_DTYPE_FLOAT;
        u->first = u->next;
        u->first.data += bytes / 2;
    }
    v->batch = 1;
    return PT_ERROR_OK;
}

static void conv3d_add_row(const slice *to, const slice *from, const pt_walk *w) {
    const int32_t to_step = w->strides[0][0], from_step = w->strides[1][0];
    int32_t i = w->offset[0], j = w->offset[1];
    if (to->dtype == PT_DTYPE_FLOAT) {
        float *sum = (float *)(void *)to->data + i;
        const float *more = (const float *)(const void *)from->data + j;
        for (int32_t n = w->n; n > 0; n--, sum += to_step, more += from_step) {
            *sum += *more;
        }
        return;
    }
    const pt_tensor sums = {.data = to->data, .dtype = to->dtype};
    const pt_tensor more = {.data = from->data, .dtype = from->dtype};
    for (int32_t n = w->n; n > 0; n--, i += to_step, j += from_step) {
        pt_add_element(&sums, i, &more, j);
    }
}

static void round_row(const slice *to, const slice *from, const pt_walk *w) {
    int32_t i = w->offset[0], j = w->offset[1];
    for (int32_t n = w->n; n > 0; n--, i += w->strides[0][0], j += w->strides[1][0]) {
        pt_convert_element(to->data, i, to->dtype, from->data, j, from->dtype);
    }
}

// Applies a function to the rows of two slices.
NOINLINE static int for_rows(pt_context *c, const volume *u, const slice *to, const slice *from,
                             void (*row)(const slice *, const slice *, const pt_walk *)) {
    pt_walk w = {
        .rank = 3,
        .operands = 2,
        .sizes = {u->channels, u->taps.axes[PT_AXIS_HEIGHT].out, u->taps.axes[PT_AXIS_WIDTH].out},
        .strides = {{to->channel_step, to->y_step, to->x_step},
                    {from->channel_step, from->y_step, from->x_step}}};
    pt_walk_start(&w);
    do {
        row(to, from, &w);
    } while (pt_walk_next(c, &w));
    return w.error;
}

NOINLINE static int run_tap(pt_context *c, volume *u, const slice *to) {
    pt_aten_convolution *v = &u->taps;
    v->out = to->data;
    v->to_float = to->dtype != v->dtype;
    v->out_channel_step = to->channel_step;
    v->axes[PT_AXIS_HEIGHT].out_step = to->y_step;
    v->axes[PT_AXIS_WIDTH].out_step = to->x_step;
    return pt_convolve_plane(c, v);
}

// Computes the output slice at depth `z`, from element `in` of the input on, to element `out`.
static int run_slice(pt_context *c, volume *u, int32_t z, int32_t in, int32_t out) {
    pt_aten_convolution *v = &u->taps;
    const pt_axis *depth = &v->axes[PT_AXIS_DEPTH];
    const int32_t size = (int32_t)pt_element_size(v->dtype), in_channels = v->in_channels;
    slice to = u->out;
    to.data += out * size;
    const slice first = u->first.data == u->out.data ? to : u->first;
    pt_segment s;
    PT_TRY(pt_count_work(c, depth->kernel));
    pt_find_taps(v, PT_AXIS_DEPTH, z, &s);
    if (s.taps == 0) { // no tap reaches the input: the output is only the bias
        v->in_channels = 0;
    }
    for (int32_t k = 0; k == 0 || k < s.taps; k++) {
        v->in = u->in + (in + (s.in + k * s.in_step) * depth->in_step) * size;
        v->weight = u->weight + (s.kernel + k * s.kernel_step) * depth->kernel_step * size;
        v->bias = k == 0 ? u->bias : NULL;
        PT_TRY(run_tap(c, u, k == 0 ? &first : &u->next));
        if (k > 0) {
            PT_TRY(for_rows(c, u, &first, &u->next, conv3d_add_row));
        }
    }
    v->in_channels = in_channels;
    return first.data == to.data ? PT_ERROR_OK : for_rows(c, u, &to, &first, round_row);
}

static int run_volume(pt_context *c, const pt_ref *args) {
    volume u;
    if (pt_get_tensor(c, args[CONVOLUTION_INPUT]).rank != 5) {
        return pt_aten_convolution_out.run(c, args);
    }
    PT_TRY(read_volume(c, args, &u));
    for (int32_t n = 0; n < u.images; n++) {
        for (int32_t z = 0; z < u.taps.axes[PT_AXIS_DEPTH].out; z++) {
            PT_TRY(run_slice(c, &u, z, n * u.taps.in_batch_step,
                             n * u.taps.out_batch_step + z * u.taps.axes[PT_AXIS_DEPTH].out_step));
        }
    }
    return PT_ERROR_OK;
}

const pt_kernel pt_volume_convolution_out = PT_KERNEL(check_volume, run_volume);
