"""Run a script of tests/on_board on the twin or on an emulated board: one script, one result."""

import contextlib
import functools
import gc
import io
import sys
import types
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
from picotorch import registered_backend_names, unregister_backend
from picotorch.boards.boards import full_board_names, load_board
from picotorch.firmware import mpy
from picotorch.run import emulator
from picotorch.run.job import Job

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "tests" / "on_board"
HOST = "host"
BOARDS = tuple(full_board_names())
# The tables and lines of these scripts do not fit into the heap of a small board.
SCRIPT_HEAP = 0x10000
SCRIPT_BOARDS = tuple(name for name in BOARDS if load_board(name).heap_size >= SCRIPT_HEAP)
# One board of each instruction set, for tests that depend on the loop, not on the kernels.
FAULT_BOARDS = ("mps2-an385-m0plus", "mps2-an386", "mps3-an547")
TIMEOUT = 240.0  # seconds for one boot

# Every fixture runs on every board, except these. A test checks that fixtures that are too large are
# rejected.
TOO_LARGE = {
    "netduinoplus2": ("deep_autoencoder", "keyword_spotting", "mobilenet_v1_025", "planned_1785600",
                      "resnet8", "simple_conv_256"),
}
# Fixtures with backends that the tests define, which have as much Python as the scripts.
WITH_BACKENDS = "delegate_"
# Each takes a minute of floating point in software, in kernels that smaller fixtures test there, too.
TOO_SLOW = {"mps2-an385-m0plus": ("simple_conv_256",)}

# Three methods, or two and a data map, exceed the heap, which also holds the code of the script.
TOO_MUCH_HEAP = {"netduinoplus2": ("constant_methods", "external_two_methods", "prim_operators")}


def on_boards(names: Iterable[str]) -> list[tuple[str, str]]:
    """Return (fixture, board) of all runs."""
    return [(name, board) for name in names for board in BOARDS
            if not any(name in left_out.get(board, ())
                       for left_out in (TOO_LARGE, TOO_SLOW, TOO_MUCH_HEAP))
            and (board in SCRIPT_BOARDS or not name.startswith(WITH_BACKENDS))]


@functools.cache
def _source(script: str) -> str:
    parts = ["common.py", *script.split("+")]
    return "".join((SCRIPTS / part).read_text() for part in parts) + "\ncheck_surroundings()\n"


@functools.cache
def _code(script: str) -> types.CodeType:
    return compile(_source(script), script, "exec")


@functools.cache
def _compiled(script: str) -> bytes:
    return mpy.compile_script(_source(script), script)


def run_script(script: str, sections: Job | dict, target: str) -> emulator.Result:
    """Run a script on a target, and return exit status, printed lines and written files. "a.py+b.py" is
    one script of two files.

    Fail with a remedy if the firmware of a board is not built. An exception that ends the script is
    raised here on the twin; on a board the call fails with the board's lines.
    """
    job = sections if isinstance(sections, Job) else Job(sections)
    if target == HOST:
        return _run_on_host(script, job)
    board = load_board(target)
    try:
        firmware = emulator.firmware_path(board)
        job.add("script", _compiled(script))
    except (emulator.FirmwareMissing, mpy.CompileError) as error:
        pytest.fail(f"make all-firmware first: {error}", pytrace=False)
    result = emulator.run(board, firmware, job, timeout=TIMEOUT)
    assert result.status == 0, "\n".join([f"{target}: status {result.status}", *result.lines])
    return result


# ---- the twin's stand-in for a board


def aligned(data: bytes | int) -> memoryview:
    """Return memory of these bytes, or of this many zeros, that starts at a multiple of 128."""
    size = data if isinstance(data, int) else len(data)
    storage = np.zeros(size + 128, np.uint8)
    start = -storage.ctypes.data % 128
    view = storage[start : start + size].data
    if not isinstance(data, int):
        view[:] = data
    return view


def grow_array(memory):
    """Resize an array of numpy until its memory has moved."""
    start = memory.ctypes.data
    keep = []
    while memory.ctypes.data == start:
        memory.resize(2 * memory.size + 4096, refcheck=False)
        keep.append(np.zeros(4096, np.uint8))


def _board_module(job: Job, files: dict) -> types.ModuleType:
    arenas = load_board(BOARDS[0]).arenas
    memories = {arena.name: aligned(arena.size) for arena in arenas.values()}
    blob = aligned(job.to_bytes()).toreadonly()
    module = types.ModuleType("_board")
    module.job = lambda: blob
    module.memories = lambda: tuple(memories)
    module.memory = memories.__getitem__
    module.place = lambda name: arenas[name].memory
    address_zero = bytearray(range(64))  # no pointer leads to this memory here
    module.address_zero = lambda: address_zero
    module.stack_paint = lambda: None
    module.stack_used = lambda: 0
    module.count_start = lambda: None
    module.count_stop = lambda buffer, index: None
    module.write_file = lambda path, buffer: files.__setitem__(path, bytes(buffer))
    return module


def _run_on_host(script, job):
    files, output = {}, io.StringIO()
    frozen = str(ROOT / "port" / "firmware" / "frozen")
    sys.modules["_board"] = _board_module(job, files)
    sys.path.insert(0, frozen)
    try:
        with contextlib.redirect_stdout(output):
            exec(_code(script), {"__name__": "__main__"})
    finally:
        sys.path.remove(frozen)
        for name in registered_backend_names():
            unregister_backend(name)
        del sys.modules["_board"]
        gc.collect()
    return emulator.Result(0, output.getvalue().splitlines(), files)
