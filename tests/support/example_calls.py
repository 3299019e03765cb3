"""Define an accepted call of every operator of kernels/core/registry/operators.def.

    EXAMPLES["aten::add.out"]       # the arguments, as for kernel_call.call; outputs with their sizes

Outputs hold FILL before the call.
"""

import numpy as np
from support.dialect_calls import VALID
from support.kernel_call import Tensor, Variable, channels_last

FILL = 77
RNG = np.random.default_rng(4)


def floats(*sizes):
    """Return floats between 0 and 1, where every function of one number has a value."""
    return np.asarray(RNG.integers(1, 64, sizes) / 64, np.float32)


def bools(*sizes):
    return RNG.integers(0, 2, sizes).astype(bool)


def ints(*sizes, high=5, dtype=np.int64):
    return RNG.integers(1, high, sizes).astype(dtype)


def out(*sizes, dtype=np.float32):
    return np.full(sizes, FILL, dtype)


def outs(*each):
    return [out(*sizes) for sizes in each]


def scale():
    return np.array([0.5], np.float32)


X = floats(2, 3, 4)
MATRIX = floats(3, 4)
IMAGE = floats(2, 4, 5, 6)
INDEX = ints(2, high=3)

UNARY = ("abs acos acosh alias_copy asin asinh atan atanh ceil cos cosh detach_copy erf exp expm1 "
         "floor lift_fresh_copy log log10 log1p log2 neg reciprocal relu round rsqrt sigmoid sign sin "
         "sinh sqrt tan tanh trunc")
PREDICATES = "isinf isnan logical_not"
BINARY = ("atan2 div floor_divide maximum minimum mul pow.Tensor_Tensor fmod.Tensor remainder.Tensor")
COMPARISONS = "eq ge gt le lt ne"


def unary():
    for name in UNARY.split():
        yield f"aten::{name}.out", (X, out(2, 3, 4))
    for name in PREDICATES.split():
        yield f"aten::{name}.out", (X, out(2, 3, 4, dtype=bool))
    yield "aten::bitwise_not.out", (ints(2, 3), out(2, 3, dtype=np.int64))
    yield "aten::clamp.out", (X, 0.25, None, out(2, 3, 4))
    yield "aten::clamp.Tensor_out", (X, floats(3, 1), None, out(2, 3, 4))
    yield "aten::elu.out", (X, 1.0, 1.0, 1.0, out(2, 3, 4))
    yield "aten::gelu.out", (X, "none", out(2, 3, 4))
    yield "aten::hardtanh.out", (X, 0.25, 0.5, out(2, 3, 4))
    yield "aten::leaky_relu.out", (X, 0.25, out(2, 3, 4))
    yield "aten::logit.out", (X, 0.25, out(2, 3, 4))
    yield "aten::round.decimals_out", (X, 1, out(2, 3, 4))
    yield "aten::glu.out", (X, 2, out(2, 3, 2))


def binary():
    """Return operands that broadcast, so that the output is larger than either."""
    for name in BINARY.split():
        operator = f"aten::{name}{'_out' if '.' in name else '.out'}"
        yield operator, (floats(3, 1), floats(2, 1, 4), out(2, 3, 4))
    for name in COMPARISONS.split():
        yield f"aten::{name}.Tensor_out", (floats(3, 1), floats(4), out(3, 4, dtype=bool))
        yield f"aten::{name}.Scalar_out", (X, 0.5, out(2, 3, 4, dtype=bool))
    for name in ("and", "or", "xor"):
        yield f"aten::logical_{name}.out", (bools(3, 1), bools(4), out(3, 4, dtype=bool))
        yield f"aten::bitwise_{name}.Tensor_out", (ints(3, 1), ints(4), out(3, 4, dtype=np.int64))
        yield f"aten::bitwise_{name}.Scalar_out", (ints(3, 2), 3, out(3, 2, dtype=np.int64))
    for name in ("left", "right"):
        yield (f"aten::bitwise_{name}_shift.Tensor_out",
               (ints(3, 1), ints(4), out(3, 4, dtype=np.int64)))
        yield (f"aten::bitwise_{name}_shift.Tensor_Scalar_out",
               (ints(3, 2), 3, out(3, 2, dtype=np.int64)))
    for name in ("add", "sub"):
        yield f"aten::{name}.out", (floats(3, 1), floats(4), 1, out(3, 4))
        yield f"aten::{name}.Scalar_out", (X, 0.5, 2, out(2, 3, 4))
    for name in ("mul", "fmod", "remainder", "div", "pow.Tensor"):
        operator = f"aten::{name}_Scalar_out" if "." in name else f"aten::{name}.Scalar_out"
        yield operator, (X, 0.5, out(2, 3, 4))
    yield "aten::div.Scalar_mode_out", (X, 0.5, "floor", out(2, 3, 4))
    yield "aten::div.out_mode", (floats(3, 1), floats(4), "trunc", out(3, 4))
    yield "aten::pow.Scalar_out", (2.0, X, out(2, 3, 4))
    yield "aten::rsub.Scalar_out", (X, 0.5, 1, out(2, 3, 4))
    yield "aten::where.self_out", (bools(3, 1), floats(4), floats(2, 1, 1), out(2, 3, 4))
    yield "aten::masked_fill.Scalar_out", (X, bools(3, 1), 0.5, out(2, 3, 4))


