"""Build examples/c with make and with CMake, for this machine and for a board: the output is the
same."""

import functools
import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from picotorch.boards.boards import load_board
from picotorch.firmware import selective
from picotorch.host.elf import flash_bytes
from picotorch.host.operators import needed_operators
from picotorch.host.request import Request
from picotorch.host.twin import open_program
from picotorch.measure.firmware_map import sections
from picotorch.run import running
from picotorch.run.emulator import _emulator_program
from support import budgets, fixture_store

pytestmark = pytest.mark.thorough

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "c"
MODEL = fixture_store.load("int8_ds_cnn").pte
INPUT = (np.arange(490) % 16 - 8).astype(np.float32)
BOARD = "mps2-an386"
UNOPTIMISED = ["PT_SMALL_CFLAGS=-O0", "PT_FAST_CFLAGS=-O0"]  # compiles fastest
MAP = "-nostartfiles -T mps2.ld -Wl,-Map="
LIBC = ("malloc", "free", "printf", "puts", "_sbrk", "strlen", "strcmp", "abort", "exit", "expf")


def sh(*command):
    inherited = ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES")
    environment = {key: value for key, value in os.environ.items() if key not in inherited}
    done = subprocess.run(list(map(str, command)), cwd=FOLDER, env=environment, text=True,
                          capture_output=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr  # the emulator prints the board's output to stderr


def make(target, folder):
    """Make the target, as small as possible for the board."""
    options = ["SMALL=1", f"LDFLAGS={MAP}{folder}/example.map"] if target == "mps2" else UNOPTIMISED
    sh("make", "-s", "-j2", f"TARGET={target}", f"BUILD={folder}", *options)


def cmake(target, folder):
    if shutil.which("cmake") is None:
        pytest.skip("cmake is not installed")
    toolchain = [f"-DCMAKE_TOOLCHAIN_FILE={FOLDER}/mps2.cmake"] if target == "mps2" else []
    sh("cmake", "-S", FOLDER, "-B", folder, *toolchain)
    sh("cmake", "--build", folder, "-j2")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return made(function, target), which makes a target once for all tests and returns its folder."""
    @functools.cache
    def build(function, target):
        folder = tmp_path_factory.mktemp(f"{function.__name__}_{target}")
        function(target, folder)
        return folder

    return build


def run(target, program):
    if target == "host":
        return sh(program)
    board = load_board(BOARD)
    return sh(_emulator_program(board), "-M", board.emulator.machine, "-nographic", "-semihosting",
              "-kernel", program)


def twin_says():
    """Return the class with the highest score on the twin."""
    info = open_program(MODEL).method_meta("forward").input_tensor_meta(0)
    stored = [info.sizes()[dim] for dim in info.dim_order()]
    array = INPUT.reshape(stored).transpose(np.argsort(info.dim_order()))
    (scores,) = running.run(Request(MODEL, "ds_cnn", [array]), running.HOST).outputs
    return f"class {chr(ord('A') + int(scores.argmax()))}"


@pytest.mark.parametrize("target", ["host", "mps2"])
@pytest.mark.parametrize("build", [make, cmake])
def test_it_builds_and_has_the_outputs_of_the_twin(build, target, made):
    program = made(build, target) / "example"
    assert run(target, program).split("\n")[0] == twin_says()
    if target == "mps2":
        symbols = sh("arm-none-eabi-nm", program).split()
        assert [name for name in LIBC if name in symbols] == []
        assert [name for name in symbols if re.fullmatch("pt_pack_(weights|layer|rows).*", name)] == []
        budgets.check(f"example_c.{'small' if build is make else 'fast'}",
                      flash_bytes(program) - len(MODEL))


def test_the_core_is_small(made):
    example = made(make, "mps2") / "example.map"
    files = (FOLDER.parents[1] / "kernels/core").rglob("*.c")
    core = {path.stem for path in files} - {"registry", "error_text"}  # error_text is only for people
    linked = [(re.search(r"libpicotorch\.a\((\w+)\.o\)", path), size)
              for _, size, path in sections(example)]
    size = sum(size for found, size in linked if found and found[1] in core)
    assert 20 * 1024 < size
    budgets.check("example_c.core_without_texts", size)


def test_its_list_of_operators_is_that_of_its_model():
    names = needed_operators({"ds_cnn": open_program(MODEL)})
    assert (FOLDER / "operators.def").read_text() == selective.operator_file(names)


def test_its_memories_have_the_sizes_that_the_model_needs():
    result = running.run(Request(MODEL, "ds_cnn", [np.zeros((1, 1, 49, 10), np.float32)]), running.HOST)
    needed = [result.method_pool.used, result.planned[0].used, result.temp.used]
    pool, planned, temp = [-(-size // 8) * 8 for size in needed]
    assert f"POOL = {pool}, PLANNED = {planned}, TEMP = {temp}," in (FOLDER / "main.c").read_text()


CONSUMER = """\
cmake_minimum_required(VERSION 3.14)
project(consumer LANGUAGES C)
find_package(picotorch 0.1 REQUIRED)
add_executable(consumer main.c)
target_link_libraries(consumer picotorch::picotorch)
"""
CONSUMER_C = """\
#include <picotorch/picotorch.h>

int main(void) {
    static const unsigned char nothing[64];
    pt_program program;
    pt_error error;
    pt_program_open(&program, nothing, sizeof(nothing), PT_VERIFY_STRICT, &error);
    return error.code != PT_ERROR_INVALID_PROGRAM;
}
"""


def test_an_installed_library_is_found_by_its_package(tmp_path):
    if shutil.which("cmake") is None:
        pytest.skip("cmake is not installed")
    project, installed = tmp_path / "project", tmp_path / "installed"
    project.mkdir()
    (project / "CMakeLists.txt").write_text(CONSUMER)
    (project / "main.c").write_text(CONSUMER_C)
    sh("cmake", "-S", FOLDER.parents[1] / "kernels", "-B", tmp_path / "library",
       f"-DCMAKE_INSTALL_PREFIX={installed}")
    sh("cmake", "--build", tmp_path / "library", "-j2")
    sh("cmake", "--install", tmp_path / "library")
    sh("cmake", "-S", project, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={installed}")
    sh("cmake", "--build", tmp_path / "build")
    sh(tmp_path / "build" / "consumer")
