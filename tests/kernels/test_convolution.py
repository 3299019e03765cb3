"""Test aten::convolution against a plain reference in numpy, which oracles use too. Test its errors."""

import itertools

import numpy as np
import pytest
from picotorch import Error
from picotorch.host.operators import needed_features, needed_operators
from picotorch.host.twin import open_program
from picotorch.runtime import Runtime
from support.halves import HALVES, as_dtype, from_bits, rounded
from support.kernel_call import Call, KernelError, Tensor, call
from support.programs import call as instruction
from support.programs import plan, program, tensor

pytestmark = pytest.mark.check

OPERATOR = "aten::convolution.out"
CHANNELS_LAST = {1: (0, 2, 1), 2: (0, 2, 3, 1), 3: (0, 2, 3, 4, 1)}


def out_size(size, kernel, stride, padding, dilation, transposed, output_padding):
    reach = dilation * (kernel - 1) + 1
    if transposed:
        return (size - 1) * stride - 2 * padding + reach + output_padding
    return (size + 2 * padding - reach) // stride + 1


def reference(x, w, bias, stride, padding, dilation, transposed, output_padding, groups):
    """Compute a convolution tap by tap, in float64 or wrapping int64. A transposed one scatters, others
    gather."""
    wide = np.float64 if x.dtype.kind == "f" else np.int64
    x, w = x.astype(wide), w.astype(wide)
    sizes = [out_size(*each) for each in zip(
        x.shape[2:], w.shape[2:], stride, padding, dilation, [transposed] * len(stride),
        output_padding, strict=True)]
    c_in = x.shape[1] // groups
    c_out = w.shape[1] if transposed else w.shape[0] // groups
    out = np.zeros((x.shape[0], c_out * groups, *sizes), wide)
    narrow, broad = (x.shape[2:], sizes) if transposed else (sizes, x.shape[2:])
    for tap in itertools.product(*map(range, w.shape[2:])):
        for place in itertools.product(*map(range, narrow)):
            other = [p * s - pad + k * d for p, s, pad, k, d in
                     zip(place, stride, padding, tap, dilation, strict=True)]
            if any(o < 0 or o >= size for o, size in zip(other, broad, strict=True)):
                continue
            source, target = (place, other) if transposed else (other, place)
            for g in range(groups):
                inputs = x[(slice(None), slice(g * c_in, (g + 1) * c_in), *source)]
                outputs = slice(g * c_out, (g + 1) * c_out)
                if transposed:
                    taps = w[(slice(g * c_in, (g + 1) * c_in), slice(None), *tap)]
                else:
                    taps = w[(outputs, slice(None), *tap)].T
                out[(slice(None), outputs, *target)] += inputs @ taps
    if bias is not None:
        out += bias.astype(wide).reshape(-1, *[1] * len(stride))
    return out


def backward_reference(grad, x, w, stride, padding, dilation, transposed, groups):
    """Compute the gradients of input, weight and bias, tap by tap, in float64."""
    grad, x, w = (each.astype(np.float64) for each in (grad, x, w))
    to_x, to_w = np.zeros_like(x), np.zeros_like(w)
    narrow, to_narrow = (x, to_x) if transposed else (grad, None)
    broad, to_broad = (grad, None) if transposed else (x, to_x)
    rows, columns = len(w) // groups, w.shape[1]
    for tap in itertools.product(*map(range, w.shape[2:])):
        for place in itertools.product(*map(range, narrow.shape[2:])):
            other = [p * s - pad + k * d for p, s, pad, k, d in
                     zip(place, stride, padding, tap, dilation, strict=True)]
            if any(o < 0 or o >= size for o, size in zip(other, broad.shape[2:], strict=True)):
                continue
            for g in range(groups):
                own = slice(g * rows, (g + 1) * rows)
                one = slice(None), own, *place
                two = slice(None), slice(g * columns, (g + 1) * columns), *other
                to_w[(own, slice(None), *tap)] += narrow[one].T @ broad[two]
                taps = w[(own, slice(None), *tap)]
                if transposed:
                    to_narrow[one] += broad[two] @ taps.T
                else:
                    to_broad[two] += narrow[one] @ taps
    return to_x, to_w, grad.sum((0, *range(2, grad.ndim)))


