"""Build a .pte from a program that torch exported, and its report.

The report has the bytes, the memory, and the difference from PyTorch.

The lower_* modules do the work; they import torch, and so are imported when they are needed.
"""

import contextlib
import importlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from picotorch import Error
from picotorch.errors import INVALID_ARGUMENT, NOT_FOUND, NOT_SUPPORTED, OPERATOR_MISSING, fail
from picotorch.module import load_with_exact_memories

from ..host.tensors import torch_name
from ..host.twin import open_program
from ..host.values import TENSOR, Values
from ..measure import advising
from . import aliases, arrays, differences, observer_names, report, torch_errors
from .metric import Metric, score
from .module_state import unchanged
from .progress import Each, Steps, quiet
from .replan import replan
from .result import (
    Checked,
    Comparison,
    LayerDifference,
    Memory,
    MixedReport,
    OutputDifference,
    Scores,
)
from .samples import Samples, Unfit, example_samples, samples_of, with_labels

if TYPE_CHECKING:
    from torch import Tensor
    from torch.export import ExportedProgram
    from torch.fx import GraphModule, Node

    from .causes import Cause
    from .lower_float import Lowered

CORE = "cortex-m4"
_BRANCHES = ("cond", "while_loop", "map_impl", "scan", "associative_scan")  # of torch.ops.higher_order
EXTRA = "pip install 'picotorch[export]'"

_LAYER_SAMPLES = 16  # that layers are compared on; outputs are on all
_TRIAL_SAMPLES = 8  # that run with single roundings off


class ExportOptions(NamedTuple):
    """Options of the program.

    quantize: rows of samples to quantize to int8 by, as samples.samples_of takes them; None for
    float32. evaluate: samples to compare with PyTorch on; if None, the ones of quantize, or the example
    inputs. labels: the class of each of these, if they have none. observer: chooses the ranges of
    values, as observers.of accepts it. fuse_rnn: recurrent layers are operators of picotorch, one
    instruction each. keep_float: layers that an int8 program computes in float, by module or value.
    mixed: the SQNR in dB, or the value of metric, that outputs should reach, with further layers in
    float. metric: see metric.score.
    """

    quantize: Iterable[Any] | None = None
    core: str = CORE
    evaluate: Iterable[Any] | None = None
    int8_io: bool = False
    fuse_rnn: bool = False
    keep_float: tuple[str, ...] = ()
    mixed: float | None = None
    observer: str = observer_names.DEFAULT
    labels: Any = None
    metric: Metric | None = None


def explained(error: Exception, quantized: bool, name: str) -> Error:
    """Return the error for the user when torch or ExecuTorch failed to lower a program."""
    text = str(error)
    if "Missing out variants" in text:
        missing = ", ".join(sorted(set(re.findall(r"'([\w:.]+)'", text))))
        return fail(NOT_SUPPORTED, f"ExecuTorch has no out variant of {missing}", name,
                    remedy="write the module with other operators")
    what, remedy = torch_errors.lowering_words(error, _remedy("module", quantized))
    return fail(NOT_SUPPORTED, f"ExecuTorch cannot lower it: {what}", name, remedy=remedy)


def _remedy(part: str, quantized: bool) -> str:
    return (f"write the {part} with other operators"
            + (", or export it without --quantize" if quantized else ""))


class Source(NamedTuple):
    """A module to export. run(arguments) returns the outputs of PyTorch's module, as a flat list.

    before: bytes of the file, or of the module's parameters and buffers. explain(error, quantized)
    makes an Error of an exception of the lowering.
    """

    name: str
    exported: "ExportedProgram"
    run: Callable[[tuple[Any, ...]], list[Any]]
    arguments: tuple[Any, ...]
    before: int
    explain: Callable[[Exception, bool], Error]
    module: Any


class Built(NamedTuple):
    """A program that was built.

    program: the bytes of a .pte. report: of it. float_program: the same module in float32, to
    compare an int8 program with; None for any other, and if it cannot be lowered.
    """

    program: bytes
    report: Checked
    float_program: bytes | None = None


def imported(steps: Steps) -> ModuleType:
    """Import lower_float, lower_int8, torch and executorch. Raises NotFound without the extra."""
    try:
        with steps.step("importing torch and executorch"):
            return importlib.import_module(".lower_float", __package__)
    except ImportError as error:
        raise fail(NOT_FOUND, f"torch and executorch cannot be imported ({error})",
                   remedy=EXTRA) from None


