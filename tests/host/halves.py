"""float16 and bfloat16 in the tests: their values in numpy, and a call of every operator in them.

numpy has no bfloat16: an array of its bits (uint16) stands for it.
"""

import numpy as np
from kernel_call import DTYPES, Tensor

HALF, BFLOAT16 = "float16", "bfloat16"
CODES = DTYPES | {BFLOAT16: 15}
IMAGE_LAST = (0, 2, 3, 1)


def to_bits(values, dtype):
    """The array of float32 values as one of the dtype, rounded to nearest, halves to even."""
    if dtype != BFLOAT16:
        with np.errstate(over="ignore"):
            return np.asarray(values, np.float32).astype(dtype)
    values = np.array(values, np.float32)
    bits = np.asarray(values.view(np.uint32)).astype(np.uint64)
    bits = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return np.asarray(np.where(np.isnan(values), 0x7FC0, bits)).astype(np.uint16)


def from_bits(array, dtype):
    """The values as float32."""
    if dtype != BFLOAT16:
        return array.astype(np.float32)
    return (np.array(array, np.uint32) << 16).astype(np.uint32).view(np.float32)


def rounded(values, dtype):
    return from_bits(to_bits(values, dtype), dtype)


def as_dtype(argument, dtype):
    """An argument with float32 tensors made tensors of the dtype; also within lists."""
    if isinstance(argument, list):
        return [as_dtype(item, dtype) for item in argument]
    tensor = argument if isinstance(argument, Tensor) else None
    array = tensor.array if tensor else argument
    if not isinstance(array, np.ndarray) or array.dtype != np.float32:
        return argument
    order = tensor.dim_order if tensor else None
    return Tensor(to_bits(array, dtype), order, dtype=CODES[dtype])


class Samples:
    """One call or more of an operator: float32 arrays stand for the dtype under test."""

    def __init__(self, seed=0):
        self.random = np.random.default_rng(seed)

    def x(self, *sizes, scale=2.0, order=None):
        """Numbers that both dtypes hold exactly."""
        values = np.asarray(np.clip(self.random.normal(size=sizes) * scale, -60, 60))
        return self._tensor(rounded(rounded(values, BFLOAT16), HALF), order)

    def positive(self, *sizes):
        values = np.abs(self.random.normal(size=sizes)) * 2 + 0.125
        return rounded(rounded(values, BFLOAT16), HALF)

    def out(self, *sizes, dtype=np.float32, order=None):
        return self._tensor(np.zeros(sizes, dtype), order)

    def mask(self, *sizes):
        return self.random.random(sizes) < 0.5

    @staticmethod
    def _tensor(array, order):
        return array if order is None else Tensor(array, order)


def unary(s):
    names = ("abs neg sign floor ceil trunc round reciprocal exp expm1 sin cos tanh sigmoid erf "
             "relu").split()
    for name in names:
        yield f"aten::{name}.out", s.x(3, 7), s.out(3, 7)
    for name in "log log2 log10 log1p sqrt rsqrt".split():
        yield f"aten::{name}.out", s.positive(3, 7), s.out(3, 7)
    for name in "logical_not isnan isinf".split():
        yield f"aten::{name}.out", s.x(3, 7), s.out(3, 7, dtype=bool)
    yield "aten::gelu.out", s.x(3, 7), "none", s.out(3, 7)
    yield "aten::gelu.out", s.x(3, 7), "tanh", s.out(3, 7)
    yield "aten::hardtanh.out", s.x(3, 7), -1.0, 1.5, s.out(3, 7)
    yield "aten::clamp.out", s.x(3, 7), -1.0, 1.5, s.out(3, 7)
    yield "aten::clamp.out", s.x(3, 7), None, 1, s.out(3, 7)
    yield "aten::clamp.Tensor_out", s.x(3, 7), s.x(7), s.x(3, 1), s.out(3, 7)
    yield "aten::leaky_relu.out", s.x(3, 7), 0.01, s.out(3, 7)
    yield "aten::elu.out", s.x(3, 7), 1.0, 1, 1, s.out(3, 7)


