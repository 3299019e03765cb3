// torchvision operators for object detection, in float32: nms and roi_align.
#include "core/generated/operator_arguments.h"
#include "portable/arguments.h"
#include "portable/compare.h"
#include "portable/dtype_access.h"
#include <string.h>

// ---- nms: (dets, scores, iou_threshold, out): the indices of the boxes (x1, y1, x2, y2) that
// overlap no box of a higher score by more than the threshold, in the order of the scores. The run
// sets the output's size.

// Returns the bytes of the indices of all boxes.
static uint32_t nms_scratch(const pt_tensor *scores) {
    return (uint32_t)scores->sizes[0] * (uint32_t)sizeof(int64_t);
}

static int check_nms(pt_context *c, const pt_ref *args) {
    const pt_tensor boxes = pt_get_tensor(c, args[NMS_DETS]);
    const pt_tensor scores = pt_get_tensor(c, args[NMS_SCORES]);
    const pt_tensor out = pt_get_tensor(c, args[NMS_OUT]);
    if (boxes.dtype != PT_DTYPE_FLOAT || scores.dtype != PT_DTYPE_FLOAT) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "nms supports float32 only");
    }
    if (boxes.rank != 2 || boxes.sizes[1] != 4 || scores.rank != 1 ||
        scores.sizes[0] != boxes.sizes[0]) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "there must be 4 numbers and a score a box");
    }
    if (!(boxes.flags & PT_VALUE_CONTIGUOUS)) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "the boxes must be contiguous");
    }
    if (out.rank != 1 || out.dtype != PT_DTYPE_LONG) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the output must be int64 of 1 dim");
    }
    pt_request_scratch(c, nms_scratch(&scores));
    return PT_ERROR_OK;
}

// Returns a if either is a NaN, as torchvision does.
static float detection_max(float a, float b) {
    return a < b ? b : a;
}

static float detection_min(float a, float b) {
    return b < a ? b : a;
}

static float area(const float *box) {
    return (box[2] - box[0]) * (box[3] - box[1]);
}

// Returns the intersection over union of two boxes.
static float intersection_over_union(const float *a, const float *b) {
    const float width = detection_max(0, detection_min(a[2], b[2]) - detection_max(a[0], b[0]));
    const float height = detection_max(0, detection_min(a[3], b[3]) - detection_max(a[1], b[1]));
    const float both = width * height;
    return both / (area(a) + area(b) - both);
}

static int run_nms(pt_context *c, const pt_ref *args) {
    const pt_tensor scores = pt_get_tensor(c, args[NMS_SCORES]);
    const float *boxes = pt_get_data(c, args[NMS_DETS]);
    const double max = pt_get_double(c, args[NMS_IOU_THRESHOLD]);
    int32_t left = scores.sizes[0], kept = 0;
    void *scratch;
    PT_TRY(pt_get_scratch(c, nms_scratch(&scores), &scratch));
    int64_t *const order = scratch;
    PT_TRY(pt_order(c, &scores, true, order));
    while (kept < left) { // keep the first box, and remove the boxes that overlap it
        const float *box = boxes + order[kept] * 4;
        int32_t end = ++kept;
        for (int32_t i = kept; i < left; i++) {
            PT_TRY(pt_count_elements(c, 1));
            if (!((double)intersection_over_union(box, boxes + order[i] * 4) > max)) {
                order[end++] = order[i];
            }
        }
        left = end;
    }
    PT_TRY(pt_expect_sizes(c, args[NMS_OUT], 1, &kept));
    memcpy(pt_get_data(c, args[NMS_OUT]), order, (uint32_t)kept * sizeof(int64_t));
    return PT_ERROR_OK;
}

const pt_kernel pt_torchvision_nms_out = PT_KERNEL(check_nms, run_nms);

// ---- roi_align: (input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio,
// aligned, out): divides each region (image, x1, y1, x2, y2) into bins, and returns the mean of
// interpolated samples in each bin.

static int check_roi_align(pt_context *c, const pt_ref *args) {
    const pt_tensor input = pt_get_tensor(c, args[ROI_ALIGN_INPUT]);
    const pt_tensor rois = pt_get_tensor(c, args[ROI_ALIGN_ROIS]);
    const int64_t height = pt_get_int(c, args[ROI_ALIGN_POOLED_HEIGHT]);
    const int64_t width = pt_get_int(c, args[ROI_ALIGN_POOLED_WIDTH]);
    if (input.dtype != PT_DTYPE_FLOAT || rois.dtype != PT_DTYPE_FLOAT ||
        pt_get_tensor(c, args[ROI_ALIGN_OUT]).dtype != PT_DTYPE_FLOAT) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "roi_align supports float32 only");
    }
    if (input.rank != 4 || rois.rank != 2 || rois.sizes[1] != 5) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT,
                       "the input must have 4 dims, the regions 5 numbers");
    }
    if (height < 1 || width < 1 || height > INT32_MAX || width > INT32_MAX) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the pooled sizes are not in 1..2^31 - 1");
    }
    const int32_t sizes[] = {rois.sizes[0], input.sizes[1], (int32_t)height, (int32_t)width};
    PT_TRY(pt_expect_sizes(c, args[ROI_ALIGN_OUT], 4, sizes));
    if (!(input.flags & rois.flags & pt_get_tensor(c, args[ROI_ALIGN_OUT]).flags &
          PT_VALUE_CONTIGUOUS)) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "the tensors must be contiguous");
    }
    return PT_ERROR_OK;
}

