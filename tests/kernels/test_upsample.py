"""Compare upsampling with numpy, by ExecuTorch's rules of positions, in any dim order."""

import itertools

import numpy as np
import pytest
from support.board_call import BOARDS, Case, assert_same
from support.kernel_call import KernelError, Tensor, call

ORDERS = [(0, 1, 2, 3), (0, 2, 3, 1)]
RESIZED = [([7, 12], None), ([3, 2], None), ([1, 1], None), ([5, 6], None), ([10, 12], None),
           (None, [2.0, 2.0]), (None, [1.5, 3.7]), (None, [1.15, 0.5])]


def sizes_and_scales(image, sizes, factors):
    """Return for height and width: the output's size, and input places per output place."""
    for d, n in enumerate(image.shape[2:]):
        size = sizes[d] if sizes else int(n * factors[d])
        yield size, np.float32(1 / (factors[d] if factors else size / n))


def nearest(image, sizes, factors):
    for axis, (size, scale) in enumerate(sizes_and_scales(image, sizes, factors), 2):
        places = np.floor(np.arange(size, dtype=np.float32) * scale).astype(int)
        image = image.take(np.minimum(places, image.shape[axis] - 1), axis)
    return image


def bilinear(image, sizes, factors, align, wide=np.float64):
    image = image.astype(wide)
    for axis, (size, scale) in reversed(list(enumerate(sizes_and_scales(image, sizes, factors), 2))):
        n, places = image.shape[axis], np.arange(size, dtype=np.float32)
        if size == n:
            continue
        if align:
            at = places * np.float32((n - 1) / (size - 1) if size > 1 else 0)
        else:
            at = np.maximum(scale * (places + np.float32(0.5)) - np.float32(0.5), 0)
        first = np.minimum(at.astype(int), n - 1)
        weight = np.minimum(at - first, 1).reshape([-1 if d == axis else 1 for d in range(4)])
        second = np.minimum(first + 1, n - 1)
        weight = weight.astype(np.float32)
        image = image.take(first, axis) * (1 - weight) + image.take(second, axis) * weight
    return image


def bilinear_cut(image, sizes, factors, align):
    """Compute the result of integers: in float32 by the same operations in the same order, then
    truncated."""
    return bilinear(image, sizes, factors, align, np.float32).astype(image.dtype)


def means(n, size, factor, align):
    """Return weights of n input places for each of `size` output places, by PyTorch's rules."""
    if n == size:
        return np.eye(n, dtype=np.float32)
    scale = 1 / factor if factor else n / size
    if align:
        scale = (n - 1) / (size - 1) if size > 1 else 0
    scale, half = np.float32(scale), np.float32(0.5)
    reach = max(scale, np.float32(1))
    center = scale * (np.arange(size, dtype=np.float32) + half)
    places = np.arange(n, dtype=np.float32)
    weights = np.maximum(1 - abs((places - center[:, None] + half) * (1 / reach)), 0)
    inside = ((places >= np.trunc(center - reach + half)[:, None]) &
              (places < np.trunc(center + reach + half)[:, None]))
    weights = np.where(inside, weights, 0)
    return weights / weights.cumsum(1)[:, -1:]  # added one after the other


def antialiased(image, sizes, align, factors=(None, None)):
    """Compute the result in float64 from weights in float32."""
    rows, columns = (means(n, size, factor, align) for n, size, factor in
                     zip(image.shape[2:], sizes, factors, strict=True))
    return rows.astype("float64") @ image.astype("float64") @ columns.T.astype("float64")


def weights_of_bytes(n, size, align):
    """Return weights of n input places for each output place, rounded as in PyTorch, and their bits."""
    scale = ((n - 1) / (size - 1) if size > 1 else 0) if align and n != size else n / size
    reach = max(scale, 1)
    away = np.arange(n) - scale * (np.arange(size)[:, None] + 0.5) + 0.5
    weights = np.maximum(1 - abs(away / reach), 0)
    weights /= weights.sum(1, keepdims=True)
    bits = next(k for k in range(23) if k == 22 or int(0.5 + weights.max() * 2**(k + 1)) >= 2**15)
    return np.trunc(0.5 + weights * 2**bits).astype(np.int64), bits


def antialiased_bytes(image, sizes, align):
    """Compute the rows first, then the columns, and round each result."""
    (rows, row_bits), (columns, bits) = (weights_of_bytes(n, size, align) for n, size in
                                         zip(image.shape[2:], sizes, strict=True))
    wide = (image.astype(np.int64) @ columns.T + (1 << bits >> 1)) >> bits
    high = (rows @ np.minimum(wide, 255) + (1 << row_bits >> 1)) >> row_bits
    return np.minimum(high, 255).astype(np.uint8)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int16"])
