"""Count the instructions of random operator calls, and list the calls that are slow for their class.

    make sweep                                                      # all classes and boards
    python tests/benchmark/sweep.py --board mps3-an547 --class conv2d --calls 200

The shapes are log-uniform, within limits of MACs and bytes; all attributes of the dialect occur. For
each class and board a model of the cost is fitted to the counts:

    instructions = a + b * calls of inner loops + c * MACs + d * bytes,   a, b, c, d >= 0

with the least sum of squares of the relative errors. An outlier takes more than 1.3 times the cost that
this model predicts. The calls are the same in every run; every output is compared with the twin's.
build/sweep.json has all counts.
"""

import dataclasses
import itertools
import math
import sys
from pathlib import Path

import click
import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from benchmark.bench import keep  # noqa: E402
from support.board_call import BOARDS, Case, call_on_board  # noqa: E402
from support.kernel_call import Tensor  # noqa: E402

CHANNELS_LAST = (0, 2, 3, 1)
INT32_MAX = (1 << 31) - 1
MAX_MACS, MAX_BYTES = 400_000, 24_000
OUTLIER = 1.3
FEATURES = ("call", "loops", "macs", "bytes")


@dataclasses.dataclass
class Call:
    """A case. loops: calls of an inner loop; bytes: read and written, weights once."""

    case: Case
    shape: str
    macs: int
    loops: int
    bytes: int


