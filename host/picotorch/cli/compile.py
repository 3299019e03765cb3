"""picotorch compile: images and C projects."""

import dataclasses
import functools
import sys
from pathlib import Path
from typing import Any

import click

from picotorch import MethodMeta

from ..boards.boards import Board, load_board
from ..boards.chips import Chip
from ..compile import compiling, rooms, summary
from ..compile.image_writer import Image
from ..export.steps import Steps
from ..host import show
from ..host.drawing import write_drawing
from ..host.files import about, check_output, write
from ..host.optimize import Optimize
from ..host.twin import is_image
from ..inspect import memory_map as memory_map_module
from ..measure import fitting
from ..package import c_project, end_names
from ..run import running
from . import options
from .command import Choice, InputFile, OutputFile, command
from .drawing import DrawingFile


@command("compile")
@click.argument("models", nargs=-1, required=True, type=InputFile(), metavar="MODEL...")
@click.option("--board", type=Choice(running.board_names()[1:]), metavar="BOARD",
              help="Prepare weights for the core of this board.")
@click.option("--chip", type=options.ChipName(), metavar="CHIP",
              help="Prepare weights for the core of this chip (picotorch boards --chips).")
@click.option("--core", type=options.Core(), metavar="CORE",
              help="Prepare weights for this core: cortex-m0plus, cortex-m4, ...  [default: cortex-m4]")
@options.data
@click.option("-o", "--output", type=OutputFile(), metavar="OUT.PTM",
              help="The image to write.  [default: MODEL with .ptm]")
@click.option("--c", "folder", type=click.Path(file_okay=False, path_type=Path), metavar="FOLDER",
              help="Write a C project with the image instead: sources, Makefile, CMakeLists.txt. "
                   "Several models share one copy of the library.")
@click.option("--name", "names", multiple=True, metavar="NAME",
              help="With --c: what the model's functions begin with; repeat it for each model.  "
                   "[default: the name of its file]")
@options.optimize("size: store no packed weights, so that the image runs on any core, and use the "
                  "smallest temp memory. speed: store all packed weights, and use the temp memory with "
                  "which kernels are fastest. balanced: store the packed weights that save cycles, and "
                  "use more temp memory, where the chip or board has room; if none is named, where "
                  "it saves 5 % of the cycles of a C project.")
@click.option("--int8-io", is_flag=True,
              help="Remove the operators that quantize inputs and dequantize outputs.")
@click.option("--keep-plan", is_flag=True, help="Keep the program's memory plan.")
@click.option("--memory-map", type=DrawingFile(), metavar="OUT.SVG|PNG",
              help="Draw the planned memory before and after, as SVG or PNG.")
