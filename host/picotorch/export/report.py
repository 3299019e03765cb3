"""Print the report of an export."""

import math
from collections.abc import Callable, Collection, Mapping
from typing import TypeAlias

import click

from picotorch.errors import NOT_SUPPORTED, fail

from ..host import show
from ..measure.advice import IN_EITHER, IN_FLOAT32, IN_INT8, Advice, Stance
from ..measure.advising import WITHOUT_INT8
from ..measure.timing import Timing
from .differences import decibels
from .result import ExportReport, Float32, LayerDifference, MixedReport, OutputDifference

# Of layers below plain fake quantization and of poor ones: a causes.Cause by the name of a value
FindCauses: TypeAlias = Callable[
    [list[LayerDifference], list[LayerDifference]], Mapping[str, tuple[str, tuple[str, ...], str]]]

_FAR = 15  # dB, of outputs: a good int8 program has 25 and more
_EQUAL = 0.8  # share of the integers of an output that are PyTorch's
_ENOUGH = 30  # dB, of a layer: what it loses above that does not matter
_ROUGH = 20  # dB: the error is a tenth of the values, as root mean squares
_ADVICE = 2  # lines of advice in a report
_REMEDY = "write the layer that differs with other operators"  # for outputs far from PyTorch's
_INT8_REMEDY = ("write the first layer with a low SQNR with other operators, or export it without "
                "--quantize")

UNUSABLE = 3  # exit status of an export with a verdict of "unusable"
POOR = 10  # dB, of a layer: the error is a third of its values
BELOW_FAKE = 3  # dB that a layer may lie below plain fake quantization; most kernels keep within 0.5
NAMED = 3  # layers in a warning
_GAINS = 20  # layers whose gain in float is listed
_KEPT = 6  # layers to keep in float: of more it is better to export all in float
_NOT_DETERMINED = "the cause was not determined", (), WITHOUT_INT8


def verdict(outputs: list[OutputDifference]) -> str:
    """Return "good", "rough" or "unusable", by the worst of the outputs; "unknown" without outputs."""
    if not outputs:
        return "unknown"
    if any(map(is_far, outputs)):
        return "unusable"
    return "rough" if any(map(_is_rough, outputs)) else "good"


def worst_sqnr(outputs: list[OutputDifference]) -> float:
    """Return the SQNR of the worst output of floats; minus infinity if one is not finite.

    Raises NotSupported without an output of floats.
    """
    found = [output.sqnr for output in outputs if output.equal is None]
    if not found:
        raise fail(NOT_SUPPORTED, "no output is of floats, and integers have no SQNR", "mixed",
                   remedy="let forward return the scores, or leave out --mixed")
    return min(-math.inf if sqnr is None else sqnr for sqnr in found)


def poor_layers(layers: list[LayerDifference]
                ) -> tuple[list[LayerDifference], list[LayerDifference]]:
    """Return the layers far below plain fake quantization, and other layers that are poor."""
    below = [layer for layer in layers if layer.sqnr is not None and layer.fake_sqnr is not None
             and layer.sqnr < layer.fake_sqnr - BELOW_FAKE and layer.sqnr < _ENOUGH]
    poor = [layer for layer in layers if layer not in below and layer.dtype == "int8"
            and (layer.sqnr is None or layer.sqnr < POOR)]
    return below, poor


def layer_warnings(layers: list[LayerDifference], find_causes: FindCauses) -> list[Advice]:
    """Return warnings for layers far below plain fake quantization, and for other poor layers.

    Layers with the same cause share a warning. Only the first layers of each kind, in the order of the
    program, are named.

    find_causes(below, poor), with lists of layers, returns {name of a value: causes.Cause}.
    """
    below, poor = poor_layers(layers)
    named = below[:NAMED], poor[:NAMED]
    causes = find_causes(*named) if below or poor else {}
    heads = ("layers are less exact than plain fake quantization makes them: ",
             f"layers have an SQNR below {POOR} dB, which outputs may hide: ")
    found = []
    for head, ones, every in zip(heads, named, (below, poor), strict=True):
        groups: dict[tuple[str, str], tuple[list[LayerDifference], dict[str, None]]] = {}
        for layer in ones:
            what, kept, remedy = causes.get(layer.value, _NOT_DETERMINED)
            group, all_kept = groups.setdefault((what, remedy), ([], {}))
            group.append(layer)
            all_kept |= dict.fromkeys(kept)
        more = f" and {len(every) - len(ones)} more" if len(every) > len(ones) else ""
        for i, ((what, remedy), (group, all_kept)) in enumerate(groups.items(), 1):
            text = ", ".join(f"{_label(layer, layers)} ({_sqnrs(layer, every is below)})"
                             for layer in group)
            remedy, stance = _remedy_with_layers(all_kept, remedy)
            found.append(Advice(f"{head}{text}{more * (i == len(groups))}: {what}", remedy=remedy,
                                stance=stance))
    return found


