"""Define oracles of torchvision's operators."""

import numpy as np
from support.regions import kept_boxes, pooled_regions

from .sample import Sample, oracle


@oracle("torchvision::nms.out")
def nms(draw, operator):
    n, maximum = draw.int(0, 12), draw.pick(0.0, 0.3, 0.5, 1.0)
    start, size = draw.random.integers(0, 8, (n, 2)), draw.random.integers(0, 8, (n, 2))
    boxes = np.concatenate([start, start + size], 1).astype("float32") / np.float32(4)
    scores = draw.random.integers(0, 6, n).astype("float32")
    return Sample([draw.contiguous(boxes), scores, maximum], kept_boxes(boxes, scores, maximum))


@oracle("torchvision::roi_align.out")
def roi_align(draw, operator):
    images, n = draw.int(1, 2), draw.int(0, 3)
    input = draw.small((images, draw.int(1, 2), draw.int(1, 6), draw.int(1, 6)), "float32")
    start, size = draw.random.integers(-8, 20, (n, 2)), draw.random.integers(-2, 30, (n, 2))
    boxes = np.concatenate([start, start + size], 1) / 4
    rois = np.concatenate([draw.random.integers(0, images, (n, 1)), boxes], 1).astype("float32")
    scale, bins = draw.pick(1.0, 0.5, 0.3), (draw.int(1, 3), draw.int(1, 3))
    ratio, aligned = draw.pick(-1, 0, 1, 2), draw.chance()
    numbers = scale, *bins, ratio, aligned
    return Sample([input, rois, *numbers], pooled_regions(input, rois, *numbers), 1e-6, 1e-6,
                  "contiguous")
