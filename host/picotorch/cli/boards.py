"""Define picotorch boards and picotorch repl."""

import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import click

from ..boards import chips
from ..boards.boards import load_board
from ..host import show
from ..run import listing, pico, running
from . import options
from .command import Choice, InputFile, command


@command()
@click.option("--board", type=Choice([*running.board_names()[1:], pico.BOARD]),
              default=running.DEFAULT_BOARD, show_default=True, metavar="BOARD",
              help="The emulated board.")
@click.option("--listen", type=options.Listen(), help="Serve the prompt on a port instead: pty, or "
              "tcp:PORT on this computer, for mpremote and others.")
@click.option("--romfs", type=InputFile(),
              metavar="IMAGE", help="Mount this ROMFS image at /rom; mpremote romfs build writes one.")
@click.option("--model", "models", multiple=True, type=InputFile(), metavar="M.pte",
              help="Put this program into /rom as a file. Repeat it for more files.")
@click.option("--firmware", multiple=True, type=InputFile(), metavar="FW.UF2",
              help="For RPI_PICO, with --listen tcp:PORT: a file that picotorch firmware wrote; by "
              "default the firmware with all kernels (make rp2). Repeat it for more files.")
def repl(board: str, listen: str | None, romfs: Path | None, models: tuple[Path, ...],
         firmware: tuple[Path, ...]) -> None:
    """Open MicroPython's prompt on an emulated board, with files and picotorch.

    ctrl-D is a soft reset, which keeps the files. `import _board; _board.exit(0)` ends the board; so do
    ctrl-A x in this terminal and the end of input from a file.

    \b
    Examples:
      picotorch repl --model model.pte
      picotorch repl --board netduinoplus2 --listen tcp:4444
      mpremote connect socket://localhost:4444 cp model.pte : exec "import picotorch"
      picotorch repl --board RPI_PICO --listen tcp:4444
    """
    from ..firmware import rp2
    from ..run import prompt

    if board == pico.BOARD:
        if not listen or listen == "pty" or romfs or models:
            raise click.UsageError(f"{board} needs --listen tcp:PORT; its ROMFS is in its firmware")
        command = pico.command(*(firmware or [rp2.default_output(board, [])]),
                               port=int(listen.removeprefix("tcp:")))
        sys.exit(subprocess.run(command).returncode)
    if firmware:
        raise click.UsageError(f"--firmware is for {pico.BOARD}")
    if romfs and models:
        raise click.UsageError("give --romfs or --model, not both")
    with running.named_errors(board, f"make repl BOARD={board} in picotorch's repository"):
        start = load_board(board)
        if not start.full_firmware:
            raise click.UsageError(f"{board} has no room for a prompt")
        with prompt.models_ptm(models) if models else nullcontext(romfs) as image:
            sys.exit(prompt.serve(start, listen, image) if listen else prompt.run(start, image))


@command("boards")
@click.option("--connected", is_flag=True,
              help="List connected boards: ports, boot loader drives, and what to do with each.")
@click.option("--chips", "list_chips", is_flag=True, help="List the chips that size --chip accepts.")
@options.as_json
def boards_command(connected: bool, list_chips: bool, as_json: bool) -> None:
    """List the emulated boards, the connected ones, or chips.

    --connected asks each connected board for its version of picotorch, which ends the program that the
    board runs.

    \b
    Examples:
      picotorch boards
      picotorch boards --connected
      picotorch boards --chips
    """
    if connected and list_chips:
        raise click.UsageError("give --connected or --chips, not both")
    if connected:
        from .deploy import list_attached

        list_attached(as_json)
    elif list_chips:
        show.report(chips.chips(), as_json, chips.show_text)
    else:
        show.report(listing.boards(), as_json, listing.show_text)