def _remedy_with_layers(kept: Collection[str], remedy: str) -> tuple[str, Stance]:
    """Return the remedy with the layers to keep in float, and its stance."""
    keep = ("keep it in float with " + " ".join(f"--keep-float {layer}" for layer in kept)
            if len(kept) <= _KEPT else WITHOUT_INT8)
    text = ", or ".join(filter(None, [keep if kept else "", remedy]))
    if WITHOUT_INT8 not in text:
        return text, IN_INT8
    return text, IN_FLOAT32 if text == WITHOUT_INT8 else IN_EITHER


def _sqnrs(layer: LayerDifference, with_fake: bool) -> str:
    fake = f" instead of {decibels(layer.fake_sqnr)}" if with_fake else ""
    return decibels(layer.sqnr) + fake


def comparisons(count: int, time: Timing, other: Float32) -> list[str]:
    """Return the disadvantages of an int8 program of `count` bytes compared with float32."""
    found = []
    if count > other.bytes:
        found.append(f"the int8 program is larger than in float32: {show.size(count)} instead "
                     f"of {show.size(other.bytes)}")
    cycles, float_cycles = time.cycles, other.time.cycles
    if cycles is not None and float_cycles is not None and cycles > float_cycles:
        found.append(f"the int8 program is slower than in float32: about {time.ms:.3g} ms "
                     f"instead of {other.time.ms:.3g} ms")
    return found


def warning(one: Advice) -> str:
    """Return the text of a warning, with its remedy if there is one."""
    return "; ".join(filter(None, [one.what, one.remedy]))


def show_text(found: ExportReport) -> None:
    show.line(f"{found.model}: {show.size(found.bytes_before)}; {found.output}: "
              f"{show.size(found.bytes)}, {_compared(found.bytes, found.bytes_before)}"
              + (" (an older file was replaced)" if found.replaced else ""))
    _show_int8(found)
    _show_memory(found)
    if found.missing_operators:
        show.line("operators without a kernel: " + ", ".join(found.missing_operators))
        show.line(f"{found.output} does not run on a board; write the module with other operators")
    if found.checked != "executed":
        show.line(f"On the twin: {found.checked}")
    else:
        _show_layers(found)
        _show_mixed(found.mixed)
        _show_outputs(found)
        _show_time(found.time)
    for warning in found.warnings:
        show.line(f"WARNING: {warning}")
    for one in found.advice[:_ADVICE]:
        show.line(f"Advice: {one.what}; {one.remedy}")


def _show_int8(found: ExportReport) -> None:
    if found.dtype != "int8":
        return
    share = found.int8
    macs = (f" and {100 * share.macs / share.all_macs:.0f} % of the multiply-accumulates"
            if share.all_macs else "")
    show.line(f"{share.layers} of {share.all_layers} layers{macs} run in int8"
              + _instead(found.time, found.float32))


def _instead(time: Timing, other: Float32 | None) -> str:
    if other is None or time.instructions is None or other.time.instructions is None:
        return ""
    return f"; {time.instructions:,} instructions instead of {other.time.instructions:,} in float32"


def _compared(now: int, before: int) -> str:
    if now >= before:
        return "not smaller"
    return f"{100 * now / before:.0f} %"


def _show_memory(found: ExportReport) -> None:
    rows = [("method pool", found.method_pool),
            *[(f"planned buffer {i}", size) for i, size in enumerate(found.planned)],
            ("temp memory", found.temp)]
    sizes = {name: size for name, size in rows if size is not None}
    show.heading("RAM, the same on every board")
    show.table(["memory", "bytes>"], [[name, f"{size:,}"] for name, size in sizes.items()])
    if found.method_pool is not None:
        click.echo(f"together {sum(sizes.values()):,} B, without the stack and the firmware")


def _show_layers(found: ExportReport) -> None:
    layers, count = found.layers, found.layer_samples
    if not layers:
        show.line("No difference by layer: the program has jumps, or no instruction computes a value "
                  "of the module")
        return
    show.heading(f"Difference from PyTorch by layer, {count} sample{'s' * (count > 1)}")
    show.table(["layer", "operator", "type", "SQNR>", "max difference>", "max value>"], [
        [_label(layer, layers), layer.operator.removesuffix(".out"), layer.dtype,
         decibels(layer.sqnr), f"{layer.largest:.3g}", f"{layer.magnitude:.3g}"]
        for layer in layers])


