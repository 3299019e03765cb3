"""Define a long call of every operator of kernels/core/registry/operators.def, with more than three
times as much work as may lie between two polls.

    LONG["aten::add.out"]       # the arguments, as for kernel_call.call

SHORT are the operators whose work is bounded, or one memcpy or memset.
"""

import numpy as np
from support.example_calls import (
    BINARY,
    COMPARISONS,
    PREDICATES,
    UNARY,
    bools,
    complex_floats,
    floats,
    ints,
    out,
)
from support.kernel_call import Tensor, channels_last

SHORT = {
    *(f"aten::{name}.out" for name in ("alias_copy", "clone", "detach_copy", "lift_fresh_copy")),
    *(f"aten::{name}.out" for name in ("empty", "full", "full_like", "ones", "scalar_tensor", "zeros")),
    "aten::fill.Scalar_out", "aten::view_copy.out",
    "aten::unsqueeze_copy.out", "aten::squeeze_copy.dim_out", "aten::squeeze_copy.dims_out",
    "dim_order_ops::_empty_dim_order.out", "et_copy::_d2h_copy.out", "et_copy::_h2d_copy.out",
    "aten::_local_scalar_dense", "aten::sym_numel", "aten::sym_size.int",
}

N = 1 << 18
X = floats(64, 64, 64)
SQUARE = floats(512, 512)
IMAGE = floats(4, 16, 64, 64)
BYTES = np.zeros(4, np.uint8)


def like(tensor, dtype=None):
    return out(*tensor.shape, dtype=dtype or tensor.dtype)


def int8(*sizes):
    return ints(*sizes, high=100, dtype=np.int8)


def unary():
    for name in set(UNARY.split()) - {"alias_copy", "detach_copy", "lift_fresh_copy"}:
        yield f"aten::{name}.out", (X, like(X))
    for name in PREDICATES.split():
        yield f"aten::{name}.out", (X, like(X, bool))
    whole = ints(64, 64, 64)
    yield "aten::bitwise_not.out", (whole, like(whole))
    yield "aten::clamp.out", (X, 0.25, None, like(X))
    yield "aten::clamp.Tensor_out", (X, floats(64, 1), None, like(X))
    yield "aten::elu.out", (X, 1.0, 1.0, 1.0, like(X))
    yield "aten::gelu.out", (X, "none", like(X))
    yield "aten::hardtanh.out", (X, 0.25, 0.5, like(X))
    yield "aten::leaky_relu.out", (X, 0.25, like(X))
    yield "aten::round.decimals_out", (X, 2, like(X))
    yield "aten::logit.out", (X, 0.25, like(X))
    yield "aten::glu.out", (X, 2, out(64, 64, 32))


def binary():
    column, row, whole = floats(64, 1), floats(64), ints(64, 64, 64)
    for name in BINARY.split():
        operator = f"aten::{name}{'_out' if '.' in name else '.out'}"
        yield operator, (X, column, like(X))
    for name in COMPARISONS.split():
        yield f"aten::{name}.Tensor_out", (X, row, like(X, bool))
        yield f"aten::{name}.Scalar_out", (X, 0.5, like(X, bool))
    for name in ("and", "or", "xor"):
        yield f"aten::logical_{name}.out", (bools(64, 64, 64), bools(64), like(X, bool))
        yield f"aten::bitwise_{name}.Tensor_out", (whole, ints(64), like(whole))
        yield f"aten::bitwise_{name}.Scalar_out", (whole, 3, like(whole))
    for name in ("left", "right"):
        yield f"aten::bitwise_{name}_shift.Tensor_out", (whole, ints(64), like(whole))
        yield f"aten::bitwise_{name}_shift.Tensor_Scalar_out", (whole, 3, like(whole))
    for name in ("add", "sub"):
        yield f"aten::{name}.out", (X, floats(64, 64, 64), 1, like(X))
        yield f"aten::{name}.Scalar_out", (X, 0.5, 2, like(X))
    for name in ("mul", "fmod", "remainder", "div", "pow.Tensor"):
        operator = f"aten::{name}_Scalar_out" if "." in name else f"aten::{name}.Scalar_out"
        yield operator, (X, 0.5, like(X))
    yield "aten::div.Scalar_mode_out", (X, 0.5, "floor", like(X))
    yield "aten::div.out_mode", (X, row, "trunc", like(X))
    yield "aten::pow.Scalar_out", (2.0, X, like(X))
    yield "aten::rsub.Scalar_out", (X, 0.5, 1, like(X))
    yield "aten::where.self_out", (bools(64, 64, 64), X, column, like(X))
    yield "aten::masked_fill.Scalar_out", (X, bools(64, 1), 0.5, like(X))