@pytest.mark.parametrize("sizes, factors", RESIZED)
def test_nearest(sizes, factors, dtype):
    image = np.random.default_rng(0).integers(-99, 99, (2, 3, 5, 6)).astype(dtype)
    expected = nearest(image, sizes, factors)
    for order in ORDERS:
        out = Tensor(np.zeros_like(expected), ORDERS[order == ORDERS[0]] if sizes else order)
        result = call("aten::upsample_nearest2d.vec_out", Tensor(image, order), sizes, factors, out)
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("sizes, factors", RESIZED)
def test_bilinear(sizes, factors, align, dtype):
    image = np.random.default_rng(0).normal(size=(2, 3, 5, 6)).astype(dtype)
    expected = bilinear(image, sizes, factors, align)
    for order in ORDERS:
        out = Tensor(np.zeros_like(expected, dtype), order)
        result = call("aten::upsample_bilinear2d.vec_out", Tensor(image, order), sizes, align, factors,
                      out)
        np.testing.assert_allclose(result, expected, rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64"])
@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("sizes, factors", RESIZED)
def test_bilinear_of_integers_is_cut(sizes, factors, align, dtype):
    low = 0 if dtype == "uint8" else -99
    image = np.random.default_rng(0).integers(low, 120, (2, 3, 5, 6)).astype(dtype)
    expected = bilinear_cut(image, sizes, factors, align)
    for order in ORDERS:
        result = call("aten::upsample_bilinear2d.vec_out", Tensor(image, order), sizes, align, factors,
                      Tensor(np.zeros_like(expected), order))
        np.testing.assert_array_equal(result, expected)


AA = "aten::_upsample_bilinear2d_aa.out"


@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("shape, sizes, factors", [
    ((2, 3, 5, 6), [7, 12], [None, None]), ((2, 3, 5, 6), [3, 2], [None, None]),
    ((1, 2, 64, 50), [3, 1], [None, None]), ((1, 2, 50, 64), [1, 9], [None, None]),
    ((1, 1, 5, 6), [5, 9], [None, 1.5]), ((1, 1, 9, 40), [4, 13], [0.5, 0.33]),
    ((1, 3, 20, 7), [20, 7], [0.7, None]),
])
def test_antialiased(shape, sizes, factors, align):
    image = np.random.default_rng(0).normal(size=shape)
    for dtype, order in itertools.product(("float32", "float64"), ORDERS):
        given = image.astype(dtype)
        expected = antialiased(given, sizes, align, factors)
        out = Tensor(np.zeros_like(expected, dtype), ORDERS[order == ORDERS[0]])
        result = call(AA, Tensor(given, order), sizes, align, *factors, out)
        near = 1e-6 if dtype == "float32" else 1e-14
        np.testing.assert_allclose(result, expected, 4 * near, 4 * near)


@pytest.mark.parametrize("align", [False, True])
def test_antialiased_bytes_of_any_two_sizes(align):
    random = np.random.default_rng(1)
    for n, size in itertools.product(range(1, 20), range(1, 20)):
        image = random.integers(0, 256, (1, 2, 1, n), np.uint8)
        expected = antialiased_bytes(image, [1, size], align)
        given = call(AA, image, [1, size], align, None, None, np.zeros_like(expected))
        np.testing.assert_array_equal(given, expected, f"{n} to {size}")


@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("shape, sizes", [
    ((2, 3, 5, 6), [7, 12]), ((2, 3, 5, 6), [3, 2]), ((1, 3, 120, 160), [48, 64]),
    ((1, 2, 64, 50), [3, 1]), ((1, 1, 9, 200), [4, 13]), ((3, 1, 20, 7), [20, 7])])
def test_antialiased_bytes(shape, sizes, align):
    image = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
    expected = antialiased_bytes(image, sizes, align)
    for order in ORDERS:
        out = Tensor(np.zeros_like(expected), ORDERS[order == ORDERS[0]])
        given = call(AA, Tensor(image, order), sizes, align, None, None, out)
        np.testing.assert_array_equal(given, expected)


@pytest.mark.parametrize("board", BOARDS)
def test_antialiased_bytes_on_boards(board):
    random = np.random.default_rng(2)
    cases = []
    for _ in range(12):
        *shape, high, wide = random.integers(1, [3, 4, 40, 40, 20, 20], 6).tolist()[:6]
        image = random.integers(0, 256, shape, np.uint8)
        cases.append(Case(AA, image, [high, wide], bool(random.integers(2)), None, None,
                          np.zeros((*shape[:2], high, wide), np.uint8)))
    assert_same(board, cases)


@pytest.mark.parametrize("value", [0, 1, 77, 255])
def test_antialiased_bytes_of_one_value_stay(value):
    image = np.full((1, 1, 37, 41), value, np.uint8)
    out = call(AA, image, [8, 90], False, None, None, np.zeros((1, 1, 8, 90), np.uint8))
    assert (out == value).all()


def test_antialiased_bytes_by_the_factor_of_the_sizes():
    """0.3 of 10 are 3. A factor that gives this size only by rounding down differs from the sizes'
    ratio."""
    image = np.random.default_rng(0).integers(0, 256, (1, 1, 8, 10), np.uint8)
    expected = antialiased_bytes(image, [4, 3], False)
    out = np.zeros_like(expected)
    np.testing.assert_array_equal(call(AA, image, [4, 3], False, 0.5, 0.3, out), expected)
    with pytest.raises(KernelError, match="not the ratio of the sizes: give the size"):
        call(AA, image, [4, 3], False, 0.5, 0.33, out)


def test_antialiased_bytes_of_a_very_large_image():
    image = np.zeros((1, 1, 1, 1 << 14), np.uint8)
    image[..., -1] = 200
    assert call(AA, image, [1, 1], True, None, None, np.ones((1, 1, 1, 1), np.uint8)) == 0
    given = call(AA, image, [1, 2], True, None, None, np.ones((1, 1, 1, 2), np.uint8))
    np.testing.assert_array_equal(given, antialiased_bytes(image, [1, 2], True))
    with pytest.raises(KernelError, match="above 16384"):
        call(AA, np.zeros((1, 1, 1, 16385), np.uint8), [1, 2], False, None, None,
             np.zeros((1, 1, 1, 2), np.uint8))


def test_antialiased_means_of_all_that_an_output_covers():
    """The expected values are computed by hand: a fifth of six for the second output, the second of
    four for the third."""
    image = np.array([[[[0, 0, 0, 0, 0, 0, 3, 0, 0]]]], np.float32)
    result = call(AA, image, [1, 3], False, None, None, np.zeros((1, 1, 1, 3), np.float32))
    np.testing.assert_allclose(result[0, 0, 0], [0, 1 / 3, 0.75], 1e-6)


@pytest.mark.parametrize("factor", [1e-9, 0.01, 1e300])
def test_antialiased_by_a_scale_that_leads_out_of_the_image(factor):
    """All pixels are equal, so a read outside of the image would change the result."""
    image = np.full((1, 1, 4, 5), 2, np.float32)
    result = call(AA, image, [3, 7], False, factor, factor, np.zeros((1, 1, 3, 7), np.float32))
    np.testing.assert_allclose(result, 2)


def test_equal_sizes_are_copied():
    image = np.array([[[[1, np.inf, 2, np.nan]]]], np.float32)
    np.testing.assert_array_equal(call(AA, image, [1, 4], False, 2.0, 0.3, np.zeros_like(image)), image)


@pytest.mark.parametrize("change, reason", [
    ({0: np.zeros((3, 4), np.float32)}, "4 dims"),
    ({0: np.zeros((1, 1, 3, 3), np.int8)}, "only floats and uint8"),
    ({0: np.zeros((1, 1, 0, 3), np.float32)}, "height and width"),
    ({1: [2]}, "two sizes"),
    ({1: [2, 2, 2]}, "two sizes"),
    ({1: [0, 2]}, "an output size is out of range"),
    ({1: [2, 2**40]}, "an output size is out of range"),
    ({3: 1e-300}, "a scale is out of range"),
    ({5: np.zeros((1, 1, 2, 2), np.float64)}, "dtype must be the input's"),
    ({5: np.zeros((1, 1, 2, 3), np.float32)}, "sizes differ from those"),
])
def test_antialiased_rejects(change, reason):
    arguments = [np.zeros((1, 1, 3, 3), np.float32), [2, 2], False, None, None,
                 np.zeros((1, 1, 2, 2), np.float32)]
    for i, value in change.items():
        arguments[i] = value
    with pytest.raises(KernelError, match=reason) as error:
        call(AA, *arguments)
    assert error.value.stage == "check"


def test_bilinear_rejects_bools():
    x = np.ones((1, 1, 2, 2), bool)
    with pytest.raises(KernelError, match="does not support this dtype"):
        call("aten::upsample_bilinear2d.vec_out", x, [2, 2], False, None, x)


IMAGE, OUT = np.ones((1, 2, 3, 3), np.float32), np.ones((1, 2, 6, 6), np.float32)


@pytest.mark.parametrize("arguments, reason", [
    ((IMAGE, [6, 6], [2.0, 2.0], OUT), "either output_size or scale_factors"),
    ((IMAGE, None, None, OUT), "either output_size or scale_factors"),
    ((IMAGE, [6], None, OUT), "two sizes or factors"),
    ((IMAGE, [6, 0], None, OUT), "an output size is out of range"),
    ((IMAGE, None, [0.1, 2.0], OUT), "an output size is out of range"),
    ((IMAGE, None, [1e30, float("nan")], OUT), "an output size is out of range"),
    ((IMAGE[0], [6, 6], None, OUT), "4 dims"),
    ((IMAGE[:, :, :0], [6, 6], None, OUT), "height and width"),
    ((IMAGE, [6, 6], None, OUT.astype(np.int8)), "dtype must be the input's"),
    ((IMAGE, [6, 5], None, OUT), "sizes differ from those"),
])
def test_rejections(arguments, reason):
    with pytest.raises(KernelError, match=reason) as error:
        call("aten::upsample_nearest2d.vec_out", *arguments)
    assert error.value.stage == "check"