def reductions():
    over = (X, [1], False)
    for name in ("amax", "amin"):
        yield f"aten::{name}.out", (*over, out(2, 4))
    for name in ("argmax", "argmin"):
        yield f"aten::{name}.out", (X, 1, True, out(2, 1, 4, dtype=np.int64))
    for name in ("max", "min"):
        yield f"aten::{name}.dim_{name}", (X, 1, False, out(2, 4), out(2, 4, dtype=np.int64))
        yield f"aten::{name}.unary_out", (X, out())
    yield "aten::any.all_out", (X, out(dtype=bool))
    yield "aten::any.dims_out", (*over, out(2, 4, dtype=bool))
    yield "aten::any.out", (X, -1, True, out(2, 3, 1, dtype=bool))
    for name in ("cumsum", "cumprod"):
        yield f"aten::{name}.out", (X, 1, None, out(2, 3, 4))
    yield "aten::logcumsumexp.out", (X, 1, out(2, 3, 4))
    yield "aten::histc.out", (X, 5, 0, 1.0, out(5))
    yield "aten::bincount.out", (np.int32([3, 1, 3]), floats(3), 2, out(4))
    found = [out(2, 4), out(2, 4, dtype=np.int64)]
    yield "aten::kthvalue.values", (X, 2, 1, False, *found)
    yield "aten::median.dim_values", (X, 1, False, *found)
    yield "aten::median.out", (X, out())
    places = [out(2, 3, 4), out(2, 3, 4, dtype=np.int64)]
    yield "aten::mode.values", (X, 1, False, *found)
    yield "aten::cummax.out", (X, 1, *places)
    yield "aten::cummin.out", (X, 1, *places)
    yield "aten::sort.values", (X, 1, False, *places)
    yield "aten::sort.values_stable", (X, True, 1, False, *places)
    yield "aten::mean.dtype_out", (X, None, out())
    yield "aten::mean.out", (*over, None, out(2, 4))
    yield "aten::prod.int_out", (X, 1, False, None, out(2, 4))
    yield "aten::prod.out", (X, None, out())
    yield "aten::sum.IntList_out", (*over, None, out(2, 4))
    yield "aten::var.correction_out", (X, [1], 1, False, out(2, 4))
    yield "aten::var_mean.correction_out", (X, [1], 1, False, *outs((2, 4), (2, 4)))
    yield "aten::topk.values", (X, 2, 1, True, True, out(2, 2, 4), out(2, 2, 4, dtype=np.int64))
    yield "aten::var.out", (X, [1], True, False, out(2, 4))
    for name in ("_softmax", "_log_softmax"):
        yield f"aten::{name}.out", (X, 1, False, out(2, 3, 4))


