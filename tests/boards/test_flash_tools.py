"""Test picotorch flash, with a folder as the boot loader's drive and tools that record their
arguments."""

import builtins
import errno
import json
import threading
import time
from pathlib import Path

import pytest
from picotorch.cli import main as cli
from picotorch.compile import ptm_writer
from picotorch.deploy import flash_tools
from picotorch.firmware import kernels_in_flash, ports, rp2, selective
from picotorch.firmware.uf2 import ABSOLUTE
from picotorch.firmware.uf2 import write as write_uf2
from support.calling import assert_error, assert_usage
from support.flash_tools_double import hide, install

PICO = 0xE48BFF56
ADD = Path(__file__).resolve().parents[1] / "fixtures" / "add_1" / "model.pte"


def uf2(blocks, family=PICO):
    return write_uf2({0x10000000: bytes(256 * blocks)}, family)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return a folder on a computer without tools and without a mounted drive."""
    hide(tmp_path, monkeypatch)
    monkeypatch.setattr(flash_tools, "_WAIT", 1.0)
    (tmp_path / "fw.uf2").write_bytes(uf2(3))
    return tmp_path


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
    assert (status, entry["tool"], entry["done"], entry["checked"]) == (0, "drive", True, True)
    assert got == [uf2(3)]


def test_a_drive_that_stays_is_a_failure(call, folder):
    mount(folder)
    assert_error(call("flash", folder / "fw.uf2", "--board", "RPI_PICO"), "AccessFailed",
                 "RPI_PICO: its drive is still there")


def test_a_drive_of_another_board_is_not_used(call, folder):
    mount(folder, "RP2350")
    assert_error(call("flash", folder / "fw.uf2", "--board", "RPI_PICO"), "NotFound",
                 "no drive", "RPI-RP2", "BOOTSEL")
    assert list((folder / "drives" / "RP2350").iterdir()) == [
        folder / "drives" / "RP2350" / "INFO_UF2.TXT"]


@pytest.mark.parametrize("data, text", [(uf2(2, 0xE48BFF59), "not for RPI_PICO"),
                                        (uf2(2)[:-100], "not a UF2 file"), (b"", "not a UF2"),
                                        (bytes(512), "not a UF2 block")])
def test_a_uf2_that_is_none_of_the_board(call, folder, data, text):
    (folder / "fw.uf2").write_bytes(data)
    mount(folder)
    assert_error(call("flash", folder / "fw.uf2", "--board", "RPI_PICO"), "InvalidArgument", text)


def test_uf2_files_of_other_builders(call, folder):
    """The first block of MicroPython's Pico 2 firmware has a family of its own and is block 0 of 2,
    without a block 1. No block of the port samd has a family. One file may contain firmware for two
    chips."""
    files = {"RPI_PICO2": uf2(2, ABSOLUTE)[:512] + uf2(3, 0xE48BFF59),
             "ADAFRUIT_ITSYBITSY_M4_EXPRESS": without_family(uf2(2)),
             "RPI_PICO": uf2(3, 0xE48BFF59) + uf2(2)}
    for board, data in files.items():
        (folder / "fw.uf2").write_bytes(data)
        assert call("flash", folder / "fw.uf2", "--board", board, "--dry-run")[0] == 0
        for damaged in (data[:-512], data + uf2(2)[512:]):
            (folder / "fw.uf2").write_bytes(damaged)
            assert_error(call("flash", folder / "fw.uf2", "--board", board, "--dry-run"),
                         "InvalidArgument", str(folder / "fw.uf2"))


def without_family(file):
    return b"".join(file[at:at + 8] + bytes(4) + file[at + 12:at + 512]
                    for at in range(0, len(file), 512))


def test_only_uf2_files_go_to_a_drive(call, folder):
    (folder / "fw.bin").write_bytes(b"firmware")
    drive = mount(folder)
    for board in ("RPI_PICO", "PYBV11"):
        assert_error(call("flash", folder / "fw.bin", "--board", board, "--with", "drive"),
                     "NotSupported", f"{board} accepts")
    assert [path.name for path in drive.iterdir()] == ["INFO_UF2.TXT"]


def test_a_drive_that_went_away_before_it_was_unmounted(call, folder, monkeypatch):
    mount(folder)
    exists = Path.exists

    def fail_as_linux_does(path):
        if path.name == "fw.uf2" and path.parent.name == "RPI-RP2":
            raise OSError(errno.EIO, "Input/output error")
        return exists(path)

    monkeypatch.setattr(Path, "exists", fail_as_linux_does)
    assert call("flash", folder / "fw.uf2", "--board", "RPI_PICO")[0] == 0


def test_each_board_of_hardware_can_be_flashed():
    built = {name for name, board in ports.boards().items() if board.port not in ("unix", "qemu")}
    assert built | set(rp2.BOARDS) <= set(flash_tools.board_names())


@pytest.mark.parametrize("tool, board, suffix, wanted", [
    ("picotool", "RPI_PICO", ".uf2", ["load", "-v", "-x", "FILE"]),
    ("openocd", "RPI_PICO2", ".elf", ["-f", "interface/cmsis-dap.cfg", "-f", "target/rp2350.cfg", "-c",
                                      "program FILE verify reset exit"]),
    ("openocd", "netduinoplus2", ".bin", ["-f", "interface/stlink.cfg", "-f", "target/stm32f4x.cfg",
                                          "-c", "program FILE 0x8000000 verify reset exit"]),
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
    assert (status, json.loads(out)["command"], got()) == (0, [tool, *wanted], None)
    status, out, _ = call("flash", file, "--board", board)
    assert status == 0 and f"is on {board}, written" in out
    assert got() == wanted


def test_a_tool_that_fails_is_quoted(call, folder):
    install(folder, "openocd", 1)
    file = folder / "fw.elf"
    file.write_bytes(b"")
    assert_error(call("flash", file, "--board", "RPI_PICO"), "AccessFailed",
                 "openocd ended with status 1: openocd says this")


def test_without_a_tool_no_flash_method_is_found(call, folder):
    file = folder / "fw.hex"
    file.write_bytes(b"")
    assert_error(call("flash", file, "--board", "PCA10056"), "NotFound",
                 "openocd or pyocd is not installed", "apt-get install openocd")
    dfu = folder / "fw.dfu"
    dfu.write_bytes(b"")
    assert_error(call("flash", file, "--board", "PYBV11", "--with", "st-flash"), "NotFound",
                 "apt-get install stlink-tools")
    assert_error(call("flash", dfu, "--board", "RPI_PICO"), "NotSupported", ".uf2 by its drive")
    assert_error(call("flash", file, "--board", "PCA10056", "--with", "dfu-util"), "NotSupported")
    assert_error(call("flash", folder / "none.hex", "--board", "PCA10056"), "AccessFailed")
    assert_error(call("flash", folder / "model.pte", "--board", "netduinoplus2"), "NotSupported",
                 "picotorch deploy the model")
    assert_usage(call("flash", file, "--board", "no_board"))


def test_a_dry_run_needs_no_tool(call, folder):
    file = folder / "fw.dfu"
    file.write_bytes(b"")
    status, out, _ = call("flash", file, "--board", "PYBV11", "--dry-run")
    assert status == 0 and out.splitlines() == [
        f"dfu-util -a 0 -d 0483:df11 -s :leave -D {file}",
        "dfu-util is not installed: on Debian: apt-get install dfu-util"]
    install(folder, "dfu-util")
    assert "not installed" not in call("flash", file, "--board", "PYBV11", "--dry-run")[1]


def test_a_model_becomes_a_firmware(call, folder, monkeypatch):
    """The build itself is tested in test_ports.py."""
    model = Path(__file__).resolve().parents[1] / "fixtures" / "add_1" / "model.pte"
    files = [folder / f"firmware.{suffix}" for suffix in ("elf", "dfu", "hex")]
    for file in files:
        file.write_bytes(b"")

    def build(board, programs, frozen):
        assert (board, list(programs), frozen) == ("PYBV11", [str(model)],
                                                   [("model", model.read_bytes())])
        return flash_tools.ports.PortFirmware(board, "stm32", list(programs), [], [], {},
                                              [str(file) for file in files], 0, None)

    monkeypatch.setattr(flash_tools.ports, "build", build)
    got = install(folder, "dfu-util")
    assert call("flash", model, "--board", "PYBV11")[0] == 0
    assert got()[-1] == str(files[1])


@pytest.mark.parametrize("name", ["model.pte", "model.ptm"])
def test_a_model_for_a_pico_becomes_a_uf2(call, folder, monkeypatch, name):
    """The build itself is tested in test_rp2.py."""
    model, source = folder / name, Path(__file__).resolve().parents[1] / "fixtures" / "add_1"
    if name == "model.pte":
        model.write_bytes((source / name).read_bytes())
    else:
        assert call("compile", source / "model.pte", "--output", model)[0] == 0

    def build(board, programs, models, output):
        assert (board, list(programs), list(models)) == ("RPI_PICO", [str(model)], [str(model)])
        output.write_bytes(uf2(3))

    monkeypatch.setattr(flash_tools.rp2, "build", build)
    got = install(folder, "picotool")
    assert call("flash", model, "--board", "RPI_PICO")[0] == 0
    built = Path(got()[-1])
    assert built.name == "RPI_PICO.uf2" and not built.parent.exists()


@pytest.fixture
def wheel(folder, monkeypatch):
    """Simulate a wheel: no sources, and a firmware for a Pico. The current folder is empty."""
    brought = folder / "build" / "RPI_PICO" / "firmware.bin"
    brought.parent.mkdir(parents=True)
    brought.write_bytes(bytes(1000))
    monkeypatch.setattr(selective, "SETUP", folder / "none")
    monkeypatch.setattr(rp2, "BUILD", folder / "build")
    (folder / "here").mkdir()
    monkeypatch.chdir(folder / "here")
    return folder / "here"


def test_a_dry_run_with_a_model_writes_no_file(call, wheel):
    """With a wheel, the command firmware writes into the current folder."""
    older = wheel / "RPI_PICO.uf2"
    for content in (None, b"of the user"):
        if content:
            older.write_bytes(content)
        status, out, _ = call("flash", ADD, "--board", "RPI_PICO", "--dry-run")
        assert status == 0 and out.splitlines() == [
            f"picotorch firmware --board RPI_PICO --models {ADD} --output RPI_PICO.uf2",
            "cp RPI_PICO.uf2 RPI-RP2"]
        assert (older.read_bytes() if older.exists() else None) == content


DRY = {"flash": lambda board: ("flash", ADD, "--board", board)}  # the commands with a --dry-run


def test_each_command_with_a_dry_run_is_tried():
    found = {name for name in cli.cli.list_commands(None)
             for parameter in cli.cli.get_command(None, name).params if parameter.name == "dry_run"}
    assert found == set(DRY)


@pytest.mark.parametrize("board", flash_tools.board_names())
@pytest.mark.parametrize("name", DRY)
def test_a_dry_run_starts_sends_and_writes_nothing(call, folder, monkeypatch, name, board):
    """The command prints at once how it would build the firmware, and how it would flash it."""
    def refuse(*arguments, **named):
        raise AssertionError(f"it does: {arguments}")

    def opened(path, mode="r", *arguments, **named):
        assert not set(mode) & set("wax+"), path
        return open_file(path, mode, *arguments, **named)

    mount(folder, "RPI-RP2")
    before = sorted(folder.rglob("*"))
    open_file = builtins.open
    monkeypatch.setattr("builtins.open", opened)
    monkeypatch.setattr("subprocess.Popen.__init__", refuse)
    monkeypatch.setattr("socket.socket.connect", refuse)
    monkeypatch.setattr("tempfile.mkdtemp", refuse)
    monkeypatch.setattr("tempfile.mkstemp", refuse)
    monkeypatch.setattr(Path, "mkdir", refuse)
    arguments = DRY[name](board)
    for more in ((), ("--port", "auto"), ("--port", "socket://localhost:9")):
        status, out, error = call(*arguments, *more, "--dry-run")
        if board in rp2.BOARDS or board in ports.boards():
            assert (status, error) == (0, "")
            built, flashed, *_ = out.splitlines()
            assert built.startswith(f"picotorch firmware --board {board} --models {ADD} --")
            assert not flashed.startswith("picotorch")
            assert json.loads(call(*arguments, *more, "--dry-run", "--json")[1])["done"] is False
        else:
            assert_error((status, out, error), "NotSupported", "its firmware cannot contain a model")
    assert sorted(folder.rglob("*")) == before


def test_firmware_reports_a_replaced_file(call, wheel):
    arguments = ("firmware", "--board", "RPI_PICO", "--models", ADD)
    named = ("--output", wheel / "RPI_PICO.uf2")
    for options, replaced in (((), False), ((), True), (named, False)):
        status, out, _ = call(*arguments, *options)
        assert status == 0 and ("(an older file was replaced)" in out.splitlines()[0]) == replaced


def test_a_ptm_file_for_another_core_is_rejected(call, wheel, monkeypatch):
    """Every command for a Pico rejects the file before it writes anything."""
    built = []
    monkeypatch.setattr(rp2, "_prebuilt", built.append)
    monkeypatch.setattr(kernels_in_flash, "_prebuilt", built.append)
    model = ADD.parents[1] / "int8_ds_cnn" / "model.pte"
    ptm = wheel / "model.ptm"
    ptm.write_bytes(ptm_writer.compile_ptm(model.read_bytes(), core="cortex-m4").data)
    for arguments, needs in (
            (("natmod", "--flash", "RPI_PICO", "--frozen-model", ptm), "that armv6m need"),
            (("natmod", "--flash", "RPI_PICO", "--models", ptm), "that armv6m need"),
            (("firmware", "--board", "RPI_PICO", "--models", ptm), "that a cortex-m0plus needs"),
            (("flash", ptm, "--board", "RPI_PICO", "--dry-run"), "that a cortex-m0plus needs")):
        assert_error(call(*arguments), "NotSupported", f"is a .ptm file without the weights {needs}",
                     "compile it with --optimize size")
    assert built == [] and list(wheel.iterdir()) == [ptm]
    monkeypatch.undo()
    rp2.check_ptms("RPI_PICO2", {"model": ptm.read_bytes()})  # a Cortex-M33 has the same kernels
