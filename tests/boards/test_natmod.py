"""Test the native module on stock MicroPython: bytes, errors, heap and instructions."""

import json
import runpy
import shutil
import subprocess
import sys

import pytest
from picotorch.compile import ptm_writer
from picotorch.firmware import native_module
from picotorch.host.operators import common_operators, needed_operators, supported_operators
from picotorch.host.twin import open_program
from picotorch.measure import object_files
from support import budgets, built_ports, fixture_store, stock

pytestmark = pytest.mark.thorough

NAMES = ("int8_ds_cnn", "ds_cnn")
TARGETS = (("x64", "unix"), ("armv6m", "mps2-an385"), ("armv7m", "mps2-an385"),
           ("armv7emsp", "mps2-an386"), ("armv7m", "mps2-an386"), ("armv7emsp", "mps2-an386-hard"),
           ("armv7emdp", "mps2-an500"), ("rv32imc", "virt-rv32"))
SCRIPTS = stock.REPOSITORY / "tests" / "boards" / "ports"


@pytest.fixture(scope="module")
def models():
    return {name: fixture_store.load(name).pte for name in NAMES}


def files(arch, small=False):
    return files_of(arch, native_module.Kind(small=small))


def files_of(arch, kind, operators=None):
    """Return the module, with the kernels of these operators (None: of all), and the runtime."""
    module = native_module.link(arch, operators, kind)
    runtime = native_module.BUILD / "picotorch"
    left_out = native_module.left_out(kind)
    return {"_picotorch.mpy": module.read_bytes()} | {
        f"picotorch/{path.name}": path.read_bytes() for path in sorted(runtime.glob("*.mpy"))
        if path.stem not in left_out}


def run(arch, target, script, models, folder, small=False):
    return run_script(arch, target, (SCRIPTS / script).read_text(), models, folder, small)


def run_script(arch, target, script, models, folder, small=False, options=()):
    stock.need(target)
    return stock.run(target, script, files(arch, small), models, folder, options)


def without_texts(line):
    """Return a line with an error as a small module prints it: name, number, subject and sizes."""
    return line.partition("B available")[0]


@pytest.mark.parametrize("small", [False, True], ids=["fast", "small"])
@pytest.mark.parametrize(("arch", "target"), TARGETS)
def test_runs_as_the_twin_to_the_byte(arch, target, small, models, tmp_path):
    """The test compares outputs and pools of an int8 and an fp32 model with the heap locked, and after
    a failure."""
    lines = run(arch, target, "models.py", models, tmp_path, small)
    wanted = built_ports.twin_lines(NAMES)
    if small:
        lines, wanted = ([without_texts(line) for line in both] for both in (lines, wanted))
    assert lines == wanted


@pytest.mark.parametrize(("arch", "target", "is_ptm"), [("armv6m", "microbit", False),
                                                           ("armv7m", "netduino2", True)])
def test_a_small_machine_runs_it_from_flash(arch, target, is_ptm, models, tmp_path):
    """A Cortex-M0 with 256 KB of RAM runs a .pte file of int8 ds_cnn. A Cortex-M3 with 128 KB has no
    room for .pte files, and runs a .ptm file. Both read the module from a ROMFS."""
    stock.need(target)
    model = models["int8_ds_cnn"]
    if is_ptm:
        model = ptm_writer.compile_ptm(model, core=None).data
    programs = {"": open_program(model)}
    script = (SCRIPTS / "models.py").read_text().replace('"int8_ds_cnn", "ds_cnn"', '"int8_ds_cnn",')
    script = script.replace("bytearray(64000)", "bytearray(16000)")
    kind = native_module.kind_for(programs, small=True)
    lines = stock.run(target, script, files_of(arch, kind, needed_operators(programs)),
                      {"int8_ds_cnn": model}, tmp_path)
    (tmp_path / "model").write_bytes(model)
    (tmp_path / "twin.py").write_text(script)
    wanted = subprocess.check_output([sys.executable, tmp_path / "twin.py",
                                      f"int8_ds_cnn={tmp_path / 'model'}"], text=True).splitlines()
    assert len(lines) == 11 and sum(line.startswith("output ") for line in lines) == 2
    assert [without_texts(line) for line in lines] == [without_texts(line) for line in wanted]


