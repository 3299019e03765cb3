"""picotorch size."""

import click

from .. import options, show
from ..command import command
from ..connected import commands as connected
from ..files import read_files
from ..run import running
from . import sizing


@command()
@options.model
@options.method
@options.boards(running.board_names()[1:], "Compare with this board; repeat it.  [default: all]")
@click.option("--port", metavar="P", help=options.PORT_HELP)
@options.data
@options.backend
@options.prepare
@options.as_json
def size(model, method, boards, port, files, prepare, as_json):
    """State what a method of MODEL needs, to the byte, and which boards it fits.

    With --port the command also compares the heap and the storage of a connected board, and other
    boards only if --board names them.

    \b
    Examples:
      picotorch size model.pte --board mps2-an386
      picotorch size model.pte --port auto
    """
    boards = boards or ([] if port else running.board_names()[1:])
    entry = sizing.measure(running.read_program(model), str(model), method, boards, prepare,
                           read_files(files))
    if port is not None:
        entry["connected"] = connected.room_of(entry, port)
    show.entry(entry, as_json, sizing.show_text)
    if port is not None and not as_json:
        connected.show_room(entry["connected"])
