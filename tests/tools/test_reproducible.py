"""Test that the same sources give the same bytes: wheel and firmware are built a second time
elsewhere."""

import shutil
import subprocess
import zipfile
from pathlib import Path

import numpy as np
import pytest
from picotorch.boards.boards import load_board
from picotorch.cli import examples
from picotorch.firmware import rp2, selective
from picotorch.host.operators import supported_operators
from picotorch.host.twin import open_program
from picotorch.run import emulator, pico, running
from support import figures, installed, on_pico, stock
from support.fixture_store import FOLDER
from support.tool import load_tool

pytestmark = pytest.mark.thorough

REPOSITORY = Path(__file__).resolve().parents[2]
reproducible = load_tool("reproducible")
make_wheel = reproducible.make_wheel
notices = make_wheel.notices
BOARD = running.DEFAULT_BOARD
OTHER_BOARD = "mps2-an385"
MPY_CROSS = "build/mpy-cross/mpy-cross"
FREE = 100 * 1024  # minimum of free heap of a Pico while int8 ds_cnn is loaded


@pytest.fixture
def sources(tmp_path):
    """Copy the sources, with the mpy-cross of this checkout: building that takes 10 s."""
    folder = reproducible.copy_sources(tmp_path / "sources")
    (folder / MPY_CROSS).parent.mkdir(parents=True)
    shutil.copy(REPOSITORY / MPY_CROSS, folder / MPY_CROSS)
    return folder


@pytest.mark.reliability
def test_firmware(sources, tmp_path):
    """The firmware has all kernels, or those of one model only."""
    program = open_program((FOLDER / "ds_cnn" / "model.pte").read_bytes())
    selected = tmp_path / "selected.elf"
    names = selective.build(BOARD, {"ds_cnn": program}, selected).operators
    selection = sources / "build/firmware/selection"
    selection.mkdir(parents=True)
    (selection / "operators.def").write_text(selective.operator_file(names))
    (selection / "manifest.py").write_text(selective.manifest(set()))

    micropython = reproducible.copy_micropython(tmp_path / "micropython")
    collect_another_name(sources, micropython)
    selected_elsewhere = reproducible.build_firmware(sources, micropython, BOARD, "run", selection)
    elsewhere = sources / f"build/firmware/{BOARD}-run/firmware.elf"
    here = emulator.firmware_path(load_board(BOARD))
    assert elsewhere.read_bytes() == here.read_bytes()
    assert selected_elsewhere.read_bytes() == selected.read_bytes()
    figures.record("supply", "firmware", identical=2)


def collect_another_name(sources, micropython):
    """Begin a build in which a source needs a name that it does not need when the build continues."""
    source = sources / "port/firmware/counter.c"
    text = source.read_text()
    source.write_text(text + "const qstr another = MP_QSTR_another;\n")
    names = f"build/firmware/{BOARD}-run/genhdr/qstrdefs.generated.h"
    reproducible.make_firmware(sources, micropython, BOARD, "run", sources / names)
    assert "MP_QSTR_another" in (sources / names).read_text()
    source.write_text(text)


@pytest.mark.reliability
def test_wheel(tmp_path):
    installed.make_kernels_in_flash()
    wheels = reproducible.build_wheels(tmp_path / "wheel")
    assert wheels.here.read_bytes() == wheels.elsewhere.read_bytes()
    figures.record("supply", "wheel", identical=1)
    check_installed(wheels.here, tmp_path)
    modules = {f"picotorch/{path.name}" for path in (REPOSITORY / "host" / "picotorch").glob("*.py*")}
    licences = {f"picotorch/sources/build/licenses/{component.name}.txt"
                for component in notices.COMPONENTS}
    assert modules | licences <= set(zipfile.ZipFile(wheels.here).namelist())


def test_a_wheel_includes_the_builds_for_boards(tmp_path, monkeypatch):
    """Beside the builds the wheel includes no other files."""
    (tmp_path / "firmware").mkdir()
    built = emulator.firmware_path(load_board(BOARD)).parent
    (tmp_path / "firmware" / built.name).symlink_to(built)
    brought = {"natmod/armv6m/_picotorch.mpy", "natmod/armv6m-fast/_picotorch.mpy",
               "natmod/picotorch/errors.mpy",
               "natmod/RPI_PICO/kernels.uf2", "natmod/RPI_PICO/armv6m/_picotorch.mpy",
               "rp2/RPI_PICO/firmware.bin", "rp2/RPI_PICO2/firmware.bin"}
    others = {"natmod/armv6m/init.o", "natmod/RPI_PICO/models.uf2", "natmod/RPI_PICO/picotorch/a.mpy",
              "natmod/package/armv6m/_picotorch.mpy", "natmod/armv6m-ptm/_picotorch.mpy",
              "rp2/RPI_PICO/firmware.elf", "rp2/RPI_PICO.uf2",
              "rp2/RPI_PICO/selected/firmware.bin"}
    for name in brought | others:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(name.encode())
    monkeypatch.setattr(make_wheel, "BUILD", tmp_path)
    monkeypatch.setattr(emulator, "FIRMWARE_DIR", tmp_path / "firmware")
    staged = make_wheel.stage(tmp_path / "staged")
    assert {str(path.relative_to(staged)) for path in staged.rglob("*") if path.is_file()} == {
        *(f"firmware/{built.name}/{name}" for name in ("firmware.elf", "flash.json", "stack.json")),
        *(f"licenses/{component.name}.txt" for component in notices.COMPONENTS), *brought}
    assert all((staged / name).read_bytes() == name.encode() for name in brought)


