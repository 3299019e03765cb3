"""Make reports of exports without an export."""

from picotorch.export.result import Checked, ExportReport, LayerDifference, OutputDifference
from picotorch.measure.advice import Int8Share
from picotorch.measure.timing import Timing

FIELDS = {
    "model": "net", "dtype": "int8", "core": "cortex-m4", "bytes_before": 2, "bytes": 1,
    "warnings": [], "layer_warnings": [], "kept_float": [], "mixed": None, "method_pool": 1,
    "planned": [2], "temp": 3, "missing_operators": [], "checked": "executed", "samples": 1,
    "layer_samples": 1, "layers": [], "outputs": [], "accuracy": None, "metric": None,
    "verdict": "good",
}
UNTIMED = Timing("cortex-m4", 100_000_000, message="not measured")


def checked(**changes):
    return Checked(**{**FIELDS, **changes})


def report(**changes):
    return ExportReport(**{**FIELDS, "int8": Int8Share(1, 1, 1, 1), "time": UNTIMED, "float32": None,
                           "advice": [], "output": "o.pte", **changes})


def layer_difference(sqnr, fake_sqnr, name="softmax", dtype="int8"):
    return LayerDifference(name, name, "o", dtype, sqnr, 1.0, 1.0, fake_sqnr)


def output_difference(sqnr, equal=None):
    return OutputDifference(0, equal, sqnr, 1.0, 1.0)