def reductions():
    """Return reductions: some of the whole tensor to one element, some of many elements to each of
    many."""
    whole = (X, [0, 1, 2], False)
    for name in ("amax", "amin"):
        yield f"aten::{name}.out", (*whole, out())
    for name in ("argmax", "argmin"):
        yield f"aten::{name}.out", (X, None, False, out(dtype=np.int64))
    for name in ("max", "min"):
        yield f"aten::{name}.dim_{name}", (X, 1, False, out(64, 64), out(64, 64, dtype=np.int64))
        yield f"aten::{name}.unary_out", (X, out())
    nothing = like(X) * 0
    yield "aten::any.all_out", (nothing, out(dtype=bool))
    yield "aten::any.dims_out", (nothing, [1], False, out(64, 64, dtype=bool))
    yield "aten::any.out", (nothing, -1, True, out(64, 64, 1, dtype=bool))
    for name in ("cumsum", "cumprod"):
        yield f"aten::{name}.out", (floats(N), 0, None, out(N))
    yield "aten::logcumsumexp.out", (floats(N), 0, out(N))
    yield "aten::histc.out", (floats(N), 10, 0.0, 1.0, out(10))
    yield "aten::bincount.out", (np.zeros(N, np.int8), None, 1, out(1, dtype=np.int64))
    yield "aten::kthvalue.values", (floats(N), 3, 0, False, out(), out(dtype=np.int64))
    yield "aten::median.dim_values", (floats(N), 0, False, out(), out(dtype=np.int64))
    yield "aten::median.out", (X, out())
    yield "aten::mode.values", (floats(N), 0, False, out(), out(dtype=np.int64))
    for name in ("cummax", "cummin"):
        yield f"aten::{name}.out", (floats(N), 0, out(N), out(N, dtype=np.int64))
    yield "aten::sort.values", (floats(N), 0, False, out(N), out(N, dtype=np.int64))
    yield "aten::sort.values_stable", (floats(N), True, 0, False, out(N), out(N, dtype=np.int64))
    yield "aten::mean.dtype_out", (X, None, out())
    yield "aten::mean.out", (X, [1], False, None, out(64, 64))
    yield "aten::prod.int_out", (X, 1, False, None, out(64, 64))
    yield "aten::prod.out", (X, None, out())
    yield "aten::sum.IntList_out", (*whole, None, out())
    yield "aten::var.correction_out", (*whole[:2], 1, False, out())
    yield "aten::var_mean.correction_out", (X, [1], 1, False, out(64, 64), out(64, 64))
    yield "aten::var.out", (X, [1], True, False, out(64, 64))
    yield "aten::topk.values", (floats(N), 2, 0, True, True, out(2), out(2, dtype=np.int64))
    yield "aten::_softmax.out", (X, 1, False, like(X))
    yield "aten::_log_softmax.out", (floats(N), 0, False, out(N))


