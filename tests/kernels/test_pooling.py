"""Test pools over two and three dims against windows of numpy, which oracles use too. Test their
errors."""

import math

import numpy as np
import pytest
from support.kernel_call import KernelError, call

pytestmark = pytest.mark.check

AVG, MAX = "aten::avg_pool2d.out", "aten::max_pool2d_with_indices.out"
ADAPTIVE = "aten::_adaptive_avg_pool2d.out"
BACKWARD = "aten::max_pool2d_with_indices_backward.grad_input"


def count_windows(size, kernel, stride, padding, dilation, ceil_mode):
    span = size + 2 * padding - dilation * (kernel - 1) - 1
    n = (math.ceil if ceil_mode else math.floor)(span / stride) + 1
    return n - (ceil_mode and (n - 1) * stride >= size + padding)


def windows(shape, kernel, stride, padding, dilation, ceil_mode):
    """Yield the places of the output, each with its taps inside the input: (z, y, x), slices, rows,
    columns."""
    sizes = shape[-len(kernel):]
    counts = [count_windows(*v, ceil_mode)
              for v in zip(sizes, kernel, stride, padding, dilation, strict=True)]
    for at in np.ndindex(*counts):
        yield at, *[[p for p in (o * s - pad + i * d for i in range(k)) if 0 <= p < n]
                    for o, n, k, s, pad, d in zip(at, sizes, kernel, stride, padding, dilation,
                                                  strict=True)]


def zeros(x, places, dtype=None):
    last = places[-1]
    return np.zeros((*x.shape[:-len(last)], *[i + 1 for i in last]), dtype or x.dtype)


def avg_pool(x, kernel, stride, padding, ceil_mode, count_pad, divisor):
    dims = len(kernel)
    places = list(windows(x.shape, kernel, stride, padding, [1] * dims, ceil_mode))
    out = zeros(x, [p[0] for p in places])
    for at, *taps in places:
        size = [min(a * s - p + k, n + p) - (a * s - p)
                for a, s, p, k, n in zip(at, stride, padding, kernel, x.shape[-dims:], strict=True)]
        count = math.prod(size if count_pad else map(len, taps))
        total = x[..., *np.ix_(*taps)].sum(tuple(range(-dims, 0)), dtype=np.float64)
        out[..., *at] = total / (divisor or count)
    return out


def greatest(x, taps):
    """Return the first maximum at these places of each channel, and its index there."""
    plane = np.arange(math.prod(x.shape[-len(taps):])).reshape(x.shape[-len(taps):])
    flat = x[..., *np.ix_(*taps)].reshape(*x.shape[:-len(taps)], -1)
    best = flat.argmax(-1)
    return np.take_along_axis(flat, best[..., None], -1)[..., 0], plane[np.ix_(*taps)].reshape(-1)[best]


def max_pool(x, kernel, stride, padding, dilation, ceil_mode):
    places = list(windows(x.shape, kernel, stride, padding, dilation, ceil_mode))
    out, indices = zeros(x, [p[0] for p in places]), zeros(x, [p[0] for p in places], np.int64)
    for at, *taps in places:
        out[..., *at], indices[..., *at] = greatest(x, taps)
    return out, indices


def test_avg_pool2d_of_int64_cuts_the_quotient():
    x = np.array([[[-3, -4], [1, -1]]], np.int64)
    out = np.zeros((1, 1, 1), np.int64)
    got = call(AVG, x, [2, 2], [], [0, 0], False, True, None, out)
    assert got.item() == -1  # -7 / 4


def test_empty_stride_is_the_kernel_and_one_number_stands_for_two():
    x = np.arange(16, dtype=np.float32).reshape(1, 4, 4)
    got = call(AVG, x, [2], [], [0], False, True, None, np.zeros((1, 2, 2), np.float32))
    np.testing.assert_array_equal(got[0], [[2.5, 4.5], [10.5, 12.5]])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_max_pool2d_finds_the_last_nan(dtype):
    x = np.array([[[1, np.nan, 9], [np.nan, 3, 2]]], dtype)
    value, index = call(MAX, x, [2, 3], [], [0, 0], [1, 1], False, np.zeros((1, 1, 1), dtype),
                        np.zeros((1, 1, 1), np.int64))
    assert np.isnan(value.item()) and index.item() == 3


@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_max_pool2d_of_one_tap_has_any_dilation(dtype):
    x = np.arange(2 * 3 * 18).reshape(1, 2, 3, 18).astype(dtype)
    value, index = call(MAX, x, [1, 1], [1, 1], [0, 0], [2**27 + 1, 2**27 + 1], False,
                        np.zeros_like(x), np.zeros(x.shape, np.int64))
    assert (value == x).all() and (index == np.arange(3 * 18).reshape(3, 18)).all()


