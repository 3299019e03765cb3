"""Define picotorch firmware and picotorch natmod: builds with the kernels that models need."""

from pathlib import Path

import click

from picotorch import PARTS, Program

from ..firmware import kernels_in_flash, native_module, ports, rp2, selective
from ..host import show
from ..host.files import about, write
from ..host.frozen_models import parse as parse_frozen
from ..host.optimize import Optimize
from ..host.report import WrittenFile
from ..host.twin import open_program
from ..run import running
from . import options
from .command import Choice, InputFile, OutputFile, command


@command()
@click.option("--models", "first", multiple=True, type=InputFile(),
              metavar="MODEL...", help="Link only the kernels that these .pte files need.")
@click.argument("models", nargs=-1, type=InputFile(), metavar="")
@click.option("--board",
              type=Choice([*running.board_names()[1:], *rp2.BOARDS, *ports.boards()]),
              default=running.DEFAULT_BOARD, show_default=True, metavar="BOARD",
              help="The board; also one of MicroPython's own, such as RPI_PICO or PYBV11, with all "
              "kernels if no models are given.")
@click.option("--frozen-model", "frozen", multiple=True, metavar="[NAME=]MODEL",
              help="Put this file into the flash of MicroPython's own board: "
              "picotorch_models.NAME, used in place.")
@click.option("--output", type=OutputFile(".elf", ".uf2", make_folder=True), metavar="FW.ELF",
              help="The file to write, with its map beside it; build/firmware/BOARD-selected.elf by "
              "default, with --bare BOARD-bare-selected.elf; for a Pico a UF2 file.")
@click.option("--bare", is_flag=True, help="Build without MicroPython.")
@click.option("--with", "parts", multiple=True, type=Choice([name for name, _ in PARTS]),
              help="Include this part of the runtime too, for your own Python code on the board; the "
              "parts that the models need are always included.")
@options.optimize("size: leave out the variants of int8 convolutions: less flash and temp memory, "
                  "more time, the same outputs. balanced, speed: include the variants that speed up "
                  "one of the models.")
@click.option("--operators", type=OutputFile(make_folder=True), metavar="OPERATORS.DEF",
              help="Only write the list of operators, for your own build (examples/c).")
@options.as_json
def firmware(first: tuple[Path, ...], models: tuple[Path, ...], board: str, frozen: tuple[str, ...],
             output: Path | None, bare: bool, parts: tuple[str, ...], optimize: Optimize,
             operators: Path | None, as_json: bool) -> None:
    """Build the firmware of a board with only the kernels that some models need.

    The operators keep their numbers, so outputs, memory needs and the bytes of a loaded method are
    the same as in the firmware with all kernels (make firmware). Run it with --firmware. It has the
    runtime's parts for delegates and external data only if a model needs them.

    For Raspberry Pi Pico and Pico 2 the result is MicroPython's own port with picotorch inside, as a
    UF2 file. It contains the models, used in place in flash as /rom/NAME. Without --models it has all
    kernels. An installed wheel contains that firmware and adds the models to it, without a compiler.

    \b
    Example:
      picotorch firmware --models a.pte b.pte --board mps2-an386 --output fw.elf
      picotorch firmware --board RPI_PICO --models a.pte
      picotorch run a.pte --board mps2-an386 --firmware fw.elf
      picotorch firmware --bare --models a.pte --board mps2-an386 --optimize size
      picotorch firmware --models a.pte --operators operators.def
      picotorch firmware --board PYBV11 --models a.pte --frozen-model a.pte
    """
    paths = [*first, *models]
    is_port, is_rp2 = board in ports.boards(), board in rp2.BOARDS
    if frozen and not is_port:
        raise click.UsageError(f"--frozen-model is not for {board}: " + (
            "models of --models are in its flash, as /rom/NAME" if is_rp2 else
            "it receives a model with each run"))
    if not paths and not is_port and not is_rp2:
        raise click.UsageError("Give --models; make firmware builds with the kernels of all operators.")
    if optimize.left_out and not paths:
        raise click.UsageError("--optimize size: give --models; a firmware with all kernels has all "
                               "variants of convolutions")
    if bare and is_rp2:
        raise click.UsageError(f"--bare: {board} has a firmware of MicroPython's own port only")
    if bare:
        options.refuse({"parts"}, "is for Python code on the board: leave out --bare")
    if operators is not None:
        options.refuse({"bare", "board", "frozen", "output", "parts"},
                       "does not go with --operators, which builds no firmware")
    if is_port:
        ports.check(board, bare, output)
    suffix = ".uf2" if is_rp2 else ".elf"
    if output is not None and output.suffix != suffix:
        raise click.UsageError(f"--output {output}: the name has to end in {suffix}")
    files = {str(model): running.read_program(model) for model in paths}
    programs = {name: _opened(file, name) for name, file in files.items()}
    if operators is not None:
        write(operators, selective.selection(programs, optimize))
        show.report(WrittenFile(operators), as_json, lambda found: show.wrote(found.output))
        return
    if is_port:
        show.report(ports.build(board, programs, _read_frozen(frozen), parts, optimize), as_json,
                    ports.show_text)
        return
    if is_rp2:
        show.report(rp2.build(board, programs, files, output, parts, optimize), as_json, rp2.show_text)
        return
    built = selective.build(board, programs, output or selective.default_output(board, bare), bare,
                            parts, optimize)
    show.report(built, as_json, selective.show_text)


