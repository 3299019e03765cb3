"""Find the releases of ExecuTorch that export a form of an operator of the Cortex-M dialect."""

import re
from collections.abc import Iterable

from picotorch.program import Program

from .instructions import KERNEL_CALL, Instruction, read_instructions
from .operator_list import Operator
from .operators import methods_of, supported_operators
from .twin import is_ptm
from .values import Values

Releases = tuple[int, int]  # the minor numbers of the first and the last one, of 1.0 to 1.5

FIRST, LAST = 0, 5
DIALECT = "cortex_m::"
# The first release that exports an operator, if it is later than 1.0 and has no PT_FORM
_SINCE = {"maximum": 1, "minimum": 1, "quantized_linear": 1, "quantized_mul": 1, "softmax": 1,
          "transpose": 1, "pad": 2, "quantized_max_pool2d": 2, "quantized_activation": 4,
          "quantized_div": 5}


def forms(operator: Operator) -> dict[int, Releases]:
    """Return the releases by the number of arguments, the returned value not included."""
    found: dict[int, Releases] = {}
    since = 5 if operator.name.endswith("_nhwc.out") else _SINCE.get(
        operator.name.removeprefix(DIALECT).removesuffix(".out"), FIRST)
    for form in operator.forms:
        minors = [int(minor) for minor in re.findall(r"1\.(\d+)", form.releases)]
        found[form.n_args] = minors[0], minors[-1]
        since = minors[-1] + 1
    return found | {len(operator.signature): (since, LAST)}


def in_words(releases: Releases) -> str:
    """Return "1.1 to 1.3", or "1.5"."""
    first, last = releases
    return f"1.{first} to 1.{last}" if first < last else f"1.{last}"


def likely_releases(program: Program) -> str | None:
    """Return the releases that may have exported a program in the Cortex-M dialect.

    Return None without a call of the dialect, for a .ptm file, and if no release has all of the forms.
    """
    if is_ptm(program.loader.buffer):
        return None
    calls = [call for meta in methods_of(program)
             for call in read_instructions(meta, Values(program, meta.plan))
             if call.kind == KERNEL_CALL and call.call.startswith(DIALECT)]
    releases = _common(calls)
    return in_words(releases) if calls and releases else None


def _common(calls: Iterable[Instruction]) -> Releases | None:
    known, common = supported_operators(), (FIRST, LAST)
    for call in calls:
        operator = known.get(call.call)
        count = len(call.arguments) + len(call.outputs)
        releases = forms(operator).get(count) if operator else None
        if releases is None:
            return None
        common = max(common[0], releases[0]), min(common[1], releases[1])
    return common if common[0] <= common[1] else None