def binary(s):
    for name in "add sub".split():
        yield f"aten::{name}.out", s.x(3, 7), s.x(3, 7), 1, s.out(3, 7)
        yield f"aten::{name}.out", s.x(3, 7), s.x(7), 2.5, s.out(3, 7)
        yield f"aten::{name}.Scalar_out", s.x(3, 7), 0.3, 1, s.out(3, 7)
    yield "aten::rsub.Scalar_out", s.x(3, 7), 0.3, 1, s.out(3, 7)
    for name in "mul div".split():
        yield f"aten::{name}.out", s.x(3, 7), s.positive(3, 1), s.out(3, 7)
        yield f"aten::{name}.Scalar_out", s.x(3, 7), 0.3, s.out(3, 7)
    for mode in (None, "trunc", "floor"):
        yield "aten::div.out_mode", s.x(3, 7), s.positive(3, 7), mode, s.out(3, 7)
        yield "aten::div.Scalar_mode_out", s.x(3, 7), 0.3, mode, s.out(3, 7)
    yield "aten::floor_divide.out", s.x(3, 7), s.positive(3, 7), s.out(3, 7)
    for name in "fmod remainder".split():
        yield f"aten::{name}.Tensor_out", s.x(3, 7), s.positive(3, 7), s.out(3, 7)
        yield f"aten::{name}.Scalar_out", s.x(3, 7), 0.75, s.out(3, 7)
    for name in "maximum minimum".split():
        yield f"aten::{name}.out", s.x(3, 7), s.x(3, 7), s.out(3, 7)
    yield "aten::pow.Tensor_Tensor_out", s.positive(3, 7), s.x(3, 7), s.out(3, 7)
    yield "aten::pow.Tensor_Scalar_out", s.positive(3, 7), 1.7, s.out(3, 7)
    yield "aten::pow.Tensor_Scalar_out", s.x(3, 7), 2, s.out(3, 7)
    yield "aten::pow.Scalar_out", 1.5, s.x(3, 7), s.out(3, 7)


def comparison(s):
    for name in "eq ne lt le gt ge".split():
        yield f"aten::{name}.Tensor_out", s.x(3, 7), s.x(3, 7), s.out(3, 7, dtype=bool)
        yield f"aten::{name}.Scalar_out", s.x(3, 7), 0.5, s.out(3, 7, dtype=bool)
    for name in "and or xor".split():
        yield f"aten::logical_{name}.out", s.x(3, 7), s.x(3, 7), s.out(3, 7, dtype=bool)
    yield "aten::where.self_out", s.mask(3, 7), s.x(3, 7), s.x(7), s.out(3, 7)
    yield "aten::masked_fill.Scalar_out", s.x(3, 7), s.mask(3, 7), -1.25, s.out(3, 7)


def reduction(s):
    for name in "amax amin".split():
        yield f"aten::{name}.out", s.x(3, 4, 5), [1], False, s.out(3, 5)
    for name in "argmax argmin".split():
        yield f"aten::{name}.out", s.x(3, 4, 5), 1, False, s.out(3, 5, dtype=np.int64)
    for name in "max min".split():
        yield (f"aten::{name}.dim_{name}", s.x(3, 4, 5), 2, True, s.out(3, 4, 1),
               s.out(3, 4, 1, dtype=np.int64))
        yield f"aten::{name}.unary_out", s.x(3, 4), s.out()
    yield "aten::any.out", s.x(3, 4), 1, False, s.out(3, dtype=bool)
    yield "aten::any.all_out", s.x(3, 4), s.out(dtype=bool)
    yield "aten::any.dims_out", s.x(3, 4), [0], False, s.out(4, dtype=bool)
    yield "aten::sum.IntList_out", s.x(3, 40), [1], False, None, s.out(3)
    yield "aten::mean.out", s.x(3, 4, 5), [1, 2], True, None, s.out(3, 1, 1)
    yield "aten::mean.dtype_out", s.x(3, 4), None, s.out()
    yield "aten::prod.int_out", s.x(3, 4), 1, False, None, s.out(3)
    yield "aten::prod.out", s.x(3, 2), None, s.out()
    yield "aten::var.out", s.x(3, 20), [1], True, False, s.out(3)
    yield "aten::var.correction_out", s.x(3, 20), [1], 0, False, s.out(3)
    yield "aten::cumsum.out", s.x(3, 7), 1, None, s.out(3, 7)
    yield "aten::_softmax.out", s.x(3, 7), -1, False, s.out(3, 7)
    yield "aten::_softmax.out", s.x(3, 4, 5), 1, False, s.out(3, 4, 5)
    yield "aten::_log_softmax.out", s.x(3, 7), 1, False, s.out(3, 7)


