"""C projects of models: they build by themselves, and give the bytes that the twin gives."""

import os
import re
import shutil
import subprocess

import fixture_store
import numpy as np
import pytest
from picotorch import Error
from picotorch.host.boards.boards import board_names, full_board_names
from picotorch.host.compile import c_project, c_sources
from picotorch.host.compile.image_writer import compile_image
from picotorch.host.operators import known_operators
from picotorch.host.run import running
from picotorch.host.run.request import Request
from picotorch.host.tensors import numpy_dtype, to_stored
from picotorch.host.twin import open_program

MODEL = "int8_ds_cnn"
OTHERS = ["dynamic_batch", "gru_stateful", "two_methods", "dynamic_unplanned_io",
          "scalar_inputs", "number_outputs"]
UNOPTIMISED = ["PT_SMALL_CFLAGS=-O0", "PT_FAST_CFLAGS=-O0"]  # is made soonest
MOST_FLASH = 78 * 1024  # of MODEL on a Cortex-M4F, everything included
MOST_SMALL = 70 * 1024  # for size, by link-time optimisation
MOST_RAM = 600  # besides planned buffers and temp memory, that of main.c included
# Instructions of model_open of MODEL on a Cortex-M4F, by what of the image is verified.
MOST_INSTRUCTIONS = {"MINIMAL": 3_000, "RECORDS": 20_000, "STRICT": 52_000}
MEM = {"memcpy", "memmove", "memset", "memcmp"}
LIBC = {"malloc", "free", "calloc", "realloc", "printf", "puts", "_sbrk", "strlen", "abort", "exit"}


def sh(*command, status=0):
    inherited = ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES")
    environment = {key: value for key, value in os.environ.items() if key not in inherited}
    done = subprocess.run(list(map(str, command)), env=environment, text=True, capture_output=True)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr  # where the emulator shows what a board says


def image_of(fixture):
    return compile_image(fixture.pte, fixture.data).data


def first_inputs(fixture):
    """Return the inputs of each method's first run."""
    found = {}
    for run in fixture.runs:
        found.setdefault(run.method, run.inputs)
    return found


def write(folder, fixture_name, **options):
    """The project of a fixture with the inputs of its first runs."""
    fixture = fixture_store.load(fixture_name)
    image = image_of(fixture)
    c_project.write(image, folder, inputs=first_inputs(fixture), **options)
    return image, fixture


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ds_cnn")
    return folder, *write(folder, MODEL)


def build(folder, *options):
    """Its make: quiet, so what it says is a warning."""
    assert sh("make", "-s", "-C", folder, "-j2", *options) == ""


def said(folder, *options):
    return sh("make", "-s", "-C", folder, "run", *options)


def printed(text):
    """What main.c says of each output: a text."""
    parts = re.split(r"(?m)^(\w+): ", text)
    return {name: words.strip() for name, words in zip(parts[1::2], parts[2::2], strict=True)}


def expected(image, fixture):
    """The same of the twin, but for numbers: their values."""
    program, found = open_program(image), {}
    several = len([name for name in program.method_names if name in first_inputs(fixture)]) > 1
    for method, inputs in first_inputs(fixture).items():
        meta = program.method_meta(method)
        outputs = running.run(Request(image, fixture.name, inputs, method), running.HOST).outputs
        for i, value in enumerate(outputs):
            name = f"model_{method}_output_{i}" if several else f"model_output_{i}"
            found[name] = value if meta.output_tag(i) != 5 else words_of(
                value, meta.output_tensor_meta(i))
    return found


def words_of(value, info):
    """The elements as they are stored, in hexadecimal digits."""
    size = numpy_dtype(info).itemsize
    elements = np.frombuffer(bytes(to_stored(value, info.dim_order())), f"<u{size}")
    return " ".join(f"{int(element):0{2 * size}x}" for element in elements)


def assert_same(text, wanted):
    got = printed(text)
    assert got.keys() == wanted.keys()
    for name, value in wanted.items():
        if isinstance(value, str):
            assert " ".join(got[name].split()) == value, name
        elif value.dtype.kind == "f":
            assert np.uint64(int(got[name], 16)).view(np.float64) == value, name
        else:
            assert int(got[name]) == int(value), name


@pytest.mark.parametrize("name", OTHERS)
def test_it_gives_what_the_twin_gives(name, tmp_path):
    image, fixture = write(tmp_path, name)
    build(tmp_path, *UNOPTIMISED)
    assert_same(said(tmp_path, *UNOPTIMISED), expected(image, fixture))