@command()
@click.option("--models", "first", multiple=True, type=InputFile(),
              metavar="MODEL...", help="Link only the kernels that these files need, and the readers "
              "of their formats.")
@click.argument("models", nargs=-1, type=InputFile(), metavar="")
@options.optimize("size: leave out the texts of errors, EventTracer and the int8 loops for each core, "
                  "in place of which slower plain C runs; with --flash, leave out only the variants of "
                  "int8 convolutions. speed: include all of these. balanced: the same as size if all "
                  "kernels are built, or for .ptm files without packed weights, both without --flash; "
                  "otherwise the same as speed.")
@click.option("--arch", "arches", multiple=True, type=Choice(list(native_module.ARCHES)),
              help="Build for this architecture; repeat it for more.  [default: the architectures "
              "that can run the models]")
@click.option("--output", type=click.Path(path_type=Path), default=Path("build/natmod/package"),
              show_default=True, metavar="FOLDER", help="The folder for the board's files.")
@click.option("--flash", "board", type=Choice(list(kernels_in_flash.BOARDS)),
              help="Put the kernels into the flash that this board's stock firmware leaves free.")
@click.option("--frozen-model", "frozen", multiple=True, metavar="[NAME=]MODEL",
              help="With --flash: put this model there too, as picotorch_models.NAME, used in place.")
@click.option("--firmware", type=InputFile(),
              metavar="FW.UF2", help="With --flash: check that this firmware leaves the flash free.")
@options.as_json
def natmod(first: tuple[Path, ...], models: tuple[Path, ...], optimize: Optimize,
           arches: tuple[str, ...], output: Path, board: str | None, frozen: tuple[str, ...],
           firmware: Path | None, as_json: bool) -> None:
    """Build the native module, which adds picotorch to stock MicroPython without flashing.

    Without models the module has all kernels except the extra ones, is small and reads .pte files.
    With models it reads their formats: .pte files, .ptm files or both; a module for .ptm files alone
    is smallest. FOLDER gets ARCH/_picotorch.mpy, ARCH/package.json for mip, the runtime as bytecode
    in picotorch/, and install.py, which selects the architecture on the board.

    MicroPython copies the module into its heap, except the texts of errors, which are read from the
    file when an error is shown. With --flash kernels and models are in flash: kernels.uf2 and
    models.uf2 for the board's boot loader. The board's firmware and files stay. An installed wheel
    supports only --flash, with the kernels that it contains, and without a compiler.

    \b
    Example:
      picotorch natmod --models a.pte --arch armv6m
      picotorch natmod --models a.ptm --arch armv6m
      picotorch natmod --optimize speed --output natmod
      picotorch natmod --flash RPI_PICO --models a.pte --frozen-model a.pte
    """
    programs = {str(model): _opened(running.read_program(model), model) for model in [*first, *models]}
    if not board and (frozen or firmware):
        raise click.UsageError("--frozen-model and --firmware go with --flash")
    if board:
        if arches:
            raise click.UsageError("--arch does not go with --flash")
        written = kernels_in_flash.build(board, programs, _read_frozen(frozen), firmware, output,
                                         optimize)
        show.report(written, as_json, kernels_in_flash.show_text)
        return
    small = native_module.is_small(programs, optimize)
    arches = arches or native_module.arches_of(programs, small)
    modules = native_module.build(arches, programs, output, small)
    show.report(modules, as_json, native_module.show_text)


def _opened(data: bytes, path: Path | str) -> Program:
    with about(path):
        return open_program(data)


def _read_frozen(texts: tuple[str, ...]) -> list[tuple[str, bytes]]:
    """Read the name and the bytes of each --frozen-model."""
    try:
        named = [parse_frozen(text) for text in texts]
    except ValueError as error:
        raise click.UsageError(f"--frozen-model: {error}") from None
    return [(name, running.read_program(path)) for name, path in named]
