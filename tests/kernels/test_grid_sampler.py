"""Compare grid_sampler_2d with numpy, with every interpolation and padding.

Positions are computed in the dtype, as in PyTorch, so that the same ones lie midway between two pixels.
Values are computed in float64.
"""

import itertools

import numpy as np
import pytest
from support.kernel_call import KernelError, Tensor, call

BILINEAR, NEAREST, BICUBIC = range(3)
ZEROS, BORDER, REFLECTION = range(3)


def to_place(x, size, align):
    return (x + 1) / 2 * (size - 1) if align else ((x + 1) * size - 1) / 2


def bring_inside(x, size, padding, align):
    if padding == REFLECTION:
        low, high = (0, size - 1) if align else (-0.5, size - 0.5)
        low, high = x.dtype.type(low), x.dtype.type(high)
        far = abs(x - low) % (2 * (high - low)) if high > low else x.dtype.type(0)
        x = (far if far <= high - low else 2 * (high - low) - far) + low
    return x if padding == ZEROS else min(max(x, 0), size - 1)


def cubic(d):
    a, d = -0.75, abs(d)
    return (a + 2) * d**3 - (a + 3) * d**2 + 1 if d <= 1 else a * (d**3 - 5 * d**2 + 8 * d - 4)


def sample(plane, y, x, mode, padding, align):
    height, width = plane.shape

    def pixel(row, column):
        if mode == BICUBIC:
            row = bring_inside(row, height, padding, align)
            column = bring_inside(column, width, padding, align)
        inside = 0 <= row < height and 0 <= column < width
        return plane[int(row), int(column)] if inside else 0

    y, x = to_place(y, height, align), to_place(x, width, align)
    if mode != BICUBIC:
        y = bring_inside(y, height, padding, align)
        x = bring_inside(x, width, padding, align)
    y, x = float(y), float(x)
    if mode == NEAREST:
        return pixel(np.rint(y), np.rint(x))
    weight, reach = (cubic, 2) if mode == BICUBIC else (lambda d: max(0, 1 - abs(d)), 1)
    around = range(1 - reach, 1 + reach)
    rows, columns = ([np.floor(np.float64(at)) + i for i in around] for at in (y, x))
    return sum(pixel(row, column) * weight(y - row) * weight(x - column)
               for row, column in itertools.product(rows, columns))


@pytest.mark.parametrize("mode", [BILINEAR, NEAREST, BICUBIC])
@pytest.mark.parametrize("padding", [ZEROS, BORDER, REFLECTION])
@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_grid_sampler(mode, padding, align, dtype):
    random = np.random.default_rng(mode)
    image = random.normal(size=(2, 3, 4, 5)).astype(dtype)
    grid = (random.integers(-250, 250, (2, 3, 4, 2)) / 125).astype(dtype)
    expected = np.zeros((2, 3, 3, 4))
    for n, c, i, j in np.ndindex(*expected.shape):
        x, y = grid[n, i, j]
        expected[n, c, i, j] = sample(image[n, c], y, x, mode, padding, align)
    for order in ((0, 1, 2, 3), (0, 2, 3, 1)):
        result = call("aten::grid_sampler_2d.out", Tensor(image, order), grid, mode, padding, align,
                      Tensor(np.zeros(expected.shape, dtype), order))
        limits = {"float32": (1e-5, 2e-5), "float64": (1e-12, 1e-13)}[dtype]
        np.testing.assert_allclose(result, expected, *limits)


@pytest.mark.parametrize("mode", [BILINEAR, NEAREST, BICUBIC])
@pytest.mark.parametrize("padding", [ZEROS, BORDER, REFLECTION])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_places_that_are_none(mode, padding, dtype):
    """NaN, infinities and positions far beyond int32 read only pixels of the image."""
    image = np.ones((1, 1, 2, 3), dtype)
    grid = np.array([np.nan, np.inf, -np.inf, 3e38, -3e38, 1e12], dtype)
    grid = np.stack(np.meshgrid(grid, grid), -1)[None]
    call("aten::grid_sampler_2d.out", image, grid, mode, padding, False, np.zeros((1, 1, 6, 6), dtype))


@pytest.mark.parametrize("align", [False, True])
def test_places_of_float16_are_rounded_at_each_step(align):
    image = np.arange(40, dtype="float16").reshape(1, 1, 1, 40)
    x = np.linspace(-1.1, 1.1, 500).astype("float16")
    grid = np.stack([x, x * 0], -1)[None, None]
    assert to_place(x, np.float16(40), align).dtype == np.float16
    expected = np.clip(np.rint(to_place(x, np.float16(40), align)), 0, 39)
    result = call("aten::grid_sampler_2d.out", image, grid, NEAREST, BORDER, align,
                  np.zeros((1, 1, 1, 500), "float16"))
    np.testing.assert_array_equal(result.reshape(-1), expected)


IMAGE, GRID, OUT = (np.zeros(sizes, np.float32) for sizes in ((1, 2, 3, 3), (1, 2, 2, 2), (1, 2, 2, 2)))


@pytest.mark.parametrize("arguments, reason", [
    ((IMAGE, GRID, 3, 0, False, OUT), "no such interpolation or padding"),
    ((IMAGE, GRID, 0, -1, False, OUT), "no such interpolation or padding"),
    ((IMAGE, GRID[..., :1], 0, 0, False, OUT), "grid must be"),
    ((IMAGE[:, :, :0], GRID, 0, 0, False, OUT), "grid must be"),
    ((IMAGE, GRID.astype(np.float64), 0, 0, False, OUT), "grid must be"),
    ((IMAGE.astype(np.float64), GRID, 0, 0, False, OUT), "grid must be"),
    ((IMAGE.astype(int), GRID, 0, 0, False, OUT), "does not support this dtype"),
])
def test_rejections(arguments, reason):
    with pytest.raises(KernelError, match=reason) as error:
        call("aten::grid_sampler_2d.out", *arguments)
    assert error.value.stage == "check"