def test_it_runs_with_checks_and_texts(tmp_path):
    image, fixture = write(tmp_path, "mixed_unplanned")
    path = tmp_path / "picotorch" / "core" / "config.h"
    path.write_text(re.sub(r"(?m)^#define PT_NO_(CHECKS|TEXTS)$", "", path.read_text()))
    build(tmp_path, *UNOPTIMISED)
    assert_same(said(tmp_path, *UNOPTIMISED), expected(image, fixture))
    path = tmp_path / "model_image.c"
    rows = path.read_text().split("\n")
    rows[9] = re.sub("0x........", "0x01234567", rows[9], count=1)  # a word of its records
    path.write_text("\n".join(rows))
    build(tmp_path, *UNOPTIMISED)
    with pytest.raises(AssertionError, match="its checksum is wrong: it is damaged"):
        said(tmp_path, *UNOPTIMISED)


@pytest.mark.parametrize("board", ["host", *board_names()])
def test_boards_give_what_the_twin_gives(board, project):
    folder, image, fixture = project
    options = [f"BOARD={board}", "SMALL=1"]
    build(folder, *options)
    assert_same(said(folder, *options), expected(image, fixture))


def sizes(path):
    """Bytes of flash and of RAM."""
    text, data, bss = sh("arm-none-eabi-size", path).split("\n")[1].split()[:3]
    return int(text) + int(data), int(data) + int(bss)


def test_it_is_small(project):
    folder, image, _ = project
    build(folder, "BOARD=mps2-an386")
    build(folder, "BOARD=mps2-an386", "SMALL=1", "LTO=1")
    flash, ram = sizes(folder / "build/mps2-an386/model")
    (method,) = c_project.write(image, folder / "another")["methods"]
    assert flash < MOST_FLASH
    assert 0 < ram - sum(method["planned"]) - method["temp"] < MOST_RAM
    assert sizes(folder / "build/mps2-an386-small-lto/model")[0] < MOST_SMALL


def instructions_to_load(firmware):
    """Instructions from the call of model_open to its end: the emulator logs each."""
    log = subprocess.Popen(
        ["qemu-system-arm", "-M", "mps2-an386", "-nographic", "-semihosting", "-singlestep",
         "-d", "exec,nochain", "-D", "/dev/stdout", "-kernel", firmware],
        stdout=subprocess.PIPE, text=True, errors="replace")
    count, caller, before = 0, None, None
    with log:
        for line in log.stdout:
            found = re.match(r"Trace .*\] ?(\w*)$", line)
            if not found:
                continue
            function = found[1]
            if function == "model_open" and caller is None:
                caller = before
            elif caller and function == caller:
                log.kill()
                return count
            count, before = count + bool(caller), function
    raise AssertionError("model_open did not return")


@pytest.mark.parametrize("verification", MOST_INSTRUCTIONS)
def test_it_is_loaded_in_few_instructions(verification, project, tmp_path):
    folder = shutil.copytree(project[0], tmp_path / "project", ignore=lambda *_: ["build"])
    path = folder / "model.c"
    path.write_text(path.read_text().replace("PT_VERIFY_STRICT", f"PT_VERIFY_{verification}"))
    path = folder / "picotorch" / "core" / "config.h"
    if verification != "MINIMAL":
        path.write_text(path.read_text().replace("#define PT_NO_CHECKS\n", ""))
    build(folder, "BOARD=mps2-an386")
    count = instructions_to_load(folder / "build/mps2-an386/model")
    print(f"{verification}: {count}")
    assert 1_000 < count < MOST_INSTRUCTIONS[verification]


def test_a_changed_setting_builds_what_needs_it(project, tmp_path):
    folder = shutil.copytree(project[0], tmp_path / "project", ignore=lambda *_: ["build"])
    build(folder)
    before = (folder / "build/host/model").stat().st_size
    path = folder / "picotorch" / "core" / "config.h"
    path.write_text(path.read_text().replace("#define PT_NO_CHECKS\n", ""))
    build(folder)
    assert (folder / "build/host/model").stat().st_size > before


def test_it_needs_no_more_of_libc_than_memory_functions(project):
    folder, _, _ = project
    build(folder, "BOARD=mps2-an386")
    names = set(sh("arm-none-eabi-nm", folder / "build/mps2-an386/model").split())
    assert not names & LIBC
    assert names & MEM


@pytest.mark.parametrize("board", ["host", "mps2-an386"])
def test_clang_builds_it_without_a_warning(board, project):
    if shutil.which("clang") is None:
        pytest.skip("clang is not installed")
    folder, image, fixture = project
    options = ["CC=clang", f"BOARD={board}", f"BUILD=build/clang-{board}"]
    lines = sh("make", "-s", "-C", folder, "-j2", *options).splitlines()
    assert [line for line in lines if "/ld: " not in line] == []  # it warns of libc
    assert_same(said(folder, *options), expected(image, fixture))


def test_cmake_builds_it(project):
    if shutil.which("cmake") is None:
        pytest.skip("cmake is not installed")
    folder, image, fixture = project
    sh("cmake", "-S", folder, "-B", folder / "build/cmake")
    sh("cmake", "--build", folder / "build/cmake", "-j2")
    assert_same(sh(folder / "build/cmake/model"), expected(image, fixture))