def test_no_images():
    x, out = np.zeros((0, 2, 4, 4), np.float32), np.zeros((0, 2, 2, 2), np.float32)
    assert call(AVG, x, [2, 2], [], [0, 0], False, True, None, out).shape == out.shape
    assert call(ADAPTIVE, x, [2, 2], out).shape == out.shape
    indices = np.zeros(out.shape, np.int64)
    assert call(MAX, x, [2, 2], [], [0, 0], [1, 1], False, out, indices)[1].shape == out.shape


IMAGE = np.zeros((1, 1, 4, 4), np.float32)
HALF = np.zeros((1, 1, 2, 2), np.float32)


@pytest.mark.parametrize("change, reason", [
    ({0: np.zeros((4, 4), np.float32)}, "3 or 4 dims"),
    ({0: np.zeros((1, 1, 0, 4), np.float32)}, "a spatial dim of the input is 0"),
    ({0: np.zeros((1, 1, 4, 4), np.int32)}, "no pooling of this dtype"),
    ({1: [0, 2]}, "kernel_size"),
    ({1: [2, 2, 2]}, "kernel_size"),
    ({1: [2**62, 2]}, "kernel_size"),
    ({2: [0, 1]}, "stride"),
    ({2: [-1]}, "stride"),
    ({3: [-1, 0]}, "padding must"),
    ({3: []}, "padding must"),
    ({3: [2, 2]}, "half the kernel"),
    ({1: [5, 5]}, "larger than the input"),
    ({6: 0}, "divisor_override"),
    ({7: np.zeros((1, 1, 2, 2), np.float64)}, "dtype must be the input's"),
    ({7: np.zeros((1, 1, 3, 2), np.float32)}, "sizes differ from those"),
])
def test_avg_pool2d_rejects(change, reason):
    arguments = [IMAGE, [2, 2], [2, 2], [0, 0], False, True, None, HALF]
    for i, value in change.items():
        arguments[i] = value
    with pytest.raises(KernelError, match=reason) as error:
        call(AVG, *arguments)
    assert error.value.stage == "check"


@pytest.mark.parametrize("change, reason", [
    ({0: np.zeros((1, 1, 4, 4), np.uint16)}, "no pooling of this dtype"),
    ({1: []}, "kernel_size"),
    ({4: [0, 1]}, "dilation"),
    ({4: [1, 1, 1]}, "dilation"),
    ({6: np.zeros((1, 1, 2, 2), np.int8)}, "dtype must be the input's"),
    ({7: np.zeros((1, 1, 2, 2), np.int32)}, "indices must be int64"),
    ({7: np.zeros((1, 1, 2, 1), np.int64)}, "sizes differ from those"),
    ({0: np.zeros((1, 1, 1, 4), np.float32), 3: [2, 0], 4: [4, 1]}, "padding alone"),
])
def test_max_pool2d_rejects(change, reason):
    arguments = [IMAGE, [2, 2], [2, 2], [0, 0], [1, 1], False, HALF, np.zeros((1, 1, 2, 2), np.int64)]
    for i, value in change.items():
        arguments[i] = value
    if "alone" in reason:
        arguments[6] = np.zeros((1, 1, 1, 2), np.float32)
        arguments[7] = np.zeros((1, 1, 1, 2), np.int64)
    with pytest.raises(KernelError, match=reason):
        call(MAX, *arguments)


@pytest.mark.parametrize("arguments, reason", [
    ([np.zeros((4, 4), np.float32), [2, 2], HALF], "3 or 4 dims"),
    ([np.zeros((1, 4, 4), np.int64), [2, 2], HALF], "no pooling of this dtype"),
    ([IMAGE, [2], HALF], "output_size"),
    ([IMAGE, [2, -2], HALF], "output_size"),
    ([IMAGE, [2, 3], HALF], "sizes differ from those"),
    ([IMAGE, [2, 2], np.zeros((1, 1, 2, 2), np.float64)], "dtype must be the input's"),
])
def test_adaptive_avg_pool2d_rejects(arguments, reason):
    with pytest.raises(KernelError, match=reason):
        call(ADAPTIVE, *arguments)


HUGE = 2**13


def test_huge_images_without_channels_need_no_time():
    x = np.zeros((2, 0, HUGE, HUGE), np.float32)
    assert call(AVG, x, [1], [], [0], False, False, None, x.copy()).shape == x.shape
    assert call(ADAPTIVE, x[..., :2, :2], [HUGE, HUGE], x.copy()).shape == x.shape
    y, indices = x[..., 2:, 2:], x[..., 2:, 2:].astype(np.int64)
    assert call(MAX, x, [2], [1], [0], [2], False, y, indices)[0].shape == y.shape