def convolve(x, w, bias, stride, padding, dilation, transposed, output_padding, groups,
             orders=(None, None, None)):
    dims = x.ndim - 2
    channels = w.shape[1] * groups if transposed else w.shape[0]
    spread = [list(v) * dims if len(v) == 1 else v for v in (stride, padding, dilation,
                                                             output_padding)]
    sizes = [out_size(*each) for each in zip(
        x.shape[2:], w.shape[2:], *spread[:3], [transposed] * dims, spread[3], strict=True)]
    out = np.full((x.shape[0], channels, *sizes), 77, x.dtype)
    given = [Tensor(a, order) for a, order in zip((x, w, out), orders, strict=True)]
    return call(OPERATOR, given[0], given[1], bias, stride, padding, dilation, transposed,
                output_padding, groups, given[2])


def random(rng, shape, dtype=np.float32):
    if np.dtype(dtype).kind == "f":
        return rng.uniform(-1, 1, shape).astype(dtype)
    return rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, shape, dtype, endpoint=True)


@pytest.mark.parametrize(
    "x, w, stride, padding, groups",
    [
        ((1, 1, 49, 10), (64, 1, 10, 4), (2, 2), (5, 1), 1),
        ((1, 64, 25, 5), (64, 1, 3, 3), (1, 1), (1, 1), 64),
        ((1, 64, 25, 5), (64, 64, 1, 1), (1, 1), (0, 0), 1),
        ((1, 3, 32, 32), (16, 3, 3, 3), (1, 1), (1, 1), 1),
        ((1, 16, 32, 32), (32, 16, 3, 3), (2, 2), (1, 1), 1),
        ((1, 16, 32, 32), (32, 16, 1, 1), (2, 2), (0, 0), 1),
    ],
)
@pytest.mark.parametrize("order", [None, (0, 2, 3, 1)])
def test_shapes_of_the_tiny_models(x, w, stride, padding, groups, order):
    rng = np.random.default_rng(1)
    arguments = (random(rng, x), random(rng, w), random(rng, w[0]), stride, padding, (1, 1), False,
                 (0, 0), groups)
    got = convolve(*arguments, orders=(order,) * 3)
    np.testing.assert_allclose(got, reference(*arguments), rtol=1e-5, atol=2e-5)


def test_lists_of_one_item_hold_for_all_dims():
    rng = np.random.default_rng(2)
    x, w = random(rng, (1, 2, 7, 9)), random(rng, (3, 2, 3, 3))
    full = convolve(x, w, None, [2, 2], [1, 1], [2, 2], False, [0, 0], 1)
    short = convolve(x, w, None, [2], [1], [2], False, [0], 1)
    np.testing.assert_array_equal(short, full)


def test_padding_wider_than_the_kernel_leaves_the_bias():
    x, w = np.ones((1, 1, 2, 2), np.float32), np.ones((1, 1, 1, 1), np.float32)
    got = convolve(x, w, np.float32([3]), [1, 1], [2, 2], [1, 1], False, [0, 0], 1)
    expected = np.full((6, 6), 3)
    expected[2:4, 2:4] = 4
    np.testing.assert_array_equal(got[0, 0], expected)


def test_weights_beside_the_input_do_not_count():
    x, w = np.ones((1, 1, 1, 2), np.float32), np.float32([[[[np.inf, 1, np.nan]]]])
    got = convolve(x, w, None, [1, 2], [0, 1], [1, 1], False, [0, 0], 1)
    assert np.isnan(got).all()
    got = convolve(x[..., :1], w, None, [1, 1], [0, 1], [1, 1], False, [0, 0], 1)
    np.testing.assert_array_equal(got, [[[[1]]]])


