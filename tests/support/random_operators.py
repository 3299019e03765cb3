"""Make random calls of the int8 operators, by class, from fixed seeds, for tests on every core.

They stay within the limits of a program, but not within the habits of exporters: numbers of channels
without a common divisor, kernels larger than the input, groups and dilation, offsets and multipliers at
their limits, sums that wrap around, scratch tensors of any size, data at any multiple of 4.
"""

import functools

import numpy as np
from support.board_call import Case
from support.kernel_call import SPARE, Tensor

INT32_MAX = (1 << 31) - 1
CHANNELS_LAST = (0, 2, 3, 1)


class Draw:
    """Random arguments."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.has_last = False

    def int(self, low, high):
        return int(self.random.integers(low, high + 1))

    def pick(self, *choices):
        return choices[self.int(0, len(choices) - 1)]

    def chance(self, percent):
        return self.int(1, 100) <= percent

    def shift(self):
        """Return a shift. Most data is aligned; all of it to 4, as the loader ensures."""
        return self.pick(4, 8, 12) if self.chance(25) else 0

    def place(self):
        """Return options of an input. One input of a call may lie at the end of readable memory."""
        if self.has_last or not self.chance(25):
            return {"shift": self.shift()}
        self.has_last = True
        return {"last": True}

    def int8(self, *sizes):
        kind = self.int(0, 9)
        if kind == 0:
            return np.full(sizes, self.pick(-128, 127), np.int8)
        if kind == 1:
            return self.random.choice(np.array([-128, 127], np.int8), sizes)
        return self.random.integers(-128, 128, sizes, np.int8)

    def tensor(self, *sizes, order=None):
        return Tensor(self.int8(*sizes), order, **self.place())

    def image(self, batch, height, width, channels):
        return self.tensor(batch, channels, height, width, order=CHANNELS_LAST)

    def output(self, *sizes, order=None, dtype=np.int8):
        return Tensor(np.full(sizes, 77, dtype), order, shift=self.shift())

    def weights(self, *sizes):
        return Tensor(self.int8(*sizes), constant=True, **self.place())

    def constant(self, values):
        return Tensor(np.asarray(values, np.int64).astype(np.int32), constant=True, **self.place())

    def scratch(self, wanted):
        """Return a scratch tensor of the size that exporters give it, of none, or of any."""
        size = self.pick(0, wanted, wanted, self.int(0, 2 * wanted + 64))
        return Tensor(np.zeros(size, np.uint8), scratch=True, shift=self.shift())

    def channels(self):
        return self.pick(self.int(1, 20), self.int(1, 20), self.pick(4, 8, 12, 16, 24, 32, 48))

    def offset(self, low=-128, high=127):
        return self.pick(low, high, low + 1, high - 1, 0, self.int(low, high), self.int(low, high))

    def far_offset(self, low=-128, high=127):
        """Return an offset, mostly as offset() does. An offset that int32 additions use may be any of
        -255..255."""
        return self.pick(-255, 255, self.int(-255, 255)) if self.chance(10) else self.offset(low, high)

    def activation(self):
        if self.chance(70):
            return -128, 127
        low, high = sorted((self.int(-128, 127), self.int(-128, 127)))
        return self.pick((low, high), (0, 127), (-128, 0), (low, low))

    def multiplier(self):
        usual = self.int(1 << 30, INT32_MAX)
        return self.pick(usual, usual, usual, self.int(0, 1000), -usual, -INT32_MAX - 1, INT32_MAX,
                         1 << 30)

    def right_shift(self, lowest=-31, highest=8):
        return self.pick(self.int(-12, -1), self.int(-12, -4), 0, -1, -30, self.int(lowest, highest))

    def scale(self, low, high):
        """Return multiplier and shift, mostly with a shift that gives values between the limits."""
        if self.chance(75):
            return self.int(1 << 30, INT32_MAX), self.int(low, high)
        return self.multiplier(), self.right_shift(-62)

    def per_channel(self, n, depth):
        """Return bias, multipliers and shifts, mostly with a quantizer's typical values."""
        bias = self.random.integers(-5000, 5000, n)
        multipliers = self.random.integers(1 << 30, INT32_MAX, n)
        shifts = self.random.integers(-11, -5, n) if depth > 8 else self.random.integers(-8, -1, n)
        kind = self.int(0, 11)
        if kind == 0:
            bias = self.random.choice([INT32_MAX, -INT32_MAX - 1, INT32_MAX - 99999, 0], n)
        elif kind == 1:
            multipliers = np.array([self.multiplier() for _ in range(n)])
        elif kind == 2:
            shifts = np.array([self.right_shift() for _ in range(n)])
        elif kind == 3:
            shifts = np.full(n, self.pick(-1, 0, -31, 31, 1, -32, -21, -20))
        elif kind == 4:
            odd = self.pick(0, 1, 5, -30, -40, -62, 40, INT32_MAX, -INT32_MAX - 1)
            shifts[self.int(0, n - 1)] = odd
        elif kind == 5:
            multipliers[self.int(0, n - 1)] = self.pick(-1, 0, 1, -INT32_MAX - 1, -(1 << 30))
        bias = None if self.chance(15) else self.constant(bias)
        return bias, self.constant(multipliers), self.constant(shifts)

    def batch(self):
        return 0 if self.chance(2) else self.pick(1, 1, 2)

    def window_of_three(self, size):
        """Return a window as window() does, mostly with a typical network's values."""
        while True:
            stride, padding = self.pick(1, 2), self.pick(1, 1, 1, 0, 2)
            dilation = self.pick(1, 1, 1, 1, 2, 3)
            outputs = (size + 2 * padding - 2 * dilation - 1) // stride + 1
            if outputs > 0:
                return 3, stride, padding, dilation, outputs

    def window(self, size, largest):
        """Return kernel, stride, padding, dilation and number of outputs along a dim."""
        while True:
            kernel, stride = self.int(1, largest), self.pick(1, 1, 1, 2, 2, 3)
            padding = self.pick(0, kernel // 2, self.int(0, kernel))
            dilation = self.pick(1, 1, 1, self.int(1, 3))
            outputs = (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1
            if outputs > 0:
                return kernel, stride, padding, dilation, outputs


def conv2d(draw):
    groups = draw.pick(1, 1, 1, 1, draw.int(2, 3))
    cin, cout = draw.channels(), draw.channels() * groups
    batch, height, width = draw.batch(), draw.int(1, 9), draw.int(1, 9)
    largest = draw.pick(1, 3, 5)
    if largest == 1 and draw.chance(20):
        cin, cout, groups = draw.pick(64, 67, 128, 256), draw.int(1, 20), 1
    elif draw.chance(5):
        width = draw.int(20, 40)
    if draw.chance(30):
        make = draw.window_of_three if largest > 1 else lambda size: (1, 1, 0, 1, size)
        windows = [make(height), make(width)]
    else:
        windows = [draw.window(height, largest), draw.window(width, largest)]
    kernel, stride, padding, dilation, outputs = (list(x) for x in zip(*windows, strict=True))
    depth = kernel[0] * kernel[1] * cin
    bias, multipliers, shifts = draw.per_channel(cout, depth)
    return Case("cortex_m::quantized_conv2d.out", draw.image(batch, height, width, cin * groups),
                draw.weights(cout, *kernel, cin), bias, stride, padding, dilation,
                draw.offset(-127, 128), draw.offset(), multipliers, shifts, *draw.activation(),
                draw.scratch(4 * depth), draw.output(batch, cout, *outputs, order=CHANNELS_LAST),
                pack_weights=draw.chance(40))


def depthwise_conv2d(draw):
    multiplier = draw.pick(1, 1, 1, draw.int(2, 4), 8)
    channels = draw.pick(1, draw.int(1, 20), draw.pick(4, 8, 16, 20, 32, 48)) if multiplier < 8 else 1
    batch, height = draw.batch(), draw.int(1, 10)
    width = draw.pick(draw.int(1, 10), draw.int(1, 30))
    if draw.chance(60):
        windows = [draw.window_of_three(height), draw.window_of_three(width)]
    else:
        windows = [draw.window(height, 5), draw.window(width, 5)]
    kernel, strides, padding, dilation, outputs = (list(x) for x in zip(*windows, strict=True))
    n = channels * multiplier
    bias, multipliers, shifts = draw.per_channel(n, kernel[0] * kernel[1])
    return Case("cortex_m::quantized_depthwise_conv2d.out", draw.image(batch, height, width, channels),
                draw.weights(1, *kernel, n), bias, strides, padding, dilation, multiplier,
                draw.far_offset(-127, 128), draw.far_offset(), multipliers, shifts,
                *draw.activation(),
                draw.scratch(4 * n * kernel[0] * kernel[1]),
                draw.output(batch, n, *outputs, order=CHANNELS_LAST), pack_weights=draw.chance(40))


def linear(draw):
    rows = draw.pick((), (1,), (draw.int(1, 5),), (2, 3))
    depth = draw.pick(draw.int(1, 70), draw.int(1, 70), draw.pick(4, 8, 16, 32, 64, 128, 256),
                      draw.int(500, 1500))
    outputs = draw.pick(draw.int(1, 20), draw.pick(8, 12, 16, 32))
    bias, multipliers, shifts = draw.per_channel(outputs, depth)
    by_sum = draw.chance(40)
    multiplier = int(multipliers.array[0])
    shift = min(max(int(shifts.array[0]), -62), 31)
    highest_first = draw.activation()[::-1]
    return Case("cortex_m::quantized_linear.out", draw.tensor(*rows, depth),
                draw.weights(outputs, depth), None if by_sum else bias,
                (bias or draw.constant([0] * outputs)) if by_sum else None,
                draw.far_offset(-127, 128), 0 if draw.chance(80) else draw.far_offset(),
                draw.far_offset(), [multiplier], [shift], *highest_first, draw.output(*rows, outputs),
                pack_weights=draw.chance(40))


def batch_matmul(draw):
    batch, rows, columns, depth = draw.int(1, 3), draw.int(1, 6), draw.int(1, 9), draw.int(1, 40)
    return Case("cortex_m::quantized_batch_matmul.out", draw.tensor(batch, rows, depth),
                draw.far_offset(-127, 128), draw.tensor(batch, columns, depth),
                draw.far_offset(-127, 128),
                draw.far_offset(), *draw.scale(-13, -8), draw.scratch(4 * depth),
                draw.output(batch, rows, columns))


def transpose_conv2d(draw):
    cin, cout = draw.channels(), draw.channels()
    height, width = draw.int(1, 5), draw.int(1, 5)
    while True:
        dims = [(draw.pick(1, 2, 3, 4, draw.int(1, 9)), draw.int(1, 4), draw.int(0, 2), draw.int(0, 1),
                 draw.pick(1, 1, 2, draw.int(1, 6))) for _ in range(2)]
        outputs = [(size - 1) * s - 2 * p + d * (k - 1) + o + 1
                   for size, (k, s, p, o, d) in zip((height, width), dims, strict=True)]
        if min(outputs) > 0:
            break
    kernel, stride, padding, extra, dilation = (list(x) for x in zip(*dims, strict=True))
    depth = kernel[0] * kernel[1] * cin
    bias, multipliers, shifts = draw.per_channel(cout, depth)
    return Case("cortex_m::quantized_transpose_conv2d.out", draw.image(1, height, width, cin),
                draw.weights(cout, *kernel, cin), bias, stride, padding, extra, dilation,
                draw.far_offset(-127, 128), draw.far_offset(), multipliers, shifts,
                *draw.activation(), draw.scratch(4 * depth), draw.scratch(4 * cout),
                draw.output(1, cout, *outputs, order=CHANNELS_LAST))


def elementwise_sizes(draw):
    rank = draw.int(0, 4)
    sizes = [draw.int(1, 9) for _ in range(rank)]
    return sizes if rank < 4 else [1, draw.channels(), 3, draw.int(1, 9)]


def operands(draw):
    """Return two operands of equal sizes, or one of them with a value for each channel, and the
    output."""
    sizes = elementwise_sizes(draw)
    order = CHANNELS_LAST if len(sizes) == 4 else None
    x, y = draw.tensor(*sizes, order=order), draw.tensor(*sizes, order=order)
    if order and draw.chance(30):
        y = draw.tensor(1, sizes[1], 1, 1, order=order)
    if draw.chance(20) and x.array.shape == y.array.shape:
        y = x
    out = draw.output(*sizes, order=order)
    if draw.chance(15) and not x.last:
        out = Tensor(x.array.copy(), order, alias=x, shift=x.shift)
    return (y, x, out) if draw.chance(20) and out.alias is None else (x, y, out)


def add(draw):
    x, y, out = operands(draw)
    if draw.chance(75):
        numbers = [[draw.far_offset(), 1 << 30, 0],
                   [draw.far_offset(), draw.int(1 << 30, INT32_MAX), draw.int(-4, 0)]]
        if draw.chance(50):
            numbers.reverse()
        last = draw.int(1 << 30, INT32_MAX), draw.int(-20, -18)
    else:
        numbers = [[draw.far_offset(), draw.multiplier(), draw.right_shift()] for _ in range(2)]
        last = draw.multiplier(), draw.right_shift(-62)
    return Case("cortex_m::quantized_add.out", x, *numbers[0], y, *numbers[1], draw.far_offset(),
                *last, *draw.activation(), out)


def mul(draw):
    x, y, out = operands(draw)
    return Case("cortex_m::quantized_mul.out", x, draw.far_offset(), y, draw.far_offset(),
                draw.far_offset(), *draw.scale(-8, -6), out)


def extremum(draw):
    return Case(f"cortex_m::{draw.pick('minimum', 'maximum')}.out", *operands(draw))


def div(draw):
    sizes = [*elementwise_sizes(draw), draw.int(1, 9)]
    return Case("cortex_m::quantized_div.out", draw.tensor(*sizes), draw.offset(), draw.tensor(*sizes),
                draw.offset(), draw.offset(), draw.pick(1.0, 10.0, 50.5, 100.0, 3.7e5, 0.01),
                draw.output(*sizes))


LIMITS = {np.int8: (-128, 127, 1), np.uint8: (0, 255, 0), np.int16: (-32768, 32767, 2)}


def floats(draw, scale, sizes):
    """Return multiples of half the scale, so that there are ties, and special floats."""
    values = draw.random.integers(-600, 600, sizes) * np.float32(scale) / 2
    odd = [np.nan, np.inf, -np.inf, 3e38, -3e38, 1e-45, -0.0, 2.0**31 * scale, -(2.0**31) * scale]
    with np.errstate(over="ignore"):
        odd = np.array(odd).astype(np.float32)
    return np.where(draw.random.random(sizes) < 0.1, draw.random.choice(odd, sizes),
                    values + draw.pick(0, 0, 0.01) * scale).astype(np.float32)


def quantize(draw):
    dtype = draw.pick(np.int8, np.int8, np.uint8, np.int16)
    low, high, code = LIMITS[dtype]
    scale = draw.pick(1.0, 0.5, 0.0078, 0.1, 3e-39, 1e30, float(draw.random.random()) + 1e-6)
    sizes = draw.pick([draw.int(0, 70)], [2, draw.int(1, 9), 3])
    zero_point = draw.offset(low, high)
    clamp = (low, high) if draw.chance(70) else (draw.int(low, zero_point), draw.int(zero_point, high))
    out = Tensor(np.full(sizes, 77, dtype), shift=draw.shift())
    return Case("cortex_m::quantize_per_tensor.out",
                Tensor(floats(draw, scale, sizes), **draw.place()), scale, zero_point, *clamp,
                code, out)


def dequantize(draw):
    dtype = draw.pick(np.int8, np.int8, np.uint8, np.int16)
    low, high, code = LIMITS[dtype]
    sizes = draw.pick([draw.int(0, 70)], [2, draw.int(1, 9), 3])
    x = Tensor(draw.random.integers(low, high + 1, sizes).astype(dtype), **draw.place())
    return Case("cortex_m::dequantize_per_tensor.out", x, draw.pick(1.0, 0.1, 0.0078, 3e38, 1e-44),
                draw.offset(low, high), low, high, code,
                Tensor(np.zeros(sizes, np.float32), shift=draw.shift()))


def pool(draw):
    """Return arguments common to both poolings, and ceil mode for average pooling."""
    channels, sizes = draw.channels(), [draw.int(1, 9), draw.int(1, 9)]
    ceil = draw.chance(20)
    while True:
        kernel = [draw.pick(1, 2, 3, draw.int(1, size)) for size in sizes]
        stride = [draw.int(1, 3), draw.int(1, 3)]
        padding = [draw.pick(0, k // 2) for k in kernel]
        outputs = []
        for size, k, s, p in zip(sizes, kernel, stride, padding, strict=True):
            n = (size + 2 * p - k + (s - 1 if ceil else 0)) // s + 1
            outputs.append(n - 1 if ceil and (n - 1) * s >= size + p else n)
        if min(outputs) > 0:
            break
    batch = draw.batch()
    return (draw.image(batch, *sizes, channels), kernel, stride, padding, ceil,
            draw.output(batch, channels, *outputs, order=CHANNELS_LAST))


def average_pool(draw):
    x, kernel, stride, padding, ceil, out = pool(draw)
    return Case("cortex_m::quantized_avg_pool2d.out", x, kernel, stride, padding, ceil, draw.offset(),
                draw.int(1, INT32_MAX), draw.int(-20, 5), draw.scratch(4 * x.array.shape[1]), out)


def max_pool(draw):
    while True:
        x, kernel, stride, padding, ceil, out = pool(draw)
        if not ceil:
            break
    zero_point = draw.offset()
    return Case("cortex_m::quantized_max_pool2d.out", x, kernel, stride, padding, [1, 1], False,
                zero_point, zero_point, *draw.activation(), out)


def pad(draw):
    sizes = [draw.int(1, 7) for _ in range(draw.int(1, 4))]
    order = CHANNELS_LAST if len(sizes) == 4 and draw.chance(60) else None
    before, after = ([0] * (4 - len(sizes)) + [draw.int(0, 3) if draw.chance(50) else 0 for _ in sizes]
                     for _ in range(2))
    padded = [a + n + b for a, n, b in zip(before[-len(sizes) :], sizes, after[-len(sizes) :],
                                           strict=True)]
    return Case("cortex_m::pad.out", draw.tensor(*sizes, order=order), before, after, draw.offset(),
                draw.output(*padded, order=order))


def transpose(draw):
    sizes = [draw.int(1, 9) for _ in range(draw.int(1, 4))]
    order = [int(i) for i in draw.random.permutation(len(sizes))]
    return Case("cortex_m::transpose.out", draw.tensor(*sizes), order,
                draw.output(*[sizes[i] for i in order]))


def softmax(draw):
    sizes = [draw.int(1, 12) for _ in range(draw.int(1, 3))]
    return Case("cortex_m::softmax.out", draw.tensor(*sizes), draw.int(-len(sizes), len(sizes) - 1),
                draw.offset(), -128, draw.int(1 << 30, INT32_MAX), draw.int(15, 28), -128,
                draw.output(*sizes))


def activation(draw):
    sizes = elementwise_sizes(draw)
    x = draw.tensor(*sizes)
    in_place = draw.chance(20) and not x.last
    out = Tensor(x.array.copy(), alias=x, shift=x.shift) if in_place else draw.output(*sizes)
    return Case("cortex_m::quantized_activation.out", x, draw.tensor(256), out)


def clone(draw):
    sizes = [draw.pick(1, 2), draw.channels(), draw.int(1, 7), draw.int(1, 7)]
    orders = (0, 1, 2, 3), CHANNELS_LAST
    to = draw.pick(*orders)
    return Case("dim_order_ops::_clone_dim_order.out", draw.tensor(*sizes, order=draw.pick(*orders)),
                False, list(to), draw.output(*sizes, order=to))


def norm_parameters(draw, n):
    """Return weights and biases of n channels, mostly as exporters compute them."""
    kind = np.int16 if draw.chance(50) else np.int8
    weight = draw.random.integers(np.iinfo(kind).min, np.iinfo(kind).max, n, endpoint=True)
    bias = draw.random.integers(-(1 << 20), 1 << 20, n)
    if draw.chance(10):
        bias = draw.random.choice([INT32_MAX, -INT32_MAX - 1, 0], n)
    return Tensor(weight.astype(np.int16), constant=True, **draw.place()), draw.constant(bias)


def norm_numbers(draw):
    """Return epsilon and shift."""
    return (draw.pick(0, 1, draw.int(0, 1 << 20), draw.int(0, 1 << 40), (1 << 62) - 1),
            draw.pick(draw.int(8, 14), draw.int(8, 14), draw.int(0, 31)))


def norm_values(draw, *sizes):
    """Return int8 of any spread, as the variance depends on it."""
    values = draw.int8(*sizes)
    return values if draw.chance(70) else np.asarray(values >> draw.int(1, 7), np.int8)


def layer_norm(draw):
    n = draw.pick(1, 2, draw.channels(), draw.channels(), draw.int(1, 300))
    order = None
    if draw.chance(30):
        sizes, order = [draw.int(1, 2), n, draw.int(1, 4), draw.int(1, 4)], CHANNELS_LAST
    else:
        sizes = [draw.int(1, 5), draw.int(0, 4), n][draw.int(0, 2):]
    x = Tensor(norm_values(draw, *sizes), order, **draw.place())
    return Case("picotorch::quantized_layer_norm.out", x, *norm_parameters(draw, n), draw.chance(60),
                draw.offset(), *norm_numbers(draw), draw.output(*sizes, order=order))


def group_norm(draw):
    groups, channels = draw.int(1, 8), draw.pick(1, 1, 2, 3, 4, draw.int(1, 20))
    sizes = [draw.int(1, 3), groups * channels, *[draw.int(0 if draw.chance(5) else 1, 9)
                                                  for _ in range(draw.int(0, 3))]]
    order = CHANNELS_LAST if len(sizes) == 4 and draw.chance(60) else None
    x = Tensor(norm_values(draw, *sizes), order, **draw.place())
    return Case("picotorch::quantized_group_norm.out", x, *norm_parameters(draw, groups * channels),
                groups, *norm_numbers(draw), draw.output(*sizes, order=order))


# Class: number of cases.
CLASSES = {conv2d: 800, depthwise_conv2d: 800, linear: 500, batch_matmul: 150, transpose_conv2d: 200,
           add: 300, mul: 200, extremum: 80, div: 80, quantize: 300, dequantize: 150,
           average_pool: 300, max_pool: 200, pad: 200, transpose: 100, softmax: 100, activation: 80,
           clone: 150, layer_norm: 300, group_norm: 300}
NAMES = {make.__name__: make for make in CLASSES}


@functools.cache
def cases(name):
    """Return all cases of a class."""
    make = NAMES[name]
    return [make(Draw([seed, *map(ord, name)])) for seed in range(CLASSES[make])]


def dynamic_cases(name):
    """Return some of the cases of a class with dynamic outputs."""
    return [case.dynamic(SPARE if i % 2 else 0) for i, case in enumerate(cases(name)[::5])]

