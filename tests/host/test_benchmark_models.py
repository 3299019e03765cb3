"""The int8 models of the benchmark on the twin and on the boards: the dialect's outputs, to the bit."""

import functools

import numpy as np
import pytest
from benchmark_store import NAMES, TARGETS, load
from board_call import BOARDS
from picotorch.host import emulated, emulator, twin
from picotorch.host.boards import load_board
from picotorch.host.run import PREPARE, Request


def request(name, board, prepare):
    model = load(name)
    pool = load_board(board).arenas["pool"].size
    return Request(model.pte(board), name, model.inputs, prepare=prepare, pool_size=pool)


@functools.cache
def on_twin(name, board, prepare):
    return twin.run(request(name, board, prepare))


@pytest.mark.parametrize("prepare", PREPARE)
@pytest.mark.parametrize("board", ["mps2-an386", *TARGETS])
@pytest.mark.parametrize("name", NAMES)
def test_twin_gives_the_outputs_of_the_dialect(name, board, prepare):
    result = on_twin(name, board, prepare)
    assert result.code == 0, result.message
    np.testing.assert_array_equal(result.outputs[0], load(name).expected[0])


@pytest.mark.parametrize("prepare", PREPARE)
@pytest.mark.parametrize("board", BOARDS)
@pytest.mark.parametrize("name", NAMES)
def test_board_gives_the_outputs_of_the_dialect(name, board, prepare):
    try:
        result = emulated.run(request(name, board, prepare), load_board(board))
    except emulator.FirmwareMissing as error:
        pytest.fail(f"make all-firmware first: {error}", pytrace=False)
    assert result.code == 0, result.message
    np.testing.assert_array_equal(result.outputs[0], load(name).expected[0])
    reference = on_twin(name, board, prepare)
    assert result.pool == reference.pool
    assert result.method_pool.used == reference.method_pool.used
    assert result.temp.used == reference.temp.used