def test_large_steps_do_not_overflow():
    x = np.arange(6, dtype=np.float32).reshape(1, 1, 2, 3)
    w = np.ones((1, 1, 2, 2), np.float32)
    wide = (1 << 24) - 1
    got = convolve(x, w, None, [wide, wide], [0, 0], [1, 1], False, [0, 0], 1)
    np.testing.assert_array_equal(got, [[[[0 + 1 + 3 + 4]]]])
    got = convolve(x, w[..., :1, :1], None, [wide, 1], [0, 0], [wide, wide], False, [0, 0], 1)
    np.testing.assert_array_equal(got, x[:, :, :1])


@pytest.mark.parametrize("shape", [(0, 2, 5), (1, 2, 5)])
def test_empty(shape):
    x, w = np.ones(shape, np.float32), np.ones((3, 2, 2), np.float32)
    if shape[0]:
        x, w = x[:, :0], w[:, :0]  # no input channels: only the bias remains
    got = convolve(x, w, np.float32([1, 2, 3]), [1], [0], [1], False, [0], 1)
    np.testing.assert_array_equal(got, np.broadcast_to(np.float32([[[1], [2], [3]]]), got.shape))


# ---- volumes

VOLUME = {"x": np.ones((1, 2, 4, 5, 6), np.float32), "w": np.ones((4, 2, 3, 3, 3), np.float32),
          "bias": np.ones(4, np.float32), "stride": [1, 1, 1], "padding": [0, 0, 0],
          "dilation": [1, 1, 1], "transposed": False, "output_padding": [0, 0, 0], "groups": 1,
          "out": np.zeros((1, 4, 2, 3, 4), np.float32)}


@pytest.mark.parametrize("padding", [[4, 1, 1], [4, 0, 4]], ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.int16])
@pytest.mark.parametrize("bias", [True, False])
def test_slices_that_no_input_reaches_are_the_bias(padding, dtype, bias):
    """The kernel has separate loops for padded lines, which the test includes."""
    rng = np.random.default_rng(3)
    x, w = random(rng, (2, 3, 2, 4, 5), dtype), random(rng, (5, 3, 2, 3, 3), dtype)
    added = random(rng, 5, dtype) if bias else None
    arguments = (x, w, added, [1] * 3, padding, [1] * 3, False, [0] * 3, 1)
    got, expected = convolve(*arguments), reference(*arguments)
    if dtype == np.float32:
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)
    else:
        np.testing.assert_array_equal(got, expected.astype(dtype))
    assert (got[:, :, 0] == (0 if added is None else added[:, None, None])).all()


def test_volumes_of_no_channels_are_the_bias():
    x, w = np.ones((1, 0, 2, 3, 4), np.float32), np.ones((3, 0, 2, 2, 2), np.float32)
    got = convolve(x, w, np.float32([1, 2, 3]), [1], [0], [1], False, [0], 1)
    assert got.shape == (1, 3, 1, 2, 3) and (got == [[[[[1]]], [[[2]]], [[[3]]]]]).all()
    assert convolve(x[:0], w, None, [1], [0], [1], False, [0], 1).size == 0


@pytest.mark.parametrize("dtype", HALVES)
def test_volumes_of_halves_are_rounded_once(dtype):
    """The result is the float32 result of the same numbers, rounded. Rounding the sums at each tap of
    the depth would change it."""
    rng = np.random.default_rng(4)
    given = [rounded(random(rng, shape), dtype) for shape in ((1, 4, 7, 5, 6), (6, 4, 5, 3, 3), (6,))]
    lists = [1] * 3, [2, 1, 1], [1] * 3, False, [0] * 3, 1
    wanted = convolve(*given, *lists)
    got = call(OPERATOR, *(as_dtype(one, dtype) for one in (*given, *lists, np.zeros_like(wanted))))
    np.testing.assert_array_equal(from_bits(got, dtype), rounded(wanted, dtype))