@options.as_json
def compile_command(models: tuple[Path, ...], board: str | None, chip: Chip | None, core: str | None,
                    files: tuple[Path, ...], output: Path | None, folder: Path | None,
                    names: tuple[str, ...], optimize: Optimize, int8_io: bool, keep_plan: bool,
                    memory_map: Path | None, as_json: bool) -> None:
    """Compile MODEL ahead of time to an image, which runs from flash without a loader.

    An image holds the records that loading the program would write to the pool, the constants, and
    the weights in the form that is fastest on the core. Only data that changes is in RAM: for most
    models the method pool is empty. If ExecuTorch's exporter is installed, the memory is planned again.
    An image can replace a .pte file in picotorch run, parity, size and deploy.

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
    """
    _check_options(models, board, chip, core, output, folder, names, int8_io, keep_plan)
    target: Board | Chip | None = load_board(board) if board else chip
    core = target.core if target else core or "cortex-m4"
    programs = [_read(model) for model in models]
    called = list(names) or list(map(c_project.name_of, models))
    if folder:
        c_project.check(called, folder)
    elif not output:
        output = compiling.default_output(models[0])
        check_output(output)
    has_room = None if target is None else functools.partial(rooms.has_room, target, bool(folder))
    if optimize.scratch == "fitting" and not (folder or target):
        optimize = dataclasses.replace(optimize, scratch="preferred")
    data = running.read_data(list(files))
    entries: list[dict[str, Any]] = []
    images: list[Image] = []
    drawings: list[tuple[MethodMeta, str]] = []
    shown: list[Steps] = []
    for model, program in zip(models, programs, strict=True):
        others = sum(map(len, programs)) - len(program)

        def room(image: Image, others: int = others) -> int | None:
            most = rooms.most_bytes(target, bool(folder), rooms.library_of([image.data], core))
            return most and most - others

        steps = Steps(None if as_json else functools.partial(click.echo, nl=False),
                      f"{show.printable(str(model))}: " if len(models) > 1 else "")
        with about(model):
            image, entry = compiling.compile_file(program, str(model), data, core, optimize, room,
                                                  has_room, entries, int8_io, keep_plan, steps)
        if memory_map is not None:
            drawings += compiling.drawings(program, image, str(model))
        entries.append(entry)
        images.append(image)
        shown.append(steps)
    compiling.choose_temp(entries, None if optimize.scratch == "preferred" else has_room)
    for entry, image, steps in zip(entries, images, shown, strict=True):
        with steps.step("Measuring on an emulated board"):
            summary.add_measured(entry, image, core, target.clock_hz if target else None)
    needs = [method["after"] for entry in entries for method in entry["methods"]]
    library = rooms.library_of([image.data for image in images], core)
    fit = target and rooms.fit(target, bool(folder), library, [len(image.data) for image in images],
                               needs)
    if memory_map is not None:
        write_drawing(memory_map, memory_map_module.draw_all(drawings))
    found = {"output": str(folder or output), "core": core, "models": entries, "library": library,
             "target": target and target.name, "fit": fit}
    if folder:
        board = board or fitting.board_with(core).name
        projects = [
            c_project.Model(name, image.data, note=f"{model.name} for {core}", board=board, temp={
                method["method"]: method["after"]["temp"] for method in entry["methods"]},
                            end_names=end_names.of_program(program))
            for name, image, model, entry, program in zip(called, images, models, entries, programs,
                                                          strict=True)]
        found["kept"] = c_project.write(projects, folder)["kept"]
    else:
        assert output is not None  # that of the option, or the default
        write(output, images[0].data)
    for entry, name in zip(entries, called, strict=True):
        entry["output"] = str(folder / name if folder else output)
    show.entry(found, as_json, summary.show_text)
    if memory_map is not None and not as_json:
        show.wrote(memory_map)
    if fit and fit["fits"] is False:
        sys.exit(1)


def _check_options(models: tuple[Path, ...], board: str | None, chip: Chip | None, core: str | None,
                   output: Path | None, folder: Path | None, names: tuple[str, ...],
                   int8_io: bool, keep_plan: bool) -> None:
    """Raise UsageError for options that contradict each other."""
    if folder and output:
        raise click.UsageError("Give --output or --c, not both.")
    if len(models) > 1 and not folder:
        if len(models) == 2 and models[1].suffix == ".ptm" and not output:
            raise click.UsageError(f"{models[1]} is no program: if the image gets this name, "
                                   f"write -o {models[1]}.")
        raise click.UsageError(f"An image has one model, and {', '.join(map(str, models))} are given: "
                               "compile each by itself, or give --c FOLDER for a C project with all.")
    if output and output.suffix.lower() in (".pte", ".bpte", ".ptd"):
        raise click.UsageError(f"{output} is the name of a program or its data: give the image one "
                               "that ends in .ptm.")
    if names and not folder:
        raise click.UsageError("--name is for --c.")
    if names and len(names) != len(models):
        raise click.UsageError(f"--name is given {len(names)} times for {len(models)} "
                               f"model{'s' if len(models) > 1 else ''}: give one for each.")
    if sum(map(bool, (board, chip, core))) > 1:
        raise click.UsageError("Give one of --board, --chip and --core, not both.")
    if int8_io and keep_plan:
        raise click.UsageError("--int8-io changes the memory plan: leave out --keep-plan.")


def _read(model: Path) -> bytes:
    data = running.read_program(model)
    if is_image(data):
        raise click.UsageError(f"{model} is an image already: name its program, the .pte file.")
    return data