def test_avg_pool2d_of_the_lowest_integer_by_minus_one_wraps():
    x = np.full((1, 1, 1), -(2**63), np.int64)
    assert call(AVG, x, [1], [], [0], False, False, -1, np.zeros_like(x)) == x


# ---- the gradient


def backward(**changed):
    """Pool one image of 4x4 backwards, in windows of 2x2 with the maximum at the end."""
    given = {"grad": np.arange(4, dtype=np.float32).reshape(1, 1, 2, 2), "x": IMAGE, "kernel": [2, 2],
             "stride": [], "padding": [0], "dilation": [1], "ceil": False,
             "indices": np.array([5, 7, 13, 15]).reshape(1, 1, 2, 2), "out": IMAGE}
    return call(BACKWARD, *(given | changed).values())


def test_the_gradient_goes_to_the_greatest():
    np.testing.assert_array_equal(backward()[0, 0, 1::2, 1::2], [[0, 1], [2, 3]])
    assert backward().sum() == 6


def test_gradients_that_meet_are_added():
    assert backward(indices=np.full((1, 1, 2, 2), 6))[0, 0, 1, 2] == 6


def test_the_gradients_of_float16_are_added_as_such():
    grad = np.array([2048, 1, 1, 1], np.float16).reshape(1, 1, 2, 2)
    half = IMAGE.astype(np.float16)
    got = backward(grad=grad, x=half, indices=np.zeros((1, 1, 2, 2), np.int64), out=half)
    assert got[0, 0, 0, 0] == 2048  # float16 cannot represent 2049


def test_no_image_has_no_gradient():
    none = np.zeros((0, 1, 4, 4), np.float32)
    got = backward(grad=none[..., :2, :2], x=none, out=none, indices=np.zeros((0, 1, 2, 2), np.int64))
    assert got.shape == none.shape


@pytest.mark.parametrize("index", [-1, 16, 2**40])
def test_an_index_beyond_the_image_is_rejected(index):
    with pytest.raises(KernelError, match="InvalidArgument in run: an index is out of range"):
        backward(indices=np.array([5, 7, 13, index]).reshape(1, 1, 2, 2))


@pytest.mark.parametrize("change, reason", [
    ({"x": IMAGE.astype(np.int32)}, "no gradients of this dtype"),
    ({"grad": np.zeros((1, 1, 2, 2))}, "dtype must be the input's"),
    ({"grad": np.zeros((1, 1, 2, 3), np.float32)}, "sizes differ from those"),
    ({"indices": np.zeros((1, 1, 2, 2), np.int32)}, "indices must be int64"),
    ({"indices": np.zeros((1, 1, 2, 3), np.int64)}, "sizes differ from those"),
    ({"out": IMAGE.astype(np.float64)}, "dtype must be the input's"),
    ({"out": np.zeros((1, 1, 4, 5), np.float32)}, "sizes differ from those"),
    ({"kernel": [5]}, "larger than the input"),
])
def test_the_gradient_rejects(change, reason):
    with pytest.raises(KernelError, match=reason) as error:
        backward(**change)
    assert error.value.stage == "check"


# ---- volumes

AVG3D, MAX3D = "aten::avg_pool3d.out", "aten::max_pool3d_with_indices.out"
VOLUME = np.zeros((1, 1, 4, 4, 4), np.float32)
EIGHTH, PLACES = np.zeros((1, 1, 2, 2, 2), np.float32), np.zeros((1, 1, 2, 2, 2), np.int64)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_max_pool3d_finds_the_last_nan(dtype):
    x = np.full((1, 2, 2, 2), -np.inf, dtype)
    x[0, 0, 1, 1] = x[0, 1, 0, 1] = np.nan
    outputs = [np.zeros((1, 1, 1, 1), kind) for kind in (dtype, np.int64)]
    value, index = call(MAX3D, x, [2], [], [0], [1], False, *outputs)
    assert np.isnan(value.item()) and index.item() == 5
    value, index = call("aten::adaptive_max_pool3d.out", x, [1, 1, 1], *outputs)
    assert np.isnan(value.item()) and index.item() == 5
    value, index = call("aten::adaptive_max_pool3d.out", x[..., :1], [1, 1, 1], *outputs)
    assert value.item() == -np.inf and index.item() == 0


def test_avg_pool3d_of_int64_cuts_the_quotient_and_wraps():
    x, out = np.full((1, 1, 1, 2), -7, np.int64), np.zeros((1, 1, 1, 1), np.int64)
    assert call(AVG3D, x, [1, 1, 2], [], [0], False, True, 4, out).item() == -3
    x[:] = -(2**63), 0
    assert call(AVG3D, x, [1, 1, 2], [], [0], False, False, -1, out).item() == -(2**63)


