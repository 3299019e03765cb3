"""picotorch flash, with a folder for the boot loader's drive and tools that note what they get."""

import json
import threading
import time
from pathlib import Path

import pytest
from calling import assert_error, assert_usage
from picotorch.host.connected import flash_tools
from picotorch.host.uf2 import write as write_uf2

PICO = 0xE48BFF56


def uf2(blocks, family=PICO):
    return write_uf2({0x10000000: bytes(256 * blocks)}, family)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """No tool is installed, and no drive mounted."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "drives").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("PICOTORCH_DRIVES", str(tmp_path / "drives"))
    monkeypatch.setattr(flash_tools, "_WAIT", 1.0)
    (tmp_path / "fw.uf2").write_bytes(uf2(3))
    return tmp_path


def install(folder, name, status=0):
    """A tool that writes its arguments to a file, and says something."""
    tool = folder / "bin" / name
    tool.write_text(f'#!/bin/sh\nfor word; do echo "$word"; done > {folder}/{name}.got\n'
                    f'echo "{name} says this" >&2\nexit {status}\n')
    tool.chmod(0o755)
    return folder / f"{name}.got"


def mount(folder, board_id="RPI-RP2"):
    drive = folder / "drives" / board_id
    drive.mkdir()
    (drive / "INFO_UF2.TXT").write_text(f"UF2 Bootloader v3.0\nModel: A board\nBoard-ID: {board_id}\n")
    return drive


def test_a_uf2_goes_to_the_drive(call, folder):
    drive, got = mount(folder), []

    def boot_loader():
        file = drive / "fw.uf2"
        while not (file.exists() and file.stat().st_size == 3 * 512):
            time.sleep(0.01)
        got.append(file.read_bytes())
        file.unlink()

    thread = threading.Thread(target=boot_loader)
    thread.start()
    status, out, _ = call("flash", folder / "fw.uf2", "--board", "RPI_PICO", "--json")
    thread.join()
    entry = json.loads(out)
    assert (status, entry["way"], entry["done"], entry["checked"]) == (0, "drive", True, True)
    assert got == [uf2(3)]


def test_a_drive_that_stays_is_a_failure(call, folder):
    mount(folder)
    assert_error(call("flash", folder / "fw.uf2", "--board", "RPI_PICO"), "AccessFailed",
                 "RPI_PICO: its drive is still there")


def test_a_drive_of_another_board_is_not_taken(call, folder):
    mount(folder, "RP2350")
    assert_error(call("flash", folder / "fw.uf2", "--board", "RPI_PICO"), "NotFound",
                 "no drive", "RPI-RP2", "BOOTSEL")
    assert list((folder / "drives" / "RP2350").iterdir()) == [
        folder / "drives" / "RP2350" / "INFO_UF2.TXT"]


@pytest.mark.parametrize("data, text", [(uf2(2, 0xE48BFF59), "not for RPI_PICO"),
                                        (uf2(2)[:-100], "no UF2 file"), (b"", "no UF2"),
                                        (bytes(512), "no UF2 block")])
def test_a_uf2_that_is_none_of_the_board(call, folder, data, text):
    (folder / "fw.uf2").write_bytes(data)
    mount(folder)
    assert_error(call("flash", folder / "fw.uf2", "--board", "RPI_PICO"), "InvalidArgument", text)


@pytest.mark.parametrize("tool, board, suffix, wanted", [
    ("picotool", "RPI_PICO", ".uf2", ["load", "-v", "-x", "FILE"]),
    ("openocd", "RPI_PICO2", ".elf", ["-f", "interface/cmsis-dap.cfg", "-f", "target/rp2350.cfg", "-c",
                                      "program {FILE} verify reset exit"]),
    ("openocd", "netduinoplus2", ".bin", ["-f", "interface/stlink.cfg", "-f", "target/stm32f4x.cfg",
                                          "-c", "program {FILE} 0x8000000 verify reset exit"]),
    ("pyocd", "PCA10056", ".hex", ["flash", "--target", "nrf52840", "FILE"]),
    ("pyocd", "PYBV11", ".bin", ["flash", "--target", "stm32f405rg", "--base-address", "0x8000000",
                                 "FILE"]),
    ("dfu-util", "PYBV11", ".dfu", ["-a", "0", "-d", "0483:df11", "-s", ":leave", "-D", "FILE"]),
    ("st-flash", "NUCLEO_F767ZI", ".bin", ["--reset", "write", "FILE", "0x8000000"]),
    ("teensy_loader_cli", "TEENSY41", ".hex", ["--mcu=TEENSY41", "-w", "-v", "FILE"]),
])
def test_each_tool_gets_its_arguments(call, folder, tool, board, suffix, wanted):
    file = folder / ("fw" + suffix)
    if suffix != ".uf2":
        file.write_bytes(b"firmware")
    wanted = [word.replace("FILE", str(file)) for word in wanted]
    got = install(folder, tool)
    status, out, _ = call("flash", file, "--board", board, "--dry-run", "--json")
    assert (status, json.loads(out)["command"], got.exists()) == (0, [tool, *wanted], False)
    status, out, _ = call("flash", file, "--board", board)
    assert status == 0 and f"is on {board}, written" in out
    assert got.read_text().splitlines() == wanted


def test_a_tool_that_fails_is_quoted(call, folder):
    install(folder, "openocd", 1)
    file = folder / "fw.elf"
    file.write_bytes(b"")
    assert_error(call("flash", file, "--board", "RPI_PICO"), "AccessFailed",
                 "openocd ended with status 1: openocd says this")


def test_no_tool_and_no_way(call, folder):
    file = folder / "fw.hex"
    file.write_bytes(b"")
    assert_error(call("flash", file, "--board", "PCA10056"), "NotFound",
                 "openocd or pyocd is not installed", "apt-get install openocd")
    dfu = folder / "fw.dfu"
    dfu.write_bytes(b"")
    assert_error(call("flash", dfu, "--board", "RPI_PICO"), "NotSupported", ".uf2 by its drive")
    assert_error(call("flash", file, "--board", "PCA10056", "--with", "dfu-util"), "NotSupported")
    assert_error(call("flash", folder / "none.hex", "--board", "PCA10056"), "AccessFailed")
    assert_error(call("flash", folder / "model.pte", "--board", "netduinoplus2"), "NotSupported",
                 "picotorch deploy the model")
    assert_usage(call("flash", file, "--board", "no_board"))


def test_a_model_becomes_a_firmware(call, folder, monkeypatch):
    """What builds it is tested in test_ports.py."""
    model = Path(__file__).resolve().parents[1] / "fixtures" / "add_1" / "model.pte"
    files = [folder / f"firmware.{suffix}" for suffix in ("elf", "dfu", "hex")]
    for file in files:
        file.write_bytes(b"")

    def build(board, programs, frozen):
        assert (board, list(programs), frozen) == ("PYBV11", [str(model)],
                                                   [("model", model.read_bytes())])
        return {"outputs": [str(file) for file in files]}

    monkeypatch.setattr(flash_tools.ports, "build", build)
    got = install(folder, "dfu-util")
    assert call("flash", model, "--board", "PYBV11")[0] == 0
    assert got.read_text().splitlines()[-1] == str(files[1])


def test_a_model_for_a_pico_becomes_a_uf2(call, folder, monkeypatch):
    """What builds it is tested in test_rp2.py."""
    model = Path(__file__).resolve().parents[1] / "fixtures" / "add_1" / "model.pte"

    def build(board, programs, models, output):
        assert (board, list(programs), list(models)) == ("RPI_PICO", [str(model)], [str(model)])
        return {"firmware": str(folder / "fw.uf2")}

    monkeypatch.setattr(flash_tools.rp2, "build", build)
    got = install(folder, "picotool")
    assert call("flash", model, "--board", "RPI_PICO")[0] == 0
    assert got.read_text().splitlines()[-1] == str(folder / "fw.uf2")
