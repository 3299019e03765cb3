"""Compute torchvision's operators nms and roi_align in numpy, in the arithmetic of its kernels for a
CPU."""

import numpy as np

F = np.float32


def overlap(a, b):
    """Return the intersection over union of two boxes."""
    width, height = np.maximum(np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2]), F(0))
    both = width * height
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (a, b)]
    with np.errstate(invalid="ignore"):
        return both / (areas[0] + areas[1] - both)


def kept_boxes(boxes, scores, maximum):
    """Return the indices of the boxes that torchvision's nms keeps."""
    left, kept = np.argsort(-scores, kind="stable").tolist(), []
    while left:
        kept.append(left.pop(0))
        left = [one for one in left if not float(overlap(boxes[kept[-1]], boxes[one])) > maximum]
    return np.array(kept, "int64")


def sample(image, y, x):
    """Return an interpolated element of an image, 0 outside."""
    height, width = image.shape
    if y < -1 or y > height or x < -1 or x > width:
        return F(0)
    places = []
    for at, size in ((y, height), (x, width)):
        at = min(max(at, F(0)), F(size - 1))
        low = int(at)
        places.append((low, min(low + 1, size - 1), at - F(low)))
    (top, bottom, down), (left, right, on) = places
    up, before = F(1) - down, F(1) - on
    return (up * before * image[top, left] + up * on * image[top, right]
            + down * before * image[bottom, left] + down * on * image[bottom, right])


def bin_of(image, start, size, samples, bin):
    """Return the mean of the samples in a bin."""
    y, x = ([start[d] + F(bin[d]) * size[d] + (F(i) + F(0.5)) * size[d] / F(samples[d])
             for i in range(samples[d])] for d in (0, 1))
    total = F(0)
    for one in y:
        for other in x:
            total += sample(image, one, other)
    return total / F(max(len(y) * len(x), 1))


def pooled_regions(input, rois, scale, height, width, ratio, aligned):
    """Compute torchvision's roi_align."""
    bins = height, width
    pooled = np.zeros((len(rois), input.shape[1], *bins), "float32")
    for roi, to in zip(rois, pooled, strict=True):
        start, end = (box[::-1] * F(scale) - F(0.5 if aligned else 0) for box in (roi[1:3], roi[3:]))
        size = (end - start if aligned else np.maximum(end - start, F(1))) / np.array(bins, F)
        samples = [ratio if ratio > 0 else max(int(np.ceil(one)), 0) for one in size]
        for image, mean in zip(input[int(roi[0])], to, strict=True):
            for bin in np.ndindex(bins):
                mean[bin] = bin_of(image, start, size, samples, bin)
    return pooled
