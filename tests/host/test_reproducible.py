"""The same sources make the same bytes: wheel and firmware, built a second time elsewhere."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import figures
import pytest
from fixture_store import FOLDER
from picotorch.host import emulator, running, selective
from picotorch.host.boards import load_board
from picotorch.host.twin import open_program

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "tools"))

import reproducible  # noqa: E402

BOARD = running.DEFAULT_BOARD
MPY_CROSS = "build/mpy-cross/mpy-cross"


@pytest.fixture
def sources(tmp_path):
    """What is built elsewhere, with the mpy-cross of this checkout: to build that takes 10 s."""
    folder = reproducible.copy_sources(tmp_path / "sources")
    (folder / MPY_CROSS).parent.mkdir(parents=True)
    shutil.copy(REPOSITORY / MPY_CROSS, folder / MPY_CROSS)
    return folder


@pytest.mark.reliability
def test_firmware(sources, tmp_path):
    """With all kernels, and with those of one model only."""
    program = open_program((FOLDER / "ds_cnn" / "model.pte").read_bytes())
    selected = tmp_path / "selected.elf"
    names = selective.build(BOARD, {"ds_cnn": program}, selected)["operators"]
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
    """Begins a build in which a source needs a name, that needs none when the build goes on."""
    source = sources / "port/firmware/counter.c"
    text = source.read_text()
    source.write_text(text + "const qstr another = MP_QSTR_another;\n")
    names = f"build/firmware/{BOARD}-run/genhdr/qstrdefs.generated.h"
    reproducible.make_firmware(sources, micropython, BOARD, "run", sources / names)
    assert "MP_QSTR_another" in (sources / names).read_text()
    source.write_text(text)


@pytest.mark.reliability
def test_wheel(tmp_path):
    wheels = reproducible.build_wheels(tmp_path / "wheel")
    assert wheels.here.read_bytes() == wheels.elsewhere.read_bytes()
    figures.record("supply", "wheel", identical=1)
    check_installed(wheels.here, tmp_path)


def check_installed(wheel, folder):
    """What it can do without this repository, and what it says of what it cannot."""
    installed = folder / "installed"
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index",
                    "--target", installed, wheel], check=True)
    model = shutil.copy(FOLDER / "add_1" / "model.pte", folder)

    def call(*arguments):
        done = subprocess.run([sys.executable, "-m", "picotorch", *map(str, arguments)], cwd=folder,
                              env={**os.environ, "PYTHONPATH": str(installed)},
                              capture_output=True, text=True)
        assert done.returncode in (0, 1)
        return done.stdout + done.stderr

    where = subprocess.check_output(
        [sys.executable, "-c", "import picotorch; print(picotorch.__file__)"], cwd=folder,
        env={**os.environ, "PYTHONPATH": str(installed)}, text=True)
    assert where.startswith(str(installed))
    assert "forward on host: ok" in call("run", model)
    assert BOARD in call("boards")
    assert f"\n{BOARD} " in call("size", model)
    missing = call("run", model, "--board", BOARD)
    assert f"NotFound (0x20): {BOARD}: the firmware is not built" in missing
    assert "--firmware" in missing
    assert "call this in picotorch's repository" in call("firmware", "--models", model)
    firmware = emulator.firmware_path(load_board(BOARD))
    assert " agree" in call("parity", model, "--board", BOARD, "--firmware", firmware)
