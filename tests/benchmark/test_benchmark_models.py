"""Run the int8 models of the benchmark on the twin and on the boards, and compare the outputs with the
dialect's, to the bit."""

import functools

import numpy as np
import pytest
from picotorch.boards.boards import load_board
from picotorch.host import twin
from picotorch.host.request import Request
from picotorch.run import emulated, emulator, running
from support.benchmark_store import NAMES, TARGETS, load
from support.board_call import BOARDS


def request(name, board, pack):
    model = load(name)
    pool, core = load_board(board).arenas["pool"].size, load_board(board).core
    return Request(model.pte(board), name, model.inputs, pack_weights=pack, core=core, pool_size=pool)


@functools.cache
def on_twin(name, board, pack):
    return twin.run(request(name, board, pack))


@pytest.mark.parametrize("pack", [False, True])
@pytest.mark.parametrize("board", ["mps2-an386", *TARGETS])
@pytest.mark.parametrize("name", NAMES)
def test_twin_outputs_equal_the_dialect(name, board, pack):
    result = on_twin(name, board, pack)
    assert result.code == 0, result.message
    np.testing.assert_array_equal(result.outputs[0], load(name).expected[0])


@pytest.mark.parametrize("pack", [False, True])
@pytest.mark.parametrize("board", BOARDS)
@pytest.mark.parametrize("name", NAMES)
def test_board_outputs_equal_the_dialect(name, board, pack):
    try:
        result = emulated.run(request(name, board, pack), load_board(board))
    except emulator.FirmwareMissing as error:
        pytest.fail(f"make all-firmware first: {error}", pytrace=False)
    assert result.code == 0, result.message
    np.testing.assert_array_equal(result.outputs[0], load(name).expected[0])
    reference = on_twin(name, board, pack)
    assert result.pool == reference.pool
    assert result.method_pool.used == reference.method_pool.used
    assert result.temp.used == reference.temp.used


@pytest.mark.thorough
@pytest.mark.parametrize("bare", [False, True])
@pytest.mark.parametrize("name", ["int8_ds_cnn", "int8_deep_autoencoder"])
def test_a_board_with_little_memory_offers_all_of_it(name, bare):
    """The user specifies no sizes."""
    board, model = "netduinoplus2", load(name)
    result = running.run(Request(model.pte(board), name, model.inputs, pool_size=None, temp_size=None,
                                 bare=bare), board)
    assert result.code == 0, result.message
    np.testing.assert_array_equal(result.outputs[0], model.expected[0])
    arenas = load_board(board).arenas
    assert (result.method_pool.size, result.temp.size) == (arenas["pool"].size, arenas["temp"].size)
