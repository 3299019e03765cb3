"""Test rand, randn and native_dropout in training: the numbers, their statistics, and their
generator."""

import numpy as np
import pytest
from picotorch import Error
from picotorch.runtime import Runtime
from support.board_call import BOARDS, Case, assert_same
from support.kernel_call import DTYPES, KernelError, Tensor, call, channels_last
from support.programs import call as instruction
from support.programs import plan, program, tensor
from support.random_numbers import normal, random_bits, uniform

RAND, RANDN, DROPOUT = "aten::rand.out", "aten::randn.out", "aten::native_dropout.out"
RANDINT, RANDPERM = "aten::randint.low_out", "aten::randperm.out"


def rand(sizes, dtype=np.float32, operator=RAND):
    return call(operator, list(sizes), np.zeros(sizes, dtype))


def test_the_first_bits():
    assert [hex(one) for one in random_bits(3)] == ["0x92ca2f0e", "0x3cd6e3f3", "0x1b147dcc"]


def test_rand_draws_the_numbers_of_seed_0():
    np.testing.assert_array_equal(rand((4, 5)), uniform(20).reshape(4, 5))
    np.testing.assert_array_equal(rand((3,), np.float64), uniform(3))


def test_randn_equals_box_muller():
    np.testing.assert_allclose(rand((1000,), operator=RANDN), normal(1000), 1e-4, 1e-5)


def test_statistics():
    u, n = rand((100000,)).astype(float), rand((100000,), operator=RANDN).astype(float)
    assert abs(u.mean() - 1 / 2) < 0.003 and abs(u.var() - 1 / 12) < 0.001
    assert abs(n.mean()) < 0.01 and abs(n.var() - 1) < 0.02 and abs((n**4).mean() - 3) < 0.1
    assert np.histogram(u, 64, (0, 1))[0].std() < 60  # 40 for independent numbers
    assert abs(np.corrcoef(u[:-1], u[1:])[0, 1]) < 0.01
    assert abs(np.corrcoef(u, uniform(100000, 1))[0, 1]) < 0.01


def test_statistics_of_integers():
    n = call(RANDINT, -2, 5, [70000], np.zeros(70000, np.int64))
    assert abs(np.bincount(n + 2) - 10000).max() < 400
    order = call(RANDPERM, 50000, np.zeros(50000, np.int32))
    assert sorted(order) == list(range(50000))
    assert abs(np.corrcoef(order, np.arange(50000))[0, 1]) < 0.02


@pytest.mark.parametrize(("code", "unit"), [(DTYPES["float16"], 2**-11), (15, 2**-8)])
def test_halves_stay_below_1(code, unit):
    n = 20000
    stored = call(RAND, [n], Tensor(np.zeros(n, np.uint16), dtype=code))
    values = (stored.view(np.float16) if unit == 2**-11
              else (stored.astype(np.uint32) << 16).view(np.float32)).astype(float)
    np.testing.assert_array_equal(values, np.floor(random_bits(n) / 2**32 / unit) * unit)
    assert values.max() < 1


def test_dropout_in_training():
    x = np.random.default_rng(1).normal(size=(3, 4, 5)).astype(np.float32)
    for train in (True, None):
        out, mask = call(DROPOUT, x, 0.25, train, np.zeros_like(x), np.zeros(x.shape, bool))
        np.testing.assert_array_equal(mask.ravel(), uniform(60) >= 0.25)
        np.testing.assert_array_equal(out, x * np.where(mask, np.float32(1 / 0.75), 0))
    assert 0.7 < call(DROPOUT, np.ones(5000, np.float32), 0.25, True, np.zeros(5000, np.float32),
                      np.zeros(5000, bool))[1].mean() < 0.8


def test_dropout_of_all_and_of_nothing():
    x = np.array([1, np.nan, np.inf], np.float32)
    out, mask = call(DROPOUT, x, 1.0, True, np.zeros_like(x), np.zeros(3, bool))
    np.testing.assert_array_equal(out, [0, np.nan, np.nan])
    assert not mask.any()
    none = np.zeros((0, 2), np.float32)
    assert call(DROPOUT, none, 0.5, True, none, np.zeros((0, 2), bool))[0].shape == (0, 2)


