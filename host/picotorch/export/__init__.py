"""Export of PyTorch modules from Python: what `picotorch export` does.

    from picotorch.export import export

    exported = export(module, (example,), quantize=samples, core="cortex-m4")
    exported.save("model.pte")
    print(exported.report.outputs)

torch and executorch are imported when export is called (pip install 'picotorch[export]').
"""

import dataclasses
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from picotorch.boards import chips
from picotorch.errors import INVALID_ARGUMENT, fail
from picotorch.export import completing, modules, observer_names, pipeline, report
from picotorch.export.arrays import argument
from picotorch.export.metric import Metric
from picotorch.export.module_state import unchanged
from picotorch.export.progress import Steps
from picotorch.export.result import ExportReport
from picotorch.export.samples import read_rows
from picotorch.host.files import write

__all__ = ["CORES", "Exported", "export"]

CORES = chips.CORES


@dataclasses.dataclass
class Exported:
    """A program and its report.

    buffer: the bytes of the .pte. report: the fields of picotorch export --json, which to_json returns
    as a dict.
    """

    buffer: bytes
    report: ExportReport

    @property
    def verdict(self) -> str:
        """Return "good", "rough", "unusable" or, without a comparison, "unknown"."""
        return self.report.verdict

    def save(self, path: str | Path) -> None:
        """Write the program whole or not at all.

        Raises AccessFailed; NotSupported for a FIFO or a device.
        """
        write(path, self.buffer)

    def show(self) -> None:
        """Print what picotorch export prints in the end."""
        report.show_text(dataclasses.replace(self.report, output="program"))

    def __repr__(self) -> str:
        return f"<Exported {self.report.dtype}, {len(self.buffer)}B>"


def export(module: Any, inputs: Any, *, quantize: Any = None, core: str = pipeline.CORE,
           evaluate: Any = None, labels: Any = None, metric: Metric | None = None,
           int8_io: bool = False, fuse_rnn: bool = False, keep_float: Iterable[str] = (),
           mixed: float | None = None, observer: str = observer_names.DEFAULT,
           dynamic_shapes: Any = None,
           tell: Callable[[str], None] | None = None) -> Exported:
    """Export an nn.Module as a program, for inputs of these shapes.

    inputs: the arguments of forward, a tuple, or a tensor. quantize: samples to quantize to int8 by,
    for a core of CORES; float32 without. evaluate: samples to compare with PyTorch on, by default the
    ones of quantize; labels: the class of each. Samples are an .npz file (arrays in0, in1 ... of
    (samples, *sizes), and perhaps labels), a folder of such files, such arrays by name, or an iterable:
    a DataLoader, a generator or a list of tensors, of tuples of the arguments of forward and perhaps
    labels, or of dicts of them by name, each of one sample or a batch. observer: "min-max",
    "percentile", "percentile:99.5" or "mse" chooses the ranges of values from the samples.
    int8_io: inputs and outputs are the integers. fuse_rnn: GRU, LSTM and their cells are an instruction
    for each layer and direction; ExecuTorch's own runtime lacks these operators. keep_float: layers
    that an int8 program computes in float, each the path of a module, "blocks.0.attention" for example,
    or the name of a value, as the report has them. mixed: an SQNR in dB; further layers are in float
    until all outputs have it, by the fewest estimated cycles. metric(outputs, labels): your own measure
    of outputs, a number, higher is better, see metric.score; then mixed is the value to reach. tell:
    receives each step as text.

    Raises NotFound without torch and executorch, InvalidArgument for inputs that forward or the core
    rejects, NotSupported for modules that torch.export or ExecuTorch cannot export.
    """
    core = chips.core_of(core) or core
    if core not in CORES:
        raise fail(INVALID_ARGUMENT, f"none of {', '.join(CORES)}", str(core))
    observer_names.parse(observer)
    if mixed is not None and quantize is None:
        raise fail(INVALID_ARGUMENT, "goes with quantize", "mixed",
                   remedy="give samples to quantize by")
    steps = Steps(tell)
    torch = pipeline.imported(steps).torch
    if labels is not None and evaluate is None:
        raise fail(INVALID_ARGUMENT, "go with evaluate", "labels")
    options = pipeline.ExportOptions(
        _rows(quantize, "quantize"), core, _rows(evaluate, "evaluate"), int8_io, fuse_rnn,
        (keep_float,) if isinstance(keep_float, str) else tuple(keep_float), mixed, observer,
        None if labels is None else np.atleast_1d(argument(labels)), metric)
    with unchanged(torch, module):
        source = modules.source_of_module(torch, module, inputs, type(module).__name__, steps,
                                          dynamic_shapes)
        built = pipeline.build(source, options, steps)
    return Exported(built.program, completing.complete(built, core))


def _rows(samples: Any, name: str) -> Iterable[Any] | None:
    """Return rows of samples, as samples.samples_of takes them."""
    if samples is None:
        return None
    if isinstance(samples, str | Path):
        return read_rows(Path(samples))
    if not isinstance(samples, Iterable):
        raise fail(INVALID_ARGUMENT, f"is {type(samples).__name__}", name,
                   remedy="give a path, arrays by name, a DataLoader or a list of arguments of forward")
    return samples
