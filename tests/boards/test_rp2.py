"""Test MicroPython's port rp2 with picotorch inside: UF2 files of Raspberry Pi Pico and Pico 2, and an
emulated Pico with real mpremote and models used in place in its flash."""

import json
import re
import subprocess
import sys

import numpy as np
import pytest
from picotorch import Error
from picotorch.cli import examples
from picotorch.firmware import rp2, selective, uf2
from picotorch.host import romfs
from picotorch.host.operators import supported_operators
from picotorch.run import pico
from support import on_pico
from support.fixture_store import FOLDER

pytestmark = pytest.mark.thorough

RP2 = rp2.BUILD
FLASH = rp2.FLASH
ROMFS = FLASH + rp2.layout("RPI_PICO").firmware
BOARDS = sorted(rp2.BOARDS)
MODELS = {"model.pte": "int8_ds_cnn", "mul.pte": "mul_broadcast"}
FREE = 100 * 1024  # minimum of free heap while int8 ds_cnn is loaded
SUBNORMAL = 2.0**-126


def firmware(board):
    return (RP2 / board / "firmware.bin").read_bytes()


@pytest.fixture(scope="module")
def port(tmp_path_factory):
    """Return the port of an emulated Pico with two models in its ROMFS."""
    files = {name: (FOLDER / fixture / "model.pte").read_bytes() for name, fixture in MODELS.items()}
    path = tmp_path_factory.mktemp("rp2") / "firmware.uf2"
    path.write_bytes(rp2.pack("RPI_PICO", firmware("RPI_PICO"), files))
    with pico.emulated(path) as port:
        yield port


@pytest.fixture
def mpremote(port):
    return on_pico.mpremote(port)


# -- the files -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("board", BOARDS)
def test_a_uf2_file_is_the_firmware_at_the_start_of_the_flash(board):
    blocks = list(uf2.read((RP2 / f"{board}.uf2").read_bytes()))
    assert {block.family for block in blocks} == {rp2.BOARDS[board].family}
    places = rp2.layout(board)
    code = [block for block in blocks if block.address < FLASH + places.firmware]
    assert [block.address for block in code] == [FLASH + 256 * i for i in range(len(code))]
    data = b"".join(block.data for block in code)
    assert data.rstrip(b"\xff") == firmware(board).rstrip(b"\xff")
    empty = [block for block in blocks if block not in code]
    assert [block.address for block in empty] == [FLASH + places.firmware]
    assert empty[0].data.startswith(romfs.build({}))


def test_the_second_stage_has_the_checksum_that_the_boot_rom_wants():
    start = firmware("RPI_PICO")[:256]
    assert crc32(start[:252]) == int.from_bytes(start[252:], "little")


def crc32(data):
    """Compute the CRC-32 of the RP2040's datasheet, 2.8.1.3.1: polynomial 0x04c11db7, highest bit
    first."""
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte << 24
        for _ in range(8):
            value = (value << 1 ^ (0x04C11DB7 if value >> 31 else 0)) & 0xFFFFFFFF
    return value


def test_the_boot_rom_of_a_pico_2_finds_the_image():
    start = firmware("RPI_PICO2")[:4096]
    block = start.index(0xFFFFDED3.to_bytes(4, "little"))
    assert block % 4 == 0
    assert start.index(0xAB123579.to_bytes(4, "little"), block) < block + 640


@pytest.mark.parametrize("board", BOARDS)
def test_floats_of_the_kernels_are_computed_by_libgcc(board):
    """pico-sdk's replacements of libgcc's functions take subnormal numbers as zero."""
    path = RP2 / board / "cmake" / "picotorch.o"
    symbols = subprocess.check_output(["arm-none-eabi-nm", "-u", path], text=True).split()
    assert set(symbols) - {"U"} <= {"memcmp", "memcpy", "memmove", "memset"}
    defined = subprocess.check_output(["arm-none-eabi-nm", "--defined-only", "-g", path], text=True)
    assert all(name.startswith("pt_") for name in re.findall(r" [A-Z] (\S+)", defined))


def test_a_file_that_is_no_uf2_file_is_rejected():
    file = uf2.write({FLASH: bytes(600)}, 1)
    assert len(list(uf2.read(file))) == 3
    for broken in (b"", file[:-1], file[512:], file[:4] + b"\0" + file[5:], bytes(512)):
        with pytest.raises(Error, match="InvalidArgument"):
            list(uf2.read(broken))


@pytest.mark.parametrize("board", BOARDS)
def test_contents_that_do_not_fit_are_rejected(board):
    places = rp2.layout(board)
    with pytest.raises(Error, match=f"the firmware: {places.firmware + 1}B requested, "
                                    f"{places.firmware}B available: .*; name the models"):
        rp2.pack(board, bytes(places.firmware + 1), {})
    with pytest.raises(Error, match=f"{places.romfs}B available: the flash of {board} is too small"):
        rp2.pack(board, b"", {"a.pte": bytes(places.romfs)})


