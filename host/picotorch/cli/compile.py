"""Define picotorch compile, which writes compiled methods and C projects."""

import dataclasses
import functools
import sys
from pathlib import Path

import click

from ..boards.boards import load_board
from ..boards.chips import Chip
from ..compile import compiling, summary
from ..host import show
from ..host.optimize import Optimize
from ..host.twin import is_ptm
from ..package.platforms import MAKE, NAMES, Platform, named
from ..run import running
from ..run.run_request import RunRequest
from . import options
from .command import Choice, InputFile, OutputFile, command
from .drawing import DrawingFile


@command("compile")
@click.argument("models", nargs=-1, required=True, type=InputFile(), metavar="MODEL...")
@click.option("--board", type=Choice(running.board_names()[1:]), metavar="BOARD",
              help="Pack weights for the core of this board.")
@click.option("--chip", type=options.ChipName(), metavar="CHIP",
              help="Pack weights for the core of this chip (picotorch boards --chips).")
@click.option("--core", type=options.Core(), metavar="CORE",
              help="Pack weights for this core: cortex-m0plus, cortex-m4, ...  [default: cortex-m4]")
@options.data
@click.option("-o", "--output", type=OutputFile(), metavar="OUT.PTM",
              help="The .ptm file to write.  [default: MODEL with .ptm]")
@click.option("--c", "folder", type=click.Path(file_okay=False, path_type=Path), metavar="FOLDER",
              help="Write a C project with the compiled method instead: sources, Makefile, "
                   "CMakeLists.txt. Several models share one copy of the library.")
@click.option("--for", "platform", type=Choice(NAMES), metavar="PLATFORM",
              help="With --c: the build system or environment that the project is for: "
                   f"{', '.join(NAMES)}.  [default: make, with CMake]")
@click.option("--name", "names", multiple=True, metavar="NAME",
              help="With --c: the prefix of the model's functions; repeat it for each model.  "
                   "[default: the name of its file]")
@options.optimize("size: store no packed weights, so that the .ptm file runs on any core, and use "
                  "the smallest temp memory. speed: store all packed weights, and use the temp memory "
                  "with which kernels are fastest. balanced: store the packed weights that save cycles "
                  "and use more temp memory, if the chip or board has room; without a chip or board, "
                  "if that saves 5 % of the cycles of a C project.")
@click.option("--int8-io", is_flag=True,
              help="Remove the operators that quantize inputs and dequantize outputs.")
@click.option("--keep-plan", is_flag=True, help="Keep the program's memory plan.")
@click.option("--memory-map", type=DrawingFile(), metavar="OUT.SVG|PNG",
              help="Draw the planned memory before and after, as SVG or PNG.")
@options.report
@options.as_json
def compile_command(models: tuple[Path, ...], board: str | None, chip: Chip | None, core: str | None,
                    files: tuple[Path, ...], output: Path | None, folder: Path | None,
                    platform: str | None, names: tuple[str, ...], optimize: Optimize, int8_io: bool,
                    keep_plan: bool, memory_map: Path | None, page: Path | None,
                    as_json: bool) -> None:
    """Compile MODEL ahead of time to a .ptm file, which runs from flash without a loader.

    A .ptm file contains the records that loading the program would write to the pool, the constants,
    and weights packed for the core. Only data that changes is in RAM: for most models the method pool
    is empty. If ExecuTorch's exporter is installed, the memory is planned again. A .ptm file can
    replace a .pte file in picotorch run, parity, size and deploy.

    The summary lists flash and RAM by part and estimates the time of a run, at the clock of the board
    or chip, from the instructions that an emulated board with the same core counts, or from the sizes
    of the tensors where no firmware of the core is built. The exit status is 1 if the board or chip
    has no room.

    \b
    Examples:
      picotorch compile model.pte --board mps2-an386
      picotorch compile model.pte --chip rp2040 -o model.ptm
      picotorch run model.ptm --board mps2-an386
      picotorch compile model.pte --core cortex-m4 --optimize speed --c project
      picotorch compile kws.pte faces.pte --c project
      picotorch compile kws.pte --chip rp2040 --c kws --for arduino
    """
    if platform and not folder:
        raise click.UsageError("--for is for --c.")
    place = named(platform) if platform else MAKE
    optimize = _optimize_for(place, board or chip or core, optimize)
    _check_options(models, board, chip, core, output, folder, names, int8_io, keep_plan, page)
    target = load_board(board) if board else chip
    job = compiling.Job(models, files, output, folder, place, names, target, core or "cortex-m4",
                        optimize, int8_io, keep_plan, memory_map)
    compiled = compiling.compile_models(
        job, None if as_json else functools.partial(click.echo, nl=False))
    show.report(compiled, as_json, summary.show_text)
    if page is not None:
        _write_page(page, models[0], Path(compiled.output), files, chip, board)
    for path in (memory_map, page):
        if path is not None and not as_json:
            show.wrote(path)
    if not compiled.has_room:
        sys.exit(1)


