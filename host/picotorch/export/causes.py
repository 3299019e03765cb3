"""Find why an int8 layer is poor: the one rounding that accounts for its error, and what it rounds.

The graph in which values are rounded to integers runs with all roundings off, with all of them on, and
with each by itself. A rounding that alone makes half of the error, or more, is the cause.

Importing it imports torch.
"""

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import torch

from .lower_float import path_of, value_name
from .passes import masks
from .report import BELOW_FAKE, POOR
from .trial import Site, Trial, is_quantization

_ENOUGH = 10 ** ((POOR + BELOW_FAKE) / 10)  # of a value to its error, squares
_SHARE = 0.5  # of the error of all roundings, that one makes by itself
_WIDER = 4  # two bits of precision lost
_OUTLIER = 8  # three bits: a channel's range beside the median of all
_GAP = 16  # between the range with a constant and without it
_FEW = 16  # samples of calibration
_NEAR = 0.1  # relative, of what a constant is with values added to it
_ATEN = torch.ops.aten
_CARRIERS = {*masks.CARRIERS, *masks.CHOICES, _ATEN.lift_fresh_copy.default, _ATEN.detach.default}


class Cause(NamedTuple):
    """The cause of a poor layer, and the remedy.

    what: a clause. layers: the layers to keep in float, if that helps. remedy: a further remedy, "" for
    none.
    """

    what: str
    layers: tuple[str, ...]
    remedy: str = ""


def find(fake_quantized: torch.fx.GraphModule, reference: torch.fx.GraphModule,
         arguments: tuple[Any, ...], below: dict[str, str], poor: Iterable[str],
         calibration: list[list[Any]]) -> dict[str, Cause]:
    """Return the cause for each of these values.

    fake_quantized, reference: graphs of lowering.Lowered. arguments: of forward. below: {value:
    operator} of values that are less exact than in `fake_quantized`. poor: other values. calibration:
    the samples, lists of arrays, whose ranges the scales come from.
    """
    trial = Trial(fake_quantized, reference, arguments)
    return {name: _of_kernel(trial, name, operator) for name, operator in below.items()
            if name in trial.nodes} | {
        name: _cause(trial, name, calibration) for name in poor if name in trial.nodes}


def _of_kernel(trial: Trial, name: str, operator: str) -> Cause:
    """Word the cause of a layer that its kernel computes less exactly than its roundings make it."""
    node = trial.nodes[name]
    leading = trial.ancestors([node])
    for source in (one for one in trial.graph.graph.nodes if one in leading):
        constant = _constant(trial, source) if any(
            site.value is source and node in site.users() for site in trial.sites) else None
        if constant is not None:
            return Cause(f"{_label(trial, source)} has a mask or constants of about {constant:.3g}, "
                         "far outside its other values", (_label(trial, node),))
    return Cause(f"{operator.removesuffix('.out')} rounds more than its output, there or in a layer "
                 "before it, the cause was not determined", (_label(trial, node),))


def _cause(trial: Trial, name: str, calibration: list[list[Any]]) -> Cause:
    node = trial.nodes[name]
    sites = trial.sites_of(node)
    total, noises = trial.noise(node, sites), [trial.noise(node, [site]) for site in sites]
    alone = [site for site, noise in zip(sites, noises, strict=True) if noise >= _SHARE * total > 0]
    loudest = sorted(range(len(sites)), key=noises.__getitem__, reverse=True)
    layers = _int8_layers(trial, _to_keep(trial, node, [sites[i] for i in loudest], len(alone)), node)
    if not alone:
        return Cause("the cause was not determined, no single rounding makes half of the error",
                     layers or (_label(trial, node),))
    first = alone[0]
    if first.value is None:
        return Cause(_of_weights(trial, first), layers)
    return _of_value(trial, first, layers, calibration)