@pytest.mark.parametrize(("arch", "target"), (TARGETS[0], TARGETS[3], TARGETS[-1]))
def test_errors_leave_everything_usable(arch, target, models, tmp_path):
    """The errors are bad files, 200 refusals whose tracebacks grow on an open heap, a stack overflow,
    and scheduled callbacks, which run while the method runs."""
    lines = run(arch, target, "native_module.py", models, tmp_path)
    no_number = "InvalidArgument (0x12): input 0: is a tensor; give its data"
    assert lines == [
        "damaged InvalidProgram (0x23): program: no file identifier ET12: not a .pte file; export "
        "the program again or copy it again",
        "short InvalidProgram (0x23): program: 14912B requested, 1000B available: the header claims "
        "more than the file has; export the program again or copy it again",
        "refused 200 times",
        "deep MemoryAllocationFailed (0x21): stack: 2304B requested, 0B available; call from fewer "
        "functions or give the firmware more",
        "afterwards True",
        "inside InvalidState (0x02): method: is executing; unload it afterwards",
        "seen [False, True, True, True]",
        "the same True",
        "no exception",
        *(f"{number} {no_number}" for number in (1 << 62, -(1 << 63), 1 << 63, 1 << 70, 3)),
        "name ['forward']",
    ]


def test_a_module_for_another_core_is_rejected(models, tmp_path):
    script = """
try:
    import _picotorch
except ValueError as error:
    print(error)
"""
    wrong = {"_picotorch.mpy": stock.make_module("armv7emsp").read_bytes()}
    assert stock.run("mps2-an385", script, wrong, {}, tmp_path) == ["incompatible .mpy arch"]


# ---- picotorch natmod, mip and install.py


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """Build the package for int8 ds_cnn, and return its folder and the report."""
    output = tmp_path_factory.mktemp("package")
    entry = {}

    def make(call):
        if not entry:
            model = stock.REPOSITORY / "tests" / "fixtures" / "int8_ds_cnn" / "model.pte"
            status, out, _ = call("natmod", "--models", model, "--arch", "armv7emsp", "--arch", "x64",
                                  "--output", output, "--json")
            assert status == 0
            entry.update(json.loads(out))
        return output, entry

    return make


def test_the_module_of_one_model_is_small(call, package):
    output, entry = package(call)
    assert len(entry["operators"]) == 8
    assert entry["modules"]["armv7emsp"] == (output / "armv7emsp" / "_picotorch.mpy").stat().st_size
    budgets.check("natmod.one_model", entry["heap"]["armv7emsp"])
    budgets.check("natmod.fast", native_module.heap_of(stock.make_module("armv7emsp")))
    parts = entry["parts"]["armv7emsp"]
    assert set(parts) == {"binding", "library", "kernels", "compiler's library", "texts"}
    assert all(parts.values()) and 0.95 < sum(parts.values()) / entry["modules"]["armv7emsp"] < 1
    mip = json.loads((output / "armv7emsp" / "package.json").read_text())
    assert ["_picotorch.mpy", "_picotorch.mpy"] in mip["urls"]
    for name, path in mip["urls"]:
        assert (output / "armv7emsp" / path).is_file() and name.endswith(".mpy")


def test_the_module_with_all_kernels_is_small(call, tmp_path):
    """--optimize speed builds the fast module. Each report states the cost of the choice."""
    made = {}
    for options in ([], ["--optimize", "speed"]):
        status, out, _ = call("natmod", "--arch", "armv7emsp", "--output", tmp_path, *options)
        module = tmp_path / "armv7emsp" / "_picotorch.mpy"
        assert status == 0 and f"{native_module.SMALL_TAKES} times as many instructions" in out
        made[not options] = module.stat().st_size, out
        names = {name for name in supported_operators() if name.encode() + b"\0" in module.read_bytes()}
        assert names == common_operators()
        assert f"kernels of {len(names)} of {len(supported_operators())} operators" in out
    (small, of_small), (fast, of_fast) = made[True], made[False]
    assert small < fast
    budgets.check("natmod.small", small)
    assert "Small: errors have no texts" in of_small and "speed builds the fast one" in of_small
    assert "Fast. With --optimize size errors have no texts" in of_fast