def _quantizing() -> ModuleType:
    try:
        with quiet():
            return importlib.import_module(".lower_int8", __package__)
    except ImportError as error:
        raise fail(NOT_FOUND, f"ExecuTorch's Cortex-M flow cannot be imported ({error})",
                   remedy="pip install --no-deps tosa-tools==2026.5.0") from None


def build(source: Source, options: ExportOptions, steps: Steps) -> Built:
    """Lower a program, and compare it with its module.

    Raises InvalidArgument for samples of other sizes than the inputs, NotSupported for operators and
    inputs that a program cannot have, and for int8 of inputs with dynamic sizes.
    """
    if options.quantize is not None and _has_dynamic_inputs(source.exported):
        raise fail(NOT_SUPPORTED, "int8 programs have inputs of fixed sizes, dynamic ones are given",
                   source.name, remedy="export it without dynamic_shapes, or without quantize")
    if options.quantize is not None and _has_branches(source.exported):
        raise fail(NOT_SUPPORTED, "int8 programs have no branches and loops, and forward has some",
                   source.name, remedy="compute both sides, and choose by torch.where, or export it "
                   "without --quantize")
    _check_dtypes(source, options)
    _check_written(source, options)
    lowering = imported(Steps())
    examples = [arrays.argument(value) for value in source.arguments]
    are_classes = options.metric is None
    quantize = _samples(options.quantize, examples, source, steps, are_classes)
    evaluate = _samples(options.evaluate, examples, source, steps, are_classes, options.labels)
    given = evaluate or quantize
    samples = given or example_samples(examples)
    running = steps.step("running it with the samples") if given else contextlib.nullcontext()
    with unchanged(lowering.torch, source.module), running:
        evaluated = _Evaluated(samples, [source.run(_tensors(lowering.torch, sample))
                                         for sample in steps.each(samples.inputs)], options.metric)
    best = evaluated.score(evaluated.expected)
    if best is not None and options.mixed is not None and best < options.mixed:
        raise fail(INVALID_ARGUMENT, f"PyTorch itself has a metric of {best:.4g}, less than "
                   f"{options.mixed:g}", "mixed", remedy="give a lower value")
    try:
        lowered = _lower(lowering, source, quantize, options, steps)
        mixed = None
        if options.mixed is not None and quantize is not None:
            lowered, options, mixed = _mixed(lowering, source, lowered, quantize, evaluated, options,
                                             steps)
    except (Error, MemoryError):
        raise
    except Exception as error:
        raise source.explain(error, quantize is not None) from None
    with steps.step("planning its memory"):
        written = _replanned(lowered, source.name, options.int8_io)
    memory = _loaded(written, lowered, options)
    if memory.missing_operators:
        compared, warnings = Comparison("not run: kernels are missing"), []
    else:
        with steps.step("comparing it with PyTorch on the twin"):
            compared = _compared(lowering, source, lowered, evaluated, steps.each)
            warnings = report.layer_warnings(compared.layers, lambda below, poor: _causes(
                lowering, lowered, samples, quantize, below, poor))
    checked = Checked(
        model=source.name, dtype=_dtypes(written) if quantize is None else "int8",
        core=None if quantize is None else options.core, bytes_before=source.before,
        bytes=len(written), warnings=_warnings(quantize, samples), layer_warnings=warnings,
        kept_float=_kept_float(lowered), mixed=mixed, **vars(memory),
        **vars(compared), verdict=report.verdict(compared.outputs))
    if memory.missing_operators or quantize is None:
        return Built(written, checked)
    return Built(written, checked, _in_float(lowering, source, options, steps))


def _kept_float(lowered: "Lowered") -> list[int]:
    """Return the numbers of the layers that stay in float by keep_float, among advising.layers."""
    return [k for k, i in enumerate(advising.layers(lowered.program))
            if i in lowered.parts and any(
                value.partition("[")[0] in lowered.kept for value in lowered.parts[i].values)]


def _causes(lowering: ModuleType, lowered: "Lowered", evaluated: Samples, quantize: Samples | None,
            below: list[LayerDifference], poor: list[LayerDifference]) -> "dict[str, Cause]":
    """Return the causes of poor layers, which report.layer_warnings words.

    Empty for a float32 program, whose layers are not quantized.
    """
    if lowered.fake_quantized is None or quantize is None:
        return {}
    causes = importlib.import_module(".causes", __package__)
    with unchanged(lowering.torch, lowered.fake_quantized):
        found: dict[str, Cause] = causes.find(
            lowered.fake_quantized, lowered.reference, _tensors(lowering.torch, evaluated.inputs[0]),
            {layer.value: layer.operator for layer in below}, [layer.value for layer in poor],
            quantize.inputs)
    return found