def copies():
    yield "aten::_to_copy.out", (X, False, None, out(2, 3, 4, dtype=np.int64))
    yield "aten::as_strided_copy.out", (X, [2, 5], [1, 3], 1, out(2, 5))
    yield "aten::cat.out", ([X, floats(2, 2, 4)], 1, out(2, 5, 4))
    yield "aten::clone.out", (X, None, out(2, 3, 4))
    yield "aten::constant_pad_nd.out", (X, [1, 2], 0.5, out(2, 3, 7))
    yield "aten::copy.out", (X, floats(3, 1), False, out(2, 3, 4))
    yield "aten::copy_", (out(2, 3, 4), floats(3, 1), False)
    yield "aten::expand_copy.out", (floats(3, 1), [2, -1, 4], False, out(2, 3, 4))
    yield "aten::flip.out", (X, [0, 2], out(2, 3, 4))
    yield "aten::narrow_copy.out", (X, 1, 1, 2, out(2, 2, 4))
    yield "aten::permute_copy.out", (X, [2, 0, 1], out(4, 2, 3))
    yield "aten::repeat.out", (MATRIX, [2, 1, 2], out(2, 3, 8))
    yield "aten::select_copy.int_out", (X, 1, 2, out(2, 4))
    yield "aten::select_scatter.out", (X, floats(2, 4), 1, 2, out(2, 3, 4))
    yield "aten::slice_copy.Tensor_out", (X, 2, 1, None, 2, out(2, 3, 2))
    yield "aten::slice_scatter.out", (X, floats(2, 3, 2), 2, 1, None, 2, out(2, 3, 4))
    yield "aten::split_copy.Tensor_out", (X, 2, 1, outs((2, 2, 4), (2, 1, 4)))
    yield "aten::split_with_sizes_copy.out", (X, [1, 2], 1, outs((2, 1, 4), (2, 2, 4)))
    yield "aten::squeeze_copy.dim_out", (floats(3, 1, 2), 1, out(3, 2))
    yield "aten::squeeze_copy.dims_out", (floats(1, 3, 1), [0, 2], out(3))
    yield "aten::stack.out", ([MATRIX, floats(3, 4)], 1, out(3, 2, 4))
    yield "aten::t_copy.out", (MATRIX, out(4, 3))
    yield "aten::transpose_copy.int_out", (X, 0, 2, out(4, 3, 2))
    yield "aten::tril.out", (X, 1, out(2, 3, 4))
    yield "aten::tril_indices.out", (3, 4, 1, out(2, 9, dtype=np.int64))
    yield "aten::triu_indices.out", (3, 4, 1, out(2, 6, dtype=np.int64))
    yield "aten::unbind_copy.int_out", (X, 1, outs((2, 4), (2, 4), (2, 4)))
    yield "aten::unsqueeze_copy.out", (MATRIX, 1, out(3, 1, 4))
    yield "aten::view_copy.out", (X, [4, -1], out(4, 6))
    yield "aten::diagonal_copy.out", (X, 1, 1, 2, out(2, 3))
    yield "aten::pixel_shuffle.out", (IMAGE, 2, out(2, 1, 10, 12))
    yield "aten::pixel_unshuffle.out", (IMAGE[:, :, :4], 2, out(2, 16, 2, 3))
    yield "aten::roll.out", (X, [1, -1], [0, 2], out(2, 3, 4))
    yield "aten::unfold_copy.out", (X, 2, 3, 1, out(2, 3, 2, 3))
    for name in ("reflection", "replication"):
        yield f"aten::{name}_pad1d.out", (MATRIX, [1, 2], out(3, 7))
        yield f"aten::{name}_pad2d.out", (IMAGE, [1, 2, 0, 3], out(2, 4, 8, 9))
        yield f"aten::{name}_pad3d.out", (IMAGE, [1, 0, 0, 2, 1, 1], out(2, 6, 7, 7))
    for name in ("d2h", "h2d"):
        yield f"et_copy::_{name}_copy.out", (X, out(2, 3, 4))
    for name in ("_clone_dim_order", "_to_dim_order_copy"):
        yield (f"dim_order_ops::{name}.out",
               (IMAGE, False, [0, 2, 3, 1], channels_last(out(2, 4, 5, 6))))