def normalization(s):
    x = s.x(2, 4, 3, 5)
    c = [s.x(4), s.x(4), s.x(4), s.positive(4)]
    yield ("aten::_native_batch_norm_legit_no_training.out", x, *c, 0.1, 1e-5, s.out(2, 4, 3, 5),
           s.out(0), s.out(0))
    yield ("aten::_native_batch_norm_legit.no_stats_out", x, c[0], c[1], True, 0.1, 1e-5,
           s.out(2, 4, 3, 5), s.out(4), s.out(4))
    yield ("aten::native_layer_norm.out", x, [3, 5], s.x(3, 5), s.x(3, 5), 1e-5,
           s.out(2, 4, 3, 5), s.out(2, 4, 1, 1), s.out(2, 4, 1, 1))
    yield ("aten::native_layer_norm.out", x, [5], None, None, 1e-5,
           s.out(2, 4, 3, 5), s.out(2, 4, 3, 1), s.out(2, 4, 3, 1))
    yield ("aten::native_group_norm.out", x, c[0], c[1], 2, 4, 15, 2, 1e-5, s.out(2, 4, 3, 5),
           s.out(2, 2), s.out(2, 2))


def matrix(s):
    yield "aten::mm.out", s.x(3, 9), s.x(9, 5), s.out(3, 5)
    yield "aten::bmm.out", s.x(2, 3, 9), s.x(2, 9, 5), s.out(2, 3, 5)
    yield "aten::addmm.out", s.x(5), s.x(3, 9), s.x(9, 5), 1, 1, s.out(3, 5)
    yield "aten::addmm.out", s.x(3, 1), s.x(3, 9), s.x(9, 5), 2, 0.5, s.out(3, 5)
    yield "aten::linear.out", s.x(2, 3, 9), s.x(5, 9), s.x(5), s.out(2, 3, 5)
    yield "aten::linear.out", s.x(3, 9), s.x(5, 9), None, s.out(3, 5)
    yield "aten::dot.out", s.x(9), s.x(9), s.out()


def image(s):
    def convolution(x, w, bias, stride, padding, transposed, groups, out):
        dims = len(stride)
        return ("aten::convolution.out", x, w, bias, stride, padding, [1] * dims, transposed,
                [0] * dims, groups, out)

    yield convolution(s.x(1, 3, 6, 6), s.x(4, 3, 3, 3), s.x(4), [1, 1], [1, 1], False, 1,
                      s.out(1, 4, 6, 6))
    yield convolution(s.x(1, 4, 6, 6, order=IMAGE_LAST), s.x(4, 1, 3, 3, order=IMAGE_LAST), None,
                      [2, 2], [1, 1], False, 4, s.out(1, 4, 3, 3, order=IMAGE_LAST))
    yield convolution(s.x(1, 3, 9), s.x(3, 4, 3), s.x(4), [2], [0], True, 1, s.out(1, 4, 19))
    yield ("aten::avg_pool2d.out", s.x(1, 3, 6, 6), [2, 3], [2, 2], [1, 1], False, True, None,
           s.out(1, 3, 4, 3))
    yield "aten::_adaptive_avg_pool2d.out", s.x(1, 3, 6, 7), [2, 3], s.out(1, 3, 2, 3)
    yield ("aten::max_pool2d_with_indices.out", s.x(1, 3, 6, 6), [2, 2], [2, 2], [0, 0], [1, 1],
           False, s.out(1, 3, 3, 3), s.out(1, 3, 3, 3, dtype=np.int64))
    yield "aten::constant_pad_nd.out", s.x(3, 4), [1, 2], 0.5, s.out(3, 7)


