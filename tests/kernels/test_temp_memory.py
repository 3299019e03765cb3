"""Test kernels with less scratch memory than their check requested. A run ends with an error before it
reads or writes outside the memory, or runs without the memory and computes the same bytes."""

from pathlib import Path

import numpy as np
import pytest
from support import halves
from support.board_call import Case
from support.example_calls import EXAMPLES
from support.kernel_call import Tensor

KERNELS = Path(__file__).resolve().parents[2] / "kernels"
TOO_LITTLE = "needs more temp memory than its check asked for"
WIDER = {"float32": "float64", "complex64": "complex128"}
# The operators whose example, in some dtype, uses the memory that it requests. Others can run without.
ASKING = {f"aten::{name}" for name in """
    _fft_c2c.out _fft_c2r.out _fft_r2c.out _linalg_det.result _linalg_eigh.eigenvalues
    _linalg_slogdet.sign _linalg_solve_ex.result _linalg_svd.U _log_softmax.out _softmax.out
    _unique2.out _upsample_bilinear2d_aa.out addmm.out convolution.out index.Tensor_out index_put_
    kthvalue.values linalg_inv_ex.inverse linalg_lu_factor_ex.out linalg_qr.out
    linalg_solve_triangular.out median.dim_values median.out mode.values scatter_reduce.two_out
    topk.values""".split()} | {
    "picotorch::gru.out", "picotorch::lstm.out", "quantized_decomposed::mixed_linear.out",
    "quantized_decomposed::mixed_mm.out", "torchvision::nms.out"}


def as_wide(argument):
    """Return the argument with float64 for float32, and complex128 for complex64, also within lists."""
    if isinstance(argument, list):
        return [as_wide(item) for item in argument]
    array = getattr(argument, "array", argument)
    if not isinstance(array, np.ndarray) or array.dtype.name not in WIDER:
        return argument
    order = argument.dim_order if isinstance(argument, Tensor) else None
    return Tensor(array.astype(WIDER[array.dtype.name]), order)


def volume():
    """Return a convolution with two taps along the depth."""
    x, weights = np.ones((1, 2, 3, 3, 4), np.float32), np.ones((3, 2, 2, 2, 2), np.float32)
    steps = [1, 1, 1], [0, 0, 0], [1, 1, 1]
    return (x, weights, None, *steps, False, [0, 0, 0], 1, np.zeros((1, 3, 2, 2, 3), np.float32))


def masked():
    x, mask = np.arange(12, dtype=np.float32).reshape(3, 4), np.array([True, False, True])
    return x, [mask, np.array([1, 3])], np.zeros(2, np.float32)


def calls():
    """Yield calls of all operators, and of some that request more with other arguments."""
    yield from EXAMPLES.items()
    yield "aten::convolution.out", volume()
    yield "aten::index.Tensor_out", masked()


def in_dtypes(arguments):
    yield arguments
    yield [as_wide(argument) for argument in arguments]
    for dtype in halves.HALVES:
        yield [halves.as_dtype(argument, dtype) for argument in arguments]


@pytest.mark.parametrize("size", [lambda asked: asked - 1, lambda asked: 0],
                         ids=["one byte less", "none"])
def test_a_run_uses_no_more_than_its_temp_memory(size):
    ended = set()
    for operator, arguments in calls():
        for own in in_dtypes(arguments):
            usual = Case(operator, *own).on_twin()
            if usual.error or not usual.scratch:
                continue
            less = Case(operator, *own, exactly=size(usual.scratch)).on_twin()
            if less.error:
                assert (less.error, less.reason) == ("Internal", TOO_LITTLE), operator
                ended.add(operator)
            else:
                assert not less.difference(usual), operator
    assert ended >= ASKING, ASKING - ended


@pytest.mark.parametrize("family", ["portable", "quantized", "extra"])
def test_kernels_find_their_scratch_by_pt_get_scratch(family):
    """pt_get_scratch compares the bytes that a run needs with the available bytes; reading the context
    does not."""
    paths = [path for path in (KERNELS / family).rglob("*") if path.suffix in (".c", ".h", ".inc")]
    assert paths and [path.name for path in paths if "->scratch" in path.read_text()] == []