def test_cost_of_a_small_module(models, tmp_path):
    """The small module costs the instructions that the command states for int8 ds_cnn."""
    script = """
import uctypes
from picotorch import (
    BufferDataLoader, HierarchicalAllocator, MemoryAllocator, MemoryManager, Method, Program)
from picotorch_models import int8_ds_cnn

timer = uctypes.struct(0x40000000, {"control": uctypes.UINT32, "value": 4 | uctypes.UINT32,
                                    "reload": 8 | uctypes.UINT32})
timer.reload = timer.value = 0xFFFFFFFF
timer.control = 1
program = Program.load(BufferDataLoader(int8_ds_cnn))
meta = program.method_meta("forward")
planned = HierarchicalAllocator([bytearray(meta.memory_planned_buffer_size(0))])
method = Method(MemoryManager(MemoryAllocator(bytearray(4096)), planned,
                              MemoryAllocator(bytearray(4096))))
method.load(program, "forward")
method.set_input(bytearray(meta.input_tensor_meta(0).nbytes()), 0)
start = timer.value
method.execute()
print((start - timer.value) * 40 // 64)  # 40 ns a tick, 64 ns an instruction
"""
    fast, small = (int(run_script("armv7emsp", "mps2-an386-hard", script, models, tmp_path, is_small,
                                  ["-icount", "shift=6"])[0]) for is_small in (False, True))
    assert 3_000_000 < fast < 3_600_000
    assert abs(small / fast / native_module.SMALL_TAKES - 1) < 0.03, (fast, small)


def test_texts_of_errors_are_read_from_the_file(models, tmp_path):
    """Without the file, an error has its name, number, subject and sizes."""
    script = """
import os
import _picotorch
from picotorch import BufferDataLoader, Error, Program
from picotorch_models import ds_cnn

def say(file):
    try:
        Program.load(BufferDataLoader(file))
    except Error as error:
        print(error)

say(bytes(64))
say(ds_cnn[:1000])
os.rename(_picotorch.__file__, _picotorch.__file__ + ".moved")
say(bytes(64))
say(ds_cnn[:1000])
"""
    sizes = "16168B requested, 1000B available"
    again = "; export the program again or copy it again"
    assert run_script("x64", "unix", script, models, tmp_path) == [
        f"InvalidProgram (0x23): program: no file identifier ET12: not a .pte file{again}",
        f"InvalidProgram (0x23): program: {sizes}: the header claims more than the file has{again}",
        f"InvalidProgram (0x23): program{again}",
        f"InvalidProgram (0x23): program: {sizes}{again}",
    ]


def test_the_module_reads_memory_only():
    """A literal in a function stays in the file, so it must be a text of an error, which only people
    read. C code reads arrays: static const char name[] = "trunc"."""
    folder = stock.make_module("armv7emsp").parent
    found = [(path.name, text) for path in sorted((folder / "kernels").rglob("*.o"))
             for section in object_files.read_objects(path)[0].sections.values()
             if native_module.TEXT.match(section.name) for text in section.data.decode().split("\0")]
    assert len(found) > 400
    assert [(name, text) for name, text in found if text and " " not in text] == []
    texts = (folder / "_picotorch.mpy").read_bytes()
    left_out, *texts = texts[-int.from_bytes(texts[-4:], "little") : -4].split(b"\0")
    assert {b"PTM", b"FLOAT64", b"LINALG"} < {*left_out.split()}
    assert len(texts) > 300 and max(map(len, texts)) < 160