def _in_float(lowering: ModuleType, source: Source, options: ExportOptions,
              steps: Steps) -> bytes | None:
    """Return the module's float32 program, None where ExecuTorch cannot lower it."""
    try:
        with steps.step("lowering it in float32, to compare"):
            lowered = lowering.lower_float(source.exported, options.fuse_rnn)
            return _replanned(lowered, source.name, False)
    except MemoryError:
        raise
    except Exception:
        return None


def _warnings(quantize: Samples | None, evaluated: Samples) -> list[str]:
    """Return the warnings on the samples, each sentence once."""
    return list(dict.fromkeys([*(quantize.warnings if quantize else ()), *evaluated.warnings]))


def _dtypes(program: bytes) -> str:
    """Return the dtypes of a program's float tensors, or of all tensors if it has none."""
    meta = open_program(program).method_meta("forward")
    values = Values(meta.program, meta.plan)
    found = {torch_name(values.tensor(i).scalar_type()) for i in range(len(values))
             if values.kind(i) == TENSOR}
    floats = {dtype for dtype in found if "float" in dtype}
    return ", ".join(sorted(floats or found)) or "none"


def _check_dtypes(source: Source, options: ExportOptions) -> None:
    """Raise NotSupported for int8 of inputs and parameters that are not float32."""
    signature = source.exported.graph_signature
    names = {*signature.user_inputs, *signature.inputs_to_parameters}
    dtypes = sorted({str(value.dtype).removeprefix("torch.") for node, value in _inputs(source.exported)
                     if node.name in names and value.is_floating_point()} - {"float32"})
    if options.quantize is not None and dtypes:
        raise fail(NOT_SUPPORTED, "int8 programs are quantized from float32, and the module has "
                   f"{', '.join(dtypes)}", source.name,
                   remedy="export module.float() with inputs of float32")


def _check_written(source: Source, options: ExportOptions) -> None:
    """Raise NotSupported for inputs and parameters that forward changes in place."""
    signature = source.exported.graph_signature
    values = {value for node in source.exported.graph.nodes for value in aliases.changed_by(node)}
    changed = [node.name for node, _ in _inputs(source.exported) if node in values]
    inputs = [name for name in changed if name in signature.user_inputs]
    parameters = [signature.inputs_to_parameters[name] for name in changed
                  if name in signature.inputs_to_parameters]
    if options.quantize is None and inputs:
        raise fail(NOT_SUPPORTED, f"forward changes its input {', '.join(inputs)} in place",
                   source.name, remedy=f"change a copy: {inputs[0]} = {inputs[0]}.clone()")
    if parameters:
        raise fail(NOT_SUPPORTED, f"forward changes its parameter {', '.join(parameters)}", source.name,
                   remedy="make it a buffer, by register_buffer in the module's __init__")


def _inputs(exported: "ExportedProgram") -> "list[tuple[Node, Tensor]]":
    """Return the placeholders that are tensors, and their values."""
    return [(node, node.meta["val"]) for node in exported.graph.find_nodes(op="placeholder")
            if hasattr(node.meta.get("val"), "is_floating_point")]


def _has_dynamic_inputs(exported: "ExportedProgram") -> bool:
    return any(not isinstance(size, int) for node in exported.graph.find_nodes(op="placeholder")
               for size in getattr(node.meta.get("val"), "shape", ()))


def _has_branches(exported: "ExportedProgram") -> bool:
    return any(node.op == "call_function" and str(node.target) in _BRANCHES
               for node in exported.graph.nodes)


def _samples(rows: Iterable[Any] | None, examples: list[Any], source: Source, steps: Steps,
             are_classes: bool, labels: Any = None) -> Samples | None:
    """Return the samples of rows, with other labels if there are any."""
    if rows is None:
        return None
    classes, inputs = _classes(source.exported), source.exported.graph_signature.user_inputs
    names = list(map(str, inputs)) if len(inputs) == len(examples) else []
    is_read = isinstance(rows, Mapping | list)
    try:
        with contextlib.nullcontext() if is_read else steps.step("reading the samples"):
            found = samples_of(rows if is_read else _readable(rows), examples, classes, names,
                               steps.each, are_classes)
        return found if labels is None else with_labels(found, labels, classes, are_classes)
    except Unfit as error:
        raise fail(INVALID_ARGUMENT, str(error), "samples", remedy=error.remedy) from None