@pytest.mark.parametrize(("changes", "name", "reason"), [
    ({"x": VOLUME["x"][None]}, "NotSupported", "3 to 5 dims"),
    ({"w": VOLUME["w"][0]}, "InvalidArgument", "rank"),
    ({"stride": [1, 1]}, "InvalidArgument", "one item"),
    ({"padding": [-1, 0, 0]}, "InvalidArgument", "out of range"),
    ({"dilation": [0, 1, 1]}, "InvalidArgument", "out of range"),
    ({"groups": 3}, "InvalidArgument", "groups"),
    ({"bias": np.ones(3, np.float32)}, "InvalidArgument", "bias"),
    ({"x": VOLUME["x"].astype(bool)}, "NotSupported", "dtype"),
    ({"dilation": [2, 1, 1]}, "InvalidArgument", "kernel"),
    ({"out": np.zeros((1, 4, 3, 3, 4), np.float32)}, "InvalidArgument", "sizes"),
    ({"transposed": True, "output_padding": [1, 0, 0], "w": VOLUME["w"].reshape(2, 4, 3, 3, 3)},
     "InvalidArgument", "output padding"),
])
def test_volumes_reject(changes, name, reason):
    call(OPERATOR, *VOLUME.values())
    with pytest.raises(KernelError) as refusal:
        call(OPERATOR, *{**VOLUME, **changes}.values())
    assert (refusal.value.stage, refusal.value.name) == ("check", name)
    assert reason in refusal.value.reason


def test_volumes_request_a_slice_of_temp_memory():
    """The memory holds a slice of the output, in float32 two slices of halves. A flat kernel needs
    none."""
    def scratch(**changes):
        one = Call(OPERATOR, {**VOLUME, **changes}.values())
        assert one.check() == 0
        return one.context.scratch_needed()

    assert scratch() == 4 * 3 * 4 * 4
    flat = {"w": VOLUME["w"][:, :, :1], "out": np.zeros((1, 4, 4, 3, 4), np.float32)}
    assert scratch(**flat) == 0


@pytest.mark.parametrize(("image", "needs"), [([1, 1, 2, 3], False), ([1, 1, 1, 2, 3], True)])
def test_a_program_with_a_3d_convolution_needs_volumes(image, needs):
    """A program with a 2-d convolution and tensors of 5 dims does not need volumes."""
    lists = [{"val": ("IntList", {"items": [item]})} for item in (3, 4)]
    numbers = [{"val": ("Int", {"int_val": i})} for i in (1, 0)]
    values = [tensor(image, 0), tensor([1] * len(image), 512), {"val": ("Null", {})}, *numbers, *lists,
              {"val": ("Bool", {"bool_val": False})}, tensor(image, 1024),
              tensor([1, 1, 1, 2, 3], 1536), tensor([1, 1, 1, 2, 3], 2048)]
    calls = [instruction(0, 0, 1, 2, 5, 6, 5, 7, 6, 3, 8, 8), instruction(1, 9, 2, 10, 10)]
    pte = program(plan(values, calls, ["aten::convolution.out", "aten::clone.out"], [0, 1, 9], [8, 10],
                       [4096]))
    opened = {"": open_program(pte)}
    assert needed_operators(opened) == ["aten::clone.out", "aten::convolution.out"]
    assert ("volumes" in needed_features(opened)) is needs


X, W = np.ones((1, 2, 5, 5), np.float32), np.ones((4, 2, 3, 3), np.float32)
B, OUT = np.ones(4, np.float32), np.zeros((1, 4, 3, 3), np.float32)
GOOD = {"x": X, "w": W, "bias": B, "stride": [1, 1], "padding": [0, 0], "dilation": [1, 1],
        "transposed": False, "output_padding": [0, 0], "groups": 1, "out": OUT}
RANGE = "out of range"