def copies():
    yield "aten::_to_copy.out", (X, False, None, like(X, np.int64))
    yield "aten::as_strided_copy.out", (SQUARE, [512, 512], [1, 512], 0, like(SQUARE))
    yield "aten::cat.out", ([X, X], 2, out(64, 64, 128))
    yield "aten::constant_pad_nd.out", (X, [1, 2], 0.5, out(64, 64, 67))
    yield "aten::copy.out", (X, floats(64, 1), False, like(X))
    yield "aten::copy_", (like(X), floats(64, 1), False)
    yield "aten::expand_copy.out", (floats(64, 1), [64, -1, 64], False, like(X))
    yield "aten::flip.out", (X, [0, 2], like(X))
    yield "aten::narrow_copy.out", (floats(512, 1024), 1, 1, 512, out(512, 512))
    yield "aten::permute_copy.out", (X, [2, 0, 1], like(X))
    yield "aten::repeat.out", (floats(64, 64), [64, 1, 1], like(X))
    yield "aten::select_copy.int_out", (floats(512, 2, 512), 1, 1, out(512, 512))
    yield "aten::select_scatter.out", (floats(512, 2, 512), SQUARE, 1, 1, out(512, 2, 512))
    yield "aten::slice_copy.Tensor_out", (floats(512, 1024), 1, 1, None, 2, out(512, 512))
    yield "aten::slice_scatter.out", (floats(512, 1024), SQUARE, 1, 1, None, 2, out(512, 1024))
    yield "aten::split_copy.Tensor_out", (SQUARE, 256, 1, [out(512, 256), out(512, 256)])
    yield ("aten::split_with_sizes_copy.out",
           (SQUARE, [200, 312], 1, [out(512, 200), out(512, 312)]))
    yield "aten::stack.out", ([SQUARE, floats(512, 512)], 1, out(512, 2, 512))
    yield "aten::t_copy.out", (SQUARE, like(SQUARE))
    yield "aten::transpose_copy.int_out", (X, 0, 2, like(X))
    yield "aten::tril.out", (floats(1024, 1024), 1, out(1024, 1024))
    for name in ("tril", "triu"):
        yield f"aten::{name}_indices.out", (1000, 1000, 0, out(2, 500500, dtype=np.int64))
    yield "aten::unbind_copy.int_out", (floats(512, 2, 512), 1, [like(SQUARE), like(SQUARE)])
    yield "aten::diagonal_copy.out", (floats(2, 2, N), 0, 0, 1, out(N, 2))
    yield "aten::pixel_shuffle.out", (IMAGE, 2, out(4, 4, 128, 128))
    yield "aten::pixel_unshuffle.out", (IMAGE, 2, out(4, 64, 32, 32))
    yield "aten::roll.out", (X, [1, -1], [0, 2], like(X))
    yield "aten::unfold_copy.out", (floats(4, 1087), 1, 64, 1, out(4, 1024, 64))
    for name in ("reflection", "replication"):
        yield f"aten::{name}_pad1d.out", (SQUARE, [1, 2], out(512, 515))
        yield f"aten::{name}_pad2d.out", (IMAGE, [1, 2, 0, 3], out(4, 16, 67, 67))
        yield f"aten::{name}_pad3d.out", (IMAGE, [1, 0, 0, 2, -1, 1], out(4, 16, 66, 65))
    for name in ("_clone_dim_order", "_to_dim_order_copy"):
        yield (f"dim_order_ops::{name}.out",
               (IMAGE, False, [0, 2, 3, 1], channels_last(like(IMAGE))))


def made():
    yield "aten::arange.out", (N, out(N))
    yield "aten::arange.start_out", (0, 2 * N, 2, out(N))
    yield "aten::fill.Tensor_out", (X, floats(), like(X, np.int64))
    for name in ("rand", "randn"):
        yield f"aten::{name}.out", ([N], out(N))
    for name in ("rand_like", "randn_like"):
        yield f"aten::{name}.out", (floats(N), None, out(N))
    yield "aten::randint.out", (9, [N], out(N, dtype=np.int64))
    yield "aten::randint.low_out", (-9, 9, [N], out(N, dtype=np.int64))
    yield "aten::randperm.out", (N, out(N, dtype=np.int64))
    yield "aten::native_dropout.out", (X, 0.5, True, like(X), like(X, bool))


def picked():
    places = ints(N, high=3)
    yield "aten::embedding.out", (floats(3, 1), places, -1, False, False, out(N, 1))
    for name in ("_embedding_bag", "_embedding_bag_forward_only"):
        yield f"aten::{name}.out", (
            floats(3, 1), places, np.int64([0]), False, 1, False, None, False, -1, out(1, 1),
            out(N, dtype=np.int64), out(1, dtype=np.int64), out(1, dtype=np.int64))
    yield "aten::gather.out", (floats(3), 0, places, False, out(N))
    yield "aten::index.Tensor_out", (floats(3), [places], out(N))
    yield "aten::index_select.out", (floats(3), 0, places, out(N))


