"""Test Method.load(..., pack_weights=True): the pool that it needs, a pool that is too small, several
methods in one pool, and packing for other cores on the twin, with the bytes of the boards."""

import subprocess

import numpy as np
import pytest
from picotorch import (
    BufferDataLoader,
    Error,
    HierarchicalAllocator,
    MemoryAllocator,
    MemoryManager,
    Method,
    Program,
)
from picotorch.boards.boards import load_board
from picotorch.host import twin
from picotorch.host.request import Request
from picotorch.measure import sizing
from picotorch.package import c_sources
from picotorch.run import running
from support import fixture_store
from support.board_call import BOARDS
from support.targets import aligned

NAME = "int8_ds_cnn"
BOARD = "mps2-an386"
PACKING = ("int8_convolutions", "int8_ds_cnn", "int8_io_ds_cnn", "int8_resnet8",
             "int8_transposed_convolution")


@pytest.fixture(scope="module")
def fixture():
    return fixture_store.load(NAME)


@pytest.fixture(scope="module")
def needed(fixture):
    """Return the pool sizes that `picotorch size --pack-weights` reports, without a board."""
    return sizing.measure(fixture.pte, NAME, "forward", [], True).needs


def new_method(pte, pool):
    program = Program.load(BufferDataLoader(aligned(pte)))
    meta = program.method_meta("forward")
    planned = [aligned(meta.memory_planned_buffer_size(i))
               for i in range(meta.num_memory_planned_buffers())]
    manager = MemoryManager(pool, HierarchicalAllocator(planned),
                            MemoryAllocator(aligned(65536), "temp memory"))
    return program, Method(manager)


def run(method, fixture):
    method.set_inputs(fixture.runs[0].inputs)
    method.execute()
    return [np.array(method.get_output(i).data) for i in range(method.outputs_size())]


@pytest.mark.parametrize("target", ["host", BOARD])
def test_reported_pool_is_exact(fixture, needed, target):
    request = Request(fixture.pte, NAME, fixture.runs[0].inputs, pool_size=needed.method_pool,
                      temp_size=needed.temp, pack_weights=True)
    result = running.run(request, target)
    assert (result.status, result.method_pool.used) == ("ok", needed.method_pool)
    assert result.packed == needed.packed > 0
    request.pool_size -= 1
    result = running.run(request, target)
    assert result.message.startswith(
        f"method pool: {needed.method_pool}B requested, {needed.method_pool - 1}B available")


def test_every_smaller_pool_is_rejected_and_released(fixture, needed):
    memory = aligned(needed.method_pool)
    pool = MemoryAllocator(memory)
    program, method = new_method(fixture.pte, pool)
    method.load(program, "forward")
    expected = run(method, fixture)
    method.unload()
    records = needed.method_pool - needed.packed
    for size in {0, 8, records - 1, records, records + 1, *range(records, needed.method_pool, 997)}:
        pool.buffer, pool.size = memory[:size], size
        with pytest.raises(Error, match=f"{size}B available"):
            method.load(program, "forward", True)
        assert not method.is_loaded() and pool.used == 0
    pool.buffer, pool.size = memory, len(memory)
    for pack_weights in (True, False, True):
        method.load(program, "forward", pack_weights)
        assert (method.memory_report()["packed"] > 0) == pack_weights
        for one, other in zip(run(method, fixture), expected, strict=True):
            np.testing.assert_array_equal(one, other)
        method.unload()
    assert pool.used == 0


def test_methods_in_one_pool_pack_separately(fixture, needed):
    pool = MemoryAllocator(aligned(3 * needed.method_pool + 64))
    methods = []
    for pack_weights in (True, False, True):
        program, method = new_method(fixture.pte, pool)
        method.load(program, "forward", pack_weights)
        methods.append(method)
    expected = run(methods[1], fixture)
    for method in methods:
        for one, other in zip(run(method, fixture), expected, strict=True):
            np.testing.assert_array_equal(one, other)
    with pytest.raises(Error, match="is not the last one"):
        methods[0].unload()
    for method in reversed(methods):
        method.unload()
    assert pool.used == 0


# ---- for a core


def for_core(name, core, **others):
    fixture = fixture_store.load(name)
    return Request(fixture.pte, name, fixture.runs[0].inputs, pool_size=1 << 18, pack_weights=True,
                   core=core, **others)


def test_every_int8_fixture_with_packed_weights_is_listed():
    for name in {fixture.name for fixture in fixture_store.load_all()} - set(PACKING):
        if name.startswith("int8_"):
            assert twin.run(for_core(name, "cortex-m4")).packed == 0, name


@pytest.mark.thorough
@pytest.mark.parametrize("board", BOARDS)
def test_the_twin_packs_the_bytes_of_a_board(board):
    for name in PACKING:
        request = for_core(name, load_board(board).core, bare=True)
        result = running.run(request, board)
        assert result.code == 0, result.message
        assert len(result.pool) == result.method_pool.used and result.packed > 0
        assert result.pool == running.run(request, "host").pool, name


def test_cores_differ_in_packed_weights_only():
    results = [twin.run(for_core(NAME, core))
               for core in (None, "cortex-m0plus", "cortex-m3", "cortex-m4", "cortex-m55")]
    records = results[0].pool
    parts = [result.pool[len(records) :] for result in results[1:]]
    assert all(result.pool[: len(records)] == records for result in results)
    assert [len(part) for part in parts] == [results[0].packed] * 4
    assert len(set(parts)) == 3  # M3 and M55 pack nothing
    assert len({result.outputs[0].tobytes() for result in results}) == 1


def test_cores_of_one_kind_have_one_form():
    pools = [twin.run(for_core(NAME, core)).pool
             for core in ("cortex-m4", "cortex-m7", "cortex-m33", "cortex-m35p")]
    assert len(set(pools)) == 1


@pytest.mark.parametrize("core", ("cortex-m3", "cortex-m55", "cortex-m23", "of no name"))
def test_a_core_without_a_form_has_zeros_behind_the_references(core):
    result = twin.run(for_core(NAME, core))
    assert 0 < len(result.pool[-result.packed :].rstrip(b"\0")) < 256


ROUNDING = """
#include "arch/scale.h"
#include <stdio.h>
int main(void) {
    static const int32_t shifts[] = {INT32_MIN, 0x324D5450, -33, -32, -21, 0, 1, 31, INT32_MAX};
    for (uint32_t i = 0; i < sizeof(shifts) / 4; i++) {
        (void)pt_rounding(shifts[i], -128), (void)pt_rounding(shifts[i], 127);
    }
    for (int32_t shift = -1; shift >= -PT_MAX_SHIFT; shift--) {
        printf("%d %d\\n", pt_rounding(shift, -128), pt_rounding(shift, 127));
    }
    return 0;
}
"""


def test_the_rounding_of_any_shift_is_a_number(tmp_path):
    """Loops read shifts from a .ptm file that may omit them, so every shift needs a defined result."""
    (tmp_path / "main.c").write_text(ROUNDING)
    subprocess.check_call(["gcc", "-std=c99", "-fsanitize=undefined", "-fno-sanitize-recover=all",
                           "-static-libubsan", f"-I{c_sources.KERNELS}", "-o", tmp_path / "main",
                           tmp_path / "main.c"])
    lines = subprocess.check_output([tmp_path / "main"], text=True).splitlines()
    assert lines == [f"{-255 * 2 ** (n - 1)} {255 * 2 ** (n - 1)}" for n in range(1, 21)]
