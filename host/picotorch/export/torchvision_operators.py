"""Add to torchvision's operators nms and roi_align what exporters need.

These are variants with outputs, and for nms a bound of the boxes: without it no memory is planned.
"""

from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

_OPERATORS = {
    "nms": "(Tensor dets, Tensor scores, float iou_threshold, *, Tensor(a!) out) -> Tensor(a!)",
    "roi_align": "(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, "
                 "SymInt pooled_width, int sampling_ratio, bool aligned, *, Tensor(a!) out) "
                 "-> Tensor(a!)",
}


def register(torch: ModuleType) -> None:
    """Register the variants of operators that are defined, as an import of torchvision does, once."""
    for name, schema in _OPERATORS.items():
        operator = getattr(torch.ops.torchvision, name, None)
        if operator is not None and "out" not in operator.overloads():
            torch.library.define(f"torchvision::{name}.out", schema)
            if name == "nms":
                torch.library.register_fake("torchvision::nms", _nms_for(torch), allow_override=True)


def _nms_for(torch: ModuleType) -> Callable[..., Any]:
    def nms(dets: "Tensor", scores: "Tensor", iou_threshold: float) -> "Tensor":
        boxes = dets.shape[0]
        maximum = boxes if isinstance(boxes, int) else None
        kept = torch.library.get_ctx().new_dynamic_size(min=0, max=maximum)
        torch._check(kept <= boxes)
        return dets.new_empty(kept, dtype=torch.int64)
    return nms