def _to_keep(trial: Trial, node: torch.fx.Node, loudest: list[Site], count: int) -> list[Site]:
    """Return the loudest roundings without which a value is exact enough, and at least `count`."""
    signal = float((trial.floats[node].double() ** 2).nan_to_num().sum())
    while count < len(loudest) and _ENOUGH * trial.noise(node, loudest[count:]) >= signal:
        count += 1
    return loudest[:count]


def _int8_layers(trial: Trial, sites: list[Site], node: torch.fx.Node) -> tuple[str, ...]:
    """Return the layers to keep in float, so that these roundings disappear."""
    leading = trial.ancestors([node])
    found: dict[torch.fx.Node, None] = {}
    for site in sites:
        if site.value is None:
            found[site.user] = None
            continue
        users = [user for user in site.users() if user.op == "call_function"]
        if site.value.op == "call_function" and not (users and _is_wide(trial, site)):
            found[site.value] = None  # its own values make the scale, or it is fixed
        found |= dict.fromkeys(user for user in users if user in leading or site.value is node)
    return tuple(dict.fromkeys(_label(trial, one) for one in found))


def _label(trial: Trial, node: torch.fx.Node) -> str:
    """Return the path of a layer's module if it has one node alone, else the name of its value."""
    path = path_of(node)
    same = [one for one in trial.nodes.values() if one.op == "call_function" and path_of(one) == path]
    return path if path and len(same) == 1 else value_name(node)


def _of_weights(trial: Trial, site: Site) -> str:
    weights = trial.weights[site.dequantizers[0]].abs()
    label = _label(trial, site.user)
    if weights.numel() == 1:
        return (f"the number {float(weights):.3g} in {label} is below the smallest step, "
                f"{site.limits[2]:.3g}")
    if math.isnan(site.limits[2]):
        return (f"the weights of {label} have some far larger than the rest of their channel, up to "
                f"{weights.max():.3g}")
    if weights.dim() > 1:
        rows = weights.flatten(1).amax(1)
        if rows.max() > _OUTLIER * rows.median():
            return (f"the weights of {label} have one scale, and channels of unlike ranges: "
                    f"{int(rows.argmax())} up to {rows.max():.3g}, most of them up to "
                    f"{rows.median():.3g}")
    return f"the step of the weights of {label}, {site.limits[2]:.3g}, is coarse for what they compute"


def _of_value(trial: Trial, site: Site, layers: tuple[str, ...],
              calibration: list[list[Any]]) -> Cause:
    """Find the cause of a coarse step of a value, or of its clamping."""
    assert site.value is not None  # but weights
    value, node = trial.floats[site.value].double(), site.value
    label, (lowest, highest, step) = _label(trial, node), site.limits
    what = f"input {label}" if node.op == "placeholder" else label
    if node.target in masks.SOFTMAXES:
        return Cause(f"int8 gives softmax the step 1/256, and {what} has values of at most "
                     f"{value.max():.2g}", layers)
    constant = _constant(trial, node)
    if constant is not None:
        return Cause(f"{what} has a mask or constants of about {constant:.3g}, far outside its other "
                     "values", layers, "use a constant nearer to these")
    channel = _outlier(value)
    if channel:
        return Cause(f"one channel of {what} is far wider than the others: {channel}",
                     layers, "scale this channel before the module")
    cut = (value - value.clamp(lowest, highest)).abs()
    if float((cut[cut > step / 2] ** 2).sum()) > _SHARE * float((cut**2).sum() + value.numel() *
                                                                 step**2 / 12):
        return Cause(f"{what} has values from {value.min():.3g} to {value.max():.3g}, and calibration "
                     f"reached only {lowest:.3g} to {highest:.3g}", (), _calibrate(calibration))
    if _is_wide(trial, site):
        return _shared(trial, site, what, layers)
    return Cause(f"{what} has a wide range, {value.min():.3g} to {value.max():.3g}, and its step "
                 f"{step:.3g} is coarse for what follows", layers)


