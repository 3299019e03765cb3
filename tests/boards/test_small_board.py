"""Test a board of 256 KB flash and 64 KB RAM, whose flash is too small for all kernels and a model. Its
firmware has the kernels of some models, with or without MicroPython. The job follows the firmware in
flash."""

import json
import subprocess

import pytest
from picotorch.boards.boards import full_board_names, load_board
from picotorch.compile.ptm_writer import compile_ptm
from picotorch.firmware import selective
from picotorch.host.request import Request
from picotorch.host.twin import open_program
from picotorch.run import emulator, listing, running
from support import benchmark_store, fixture_store
from support.calling import assert_error, assert_usage

pytestmark = pytest.mark.thorough

BOARD = "lm3s6965evb"
SAME_CORE = "mps2-an385"
FLASH = 0x40000
MODELS = ("int8_ds_cnn", "add_1")
FORMS = ("run", "bare")


def path(name):
    return fixture_store.load(name).path


def built(form, names, tmp_path_factory):
    """Return (path, entry) of the firmware for the models. "ptm" is the first model, compiled."""
    output = tmp_path_factory.mktemp("small_board") / f"{form}.elf"
    programs = {name: open_program(ptm() if name == "ptm" else path(name).read_bytes())
                for name in names}
    return output, selective.build(BOARD, programs, output, form == "bare")


@pytest.fixture(scope="module", params=FORMS)
def firmware(request, tmp_path_factory):
    """Return (path, entry) of the firmware for MODELS."""
    return built(request.param, MODELS, tmp_path_factory)


@pytest.fixture(scope="module", params=FORMS)
def firmware_for_ptms(request, tmp_path_factory):
    """Return (path, entry) of the firmware for MODELS and a .ptm file. With MicroPython only the .ptm
    file fits behind the firmware."""
    return built(request.param, (*MODELS, "ptm"), tmp_path_factory)


def ptm():
    """Compile the first model for the board's core."""
    return compile_ptm(path(MODELS[0]).read_bytes(), (), load_board(BOARD).core).data


def test_a_ptm_file_without_a_pool_has_the_outputs_of_the_twin(call, firmware_for_ptms, tmp_path):
    file = tmp_path / "model.ptm"
    file.write_bytes(ptm())
    options = ["--board", BOARD, "--firmware", firmware_for_ptms[0], "--json"]
    status, out, _ = call("parity", file, *options)
    assert status == 0 and json.loads(out)["agree"]
    status, out, _ = call("run", file, *options, "--pool-size", 0)
    assert status == 0 and json.loads(out)["method_pool"]["used"] == 0


@pytest.mark.parametrize("name", MODELS)
def test_a_model_has_the_outputs_of_the_twin(call, firmware, name):
    status, out, _ = call("parity", path(name), "--board", BOARD, "--firmware", firmware[0], "--json")
    entry = json.loads(out)
    assert status == 0 and entry["agree"]
    assert entry["boards"][0]["differing_outputs"] == []
    assert entry["boards"][0]["first_differing_pool_byte"] is None


def test_a_model_with_other_kernels_is_rejected_by_their_names(call, firmware):
    assert_error(call("run", path("mlp"), "--board", BOARD, "--firmware", firmware[0]),
                 "OperatorMissing", "aten::addmm.out")


def test_the_size_of_its_kernels_is_stated_without_a_firmware_of_all(firmware):
    kernels, entry = firmware[1].kernels, firmware[1]
    assert set(kernels.operators) == set(entry.operators)
    assert all(size.own > 0 for size in kernels.operators.values())
    assert 40_000 < kernels.core_and_kernels < entry.flash < FLASH


def symbols(file):
    """Return {name: address} of the symbols."""
    rows = subprocess.check_output(["arm-none-eabi-nm", file], text=True).splitlines()
    return {name: int(address, 16) for address, _, name in (row.split() for row in rows)}


def test_host_and_linker_agree_where_the_job_lies(firmware):
    memory, found = emulator.job_memory(load_board(BOARD), firmware[0]), symbols(firmware[0])
    assert memory.address == found["pt_job_start"] and memory.address % 128 == 0
    assert memory.address + memory.size == found["pt_job_end"] == FLASH


def test_a_separate_memory_for_jobs_is_used():
    board = load_board(SAME_CORE)
    assert emulator.job_memory(board, "no file") is board.job


def counted(board, firmware, is_bare):
    """Return the instructions of a model's execution on a board. Kernels of this core use all available
    temp memory, so both boards get the same amount."""
    model = benchmark_store.load("int8_ds_cnn")
    request = Request(model.pte(SAME_CORE), "ds_cnn", model.inputs, pool_size=None, temp_size=4096,
                      firmware=firmware, bare=is_bare)
    return running.run(request, board).instructions["execute"]


