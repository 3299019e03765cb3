"""Compare the operators of ExecuTorch's Cortex-M dialect with the results of its Python implementation.

dialect_cases/ has calls and results, written by tests/models/dialect_cases.py. The outputs are equal to
the byte.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from picotorch.host.operators import built_operators
from support.dialect_calls import BYTES, VALID, X, image, int8, ints
from support.kernel_call import KernelError, Tensor, call, channels_last

pytestmark = pytest.mark.check

CASES = Path(__file__).resolve().parent / "dialect_cases"
OPERATORS = sorted(path.stem for path in CASES.glob("*.npz"))
IMAGES = ["quantized_conv2d", "quantized_depthwise_conv2d", "quantized_transpose_conv2d",
          "quantized_avg_pool2d", "quantized_max_pool2d"]


def calls(operator):
    """Return arguments and expected output of each call, with tensors as (array, dim order)."""
    with np.load(CASES / f"{operator}.npz") as arrays:
        for one in json.loads(str(arrays["calls"])):
            arguments = [(arrays[a[0]], tuple(a[1])) if is_tensor(a) else a
                         for a in one["arguments"]]
            yield arguments, (arrays[one["out"][0]], tuple(one["out"][1]))


def is_tensor(argument):
    return isinstance(argument, list) and len(argument) == 2 and isinstance(argument[0], str)


def as_argument(argument):
    """Return an argument for a call. Scratch is uint8 and all zeros."""
    if not isinstance(argument, tuple):
        return argument
    return Tensor(*argument, scratch=argument[0].dtype == np.uint8 and not argument[0].any())


def blank(expected):
    return Tensor(np.full_like(expected[0], 77), expected[1])


@pytest.mark.parametrize("operator", OPERATORS)
def test_equals_the_dialect(operator):
    count = 0
    for count, (arguments, expected) in enumerate(calls(operator), 1):
        out = call(f"cortex_m::{operator}.out", *map(as_argument, arguments), blank(expected))
        np.testing.assert_array_equal(out, expected[0], err_msg=f"call {count}: {arguments}")
    assert count >= 20


@pytest.mark.parametrize("operator", IMAGES)
def test_explicit_layout_is_the_same_on_nhwc_tensors(operator):
    for arguments, expected in calls(operator):
        image = np.ascontiguousarray(arguments[0][0].transpose(0, 2, 3, 1))
        wanted = np.ascontiguousarray(expected[0].transpose(0, 2, 3, 1))
        out = call(f"cortex_m::{operator}_nhwc.out", image, *map(as_argument, arguments[1:]),
                   np.zeros_like(wanted))
        np.testing.assert_array_equal(out, wanted)


def test_calls_cover_every_operator():
    plain = {name.removesuffix("_nhwc") for name in supported_operators()}
    assert plain == set(OPERATORS)


def supported_operators():
    return [n.removeprefix("cortex_m::").removesuffix(".out") for n in built_operators()
            if n.startswith("cortex_m::")]


# ---- in place


def test_elementwise_operators_work_in_place():
    x = np.arange(-128, 128, dtype=np.int8)
    table = x[::-1].copy()
    out = Tensor(x.copy(), alias=x)
    assert (call("cortex_m::quantized_activation.out", x, table, out) == table).all()


# ---- rejections: one argument of a valid call is replaced

REFUSED = [
    ("quantize_per_tensor", 0, np.zeros((2, 3)), "the input must be float32"),
    ("quantize_per_tensor", 1, 0.0, "scale must be above 0"),
    ("quantize_per_tensor", 1, float("nan"), "scale must be above 0"),
    ("quantize_per_tensor", 2, 1 << 40, "out of its range"),
    ("quantize_per_tensor", 3, -129, "out of its range"),
    ("quantize_per_tensor", 4, -129, "out of its range"),
    ("quantize_per_tensor", 5, 0, "dtype is not that"),
    ("quantize_per_tensor", 6, ints((2, 3)), "must be int8, uint8 or int16"),
    ("quantize_per_tensor", 6, int8(3, 2), "sizes"),
    ("quantize_per_tensor", 6, Tensor(int8(2, 3), (1, 0)), "dim order must be the input's"),
    ("dequantize_per_tensor", 6, int8(2, 3), "dtype is not the operator's"),
    ("quantized_add", 0, np.ones((2, 3), np.uint8), "both operands must be int8"),
    ("quantized_add", 1, 256, "zero point or offset"),
    ("quantized_add", 2, 1 << 31, "a multiplier must be"),
    ("quantized_add", 3, 32, "its shift in"),
    ("quantized_add", 4, int8(1, 3), "operands must be of equal sizes, or one"),
    ("quantized_add", 4, Tensor(int8(2, 3), (1, 0)), "must have the same dim order"),
    ("quantized_add", 11, 128, "activation_min and activation_max"),
    ("quantized_add", 12, -129, "activation_min and activation_max"),
    ("quantized_mul", 2, int8(3), "operands must be of equal sizes, or one"),
    ("quantized_div", 0, X, "both operands must be int8, or both int16"),
    ("quantized_div", 2, int8(1, 3), "must be of equal sizes"),
    ("quantized_div", 2, Tensor(int8(2, 3), (1, 0)), "must have the same dim order"),
    ("quantized_div", 4, 1 << 16, "out of its range"),
    ("quantized_div", 5, -1.0, "output_scale"),
    ("quantized_activation", 1, int8(255), "lut 256 values"),
    ("softmax", 0, X, "the input must be int8"),
    ("softmax", 1, 2, "dim is outside"),
    ("softmax", 3, 0, "output_zero_point must be -128"),
    ("softmax", 4, 0, "out of its range"),
    ("pad", 0, X, "must be int8 of at most 4 dims"),
    ("pad", 1, [1, 1], "must have 4 values"),
    ("pad", 1, [0, 0, -1, 1], "pre_pad or post_pad"),
    ("pad", 2, [0, 1, 0, 0], "pre_pad or post_pad"),
    ("pad", 2, [0, 0, 1 << 40, 0], "pre_pad or post_pad"),
    ("pad", 3, 128, "out of its range"),
    ("pad", 0, Tensor(int8(2, 3), (1, 0)), "must both be contiguous or channels_last"),
    ("quantized_linear", 0, X, "the factors must be int8"),
    ("quantized_linear", 1, Tensor(int8(4, 3), (1, 0)), "is not contiguous"),
    ("quantized_linear", 1, int8(4, 2), "weights must be (outputs, inputs)"),
    ("quantized_linear", 2, ints(3), "one int32 for each output channel"),
    ("quantized_linear", 3, X, "one int32 for each output channel"),
    ("quantized_linear", 7, [], "a multiplier and a shift are needed"),
    ("quantized_linear", 7, [-1 << 40], "a multiplier must be"),
    ("quantized_linear", 11, int8(2, 5), "sizes"),
    ("quantized_batch_matmul", 2, int8(2, 4, 3), "(batch, columns, depth)"),
    ("quantized_conv2d", 0, int8(2, 4, 4), "images must be int8 tensors of 4 dims"),
    ("quantized_conv2d", 0, int8(1, 2, 4, 4), "must be channels_last"),
    ("quantized_conv2d", 0, image(1, 3, 4, 4), "not multiples of the groups"),
    ("quantized_conv2d", 0, image(1, 4, 4, 4), "not multiples of the groups"),
    ("quantized_conv2d", 1, int8(3, 0, 2, 2), "contiguous and not empty"),
    ("quantized_conv2d", 2, np.ones(3, np.int64), "one int32 for each output channel"),
    ("quantized_conv2d", 3, [0, 1], "out of its range"),
    ("quantized_conv2d", 3, [1, 1, 1], "one or two values"),
    ("quantized_conv2d", 4, [1 << 40, 0], "out of its range"),
    ("quantized_conv2d", 6, 129, "out of its range"),
    ("quantized_conv2d", 8, ints(2), "one int32 for each output channel"),
    ("quantized_conv2d", 13, int8(1, 3, 3, 3), "must be channels_last"),
    ("quantized_depthwise_conv2d", 1, int8(2, 2, 2, 3), "channels * depth_multiplier"),
    ("quantized_depthwise_conv2d", 6, 2, "channels * depth_multiplier"),
    ("quantized_transpose_conv2d", 0, image(1, 4, 4, 4), "there are no groups"),
    ("quantized_transpose_conv2d", 4, [9, 9], "no element, or too many"),
    ("quantized_avg_pool2d", 1, [], "one or two values"),
    ("quantized_avg_pool2d", 3, [2, 2], "at most half the kernel"),
    ("quantized_avg_pool2d", 6, 0, "out of its range"),
    ("quantized_max_pool2d", 4, [2, 2], "no dilation and no ceil_mode"),
    ("quantized_max_pool2d", 5, True, "no dilation and no ceil_mode"),
    ("quantized_max_pool2d", 7, 1, "must be equal"),
]


@pytest.mark.parametrize("operator", VALID)
def test_the_calls_that_rejections_start_from_are_accepted(operator):
    call(f"cortex_m::{operator}.out", *VALID[operator])


@pytest.mark.parametrize(("operator", "place", "value", "reason"), REFUSED)
def test_rejects(operator, place, value, reason):
    arguments = list(VALID[operator])
    arguments[place] = value
    with pytest.raises(KernelError) as error:
        call(f"cortex_m::{operator}.out", *arguments)
    assert error.value.stage == "check"
    assert error.value.name in ("InvalidArgument", "NotSupported")
    assert reason in error.value.reason


def test_nhwc_operators_reject_another_dim_order():
    arguments = list(VALID["quantized_max_pool2d"])
    with pytest.raises(KernelError, match="of an NHWC tensor must be contiguous"):
        call("cortex_m::quantized_max_pool2d_nhwc.out", *arguments)


def test_windows_far_outside_of_the_image():
    x, widest = channels_last(np.arange(16, dtype=np.int8).reshape(1, 16, 1, 1)), 1 << 27
    weights = Tensor(np.ones((2, 1, 1, 16), np.int8), constant=True)
    scaling = [ints(2) << 30, -ints(2), -128, 127, BYTES]
    near, far = [call("cortex_m::quantized_conv2d.out", x, weights, None, [1, stride], [0, padding],
                      [1, 1], 0, 5, *scaling, channels_last(int8(1, 2, 1, width)))
                 for stride, padding, width in ((1, 0, 1), (widest, widest, 3))]
    assert (near == 5 + sum(range(16)) // 4).all()
    assert (far == [5, near[0, 0, 0, 0], 5]).all()
