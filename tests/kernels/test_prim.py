"""Test operators on numbers: the results of ExecuTorch 1.5.1, and named errors where ExecuTorch ends
the process."""

import math

import numpy as np
import pytest
from support.kernel_call import KernelError, Tensor, Variable, call

INF, NAN, LOWEST = math.inf, math.nan, -(2**63)

# Results of ExecuTorch's runtime
RESULTS = {
    "add": [(3, 4, 7), (3, 4.5, 7.5), (2.5, 2, 4.5), (2**62, 2**62 - 1, 2**63 - 1)],
    "sub": [(3, 4, -1), (3, 0.5, 2.5), (LOWEST + 1, 1, LOWEST)],
    "mul": [(3, -4, -12), (2**62, 4.0, 2.0**64), (2**31, 2**31, 2**62)],
    "floordiv": [(7, 2, 3), (-7, 2, -4), (7, -2, -4), (-7, -2, 3), (0, -2, 0), (7.5, 2, 3.0),
                 (-7.5, 2, -4.0), (7, 0.0, INF), (-7, 0.0, -INF), (NAN, 0.0, INF), (0.0, 0.0, INF),
                 (INF, 2.0, NAN), (1.0, 0.1, 9.0), (LOWEST, 1, LOWEST)],
    "mod": [(7, 2, 1), (-7, 2, -1), (7, -2, 1), (LOWEST, -1, 0)],
    "truediv": [(7, 2, 3.5), (7, 0, INF), (-7, 0, -INF), (0, 0, NAN), (7.0, 2, 3.5)],
    "sym_max": [(3, 4, 4), (LOWEST, -1, -1)],
    "sym_min": [(3, 4, 3), (LOWEST, -1, LOWEST)],
    "eq": [(2, 2.0, True), (True, True, True), (NAN, NAN, False), (2**53 + 1, 2.0**53, True),
           (2, 3, False), (2**53 + 1, 2**53, False)],
    "lt": [(2, 3, True), (False, True, True), (3, 2.5, False), (NAN, 1.0, False)],
    "gt": [(2, 3, False), (True, False, True), (3, 2.5, True), (NAN, 1.0, False)],
    "le": [(2, 2, True), (2, 1, False), (NAN, NAN, False)],
    "ge": [(2, 2, True), (1, 2, False), (NAN, NAN, False)],
    "neg": [(3, -3), (2.5, -2.5), (0, 0)],
    "ceil": [(2.5, 3), (-2.5, -2), (-0.5, 0)],
    "round": [(2.5, 2), (3.5, 4), (-2.5, -2), (0.49999999999999994, 0), (4503599627370497.0,
                                                                        4503599627370497)],
    "trunc": [(-2.7, -2), (2.7, 2), (-9223372036854775808.0, LOWEST)],
    "sym_int": [(2.7, 2), (-2.7, -2), (3, 3), (True, 1)],
    "sym_float": [(2, 2.0), (2.5, 2.5), (True, 1.0), (2**63 - 1, 2.0**63)],
    "sym_not": [(True, False), (False, True)],
    "sym_ite": [(True, 3, 4, 3), (False, 3, 4.5, 4.5), (True, True, 4, True)],
}

# Calls that ExecuTorch rejects with the same error
WRONG_TYPES = {
    "add": [(True, 4), (True, True)], "mul": [(True, 2.5)], "floordiv": [(True, 2)],
    "truediv": [(True, 2)], "mod": [(7.5, 2)], "sym_max": [(3.5, 4), (3.5, 4.5), (True, False)],
    "sym_min": [(3, 2.5)], "eq": [(True, 1), (0.5, True)], "neg": [(True,)], "ceil": [(2,)],
    "round": [(2,)], "trunc": [(True,)], "sym_not": [(3,), (0.0,)],
    "sym_ite": [(1, 3, 4), (0.5, 3, 4)],
}

# Calls for which ExecuTorch ends the process or returns a wrong number
INVALID = {
    "add": [(2**63 - 1, 1), (LOWEST, -1)], "sub": [(LOWEST, 1)], "mul": [(2**62, 4), (LOWEST, -1)],
    "floordiv": [(7, 0), (LOWEST, -1)], "mod": [(7, 0), (0, 0)], "neg": [(LOWEST,)],
    "ceil": [(1e30,), (-1e30,), (NAN,), (INF,), (2.0**63,)], "round": [(1e30,), (NAN,)],
    "trunc": [(1e30,), (NAN,)], "sym_int": [(1e30,), (NAN,)],
}


def flat(table):
    return [(name, *case) for name, cases in table.items() for case in cases]


def compute(name, *arguments):
    overload = "" if name.count(".") else ".Scalar"
    return call(f"executorch_prim::{name}{overload}", *arguments, Variable())


@pytest.mark.parametrize("case", flat(RESULTS), ids=str)
def test_result(case):
    name, *arguments, wanted = case
    found = compute(name, *arguments)
    assert type(found) is type(wanted)
    assert found == wanted or (found != found and wanted != wanted)


@pytest.mark.parametrize("case", flat(WRONG_TYPES), ids=str)
def test_numbers_of_other_types_are_rejected(case):
    with pytest.raises(KernelError, match=r"^InvalidType in run"):
        compute(*case)


@pytest.mark.parametrize("case", flat(INVALID), ids=str)
def test_a_call_without_a_result_is_rejected(case):
    with pytest.raises(KernelError, match=r"^InvalidArgument in run"):
        compute(*case)


