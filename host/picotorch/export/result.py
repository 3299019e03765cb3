"""Define the report of picotorch export."""

from dataclasses import dataclass, field

from ..host.report import HIDDEN, OPTIONAL, Report
from ..measure.advice import Advice, Int8Share
from ..measure.timing import Timing


@dataclass(frozen=True)
class LayerDifference(Report):
    """The difference of a layer from PyTorch.

    layer: the path of its module, or the value. sqnr: in dB, None where a value is not finite. largest:
    the largest difference; magnitude: of PyTorch's values. fake_sqnr: of the graph whose values are
    rounded to integers, None for a program of floats.
    """

    layer: str
    value: str
    operator: str
    dtype: str
    sqnr: float | None
    largest: float
    magnitude: float
    fake_sqnr: float | None


@dataclass(frozen=True)
class OutputDifference(Report):
    """The difference of an output from PyTorch's, as of a layer.

    equal: the share of equal integers or booleans, None for floats.
    """

    output: int
    equal: float | None
    sqnr: float | None
    largest: float
    magnitude: float


@dataclass(frozen=True)
class Scores(Report):
    """A measure of PyTorch's outputs, and of the program's."""

    pytorch: float
    program: float


@dataclass(frozen=True)
class MixedLayer(Report):
    """A layer that an int8 program may compute in float.

    gain: in dB if this layer alone is in float; cycles: the cycles that this adds.
    """

    layer: str
    gain: float
    cycles: int
    is_chosen: bool


@dataclass(frozen=True)
class MixedReport(Report):
    """The layers of an int8 program that are in float, so that outputs reach an SQNR or a metric.

    is_sqnr: target, int8 and found are SQNRs in dB, else values of the metric. int8, int8_cycles: of
    the program whose layers are all in int8. found, cycles: of this program. An SQNR is None if it is
    not finite, and cycles are None if they cannot be estimated. layers: the largest gain first.
    """

    target: float
    is_sqnr: bool
    reached: bool
    int8: float | None
    found: float | None
    int8_cycles: int | None
    layers: list[MixedLayer]
    cycles: int | None


@dataclass(frozen=True)
class Memory(Report):
    """The RAM of a program in bytes. method_pool, temp: None if kernels are missing."""

    method_pool: int | None
    planned: list[int]
    temp: int | None
    missing_operators: list[str]


@dataclass(frozen=True)
class Comparison(Report):
    """The comparison of a program with PyTorch.

    checked: "executed", or the reason if it did not run. accuracy: the share of samples whose class is
    right, None without labels. metric: see metric.score, None without one.
    """

    checked: str
    samples: int = 0
    layer_samples: int = 0
    layers: list[LayerDifference] = field(default_factory=list)
    outputs: list[OutputDifference] = field(default_factory=list)
    accuracy: Scores | None = None
    metric: Scores | None = None


@dataclass(frozen=True, kw_only=True)
class Checked(Report):
    """A program that was built and compared with PyTorch.

    core: None for float32. bytes_before: of parameters and buffers, or of the file. warnings: on
    samples; layer_warnings: on layers. kept_float: numbers of the layers in float by request, among
    advising.layers. mixed: None unless it was requested. verdict: see report.verdict. For others see
    Memory and Comparison.
    """

    model: str
    dtype: str
    core: str | None
    bytes_before: int
    bytes: int
    warnings: list[str]
    layer_warnings: list[Advice] = field(metadata=HIDDEN)
    kept_float: list[int] = field(metadata=HIDDEN)
    mixed: MixedReport | None
    method_pool: int | None
    planned: list[int]
    temp: int | None
    missing_operators: list[str]
    checked: str
    samples: int
    layer_samples: int
    layers: list[LayerDifference]
    outputs: list[OutputDifference]
    accuracy: Scores | None
    metric: Scores | None
    verdict: str


@dataclass(frozen=True)
class Float32(Report):
    """The bytes and the time of the same module in float32."""

    bytes: int
    time: Timing


@dataclass(frozen=True, kw_only=True)
class ExportReport(Checked):
    """The report of picotorch export.

    warnings: all of them. time: an estimate for the core. float32: None unless the program is int8.
    output: the file; replaced: there was an older one.
    """

    int8: Int8Share
    time: Timing
    float32: Float32 | None
    advice: list[Advice]
    output: str | None = field(default=None, metadata=OPTIONAL)
    replaced: bool | None = field(default=None, metadata=OPTIONAL)