def put():
    places, mask = ints(N, high=3), np.ones(N, bool)
    yield "aten::index_put.out", (floats(3), [places], floats(N), True, out(3))
    yield "aten::index_put_", (out(N), [mask], floats(N), False)
    yield "aten::masked_scatter.out", (floats(N), mask, floats(N), out(N))
    yield "aten::masked_select.out", (floats(N), mask, out(N))
    yield "aten::_unique2.out", (np.ones(N, np.int32), True, False, True, out(1, dtype=np.int32),
                                 out(0, dtype=np.int64), out(1, dtype=np.int64))
    yield "aten::unique_consecutive.out", (np.zeros(N, np.int8), False, False, None,
                                           out(1, dtype=np.int8), out(0, dtype=np.int64),
                                           out(0, dtype=np.int64))
    yield "aten::nonzero.out", (np.ones(N), out(N, 1, dtype=np.int64))
    yield "aten::nonzero_static.out", (np.ones(N), 1, -1, out(1, 1, dtype=np.int64))
    yield "aten::repeat_interleave.Tensor_out", (np.array([1, N - 1]), N, out(N, dtype=np.int64))
    yield "aten::scatter.src_out", (floats(3), 0, places, floats(N), out(3))
    yield "aten::scatter.value_out", (floats(3), 0, places, 0.5, out(3))
    yield "aten::scatter_add.out", (floats(3), 0, places, floats(N), out(3))
    yield "aten::scatter_reduce.two_out", (floats(3), 0, places, floats(N), "mean", True, out(3))
    yield "aten::isin.Tensor_Tensor_out", (floats(512), floats(512) + 9, False, False,
                                           out(512, dtype=bool))
    yield "aten::searchsorted.Tensor_out", (floats(8), floats(N), False, False, None, None,
                                            out(N, dtype=np.int64))
    yield "aten::bucketize.Tensor_out", (floats(N), floats(8), False, False, out(N, dtype=np.int64))


def products():
    a, b = floats(128, 128), floats(128, 128)
    yield "aten::addmm.out", (floats(128), a, b, 1, 2.0, like(a))
    yield "aten::bmm.out", (floats(4, 64, 64), floats(4, 64, 64), out(4, 64, 64))
    yield "aten::dot.out", (floats(N), floats(N), out())
    yield "aten::linear.out", (a, b, floats(128), like(a))
    yield "aten::mm.out", (a, b, like(a))
    yield ("aten::convolution.out",
           (IMAGE, floats(8, 16, 3, 3), floats(8), [1], [1], [1], False, [0, 0], 1, out(4, 8, 64, 64)))
    yield ("aten::convolution_backward.out",
           (floats(4, 8, 64, 64), IMAGE, floats(8, 16, 3, 3), [8], [1], [1], [1], False, [0, 0], 1,
            [True] * 3, like(IMAGE), out(8, 16, 3, 3), out(8)))



