"""Test depthwise convolution of random shapes: the twin against numpy, boards against the twin."""

import numpy as np
import pytest
from support.board_call import BOARDS, Case, assert_same, call_on_board
from support.kernel_call import Tensor, call, channels_last
from support.requantized import requantize, to_int8, wrap_int32

OPERATOR = "cortex_m::quantized_depthwise_conv2d.out"


def bytes_of(rng, *sizes):
    return rng.integers(-128, 128, sizes).astype(np.int8)


def spatial(size, kernel, stride, padding, dilation):
    return [(i + 2 * p - d * (k - 1) - 1) // s + 1
            for i, k, s, p, d in zip(size, kernel, stride, padding, dilation, strict=True)]


def arguments(rng, size, channels, kernel=(3, 3), stride=(1, 1), padding=(1, 1), dilation=(1, 1),
              multiplier=1, offset=128, out_offset=-128, limits=(-128, 127), batch=1, bias=None,
              multipliers=None, shifts=None):
    outputs = channels * multiplier
    out = np.zeros((batch, outputs, *spatial(size, kernel, stride, padding, dilation)), np.int8)
    if multipliers is None:
        multipliers = rng.integers(1 << 30, 1 << 31, outputs)
    if shifts is None:
        shifts = rng.integers(-9, -4, outputs)
    if bias is None:
        bias = rng.integers(-3000, 3000, outputs)
    return [channels_last(bytes_of(rng, batch, channels, *size)), bytes_of(rng, 1, *kernel, outputs),
            bias.astype(np.int32), list(stride), list(padding), list(dilation), multiplier, offset,
            out_offset, multipliers.astype(np.int32), shifts.astype(np.int32), *limits,
            np.zeros(0, np.uint8), channels_last(out)]


def expected(x, weights, bias, stride, padding, dilation, multiplier, offset, out_offset, multipliers,
             shifts, low, high, scratch, out):
    image = x.array.astype(np.int64) + offset
    image = np.pad(image, [(0, 0), (0, 0), *[(p, p) for p in padding]]).repeat(multiplier, 1)
    height, width = out.array.shape[2:]
    sums = bias.astype(np.int64)[:, None, None]
    for i, row in enumerate(weights[0].astype(np.int64)):
        for j, taps in enumerate(row):
            rows = slice(i * dilation[0], i * dilation[0] + height * stride[0], stride[0])
            columns = slice(j * dilation[1], j * dilation[1] + width * stride[1], stride[1])
            part = image[:, :, rows, columns][:, :, :height, :width]
            sums = sums + part * taps[:, None, None]
    values = requantize(wrap_int32(sums), multipliers[:, None, None], shifts[:, None, None])
    return to_int8(values, out_offset, low, high)


def random_arguments(rng):
    """Return random arguments, mostly 3x3 with parameters of real models, sometimes others."""
    seldom = rng.random
    size = rng.integers(1, 16, 2).tolist()
    channels = int(rng.integers(1, 20))
    kernel = (3, 3) if seldom() < 0.8 else tuple(rng.integers(1, 5, 2).tolist())
    stride = (1, 1) if seldom() < 0.4 else tuple(rng.integers(1, 4, 2).tolist())
    padding = (1, 1) if seldom() < 0.5 else tuple(rng.integers(0, 4, 2).tolist())
    dilation = (1, 1) if seldom() < 0.85 else (2, 1)
    multiplier = 1 if seldom() < 0.8 else int(rng.choice([2, 3, 4, 8]))
    outputs = channels * multiplier
    if min(spatial(size, kernel, stride, padding, dilation)) < 1:
        return random_arguments(rng)
    kind = seldom()
    return arguments(
        rng, size, channels, kernel, stride, padding, dilation, multiplier,
        int(rng.choice([0, 128, -127, 255, -255, 5])),
        int(rng.choice([-128, 127, 0, 255, -255])),
        (-128, 127) if seldom() < 0.6 else (int(rng.integers(-128, 0)), int(rng.integers(0, 128))),
        int(rng.integers(1, 3)),
        rng.integers(-1 << 31, 1 << 31, outputs) if seldom() < 0.1 else None,
        rng.integers(-100, 100, outputs) if seldom() < 0.1 else None,
        rng.integers(-31, 3, outputs) if kind < 0.1 else np.full(outputs, -1) if kind < 0.2
        else np.full(outputs, -20) if kind < 0.3 else None)


def largest_sums():
    """Yield sums of maximum size, with multipliers and shifts at the limits of the fast path."""
    rng = np.random.default_rng(5)
    for x, weight, offset in ((127, 127, 255), (-128, -128, -255), (-128, 127, -255)):
        for shift in (-1, -20, -21, -31, 0, 3):
            for bias in ((1 << 29) - 1, 1 << 29, -(1 << 29), -(1 << 31)):
                a = arguments(rng, (5, 7), 5, offset=offset, out_offset=255,
                              bias=np.full(5, bias), shifts=np.full(5, shift),
                              multipliers=rng.integers(0, 1 << 31, 5))
                a[0].array[:], a[1][:] = x, weight
                a[9][0] = (1 << 31) - 1
                yield a