def test_a_firmware_for_a_model_has_its_kernels_and_the_model(call, tmp_path):
    model, output = FOLDER / "int8_ds_cnn" / "model.pte", tmp_path / "firmware.uf2"
    status, stdout, _ = call("firmware", "--board", "RPI_PICO", "--models", model, "--output", output,
                             "--json")
    entry = json.loads(stdout)
    assert status == 0 and entry["files"] == ["model.pte"] and len(entry["operators"]) == 8
    assert entry["flash"] < len(firmware("RPI_PICO")) - 80_000
    blocks = {block.address: block.data for block in uf2.read(output.read_bytes())}
    image = b"".join(blocks[address] for address in sorted(blocks) if address >= ROMFS)
    assert model.read_bytes() in image and len(image) < entry["romfs"] + 256
    with pico.emulated(output) as port:
        status, stdout, _ = call("selftest", "--port", port, "--report", tmp_path / "report.json")
        command = [sys.executable, "-m", "mpremote", "connect", port, "exec",
                   "from picotorch import Module; print(Module('/rom/model.pte'))"]
        printed = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert "Program" in printed.stdout, printed.stderr
    assert status == 0 and "ok        model int8_ds_cnn" in stdout, stdout
    assert "left out  model mlp  OperatorMissing" in stdout and "FAILED" not in stdout


@pytest.mark.parametrize("board", BOARDS)
def test_a_wheel_puts_a_model_into_its_firmware(board, call, monkeypatch, tmp_path):
    """The wheel's firmware has all kernels, and test_reproducible.py runs it. A checkout links the
    kernels of the model."""
    monkeypatch.setattr(selective, "SETUP", tmp_path / "none")
    monkeypatch.chdir(tmp_path)
    model = FOLDER / "int8_ds_cnn" / "model.pte"
    status, stdout, _ = call("firmware", "--board", board, "--models", model, "--json")
    entry = json.loads(stdout)
    assert status == 0 and entry["operators"] == sorted(supported_operators())
    assert entry["firmware"] == f"{board}.uf2" and entry["flash"] == len(firmware(board))
    packed = rp2.pack(board, firmware(board), {"model.pte": model.read_bytes()})
    assert (tmp_path / f"{board}.uf2").read_bytes() == packed
    monkeypatch.setattr(rp2, "BUILD", tmp_path)
    status, _, stderr = call("firmware", "--board", board, "--models", model)
    assert status == 1 and "the sources of the firmware are not installed" in stderr


def test_the_emulator_names_its_missing_package(call, tmp_path):
    repl = ("repl", "--board", "RPI_PICO")
    assert call(*repl)[0] == call(*repl, "--listen", "pty")[0] == 2
    missing = tmp_path / "missing.uf2"
    status, _, stderr = call(*repl, "--listen", "tcp:4444", "--firmware", missing)
    assert status == 1 and f"NotFound (0x20): {missing}: is not there; make rp2 makes it" in stderr


def test_two_models_of_one_name_are_rejected(call):
    models = [FOLDER / name / "model.pte" for name in MODELS.values()]
    status, _, stderr = call("firmware", "--board", "RPI_PICO", "--models", *models)
    assert status == 1
    assert "two models have the same file name" in stderr and "rename one" in stderr


def test_only_a_uf2_file_is_written_for_a_pico(call, tmp_path):
    assert call("firmware", "--board", "RPI_PICO", "--output", tmp_path / "a.elf")[0] == 2
    assert call("firmware", "--board", "RPI_PICO", "--bare")[0] == 2


def test_data_of_a_romfs_is_aligned():
    image = romfs.build({"a": b"A" * 33, "lib": {"b": b"B" * 7, "sub": {}}, "empty": b""})
    assert len(image) % 2 == 0
    assert image.index(b"A" * 33) % romfs.ALIGNMENT == 0
    assert image.index(b"B" * 7) % romfs.ALIGNMENT == 0


# -- on the emulated Pico ------------------------------------------------------------------------------


def test_mpremote_runs_code(mpremote, tmp_path):
    assert "Raspberry Pi Pico" in mpremote("exec", "import os; print(os.uname().machine)")
    assert mpremote("eval", "6 * 7").strip() == "42"
    script = tmp_path / "script.py"
    script.write_text("import picotorch\nprint(picotorch.Error.__name__)\n")
    assert mpremote("run", script).strip() == "Error"
    mpremote("exec", "raise ValueError", status=1)