def _readable(rows: Iterable[Any]) -> Iterator[Any]:
    """Yield the rows of a loader. Raises InvalidArgument if the loader raises an exception."""
    try:
        yield from rows
    except Error:
        raise
    except Exception as error:
        raise fail(INVALID_ARGUMENT, f"the loader raises {type(error).__name__}: {error}", "samples",
                   remedy="iterate over it alone to find the cause") from None


def _classes(exported: "ExportedProgram") -> int | None:
    """Return the elements of the first output, None where they are not fixed."""
    (outputs,) = exported.graph.output_node().args
    kinds = exported.graph_signature.output_specs
    first = next((node for node, spec in zip(outputs, kinds, strict=True)
                  if spec.kind.name == "USER_OUTPUT"), None)
    count = getattr(getattr(first, "meta", {}).get("val"), "numel", lambda: None)()
    return count if isinstance(count, int) else None


def _lower(lowering: ModuleType, source: Source, quantize: Samples | None, options: ExportOptions,
           steps: Steps) -> "Lowered":
    lowered: Lowered
    if quantize is None:
        with steps.step("lowering with ExecuTorch"):
            lowered = lowering.lower_float(source.exported, options.fuse_rnn)
        return lowered
    quantizing = _quantizing()
    with steps.step(f"quantizing by {len(quantize.inputs)} samples, lowering for {options.core}"):
        samples = [_tensors(lowering.torch, sample) for sample in quantize.inputs]
        lowered = quantizing.lower_int8(source.exported, samples, options.core, options.fuse_rnn,
                                        options.keep_float, options.observer, steps.each)
    return lowered


def _mixed(lowering: ModuleType, source: Source, lowered: "Lowered", quantize: Samples,
           evaluated: "_Evaluated", options: ExportOptions,
           steps: Steps) -> "tuple[Lowered, ExportOptions, MixedReport | None]":
    """Leave layers in float until the outputs have the SQNR, or the metric, of options.mixed.

    Return the program, the options that name its layers in float, and the part of the report, which is
    None if the twin cannot run the program.
    """
    def lower(names: tuple[str, ...]) -> "Lowered":
        keep_float = options.keep_float + names
        return _lower(lowering, source, quantize, options._replace(keep_float=keep_float), steps)

    def measure(lowered: "Lowered") -> float:
        with steps.step("comparing it with PyTorch on the twin"):
            computed = evaluated.run(lowered.program, steps.each)
        found = evaluated.score(computed)
        return report.worst_sqnr(evaluated.differences(computed)) if found is None else found

    if open_program(lowered.program).method_meta("forward").missing_operators():
        return lowered, options, None
    assert lowered.fake_quantized is not None and options.mixed is not None  # of an int8 program
    mixed = importlib.import_module(".mixed", __package__)
    samples = [_tensors(lowering.torch, sample) for sample in evaluated.samples.inputs[:_TRIAL_SAMPLES]]
    with unchanged(lowering.torch, lowered.fake_quantized):
        found = mixed.reach(lowered, samples, options.core, options.mixed, lower, measure, steps,
                            options.metric is None)
    return found.lowered, options._replace(keep_float=options.keep_float + found.names), found.report


def _replanned(lowered: "Lowered", name: str, int8_io: bool) -> bytes:
    """Plan the memory again, unless the program has control flow and the like."""
    try:
        return replan(lowered.emitted, lowered.program, name, int8_io)[0]
    except Error as error:
        if int8_io or error.code not in (NOT_SUPPORTED, OPERATOR_MISSING):
            raise
        return lowered.program


def _loaded(program: bytes, lowered: "Lowered", options: ExportOptions) -> Memory:
    """Load a program on the twin, and return its memory.

    If the twin refuses an instruction, the error names the layer.
    """
    try:
        return _memory(program)
    except Error as error:
        number = re.search(r"\binstruction (\d+)\b", error.message)
        if number is None:
            raise
        part = None if options.int8_io else lowered.parts.get(int(number[1]))
        layer = part and (part.module or part.value)
        raise fail(error.code, error.message + (f", layer {layer}" if layer else ""),
                   remedy=_remedy("layer", options.quantize is not None)) from None


