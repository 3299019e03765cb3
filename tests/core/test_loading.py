"""Count the instructions of loading on the default board, strict verification included, and compare the
method pool with ExecuTorch's. Count the instructions of an execution with little work."""

import json

import pytest
from picotorch.boards.boards import load_board
from picotorch.host.request import Request
from picotorch.run import emulated
from support import benchmark_store, budgets, fixture_store
from support.targets import ROOT

BOARD = "mps2-an386"
ANCHOR = json.loads((ROOT / "tests/benchmark/bench_anchor.json").read_text())["models"]


def request(name):
    if name in benchmark_store.NAMES:
        model = benchmark_store.load(name)
        return Request(model.pte(BOARD), name, model.inputs)
    fixture = fixture_store.load(name)
    return Request(fixture.pte, name, fixture.runs[0].inputs)


@pytest.mark.parametrize("name", ["ds_cnn", "int8_ds_cnn", "int8_mv2_005_2"])
def test_loading_is_cheap(name):
    result = emulated.run(request(name), load_board(BOARD))
    assert result.status == "ok"
    budgets.check(f"loading.verify_{name}", result.instructions["verify"])
    budgets.check(f"loading.load_{name}", result.instructions["load"])
    assert 0 < result.stack["load"] <= 1216
    assert result.method_pool.used <= 0.3 * ANCHOR[name][BOARD]["pool"]


@pytest.mark.parametrize("name", ["add_1", "softmax_2x2", "linear_5"])
def test_an_execution_of_a_small_layer_is_cheap(name):
    one = request(name)
    one.bare = True
    result = emulated.run(one, load_board(BOARD))
    assert result.status == "ok"
    budgets.check(f"executing.{name}", result.instructions["execute"])