// A region along one dim: where it starts, the size of a bin, and the samples in each bin.
typedef struct axis {
    float start, bin;
    int32_t samples;
} axis;

// A sample between two neighbouring elements: their indices, and the weight of the second.
typedef struct sample {
    int32_t low, high;
    float weight;
} sample;

enum { MAX_SAMPLES = 1 << 15 }; // samples of a bin along one dim

static int detection_read_axis(pt_context *c, const pt_ref *args, float from, float to,
                               int32_t bins, axis *a) {
    const float scale = (float)pt_get_double(c, args[ROI_ALIGN_SPATIAL_SCALE]);
    const bool aligned = pt_get_bool(c, args[ROI_ALIGN_ALIGNED]);
    const float offset = aligned ? 0.5f : 0.0f;
    const int64_t ratio = pt_get_int(c, args[ROI_ALIGN_SAMPLING_RATIO]);
    a->start = from * scale - offset;
    float size = to * scale - offset - a->start;
    size = aligned ? size : detection_max(size, 1);
    a->bin = size / (float)bins;
    const float samples = ratio > 0 ? (float)ratio : a->bin;
    if (!(samples <= MAX_SAMPLES)) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "a bin of a region has too many samples");
    }
    a->samples = samples > 0 ? (int32_t)samples : 0;
    a->samples += samples > (float)a->samples;
    return PT_ERROR_OK;
}

// Computes sample i of a bin; returns false if it lies outside of the image.
static bool place_sample(const axis *a, int32_t bin, int32_t i, int32_t size, sample *s) {
    float at = a->start + (float)bin * a->bin + ((float)i + 0.5f) * a->bin / (float)a->samples;
    if (!(at >= -1.0f && at <= (float)size)) {
        return false;
    }
    at = at <= 0 ? 0 : at;
    s->low = (int32_t)at;
    s->high = s->low + 1;
    if (s->low >= size - 1) {
        s->low = s->high = size - 1;
        at = (float)s->low;
    }
    s->weight = at - (float)s->low;
    return true;
}

static int mean_of_bin(pt_context *c, const float *image, const axis *axes, const int32_t *bin,
                       const int32_t *size, float *mean) {
    float sum = 0;
    sample y, x;
    for (int32_t i = 0; i < axes[0].samples; i++) {
        const bool inside = place_sample(&axes[0], bin[0], i, size[0], &y);
        for (int32_t j = 0; j < axes[1].samples; j++) {
            PT_TRY(pt_count_elements(c, 1));
            if (inside && place_sample(&axes[1], bin[1], j, size[1], &x)) {
                const float *low = image + y.low * size[1], *high = image + y.high * size[1];
                const float up = 1 - y.weight, left = 1 - x.weight;
                sum += up * left * low[x.low] + up * x.weight * low[x.high] +
                       y.weight * left * high[x.low] + y.weight * x.weight * high[x.high];
            }
        }
    }
    const int32_t count = axes[0].samples * axes[1].samples;
    *mean = sum / (float)(count > 1 ? count : 1);
    return PT_ERROR_OK;
}

static int run_roi_align(pt_context *c, const pt_ref *args) {
    const pt_tensor input = pt_get_tensor(c, args[ROI_ALIGN_INPUT]);
    const pt_tensor out = pt_get_tensor(c, args[ROI_ALIGN_OUT]);
    const float *roi = pt_get_data(c, args[ROI_ALIGN_ROIS]);
    const int32_t *size = input.sizes + 2, *bins = out.sizes + 2;
    const int32_t pixels = pt_numel(&input) == 0 ? 0 : size[0] * size[1];
    float *to = out.data;
    if (pt_numel(&out) == 0) {
        return PT_ERROR_OK;
    }
    for (int32_t n = 0; n < out.sizes[0]; n++, roi += 5) {
        axis axes[2];
        if (pixels == 0 || !(roi[0] > -1 && roi[0] < (float)input.sizes[0])) {
            return pt_fail(c, PT_ERROR_INVALID_ARGUMENT,
                           "a region is in an image that is not there");
        }
        const float *image = (const float *)input.data + (int32_t)roi[0] * input.sizes[1] * pixels;
        PT_TRY(detection_read_axis(c, args, roi[2], roi[4], bins[0], &axes[0]));
        PT_TRY(detection_read_axis(c, args, roi[1], roi[3], bins[1], &axes[1]));
        for (int32_t i = 0; i < input.sizes[1]; i++, image += pixels) {
            for (int32_t bin[2] = {0, 0}; bin[0] < bins[0]; bin[0]++) {
                for (bin[1] = 0; bin[1] < bins[1]; bin[1]++) {
                    PT_TRY(pt_count_elements(c, 1));
                    PT_TRY(mean_of_bin(c, image, axes, bin, size, to++));
                }
            }
        }
    }
    return PT_ERROR_OK;
}

const pt_kernel pt_torchvision_roi_align_out = PT_KERNEL(check_roi_align, run_roi_align);