@pytest.mark.parametrize(("name", "a", "b", "wanted"), [
    ("floordiv.int", -7, 2, -3), ("floordiv.int", 7, 2, 3), ("mod.int", -7, 2, -1)])
def test_division_of_ints_is_cut(name, a, b, wanted):
    assert compute(name, a, b) == wanted


@pytest.mark.parametrize(("name", "a", "b", "error"), [
    ("floordiv.int", 7, 0, "InvalidArgument"), ("mod.int", 7, 0, "InvalidArgument"),
    ("floordiv.int", LOWEST, -1, "InvalidArgument"), ("floordiv.int", 7.0, 2, "InvalidType")])
def test_division_of_ints_that_is_rejected(name, a, b, error):
    with pytest.raises(KernelError, match=error):
        compute(name, a, b)


@pytest.mark.parametrize("seed", range(20))
def test_floor_division_of_floats_is_pythons(seed):
    random = np.random.default_rng(seed)
    for _ in range(50):
        a, b = (float(x) for x in random.uniform(-1, 1, 2) * 10.0 ** random.integers(-300, 300, 2))
        found = compute("floordiv", a, b)
        quotient = (a - math.fmod(a, b)) / b
        assert found == quotient - (math.fmod(a, b) != 0 and (b < 0) != (math.fmod(a, b) < 0))


@pytest.mark.parametrize(("a", "b"), [(1e308, 5e-324), (5e-324, 1e308), (3e-323, 1e-323), (7.0, INF),
                                      (1.7976931348623157e308, 3.0), (2.2e-308, 5e-324)])
def test_floor_division_of_the_largest_and_the_smallest(a, b):
    assert compute("floordiv", a, b) == (a - math.fmod(a, b)) / b


# ---- queries of tensors

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


@pytest.mark.parametrize(("dim", "size"), [(0, 2), (2, 4), (-1, 4), (-3, 2)])
def test_size(dim, size):
    assert call("aten::sym_size.int", X, dim, Variable()) == size


@pytest.mark.parametrize(("x", "dim"), [(X, 3), (X, -4), (X, 2**40), (np.float32(1), 0)])
def test_size_of_a_dim_that_is_not_there(x, dim):
    with pytest.raises(KernelError, match=r"^InvalidArgument in run"):
        call("aten::sym_size.int", np.asarray(x), dim, Variable())


def test_number_of_elements():
    assert call("aten::sym_numel", X, Variable()) == 24
    assert call("aten::sym_numel", X[:, :0], Variable()) == 0


@pytest.mark.parametrize(("dtype", "value"), [
    (np.uint8, 200), (np.int8, -3), (np.int16, -300), (np.int32, 1 << 30), (np.int64, LOWEST),
    (np.float32, 0.1), (np.float64, 0.1), (bool, True)])
def test_number_of_a_tensor(dtype, value):
    found = call("aten::_local_scalar_dense", np.array([value], dtype), Variable())
    assert found == np.array(value, dtype).item() and type(found) is type(value)


def test_number_of_a_tensor_without_elements():
    with pytest.raises(KernelError, match="InvalidArgument in run: a tensor without elements"):
        call("aten::_local_scalar_dense", X[:, :0], Variable())


def copy_index(to, x, index):
    return call("executorch_prim::et_copy_index.tensor", to, x, index)


def test_a_slice_is_copied():
    found = copy_index(np.zeros((3, 2, 4), np.float32), X[:, 1], 2)
    assert (found[2] == X[:, 1]).all() and not found[:2].any()


@pytest.mark.parametrize("index", [3, -1, 2**31 - 1, 2**31, 2**62])
def test_an_index_outside_is_rejected(index):
    with pytest.raises(KernelError, match="InvalidArgument"):
        copy_index(np.zeros((3, 2, 4), np.float32), X[:, 1], index)


@pytest.mark.parametrize("to", [np.zeros((3, 4), np.float32), np.zeros((3, 2, 5), np.float32),
                                np.zeros((3, 2, 4), np.int32), np.zeros((3, 1, 2, 4), np.float32),
                                Tensor(np.zeros((3, 2, 4), np.float32), (1, 0, 2)),
                                Tensor(np.zeros((3, 2, 4), np.float32), (0, 2, 1))])
def test_a_tensor_that_is_not_a_slice_is_rejected(to):
    with pytest.raises(KernelError, match="InvalidArgument"):
        copy_index(to, X[:, 1], 0)


@pytest.mark.parametrize(("sizes", "wanted"), [([6, 4], (6, 4)), ([-1, 2], (12, 2)), ([24], (24,))])
def test_a_view_has_the_elements_of_its_source(sizes, wanted):
    view = Tensor(np.zeros(wanted, np.float32), alias=X)
    assert (call("executorch_prim::et_view.default", X, sizes, view) == X.reshape(wanted)).all()


@pytest.mark.parametrize("sizes", [[6, 5], [-1, -1], [24, 0], [-1, 0], [2**31, 2**33], [-2, 12],
                                   [24, 1, 1]])
def test_a_view_that_cannot_be_is_rejected(sizes):
    view = Tensor(np.zeros((6, 4), np.float32), alias=X)
    with pytest.raises(KernelError, match="InvalidArgument"):
        call("executorch_prim::et_view.default", X, sizes, view)