def _optimize_for(platform: Platform, core: object, optimize: Optimize) -> Optimize:
    """Return what to optimize in a project for a platform. Raises UsageError.

    Packed weights run on one core, so only a project for a named core has them, or one with make, which
    states its core. core: the board, chip or core that was named.
    """
    if not platform.is_arm and core:
        raise click.UsageError(f"--for {platform.name} is for cores without packed weights: leave out "
                               "--board, --chip and --core.")
    if platform == MAKE or core:
        return optimize
    if optimize.pack_weights == "all":
        raise click.UsageError("--optimize speed packs weights for one core: name it by --core, --chip "
                               "or --board.")
    return dataclasses.replace(optimize, pack_weights="none",
                               scratch=optimize.scratch if platform.is_arm else "min")


def _write_page(page: Path, model: Path, compiled: Path, files: tuple[Path, ...], chip: Chip | None,
                board: str | None) -> None:
    """Write a page with the program and its .ptm file beside each other."""
    from ..report import reporting

    target = reporting.Target((chip,) if chip else (), (board,) if board else ())
    request = RunRequest(model=model, files=files)
    reporting.write_page(page, reporting.measure_all([model, compiled], request, target))


def _check_options(models: tuple[Path, ...], board: str | None, chip: Chip | None, core: str | None,
                   output: Path | None, folder: Path | None, names: tuple[str, ...],
                   int8_io: bool, keep_plan: bool, page: Path | None) -> None:
    """Raise UsageError for options that contradict each other."""
    if folder and output:
        raise click.UsageError("Give --output or --c, not both.")
    if len(models) > 1 and not folder:
        if len(models) == 2 and models[1].suffix == ".ptm" and not output:
            raise click.UsageError(f"{models[1]} is no program: if the .ptm file is to have this name, "
                                   f"write -o {models[1]}.")
        raise click.UsageError(f"A .ptm file has one model, and {', '.join(map(str, models))} are "
                               "given: compile each separately, or give --c FOLDER for a C project.")
    if output and output.suffix.lower() in (".pte", ".bpte", ".ptd"):
        raise click.UsageError(f"{output} is the name of a program or its data: give the .ptm file one "
                               "that ends in .ptm.")
    if page and folder:
        raise click.UsageError("--report is about a .ptm file: leave out --c.")
    if names and not folder:
        raise click.UsageError("--name is for --c.")
    if names and len(names) != len(models):
        raise click.UsageError(f"--name is given {len(names)} times for {len(models)} "
                               f"model{'s' if len(models) > 1 else ''}: give one for each.")
    if sum(map(bool, (board, chip, core))) > 1:
        raise click.UsageError("Give only one of --board, --chip and --core.")
    if int8_io and keep_plan:
        raise click.UsageError("--int8-io changes the memory plan: leave out --keep-plan.")
    for model in models:
        if is_ptm(running.read_program(model)):
            raise click.UsageError(f"{model} is a .ptm file already: name its program, the .pte file.")
