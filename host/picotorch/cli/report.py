"""Define picotorch report."""

from pathlib import Path

import click

from ..boards.chips import Chip
from ..host import show
from ..report import page, reporting
from ..run import running
from ..run.run_request import RunRequest
from . import options
from .command import Choice, InputFile, OutputFile, command


@command()
@click.argument("models", nargs=-1, required=True, type=InputFile(), metavar="MODEL...")
@options.method
@click.option("--chip", "chips", multiple=True, type=options.ChipName(), metavar="CHIP",
              help="A chip for the verdict (picotorch boards --chips); repeat it.  [default: all]")
@click.option("--board", type=Choice(running.board_names()), metavar="BOARD",
              help="The board that counts the cycles of layers.  [default: one with the core of the "
              "first chip, or with a Cortex-M4]")
@click.option("--float", "float_model", type=InputFile(), metavar="FLOAT.PTE",
              help="The same module in float32, to show beside each MODEL.")
@click.option("--samples", type=InputFile(), metavar="S.NPZ",
              help="Samples of inputs, arrays in0, in1 ... of (samples, *sizes): with --float the SQNR "
              "of outputs and layers, with an array labels the accuracy.")
@options.data
@options.pack_weights
@click.option("-o", "--output", type=OutputFile(".html"), metavar="OUT.HTML",
              help="The page to write.  [default: the first MODEL with .html]")
@options.as_json
def report(models: tuple[Path, ...], method: str, chips: tuple[Chip, ...], board: str | None,
           float_model: Path | None, samples: Path | None, files: tuple[Path, ...],
           pack_weights: bool, output: Path | None, as_json: bool) -> None:
    """Write a page of HTML about MODEL: does it fit, where do memory and time go, what to change.

    The page is one file without references to others. It shows what size, profile, advise and inspect
    measure: the verdict, a table of layers, the planned memory over time, cycles by layer and operator,
    flash by part, and all chips. Several models are shown side by side.

    \b
    Examples:
      picotorch report model.pte
      picotorch report model.pte --chip stm32f407 --chip rp2040 -o report.html
      picotorch report int8.pte --float float.pte --samples test.npz -o report.html
      picotorch report small.pte large.pte
    """
    path = output or models[0].with_suffix(".html")
    request = RunRequest(model=models[0], method=method, files=files, pack_weights=pack_weights)
    target = reporting.Target(chips, (board,) if board else ())
    found = reporting.measure_all(models, request, target, float_model, samples)
    reporting.write_page(path, found)
    if as_json:
        show.as_json({"output": str(path), **page.data_of(found)})
        return
    for line in page.summary(found):
        show.line(line)
    show.wrote(path)