def images():
    yield "aten::_adaptive_avg_pool2d.out", (IMAGE, [2, 3], out(4, 16, 2, 3))
    yield ("aten::avg_pool2d.out",
           (IMAGE, [8, 8], [], [0], False, True, None, out(4, 16, 8, 8)))
    volume = floats(4, 16, 16, 16, 16)
    yield "aten::_adaptive_avg_pool3d.out", (volume, [2, 3, 4], out(4, 16, 2, 3, 4))
    yield ("aten::adaptive_max_pool2d.out",
           (IMAGE, [2, 3], out(4, 16, 2, 3), out(4, 16, 2, 3, dtype=np.int64)))
    yield ("aten::adaptive_max_pool3d.out",
           (volume, [2, 3, 4], out(4, 16, 2, 3, 4), out(4, 16, 2, 3, 4, dtype=np.int64)))
    yield ("aten::avg_pool3d.out",
           (volume, [4, 4, 4], [], [0], False, True, None, out(4, 16, 4, 4, 4)))
    yield ("aten::max_pool3d_with_indices.out",
           (volume, [3, 3, 3], [1], [0], [1], False, out(4, 16, 14, 14, 14),
            out(4, 16, 14, 14, 14, dtype=np.int64)))
    indices = out(4, 16, 57, 57, dtype=np.int64)
    yield ("aten::max_pool2d_with_indices.out",
           (IMAGE, [8, 8], [1], [0], [1], False, out(4, 16, 57, 57), indices))
    yield ("aten::max_pool2d_with_indices_backward.grad_input",
           (floats(4, 16, 57, 57), IMAGE, [8, 8], [1], [0], [1], False, indices, like(IMAGE)))
    yield "aten::upsample_nearest2d.vec_out", (IMAGE, [60, 70], None, out(4, 16, 60, 70))
    yield ("aten::upsample_bilinear2d.vec_out",
           (IMAGE, [60, 70], False, None, out(4, 16, 60, 70)))
    yield ("aten::_upsample_bilinear2d_aa.out",
           (IMAGE, [40, 40], False, None, None, out(4, 16, 40, 40)))
    grid = floats(4, 32, 32, 2)
    yield "aten::grid_sampler_2d.out", (IMAGE, grid, 0, 2, False, out(4, 16, 32, 32))
    yield ("aten::_cdist_forward.out",
           (floats(64, 64), floats(64, 64), 2.0, None, out(64, 64)))
    yield "aten::_pdist_forward.out", (floats(64, 64), 1.0, out(63 * 32))
    boxes = np.zeros((512, 4), np.float32) + np.float32([0, 0, 1, 1])
    yield "torchvision::nms.out", (boxes, floats(512), 1.0, out(512, dtype=np.int64))
    yield "torchvision::roi_align.out", (floats(1, 16, 9, 9), np.float32([[0, 0, 0, 9, 9]]), 1.0, 4,
                                         4, 32, True, out(1, 16, 4, 4))


def normalizations():
    channels = [floats(16) for _ in range(4)]
    yield ("aten::_native_batch_norm_legit.out",
           (IMAGE, *channels, False, 0.1, 1e-5, like(IMAGE), out(0), out(0)))
    yield ("aten::_native_batch_norm_legit_no_training.out",
           (IMAGE, *channels, 0.1, 1e-5, like(IMAGE), out(0), out(0)))
    yield ("aten::_native_batch_norm_legit.no_stats_out",
           (IMAGE, *channels[:2], True, 0.1, 1e-5, like(IMAGE), out(16), out(16)))
    yield ("aten::native_group_norm.out",
           (IMAGE, *channels[:2], 4, 16, 4096, 1, 1e-5, like(IMAGE), out(4, 1), out(4, 1)))
    yield ("aten::native_layer_norm.out",
           (floats(N), [N], floats(N), floats(N), 1e-5, out(N), out(1), out(1)))


def scales(channels):
    return Tensor(np.full(channels, 1 << 30, np.int32)), Tensor(np.full(channels, -7, np.int32))


def cortex_m_images(make):
    """Return calls on images. `make`: makes an operator's tensor from a contiguous array (N, C, H,
    W)."""
    image, wide = make(int8(1, 16, 64, 64)), make(out(1, 64, 64, 64, dtype=np.int8))
    large = make(int8(1, 64, 160, 160))
    yield ("quantized_conv2d",
           (image, int8(64, 3, 3, 16), None, [1, 1], [1, 1], [1, 1], 0, 0, *scales(64), -128, 127,
            BYTES, wide))
    yield ("quantized_depthwise_conv2d",
           (large, int8(1, 3, 3, 64), None, [1, 1], [1, 1], [1, 1], 1, 0, 0, *scales(64), -128, 127,
            BYTES, make(out(1, 64, 160, 160, dtype=np.int8))))
    yield ("quantized_transpose_conv2d",
           (image, int8(4, 2, 2, 16), None, [1, 1], [0, 0], [0, 0], [1, 1], 0, 0, *scales(4), -128,
            127, BYTES, BYTES, make(out(1, 4, 65, 65, dtype=np.int8))))
    yield ("quantized_avg_pool2d",
           (image, [16, 16], [2, 2], [0, 0], False, 0, 1 << 30, -7, BYTES,
            make(out(1, 16, 25, 25, dtype=np.int8))))
    yield ("quantized_max_pool2d",
           (image, [4, 4], [1, 1], [0, 0], [1, 1], False, 0, 0, -128, 127,
            make(out(1, 16, 61, 61, dtype=np.int8))))