def test_copied_files_survive_resets(mpremote, tmp_path):
    data = np.random.default_rng(1).bytes(4000)
    (tmp_path / "data.bin").write_bytes(data)
    mpremote("fs", "cp", tmp_path / "data.bin", ":data.bin")
    assert "4000 data.bin" in mpremote("fs", "ls")
    mpremote("soft-reset")
    mpremote("fs", "cp", ":data.bin", tmp_path / "back.bin")
    assert (tmp_path / "back.bin").read_bytes() == data
    mpremote("exec", "--no-follow", "import machine; machine.reset()")
    assert "4000 data.bin" in mpremote("fs", "ls")
    mpremote("fs", "rm", ":data.bin")
    assert "data.bin" not in mpremote("fs", "ls")


def test_a_folder_of_the_host_is_mounted(mpremote, tmp_path):
    (tmp_path / "beside.py").write_text("value = 'from the host'\n")
    assert "from the host" in mpremote("mount", tmp_path, "exec", "import beside; print(beside.value)")


def run_on_board(mpremote, name, inputs):
    model = FOLDER / MODELS[name] / "model.pte"
    return on_pico.run(mpremote, f'memoryview(open("/rom/{name}", "rb"))', model, inputs)


def test_ds_cnn_runs_in_place_as_on_the_twin(mpremote, tmp_path):
    inputs = list(np.load(FOLDER / "int8_ds_cnn" / "inputs.npz").values())
    printed, result = run_on_board(mpremote, "model.pte", inputs)
    on_pico.assert_as_the_twin(printed, result)
    assert printed["allocated"] == ["0"]
    address = int(printed["model"][0])
    assert ROMFS < address < ROMFS + rp2.layout("RPI_PICO").romfs
    assert address % romfs.ALIGNMENT == 0
    print(f"free heap with int8_ds_cnn loaded: {printed['free'][0]} B")
    assert int(printed["free"][0]) >= FREE


def test_subnormal_numbers_are_as_on_the_twin(mpremote, tmp_path):
    """The emulated ROM takes subnormal numbers as zero, as the real ROM does; the kernels do not call
    it."""
    assert mpremote("eval", "1e-20 * 1e-20 == 0").strip() == "True"
    inputs = [np.float32([[1e-20, 3e-39, -1e-20], [SUBNORMAL, 1.5, 0]]),
              np.float32([1e-20, 1e3, 0.25]), np.float32(0.5)]
    printed, result = run_on_board(mpremote, "mul.pte", inputs)
    assert any(0 < abs(value) < SUBNORMAL for output in result.outputs for value in output.flat)
    on_pico.assert_as_the_twin(printed, result)


def test_parity_with_the_twin_by_the_command(port, call):
    model = FOLDER / "int8_ds_cnn" / "model.pte"
    status, stdout, stderr = call("parity", model, "--port", port)
    assert status == 0, stdout + stderr
    assert re.search("outputs: 1 identical to the bit.*method pool: 2588 bytes identical", stdout,
                     re.DOTALL)
    assert "agree" in stdout


def test_a_run_by_the_command(port, call):
    model = FOLDER / "int8_ds_cnn" / "model.pte"
    status, stdout, stderr = call("run", model, "--port", port, "--json")
    assert status == 0, stdout + stderr
    assert json.loads(stdout)["outputs"]


def test_a_model_is_run_by_its_path_in_a_line(mpremote):
    code = ("from picotorch import Module; from array import array; "
            "print(Module('/rom/model.pte').forward(array('f', [0.5] * 490)).sizes())")
    assert mpremote("exec", code).strip() == "(1, 12)"


def test_an_example_hears_its_recording(mpremote):
    """test_examples.py runs all five examples on an emulated Cortex-M4F."""
    folder = examples.EXAMPLES_DIR / "knock"
    mpremote("fs", "cp", folder / "model.pte", folder / "recording.bin", ":")
    assert mpremote("run", folder / "main.py") == (folder / "expected.txt").read_text()
    mpremote("fs", "rm", ":model.pte", ":recording.bin")


def test_mpremote_deploys_a_romfs(mpremote, tmp_path):
    """The stock command deploys a ROMFS of ours, and the file in it is used in place."""
    data = bytes(range(256)) * 20
    image = tmp_path / "files.romfs"
    image.write_bytes(romfs.build({"other.pte": data, "lib": {"m.py": b"x = 7\n"}}))
    assert f"size {rp2.layout('RPI_PICO').romfs} bytes" in mpremote("romfs", "query")
    mpremote("romfs", "deploy", image)
    code = ("import os, uctypes; v = memoryview(open('/rom/other.pte', 'rb')); "
            "print(len(v), uctypes.addressof(v) % 16, v[255], os.listdir('/rom'), sum(bytes(v)))")
    assert mpremote("exec", code).strip() == f"5120 0 255 ['lib', 'other.pte'] {sum(data)}"