@pytest.mark.parametrize(
    "changes, name, reason",
    [
        ({"x": X[0, 0]}, "NotSupported", "3 to 5 dims"),
        ({"x": X[0]}, "InvalidArgument", "rank"),
        ({"w": W[..., 0]}, "InvalidArgument", "rank"),
        ({"out": OUT[0]}, "InvalidArgument", "rank"),
        ({"x": X.astype(bool)}, "NotSupported", "dtype"),
        ({"x": X.astype(np.uint16)}, "NotSupported", "dtype"),
        ({"w": W.astype(np.float64)}, "InvalidArgument", "dtype"),
        ({"out": OUT.astype(np.float64)}, "InvalidArgument", "dtype"),
        ({"stride": [1, 1, 1]}, "InvalidArgument", "one item"),
        ({"stride": [0, 1]}, "InvalidArgument", RANGE),
        ({"stride": [1, 1 << 24]}, "InvalidArgument", RANGE),
        ({"padding": [-1, 0]}, "InvalidArgument", RANGE),
        ({"padding": [0, 2**63 - 1]}, "InvalidArgument", RANGE),
        ({"dilation": [1, 0]}, "InvalidArgument", RANGE),
        ({"dilation": [-(2**63), 1]}, "InvalidArgument", RANGE),
        ({"output_padding": [0, -1]}, "InvalidArgument", RANGE),
        ({"groups": 0}, "InvalidArgument", "groups"),
        ({"groups": -1}, "InvalidArgument", "groups"),
        ({"groups": 3}, "InvalidArgument", "groups"),
        ({"groups": 2**32 + 1}, "InvalidArgument", "groups"),
        ({"groups": 2}, "InvalidArgument", "input channels"),
        ({"w": W[:, :1]}, "InvalidArgument", "input channels"),
        ({"bias": B[:3]}, "InvalidArgument", "bias"),
        ({"bias": B.reshape(4, 1)}, "InvalidArgument", "bias"),
        ({"bias": B.astype(np.float64)}, "InvalidArgument", "bias"),
        ({"w": np.ones((4, 2, 0, 3), np.float32)}, "InvalidArgument", "kernel"),
        ({"w": np.ones((4, 2, 6, 3), np.float32)}, "InvalidArgument", "kernel"),
        ({"dilation": [3, 1]}, "InvalidArgument", "kernel"),
        ({"transposed": True, "output_padding": [1, 0], "w": W.reshape(2, 4, 3, 3)},
         "InvalidArgument", "output padding"),
        ({"out": np.zeros((1, 4, 3, 4), np.float32)}, "InvalidArgument", "sizes"),
        ({"out": np.zeros((1, 3, 3, 3), np.float32)}, "InvalidArgument", "sizes"),
        ({"padding": [1, 0]}, "InvalidArgument", "sizes"),
    ],
)
def test_rejections(changes, name, reason):
    call(OPERATOR, *GOOD.values())
    with pytest.raises(KernelError) as refusal:
        call(OPERATOR, *{**GOOD, **changes}.values())
    assert (refusal.value.stage, refusal.value.name) == ("check", name)
    assert reason in refusal.value.reason


# ---- gradients

BACKWARD = "aten::convolution_backward.out"


def backward_arguments(mask=(True, True, True), **changed):
    """Return the arguments of a call with 2 groups, some of them changed."""
    ones = {"grad": np.ones((1, 4, 3, 3), np.float32), "x": np.ones((1, 2, 5, 5), np.float32),
            "w": np.ones((4, 1, 3, 3), np.float32), "bias_sizes": [4], "stride": [1, 1],
            "padding": [0, 0], "dilation": [1, 1], "transposed": False, "output_padding": [0, 0],
            "groups": 2, "mask": list(mask), "to_x": np.zeros((1, 2, 5, 5), np.float32),
            "to_w": np.zeros((4, 1, 3, 3), np.float32), "to_bias": np.zeros(4, np.float32)}
    return list((ones | changed).values())


def backward(*mask, **changed):
    return call(BACKWARD, *backward_arguments(*mask, **changed))


def test_a_gradient_that_is_not_requested_is_not_written():
    """If its output is dynamic, it gets no sizes either."""
    arguments = backward_arguments([False, True, False])
    one = Call(BACKWARD, arguments)
    one.run()
    to_x, to_w, to_bias = map(one.result, arguments[-3:])
    assert not to_x.any() and not to_bias.any() and (to_w == 9).all()