def _memory(program: bytes) -> Memory:
    meta = open_program(program).method_meta("forward")
    missing = meta.missing_operators()
    planned = [meta.memory_planned_buffer_size(i) for i in range(meta.num_memory_planned_buffers())]
    if missing:
        return Memory(None, planned, None, missing)
    used = load_with_exact_memories(open_program(program), "forward").memory_report()
    return Memory(used["method_pool"]["used"], planned, used["temp"]["used"], missing)


def _compared(lowering: ModuleType, source: Source, lowered: "Lowered", evaluated: "_Evaluated",
              each: Each) -> Comparison:
    def values_of(graph: "GraphModule") -> differences.ValuesOf:
        return lambda sample, names: lowering.float_values(
            graph, _tensors(lowering.torch, sample), names)

    try:
        with unchanged(lowering.torch, lowered.reference):  # it shares the buffers of the module
            layers = differences.layers(
                lowered.program, lowered.parts, evaluated.samples.inputs[:_LAYER_SAMPLES],
                values_of(lowered.reference),
                None if lowered.fake_quantized is None else values_of(lowered.fake_quantized))
        computed = evaluated.run(lowered.program, each)
    except _OtherSizes as error:
        raise fail(NOT_SUPPORTED, f"the program computes other sizes than PyTorch: {error}",
                   source.name, remedy="write the module with other operators") from None
    except Error as error:
        return Comparison(f"not run: {error.message}")
    count = len(computed)
    return Comparison("executed", count, min(count, _LAYER_SAMPLES), layers,
                      evaluated.differences(computed), evaluated.scores(evaluated.accuracy, computed),
                      evaluated.scores(evaluated.score, computed))


class _OtherSizes(Exception):
    """Outputs of other sizes, or of another number, than PyTorch's."""


def _sizes(outputs: list[Any]) -> str:
    return ", ".join(str(list(np.shape(value))) for value in outputs) or "no output"


class _Evaluated(NamedTuple):
    """Samples to compare on, and the outputs of PyTorch for them, in their order."""

    samples: Samples
    expected: list[list[Any]]
    metric: Metric | None

    def run(self, program: bytes, each: Each) -> list[list[Any]]:
        """Return the outputs of a program. Raises _OtherSizes."""
        stepper, found = differences.Stepper(program), []
        for sample, expected in each(list(zip(self.samples.inputs, self.expected, strict=True))):
            computed = stepper.run(sample)
            if [np.shape(value) for value in expected] != [np.shape(value) for value in computed]:
                raise _OtherSizes(f"{_sizes(computed)} instead of {_sizes(expected)}")
            found.append(computed)
        return found

    def differences(self, computed: list[list[Any]]) -> list[OutputDifference]:
        """Return the difference of each output."""
        found: dict[int, differences.Difference] = {}
        for expected, outputs in zip(self.expected, computed, strict=True):
            for i, (target, have) in enumerate(zip(expected, outputs, strict=True)):
                if isinstance(target, np.ndarray):
                    kind = differences.Difference if target.dtype.kind == "f" else differences.Equality
                    found.setdefault(i, kind()).add(target, np.asarray(have))
        return [OutputDifference(i, one.equal, one.sqnr, one.largest, one.magnitude)
                for i, one in sorted(found.items())]

    def accuracy(self, outputs: list[list[Any]]) -> float | None:
        """Return the share of samples whose class is right, None without labels."""
        labels = self.samples.labels
        return None if labels is None else float(np.mean(
            [int(np.argmax(one[0])) == label for one, label in zip(outputs, labels, strict=True)]))

    def score(self, outputs: list[list[Any]]) -> float | None:
        """Return the metric of outputs, None without a metric."""
        return None if self.metric is None else score(self.metric, outputs, self.samples)

    def scores(self, measure: Callable[[list[list[Any]]], float | None],
               computed: list[list[Any]]) -> Scores | None:
        """Return a measure of the outputs of PyTorch and of the program, None without it."""
        pytorch, program = measure(self.expected), measure(computed)
        return None if pytorch is None or program is None else Scores(pytorch, program)


def _tensors(torch: ModuleType, sample: list[Any]) -> tuple[Any, ...]:
    return tuple(arrays.tensor(torch, value) for value in sample)