def cortex_m():
    for name, arguments in cortex_m_images(channels_last):
        yield f"cortex_m::{name}.out", arguments
    for name, arguments in cortex_m_images(lambda a: a.transpose(0, 2, 3, 1).copy()):
        yield f"cortex_m::{name}_nhwc.out", arguments
    x, y, to = int8(N), int8(N), out(N, dtype=np.int8)
    calls = {
        "quantize_per_tensor": (floats(N), 1.0, 0, -128, 127, 1, to),
        "dequantize_per_tensor": (x, 1.0, 0, -128, 127, 1, out(N)),
        "quantized_add": (x, 0, 1 << 30, 0, y, 0, 1 << 30, 0, 0, 1 << 30, -20, -128, 127, to),
        "quantized_mul": (x, 0, y, 0, 0, 1 << 30, -7, to),
        "quantized_div": (x, 0, y, 0, 0, 1.0, to),
        "quantized_activation": (x, int8(256), to),
        "softmax": (x, -1, 0, -128, 1 << 30, 20, -128, to),
        "pad": (int8(512, 512), [0, 0, 0, 1], [0, 0, 0, 0], 0, out(512, 513, dtype=np.int8)),
        "quantized_linear": (int8(8, 512), int8(512, 512), None, None, 0, 0, 0, [1 << 30], [-7], 127,
                             -128, out(8, 512, dtype=np.int8)),
        "quantized_batch_matmul": (int8(8, 8, 256), 0, int8(8, 256, 256), 0, 0, 1 << 30, -7, BYTES,
                                   out(8, 8, 256, dtype=np.int8)),
        "maximum": (x, y, to),
        "minimum": (x, y, to),
        "transpose": (int8(512, 512), [1, 0], out(512, 512, dtype=np.int8)),
    }
    for name, arguments in calls.items():
        yield f"cortex_m::{name}.out", arguments


def affine():
    """Return calls of quantized_decomposed."""
    name = "quantized_decomposed::{}.out".format
    x, x8, to = floats(512, 512), int8(512, 512), out(512, 512, dtype=np.int8)
    one, zero, many, zeros = floats(1), np.array([3]), floats(512), ints(512)
    numbers, real = (-128, 127, 1), (None, out(512, 512))
    yield (name("add"),
           (x8, 0.5, 1, -128, 127, int8(512, 512), 0.25, 2, -128, 127, 1.5, 3, -128, 127, to))
    yield ("quantized_decomposed::choose_qparams.Tensor_out",
           (x, -128, 127, 0.0, 1, out(1, dtype=np.float64), out(1, dtype=np.int64)))
    yield (name("choose_qparams_per_token_asymmetric"),
           (x, 1, out(512, 1, dtype=np.float64), out(512, 1, dtype=np.int64)))
    yield name("quantize_per_tensor"), (x, 0.5, 3, *numbers, to)
    yield "quantized_decomposed::quantize_per_tensor.Tensor_out", (x, one, zero, *numbers, to)
    yield name("quantize_per_channel"), (x, many, zeros, 0, *numbers, to)
    yield name("quantize_per_token"), (x, many, zeros, *numbers, to)
    yield name("dequantize_per_tensor"), (x8, 0.5, 3, *numbers, *real)
    yield "quantized_decomposed::dequantize_per_tensor.Tensor_out", (x8, one, zero, *numbers, *real)
    yield name("dequantize_per_channel"), (x8, many, zeros, 0, *numbers, *real)
    yield name("dequantize_per_token"), (x8, many, zeros, *numbers, 6, out(512, 512))
    for bits, columns in (("byte", 512), ("4bit", 1024), ("2bit", 2048)):
        table = (ints(3, 512, high=255, dtype=np.uint8), floats(3), None, 0, 255, ints(512, high=3))
        to = out(512, columns)
        yield name(f"embedding_{bits}"), (*table, to)
        yield f"quantized_decomposed::embedding_{bits}.dtype_out", (*table, None, to)
    yield name("mixed_linear"), (floats(8, 256), int8(256, 256), floats(256), None, None, out(8, 256))
    yield name("mixed_mm"), (floats(8, 256), int8(256, 256), floats(256), None, out(8, 256))


