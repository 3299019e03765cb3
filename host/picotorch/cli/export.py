"""Define picotorch export."""

import dataclasses
import functools
import math
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import numpy as np

from picotorch.memory import LIMIT

from ..export import (
    completing,
    modules,
    observer_names,
    pipeline,
    replan,
    report,
    sandboxed_export,
    torchscript,
)
from ..export.progress import Steps
from ..export.result import ExportReport
from ..export.samples import read_rows
from ..host import show
from ..host.files import check_output, read_file, write
from ..host.npz import read_npz
from ..run import bundled
from ..run.run_request import RunRequest
from . import options
from .command import InputFile, OutputFile, ParamType, command

_SQNR = 25.0  # dB: a good int8 program has as much


class _Shape(ParamType):
    """Accept an example input: 1,3,224,224[:dtype]."""

    name = "1,3,224,224[:DTYPE]"

    def convert(self, value: Any, param: click.Parameter | None,
                ctx: click.Context | None) -> np.ndarray:
        try:
            return torchscript.parse_shape(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class _Target(ParamType):
    """Accept a number of dB, or a value of a metric; NaN stands for the default."""

    name = "[DB]"

    def convert(self, value: Any, param: click.Parameter | None,
                ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        try:
            found = float(value)
        except ValueError:
            found = math.nan
        if not math.isfinite(found):
            self.fail(f"{value!r} is no number: write --mixed={_SQNR:g}, or --mixed behind the "
                      "model", param, ctx)
        return found


class _Evaluation(InputFile):
    """Accept samples, or file.py:function for a metric."""

    def __init__(self) -> None:
        super().__init__(takes_folder=True)

    def file_of(self, value: Path) -> Path:
        return modules.is_function(str(value)) and modules.source_file(str(value)) or value


class _Model(InputFile):
    """Accept a file, file.py:function or package:function."""

    def file_of(self, value: Path) -> Path:
        return modules.is_function(str(value)) and modules.source_file(str(value)) or value


@command()
@click.argument("model", type=_Model())
@click.option("-o", "--output", type=OutputFile(".pte"), metavar="OUT.PTE",
              help="The program to write.  [default: MODEL or FUNCTION with .pte]")
@click.option("--quantize", type=InputFile(takes_folder=True), metavar="CALIBRATION.NPZ|FOLDER",
              help="Quantize to int8 by these samples: arrays in0, in1 ... of (samples, *sizes), in a "
              "file or in the .npz files of a folder.")
@click.option("--observer", metavar="[min-max|percentile[:PERCENT]|mse]",
              help="With --quantize: choose the range of each value: of all samples (min-max), without "
              "the rare ones (percentile:99.5), or with the least squared error (mse).  "
              f"[default: {observer_names.DEFAULT}]")
@click.option("--core", type=options.Core(), metavar="CORE",
              help="With --quantize: for this core, cortex-m0plus, m3, m4, m7, m33 or m55.  "
              "[default: cortex-m4]")
@click.option("--evaluate", "evaluations", type=_Evaluation(), multiple=True,
              metavar="DATA.NPZ|FOLDER|FILE.PY:METRIC",
              help="Compare with PyTorch on these samples; with an array labels also the accuracy. "
              "FILE.PY:METRIC names your own function metric(outputs, labels), which returns a number, "
              "higher is better.  "
              "[default: those of --quantize, or the example inputs]")
@click.option("--int8-io", is_flag=True,
              help="Remove the operators that quantize inputs and dequantize outputs.")
@click.option("--fuse-rnn", is_flag=True,
              help="Make GRU, LSTM and their cells one instruction for each layer and direction. "
              "ExecuTorch's own runtime lacks these operators.")
@click.option("--keep-float", multiple=True, metavar="LAYER",
              help="With --quantize: compute this layer in float, a module or a value by its name in "
              "the report; repeat it for more.")
@click.option("--mixed", type=_Target(), is_flag=False, flag_value=math.nan,
              help="With --quantize: leave further layers in float, at the fewest estimated cycles, "
              "until all outputs have this SQNR in dB, or the metric of --evaluate has this value.  "
              f"[{_SQNR:g} dB without a number]")
@click.option("--shape", "shapes", multiple=True, type=_Shape(),
              help="For TorchScript: sizes of an input, and its dtype (float32 by default); repeat it "
              "for each input.")
@click.option("--inputs", type=InputFile(), metavar="IN.NPZ",
              help="For TorchScript and .pt2: example inputs, arrays in0, in1 ..., of 128 MB at most.")
@click.option("--unconfined", is_flag=True,
              help="For TorchScript and .pt2: run their code with all your rights, if nothing can "
              "confine it.")
@click.option("--accept-unusable", is_flag=True,
              help="End with status 0 even if an output is too far from PyTorch's to be of use, or "
              "misses the SQNR of --mixed.")
@options.report
@options.as_json
def export(model: Path, output: Path | None, quantize: Path | None, observer: str | None,
           core: str | None, evaluations: tuple[Path, ...], int8_io: bool, fuse_rnn: bool,
           keep_float: tuple[str, ...], mixed: float | None, shapes: tuple[np.ndarray, ...],
           inputs: Path | None, unconfined: bool, accept_unusable: bool, page: Path | None,
           as_json: bool) -> None:
    """Export a PyTorch module as a program (.pte), or reduce a program's memory.

    MODEL is one of

    \b
      file.py:function    your function, which returns (module, example inputs)
      package:function    the same in a module that Python can import
      model.pt2           a file that torch.export.save wrote
      model.pt            TorchScript, from torch.jit.save; give --shape or --inputs
      model.pte           a program: its memory is planned again

    With --quantize the program is int8, by ExecuTorch's Cortex-M flow. The report has the bytes of
    flash and RAM, and the difference of each layer from PyTorch, as the host twin computes it. With
    --int8-io the inputs and outputs of a quantized program are the integers themselves;
    method_meta.input_quantization(i) and output_quantization(i) return their scale and zero point. A
    program with operators that have no kernel is written, but the exit status is 1. A program whose
    outputs are far from PyTorch's, or miss the SQNR of --mixed, is written, but the exit status is 3.
    The command needs the packages torch and executorch (pip install 'picotorch[export]').

    A function is your own code and runs with all your rights. TorchScript and .pt2 files contain code,
    too: torch runs it, in a process that can read your files but change none of them (Linux 5.13 and
    newer, by Landlock, and by seccomp where there is one). If anything is missing, the command prints
    what the code can still do. On other systems nothing confines it: export only files that you trust,
    with --unconfined.

    \b
    Examples:
      picotorch export net.py:model -o model.pte
      picotorch export net.py:model --quantize calibration.npz --core cortex-m4
      picotorch export net.py:model --quantize calibration.npz --mixed 30
      picotorch export net.py:model --quantize samples/ --observer percentile
      picotorch export net.py:model --quantize samples/ --evaluate test.npz --evaluate net.py:f1
      picotorch export model.pt2 --quantize calibration.npz --evaluate test.npz
      picotorch export model.pt --shape 1,3,224,224
      picotorch export model.pte --int8-io -o model_int8.pte
    """
    if shapes and inputs is not None:
        raise click.UsageError("give --shape or --inputs, not both")
    evaluate, metric = _evaluations(evaluations)
    if mixed is not None and math.isnan(mixed):
        if metric is not None:
            raise click.UsageError("give the value of the metric to reach: --mixed=0.95 for instance")
        mixed = _SQNR
    if observer is not None:
        observer_names.parse(observer)
    if quantize is None:
        options.refuse({"core", "keep_float", "mixed", "observer"}, "goes with --quantize")
    tell = None if as_json else functools.partial(click.echo, nl=False)
    is_function = modules.is_function(str(model))
    if not is_function:
        modules.check_function(model)
    data = b"" if is_function else read_file(model)
    kind = "" if is_function else torchscript.kind_of(data, model)
    if kind == torchscript.PTE:
        _check_program_options(quantize, evaluations, fuse_rnn, shapes, inputs, unconfined)
    elif int8_io and quantize is None:
        raise click.UsageError("--int8-io is for a quantized program: give --quantize, or a .pte file")
    if metric is not None and not is_function:
        raise click.UsageError("a metric is for a model file.py:function: a file of torch runs in a "
                               "process of its own")
    replaced = False
    if output is None:
        output = _default_output(model, is_function, kind)
        check_output(output)
        replaced = output.exists()
    if kind == torchscript.PTE:
        program, done = replan.export_file(bundled.program_of(data), str(model), int8_io)
        write(output, program)
        if page is not None:
            _write_page(page, output, program, None)
        show.report(dataclasses.replace(done, output=str(output)), as_json, replan.show_text)
        if page is not None and not as_json:
            show.wrote(page)
        return
    chosen = pipeline.ExportOptions(
        None if quantize is None else read_rows(quantize), core or pipeline.CORE,
        None if evaluate is None else read_rows(evaluate), int8_io, fuse_rnn, keep_float, mixed,
        observer or observer_names.DEFAULT)
    if is_function:
        if shapes or inputs is not None or unconfined:
            raise click.UsageError("--shape, --inputs and --unconfined are for files of torch: the "
                                   "function returns its example inputs")
        built = _export_function(str(model), metric, chosen, Steps(tell))
    else:
        examples = list(shapes) or (None if kind == torchscript.PT2 else [])
        examples = examples if inputs is None else read_npz(inputs, [LIMIT])
        built = sandboxed_export.export_file(data, kind, str(model), examples, chosen, tell,
                                             unconfined)
    write(output, built.program)
    found = dataclasses.replace(completing.complete(built, chosen.core), output=str(output),
                                replaced=replaced)
    if found.missing_operators:
        page = None  # there is nothing to measure
    if page is not None:
        _write_page(page, output, built.program, found)
    show.report(found, as_json, report.show_text)
    if page is not None and not as_json:
        show.wrote(page)
    if found.missing_operators:
        sys.exit(1)
    is_missed = found.mixed is not None and not found.mixed.reached
    if (found.verdict == "unusable" or is_missed) and not accept_unusable:
        sys.exit(report.UNUSABLE)


def _write_page(page: Path, output: Path, program: bytes, found: ExportReport | None) -> None:
    """Write a page about the exported program, with the names and the SQNR of the report's layers."""
    from ..report import reporting

    known = reporting.Known() if found is None else reporting.of_export(found, program)
    request = RunRequest(model=output)
    reporting.write_page(page, [reporting.measure(request, reporting.Target(), known)])


def _evaluations(values: tuple[Path, ...]) -> tuple[Path | None, Path | None]:
    """Return the samples and the metric to evaluate by, None for any that is missing."""
    metrics = [value for value in values if modules.is_function(str(value))]
    paths = [value for value in values if value not in metrics]
    if len(metrics) > 1 or len(paths) > 1:
        raise click.UsageError("--evaluate takes samples once, and a metric once, file.py:function")
    return next(iter(paths), None), next(iter(metrics), None)


def _check_program_options(quantize: Path | None, evaluations: tuple[Path, ...], fuse_rnn: bool,
                           shapes: tuple[np.ndarray, ...], inputs: Path | None,
                           unconfined: bool) -> None:
    if shapes or inputs is not None or unconfined:
        raise click.UsageError("--shape, --inputs and --unconfined are for TorchScript and .pt2")
    if quantize is not None or evaluations:
        raise click.UsageError("--quantize and --evaluate are for modules: a program (.pte) cannot be "
                               "quantized")
    if fuse_rnn:
        raise click.UsageError("--fuse-rnn is for modules: a program (.pte) has lost its layers")
    options.refuse({"accept_unusable"}, "is for modules: a program (.pte) is not compared with PyTorch")


def _default_output(model: Path, is_function: bool, kind: str) -> Path:
    if kind == torchscript.PTE:
        raise click.UsageError("Missing option '-o' / '--output'.")
    return Path(str(model).rpartition(":")[2] + ".pte") if is_function else model.with_suffix(".pte")


def _export_function(text: str, metric: Path | None, options: pipeline.ExportOptions,
                     steps: Steps) -> pipeline.Built:
    torch = pipeline.imported(steps).torch
    imported: dict[str, ModuleType] = {}
    if metric is not None:
        options = options._replace(metric=modules.function_of(
            str(metric), 2, "returns a number: metric(outputs, labels)", imported))
    module, inputs = modules.call_function(text, imported)
    return pipeline.build(modules.source_of_module(torch, module, inputs, text, steps), options, steps)