class Draw:
    """Random arguments with log-uniform sizes, and the numbers of a quantizer."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)

    def size(self, low, high):
        """Return a log-uniform integer."""
        return int(low * math.exp(self.random.uniform(0, math.log((high + 1) / low))))

    def int(self, low, high):
        return int(self.random.integers(low, high + 1))

    def pick(self, *choices):
        return choices[self.int(0, len(choices) - 1)]

    def int8(self, *sizes):
        return self.random.integers(-128, 128, sizes, np.int8)

    def image(self, height, width, channels):
        return Tensor(self.int8(1, channels, height, width), CHANNELS_LAST)

    def constant(self, values):
        return Tensor(np.asarray(values).astype(np.int32), constant=True)

    def per_channel(self, n, depth):
        """Return bias, multipliers and shifts of n channels."""
        shift = -6 - round(math.log2(depth) / 2)
        return (self.constant(self.random.integers(-2000, 2000, n)),
                self.constant(self.random.integers(1 << 30, INT32_MAX, n)),
                self.constant(self.random.integers(shift - 1, shift + 1, n)))

    def window(self, size, kernels=(1, 2, 3, 5, 7)):
        """Return kernel, stride, padding, dilation and outputs along a dim."""
        while True:
            kernel, stride = self.pick(*kernels), self.pick(1, 1, 2)
            dilation = self.pick(1, 1, 1, 2) if kernel > 1 else 1
            padding = self.pick(0, dilation * (kernel // 2))
            outputs = (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1
            if outputs > 0:
                return kernel, stride, padding, dilation, outputs

    def windows(self, height, width):
        """Return the lists of kernels, strides, paddings, dilations and outputs of both dims."""
        both = [self.window(height), self.window(width)]
        if self.pick(True, True, False) and height == width:
            both[1] = both[0]
        return [list(x) for x in zip(*both, strict=True)]

    def extents(self):
        """Return height and width of an image, which may be a sequence."""
        height = self.size(1, 40)
        return self.pick((height, height), (height, height), (1, self.size(1, 128)),
                         (height, self.size(1, 40)))


def output(*sizes, order=None, dtype=np.int8):
    return Tensor(np.zeros(sizes, dtype), order)


def scratch(size):
    return Tensor(np.zeros(size, np.uint8), scratch=True)


def bytes_of(*tensors):
    return sum(t.array.nbytes for t in tensors)


def conv2d(draw):
    groups = draw.pick(1, 1, 1, 1, 2, 4)
    cin, cout = draw.size(1, 64), draw.size(1, 64) * groups
    height, width = draw.extents()
    kernel, stride, padding, dilation, outputs = draw.windows(height, width)
    depth = kernel[0] * kernel[1] * cin
    x, w = draw.image(height, width, cin * groups), Tensor(draw.int8(cout, *kernel, cin), constant=True)
    out = output(1, cout, *outputs, order=CHANNELS_LAST)
    pixels = outputs[0] * outputs[1]
    case = Case("cortex_m::quantized_conv2d.out", x, w, *draw.per_channel(cout, depth)[:1], stride,
                padding, dilation, draw.int(-127, 128), draw.int(-128, 127),
                *draw.per_channel(cout, depth)[1:], -128, 127, scratch(4 * depth), out)
    shape = f"{kernel[0]}x{kernel[1]} {cin * groups} to {cout}, {height}x{width}"
    return Call(case, attributes(shape, stride, padding, dilation, groups), pixels * cout * depth,
                pixels * groups, bytes_of(x, w, out))


def attributes(shape, stride, padding, dilation, groups=1):
    """Return the shape with the attributes that are not the default."""
    for name, value, default in (("stride", stride, [1, 1]), ("padding", padding, [0, 0]),
                                 ("dilation", dilation, [1, 1]), ("groups", groups, 1)):
        shape += f", {name} {value}" if value != default else ""
    return shape


def depthwise_conv2d(draw):
    channels, multiplier = draw.size(1, 96), draw.pick(1, 1, 1, 1, 2, 4, 8)
    height, width = draw.extents()
    kernel, stride, padding, dilation, outputs = draw.windows(height, width)
    n, taps = channels * multiplier, kernel[0] * kernel[1]
    x, w = draw.image(height, width, channels), Tensor(draw.int8(1, *kernel, n), constant=True)
    out = output(1, n, *outputs, order=CHANNELS_LAST)
    bias, multipliers, shifts = draw.per_channel(n, taps)
    case = Case("cortex_m::quantized_depthwise_conv2d.out", x, w, bias, stride, padding, dilation,
                multiplier, draw.int(-127, 128), draw.int(-128, 127), multipliers, shifts, -128, 127,
                scratch(4 * n * taps), out)
    shape = f"{kernel[0]}x{kernel[1]} {channels} to {n}, {height}x{width}"
    pixels = outputs[0] * outputs[1]
    return Call(case, attributes(shape, stride, padding, dilation), pixels * n * taps,
                pixels * -(-n // 16), bytes_of(x, w, out))


def transpose_conv2d(draw):
    cin, cout, height, width = draw.size(1, 48), draw.size(1, 48), draw.size(1, 16), draw.size(1, 16)
    dims = [(kernel := draw.pick(2, 3, 4), draw.pick(1, 2, 2), draw.pick(0, kernel // 2 - 1, 1))
            for _ in range(2)]
    kernel, stride, padding = (list(x) for x in zip(*dims, strict=True))
    outputs = [max((size - 1) * s - 2 * p + k, 1)
               for size, k, s, p in zip((height, width), kernel, stride, padding, strict=True)]
    depth = kernel[0] * kernel[1] * cin
    x, w = draw.image(height, width, cin), Tensor(draw.int8(cout, *kernel, cin), constant=True)
    out = output(1, cout, *outputs, order=CHANNELS_LAST)
    bias, multipliers, shifts = draw.per_channel(cout, depth)
    case = Case("cortex_m::quantized_transpose_conv2d.out", x, w, bias, stride, padding, [0, 0], [1, 1],
                draw.int(-127, 128), draw.int(-128, 127), multipliers, shifts, -128, 127,
                scratch(4 * depth), scratch(4 * cout), out)
    shape = f"{kernel[0]}x{kernel[1]} {cin} to {cout}, {height}x{width}, stride {stride}"
    return Call(case, shape, height * width * cout * depth, outputs[0] * outputs[1],
                bytes_of(x, w, out))


def linear(draw):
    rows, depth, outputs = draw.pick(1, 1, draw.size(1, 32)), draw.size(1, 512), draw.size(1, 256)
    x, w = Tensor(draw.int8(rows, depth)), Tensor(draw.int8(outputs, depth), constant=True)
    out = output(rows, outputs)
    bias, _, shifts = draw.per_channel(outputs, depth)
    case = Case("cortex_m::quantized_linear.out", x, w, bias, None, draw.int(-127, 128), 0,
                draw.int(-128, 127), [draw.int(1 << 30, INT32_MAX)], [int(shifts.array[0])], 127, -128,
                out)
    return Call(case, f"{rows}x{depth} to {outputs}", rows * depth * outputs, rows * outputs,
                bytes_of(x, w, out))


def batch_matmul(draw):
    batch, rows, columns, depth = draw.size(1, 8), draw.size(1, 32), draw.size(1, 32), draw.size(1, 64)
    x, y, out = (Tensor(draw.int8(batch, rows, depth)), Tensor(draw.int8(batch, columns, depth)),
                 output(batch, rows, columns))
    case = Case("cortex_m::quantized_batch_matmul.out", x, draw.int(-127, 128), y,
                draw.int(-127, 128), draw.int(-128, 127), draw.int(1 << 30, INT32_MAX), -9,
                scratch(4 * depth), out)
    return Call(case, f"{batch}x{rows}x{depth} by {columns}", batch * rows * columns * depth,
                batch * rows * columns, bytes_of(x, y, out))


def tensor_sizes(draw, highest=4):
    """Return the sizes of a tensor of limited bytes."""
    while True:
        sizes = [draw.size(1, 64) for _ in range(draw.int(1, highest))]
        if math.prod(sizes) <= MAX_BYTES // 4:
            return sizes


def operands(draw):
    """Return two operands, the second perhaps with a value for each channel, and the output."""
    sizes = tensor_sizes(draw)
    order = CHANNELS_LAST if len(sizes) == 4 else None
    x, y = Tensor(draw.int8(*sizes), order), Tensor(draw.int8(*sizes), order)
    if order and draw.pick(True, False, False):
        y = Tensor(draw.int8(1, sizes[1], 1, 1), order)
    return x, y, output(*sizes, order=order)


def elementwise(case, x, y, out):
    shape = " and ".join(f"{list(t.array.shape)}" for t in (x, y))
    return Call(case, shape, 0, 0, bytes_of(x, y, out))


def add(draw):
    x, y, out = operands(draw)
    numbers = [[draw.int(-127, 128), 1 << 30, 0],
               [draw.int(-127, 128), draw.int(1 << 30, INT32_MAX), -1]]
    return elementwise(Case("cortex_m::quantized_add.out", x, *numbers[0], y, *numbers[1],
                            draw.int(-128, 127), draw.int(1 << 30, INT32_MAX), -19, -128, 127, out),
                       x, y, out)


def mul(draw):
    x, y, out = operands(draw)
    return elementwise(Case("cortex_m::quantized_mul.out", x, draw.int(-127, 128), y,
                            draw.int(-127, 128), draw.int(-128, 127), draw.int(1 << 30, INT32_MAX), -7,
                            out), x, y, out)


def extremum(draw):
    x, y, out = operands(draw)
    return elementwise(Case(f"cortex_m::{draw.pick('minimum', 'maximum')}.out", x, y, out), x, y, out)


def unary(case, x, out, more=""):
    return Call(case, f"{list(x.array.shape)}{more}", 0, 0, bytes_of(x, out))


def quantize(draw):
    sizes = tensor_sizes(draw)
    x = Tensor(draw.random.uniform(-4, 4, sizes).astype(np.float32))
    out = output(*sizes)
    return unary(Case("cortex_m::quantize_per_tensor.out", x, 0.03, draw.int(-128, 127), -128, 127, 1,
                      out), x, out)


def dequantize(draw):
    sizes = tensor_sizes(draw)
    x, out = Tensor(draw.int8(*sizes)), output(*sizes, dtype=np.float32)
    return unary(Case("cortex_m::dequantize_per_tensor.out", x, 0.03, draw.int(-128, 127), -128, 127,
                      1, out), x, out)


def pooled(draw):
    """Return an image, the lists of kernels, strides and paddings, and the output."""
    channels, (height, width) = draw.size(1, 64), draw.extents()
    while True:
        dims = [(kernel := draw.pick(2, 3, draw.size(1, size)), draw.pick(1, 2, kernel),
                 draw.pick(0, kernel // 2)) for size in (height, width)]
        kernel, stride, padding = (list(x) for x in zip(*dims, strict=True))
        outputs = [(size + 2 * p - k) // s + 1
                   for size, k, s, p in zip((height, width), kernel, stride, padding, strict=True)]
        if min(outputs) > 0:
            break
    return (draw.image(height, width, channels), kernel, stride, padding,
            output(1, channels, *outputs, order=CHANNELS_LAST))


def pool_call(case, x, kernel, stride, padding, out):
    shape = attributes(f"{kernel[0]}x{kernel[1]} of {list(x.array.shape)}", stride, padding, [1, 1])
    pixels = out.array.shape[2] * out.array.shape[3]
    return Call(case, shape, out.array.size * kernel[0] * kernel[1],
                pixels * -(-out.array.shape[1] // 16), bytes_of(x, out))


def average_pool(draw):
    x, kernel, stride, padding, out = pooled(draw)
    taps = kernel[0] * kernel[1]
    case = Case("cortex_m::quantized_avg_pool2d.out", x, kernel, stride, padding, False,
                draw.int(-128, 127), round((1 << 31) / taps) if taps > 1 else INT32_MAX, 0,
                scratch(4 * x.array.shape[1]), out)
    return pool_call(case, x, kernel, stride, padding, out)


def max_pool(draw):
    x, kernel, stride, padding, out = pooled(draw)
    case = Case("cortex_m::quantized_max_pool2d.out", x, kernel, stride, padding, [1, 1], False, 0, 0,
                -128, 127, out)
    return pool_call(case, x, kernel, stride, padding, out)


def pad(draw):
    sizes = tensor_sizes(draw)
    order = CHANNELS_LAST if len(sizes) == 4 and draw.pick(True, True, False) else None
    before, after = ([0] * (4 - len(sizes)) + [draw.pick(0, 0, 1, 2) for _ in sizes] for _ in range(2))
    padded = [a + n + b
              for a, n, b in zip(before[-len(sizes):], sizes, after[-len(sizes):], strict=True)]
    x, out = Tensor(draw.int8(*sizes), order), output(*padded, order=order)
    case = Case("cortex_m::pad.out", x, before, after, draw.int(-128, 127), out)
    return Call(case, f"{sizes} by {before}, {after}, order {order}", 0,
                out.array.size // padded[-1 if order is None else 1], bytes_of(x, out))


def transpose(draw):
    sizes = tensor_sizes(draw)
    order = [int(i) for i in draw.random.permutation(len(sizes))]
    x, out = Tensor(draw.int8(*sizes)), output(*[sizes[i] for i in order])
    return unary(Case("cortex_m::transpose.out", x, order, out), x, out, f" to {order}")


def softmax(draw):
    sizes = tensor_sizes(draw, 3)
    x, out = Tensor(draw.int8(*sizes)), output(*sizes)
    case = Case("cortex_m::softmax.out", x, len(sizes) - 1, draw.int(-128, 127), -128,
                draw.int(1 << 30, INT32_MAX), draw.int(22, 26), -128, out)
    return Call(case, f"{sizes}", 0, out.array.size // sizes[-1], bytes_of(x, out))


def activation(draw):
    sizes = tensor_sizes(draw)
    x, out = Tensor(draw.int8(*sizes)), output(*sizes)
    return unary(Case("cortex_m::quantized_activation.out", x, Tensor(draw.int8(256)), out), x, out)


CLASSES = {one.__name__: one for one in (
    conv2d, depthwise_conv2d, transpose_conv2d, linear, batch_matmul, add, mul, extremum, quantize,
    dequantize, average_pool, max_pool, pad, transpose, softmax, activation)}


def calls(name, n):
    """Return n calls of a class, within the limits of MACs and bytes."""
    found = []
    for seed in itertools.count():
        call = CLASSES[name](Draw([seed, *map(ord, name)]))
        if call.macs <= MAX_MACS and call.bytes <= MAX_BYTES:
            found.append(call)
        if len(found) == n:
            return found


def fit(features, counts):
    """Return the non-negative coefficients of the least sum of squares of relative errors."""
    weighted = features / counts[:, None]
    best, least = np.zeros(features.shape[1]), np.inf
    for n in range(1, features.shape[1] + 1):
        for chosen in itertools.combinations(range(features.shape[1]), n):
            solved = np.linalg.lstsq(weighted[:, chosen], np.ones(len(counts)), rcond=None)[0]
            error = np.sum((weighted[:, chosen] @ solved - 1) ** 2)
            if solved.min() >= 0 and error < least:
                best, least = np.zeros(features.shape[1]), error
                best[list(chosen)] = solved
    return best


def measure(board, name, n):
    """Return the figures of a class on a board; raise AssertionError if an output differs."""
    drawn = calls(name, n)
    results = call_on_board(board, [call.case for call in drawn])
    for call, result in zip(drawn, results, strict=True):
        difference = result.difference(call.case.on_twin(board))
        assert not difference, f"{board}: {call.case}: {difference}"
    kept = [(call, r.instructions) for call, r in zip(drawn, results, strict=True) if r.error is None]
    counts = np.array([count for _, count in kept], float)
    features = np.array([[1, call.loops, call.macs, call.bytes] for call, _ in kept], float)
    coefficients = fit(features, counts)
    ratios = counts / np.maximum(features @ coefficients, 1)
    rows = [{"shape": call.shape, "macs": call.macs, "bytes": call.bytes, "count": int(count),
             "ratio": round(float(ratio), 2)}
            for (call, count), ratio in zip(kept, ratios, strict=True)]
    return {"board": board, "class": name, "refused": n - len(kept),
            "cost": dict(zip(FEATURES, np.round(coefficients, 3).tolist(), strict=True)),
            "calls": sorted(rows, key=lambda row: -row["ratio"])}


def outliers(entry):
    return [row for row in entry["calls"] if row["ratio"] > OUTLIER]


def table(entries):
    drawn = Table(title=f"Calls, and calls above {OUTLIER} times the predicted cost")
    for heading in ("board", "class"):
        drawn.add_column(heading)
    for heading in ("calls", "refused", *(f"a {name}" for name in FEATURES), "outliers", "worst"):
        drawn.add_column(heading, justify="right")
    for e in entries:
        drawn.add_row(e["board"], e["class"], str(len(e["calls"])), str(e["refused"]),
                      *(f"{value:g}" for value in e["cost"].values()), str(len(outliers(e))),
                      f"{e['calls'][0]['ratio']:.2f}")
    return drawn


@click.command(help=__doc__)
@click.option("--board", "boards", multiple=True, type=click.Choice(BOARDS), help="default: all")
@click.option("--class", "names", multiple=True, type=click.Choice(list(CLASSES)), help="default: all")
@click.option("--calls", "n", type=int, default=125, show_default=True, help="of each class")
@click.option("--show", type=int, default=5, show_default=True, help="outliers of each class to print")
@click.option("--output", type=click.Path(path_type=Path), default=ROOT / "build/sweep.json")
def main(boards, names, n, show, output):
    todo = list(itertools.product(boards or BOARDS, names or CLASSES))
    entries = [measure(board, name, n) for board, name in track(todo, "Measuring", transient=True)]
    console = Console(width=150)
    console.print(table(entries))
    for e in entries:
        for row in outliers(e)[:show]:
            console.print(f"{e['board']} {e['class']} {row['shape']}: {row['count']:,} instructions, "
                          f"{row['macs']:,} MACs, {row['bytes']:,} bytes, {row['ratio']} times")
    keep(entries, output)


if __name__ == "__main__":
    main()
