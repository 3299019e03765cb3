"""Compare outputs with the expected ones of a test set of a bundled program."""

import dataclasses

import numpy as np

from ..host.report import HIDDEN, Report
from ..host.tensors import as_numbers
from .bundled import BundledTensor, Case, Value


@dataclasses.dataclass
class Verdict(Report):
    """The result of one test set.

    message: the reason for a failure. The errors are the largest over all outputs of floats. The
    relative error refers to the larger of both magnitudes, as in ExecuTorch's
    compute_method_output_error_stats. They are None if nothing was compared.
    """

    method: str = dataclasses.field(metadata=HIDDEN)
    index: int
    passed: bool
    message: str = ""
    max_absolute_error: float | None = None
    max_relative_error: float | None = None


_MIN_DIVISOR = np.float64(np.float32(1e-8))


def verify(case: Case, outputs: list[np.ndarray], rtol: float, atol: float) -> Verdict:
    """Compare outputs with a set's expected ones, as ExecuTorch's verify_method_outputs does.

    Floats may differ by atol + rtol * |output|. NaN equals NaN, and an infinity equals one of its sign.
    Everything else has to be equal.
    """
    verdict = Verdict(case.method, case.index, True)
    wrong = _cannot_verify(case.expected, outputs)
    if wrong:
        verdict.passed, verdict.message = False, wrong
        return verdict
    tensors = [value for value in case.expected if isinstance(value, BundledTensor)]
    for i, (expected, output) in enumerate(zip(tensors, outputs, strict=True)):
        message = _compare(as_numbers(expected.array(), expected.scalar_type()),
                           as_numbers(output, expected.scalar_type()), rtol, atol, verdict)
        if message and verdict.passed:
            verdict.passed, verdict.message = False, f"output {i}{message}"
    return verdict


def _cannot_verify(expected: list[Value], outputs: list[np.ndarray]) -> str:
    if not expected:
        return "NotSupported (0x10): the set has no expected outputs"
    if len(expected) != len(outputs):
        return (f"InvalidArgument (0x12): {len(expected)} outputs are expected, "
                f"the method has {len(outputs)}")
    others = [i for i, value in enumerate(expected) if not isinstance(value, BundledTensor)]
    return f"NotSupported (0x10): output {others[0]} is expected to be no tensor" if others else ""


def _compare(expected: np.ndarray, output: np.ndarray, rtol: float, atol: float,
             verdict: Verdict) -> str:
    """Return why an output differs from the expected one, or "". Add its errors to the verdict."""
    if (expected.dtype, expected.shape) != (output.dtype, output.shape):
        return (f": {expected.dtype} {list(expected.shape)} expected, "
                f"{output.dtype} {list(output.shape)} given")
    if expected.dtype.kind != "f":
        differs = expected != output
        return _mismatch(expected, output, differs, "")
    if expected.dtype == np.float16:
        expected, output = expected.astype(np.float64), output.astype(np.float64)
    with np.errstate(all="ignore"):
        difference = np.abs(expected - output).astype(np.float64)
        allowed = atol + np.abs(rtol * output.astype(np.float64))
        close = (expected == output if rtol == 0 and atol == 0
                 else np.isfinite(difference) & (difference <= allowed))
        same = ~np.isfinite(expected) & ~np.isfinite(output) & ((expected > 0) == (output > 0)) & (
            np.isnan(expected) == np.isnan(output))
        divisor = np.maximum(np.abs(expected), np.abs(output)).astype(np.float64)
        relative = difference / np.maximum(divisor, _MIN_DIVISOR)
    finite = np.isfinite(difference)
    for name, errors in (("max_absolute_error", difference), ("max_relative_error", relative)):
        largest = max(getattr(verdict, name) or 0.0, float(errors[finite].max(initial=0.0)))
        setattr(verdict, name, largest)
    largest = difference[finite & ~close].max(initial=0.0)
    return _mismatch(expected, output, ~(close | same),
                     f", by up to {largest:.9g} (rtol {rtol:g}, atol {atol:g})")


def _mismatch(expected: np.ndarray, output: np.ndarray, differs: np.ndarray, by: str) -> str:
    count = np.count_nonzero(differs)
    if not count:
        return ""
    first = tuple(int(i) for i in np.argwhere(differs)[0])
    at = f" [{', '.join(map(str, first))}]" if first else ""
    return (f"{at}: {expected[first]} expected, {output[first]} given; {count} of {expected.size} "
            f"elements differ{by}")