def test_boards_with_the_same_core_count_the_same_instructions(firmware):
    """The counts differ a little: with other kernels the linker puts copied data elsewhere."""
    is_bare = emulator.is_bare(load_board(BOARD), firmware[0])
    count = counted(BOARD, firmware[0], is_bare)
    assert count > 3_000_000
    assert abs(count - counted(SAME_CORE, None, is_bare)) < 200


# ---- models and programs that do not fit


@pytest.fixture
def autoencoder(tmp_path):
    """Return the file of a model whose weights have 264 KB."""
    file = tmp_path / "model.pte"
    file.write_bytes(benchmark_store.load("int8_deep_autoencoder").pte(SAME_CORE))
    return file


def test_a_model_that_is_too_large_is_rejected_with_the_bytes(call, autoencoder, firmware):
    room = emulator.job_memory(load_board(BOARD), firmware[0])
    assert_error(call("run", autoencoder, "--board", BOARD, "--firmware", firmware[0]),
                 "MemoryAllocationFailed", "B of job, ", f"{room.size}B available in memory 'flash'",
                 f"behind {room.address}B of firmware")
    assert autoencoder.stat().st_size > FLASH > room.size


def test_models_of_too_many_kernels_are_rejected_with_the_bytes(call, tmp_path):
    paths = [fixture.path for fixture in fixture_store.load_all() if not fixture.refused]
    result = call("firmware", "--board", BOARD, "--models", *paths, "--output", tmp_path / "fw.elf")
    assert_error(result, "MemoryAllocationFailed", "the firmware does not fit: it needs ",
                 "B more than memory 'flash' has")


def test_size_reports_a_model_that_does_not_fit(call, autoencoder, monkeypatch, tmp_path):
    monkeypatch.setattr(emulator, "FIRMWARE_DIR", tmp_path)
    out = call("size", autoencoder, "--board", BOARD)[1]
    assert f"{BOARD}: model needs {autoencoder.stat().st_size:,} B of {FLASH:,}\n" in out


def test_memory_that_it_has_not_is_named(call, firmware):
    assert_error(call("run", path("add_1"), "--board", BOARD, "--pool-size", 5000, "--firmware",
                      firmware[0]), "MemoryAllocationFailed",
                 "method pool: 5000B requested, 4096B available")


# ---- commands over all boards


def test_a_missing_firmware_is_reported_with_a_remedy(call, monkeypatch, tmp_path):
    monkeypatch.setattr(emulator, "FIRMWARE_DIR", tmp_path)
    command = f"picotorch firmware --models MODEL.pte --board {BOARD}"
    assert_error(call("run", path("add_1"), "--board", BOARD), "NotFound", command)
    assert_error(call("run", path("add_1"), "--board", BOARD, "--bare"), "NotFound",
                 f"{command} --bare")
    assert command in call("boards")[1]


def test_a_firmware_for_other_models_is_reported(call, firmware, monkeypatch, tmp_path):
    is_bare = emulator.is_bare(load_board(BOARD), firmware[0])
    monkeypatch.setattr(emulator, "FIRMWARE_DIR", tmp_path)
    selective.default_output(BOARD, is_bare).write_bytes(firmware[0].read_bytes())
    options = ["--bare"] if is_bare else []
    command = f"picotorch firmware --models {path('mlp')} --board {BOARD} {' '.join(options)}".strip()
    assert_error(call("run", path("mlp"), "--board", BOARD, *options), "OperatorMissing",
                 "no kernel for: ", "aten::addmm.out",
                 f"; the firmware is for other models: {command}\n")


def test_size_uses_a_firmware_for_the_model(call, firmware):
    """The result is independent of the models of the last built firmware."""
    (board,) = json.loads(call("size", path("mlp"), "--board", BOARD, "--json")[1])["boards"]
    flash = board["deployments"]["micropython"]["flash"]["parts"]
    room = FLASH - flash["core and kernels"] - flash["MicroPython, runtime"]
    assert board["fits"] and board["memories"]["model"]["size"] == room


def test_the_firmware_that_was_built_last_is_used(call, firmware, monkeypatch, tmp_path):
    is_bare = emulator.is_bare(load_board(BOARD), firmware[0])
    monkeypatch.setattr(emulator, "FIRMWARE_DIR", tmp_path)
    selective.default_output(BOARD, is_bare).write_bytes(firmware[0].read_bytes())
    options = ["--bare"] if is_bare else []
    assert call("run", path("add_1"), "--board", BOARD, *options)[0] == 0


def test_commands_over_all_boards_leave_it_out_with_a_word(call, capsys):
    assert BOARD not in full_board_names()
    assert listing.full_boards() == full_board_names()
    assert f"{BOARD}: left out" in capsys.readouterr().err
    assert_usage(call("repl", "--board", BOARD), f"{BOARD} has no room for a prompt")
