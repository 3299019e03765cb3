"""Complete the report of an exported program without torch.

The report gets advice, the share of int8, the time, and the comparison of an int8 program with the
float32 program of the same module.
"""

import dataclasses

from ..measure import advising, timing
from ..measure.advice import agreed
from . import report
from .pipeline import Built
from .result import ExportReport, Float32


def complete(built: Built, core: str) -> ExportReport:
    """Return the report of a program, with its time on this core.

    The remedies of warnings and advice do not contradict each other, nor the request of keep_float.
    """
    program, float_program, checked = built.program, built.float_program, built.report
    time, float32, kept = timing.estimated(program, core), None, checked.kept_float
    warnings = list(checked.layer_warnings)
    if float_program is not None:
        float32 = Float32(len(float_program), timing.estimated(float_program, core))
        whats = report.comparisons(checked.bytes, time, float32)
        warnings += advising.without_gain(program, whats, kept)
    found, count = agreed([*warnings, *advising.advise_export(program, kept)]), len(warnings)
    texts = [*checked.warnings, *map(report.warning, found[:count])]
    return ExportReport(
        **vars(dataclasses.replace(checked, warnings=texts)), int8=advising.int8_share(program),
        time=time, float32=float32, advice=[one for one in found[count:] if one.remedy])
