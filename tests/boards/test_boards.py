"""Test the descriptions of boards, the build's use of them, and the job's layout."""

import os
import shutil
import struct
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from picotorch.boards.boards import BOARDS_DIR, BoardError, board_names, load_board
from picotorch.firmware import mpy
from picotorch.run import emulated, emulator
from picotorch.run.job import ALIGNMENT, Job
from picotorch.run.runner_files import PHASES
from support import fixture_store
from support.calling import assert_error
from support.tool import load_tool

TOOL = Path(__file__).resolve().parents[2] / "tools" / "board_config.py"


@pytest.fixture
def tool():
    """Load tools/board_config.py as a module."""
    return load_tool("board_config")


def configure(folder, output):
    command = [sys.executable, TOOL, folder, output]
    return subprocess.run(command, capture_output=True, text=True)


def changed_board(tmp_path, old, new):
    """Copy a board with one entry changed."""
    folder = tmp_path / "board"
    folder.mkdir()
    text = (BOARDS_DIR / "mps2-an386" / "board.toml").read_text()
    assert text.count(old) == 1
    (folder / "board.toml").write_text(text.replace(old, new))
    return folder


def test_every_board_loads_and_passes_its_memories_to_the_runtime():
    assert {"mps2-an385", "mps2-an386"} <= set(board_names())
    for name in board_names():
        board = load_board(name)
        assert {"pool", "temp", "planned"} <= board.arenas.keys()
        assert all(arena.memory in board.memories for arena in board.arenas.values())


def test_a_board_is_read_once():
    assert load_board("mps2-an386") is load_board("mps2-an386")


def test_an_unknown_board_is_an_error_that_lists_the_boards():
    with pytest.raises(BoardError, match="no board 'none'; there are: .*mps2-an386"):
        load_board("none")


def test_regions_of_the_mpu_cover_a_memory_exactly(tool):
    regions = tool.mpu_regions({"address": 0x00100000, "size": 0x00300000})
    assert regions == [(0x00100000, 0x00100000), (0x00200000, 0x00200000)]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("fpu = true", "fpu = true\nfull_firmware = 0", "full_firmware is neither true nor false"),
        ('job = "job"', 'job = "rom"', "[place] job needs memory 'rom'"),
        ('code = "code"', 'code = "rom"', "[place] code needs memory 'rom'"),
        ("[stack]\nsize = 0x8000", "[stack]", "the entry 'size' is missing"),
        ("size = 0x00f00000", "size = 1000", "size of arena 'planned' is no multiple of 128"),
        ("receive_irq = 0", "receive_irq =", "Invalid value"),
        ("[counter]\ndriver = \"cmsdk\"", "[counter]\ndriver = \"dwt\"", "[counter] driver 'dwt'"),
        ('driver = "pmsav7"', 'driver = "mmu"',
         "[protect] driver 'mmu': there is no port/firmware/protect_mmu.c; there are: pmsav7, pmsav8"),
    ],
)
def test_a_wrong_board_is_an_error_that_names_the_entry(tmp_path, old, new, message):
    done = configure(changed_board(tmp_path, old, new), tmp_path / "out")
    assert done.returncode == 1
    assert message in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("table", ["uart", "counter", "protect", "clock"])
def test_a_driver_is_one_file_that_is_found_by_its_name(tmp_path, monkeypatch, tool, table):
    sources = tmp_path / "firmware"
    shutil.copytree(tool.DRIVERS_DIR, sources)
    (sources / f"{table}_mine.c").write_text("")
    monkeypatch.setattr(tool, "DRIVERS_DIR", sources)
    board = tomllib.loads((BOARDS_DIR / "netduinoplus2" / "board.toml").read_text())
    board[table]["driver"] = "mine"
    tool.check(board)
    board[table]["driver"] = "other"
    with pytest.raises(tool.BoardError, match=f"there is no port/firmware/{table}_other.c"):
        tool.check(board)


