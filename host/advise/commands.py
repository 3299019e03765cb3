"""picotorch advise."""

from .. import options, show
from ..command import command
from ..files import read_file
from ..run import bundled
from . import advising


@command()
@options.model
@options.method
@options.as_json
def advise(model, method, as_json):
    """Show what costs most in MODEL, and what to change in the module or its export.

    The command looks for constants that are copied to RAM in each run, recurrent layers that were
    exported step by step, layers that int8 leaves in float or hardly speeds up, redundant copies,
    float weights, and float inputs of an int8 program. It lists the tensors that need the most RAM and
    the layers that compute the most. It does not run the program.

    \b
    Example:
      picotorch advise model.pte
    """
    entry = advising.advise(bundled.program_of(read_file(model)), str(model), method)
    show.entry(entry, as_json, advising.show_text)