def test_dropout_in_any_dim_order():
    """The numbers are drawn in the memory order of the output."""
    x = np.random.default_rng(1).normal(size=(2, 3, 4, 5))
    out, mask = call(DROPOUT, x, 0.5, True, channels_last(np.zeros_like(x)), np.zeros(x.shape, bool))
    np.testing.assert_array_equal(mask.transpose(0, 2, 3, 1).ravel(), uniform(120) >= 0.5)
    np.testing.assert_array_equal(out, np.where(mask, 2 * x, 0))


@pytest.mark.parametrize(("operator", "arguments", "words"), [
    (RAND, [[2], np.zeros(2, np.int32)], "NotSupported in check: random numbers are floats"),
    (RANDN, [[2], np.zeros(2, bool)], "NotSupported in check: random numbers are floats"),
    (RAND, [[-2], np.zeros(2, np.float32)], "InvalidArgument in check"),
    (RAND, [[3], np.zeros(2, np.float32)], "InvalidArgument in check: the output's sizes differ"),
    ("aten::rand_like.out", [np.zeros(2), None, np.zeros(2, np.int64)], "random numbers are floats"),
    (RANDINT, [3, 3, [2], np.zeros(2, np.int64)], "low is not below high"),
    (RANDINT, [-2, 3, [2], np.zeros(2, np.uint8)], "the output's dtype does not hold them"),
    (RANDINT, [0, 257, [2], np.zeros(2, np.uint8)], "the output's dtype does not hold them"),
    (RANDINT, [-2**63, 2**63 - 1, [2], np.zeros(2, np.int64)],
     "NotSupported in check: high - low is above 2.32"),
    (RANDINT, [10**6, 10**6 + 3, [2], np.zeros(2, np.float16)], "dtype does not hold them"),
    (RANDPERM, [3, np.zeros(3, np.float32)], "NotSupported in check: random permutations are integers"),
    (RANDPERM, [-1, np.zeros(0, np.int64)], "n is below 0"),
    (RANDPERM, [129, np.zeros(129, np.int8)], "the output's dtype does not hold n - 1"),
    (RANDPERM, [3, np.zeros(4, np.int64)], "the output's sizes differ"),
    (DROPOUT, [np.zeros(2, np.int32), 0.5, True, np.zeros(2, np.int32), np.zeros(2, bool)],
     "NotSupported in check: a dropout in training takes floats only"),
])
def test_rejections(operator, arguments, words):
    with pytest.raises(KernelError, match=words):
        call(operator, *arguments)


def random_cases():
    rng = np.random.default_rng(3)
    for dtype in (np.float32, np.float64):
        yield from (Case(name, [40, 50], np.zeros((40, 50), dtype)) for name in (RAND, RANDN))
        for p in (0.1, 0.5, 1.0):
            x = rng.normal(size=(7, 9)).astype(dtype)
            yield Case(DROPOUT, x, p, True, np.zeros_like(x), np.zeros(x.shape, bool))


@pytest.mark.parametrize("board", BOARDS)
def test_boards_draw_the_same(board):
    assert_same(board, list(random_cases()))


# ---- the generator


@pytest.fixture
def method():
    """Load a method without inputs, whose output are 6 random numbers."""
    values = [tensor([6], 0), {"val": ("IntList", {"items": [2]})}, {"val": ("Int", {"int_val": 6})}]
    made = program(plan(values, [instruction(0, 1, 0, 0)], [RAND], [], [0], [32]))
    return Runtime.get().load_program(made).load_method("forward")


def draw(method):
    return np.asarray(method.execute([])[0]).copy()


def test_each_execution_continues(method):
    np.testing.assert_array_equal(draw(method), uniform(6))
    np.testing.assert_array_equal(draw(method), uniform(6, 0, 6))


@pytest.mark.parametrize("seed", [0, 1, 7, 2**31, 2**32 - 1])
def test_a_seed_begins_its_sequence(method, seed):
    for _ in range(2):
        draw(method)
        method.manual_seed(seed)
        np.testing.assert_array_equal(draw(method), uniform(6, seed))


def test_a_method_that_is_not_loaded_rejects_a_seed(method):
    method._method.unload()
    with pytest.raises(Error, match="not loaded"):
        method.manual_seed(1)


def test_reset_state_leaves_random_numbers_alone(method):
    draw(method)
    method._method.reset_state()
    np.testing.assert_array_equal(draw(method), uniform(6, 0, 6))
