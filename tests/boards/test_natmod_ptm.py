"""Test the native module for compiled methods, fast and small: bytes, errors, heap and instructions."""

import functools
import json
import re
import subprocess
import sys

import pytest
from picotorch.compile import ptm_writer
from picotorch.firmware import native_module
from picotorch.host import twin
from picotorch.host.operators import needed_operators, supported_operators
from picotorch.measure import firmware_map
from support import budgets, fixture_store, stock
from support.tiers import SWEEP
from test_natmod import TARGETS

pytestmark = pytest.mark.thorough

# test_natmod.py runs programs on all targets.
SOME = ("unix", "mps2-an386-hard", "virt-rv32")
OF_EACH_KIND = [(arch, target) for arch, target in TARGETS
                if SWEEP or target in SOME or arch == "armv6m"]
SCRIPT = stock.REPOSITORY / "tests" / "boards" / "ports" / "ptms.py"
CORES = {"x64": None, "armv6m": "cortex-m0plus", "armv7m": "cortex-m3", "armv7emsp": "cortex-m4",
         "armv7emdp": "cortex-m7", "rv32imc": None}
LACKED = "dim_order_ops::_to_dim_order_copy.out"  # the compiled method of "casts" lacks it


def pte(name):
    return fixture_store.load(name).pte


@functools.cache
def ptm(name, core):
    """Compile a fixture to a .ptm file, with weights packed for a core or for none."""
    return ptm_writer.compile_ptm(pte(name), core=core).data


@functools.cache
def operators():
    return needed_operators({name: twin.open_program(pte(name)) for name in ("int8_ds_cnn", "ds_cnn")})


def kind(small):
    return native_module.Kind(frozenset({"images"}), small)


def files(arch, small):
    module = native_module.link(arch, operators(), kind(small))
    runtime = native_module.BUILD / "picotorch"
    left_out = native_module.left_out(kind(small))
    return {"_picotorch.mpy": module.read_bytes()} | {
        f"picotorch/{path.name}": path.read_bytes() for path in sorted(runtime.glob("*.mpy"))
        if path.stem not in left_out}


def models_for(arch, small):
    """Return .ptm files by name. The module runs the files named run_..., and rejects the others."""
    core = None if small else CORES[arch]
    other = "cortex-m0plus" if arch != "armv6m" else "cortex-m4"
    return {"run_int8": ptm("int8_ds_cnn", core),
            "run_fp32": ptm("ds_cnn", core),
            "for_another_core": ptm("int8_ds_cnn", other),
            "lacks_a_kernel": ptm("casts", None),
            "program": pte("int8_ds_cnn")}


def twin_lines(models, folder):
    arguments = []
    for name, data in models.items():
        (folder / name).write_bytes(data)
        arguments.append(f"{name}={folder / name}")
    return subprocess.check_output([sys.executable, SCRIPT, *arguments], text=True).splitlines()


@pytest.mark.parametrize("small", [False, True], ids=["fast", "small"])
@pytest.mark.reliability
@pytest.mark.parametrize(("arch", "target"), OF_EACH_KIND)
def test_runs_as_the_twin_to_the_byte(arch, target, small, tmp_path):
    """The test compares outputs of an int8 and an fp32 .ptm file, with the heap locked and after a
    failure. Each rejection has its own name. The remedies are in the texts, which a small module
    lacks."""
    stock.need(target)
    models = models_for(arch, small)
    lines = stock.run(target, SCRIPT.read_text(), files(arch, small), models, tmp_path)
    wanted = twin_lines(models, tmp_path)
    assert lines[: len(wanted)] == wanted
    assert sum(line.startswith("output ") for line in wanted) == 5
    assert wanted.count("None") == 5 and wanted.count("heap 0") == 6
    damaged, short, other, lacks, program = lines[len(wanted) :]
    again = "compile it again or copy it again"
    assert damaged.startswith("damaged InvalidProgram (0x23)") and damaged.endswith(again)
    assert short.startswith("short InvalidProgram (0x23): .ptm file: ")
    assert "1000B available" in short and short.endswith(again)
    assert other.startswith("for_another_core NotSupported (0x10): program")
    assert small or "compile it for this one, or with --optimize size" in other
    assert lacks.startswith("lacks_a_kernel OperatorMissing (0x14): ")
    assert f"operator {supported_operators()[LACKED].number}" in lacks
    assert program.startswith("program NotSupported (0x10): program: is a .pte file")
    assert "picotorch compile" in program and "picotorch natmod" in program


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """Build the package for a .ptm file of int8 ds_cnn, and return its folder and the report. The
    module is small unless the .ptm file has packed weights."""
    folder = tmp_path_factory.mktemp("package")
    (folder / "model.ptm").write_bytes(ptm("int8_ds_cnn", CORES["armv7emsp"]))
    (folder / "plain.ptm").write_bytes(ptm("int8_ds_cnn", None))
    made = {}

    def make(call, small):
        if small not in made:
            output = folder / f"small-{small}"
            model = "plain.ptm" if small else "model.ptm"
            status, out, _ = call("natmod", "--models", folder / model, "--arch", "armv7emsp",
                                  "--output", output, "--json")
            assert status == 0
            made[small] = output, json.loads(out)
        return made[small]

    return make