def test_cpp_includes_the_header(project):
    if shutil.which("g++") is None:
        pytest.skip("g++ is not installed")
    folder, _, _ = project
    (folder / "use.cpp").write_text(
        '#include "model.h"\n'
        "int use(pt_error *error) { return model_open(error) || model_run(error); }\n"
        "float first() { return model_output_0()[0]; }\n")
    text = sh("g++", "-std=c++11", "-Wall", "-Wextra", "-Werror", "-c", "-o", folder / "use.o",
              f"-I{folder}/picotorch/core", folder / "use.cpp")
    assert text == ""


def test_an_error_is_printed(tmp_path):
    write(tmp_path, "mlp")
    path = tmp_path / "model_image.c"
    path.write_text(path.read_text().replace("0x314d5450", "0x304d5450"))
    build(tmp_path, *UNOPTIMISED)
    with pytest.raises(AssertionError, match=r"error 35, subject 0, index -1"):
        said(tmp_path, *UNOPTIMISED)


# ---- what is written

def test_quantization_is_in_the_header(tmp_path):
    image, _ = write(tmp_path, "int8_io_ds_cnn")
    scale, zero_point = open_program(image).method_meta("forward").input_quantization(0)
    text = (tmp_path / "model.h").read_text()
    assert np.float32(float(re.search(r"MODEL_INPUT_0_SCALE (\S+)f", text)[1])) == np.float32(scale)
    assert int(re.search(r"MODEL_INPUT_0_ZERO_POINT \(?(-?\d+)", text)[1]) == zero_point
    assert "#define MODEL_CONSTANT_INPUT0_SCALE " in text  # a constant is no method


def test_the_same_image_makes_the_same_files(project, tmp_path):
    folder, image, fixture = project
    c_project.write(image, tmp_path / "again", inputs=first_inputs(fixture))
    for path in (tmp_path / "again").rglob("*.*"):
        if path.is_file():
            assert path.read_bytes() == (folder / path.relative_to(tmp_path / "again")).read_bytes()


def test_files_that_may_be_changed_are_kept(tmp_path):
    image, _ = write(tmp_path, "mlp")
    (tmp_path / "main.c").write_text("// mine\n")
    (tmp_path / "picotorch" / "old.c").write_text("")
    (tmp_path / "model.c").write_text("")
    c_project.write(image, tmp_path)
    assert (tmp_path / "main.c").read_text() == "// mine\n"
    assert not (tmp_path / "picotorch" / "old.c").exists()
    assert (tmp_path / "model.c").read_text() != ""


def test_a_folder_of_something_else_is_refused(tmp_path):
    (tmp_path / "thesis.txt").write_text("precious")
    with pytest.raises(Error, match=r"AccessFailed .*has files that are not picotorch's; name a new"):
        write(tmp_path, "mlp")
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_folder_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(Error, match=r"AccessFailed .*file"):
        write(tmp_path / "file", "mlp")


@pytest.mark.parametrize("name", ["1st", "a b", "", "x;y"])
def test_a_name_that_c_has_not_is_refused(name, tmp_path):
    with pytest.raises(Error, match=r"InvalidArgument .*is not a C identifier"):
        write(tmp_path, "mlp", name=name)


def test_names_of_a_model_are_no_code(tmp_path):
    pte = fixture_store.load("mlp").pte.replace(b"forward", b"a\"#er;\\")
    c_project.write(compile_image(pte).data, tmp_path, note="b\n#error\\")
    build(tmp_path, *UNOPTIMISED)


def test_a_name_is_what_functions_begin_with(tmp_path):
    write(tmp_path, "mlp", name="gesture")
    assert "int gesture_run(pt_error *error);" in (tmp_path / "model.h").read_text()
    build(tmp_path, *UNOPTIMISED)


# ---- which sources

def test_each_kernel_is_found():
    for operator in known_operators():
        assert any(not path.startswith("core/") for path in c_sources.needed_files([operator]))


@pytest.mark.parametrize("board", full_board_names())
def test_sources_need_what_their_objects_need(board):
    """Names that an object asks for, of the firmware without MicroPython, and where they are."""
    folder = c_sources.KERNELS.parent / f"build/firmware/{board}-bare/kernels"
    sources = [path for path in c_sources.needed_files(list(known_operators()))
               if path.endswith(".c") and not path.startswith("core/")]
    listed = sh("arm-none-eabi-nm", "-A", "-g", *[folder / f"{path[:-2]}.o" for path in sources])
    rows = re.findall(r"(?m)^.*/kernels/(\S+)\.o:\s*(?:[0-9a-f]+ )?(\w) (\w+)$", listed)
    defined = {name: f"{path}.c" for path, kind, name in rows if kind != "U"}
    wanted = [(f"{path}.c", defined[name]) for path, kind, name in rows
              if kind == "U" and name in defined]
    assert len(wanted) > 100
    assert [pair for pair in wanted if pair[1] not in c_sources.needed_by(pair[0])] == []
