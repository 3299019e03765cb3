"""Name the observers, which choose the range of a value from its samples. Without torch."""

from picotorch.errors import INVALID_ARGUMENT, fail

MIN_MAX, PERCENTILE, MSE = NAMES = ("min-max", "percentile", "mse")
DEFAULT = MSE
_PERCENT = 99.9  # of the samples that lie in the range


def parse(text: str) -> tuple[str, float]:
    """Return the name of an observer, and for percentile its percent: "percentile:99.5".

    Raises InvalidArgument.
    """
    name, colon, number = str(text).partition(":")
    try:
        percent = float(number) if colon else _PERCENT
    except ValueError:
        percent = -1.0
    if name not in NAMES or (colon and name != PERCENTILE):
        raise fail(INVALID_ARGUMENT, f"no observer {text!r}", "observer",
                   remedy=f"give {', '.join(NAMES)} or percentile:{_PERCENT}")
    if not 50 < percent <= 100:
        raise fail(INVALID_ARGUMENT, f"{text!r} has no percent above 50, 100 at most", "observer",
                   remedy=f"give percentile:{_PERCENT} for instance")
    return name, percent