def made():
    yield "aten::arange.out", (5, out(5))
    yield "aten::arange.start_out", (1, 8, 2, out(4))
    yield "aten::empty.out", ([2, 3], None, out(2, 3))
    yield "dim_order_ops::_empty_dim_order.out", ([2, 3], None, out(2, 3))
    yield "aten::fill.Scalar_out", (X, 0.5, out(2, 3, 4))
    yield "aten::fill.Tensor_out", (X, floats(), out(2, 3, 4))
    yield "aten::full.out", ([2, 3], 0.5, out(2, 3))
    yield "aten::full_like.out", (X, 0.5, None, out(2, 3, 4))
    yield "aten::ones.out", ([2, 3], out(2, 3))
    yield "aten::rand.out", ([2, 3], out(2, 3))
    yield "aten::randn.out", ([2, 3], out(2, 3))
    yield "aten::rand_like.out", (X, None, out(2, 3, 4))
    yield "aten::randn_like.out", (X, None, out(2, 3, 4))
    yield "aten::randint.out", (9, [2, 3], out(2, 3, dtype=np.int64))
    yield "aten::randint.low_out", (-9, 9, [2, 3], out(2, 3, dtype=np.int64))
    yield "aten::randperm.out", (7, out(7, dtype=np.int64))
    yield "aten::scalar_tensor.out", (0.5, out())
    yield "aten::zeros.out", ([2, 3], out(2, 3))


def numbers():
    yield "aten::_local_scalar_dense", (floats(1), Variable())
    yield "aten::sym_numel", (X, Variable())
    yield "aten::sym_size.int", (X, 1, Variable())
    for name in ("add", "sub", "mul", "truediv", "eq", "gt", "lt", "ge", "le"):
        yield f"executorch_prim::{name}.Scalar", (7, 2.5, Variable())
    for name in ("floordiv.Scalar", "floordiv.int", "mod.Scalar", "mod.int", "sym_max.Scalar",
                 "sym_min.Scalar"):
        yield f"executorch_prim::{name}", (7, 2, Variable())
    for name in ("ceil", "neg", "round", "sym_float", "sym_int", "trunc"):
        yield f"executorch_prim::{name}.Scalar", (2.5, Variable())
    yield "executorch_prim::sym_not.Scalar", (True, Variable())
    yield "executorch_prim::sym_ite.Scalar", (True, 3, 4.5, Variable())
    yield "executorch_prim::et_view.default", (MATRIX, [4, -1], Tensor(out(4, 3), alias=MATRIX))
    yield "executorch_prim::et_copy_index.tensor", (out(3, 4), floats(4), 1)


def picked():
    yield "aten::embedding.out", (MATRIX, ints(2, 3, high=3), -1, False, False, out(2, 3, 4))
    bags = [out(3, dtype=np.int64) for _ in range(2)]
    for name in ("_embedding_bag", "_embedding_bag_forward_only"):
        yield f"aten::{name}.out", (
            MATRIX, ints(6, high=3), np.int64([0, 2, 2]), False, 0, False, floats(6), False, 1,
            out(3, 4), out(6, dtype=np.int64), *bags)
    yield "aten::gather.out", (MATRIX, 0, ints(2, 3, high=3), False, out(2, 3))
    yield "aten::index.Tensor_out", (X, [None, INDEX, ints(3, 1, high=4)], out(2, 3, 2))
    yield "aten::index_select.out", (X, 1, INDEX, out(2, 2, 4))


def put():
    mask, few = np.array([True, False, True]), floats(2, 2, 4)
    yield "aten::index_put.out", (X, [None, INDEX], few, True, out(2, 3, 4))
    yield "aten::index_put_", (out(2, 3, 4), [None, mask], few, False)
    yield "aten::masked_scatter.out", (X, mask[:, None], floats(16), out(2, 3, 4))
    yield "aten::masked_select.out", (X, mask[:, None], out(16))
    yield "aten::_unique2.out", (np.int32([3, 1, 3, 2]), True, True, True, out(3, dtype=np.int32),
                                 out(4, dtype=np.int64), out(3, dtype=np.int64))
    yield "aten::unique_consecutive.out", (np.int32([3, 3, 1, 3]), True, True, None,
                                           out(3, dtype=np.int32), out(4, dtype=np.int64),
                                           out(3, dtype=np.int64))
    yield "aten::nonzero.out", (np.array([[0, 1], [2, 0], [3, 4]]), out(4, 2, dtype=np.int64))
    yield ("aten::nonzero_static.out",
           (np.array([[0, 1], [2, 0], [3, 4]]), 6, -1, out(6, 2, dtype=np.int64)))
    yield "aten::repeat_interleave.Tensor_out", (np.array([2, 0, 3]), 5, out(5, dtype=np.int64))
    index = ints(2, 2, high=3)
    yield "aten::scatter.src_out", (MATRIX, 0, index, floats(2, 3), out(3, 4))
    yield "aten::scatter.value_out", (MATRIX, 0, index, 0.5, out(3, 4))
    yield "aten::scatter_add.out", (MATRIX, 0, index, floats(2, 3), out(3, 4))
    yield "aten::scatter_reduce.two_out", (MATRIX, 0, index, floats(2, 3), "mean", True, out(3, 4))
    yield "aten::isin.Tensor_Tensor_out", (X, X[0, 0], False, False, out(2, 3, 4, dtype=bool))
    sequence = np.sort(floats(9))
    yield "aten::searchsorted.Tensor_out", (sequence, X, False, False, None, None,
                                            out(2, 3, 4, dtype=np.int64))
    yield "aten::bucketize.Tensor_out", (X, sequence, False, False, out(2, 3, 4, dtype=np.int64))


