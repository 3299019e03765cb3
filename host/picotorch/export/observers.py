"""Make the observers that choose the range of a value from its samples.

min-max is the range of all samples, and percentile the range of the middle ones. mse, the default of
ExecuTorch's flow, is the range with the least squared error of rounding and clamping.

Importing it imports torch.
"""

import dataclasses
from typing import Any

import torch
from torchao.quantization.pt2e.observer import HistogramObserver, MinMaxObserver
from torchao.quantization.pt2e.quantizer import QuantizationSpec

from .observer_names import MIN_MAX, MSE, parse


class _Percentile(HistogramObserver):  # type: ignore[misc]
    """The range without the outer samples, half of them on each side."""

    percent: float

    def _non_linear_param_search(self) -> tuple[torch.Tensor, torch.Tensor]:
        cut = (100 - self.percent) / 200
        shares = torch.cumsum(self.histogram.double(), 0) / self.histogram.sum()
        first = int(torch.searchsorted(shares, cut, right=True))
        last = int(torch.searchsorted(shares, 1 - cut))
        width = (self.max_val - self.min_val) / self.bins
        return self.min_val + width * first, self.min_val + width * (min(last, self.bins - 1) + 1)


def of(text: str) -> Any:
    """Return the class of an observer, as observer_names.parse reads it."""
    name, percent = parse(text)
    if name == MSE:
        return HistogramObserver
    return MinMaxObserver if name == MIN_MAX else type("Percentile", (_Percentile,),
                                                       {"percent": percent})


def observed_by(spec: Any, observer: Any) -> Any:
    """Return the specification of a value with this observer; that of weights unchanged."""
    if isinstance(spec, QuantizationSpec) and spec.observer_or_fake_quant_ctr is HistogramObserver:
        return dataclasses.replace(spec, observer_or_fake_quant_ctr=observer)
    return spec
