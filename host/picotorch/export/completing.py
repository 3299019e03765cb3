"""Complete what is known of an exported program by what needs no torch: advice, the share of int8, the
time, and how an int8 program compares with the float32 program of the same module."""

from ..measure import advising, timing
from . import report
from .building import Built


def complete(built: Built, core: str) -> dict:
    """Return the entry of a program with "advice", "int8", "time" on this core and "float32".

    "float32" has the "bytes" and the "time" of the same module in float32; it is None where there is no
    such program to compare with.
    """
    program, entry, float_program = built
    entry = {**entry, "advice": advising.advise_export(program),
             "int8": advising.int8_share(program), "time": timing.estimated(program, core),
             "float32": None}
    if float_program is not None:
        entry["float32"] = {"bytes": len(float_program),
                            "time": timing.estimated(float_program, core)}
        entry["warnings"] = [*entry["warnings"], *report.comparison_warnings(entry)]
    return entry