def _show_mixed(mixed: MixedReport | None) -> None:
    """Show what layers gain in float, and which layers are in float."""
    if mixed is None:
        return
    layers, cycles = mixed.layers, mixed.cycles
    name = "SQNR" if mixed.is_sqnr else "metric"
    chosen = [one.layer for one in layers if one.is_chosen]
    show.heading("If one layer alone is in float")
    show.table(["layer", "gain>", "cycles>", "chosen"], [
        [one.layer, f"{one.gain:+.1f} dB", f"{one.cycles:+,}", "yes" * one.is_chosen]
        for i, one in enumerate(layers) if i < _GAINS or one.is_chosen])
    number = decibels if mixed.is_sqnr else "{:.4g}".format
    show.line(f"{name} {number(mixed.int8)} in int8, {number(mixed.found)} with "
              f"{len(chosen)} of {len(layers)} layers in float" + ("" if cycles is None else
              f"; about {cycles:,} cycles instead of {mixed.int8_cycles:,}"))
    if chosen:
        show.line("to repeat it: " + " ".join(f"--keep-float {layer}" for layer in chosen))
    if not mixed.reached:
        unit = " dB" * mixed.is_sqnr
        show.line(f"WARNING: {name} {mixed.target:g}{unit} is out of reach, with every layer in "
                  "float: give --mixed a lower value, or export it without --quantize")


def _label(layer: LayerDifference, layers: list[LayerDifference]) -> str:
    """Return the path of the layer's module, with the value if the module has several layers."""
    same = [other for other in layers if other.layer == layer.layer]
    return layer.layer if len(same) == 1 else f"{layer.layer} {layer.value}"


def _show_outputs(found: ExportReport) -> None:
    count = found.samples
    show.heading("Outputs on the twin, "
                 + ("with the example inputs" if count == 1 else f"with {count} samples"))
    for output in found.outputs:
        subject = f"output {output.output} differs" if len(found.outputs) > 1 else "outputs differ"
        measure = (f"SQNR {decibels(output.sqnr)}" if output.equal is None
                   else f"{100 * output.equal:.3g} % are equal")
        show.line(f"{subject} from PyTorch's by up to {output.largest:.3g}, of values up to "
                  f"{output.magnitude:.3g} ({measure})")
    far = [output for output in found.outputs if is_far(output)]
    if far:
        remedy = _INT8_REMEDY if found.dtype == "int8" else _REMEDY
        show.line(f"WARNING: output {_numbers(far)} is far from PyTorch's, with {_reasons(far)}. Do "
                  f"not use this program as it is: {remedy}")
    rough = [output for output in found.outputs if not is_far(output) and _is_rough(output)]
    if rough:
        show.line(f"WARNING: output {_numbers(rough)} has an SQNR below {_ROUGH} dB: its errors are "
                  "more than a tenth of its values. Check the accuracy with --evaluate and labels")
    if found.accuracy:
        click.echo(f"accuracy: PyTorch {found.accuracy.pytorch:.1%}, "
                   f"program {found.accuracy.program:.1%}")
    if found.metric:
        click.echo(f"metric: PyTorch {found.metric.pytorch:.4g}, program {found.metric.program:.4g}")


def _reasons(far: list[OutputDifference]) -> str:
    floats = [output for output in far if output.equal is None]
    found = []
    if floats:
        found.append(f"an SQNR below {_FAR} dB")
    if any(output.sqnr is None for output in floats):
        found.append("values that are not finite")
    if len(floats) < len(far):
        found.append(f"less than {100 * _EQUAL:.0f} % of its integers equal")
    return " or ".join(found)


def _numbers(outputs: list[OutputDifference]) -> str:
    return ", ".join(str(output.output) for output in outputs)


def is_far(output: OutputDifference) -> bool:
    """Return True for an output too far from PyTorch's to be of use, or not finite by itself."""
    if output.equal is not None:
        return output.equal < _EQUAL
    return output.sqnr is None or output.sqnr < _FAR


def _is_rough(output: OutputDifference) -> bool:
    return output.equal is None and (output.sqnr is None or output.sqnr < _ROUGH)


def _show_time(time: Timing) -> None:
    if time.message:
        show.line(f"time on a {time.core} is not estimated: {time.message}")
    else:
        source = "" if time.counted else "the sizes of the tensors: "
        show.line(f"{time.core} at {time.clock_hz // 1_000_000} MHz: about {time.ms:.3g} ms "
                  f"({time.min_ms:.3g} to {time.max_ms:.3g}), estimated from {source}"
                  f"{time.instructions:,} instructions, {time.cycles:,} cycles")