def test_a_module_for_a_ptm_file_is_small(call, package):
    output, fast = package(call, False)
    small = package(call, True)[1]
    assert fast["takes"] == small["takes"] == [".ptm"] and not fast["small"] and small["small"]
    budgets.check("natmod.one_ptm", fast["heap"]["armv7emsp"])
    budgets.check("natmod.one_ptm_small", small["heap"]["armv7emsp"])
    budgets.check("natmod.one_ptm_small", small["modules"]["armv7emsp"])
    assert fast["parts"]["armv7emsp"]["texts"] > 4_000 and "texts" not in small["parts"]["armv7emsp"]
    for entry in (fast, small):
        parts = entry["parts"]["armv7emsp"]
        assert 0.94 < sum(parts.values()) / entry["modules"]["armv7emsp"] < 1


def test_parts_that_ptm_files_do_not_use_are_not_copied(call, package):
    for small, left_out in ((False, {"data", "delegates"}), (True, {"data", "delegates", "tracer"})):
        output, entry = package(call, small)
        runtime = {path.stem for path in (native_module.BUILD / "picotorch").glob("*.mpy")}
        there = {path.stem for path in (output / "picotorch").glob("*.mpy")}
        assert runtime - there == left_out
        urls = json.loads((output / "armv7emsp" / "package.json").read_text())["urls"]
        assert {name for name, _ in urls} == {"_picotorch.mpy"} | {
            f"picotorch/{name}.mpy" for name in there}


def test_nothing_of_it_reads_pte_files(call, package):
    """The linker's map has no function that only .pte and .ptd files need."""
    package(call, False)
    module = native_module.link("armv7emsp", operators(), kind(False))
    sections = firmware_map.sections(module.with_suffix(".map"))
    linked = {path.rpartition("/")[2] for _, _, path in sections}
    assert linked & {"ptm.o", "ptm_load.o"}
    assert not linked & {"pte.o", "pte_load.o", "pte_state.o", "verify.o", "ptd.o"}


def test_kernels_are_the_same_with_and_without_pte_files():
    """The build takes kernels from the module for .pte files. So the option that removes .pte files
    must not change the code of kernels or of the headers that they include."""
    folder = stock.REPOSITORY / "kernels"
    public = {f"picotorch/{name}.h" for name in ("kernel", "schema", "config")}
    texts = {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*.*")
             if path.suffix in (".c", ".h", ".inc")}
    texts = {name: text for name, text in texts.items() if not name.startswith(
        ("core/", "include/picotorch/config.h", "include/picotorch/picotorch.h"))}
    included = {name for text in texts.values() for name in re.findall('#include ["<](.*)[">]', text)}
    assert {name for name in included if name.startswith(("core/", "picotorch/"))} == {
        "core/generated/operator_arguments.h", *public}
    asking = {name: re.findall("PT_.*_PROGRAMS.*", text) for name, text in texts.items()}
    # The module checks .ptm files, so the other half of this condition is true.
    assert {name: lines for name, lines in asking.items() if lines} == {
        "cortex_m/convolution.c": ["PT_HAS_PROGRAMS || PT_HAS_CHECKS ? convolve_plainly(&x)"]}


def test_a_ptm_file_that_the_module_would_reject_is_rejected_before(call, tmp_path):
    model = tmp_path / "m.ptm"
    model.write_bytes(ptm("int8_ds_cnn", "cortex-m4"))
    status, _, error = call("natmod", "--models", model, "--arch", "armv6m", "--output", tmp_path)
    assert status == 1 and "NotSupported (0x10)" in error and "that armv6m need" in error
    status, _, error = call("natmod", "--models", model, "--optimize", "size", "--output", tmp_path)
    assert status == 1 and "a small module needs; compile it with --optimize size" in error
    program = {"m": twin.open_program(ptm("int8_ds_cnn", "cortex-m4"))}
    assert native_module.arches_of(program) == ("armv7emsp", "armv7emdp")
    assert not native_module.is_small(program)
    plain = {"m": twin.open_program(ptm("int8_ds_cnn", None))}
    assert native_module.is_small(plain) and not native_module.is_small(plain | program)
    assert native_module.arches_of(plain, True) == tuple(native_module.ARCHES)