def products():
    yield "aten::addmm.out", (floats(5), MATRIX, floats(4, 5), 1, 2.0, out(3, 5))
    yield "aten::bmm.out", (X, floats(2, 4, 5), out(2, 3, 5))
    yield "aten::dot.out", (floats(4), floats(4), out())
    yield "aten::linear.out", (X, floats(5, 4), floats(5), out(2, 3, 5))
    yield "aten::mm.out", (MATRIX, floats(4, 5), out(3, 5))
    yield ("aten::convolution.out",
           (IMAGE, floats(3, 4, 3, 3), floats(3), [2, 1], [1], [1], False, [0, 0], 1, out(2, 3, 3, 6)))
    yield ("aten::convolution_backward.out",
           (floats(2, 3, 3, 6), IMAGE, floats(3, 4, 3, 3), [3], [2, 1], [1], [1], False, [0, 0], 1,
            [True] * 3, *outs((2, 4, 5, 6), (3, 4, 3, 3), (3,))))


def images():
    yield "aten::_adaptive_avg_pool2d.out", (IMAGE, [2, 3], out(2, 4, 2, 3))
    volume = floats(2, 3, 4, 5, 6)
    yield "aten::_adaptive_avg_pool3d.out", (volume, [2, 3, 4], out(2, 3, 2, 3, 4))
    yield ("aten::adaptive_max_pool2d.out",
           (IMAGE, [2, 3], out(2, 4, 2, 3), out(2, 4, 2, 3, dtype=np.int64)))
    yield ("aten::adaptive_max_pool3d.out",
           (volume, [2, 3, 4], out(2, 3, 2, 3, 4), out(2, 3, 2, 3, 4, dtype=np.int64)))
    yield ("aten::avg_pool3d.out",
           (volume, [2, 2, 3], [], [0, 1, 1], False, True, None, out(2, 3, 2, 3, 2)))
    yield ("aten::max_pool3d_with_indices.out",
           (volume, [2, 2, 3], [1], [0], [1], False, out(2, 3, 3, 4, 4),
            out(2, 3, 3, 4, 4, dtype=np.int64)))
    yield ("aten::avg_pool2d.out",
           (IMAGE, [2, 2], [], [0], False, True, None, out(2, 4, 2, 3)))
    yield ("aten::max_pool2d_with_indices.out",
           (IMAGE, [2, 2], [1], [0], [1], False, out(2, 4, 4, 5), out(2, 4, 4, 5, dtype=np.int64)))
    yield ("aten::max_pool2d_with_indices_backward.grad_input",
           (floats(2, 4, 4, 5), IMAGE, [2, 2], [1], [0], [1], False, ints(2, 4, 4, 5, high=30),
            out(2, 4, 5, 6)))


    yield "aten::upsample_nearest2d.vec_out", (IMAGE, [7, 12], None, out(2, 4, 7, 12))
    yield "aten::upsample_bilinear2d.vec_out", (IMAGE, None, False, [1.5, 2.0], out(2, 4, 7, 12))
    yield ("aten::_upsample_bilinear2d_aa.out",
           (IMAGE, [2, 7], False, None, None, out(2, 4, 2, 7)))

    grid = np.asarray(RNG.uniform(-1.5, 1.5, (2, 3, 2, 2)), np.float32)
    yield "aten::grid_sampler_2d.out", (IMAGE, grid, 0, 2, False, out(2, 4, 3, 2))
    yield "aten::_cdist_forward.out", (X, floats(2, 2, 4), 2.0, None, out(2, 3, 2))
    yield "aten::_pdist_forward.out", (MATRIX, 1.0, out(3))
    boxes = floats(5, 2)
    yield "torchvision::nms.out", (np.concatenate([boxes, boxes + 1], 1), floats(5), 1.0,
                                   out(5, dtype=np.int64))
    regions = np.float32([[0, 0, 1, 2, 3], [1, 1, 0, 3, 3]])
    yield "torchvision::roi_align.out", (floats(2, 3, 4, 5), regions, 0.5, 2, 2, -1, False,
                                         out(2, 3, 2, 2))