def install(folder, output, *options):
    """Run install.py on the unix port, and return its output."""
    folder.mkdir()
    return built_ports.run_unix(stock.build("unix"), *options, "-c", f"""
import sys
sys.path[:] = [{str(output)!r}]
import install
try:
    install.install({str(output)!r}, {str(folder / "lib")!r})
except RuntimeError as error:
    print("refused:", error)
""")


def test_install_copies_a_module_that_fits_and_it_runs(call, package, models, tmp_path):
    output, _ = package(call)
    board = tmp_path / "board"
    assert install(board, output) == [f"picotorch for x64 is in {board}/lib"]
    copied = {path.relative_to(board / "lib").as_posix(): path.read_bytes()
              for path in (board / "lib").rglob("*.mpy")}
    script = (SCRIPTS / "models.py").read_text().replace('"int8_ds_cnn", "ds_cnn"', '"int8_ds_cnn",')
    lines = stock.run("unix", script, copied, models, tmp_path / "run")
    assert lines == built_ports.twin_lines(NAMES)[: len(lines)] and len(lines) == 11


def test_install_rejects_a_module_that_does_not_fit_before_it_copies(call, package, tmp_path):
    output, _ = package(call)
    lines = install(tmp_path / "board", output, "-X", "heapsize=100K")
    assert len(lines) == 1 and lines[0].startswith("refused: needs ")
    assert "KB of heap, " in lines[0] and lines[0].endswith(
        " KB free: build with --optimize size, or flash a firmware that has picotorch")
    assert not (tmp_path / "board" / "lib").exists()


@pytest.mark.parametrize(("programs", "small", "remedy"), [
    (False, False, "build with --models"), (False, True, "build with --models"),
    (True, True, native_module.FIRMWARE)])
def test_the_remedy_of_install_is_a_smaller_module(call, package, programs, small, remedy, tmp_path):
    """The remedy is never an option that the module was built with."""
    built, _ = package(call)
    shutil.copytree(built, tmp_path / "package")
    given = native_module._remedy(native_module.Kind(small=small), programs)
    native_module.write_package(tmp_path / "package", ["x64"], remedy=given)
    assert f'REMEDY = "{remedy}"\n' in (tmp_path / "package" / "install.py").read_text()


@pytest.mark.parametrize(("mpy", "words"), [
    (6 | 2 << 8 | 7 << 10, "1.23 or newer is needed: the module is .mpy 6.3, this one loads .mpy 6.2"),
    (7 | 7 << 10, "1.23 to the last one with .mpy 6.3 is needed: .*, this one loads .mpy 7.0"),
    (6 | 7 << 10, "loads .mpy 6.0"), (5 | 3 << 8 | 7 << 10, "loads .mpy 5.3"),
    (6 | 3 << 8, "this MicroPython loads no native modules"),
    (6 | 3 << 8 | 11 << 10, "no module for architecture 11 here"),
])
def test_install_rejects_a_micropython_that_cannot_load_the_module(call, package, mpy, words):
    output, _ = package(call)
    module_for = runpy.run_path(str(output / "install.py"))["module_for"]
    with pytest.raises(RuntimeError, match=words):
        module_for(mpy)
    assert module_for(native_module.MPY | 7 << 10)[0] == "armv7emsp"


def test_install_selects_the_requested_version():
    letter, version, feature = stock.make_module("armv7emsp").read_bytes()[:3]
    assert (letter, version | (feature & 3) << 8) == (ord("M"), native_module.MPY)


@pytest.mark.parametrize("path, wanted", [
    (["", ".frozen", "/lib"], "/lib"),
    (["", ".frozen", "/rom", "/rom/lib", "/flash", "/flash/lib"], "/flash/lib"),
    (["/flash", "/flash/lib", "/sd", "/sd/lib"], "/flash/lib"),
    ([""], "/lib"),
])
def test_install_finds_the_folder_of_libraries(path, wanted):
    names = {"__name__": "install"}
    exec(native_module.installer(), names)
    assert names["library"](path) == wanted