def copies(s):
    x, index = s.x(3, 4), np.array([2, 0], np.int64)
    for name in "alias_copy detach_copy lift_fresh_copy".split():
        yield f"aten::{name}.out", x, s.out(3, 4)
    yield "aten::clone.out", x, None, s.out(3, 4)
    yield "aten::copy.out", x, s.x(4), False, s.out(3, 4)
    yield "aten::copy_", s.x(3, 4), s.x(4), False
    yield "dim_order_ops::_clone_dim_order.out", x, False, [0, 1], s.out(3, 4)
    yield "dim_order_ops::_to_dim_order_copy.out", x, False, [0, 1], s.out(3, 4)
    yield "aten::_to_copy.out", x, False, None, s.out(3, 4)
    yield "aten::expand_copy.out", s.x(1, 4), [3, 4], False, s.out(3, 4)
    yield "aten::view_copy.out", x, [2, 6], s.out(2, 6)
    yield "aten::unsqueeze_copy.out", x, 1, s.out(3, 1, 4)
    yield "aten::squeeze_copy.dim_out", s.x(3, 1), 1, s.out(3)
    yield "aten::squeeze_copy.dims_out", s.x(3, 1), [1], s.out(3)
    yield "aten::permute_copy.out", x, [1, 0], s.out(4, 3)
    yield "aten::transpose_copy.int_out", x, 0, 1, s.out(4, 3)
    yield "aten::t_copy.out", x, s.out(4, 3)
    yield "aten::as_strided_copy.out", x, [2, 2], [1, 4], 1, s.out(2, 2)
    yield "aten::cat.out", [x, s.x(2, 4)], 0, s.out(5, 4)
    yield "aten::stack.out", [x, s.x(3, 4)], 0, s.out(2, 3, 4)
    yield "aten::flip.out", x, [1], s.out(3, 4)
    yield "aten::repeat.out", x, [2, 1], s.out(6, 4)
    yield "aten::narrow_copy.out", x, 1, 1, 2, s.out(3, 2)
    yield "aten::select_copy.int_out", x, 0, 1, s.out(4)
    yield "aten::select_scatter.out", x, s.x(4), 0, 1, s.out(3, 4)
    yield "aten::slice_copy.Tensor_out", x, 1, 1, 4, 2, s.out(3, 2)
    yield "aten::slice_scatter.out", x, s.x(3, 2), 1, 0, 2, 1, s.out(3, 4)
    yield "aten::split_copy.Tensor_out", x, 2, 1, [s.out(3, 2), s.out(3, 2)]
    yield "aten::split_with_sizes_copy.out", x, [1, 3], 1, [s.out(3, 1), s.out(3, 3)]
    yield "aten::unbind_copy.int_out", x, 0, [s.out(4) for _ in range(3)]
    yield "aten::tril.out", x, 0, s.out(3, 4)
    yield "aten::embedding.out", s.x(5, 4), index, -1, False, False, s.out(2, 4)
    yield "aten::gather.out", x, 0, np.array([[1, 0, 2, 2]]), False, s.out(1, 4)
    yield "aten::index.Tensor_out", x, [index], s.out(2, 4)
    yield "aten::index_select.out", x, 0, index, s.out(2, 4)


def fills(s):
    yield "aten::arange.out", 7, s.out(7)
    yield "aten::arange.start_out", 1, 4, 0.25, s.out(12)
    yield "aten::empty.out", [3, 4], None, s.out(3, 4)
    yield "dim_order_ops::_empty_dim_order.out", [3, 4], None, s.out(3, 4)
    yield "aten::fill.Scalar_out", s.x(3, 4), 0.3, s.out(3, 4)
    yield "aten::fill.Tensor_out", s.x(3, 4), s.x(), s.out(3, 4)
    yield "aten::full.out", [3, 4], 0.3, s.out(3, 4)
    yield "aten::full_like.out", s.x(3, 4), 0.3, None, s.out(3, 4)
    yield "aten::ones.out", [3, 4], s.out(3, 4)
    yield "aten::zeros.out", [3, 4], s.out(3, 4)
    yield "aten::scalar_tensor.out", 0.3, s.out()


FAMILIES = (unary, binary, comparison, reduction, normalization, matrix, image, copies, fills)


def samples():
    """(operator, arguments) of all families."""
    return [(name, arguments) for i, family in enumerate(FAMILIES)
            for name, *arguments in family(Samples(i))]