def normalizations():
    four = [floats(4) for _ in range(4)]
    yield "aten::native_dropout.out", (X, 0.5, False, out(2, 3, 4), out(2, 3, 4, dtype=bool))
    yield ("aten::_native_batch_norm_legit.out",
           (IMAGE, *four, False, 0.1, 1e-5, out(2, 4, 5, 6), out(0), out(0)))
    yield ("aten::_native_batch_norm_legit_no_training.out",
           (IMAGE, *four, 0.1, 1e-5, out(2, 4, 5, 6), out(0), out(0)))
    yield ("aten::_native_batch_norm_legit.no_stats_out",
           (IMAGE, *four[:2], True, 0.1, 1e-5, out(2, 4, 5, 6), out(4), out(4)))
    yield ("aten::native_group_norm.out",
           (IMAGE, *four[:2], 2, 4, 30, 2, 1e-5, out(2, 4, 5, 6), out(2, 2), out(2, 2)))
    yield ("aten::native_layer_norm.out",
           (X, [4], *four[:2], 1e-5, out(2, 3, 4), out(2, 3, 1), out(2, 3, 1)))


def cortex_m():
    for name, arguments in VALID.items():
        yield f"cortex_m::{name}.out", arguments
        if name.endswith("2d"):
            nhwc = [a.array.transpose(0, 2, 3, 1).copy() if getattr(a, "dim_order", 0) else a
                    for a in arguments]
            yield f"cortex_m::{name}_nhwc.out", tuple(nhwc)
    int8 = [RNG.integers(-128, 128, (2, 3)).astype(np.int8) for _ in range(2)]
    for name in ("maximum", "minimum"):
        yield f"cortex_m::{name}.out", (*int8, out(2, 3, dtype=np.int8))
    yield "cortex_m::transpose.out", (int8[0], [1, 0], out(3, 2, dtype=np.int8))