def small_images(rng):
    """Yield images so small that M55 computes channels in lanes, some of them from lists of parts."""
    for size, stride, padding in (
            ((3, 3), (1, 1), (1, 1)), ((6, 6), (1, 1), (1, 1)), ((6, 6), (2, 2), (1, 1)),
            ((5, 7), (1, 1), (0, 0)), ((1, 1), (1, 1), (1, 1)), ((2, 9), (1, 1), (1, 2)),
            ((1, 20), (1, 2), (1, 0)), ((8, 2), (2, 1), (2, 1)), ((9, 9), (3, 3), (1, 1)),
            ((4, 5), (1, 1), (2, 2)), ((2, 3), (1, 1), (3, 1)), ((31, 32), (2, 2), (1, 1)),
            ((2, 160), (2, 2), (1, 1)), ((9, 8), (1, 1), (1, 1))):
        for channels in (16, 17, 40):
            scratch = int(rng.choice([0, 4096]))
            a = arguments(rng, size, channels, stride=stride, padding=padding,
                          offset=int(rng.choice([0, 128, -127, 255, -255])),
                          out_offset=int(rng.choice([-128, 127, 5, 255])),
                          limits=(-128, 127) if channels > 16 else (-77, 99))
            a[2] = None if channels == 17 else a[2]
            a[-2] = Tensor(np.zeros(scratch, np.uint8), scratch=True)
            yield a


def largest_small_images():
    """Yield small images with sums of maximum size, and beyond int32."""
    rng = np.random.default_rng(8)
    for x, weight, offset in ((127, 127, 255), (-128, -128, -255), (-128, -128, 0), (-128, 127, -255)):
        for shift, bias in ((-1, (1 << 29) - 1), (-20, -(1 << 31)), (-31, (1 << 31) - 1), (-9, 77)):
            a = arguments(rng, (4, 5), 16, offset=offset, out_offset=3, bias=np.full(16, bias),
                          shifts=np.full(16, shift), multipliers=rng.integers(0, 1 << 31, 16))
            a[0].array[:], a[1][:] = x, weight
            a[9][0] = (1 << 31) - 1
            yield a


def narrow_images():
    """Yield images with fewer columns than the kernel, with strides of up to more than the image's
    width. Each channel has several outputs, so a convolution computes them."""
    rng = np.random.default_rng(9)
    for width in (1, 2, 3):
        for stride in (1, 3, 4, 5):
            for padding in (1, 2, 3):
                if width + 2 * padding >= 3:
                    yield arguments(rng, (8, width), 1, stride=(1, stride), padding=(1, padding),
                                    multiplier=4)


def any_windows(rng):
    """Yield windows of any size, stride, dilation and padding. The numbers of channels, and of outputs
    per channel, select each variant of M55. Inputs or weights are at the end of readable memory."""
    for number in range(240):
        kernel = tuple(rng.integers(1, 10, 2).tolist())
        stride, dilation = (tuple(rng.integers(1, 4, 2).tolist()) for _ in range(2))
        padding = tuple(int(rng.integers(0, k + 1)) for k in kernel)
        size = [int(rng.integers(1, 13)) + max(0, d * (k - 1) - 2 * p)
                for k, d, p in zip(kernel, dilation, padding, strict=True)]
        channels, multiplier = int(rng.integers(1, 41)), 1
        if number % 3 == 2:
            channels, multiplier = int(rng.integers(1, 6)), int(rng.choice([2, 3, 4, 5, 9, 33]))
        outputs = channels * multiplier
        slow = number % 8 == 7
        a = arguments(rng, size, channels, kernel, stride, padding, dilation, multiplier,
                      int(rng.choice([0, 128, -127, 255, -255, 5])),
                      int(rng.choice([-128, 127, 0, 255, -255])),
                      (-128, 127) if number % 2 else (-77, 99), 1 + number % 2,
                      multipliers=rng.integers(-1 << 31, 1 << 31, outputs) if slow else None,
                      shifts=rng.integers(-31, 4, outputs) if slow else None)
        if number % 5 == 4:
            a[0].array[:], a[1][:] = rng.choice([-128, 127], 2)
            a[2][:] = rng.choice([-(1 << 31), (1 << 31) - 1, 0])
        if number % 7 == 6:
            a[2] = None
        if number % 4 == 1:
            a[0] = Tensor(a[0].array, a[0].dim_order, last=True)
        elif number % 4 == 3:
            a[1] = Tensor(a[1], last=True)
        yield a


