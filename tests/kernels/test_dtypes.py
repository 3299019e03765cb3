"""Test every dtype of the schema: programs load, return and clone it, and operators that compute reject
it."""

import sys
import types

import numpy as np
import pytest
from picotorch import Error
from picotorch.host.tensors import DTYPES, from_bfloat16, to_bfloat16
from picotorch.runtime import Runtime
from picotorch.schema import SCALAR_TYPE_NAMES
from support.board_call import Case, assert_same
from support.flatbuffer_builder import int_value
from support.kernel_call import KernelError, Tensor, call
from support.programs import call as kernel_call
from support.programs import plan, program, tensor

SIZES = {0: 1, 1: 1, 2: 2, 3: 4, 4: 8, 5: 2, 6: 4, 7: 8, 8: 4, 9: 8, 10: 16, 11: 1, 12: 1, 13: 1,
         14: 4, 15: 2, 16: 1, 17: 1, 22: 2, 23: 1, 24: 1, 25: 1, 26: 1, 27: 2, 28: 4, 29: 8}
COMPUTED = [0, 1, 2, 3, 4, 5, 6, 7, 11, 15]
COMPLEX = [8, 9, 10]
MOVED = sorted({*SCALAR_TYPE_NAMES} - {*COMPUTED})


def bits(scalar_type, *sizes):
    """Return an array of random bits; bools are 0 or 1."""
    random = np.random.default_rng(scalar_type)
    if scalar_type == 11:
        return random.integers(0, 2, sizes).astype(bool)
    data = random.integers(0, 256, (*sizes, SIZES[scalar_type])).astype(np.uint8)
    return data.view(DTYPES.get(scalar_type, "uint8"))[..., 0].copy()


def moves(scalar_type):
    """Return a program that maps x to clone(x), x, and x as [3, 2]."""
    values = [tensor([2, 3], 0, dtype=scalar_type), tensor([2, 3], 128, dtype=scalar_type),
              {"val": ("Null", {})}, tensor([3, 2], 256, dtype=scalar_type)]
    values += [int_value(3), int_value(2)]
    values.append({"val": ("IntList", {"items": [4, 5]})})
    calls = [kernel_call(0, 0, 2, 1, 1), kernel_call(1, 0, 6, 3, 3)]
    operators = ["aten::clone.out", "aten::view_copy.out"]
    return program(plan(values, calls, operators, [0], [1, 0, 3], [384]))


@pytest.mark.parametrize("scalar_type", SCALAR_TYPE_NAMES, ids=SCALAR_TYPE_NAMES.get)
def test_programs_move_them(scalar_type):
    method = Runtime.get().load_program(moves(scalar_type)).load_method("forward")
    info = method.metadata.input_tensor_meta(0)
    assert info.dtype() == scalar_type and info.nbytes() == 6 * SIZES[scalar_type]
    x = bits(scalar_type, 2, 3)
    clone, same, view = method.execute([x])
    assert x.tobytes() == clone.tobytes() == same.tobytes() == view.tobytes()
    assert clone.dtype == x.dtype and view.shape == (3, 2)


def moving_cases():
    for scalar_type in SCALAR_TYPE_NAMES:
        def one(*sizes, code=scalar_type):
            return Tensor(bits(code, *sizes), dtype=code)

        x = one(3, 4)
        yield Case("aten::clone.out", x, None, one(3, 4))
        yield Case("aten::cat.out", [x, one(2, 4)], 0, one(5, 4))
        yield Case("aten::permute_copy.out", x, [1, 0], one(4, 3))
        yield Case("aten::slice_copy.Tensor_out", x, 1, 1, 4, 2, one(3, 2))
        yield Case("aten::expand_copy.out", one(1, 4), [3, 4], False, one(3, 4))
        yield Case("aten::repeat.out", x, [2, 1], one(6, 4))
        yield Case("aten::index_select.out", x, 0, np.array([2, 0]), one(2, 4))
        yield Case("aten::zeros.out", [3, 4], one(3, 4))