@pytest.mark.parametrize(
    ("board", "instructions", "ticks"),
    [("mps2-an386", 5, 8), ("mps2-an505", 25, 32), ("mps3-an547", 125, 256), ("netduinoplus2", 1, 1)],
)
def test_the_header_has_instructions_and_ticks_as_whole_numbers(tmp_path, board, instructions, ticks):
    assert configure(BOARDS_DIR / board, tmp_path).returncode == 0
    header = (tmp_path / "board.h").read_text()
    assert f"#define PT_COUNTER_INSTRUCTIONS {instructions}u\n" in header
    assert f"#define PT_COUNTER_INSTRUCTIONS_TICKS {ticks}u\n" in header


def test_the_emulator_loads_the_job_where_it_sees_the_memory():
    at = {name: (load_board(name).job.address, load_board(name).emulator.job_address)
          for name in ("mps2-an386", "mps2-an505")}
    assert at == {"mps2-an386": (0x00100000, 0x00100000), "mps2-an505": (0x10100000, 0x00100000)}


def test_sections_of_a_job_are_aligned_and_found_by_the_table():
    job = Job({"model": b"m" * 200, "in0": b"", "in1": b"xy"})
    blob = job.to_bytes()
    magic, version, size, count = struct.unpack_from("<4sIII", blob)
    assert (magic, version, size, count) == (b"PTJB", 1, len(blob), 3)
    found = {}
    for i in range(count):
        offset, length, name = struct.unpack_from("<II24s", blob, 16 + 32 * i)
        assert offset % ALIGNMENT == 0
        found[name.rstrip(b"\0")] = blob[offset : offset + length]
    assert found == {b"model": b"m" * 200, b"in0": b"", b"in1": b"xy"}


@pytest.mark.parametrize("name", ["", "a" * 25, "taken"])
def test_a_section_name_that_does_not_fit_is_rejected(name):
    with pytest.raises(ValueError, match="section"):
        Job({"taken": b""}).add(name, b"")


@pytest.mark.parametrize("settings", [{"a=b": 1}, {"a": "1\n2"}])
def test_a_setting_that_is_not_one_line_is_rejected(settings):
    with pytest.raises(ValueError, match="key=value"):
        Job().add_settings("settings", settings)


# ---- faults of a new board

ADD = fixture_store.load("add_5").path
RUN = ("run", ADD, "--board", "mps2-an386")


def test_a_firmware_older_than_its_board_is_rejected(call, tmp_path):
    firmware = tmp_path / "firmware.elf"
    shutil.copyfile(emulator.firmware_path(load_board("mps2-an386")), firmware)
    assert call(*RUN, "--firmware", firmware)[0] == 0
    os.utime(firmware, (0, 0))
    assert_error(call(*RUN, "--firmware", firmware), "InvalidState",
                 "is older than boards/mps2-an386/board.toml", "build it again")


def test_a_core_that_locks_up_is_named(tmp_path):
    """A vector table of zeros has no stack, no code, and no handler of the fault."""
    firmware = tmp_path / "firmware.bin"
    firmware.write_bytes(bytes(64))
    with pytest.raises(emulator.EmulatorError, match="the core locked up: .* no vector table"):
        emulator.run(load_board("mps2-an386"), firmware, {})


def test_a_counter_that_stands_still_is_named(call, monkeypatch):
    def with_dead_counter(files):
        return read_report(files) | dict.fromkeys(PHASES, "0")

    read_report = emulated.read_report
    monkeypatch.setattr(emulated, "read_report", with_dead_counter)
    assert_error(call(*RUN), "Internal", "the instruction counter stands still", "[counter]")


def test_a_stack_that_is_too_small_is_named(call, monkeypatch):
    def overflow(board, firmware, job, timeout):
        script = {"script": mpy.compile_script("import _board\n_board.fault('stack')\n")}
        return boot(board, firmware, script, timeout=timeout)

    boot = emulator.run
    monkeypatch.setattr(emulator, "run", overflow)
    assert_error(call(*RUN), "Internal", "the stack of 32768 B overflowed", "[stack]")