def long_windows(rng):
    """Yield windows of many taps with many outputs per channel, transposed in parts."""
    shapes = [(258, (1, 256), (1, 640)), (40, (16, 16), (20, 17)), (5, (1, 2000), (1, 2003)),
              (4, (64, 96), (64, 97)), (3, (77, 80), (78, 80))]
    for _ in range(12):
        kernel = tuple(np.exp(rng.uniform(0, np.log(80), 2)).astype(int).tolist())
        outputs = int(np.exp(rng.uniform(np.log(2), np.log(1 + 30000 / np.prod(kernel)))))
        shapes.append((outputs, kernel, tuple(int(k + rng.integers(0, 5)) for k in kernel)))
    for number, (outputs, kernel, size) in enumerate(shapes):
        stride = tuple(max(1, k // 2) for k in kernel)
        a = arguments(rng, size, 1 + number % 2, kernel, stride, (0, number % 3 % kernel[1]),
                      multiplier=outputs, batch=1 + number % 4 // 3)
        if number % 5 == 4:
            a[2] = None
        yield a


@pytest.mark.parametrize("windows", [any_windows, long_windows])
def test_any_windows_equal_numpy(windows):
    for a in windows(np.random.default_rng(4)):
        result = call(OPERATOR, *a)
        a[1] = getattr(a[1], "array", a[1])
        a[2] = np.zeros(len(a[9]), np.int32) if a[2] is None else a[2]
        np.testing.assert_array_equal(result, expected(*a), err_msg=str(a[3:9]))


def test_random_shapes_equal_numpy():
    rng = np.random.default_rng(1)
    for _ in range(150):
        a = random_arguments(rng)
        np.testing.assert_array_equal(call(OPERATOR, *a), expected(*a), err_msg=str(a[3:9]))


def test_small_images_equal_numpy():
    for a in (*small_images(np.random.default_rng(7)), *narrow_images()):
        result = call(OPERATOR, *a)
        a[2] = np.zeros(len(a[9]), np.int32) if a[2] is None else a[2]
        np.testing.assert_array_equal(result, expected(*a), err_msg=str(a[3:9]))


def test_largest_sums_equal_numpy():
    for a in (*largest_sums(), *largest_small_images()):
        np.testing.assert_array_equal(call(OPERATOR, *a), expected(*a))


def test_sizes_and_paddings_larger_than_the_scratch_allows():
    rng = np.random.default_rng(2)
    for size, padding, multiplier in (
            ((3, 400), (1, 1), 1), ((400, 3), (1, 1), 1), ((150, 150), (1, 1), 1),
            ((2, 3), (500, 0), 1), ((2, 3), (40, 60), 2), ((60, 60), (1, 1), 5)):
        a = arguments(rng, size, 2, padding=padding, multiplier=multiplier)
        np.testing.assert_array_equal(call(OPERATOR, *a), expected(*a))


@pytest.mark.parametrize("board", BOARDS)
def test_boards_equal_the_twin(board):
    rng = np.random.default_rng(3)
    cases = [Case(OPERATOR, *random_arguments(rng)) for _ in range(300)]
    assert_same(board, cases + [Case(OPERATOR, *a) for a in largest_sums()])


@pytest.mark.parametrize("board", BOARDS)
def test_boards_equal_the_twin_for_small_images(board):
    rng = np.random.default_rng(7)
    assert_same(board, [Case(OPERATOR, *a) for a in (*small_images(rng), *largest_small_images(),
                                                *narrow_images())])


@pytest.mark.parametrize("board", BOARDS)
@pytest.mark.parametrize("windows", [any_windows, long_windows])
def test_boards_equal_the_twin_for_any_windows(board, windows):
    assert_same(board, [Case(OPERATOR, *a) for a in windows(np.random.default_rng(4))])


def test_m55_needs_few_instructions_for_any_window():
    """The loops need at most four instructions per product for any window; the plain loop needs at
    least eight."""
    rng = np.random.default_rng(6)
    for kernel, stride, dilation, channels, multiplier in (
            ((5, 5), 1, 1, 16, 1), ((7, 7), 1, 1, 24, 1), ((5, 3), 2, 1, 40, 1), ((3, 3), 1, 2, 32, 1),
            ((1, 9), 1, 1, 17, 1), ((9, 1), 3, 1, 64, 1), ((3, 3), 1, 1, 16, 2), ((2, 2), 2, 1, 32, 1),
            ((5, 5), 1, 1, 8, 4)):
        a = arguments(rng, (16, 16), channels, kernel, (stride, stride),
                      tuple(k // 2 * dilation for k in kernel), (dilation, dilation), multiplier)
        [result] = call_on_board("mps3-an547", [Case(OPERATOR, *a)])
        products = np.prod(a[-1].array.shape) * np.prod(kernel)
        assert result.instructions < 4 * products, (kernel, channels, result.instructions / products)