@pytest.mark.parametrize("board", ["mps2-an385-m0plus", "mps2-an386", "mps3-an547"])
def test_boards_move_them(board):
    cases = list(moving_cases())
    assert not [case for case in cases if case.on_twin().error]
    assert_same(board, cases)


OF_COMPLEX = {"aten::add.out": ["x", 1], "aten::mm.out": ["x"]}
REAL_ONLY = {"aten::relu.out": [], "aten::maximum.out": ["x"], "aten::amax.out": [[0], True],
             "aten::linear.out": ["x", None], "aten::_softmax.out": [0, False], "aten::full.out": None}


@pytest.mark.parametrize("operator, extra, scalar_type", [
    (operator, extra, scalar_type) for operator, extra in {**OF_COMPLEX, **REAL_ONLY}.items()
    for scalar_type in MOVED if operator in REAL_ONLY or scalar_type not in COMPLEX])
def test_no_kernel_computes_with_the_others(operator, extra, scalar_type):
    x, out = (Tensor(bits(scalar_type, 1, 1), dtype=scalar_type) for _ in range(2))
    arguments = [[1, 1], 1, out] if extra is None else [x, *[x if e == "x" else e for e in extra], out]
    with pytest.raises(KernelError, match="NotSupported in check"):
        call(operator, *arguments)


@pytest.mark.parametrize("scalar_type", [18, 19, 20, 21, 30, 44, 127])
def test_numbers_that_are_no_dtype(scalar_type):
    with pytest.raises(Error, match="NotSupported.*dtype"):
        Runtime.get().load_program(moves(scalar_type)).load_method("forward")


# ---- bfloat16 of numpy, torch and ml_dtypes


def relu(scalar_type):
    values = [tensor([4], 0, dtype=scalar_type), tensor([4], 16, dtype=scalar_type)]
    data = program(plan(values, [kernel_call(0, 0, 1, 1)], ["aten::relu.out"], [0], [1], [32]))
    return Runtime.get().load_program(data).load_method("forward")


X = np.float32([-1.5, 0.3, 1e4, np.inf])


def test_bfloat16_is_an_array_of_bits():
    (y,) = relu(15).execute([to_bfloat16(X)])
    assert y.dtype == np.uint16
    np.testing.assert_array_equal(from_bfloat16(y), [0, 0.30078125, from_bfloat16(to_bfloat16(1e4)),
                                                     np.inf])


def test_rounding_to_bfloat16():
    """Values round to the nearest, ties to even, and a NaN stays a NaN."""
    x = np.uint32([0x3F808000, 0x3F818000, 0x3F808001, 0x7F7FFFFF, 0x7F800001]).view(np.float32)
    assert to_bfloat16(x).tolist() == [0x3F80, 0x3F82, 0x3F81, 0x7F80, 0x7FC0]
    assert to_bfloat16(1.0).shape == () and np.isnan(from_bfloat16(0x7FC0))


def test_floats_for_bfloat16_are_rejected():
    with pytest.raises(Error, match="uint16 expected, float32 given.*to_bfloat16"):
        relu(15).execute([X])


class TorchTensor:
    """Stand in for the used part of torch.Tensor."""

    def __init__(self, dtype, array):
        self.dtype, self.array = f"torch.{dtype}", array

    def detach(self):
        return self

    def view(self, dtype):
        return TorchTensor(dtype, self.array)

    def numpy(self):
        return self.array


def test_tensors_of_torch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(
        Tensor=TorchTensor, uint16="uint16", uint8="uint8"))
    (y,) = relu(15).execute([TorchTensor("bfloat16", to_bfloat16(X))], torch=False)
    assert y[1] == to_bfloat16(0.3)
    with pytest.raises(Error, match="Half expected, bfloat16 given"):
        relu(5).execute([TorchTensor("bfloat16", to_bfloat16(X))])


def test_float16_is_numpys():
    (y,) = relu(5).execute([X.astype(np.float16)])
    assert y.dtype == np.float16 and y[1] == np.float16(0.3)
