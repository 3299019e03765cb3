"""Test int8 operators with less scratch memory than the default: slower loops, the same bytes."""

import itertools

import numpy as np
import pytest
from picotorch import MemoryManager, Method
from picotorch.compile import ptm_writer
from picotorch.errors import MEMORY_ALLOCATION_FAILED, Error
from picotorch.host.request import Request
from picotorch.host.twin import open_program
from picotorch.memory import HierarchicalAllocator, MemoryAllocator
from picotorch.run import running
from picotorch.run.parity import same_bits
from support import benchmark_store, random_operators
from support.board_call import BOARDS, Case, assert_same
from support.kernel_call import Tensor
from test_operators_on_boards import GEOMETRIES, dialect_cases, layers

NAMES = ("conv2d", "depthwise_conv2d", "linear", "add", "avg_pool2d", "max_pool2d", "softmax")
M4 = "mps2-an386"
# Bytes of scratch memory, as a function of the bytes that a check requests.
SIZES = {
    "none": lambda asked: 0,
    "15 B": lambda asked: min(15, asked),
    "a quarter": lambda asked: asked // 4,
    "half": lambda asked: asked // 2,
    "one less": lambda asked: max(0, asked - 1),
}
SHARES = 3  # the number of tests that share the calls on the twin


def all_cases():
    """Yield calls without a scratch tensor, so that they use temp memory."""
    for case in some_cases():
        arguments = list(case.arguments)
        if "conv2d" in case.operator and "transpose" not in case.operator:
            arguments[-2] = Tensor(np.zeros(0, np.uint8), scratch=True)
        yield Case(case.operator, *arguments, pack_weights=case.pack_weights)


def some_cases():
    for name in NAMES:
        if name in random_operators.NAMES:
            yield from random_operators.cases(name)
    yield from dialect_cases()
    for geometries in GEOMETRIES.values():
        for geometry in geometries:
            yield from layers(4, *geometry)


def with_less(case, size):
    """Return the call with a part of the temp memory that it requests."""
    return Case(case.operator, *case.arguments, pack_weights=case.pack_weights,
                exactly=size(case.on_twin().scratch))


@pytest.mark.thorough
@pytest.mark.parametrize("share", range(SHARES))
def test_the_twin_has_the_same_bytes(share):
    asking = 0
    for case in itertools.islice(all_cases(), share, None, SHARES):
        usual = case.on_twin()
        for size, bytes_of in SIZES.items():
            assert not with_less(case, bytes_of).on_twin().difference(usual), (size, case)
        asking += usual.scratch > 0
    assert asking > 100


@pytest.mark.thorough
@pytest.mark.parametrize("board", BOARDS)
def test_boards_have_the_same_bytes(board):
    """Each call has one of the sizes, a different one on each board, so the calls of an operator cover
    all sizes. The test checks guard bytes behind the temp memory, too."""
    sizes, first = list(SIZES.values()), BOARDS.index(board)
    assert_same(board, [with_less(case, sizes[(first + i) % len(sizes)])
                        for i, case in enumerate(all_cases())])


@pytest.mark.parametrize("name", ["int8_ds_cnn", "int8_resnet8", "int8_deep_autoencoder"])
@pytest.mark.parametrize("bare", [False, True])
def test_models_run(name, bare):
    model = benchmark_store.load(name)
    for pack_weights in (False, True):
        request = Request(model.pte(M4), name, model.inputs, pool_size=1 << 20, temp_size=0,
                          pack_weights=pack_weights, bare=bare)
        for where in (running.HOST, M4):
            result = running.run(request, where)
            assert (result.code, result.message) == (0, "")
            assert same_bits(result.outputs[0], model.expected[0])


def test_the_time_stays_within_a_small_factor():
    model = benchmark_store.load("int8_ds_cnn")
    requests = [Request(model.pte(M4), "ds_cnn", model.inputs, temp_size=size, bare=True)
                for size in (0, 3780)]
    minimum, used = (running.run(one, M4).instructions["execute"] for one in requests)
    assert used < minimum < 4.2 * used


def test_a_ptm_file_without_its_plain_weights_needs_its_temp_memory():
    model = benchmark_store.load("int8_ds_cnn").pte(M4)
    program = open_program(ptm_writer.compile_ptm(model, (), "cortex-m4").data)
    meta = program.method_meta("forward")
    planned = HierarchicalAllocator([bytearray(meta.memory_planned_buffer_size(i))
                                     for i in range(meta.num_memory_planned_buffers())])
    with pytest.raises(Error) as caught:
        Method(MemoryManager(MemoryAllocator(bytearray(1 << 16)), planned)).load(program, "forward")
    error = caught.value
    assert (error.code, error.subject) == (MEMORY_ALLOCATION_FAILED, "temp memory")
    assert error.requested > error.available == 0
