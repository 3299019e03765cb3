"""Complete the report of an exported program without torch.

The report gets advice, the share of int8, the time, and the comparison of an int8 program with the
float32 program of the same module.
"""

from typing import Any

from ..measure import advising, timing
from . import report
from .pipeline import Built


def complete(built: Built, core: str) -> dict[str, Any]:
    """Return the entry of a program with "advice", "int8", "time" on this core and "float32".

    "float32" has the "bytes" and the "time" of the same module in float32; it is None without a program
    to compare. The remedies of warnings and advice do not contradict each other, nor the request of
    keep_float.
    """
    program, float_program = built.program, built.float_program
    entry = built.entry | {"int8": advising.int8_share(program),
                           "time": timing.estimated(program, core), "float32": None}
    kept = entry.pop("kept_float")
    warnings = [advising.Advice(**one) for one in entry.pop("layer_warnings")]
    if float_program is not None:
        entry["float32"] = {"bytes": len(float_program),
                            "time": timing.estimated(float_program, core)}
        warnings += advising.without_gain(program, report.comparisons(entry), kept)
    found = advising.agreed([*warnings, *advising.advise_export(program, kept)])
    count = len(warnings)
    entry["warnings"] = [*entry["warnings"], *map(report.warning, found[:count])]
    entry["advice"] = [one.entry() for one in found[count:] if one.remedy]
    return entry
