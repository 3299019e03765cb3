"""The commands that are about connected boards: deploy, flash, selftest, boards --connected.

mpremote and pyserial, which only these need, are imported when a command is called.
"""

import sys
from pathlib import Path

import click

from .. import options, show
from ..run import running
from ..twin import open_program
from . import flash_tools


@click.command()
@options.model
@click.option("--port", metavar="P", default="auto", show_default=True, help=options.PORT_HELP)
@click.option("--to", "folder", metavar="FOLDER",
              help="Where on the board, /flash/models say; where it starts by default.")
@click.option("--romfs", "to_romfs", is_flag=True,
              help="Into the ROMFS partition, whose other files stay: there it is used in place.")
@click.option("--force", is_flag=True, help="Even where the heap has no room for what a run takes.")
@options.as_json
def deploy(model, port, folder, to_romfs, force, as_json):
    """Copy MODEL to a connected board, and check the copy.

    Where the board has no picotorch, the native module and the runtime are copied first: the one that
    make natmod built, with all kernels, or where the heap has no room for it one with the kernels of
    MODEL, which is built then. One that lacks operators of MODEL is renewed: with those of both. Free
    space and heap are looked at before. A file of this name stays as
    it is until the copy is whole and checked; picotorch run --port then finds it by name and content.
    In ROMFS its data is aligned, so that a run uses it where it is.

    \b
    Examples:
      picotorch deploy model.pte --port auto
      picotorch deploy model.pte --port /dev/ttyACM0 --to /flash/models
      picotorch deploy model.pte --romfs
    """
    from . import deploying

    data = running.read_program(model)
    methods = None if force else open_program(data).method_names
    with _Progress(as_json) as progress:
        entry = deploying.deploy(data, model, port, folder, to_romfs, methods, progress)
    show.entry(entry, as_json, deploying.show_text)


class _Progress:
    """Bars on stderr: one for each file."""

    def __init__(self, quiet: bool):
        self._quiet = quiet
        self._bar = None
        self._name = None

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self._bar is not None:
            self._bar.render_finish()

    def __call__(self, name: str, sent: int, size: int) -> None:
        if self._quiet:
            return
        if name != self._name:
            self.__exit__()
            self._bar = click.progressbar(length=size, label=name, file=sys.stderr)
            self._name = name
        self._bar.update(min(sent, size) - self._bar.pos)


@click.command()
@click.argument("firmware", type=click.Path(path_type=Path), metavar="MODEL|FIRMWARE")
@click.option("--board", type=click.Choice(flash_tools.board_names()), required=True, metavar="BOARD",
              help="The board: " + ", ".join(flash_tools.board_names()) + ".")
@click.option("--port", metavar="P", help="Where its prompt is: it is asked to start its boot loader, "
              "and afterwards what it is.")
@click.option("--with", "tool", type=click.Choice(flash_tools.TOOLS), metavar="TOOL",
              help="By this way: " + ", ".join(flash_tools.TOOLS) + "; by default the first that there "
              "is.")
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@options.as_json
def flash(firmware, board, port, tool, dry_run, as_json):
    """Write FIRMWARE to the flash of a board, and check what was written.

    Of MODEL (.pte) a firmware is built with its kernels and the model in flash, as picotorch firmware
    does: on a Pico it is /rom/MODEL, elsewhere picotorch_models.model. A .uf2 file goes to the drive
    that the board's boot loader shows. Any file goes by the first of the board's tools that is
    installed (picotool, openocd, pyocd, dfu-util, st-flash, teensy_loader_cli) and takes files of its
    kind. Nothing is asked.

    \b
    Examples:
      picotorch flash firmware.uf2 --board RPI_PICO
      picotorch flash firmware.uf2 --board RPI_PICO --port auto
      picotorch flash firmware.dfu --board PYBV11 --dry-run
      picotorch flash model.pte --board PYBV11
    """
    entry = flash_tools.flash(firmware, board, port, tool, dry_run)
    show.entry(entry, as_json, flash_tools.show_text)


@click.command()
@click.option("--port", metavar="P", default="auto", show_default=True, help=options.PORT_HELP)
@click.option("--report", type=click.Path(path_type=Path), default="picotorch-selftest.json",
              show_default=True, metavar="OUT.JSON", help="Where the report goes.")
@options.as_json
def selftest(port, report, as_json):
    """Try models, failures and parity on a connected board, in about a minute.

    What does not fit into the board's memory is left out, and said. The report is there to be sent in:
    it says what board and MicroPython it was, and has no name and no number of yours. Exit status 1
    where a step failed.

    \b
    Example:
      picotorch selftest --port auto
    """
    from . import selftest as tests

    report.touch()  # what cannot be written is said before the minute, not after it
    tested = tests.selftest(port, (lambda step: None) if as_json else tests.show_step)
    tests.write(tested, report)
    show.entry(tested, as_json, tests.show_text, report)
    sys.exit(0 if tested["passed"] else 1)


def list_attached(as_json: bool) -> None:
    """boards --connected"""
    from . import attached

    show.entry(attached.attached(), as_json, attached.show_text)


def room_of(need: dict, port: str) -> dict:
    """size --port"""
    from . import room

    return room.measure(need, port)


def show_room(entry: dict) -> None:
    from . import room

    room.show_text(entry)
