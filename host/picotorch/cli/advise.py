"""Define picotorch advise."""

from pathlib import Path

from ..host import show
from ..host.files import read_file
from ..measure import advising
from ..run import bundled
from . import options
from .command import command


@command()
@options.model
@options.method
@options.as_json
def advise(model: Path, method: str, as_json: bool) -> None:
    """Show what costs most in MODEL, and what to change in the module or its export.

    The command compares an int8 program with what it would be in float32. It looks for constants that
    are copied to RAM in each run, recurrent layers that were exported step by step, layers that int8
    leaves in float or hardly speeds up, redundant copies, float weights, and float inputs of an int8
    program. It lists the tensors that need the most RAM and the layers that compute the most. If the
    firmware of an emulated board is built, it runs an int8 program there to count its instructions. It
    does not run other programs.

    \b
    Example:
      picotorch advise model.pte
    """
    found = advising.advise(bundled.program_of(read_file(model)), str(model), method)
    show.report(found, as_json, advising.show_text)
