"""Find what is wrong, and what to do, in the errors of torch.export and ExecuTorch, of many lines."""

import re
import traceback

_DATA = ("keep data out of Python's if and loops: use torch.where, torch.cond, or export the parts")
_REMEDIES = [  # of torch.export: the first whose pattern an error has
    (r"your code specialized it to be a constant", "give this dim no Dim: the module fixes its size"),
    (r"satisfy the generated guard.*!= (0|1)\b", "raise min of its Dim, or change the module"),
    (r"satisfy the generated guard", "raise min or lower max of its Dim, so that all its values do"),
    (r"structure of `inputs` and `dynamic_shapes`|not in range \[",
     "give dynamic_shapes that fit the example inputs"),
]
_LOWERING = [  # of ExecuTorch: pattern, what is wrong ("" for its own words), remedy
    (r"upper bound for symbolic expression", "the size of a result depends on data and has no bound",
     "bound it in forward: torch._check(size <= most)"),
    (r"is mutated in the forward method", "",
     "make it a buffer, by register_buffer in the module's __init__"),
]


def cause(error: BaseException) -> str:
    """Return the line that states the fault, of the first error in the chain.

    For dynamic shapes this is the first violated constraint.
    """
    lines = _lines(error)
    if not lines:
        return type(error).__name__
    violated = [line.removeprefix("- ").rstrip(".") for line in lines if line.startswith("- ")]
    if lines[0].startswith("Constraints violated") and violated:
        return violated[0].partition(". If you're using")[0]
    return lines[0]


def export_remedy(error: BaseException) -> str:
    """Return the remedy for an error of torch.export, with the fixes that torch suggests."""
    lines = _lines(error)
    text = "\n".join(lines)
    remedy = next((remedy for pattern, remedy in _REMEDIES if re.search(pattern, text)), _DATA)
    suggested = [line for line in lines if re.fullmatch(r"\w+ = .+", line)]
    if "Suggested fixes:" in lines and "specialized it" not in text:
        remedy += f"; torch suggests {', '.join(suggested)}"
    return remedy


def lowering_words(error: BaseException, remedy: str) -> tuple[str, str]:
    """Return the cause of ExecuTorch's failure, and the remedy.

    The remedy is `remedy`, unless there is a better one.
    """
    text = "\n".join(_lines(error))
    for pattern, what, better in _LOWERING:
        if re.search(pattern, text):
            return what or cause(error), better
    return cause(error), remedy


def _lines(error: BaseException) -> list[str]:
    while error.__cause__ is not None:
        error = error.__cause__
    return [line.strip() for line in str(error).splitlines() if line.strip()]


def line_of(error: BaseException, file: str) -> str:
    """Return " (line 3)" for the line of the user's file that raised the exception."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__)
             if frame.filename.endswith(file)]
    return f" (line {lines[-1]})" if lines else ""
