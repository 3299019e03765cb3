"""Define torchvision's operators for object detectors, and a fixture of them.

If torchvision is missing, or cannot load its library, kernels in numpy replace its operators.
"""

import torch
from models.zoo.registry import NOT_CORE, Data, Function, Model, fixture
from picotorch.export import torchvision_operators
from support.regions import kept_boxes, pooled_regions

SCHEMAS = {
    "nms": "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "roi_align": "(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, "
    "SymInt pooled_width, int sampling_ratio, bool aligned) -> Tensor",
}


def define() -> None:
    """Define the operators if no library has defined them, and what their export needs."""
    kernels = {"nms": kept_boxes, "roi_align": pooled_regions}
    for name, schema in SCHEMAS.items():
        if not hasattr(torch.ops.torchvision, name):
            operator = f"torchvision::{name}"
            torch.library.define(operator, schema)
            torch.library.impl(operator, "CPU", _in_numpy(kernels[name]))
            if name == "roi_align":
                torch.library.register_fake(operator, _empty_regions)
    torchvision_operators.register(torch)


def _in_numpy(kernel):
    def run(first, second, *numbers):
        return torch.from_numpy(kernel(first.numpy(), second.numpy(), *numbers))

    return run


def _empty_regions(input, rois, scale, height, width, ratio, aligned):
    return input.new_empty((rois.shape[0], input.shape[1], height, width))


@fixture
def detections(data: Data) -> Model:
    """Boxes that overlap no better one, their scores, and regions of an image: torchvision::nms and
    torchvision::roi_align, which ExecuTorch has no kernels for."""
    define()

    def detect(image, boxes, scores):
        kept = torch.ops.torchvision.nms(boxes, scores, 0.3)
        rois = torch.cat([torch.zeros(len(boxes), 1), boxes], 1)
        return (
            kept,
            scores[kept],
            torch.ops.torchvision.roi_align(image, rois, 0.5, 2, 3, 2, False),
            torch.ops.torchvision.roi_align(image, rois, 1.0, 2, 2, -1, True),
        )

    corners = data.floats(12, 2).abs() * 3
    return Model(
        Function(detect),
        (
            data.floats(1, 3, 8, 8),
            torch.cat([corners, corners + 1 + data.floats(12, 2).abs() * 2], 1),
            data.floats(12),
        ),
        edge=NOT_CORE,
        executorch_fails=True,
    )