def check_installed(wheel, folder):
    """Use a wheel in an environment of its own, with the emulator but no compiler and no checkout.
    Check the errors of commands that this environment cannot run."""
    python = installed.make_environment(folder / "venv", wheel)
    programs = folder / "programs"
    programs.mkdir()
    (programs / "qemu-system-arm").symlink_to(shutil.which("qemu-system-arm"))

    def call(*arguments):
        done = subprocess.run([python, "-m", "picotorch", *map(str, arguments)], cwd=folder,
                              env={"PATH": str(programs)}, capture_output=True, text=True)
        assert done.returncode in (0, 1), done.stderr
        return done.stdout + done.stderr

    model = shutil.copy(FOLDER / "add_1" / "model.pte", folder)
    assert "forward on host: ok" in call("run", model)
    assert f"forward on {BOARD}: ok" in call("run", model, "--board", BOARD)
    assert " agree" in call("parity", model, "--board", BOARD)
    assert f"\n{BOARD} " in call("size", model)
    assert "nrf52840 " in call("boards", "--chips")
    on_chip = call("size", model, "--chip", "nrf52840")
    assert "\ncore and kernels" in on_chip and "counted on mps2-an386" in on_chip
    assert "not measured: no firmware is built" in call("size", model, "--chip", "rp2040")
    missing = call("run", model, "--board", OTHER_BOARD)
    assert f"NotFound (0x20): {OTHER_BOARD}: the firmware is not built" in missing
    assert "--firmware" in missing
    assert "call this in picotorch's repository" in call("firmware", "--models", model)
    firmware = emulator.firmware_path(load_board(OTHER_BOARD))
    assert " agree" in call("parity", model, "--board", OTHER_BOARD, "--firmware", firmware)
    check_examples(call, folder)
    check_pico(call, folder)


def check_pico(call, folder):
    """Check that a model in firmware, and one beside kernels in the flash of a stock Pico, run as on
    the twin."""
    model, rare = (FOLDER / name / "model.pte" for name in ("int8_ds_cnn", "embedding_bag"))
    count = len(supported_operators())
    for board in rp2.BOARDS:
        arguments = ("firmware", "--board", board, "--models", model)
        first, again = call(*arguments), call(*arguments)
        assert f"of {count} of {count} operators\n" in first
        assert f"of {count} of {count} operators (an older file was replaced)\n" in again
        firmware = (rp2.BUILD / board / "firmware.bin").read_bytes()
        assert (folder / f"{board}.uf2").read_bytes() == rp2.pack(
            board, firmware, {"model.pte": model.read_bytes()})
    firmware = (folder / "RPI_PICO.uf2").read_bytes()
    commands = call("flash", FOLDER / "add_1" / "model.pte", "--board", "RPI_PICO", "--dry-run")
    assert commands.endswith("\ncp RPI_PICO.uf2 RPI-RP2\n")
    assert (folder / "RPI_PICO.uf2").read_bytes() == firmware
    with pico.emulated(folder / "RPI_PICO.uf2") as port:
        run_on_pico(on_pico.mpremote(port), 'memoryview(open("/rom/model.pte", "rb"))', model)

    options = ("natmod", "--flash", "RPI_PICO", "--output", "flash", "--frozen-model")
    assert "On the board: picotorch_models.model" in call(*options, model)
    assert "not needed: --flash RPI_PICO" in call("natmod", "--models", model)
    error = call(*options, rare)
    assert error.startswith("OperatorMissing") and "picotorch firmware --board RPI_PICO" in error
    files = (folder / "flash" / name for name in ("kernels.uf2", "models.uf2"))
    with pico.emulated(stock.pico_uf2(folder / "stock.uf2"), *files) as port:
        mpremote = on_pico.mpremote(port)
        mpremote("mount", folder / "flash", "run", folder / "flash" / "install.py")
        run_on_pico(mpremote, "__import__('picotorch_models').model", model, ["/lib", ".frozen"])


def run_on_pico(mpremote, model, path, *folders):
    inputs = list(np.load(path.with_name("inputs.npz")).values())
    printed, result = on_pico.run(mpremote, model, path, inputs, *folders)
    on_pico.assert_as_the_twin(printed, result)
    assert printed["allocated"] == ["0"] and int(printed["free"][0]) >= FREE


def check_examples(call, folder):
    for name in examples.names():
        assert f"{name}: README.md" in call("examples", name)
        committed = subprocess.check_output(["git", "ls-files", f"examples/{name}"], cwd=REPOSITORY,
                                            text=True).split()
        assert {path.name for path in (folder / name).iterdir()} == {Path(p).name for p in committed}
    assert f"forward on {BOARD}: ok" in call("run", "gesture/model.pte", "--board", BOARD)