def _is_wide(trial: Trial, site: Site) -> bool:
    """Return True if the scale of a value is far wider than the value; never for softmax."""
    lowest, highest, _ = site.limits
    return (site.value is not None and site.value.target not in masks.SOFTMAXES
            and highest - lowest > _WIDER * _width(trial.floats[site.value].double()))


def _width(value: torch.Tensor) -> float:
    return max(float(value.max()), 0) - min(float(value.min()), 0)


def _constant(trial: Trial, node: torch.fx.Node) -> float | None:
    """Return the constant in a value that is far from all its other elements, or None."""
    value = trial.floats[node].double()
    extreme = max(value.min(), value.max(), key=abs)
    if not torch.isfinite(extreme):
        return float(extreme)
    is_rest = (value - extreme).abs() > _NEAR * extreme.abs()
    if is_rest.any() and _width(value) < _GAP * _width(value[is_rest]):
        return None
    return float(extreme) if _has_constant(trial, node, float(extreme)) else None


def _has_constant(trial: Trial, node: torch.fx.Node, extreme: float) -> bool:
    """Return True if a number of this size leads to a value: of the graph, or of an input."""
    found, waiting = set(), [node]
    while waiting:
        one = waiting.pop()
        if one in found:
            continue
        found.add(one)
        tensor = trial.floats.get(one)
        if (isinstance(tensor, torch.Tensor) and tensor.numel() and _is_constant(one, tensor)
                and float(tensor.abs().max()) >= abs(extreme) / 2):
            return True
        if one.target in masks.WITH_NUMBERS and any(
                isinstance(argument, int | float) and abs(argument) >= abs(extreme) / 2
                for argument in one.args):
            return True
        if one.target in _CARRIERS or is_quantization(one, "quantize", "dequantize"):
            waiting += one.all_input_nodes
    return False


def _is_constant(node: torch.fx.Node, tensor: torch.Tensor) -> bool:
    """Return True for constants, and for inputs that are masks."""
    if node.op == "placeholder":
        return len(tensor.unique()) <= 2
    return node.op == "get_attr" or (
        is_quantization(node, "dequantize") and node.args[0].op == "get_attr")


def _shared(trial: Trial, site: Site, what: str, layers: tuple[str, ...]) -> Cause:
    """Word a scale that is far wider than its value.

    The scale is shared with another value, or the samples of the calibration were wider.
    """
    for other in trial.sites:
        if other.limits == site.limits and other.value not in (None, site.value):
            value = trial.floats[other.value].double()
            if _width(value) > _width(trial.floats[site.value].double()) * _WIDER:
                constant, partner = _constant(trial, other.value), _label(trial, other.value)
                if constant is not None:
                    return Cause(f"{what} has the scale of {partner}, which has a mask or constants of "
                                 f"about {constant:.3g}", layers, "use a constant nearer to the values")
                return Cause(f"{what} has the scale of {partner}, which is up to "
                             f"{value.abs().max():.3g}, and is itself up to "
                             f"{trial.floats[site.value].abs().max():.3g}", layers)
    lowest, highest, _ = site.limits
    return Cause(f"calibration gave {what} the range {lowest:.3g} to {highest:.3g}, and it is up to "
                 f"{trial.floats[site.value].abs().max():.3g}",
                 (), "calibrate with samples like its later inputs")


def _outlier(value: torch.Tensor) -> str:
    """Describe the channel whose range is far wider than the median, "" without one."""
    for dim in range(1, value.dim()):
        if value.shape[dim] > 2:
            ranges = value.abs().transpose(0, dim).flatten(1).amax(1)
            if ranges.max() > _OUTLIER * ranges.median():
                return (f"{int(ranges.argmax())} of dim {dim} is up to {ranges.max():.3g}, most are up "
                        f"to {ranges.median():.3g}")
    return ""


def _calibrate(samples: list[list[Any]]) -> str:
    is_few = len(samples) < _FEW or all(
        all((one == other).all() for one, other in zip(sample, samples[0], strict=True))
        for sample in samples)
    return ("calibrate with more samples, which reach these values" if is_few else
            "calibrate with samples that reach these values")