def test_max_pool3d_of_one_tap_has_any_dilation():
    x = np.arange(2 * 3 * 18, dtype=np.float32).reshape(1, 2, 3, 18)
    value, index = call(MAX3D, x, [1], [1], [0], [2**27 + 1], False, np.zeros_like(x),
                        np.zeros(x.shape, np.int64))
    assert (value == x).all() and (index == np.arange(2 * 3 * 18).reshape(x.shape)).all()


def test_no_volumes():
    x, y = np.zeros((2, 0, 400, 400, 400), np.float32), np.zeros((2, 0, 9, 9, 9), np.float32)
    assert call(AVG3D, x, [1], [], [0], False, False, None, x.copy()).shape == x.shape
    assert call("aten::_adaptive_avg_pool3d.out", y, [400] * 3, x.copy()).shape == x.shape
    assert call("aten::adaptive_max_pool3d.out", y, [9, 0, 9], y[..., :0, :],
                y[..., :0, :].astype(np.int64))[0].size == 0


@pytest.mark.parametrize("change, reason", [
    ({0: VOLUME[0, 0]}, "the input must have 4 or 5 dims"),
    ({0: VOLUME[None]}, "the input must have 4 or 5 dims"),
    ({0: np.zeros((1, 1, 4, 0, 4), np.float32)}, "a spatial dim of the input is 0"),
    ({0: VOLUME.astype(np.uint16)}, "no pooling of this dtype"),
    ({1: [2, 2]}, "kernel_size"),
    ({1: [2, 2, 0]}, "kernel_size"),
    ({2: [1, 1]}, "stride"),
    ({3: [0, 0]}, "padding must"),
    ({3: [0, 0, 2]}, "half the kernel"),
    ({1: [2, 2, 5]}, "larger than the input"),
    ({4: [1, 1]}, "dilation"),
    ({6: EIGHTH.astype(np.float64)}, "dtype must be the input's"),
    ({6: EIGHTH[..., :1]}, "sizes differ from those"),
    ({7: PLACES.astype(np.int32)}, "indices must be int64"),
    ({7: PLACES[:, :, :1]}, "sizes differ from those"),
])
def test_max_pool3d_rejects(change, reason):
    arguments = [VOLUME, [2] * 3, [2] * 3, [0] * 3, [1] * 3, False, EIGHTH, PLACES]
    call(MAX3D, *arguments)
    for i, value in change.items():
        arguments[i] = value
    with pytest.raises(KernelError, match=reason) as error:
        call(MAX3D, *arguments)
    assert error.value.stage == "check"


@pytest.mark.parametrize("change, reason", [
    ({0: VOLUME.astype(np.int32)}, "no pooling of this dtype"),
    ({6: 0}, "divisor_override"),
    ({7: EIGHTH[..., :1]}, "sizes differ from those"),
])
def test_avg_pool3d_rejects(change, reason):
    arguments = [VOLUME, [2] * 3, [2] * 3, [0] * 3, False, True, None, EIGHTH]
    call(AVG3D, *arguments)
    for i, value in change.items():
        arguments[i] = value
    with pytest.raises(KernelError, match=reason):
        call(AVG3D, *arguments)


@pytest.mark.parametrize("arguments, reason", [
    ([IMAGE[0, 0], [2, 2], HALF, PLACES[:, :, 0]], "3 or 4 dims"),
    ([IMAGE, [2, 2, 2], HALF, PLACES[:, :, 0]], "output_size"),
    ([IMAGE.astype(np.int64), [2, 2], HALF, PLACES[:, :, 0]], "no pooling of this dtype"),
    ([IMAGE, [2, 2], HALF[..., :1], PLACES[:, :, 0]], "sizes differ from those"),
    ([IMAGE, [2, 2], HALF, HALF], "indices must be int64"),
    ([IMAGE, [2, 2], HALF, PLACES[:, :, 0, :1]], "sizes differ from those"),
])
def test_adaptive_max_pool2d_rejects(arguments, reason):
    with pytest.raises(KernelError, match=reason):
        call("aten::adaptive_max_pool2d.out", *arguments)


def test_a_kernel_whose_taps_do_not_fit_in_64_bits():
    with pytest.raises(KernelError, match="InvalidArgument in check: the kernel is too large"):
        call(AVG3D, np.zeros((1, 3, 3, 3), np.float32), [2**28], [1], [2**27], False, True, None,
             np.zeros((1, 4, 4, 4), np.float32))