def affine():
    """Return calls of quantized_decomposed."""
    name = "quantized_decomposed::{}.out".format
    int8 = RNG.integers(-128, 128, (3, 4)).astype(np.int8)
    zero, scales, zeros = np.array([3]), floats(3), ints(3)
    numbers, last = (-128, 127, 1), out(3, 4, dtype=np.int8)
    yield name("add"), (int8, 0.5, 1, -128, 127, int8 // 2, 0.25, 2, -128, 127, 1.5, 3, -128, 127, last)
    yield ("quantized_decomposed::choose_qparams.Tensor_out",
           (MATRIX, -128, 127, 0.0, 1, out(1, dtype=np.float64), out(1, dtype=np.int64)))
    yield (name("choose_qparams_per_token_asymmetric"),
           (MATRIX, 1, out(3, 1, dtype=np.float64), out(3, 1, dtype=np.int64)))
    yield name("quantize_per_tensor"), (MATRIX, 0.5, 3, *numbers, last)
    yield ("quantized_decomposed::quantize_per_tensor.Tensor_out",
           (MATRIX, scale(), zero, *numbers, last))
    yield name("quantize_per_channel"), (MATRIX, scales, zeros, 0, *numbers, last)
    yield name("quantize_per_token"), (MATRIX, scales, zeros, *numbers, last)
    real = (None, out(3, 4))
    yield name("dequantize_per_tensor"), (int8, 0.5, 3, *numbers, *real)
    yield ("quantized_decomposed::dequantize_per_tensor.Tensor_out",
           (int8, scale(), zero, *numbers, *real))
    yield name("dequantize_per_channel"), (int8, scales, zeros, 0, *numbers, *real)
    yield name("dequantize_per_token"), (int8, scales, zeros, *numbers, 6, out(3, 4))
    for bits, columns in (("byte", 4), ("4bit", 8), ("2bit", 16)):
        table = (ints(3, 4, high=255, dtype=np.uint8), floats(3), None, 0, 255, ints(2, high=3))
        yield name(f"embedding_{bits}"), (*table, out(2, columns))
        yield f"quantized_decomposed::embedding_{bits}.dtype_out", (*table, None, out(2, columns))
    yield name("mixed_linear"), (floats(2, 4), int8, scales, None, None, out(2, 3))
    yield name("mixed_mm"), (floats(2, 3), int8, scales, None, out(2, 4))


def linear_algebra():
    """Return calls with two matrices, far from singular, symmetric and positive definite."""
    a = floats(2, 3, 3) * 0.25
    a = np.float32(a + a.transpose(0, 2, 1) + 2 * np.eye(3))
    b, info = floats(2, 3, 4), out(2, dtype=np.int32)
    factors = (out(2, 3, 3), out(2, 3, dtype=np.int32))
    yield "aten::linalg_inv_ex.inverse", (a, False, out(2, 3, 3), info)
    yield "aten::_linalg_solve_ex.result", (a, b, True, False, out(2, 3, 4), *factors, info)
    yield "aten::_linalg_det.result", (a, out(2), *factors)
    yield "aten::_linalg_slogdet.sign", (a, out(2), out(2), *factors)
    yield "aten::linalg_lu_factor_ex.out", (a, True, False, *factors, info)
    yield "aten::linalg_cholesky_ex.L", (a, False, False, out(2, 3, 3), info)
    yield "aten::linalg_solve_triangular.out", (a, b, True, True, False, out(2, 3, 4))
    yield "aten::linalg_qr.out", (b, "reduced", out(2, 3, 3), out(2, 3, 4))
    yield "aten::_linalg_svd.U", (b, False, True, None, out(2, 3, 3), out(2, 3), out(2, 3, 4))
    yield "aten::_linalg_eigh.eigenvalues", (a, "L", True, out(2, 3), out(2, 3, 3))


def complex_floats(*sizes):
    return (floats(*sizes) + 1j * floats(*sizes)).astype(np.complex64)


def complexes():
    z, real = complex_floats(3, 4), floats(3, 4)
    for name in ("_conj_copy", "_conj_physical"):
        yield f"aten::{name}.out", (z, out(3, 4, dtype=z.dtype))
    for name in ("complex", "polar"):
        yield f"aten::{name}.out", (real, MATRIX, out(3, 4, dtype=z.dtype))
    yield "aten::view_as_real_copy.out", (z, out(3, 4, 2))
    yield "aten::view_as_complex_copy.out", (floats(3, 4, 2), out(3, 4, dtype=z.dtype))
    yield "aten::_fft_c2c.out", (z, [0, 1], 1, True, out(3, 4, dtype=z.dtype))
    yield "aten::_fft_r2c.out", (real, [1], 0, True, out(3, 3, dtype=z.dtype))
    yield "aten::_fft_c2r.out", (z, [0, 1], 2, 6, out(3, 6))


def recurrent():
    for name, gates in (("gru", 3), ("lstm", 4)):
        rows, states = 4 * gates, gates - 2
        yield f"picotorch::{name}.out", (
            floats(5, 2, 3), floats(rows, 3), floats(rows, 4), floats(rows), None, None, None, False,
            True, True, *[floats(2, 4)] * states, out(5, 2, 4), *outs(*[(2, 4)] * states))


def int8_norms():
    x = RNG.integers(-128, 128, (2, 4, 5, 6)).astype(np.int8)
    weight, bias = ints(4).astype(np.int16), ints(4, dtype=np.int32)
    yield ("picotorch::quantized_layer_norm.out",
           (x.transpose(0, 2, 3, 1).copy(), weight, bias, True, 0, 100, 9,
            out(2, 5, 6, 4, dtype=np.int8)))
    yield ("picotorch::quantized_group_norm.out",
           (x, weight, bias, 2, 100, 9, out(2, 4, 5, 6, dtype=np.int8)))


FAMILIES = (unary, binary, reductions, copies, made, numbers, picked, put, products, images,
            normalizations, cortex_m, affine, linear_algebra, complexes, recurrent, int8_norms)
EXAMPLES = {operator: arguments for family in FAMILIES for operator, arguments in family()}
