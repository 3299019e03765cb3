"""Define picotorch size."""

import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from ..boards.boards import load_board
from ..boards.chips import Chip
from ..host import show
from ..host.twin import open_program
from ..measure import showing, sizing
from ..measure.report import OnBoard
from ..run import running
from ..run.run_request import RunRequest
from . import options
from .command import command


@command()
@options.model
@options.method
@click.option("--chip", "chips", multiple=True, type=options.ChipName(), metavar="CHIP",
              help="A chip, for example stm32f407 (picotorch boards --chips); repeat it.")
@click.option("--ram", type=options.MEMORY, metavar="N",
              help="Bytes of RAM, 256K for example; with --chip in place of the chip's.")
@click.option("--flash", type=options.MEMORY, metavar="N", help="Bytes of flash.")
@click.option("--core", type=options.Core(), metavar="CORE",
              help="cortex-m0plus, cortex-m3, ...  [default: the chip's, or cortex-m4]")
@click.option("--clock", type=options.CLOCK, metavar="CLOCK",
              help="168MHz for example; a number without a unit is in Hz.")
@options.boards(running.board_names()[1:], "Compare with this emulated board; repeat it.")
@options.port
@options.data
@options.backend
@options.pack_weights
@click.option("--fail-on", type=click.Choice(["fit"]), metavar="fit",
              help="Exit with status 1 if a chip or board has no room.")
@options.report
@options.as_json
@options.run_request
def size(request: RunRequest, chips: tuple[Chip, ...], ram: int | None, flash: int | None,
         core: str | None, clock: int | None, boards: tuple[str, ...], fail_on: str | None,
         page: Path | None, as_json: bool) -> None:
    """Show how much memory a method of MODEL needs, to the byte, and which chips and boards it fits.

    For a chip the command adds up what RAM and flash have to hold, in two ways: in C, with the library
    alone, and with MicroPython in picotorch's small firmware. Your own code comes on top. Milliseconds
    are an estimate from the instructions that an emulated board with the same core counts, or with a ~
    from the sizes of the tensors where no firmware of the core is built.

    With --port the command also compares the heap and the storage of a connected board, with the native
    module that picotorch deploy would install there. A model that the board has in its firmware or in
    ROMFS needs no heap for itself. Without any chip, board or port it compares all
    emulated boards.

    \b
    Examples:
      picotorch size model.pte --chip stm32f407
      picotorch size model.pte --ram 256K --flash 1M --core cortex-m4 --clock 168MHz
      picotorch size model.pte --chip rp2040 --chip nrf52840 --fail-on fit
      picotorch size model.pte --board mps2-an386
      picotorch size model.pte --port auto
    """
    options.check_timeout(request.timeout, request.port)
    compared = _chips(chips, {"ram": None if ram is None else {"RAM": ram}, "flash": flash,
                              "core": core, "clock_hz": clock})
    named = compared or boards or request.port
    if fail_on and not named:
        raise click.UsageError("--fail-on fit is about chips or boards: name one, with --chip, --ram, "
                               "--board or --port")
    emulated = list(boards) if named else running.board_names()[1:]
    data = running.read_program(request.model)
    found = sizing.measure(data, str(request.model), request.method_name, emulated,
                           request.pack_weights, request.data(), compared)
    if page is not None:
        from ..report import reporting

        target = reporting.Target(compared, boards)
        reporting.write_page(page, [reporting.measure(request, target, reporting.Known(size=found))])
    if not named and any(board.built for board in found.boards):
        found = dataclasses.replace(found, boards=list(map(_without_hint, found.boards)))
    if request.port is None:
        show.report(found, as_json, showing.show_text)
        fits = True
    else:
        from ..deploy import device_memory

        connected = device_memory.measure(found.needs, open_program(data), request.port,
                                          request.timeout)
        show.report(dataclasses.replace(found, connected=connected), as_json, showing.show_text)
        if not as_json:
            device_memory.show_text(connected)
        fits = connected.fits
    if page is not None and not as_json:
        show.wrote(page)
    if fail_on and not (fits and all(one.fits for one in [*found.chips, *found.boards])):
        sys.exit(1)


def _without_hint(board: OnBoard) -> OnBoard:
    """Return the report of a board, without the message if each model has its own firmware there."""
    if board.built or load_board(board.board).full_firmware:
        return board
    return dataclasses.replace(board, message="")


def _chips(chips: Sequence[Chip], described: dict[str, Any]) -> list[Chip]:
    """Return the named chips, or the one chip that options describe."""
    described = {key: value for key, value in described.items() if value is not None}
    if described and not chips:
        chips = [Chip("this chip", "this chip", "cortex-m4", None, None, None)]
    return [dataclasses.replace(chip, **described) for chip in chips]