def linear_algebra():
    a = np.float32(floats(128, 128) + 128 * np.eye(128))
    symmetric, info = np.float32(a + a.T), out(dtype=np.int32)
    factors = (like(a), out(128, dtype=np.int32))
    yield "aten::linalg_inv_ex.inverse", (a, False, like(a), info)
    yield "aten::_linalg_solve_ex.result", (a, SQUARE[:128], True, False, out(128, 512), *factors, info)
    yield "aten::_linalg_det.result", (a, out(), *factors)
    yield "aten::_linalg_slogdet.sign", (a, out(), out(), *factors)
    yield "aten::linalg_lu_factor_ex.out", (a, True, False, *factors, info)
    yield "aten::linalg_cholesky_ex.L", (symmetric, False, False, like(a), info)
    yield "aten::linalg_solve_triangular.out", (a, a, True, True, False, like(a))
    yield "aten::linalg_qr.out", (a, "reduced", like(a), like(a))
    yield "aten::_linalg_svd.U", (a, False, True, None, like(a), out(128), like(a))
    yield "aten::_linalg_eigh.eigenvalues", (symmetric, "L", True, out(128), like(a))


def complexes():
    z = complex_floats(512, 512)
    for name in ("_conj_copy", "_conj_physical"):
        yield f"aten::{name}.out", (z, like(z))
    for name in ("complex", "polar"):
        yield f"aten::{name}.out", (SQUARE, floats(512), like(z))
    turned = Tensor(z, (1, 0))
    yield "aten::view_as_real_copy.out", (turned, out(512, 512, 2))
    yield "aten::view_as_complex_copy.out", (Tensor(floats(512, 512, 2), (2, 0, 1)), like(z))
    prime = complex_floats(521)
    yield "aten::_fft_c2c.out", (prime, [0], 0, True, like(prime))
    yield "aten::_fft_r2c.out", (SQUARE, [1], 0, True, out(512, 257, dtype=z.dtype))
    yield "aten::_fft_c2r.out", (z, [0, 1], 0, 1022, out(512, 1022))


def recurrent():
    for name, gates in (("gru", 3), ("lstm", 4)):
        rows, states = 32 * gates, gates - 2
        yield f"picotorch::{name}.out", (
            floats(99, 2, 16), floats(rows, 16), int8(rows, 32), None, None, None, floats(rows), True,
            False, True, *[None] * states, out(99, 2, 32), *(out(99, 32) for _ in range(states)))


def int8_norms():
    x, to = int8(1, 512, 512), out(1, 512, 512, dtype=np.int8)
    yield ("picotorch::quantized_layer_norm.out",
           (x, ints(512).astype(np.int16), ints(512).astype(np.int32), True, 0, 0, 9, to))
    yield ("picotorch::quantized_group_norm.out",
           (x, ints(512).astype(np.int16), ints(512).astype(np.int32), 2, 0, 9, to))


def arithmetic_of_complexes():
    z = complex_floats(512, 512)
    yield "aten::add.out", (z, z, 1, like(z))
    yield "aten::mul.Scalar_out", (z, 2.5, like(z))
    yield "aten::abs.out", (z, out(512, 512))
    yield "aten::_to_copy.out", (SQUARE, False, None, like(z))
    yield "aten::sum.IntList_out", (z, None, False, None, out(dtype=z.dtype))
    yield "aten::mm.out", (complex_floats(64, 64), complex_floats(64, 64), like(z[:64, :64]))
    yield "aten::mm.out", (z.reshape(1, -1), z.reshape(-1, 1), out(1, 1, dtype=z.dtype))


FAMILIES = (unary, binary, reductions, copies, made, picked, put, products, images, normalizations,
            cortex_m, affine, linear_algebra, complexes, recurrent, int8_norms)
LONG = {operator: arguments for family in FAMILIES for operator, arguments in family()}
LONG_COMPLEX = list(arithmetic_of_complexes())
