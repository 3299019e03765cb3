"""Test the loops of the host twin on a 64-bit Arm computer, which qemu-aarch64 emulates. The bytes
equal those of the plain loops, and those of this computer. make arm64 installs compiler and emulator,
and runs this test. make test-all skips it, because Debian then removes gcc-multilib, which other tests
need."""

import importlib.util
import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(__file__).parent / "arm64" / "loops.c"
KINDS = {"plain": 0, "neon": 1, "dot": 2}  # PT_VECTORS_...


def flags():
    """Return the flags of the twin's extension."""
    spec = importlib.util.spec_from_file_location("build", ROOT / "host" / "_picotorch" / "build.py")
    build = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(build)
    folders = [f"-I{folder}" for folder in build.INCLUDES]
    return [*build.FLAGS, "-Werror", "-D_GNU_SOURCE", "-Ikernels", *folders]


def built(compiler, output):
    sources = sorted((ROOT / "kernels").rglob("*.c"))
    command = [compiler, *flags(), "-ffunction-sections", "-Wl,--gc-sections", "-static",
               "-o", output, PROGRAM, *sources]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return output


def checksum(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    for name in ("aarch64-linux-gnu-gcc", "qemu-aarch64"):
        if not shutil.which(name):
            pytest.skip(f"{name} is not installed (make arm64)")
    return built("aarch64-linux-gnu-gcc", tmp_path_factory.mktemp("arm64") / "loops")


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """Return the checksum of this computer's plain loops."""
    return checksum(built("gcc", tmp_path_factory.mktemp("here") / "loops"), "0")


@pytest.mark.parametrize("kind", KINDS)
def test_all_have_the_same_bytes(program, here, kind):
    processor = "max" if kind == "dot" else "cortex-a72"
    assert checksum("qemu-aarch64", "-cpu", processor, program, str(KINDS[kind])) == here