@pytest.mark.parametrize("name", ["to_x", "to_w", "to_bias"])
def test_a_gradient_that_is_not_requested_may_be_none(name):
    names = ["to_x", "to_w", "to_bias"]
    given = backward([one != name for one in names], **{name: None})
    left = [one for one in names if one != name]
    for result, expected in zip(given, [dict(zip(names, backward(), strict=True))[one] for one in left],
                                strict=True):
        np.testing.assert_array_equal(result, expected)


def test_gradients_where_a_batch_is_empty():
    to_x, to_w, to_bias = backward(grad=np.ones((0, 4, 3, 3), np.float32),
                                   x=np.ones((0, 2, 5, 5), np.float32),
                                   to_x=np.zeros((0, 2, 5, 5), np.float32),
                                   to_w=np.ones((4, 1, 3, 3), np.float32),
                                   to_bias=np.ones(4, np.float32))
    assert to_x.size == 0 and not to_w.any() and not to_bias.any()


def test_gradients_where_there_are_no_outputs():
    to_x, _, _ = backward(grad=np.ones((1, 0, 3, 3), np.float32), w=np.ones((0, 1, 3, 3), np.float32),
                          bias_sizes=[0], to_x=np.ones((1, 2, 5, 5), np.float32),
                          to_w=np.ones((0, 1, 3, 3), np.float32), to_bias=np.ones(0, np.float32))
    assert not to_x.any()


@pytest.mark.parametrize(("changed", "words"), [
    ({"mask": [True, True]}, "the output mask must have three items"),
    ({"to_w": None}, "a gradient that is asked for needs an output of the input's dtype"),
    ({"to_bias": np.zeros(4)}, "a gradient that is asked for needs an output of the input's dtype"),
    ({"grad": np.ones((1, 4, 3, 3))}, "weight and output need the input's dtype"),
    ({"grad": np.ones((1, 4, 3, 4), np.float32)}, "the output's sizes differ from those computed"),
    ({"to_bias": np.zeros(2, np.float32)}, "the output's sizes differ from those computed"),
    ({"groups": 3}, "the groups do not divide the channels"),
])
def test_gradients_reject(changed, words):
    with pytest.raises(KernelError) as error:
        backward(**changed)
    assert (error.value.name, error.value.stage) == ("InvalidArgument", "check")
    assert words in error.value.reason


def test_there_are_no_gradients_of_integers():
    whole = {name: np.ones(sizes, np.int32) for name, sizes in {
        "grad": (1, 4, 3, 3), "x": (1, 2, 5, 5), "w": (4, 1, 3, 3), "to_x": (1, 2, 5, 5),
        "to_w": (4, 1, 3, 3), "to_bias": 4}.items()}
    with pytest.raises(KernelError, match="NotSupported in check: no gradients of this dtype"):
        backward(**whole)


def test_one_output_for_two_gradients_of_other_sizes_is_rejected():
    """A dynamic tensor for both gradients would already have the sizes of the second when the first is
    written."""
    n, number = 40, {"val": ("Int", {"int_val": 1})}
    lists = [{"val": ("IntList", {"items": [item]})} for item in (4, 5)]
    values = [tensor([n, 1, 1, 1], 0), tensor([n, 2, 1, 1], 512), tensor([1, 2, 3, 3], 1024),
              {"val": ("Null", {})}, number, {"val": ("Int", {"int_val": 0})}, *lists,
              {"val": ("Bool", {"bool_val": False})},
              {"val": ("BoolList", {"items": [True, True, False]})},
              tensor([n, 2, 1, 1], 2048, shape_dynamism=1)]
    both = instruction(0, 0, 1, 2, 3, 6, 6, 6, 8, 7, 4, 9, 10, 10, 3, 3)
    pte = program(plan(values, [both], ["aten::convolution_backward.out"], [], [10], [2048 + 8 * n]))
    with pytest.raises(Error, match="that is also the output would get other sizes"):
        Runtime.get().load_program(pte).load_method("forward").execute([])
