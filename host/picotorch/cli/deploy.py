"""Define the commands for connected boards: deploy, flash, selftest, boards --connected.

Only these need mpremote and pyserial, so they are imported when a command is called.
"""

import sys
from pathlib import Path
from typing import Any

import click

from ..deploy import flash_tools
from ..host import show
from ..host.twin import open_program
from ..run import running
from . import options
from .command import Choice, InputFile, OutputFile, command


@command()
@options.model
@click.option("--port", metavar="P", default="auto", show_default=True, help=options.PORT_HELP)
@click.option("--to", "folder", metavar="FOLDER",
              help="The folder on the board, for example /flash/models.  [default: its start folder]")
@click.option("--romfs", "to_romfs", is_flag=True,
              help="Copy into the ROMFS partition, where it is used in place; other files there stay.")
@options.data
@options.timeout
@click.option("--force", is_flag=True, help="Copy even if the heap has no room for a run.")
@options.as_json
def deploy(model: Path, port: str, folder: str | None, to_romfs: bool, files: tuple[Path, ...],
           timeout: float | None, force: bool, as_json: bool) -> None:
    """Copy MODEL to a connected board, and check the copy.

    If the board has no picotorch, the native module and the runtime are copied first. Of these modules
    the command selects the first that supports MODEL and fits in the heap: the one that make natmod
    OPTIMIZE=speed built, with all kernels; a new one with the kernels of MODEL; a small one with all
    kernels; a small one with the kernels of MODEL. If the board's module lacks operators or features of
    MODEL, such as complex arithmetic, it is replaced by one that has these and its own.

    Free space and heap are checked first. A file of the same name is replaced only when the copy is
    complete and checked; picotorch run --port then finds it by name and content. In ROMFS the data is
    aligned, so that a run uses it in place. Data files are copied beside MODEL, and replaced together
    with it.

    \b
    Examples:
      picotorch deploy model.pte --port auto
      picotorch deploy model.pte --port /dev/ttyACM0 --to /flash/models
      picotorch deploy model.pte --romfs
    """
    from ..deploy import deploying

    data = running.read_program(model)
    methods = None if force else open_program(data).method_names
    further = list(zip(files, running.read_data(list(files)), strict=True))
    with _Progress(as_json) as progress:
        found = deploying.deploy(data, model, port, folder, to_romfs, methods, progress, further,
                                 timeout)
    show.report(found, as_json, deploying.show_text)


class _Progress:
    """Show bars on stderr, one for each file."""

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet
        self._bar: Any = None
        self._name: str | None = None

    def __enter__(self) -> "_Progress":
        return self

    def __exit__(self, *error: object) -> None:
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


@command()
@click.argument("firmware", type=InputFile(), metavar="MODEL|FIRMWARE")
@click.option("--board", type=Choice(flash_tools.board_names()), required=True, metavar="BOARD",
              help="The board: " + ", ".join(flash_tools.board_names()) + ".")
@click.option("--port", metavar="P", help="The port of its prompt, to start the boot loader and to "
              "check the board afterwards.")
@click.option("--with", "tool", type=Choice(flash_tools.TOOLS), metavar="TOOL",
              help="Use this method: " + ", ".join(flash_tools.TOOLS) + "; by default the first "
              "that is available.")
@options.timeout
@click.option("--dry-run", is_flag=True, help="Only print what would be done.")
@options.as_json
def flash(firmware: Path, board: str, port: str | None, tool: str | None, timeout: float | None,
          dry_run: bool, as_json: bool) -> None:
    """Write FIRMWARE to the flash of a board, and check what was written.

    For a MODEL (.pte, .ptm) a firmware is built with its kernels and the model in flash, as by
    picotorch firmware: on a Pico the model is /rom/MODEL, elsewhere picotorch_models.model. A .uf2 file
    is copied to the drive of the board's boot loader. Other files are written with the first installed
    tool that supports the file and the board (picotool, openocd, pyocd, dfu-util, st-flash,
    teensy_loader_cli). The command does not ask for confirmation.

    \b
    Examples:
      picotorch flash firmware.uf2 --board RPI_PICO
      picotorch flash firmware.uf2 --board RPI_PICO --port auto
      picotorch flash firmware.dfu --board PYBV11 --dry-run
      picotorch flash model.pte --board PYBV11
    """
    options.check_timeout(timeout, port)
    show.report(flash_tools.flash(firmware, board, port, tool, dry_run, timeout), as_json,
                flash_tools.show_text)


@command()
@click.option("--port", metavar="P", default="auto", show_default=True, help=options.PORT_HELP)
@options.timeout
@click.option("--report", type=OutputFile(), default="picotorch-selftest.json",
              show_default=True, metavar="OUT.JSON", help="Write the report to this file.")
@options.as_json
def selftest(port: str, timeout: float | None, report: Path, as_json: bool) -> None:
    """Test models, error handling and parity on a connected board, in about a minute.

    Models whose kernels the firmware lacks, or that do not fit into the board's memory, are left out,
    and listed with the reason. You can send the report in: open an issue in picotorch's repository, and
    attach it. It names the board and its MicroPython version, and contains no personal data and no
    serial number. The exit status is 1 if a step failed, or if none could run.

    \b
    Example:
      picotorch selftest --port auto
    """
    from ..deploy import selftest as tests

    tested = tests.selftest(port, (lambda step: None) if as_json else tests.show_step, timeout)
    tests.write(tested, report)
    show.report(tested, as_json, lambda tested: tests.show_text(tested, report))
    sys.exit(0 if tested.passed else 1)


def list_attached(as_json: bool) -> None:
    """List the connected boards for `boards --connected`."""
    from ..deploy import discovery

    show.report(discovery.attached(), as_json, discovery.show_text)
