"""Test C projects of models: each builds by itself, and its outputs are the twin's bytes."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from benchmark.bench_ptm import instructions_of
from picotorch import Error
from picotorch.boards.boards import board_names, full_board_names, load_board
from picotorch.cli import compile as commands
from picotorch.compile import fit_check
from picotorch.compile.ptm_writer import compile_ptm
from picotorch.host.operators import supported_operators
from picotorch.host.request import Request
from picotorch.host.twin import open_program
from picotorch.package import c_files, c_project, c_sources, license
from picotorch.run import running
from support import benchmark_store, budgets, fixture_store
from support.c_projects import (
    assert_same,
    expected,
    first_inputs,
    model_of,
    sh,
    words_of,
)
from support.calling import assert_error
from support.flatbuffer_builder import bool_value, int_value
from support.programs import call, plan, program, tensor

MODEL = "int8_ds_cnn"
OTHERS = ["dynamic_batch", "gru_stateful", "two_methods", "dynamic_unplanned_io",
          "scalar_inputs", "number_outputs", "complex_numbers"]
UNOPTIMISED = ["PT_SMALL_CFLAGS=-O0", "PT_FAST_CFLAGS=-O0"]  # compiles fastest
MAX_ABOVE = 0.15  # by which compile's estimate of the flash may exceed the real flash
PACKING = {"pt_pack_weights", "pt_pack_layer_dsp", "pt_pack_layer_v6m", "pt_pack_rows_dsp"}
MAX_OF_ANCHOR = 0.75  # of ExecuTorch's flash with the program; ours with packed weights
MEM = {"memcpy", "memmove", "memset", "memcmp"}
LIBC = {"malloc", "free", "calloc", "realloc", "printf", "puts", "_sbrk", "strlen", "abort", "exit"}


def write(folder, fixture_name, name="model"):
    """Write the project of a fixture."""
    fixture = fixture_store.load(fixture_name)
    model = model_of(fixture, name)
    c_project.write([model], folder)
    return model.ptm, fixture


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ds_cnn")
    return folder, *write(folder, MODEL)


def build(folder, *options):
    """Run the project's make. It is quiet, so any output is a warning."""
    assert sh("make", "-s", "-C", folder, "-j2", *options) == ""


def built_copy(project, folder, *options):
    """Copy the project with the objects of these options, so that only changed files are compiled
    again."""
    build(project[0], *options)
    return shutil.copytree(project[0], folder, dirs_exist_ok=True)


def said(folder, *options):
    return sh("make", "-s", "-C", folder, "run", *options)


@pytest.mark.parametrize("name", OTHERS)
def test_a_project_has_the_outputs_of_the_twin(name, tmp_path):
    ptm, fixture = write(tmp_path, name)
    build(tmp_path, *UNOPTIMISED)
    assert_same(said(tmp_path, *UNOPTIMISED), expected(ptm, fixture))


def test_it_runs_with_checks_and_texts(tmp_path):
    ptm, fixture = write(tmp_path, "mixed_unplanned")
    options = [*UNOPTIMISED, "CHECKS=1", "TEXTS=1"]
    build(tmp_path, *options)
    assert_same(said(tmp_path, *options), expected(ptm, fixture))
    path = tmp_path / "model/model_ptm.c"
    rows = path.read_text().split("\n")
    rows[9] = re.sub("0x........", "0x01234567", rows[9], count=1)  # a word of its records
    path.write_text("\n".join(rows))
    build(tmp_path, *options)
    with pytest.raises(AssertionError, match="its checksum is wrong: it is damaged"):
        said(tmp_path, *options)


# Each board has a different start-up. In make test, test_it_builds_without_optimisation builds for the
# other cores.
BUILT = ("host", "mps2-an386", "netduinoplus2")


@pytest.mark.parametrize("board", [
    pytest.param(board, marks=[] if board in BUILT else pytest.mark.thorough)
    for board in ("host", *board_names())])
def test_board_results_equal_the_twin(board, project):
    folder, ptm, fixture = project
    options = [f"BOARD={board}", "SMALL=1"]
    build(folder, *options)
    assert_same(said(folder, *options), expected(ptm, fixture))


def sizes(path):
    """Return the bytes of flash and of RAM."""
    text, data, bss = sh("arm-none-eabi-size", path).split("\n")[1].split()[:3]
    return int(text) + int(data), int(data) + int(bss)


@pytest.mark.thorough
def test_it_is_small(project):
    folder, ptm, _ = project
    build(folder, "BOARD=mps2-an386")
    build(folder, "BOARD=mps2-an386", "SMALL=1", "LTO=1")
    flash, ram = sizes(folder / "build/mps2-an386/model")
    (method,) = c_project.write([c_project.Model("model", ptm)], folder / "another").methods
    assert "#define PT_NO_DYNAMIC\n" in (folder / "picotorch/include/picotorch/config.h").read_text()
    budgets.check("c_project.flash", flash)
    budgets.check("c_project.ram_besides_memories", ram - sum(method.planned) - method.temp)
    budgets.check("c_project.flash_small", sizes(folder / "build/mps2-an386-small-lto/model")[0])


def test_link_time_optimisation_warns_of_nothing(tmp_path):
    ptm, fixture = write(tmp_path, "int8_convolutions")
    options = ["BOARD=mps2-an386", "LTO=1"]
    build(tmp_path, *options)
    assert_same(said(tmp_path, *options), expected(ptm, fixture))


@pytest.mark.thorough
def test_it_is_smaller_than_executorch_with_packed_weights(tmp_path):
    board = "mps2-an386"
    anchor = benchmark_store.FOLDER / "bench_anchor.json"
    flash = json.loads(anchor.read_text())["models"][MODEL][board]["flash"]
    model = benchmark_store.load(MODEL)
    program = model.pte(board)
    ptm = compile_ptm(program, (), load_board(board).core).data
    c_project.write([c_project.Model("model", ptm, {"forward": model.inputs})], tmp_path)
    build(tmp_path, f"BOARD={board}")
    assert sizes(tmp_path / f"build/{board}/model")[0] < MAX_OF_ANCHOR * (flash + len(program))
    info = open_program(ptm).method_meta("forward").output_tensor_meta(0)
    for options in ([f"BOARD={board}"], UNOPTIMISED):
        assert_same(said(tmp_path, *options), {"model_output_0": words_of(model.expected[0], info)})
    with pytest.raises(AssertionError, match="the weights are packed for cortex-m4"):
        build(tmp_path, "BOARD=mps2-an385")


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["int8_ds_cnn", "int8_resnet8", "int8_mobilenet_v1_025"])
def test_ram_besides_planned_and_temp_memory_is_small(name, call, tmp_path):
    """The RAM includes the memory of main.c. With the minimum temp memory, the whole RAM is smaller
    than ExecuTorch's."""
    board, file = "mps2-an386", tmp_path / "model.pte"
    file.write_bytes(benchmark_store.load(name).pte(board))
    status, out, _ = call("compile", file, "--keep-plan", "--c", tmp_path / "c", "--optimize",
                          "size", "--json")
    (method,) = json.loads(out)["models"][0]["methods"]
    need, folder = method["after"], tmp_path / "c"
    build(folder, f"BOARD={board}")
    _, ram = sizes(folder / f"build/{board}/model")
    assert status == 0
    budgets.check("c_project.ram_besides_memories", ram - sum(need["planned"]) - need["temp"])
    if name == "int8_ds_cnn":
        anchor = json.loads((benchmark_store.FOLDER / "bench_anchor.json").read_text())
        anchor = anchor["models"][name][board]
        maximum = (anchor["pool"] + anchor["planned"]
                   + max(anchor["stack_load"], anchor["stack_execute"]))
        result = running.run(Request(
            compile_ptm(file.read_bytes(), (), "cortex-m4").data, name,
            benchmark_store.load(name).inputs, temp_size=need["temp"], bare=True), board)
        assert ram + max(result.stack.values()) <= MAX_OF_ANCHOR * maximum


def test_compile_estimates_its_flash_and_its_stack(project):
    """The estimate excludes main.c and start-up code; the tolerance below allows for their bytes."""
    folder, ptm, fixture = project
    build(folder, "BOARD=mps2-an386")
    inputs = sum(array.nbytes for array in first_inputs(fixture)["forward"])
    is_there = sizes(folder / "build/mps2-an386/model")[0] - len(ptm) - inputs
    library = fit_check.library_of([ptm], "cortex-m4")
    assert 0.97 * is_there < library.flash < (1 + MAX_ABOVE) * is_there
    result = running.run(Request(ptm, "", first_inputs(fixture)["forward"], bare=True), "mps2-an386")
    assert max(result.stack.values()) <= library.stack < 2304


@pytest.mark.thorough
def test_code_and_ptm_file_share_the_flash_of_a_part(tmp_path):
    """The .ptm file alone fills more than half of netduinoplus2's flash."""
    model, board = benchmark_store.load("int8_deep_autoencoder"), "netduinoplus2"
    ptm = compile_ptm(model.pte("mps2-an386"), (), "cortex-m4").data
    assert len(ptm) > load_board(board).memories["flash_alias"].size / 2
    c_project.write([c_project.Model("model", ptm, {"forward": model.inputs}, board=board)], tmp_path)
    outputs = running.run(Request(ptm, "", model.inputs), running.HOST).outputs
    meta = open_program(ptm).method_meta("forward")
    assert_same(said(tmp_path, f"BOARD={board}"), {
        "model_output_0": words_of(outputs[0], meta.output_tensor_meta(0))})


@pytest.mark.thorough
@pytest.mark.parametrize("verification", ["MINIMAL", "RECORDS", "STRICT"])
def test_it_is_loaded_in_few_instructions(verification, project, tmp_path):
    kind, checks = ("", []) if verification == "MINIMAL" else ("-checks", ["CHECKS=1"])
    options = ["BOARD=mps2-an386", *checks]
    folder = built_copy(project, tmp_path, *options)
    path = folder / "model/model.c"
    path.write_text(path.read_text().replace("PT_VERIFY_STRICT", f"PT_VERIFY_{verification}"))
    build(folder, *options)
    program = folder / f"build/mps2-an386{kind}/model"
    start, count = instructions_of("model_open", program, load_board("mps2-an386"))
    print(f"{verification}: {start} + {count}")
    assert 20 < start and 1_000 < count
    budgets.check(f"c_project.open_{verification.lower()}", start + count)


@pytest.mark.parametrize("board", ["mps2-an386", "mps2-an385", "mps2-an385-m0plus", "mps3-an547"])
def test_it_builds_without_optimisation(board, tmp_path):
    fixture = fixture_store.load(MODEL)
    ptm = compile_ptm(fixture.pte, (), load_board(board).core).data
    c_project.write([c_project.Model("model", ptm, first_inputs(fixture))], tmp_path)
    options = [f"BOARD={board}", "PT_SMALL_CFLAGS=-O0", "PT_FAST_CFLAGS=-O0"]
    build(tmp_path, *options)
    assert_same(said(tmp_path, *options), expected(ptm, fixture))


# Lines of reset() in target_mps2.c: it clears no other memory.
CLEAR = "    for (uint64_t *to = bss_start;"
FILL = """    for (uint32_t *to = data_end; to < (uint32_t *)bss_start;) {
        *to++ = 0x7fc0a5a5;
    }
"""


@pytest.mark.parametrize("name", [
    MODEL, "unplanned_state", *[pytest.param(name, marks=pytest.mark.thorough)
                                for name in ("gru_stateful", "dynamic_batch")]])
def test_memory_that_start_up_does_not_clear_may_hold_anything(name, project, tmp_path):
    options = ["BOARD=mps2-an386", "SMALL=1"]
    built_copy(project, tmp_path, *options)
    ptm, fixture = write(tmp_path, name)
    path = tmp_path / "target_mps2.c"
    assert path.read_text().count(CLEAR) == 1
    path.write_text(path.read_text().replace(CLEAR, FILL + CLEAR))
    build(tmp_path, *options)
    assert_same(said(tmp_path, *options), expected(ptm, fixture))
    rows = sh("arm-none-eabi-size", "-A", tmp_path / "build/mps2-an386-small/model")
    left = {name: int(size) for name, size in re.findall(r"(?m)^(\.\w+) +(\d+)", rows)}
    methods = c_project.write([c_project.Model("model", ptm)], tmp_path / "another").methods
    planned = sum(sum(method.planned) for method in methods)
    assert left[".uncleared"] >= planned + max(method.temp for method in methods)
    assert left[".bss"] < budgets.BUDGETS["c_project.ram_besides_memories"] + 64


def test_another_linker_script_clears_all_memory(project, tmp_path):
    _, ptm, fixture = project
    options = ["BOARD=mps2-an386", "SMALL=1"]
    built_copy(project, tmp_path, *options)
    path = tmp_path / "mps2.ld"
    text = "".join(line for line in path.read_text().splitlines(True) if ".uncleared" not in line)
    assert text != path.read_text()
    path.write_text(text)
    build(tmp_path, *options)
    assert_same(said(tmp_path, *options), expected(ptm, fixture))
    listed = sh("arm-none-eabi-nm", tmp_path / "build/mps2-an386-small/model")
    at = {name: int(address, 16) for address, name in re.findall(r"(?m)^(\w+) \w (\w+)$", listed)}
    assert at["bss_start"] <= at["model_planned_0"] < at["bss_end"]


def test_a_changed_setting_rebuilds_the_files_that_use_it(project, tmp_path):
    folder = built_copy(project, tmp_path, "SMALL=1")
    before = (folder / "build/host-small/model").stat().st_size
    path = folder / "picotorch" / "include" / "picotorch" / "config.h"
    path.write_text(path.read_text().replace("#define PT_NO_CHECKS\n", ""))
    build(folder, "SMALL=1")
    assert (folder / "build/host-small/model").stat().st_size > before


def test_unchanged_files_are_not_compiled_again(tmp_path):
    """The test writes the project of another model to the same folder."""
    write(tmp_path, "mlp")
    build(tmp_path, *UNOPTIMISED)
    objects = tmp_path / "build/host/objects/picotorch/core"
    before = {path: path.stat().st_mtime_ns for path in objects.rglob("*.o")}
    ptm, fixture = write(tmp_path, "softmax_2x2")
    build(tmp_path, *UNOPTIMISED)
    assert [path.name for path in before if path.stat().st_mtime_ns != before[path]] == ["registry.o"]
    assert_same(said(tmp_path, *UNOPTIMISED), expected(ptm, fixture))


def test_it_needs_no_more_of_libc_than_memory_functions(project):
    folder, _, _ = project
    build(folder, "BOARD=mps2-an386")
    names = set(sh("arm-none-eabi-nm", folder / "build/mps2-an386/model").split())
    assert not names & LIBC
    assert names & MEM


@pytest.mark.parametrize("core", ["cortex-m4", "cortex-m0plus"])
def test_it_has_no_code_that_packs_weights(core, tmp_path):
    """The .ptm file contains the packed weights. Code that checks calls does not need to pack them
    either."""
    board = {"cortex-m4": "mps2-an386", "cortex-m0plus": "mps2-an385-m0plus"}[core]
    fixture = fixture_store.load("int8_convolutions")
    ptm = compile_ptm(fixture.pte, (), core).data
    c_project.write([c_project.Model("model", ptm, first_inputs(fixture))], tmp_path)
    build(tmp_path, f"BOARD={board}", "CHECKS=1")
    (linked,) = tmp_path.glob("build/*/model")
    names = {*sh("arm-none-eabi-nm", linked).split()}
    assert "pt_check_calls" in names and not names & PACKING
    assert not (tmp_path / "picotorch/arch/pack/dsp.c").exists()
    options = [f"BOARD={board}", "CHECKS=1"]
    assert_same(said(tmp_path, *options), expected(ptm, fixture))


@pytest.mark.thorough
@pytest.mark.parametrize("board", ["host", "mps2-an386"])
def test_clang_builds_it_without_a_warning(board, project):
    if shutil.which("clang") is None:
        pytest.skip("clang is not installed")
    folder, ptm, fixture = project
    options = ["CC=clang", f"BOARD={board}", f"BUILD=build/clang-{board}"]
    lines = sh("make", "-s", "-C", folder, "-j2", *options).splitlines()
    assert [line for line in lines if "/ld: " not in line] == []  # these lines are warnings about libc
    assert_same(said(folder, *options), expected(ptm, fixture))


def test_cmake_builds_it(project):
    if shutil.which("cmake") is None:
        pytest.skip("cmake is not installed")
    folder, ptm, fixture = project
    sh("cmake", "-S", folder, "-B", folder / "build/cmake")
    sh("cmake", "--build", folder / "build/cmake", "-j2")
    assert_same(sh(folder / "build/cmake/model"), expected(ptm, fixture))


def test_cpp_includes_the_header(project):
    if shutil.which("g++") is None:
        pytest.skip("g++ is not installed")
    folder, _, _ = project
    (folder / "use.cpp").write_text(
        '#include "model/model.h"\n'
        "int use(pt_error *error) { return model_open(error) || model_run(error); }\n"
        "float first() { return model_output_0()[0]; }\n")
    text = sh("g++", "-std=c++11", "-Wall", "-Wextra", "-Werror", "-c", "-o", folder / "use.o",
              f"-I{folder}/picotorch/include", folder / "use.cpp")
    assert text == ""


@pytest.mark.parametrize("name", ["dynamic_batch", "control_flow", "cond_on_a_size"])
def test_a_build_for_static_sizes_rejects_changing_sizes(name, tmp_path):
    write(tmp_path, name)
    path = tmp_path / "picotorch/include/picotorch/config.h"
    assert "#define PT_NO_DYNAMIC\n" not in path.read_text()
    path.write_text(path.read_text().replace("#define PT_NO_TRACER", "#define PT_NO_TRACER\n"
                                             "#define PT_NO_DYNAMIC", 1))
    build(tmp_path, *UNOPTIMISED)
    with pytest.raises(AssertionError, match="error 16, subject"):
        said(tmp_path, *UNOPTIMISED)


def test_an_error_is_printed(tmp_path):
    write(tmp_path, "mlp")
    path = tmp_path / "model/model_ptm.c"
    path.write_text(path.read_text().replace("0x354d5450", "0x304d5450"))
    build(tmp_path, *UNOPTIMISED)
    with pytest.raises(AssertionError, match=r"error 16, subject 40, index -1; make TEXTS=1 adds"):
        said(tmp_path, *UNOPTIMISED)


@pytest.mark.parametrize(("operator", "arguments"), [
    ("aten::exp.out", [0, 1]), ("aten::pow.Tensor_Tensor_out", [0, 0, 1]),
    ("aten::_softmax.out", [0, 2, 3, 1])])
def test_a_build_without_float64_reports_it(operator, arguments, tmp_path):
    """The error names the build, which has no functions of float64, and not the operators."""
    x, out = (tensor([4], offset, dtype=7) for offset in (0, 32))
    made = program(plan([x, out, int_value(0), bool_value(False)], [call(0, *arguments, arguments[-1])],
                        [operator], [0], [1], [64]))
    c_project.write([c_project.Model("model", compile_ptm(made).data)], tmp_path)
    options = [*UNOPTIMISED, "TEXTS=1", "CHECKS=1"]
    build(tmp_path, *options)
    said(tmp_path, *options)
    path = tmp_path / "picotorch/core/registry/operators.def"
    path.write_text("#define PT_NO_FLOAT64\n" + path.read_text())
    build(tmp_path, *options)
    with pytest.raises(AssertionError, match="error 16, subject .*: this build has no functions of "
                       "float64; use a build with them or change the model"):
        said(tmp_path, *options)


@pytest.mark.parametrize(("operator", "arguments"), [
    ("aten::add.out", [0, 0, 2, 1]), ("aten::neg.out", [0, 1]),
    ("aten::sum.IntList_out", [0, 5, 3, 4, 1]), ("aten::mm.out", [0, 0, 1])])
def test_a_build_without_complex_arithmetic_reports_it(operator, arguments, tmp_path):
    x = tensor([2, 2], 0, dtype=9)
    out = tensor([2] if "sum" in operator else [2, 2], 32, dtype=9)
    values = [x, out, int_value(1), bool_value(False), {"val": ("Null", {})},
              {"val": ("IntList", {"items": [2]})}]
    made = program(plan(values, [call(0, *arguments, arguments[-1])], [operator], [0], [1], [64]))
    c_project.write([c_project.Model("model", compile_ptm(made).data)], tmp_path)
    options = [*UNOPTIMISED, "TEXTS=1", "CHECKS=1"]
    build(tmp_path, *options)
    said(tmp_path, *options)
    path = tmp_path / "picotorch/core/registry/operators.def"
    path.write_text("#define PT_NO_COMPLEX\n" + path.read_text())
    build(tmp_path, *options)
    with pytest.raises(AssertionError, match="error 16, subject .*: this build has no complex "
                       "arithmetic; use a build with it or change the model"):
        said(tmp_path, *options)


@pytest.mark.thorough
@pytest.mark.parametrize("board", ["host", "mps2-an386"])
def test_models_share_the_library(board, tmp_path):
    """One firmware with two models, of different operators, has the outputs of each model alone."""
    models = {"keyword": "int8_ds_cnn", "two": "two_methods"}
    fixtures = {name: fixture_store.load(fixture) for name, fixture in models.items()}
    ptms = [model_of(fixture, name) for name, fixture in fixtures.items()]
    project = c_project.write(ptms, tmp_path)
    assert [method.prefix for method in project.methods] == ["keyword", "two_decode", "two_encode"]
    assert sorted(path.parent.name for path in tmp_path.glob("*/*_ptm.c")) == ["keyword", "two"]
    assert len(list(tmp_path.rglob("executor.c"))) == 1
    options = [f"BOARD={board}", *(UNOPTIMISED if board == "host" else [])]
    build(tmp_path, *options)
    wanted = {}
    for model in ptms:
        wanted |= expected(model.ptm, fixtures[model.name], model.name)
    assert_same(said(tmp_path, *options), wanted)


@pytest.mark.thorough
def test_models_share_temp_memory_on_request(tmp_path):
    """The models run in turn, and have the outputs of each model alone."""
    fixtures = {name: fixture_store.load(fixture)
                for name, fixture in (("keyword", MODEL), ("image", "int8_resnet8"))}
    models = [model_of(fixture, name) for name, fixture in fixtures.items()]
    temps = [method.temp for method in c_project.write(models, tmp_path).methods]
    build(tmp_path, "BOARD=mps2-an386")
    build(tmp_path, "BOARD=mps2-an386", "SHARE_TEMP=1")
    own, shared = (sizes(tmp_path / f"build/mps2-an386{kind}/models")[1] for kind in ("", "-shared"))
    assert abs(own - shared - min(temps)) <= 16 < min(temps)
    wanted = {}
    for model in models:
        wanted |= expected(model.ptm, fixtures[model.name], model.name)
    assert_same(said(tmp_path, "BOARD=mps2-an386", "SHARE_TEMP=1"), wanted)


@pytest.mark.parametrize("names", [("kws", "kws"), ("kws", "KWS")])
def test_two_models_with_one_name_are_rejected(names, tmp_path):
    models = [model_of(fixture_store.load("mlp"), name) for name in names]
    with pytest.raises(Error, match=f"InvalidArgument .*{names[1]}: is the name of two models; give"):
        c_project.write(models, tmp_path)


def test_a_model_and_a_method_with_one_name_are_rejected(tmp_path):
    """Functions of the method "encode" of the model "two" begin with two_encode."""
    models = [model_of(fixture_store.load(fixture), name)
              for fixture, name in (("two_methods", "two"), ("mlp", "two_encode"))]
    with pytest.raises(Error, match=r"InvalidArgument .*two_encode: is the name of two models"):
        c_project.write(models, tmp_path)


def test_a_model_that_is_left_out_is_removed(tmp_path):
    fixture = fixture_store.load("mlp")
    c_project.write([model_of(fixture, "one"), model_of(fixture, "two")], tmp_path)
    (tmp_path / "two" / "mine.h").write_text("// mine\n")
    c_project.write([model_of(fixture, "one")], tmp_path)
    assert [path.name for path in (tmp_path / "two").iterdir()] == ["mine.h"]
    assert len(list((tmp_path / "one").iterdir())) == 4


@pytest.mark.parametrize("board", ["host", "mps2-an386"])
def test_it_builds_in_a_folder_with_a_space(board, tmp_path):
    folder = tmp_path / "my models" / "a project"
    folder.mkdir(parents=True)
    ptm, fixture = write(folder, "mlp")
    build(folder, f"BOARD={board}", *UNOPTIMISED)
    assert_same(said(folder, f"BOARD={board}", *UNOPTIMISED), expected(ptm, fixture))


@pytest.mark.thorough
def test_cmake_builds_two_models_in_a_folder_with_a_space(tmp_path):
    if shutil.which("cmake") is None:
        pytest.skip("cmake is not installed")
    folder, fixture = tmp_path / "my models", fixture_store.load("mlp")
    models = [model_of(fixture, "one"), model_of(fixture, "two")]
    c_project.write(models, folder)
    sh("cmake", "-S", folder, "-B", folder / "build/c make")
    sh("cmake", "--build", folder / "build/c make", "-j2")
    assert_same(sh(folder / "build/c make/models"), {
        **expected(models[0].ptm, fixture, "one"), **expected(models[1].ptm, fixture, "two")})


def test_a_space_in_the_path_of_the_library_is_reported(tmp_path):
    """A Makefile of another project includes the library's."""
    folder = tmp_path / "my models"
    folder.mkdir()
    write(folder, "mlp")
    (folder / "use.mk").write_text("include picotorch/kernels.mk\nall:\n\techo $(PT_KERNELS_C)\n")
    text = sh("make", "-C", folder, "-f", "use.mk", status=2)
    assert "the path of kernels.mk has a space: make cannot use it" in text


# ---- written files

def test_quantization_is_in_the_header(tmp_path):
    ptm, _ = write(tmp_path, "int8_io_ds_cnn")
    scale, zero_point = open_program(ptm).method_meta("forward").input_quantization(0)
    text = (tmp_path / "model/model.h").read_text()
    assert np.float32(float(re.search(r"MODEL_INPUT_0_SCALE (\S+)f", text)[1])) == np.float32(scale)
    assert int(re.search(r"MODEL_INPUT_0_ZERO_POINT \(?(-?\d+)", text)[1]) == zero_point
    assert "#define MODEL_CONSTANT_INPUT0_SCALE " in text  # a constant is not a method


def test_the_same_ptm_file_makes_the_same_files(project, tmp_path):
    folder, ptm, fixture = project
    c_project.write([model_of(fixture)], tmp_path / "again")
    for path in (tmp_path / "again").rglob("*.*"):
        if path.is_file():
            assert path.read_bytes() == (folder / path.relative_to(tmp_path / "again")).read_bytes()


def test_the_command_writes_a_project_of_two_models(call, tmp_path):
    for name in ("kws", "more faces"):
        shutil.copy(fixture_store.load("mlp").path, tmp_path / f"{name}.pte")
    models = [tmp_path / "kws.pte", tmp_path / "more faces.pte"]
    status, out, _ = call("compile", *models, "--c", tmp_path / "a", "--json")
    assert status == 0
    found = json.loads(out)
    assert [entry["model"] for entry in found["models"]] == list(map(str, models))
    assert found["output"] == str(tmp_path / "a") and found["kept"] == []
    text = (tmp_path / "a" / "README.md").read_text()
    assert "`kws/`, `more_faces/`" in text and "| more_faces_run |" in text
    status, out, _ = call("compile", *models, "--c", tmp_path / "b", "--name", "one", "--name", "two")
    assert status == 0
    for step in ("Planning memory", "Loading, and", "Comparing", "Measuring"):
        assert [f"{model}: {step}" in out for model in models] == [True, True]
    for heading in (f"{models[1]}: ", f"Flash of {models[1]}", f"RAM of {models[1]}",
                    f"{tmp_path}/b/two: "):
        assert heading in out
    assert sorted(path.name for path in (tmp_path / "b").iterdir() if path.is_dir()) == [
        "one", "picotorch", "two"]
    assert_error(call("compile", *models, "--c", tmp_path / "c", "--name", "one", "--name", "one"),
                 "InvalidArgument", "one: is the name of two models; give each its own --name")
    assert not (tmp_path / "c").exists()


def project_of(folder, *names):
    """Write a project of models with these names, and return the kept files."""
    fixture = fixture_store.load("mlp")
    return c_project.write([model_of(fixture, name) for name in names], folder).kept


def test_files_of_the_library_and_of_models_are_written_again(tmp_path):
    project_of(tmp_path, "model")
    (tmp_path / "picotorch" / "include" / "picotorch" / "config.h").write_text("")
    (tmp_path / "model/model.c").write_text("")
    assert project_of(tmp_path, "model") == []
    assert (tmp_path / "picotorch" / "include" / "picotorch" / "config.h").read_text() != ""
    assert (tmp_path / "model/model.c").read_text() != ""


def contents(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*")
            if path.is_file()}


@pytest.mark.parametrize("path", [
    "audio/audio.c", "audio/audio.h", "audio/audio_ptm.c", "audio/audio_sample.h", "audio",
    "picotorch/mine.c", "picotorch/core/mine.h", "picotorch/arch/new/mine.txt", "picotorch/.mine",
    "main.c.new", "README.md.new", "Makefile.new"])
def test_a_file_of_the_users_in_the_way_is_rejected_before_the_work(path, call, monkeypatch, tmp_path):
    """Both the command and the function under it reject the file by its name, and change nothing."""
    model, folder = tmp_path / "audio.pte", tmp_path / "project"
    shutil.copy(fixture_store.load("mlp").path, model)
    project_of(folder, "one")
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_text("mine\n")
    before = contents(folder)
    with monkeypatch.context() as patch:
        patch.setattr(commands.compiling, "compile_ptm", lambda *_: pytest.fail("it was compiled"))
        wanted = "audio/audio.c, " if path == "audio" else f"would replace: {path}; move them"
        assert_error(call("compile", model, "--c", folder), "AccessFailed",
                     f"{folder}: has files that picotorch did not write", wanted)
    with pytest.raises(Error, match="has files that picotorch did not write"):
        project_of(folder, "audio")
    assert contents(folder) == before
    (folder / path).unlink()
    for _ in range(2):
        assert call("compile", model, "--c", folder)[0] == 0
    assert "audio/audio.c" in contents(folder) and "one/one.c" not in contents(folder)


@pytest.mark.parametrize("path", ["main.c", "Makefile", "README.md", "LICENSE", "mps2.ld"])
def test_a_page_and_a_makefile_of_the_users_own_stay(path, tmp_path):
    project_of(tmp_path, "one")
    (tmp_path / path).write_text("mine\n")
    project_of(tmp_path, "two")
    assert (tmp_path / path).read_text() == "mine\n"


def test_changed_files_of_an_omitted_model_are_kept(tmp_path):
    project_of(tmp_path, "one", "two")
    (tmp_path / "two/two.c").write_text("mine\n")
    project_of(tmp_path, "one")
    assert [path.name for path in (tmp_path / "two").iterdir()] == ["two.c"]


def test_a_folder_in_the_way_of_a_file_is_rejected(tmp_path):
    project_of(tmp_path, "one")
    (tmp_path / "main.c").unlink()
    (tmp_path / "main.c" / "mine").mkdir(parents=True)
    before = contents(tmp_path)
    with pytest.raises(Error, match="would replace: main.c; move them"):
        project_of(tmp_path, "two")
    assert contents(tmp_path) == before


def test_a_call_after_an_interrupted_one_succeeds(monkeypatch, tmp_path):
    project_of(tmp_path, "one")
    write_file, left = c_files.write_file, [20]

    def write_some(*arguments):
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt
        write_file(*arguments)

    for _ in range(2):
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            left[0] = 20
            patch.setattr(c_files, "write_file", write_some)
            fixture = fixture_store.load("int8_ds_cnn")
            c_project.write([model_of(fixture, "two")], tmp_path)
    assert project_of(tmp_path, "two") == []
    assert "two/two.c" in contents(tmp_path) and "one/one.c" not in contents(tmp_path)


def test_a_file_as_it_was_written_is_written_for_another_model(tmp_path):
    project_of(tmp_path, "one")
    assert project_of(tmp_path, "two") == []
    assert not (tmp_path / "one").exists() or not list((tmp_path / "one").iterdir())
    assert '#include "two/two.h"' in (tmp_path / "main.c").read_text()
    build(tmp_path, *UNOPTIMISED)
    assert (tmp_path / "build/host/two").exists()


def test_a_file_that_the_user_changed_is_kept_and_the_new_one_is_beside_it(tmp_path):
    main, new = tmp_path / "main.c", tmp_path / "main.c.new"
    project_of(tmp_path, "one")
    main.write_text("// mine\n" + main.read_text())
    mine = main.read_text()
    assert project_of(tmp_path, "one") == [] and not new.exists()  # main.c already is for these models
    for _ in range(2):  # until the user removes the new file
        assert project_of(tmp_path, "two") == ["main.c"]
        assert main.read_text() == mine and '#include "two/two.h"' in new.read_text()
    main.write_text("// mine\n" + new.read_text())
    new.unlink()
    assert project_of(tmp_path, "two") == [] and not new.exists()
    build(tmp_path, *UNOPTIMISED)


def test_a_new_file_that_the_user_moved_is_written_again(tmp_path):
    project_of(tmp_path, "one")
    (tmp_path / "Makefile").write_text("# mine\n")
    assert project_of(tmp_path, "two") == ["Makefile"]
    (tmp_path / "Makefile.new").rename(tmp_path / "Makefile")
    assert project_of(tmp_path, "three") == []
    build(tmp_path, *UNOPTIMISED)


def test_the_command_lists_kept_files(call, tmp_path):
    model = tmp_path / "kws.pte"
    shutil.copy(fixture_store.load("mlp").path, model)
    arguments = ["compile", model, "--c", tmp_path / "project"]
    assert "was kept" not in call(*arguments)[1]
    main = tmp_path / "project" / "main.c"
    main.write_text("// mine\n")
    assert json.loads(call(*arguments, "--name", "two", "--json")[1])["kept"] == ["main.c"]
    out = call(*arguments, "--name", "two")[1]
    assert (f"{main} has your changes and was kept: merge {main}.new, which fits this model, into it, "
            f"and remove {main}.new.") in out


def test_no_file_outside_of_the_folder_is_removed(tmp_path):
    folder = tmp_path / "project"
    project_of(folder, "one")
    outside = tmp_path / "precious.txt"
    outside.write_text("precious")
    with (folder / "picotorch/written.sha256").open("a") as file:
        file.write(f"{'0' * 64}  ../precious.txt\n{'0' * 64}  {outside}\n")
    project_of(folder, "two")
    assert outside.exists()


@pytest.mark.thorough
def test_files_of_the_users_own_are_not_compiled(tmp_path):
    """The files are named like C files of .ptm files, in folders beside those of models."""
    project_of(tmp_path, "one")
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "logo_ptm.c").write_text("#error mine\n")
    build(tmp_path, *UNOPTIMISED)
    if shutil.which("cmake") is not None:
        sh("cmake", "-S", tmp_path, "-B", tmp_path / "build/cmake")
        sh("cmake", "--build", tmp_path / "build/cmake", "-j2")


@pytest.mark.parametrize(("options", "board"), [
    (["--core", "cortex-m0plus"], "mps2-an385-m0plus"), (["--chip", "rp2040"], "mps2-an385-m0plus"),
    (["--core", "cortex-m55"], "mps3-an547"), (["--board", "netduinoplus2"], "netduinoplus2"),
    ([], "mps2-an386")])
def test_the_readme_names_a_board_that_runs_the_ptm_file(options, board, call, tmp_path):
    status, _, _ = call("compile", fixture_store.load("mlp").path, "--c", tmp_path / "p", *options)
    assert status == 0
    text = (tmp_path / "p" / "README.md").read_text()
    assert re.findall(r"make run BOARD=(\S+)", text) == [board]
    assert f"a {load_board(board).core} in QEMU" in text
    assert "make TEXTS=1" in text


def test_a_folder_of_something_else_is_rejected_before_the_work(call, monkeypatch, tmp_path):
    def works(*arguments):
        raise AssertionError("it was compiled")

    monkeypatch.setattr(commands.compiling, "compile_ptm", works)
    (tmp_path / "thesis.txt").write_text("precious")
    for folder, text in ((tmp_path, "has files that are not picotorch's; name a new folder"),
                         (tmp_path / "thesis.txt" / "project", "Not a directory")):
        assert_error(call("compile", fixture_store.load("mlp").path, "--c", folder), "AccessFailed",
                     f"{folder}: {text}")
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_folder_of_something_else_is_rejected(tmp_path):
    (tmp_path / "thesis.txt").write_text("precious")
    with pytest.raises(Error, match=r"AccessFailed .*has files that are not picotorch's; name a new"):
        write(tmp_path, "mlp")
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_package_without_its_license_is_rejected(monkeypatch, tmp_path):
    monkeypatch.setattr(license.metadata.PathDistribution, "read_text", lambda self, name: None)
    with pytest.raises(Error, match="licenses/LICENSE: is not in the installed package; install"):
        write(tmp_path, "mlp")


def test_a_folder_that_cannot_be_written_is_rejected(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(Error, match=r"AccessFailed .*file"):
        write(tmp_path / "file", "mlp")


@pytest.mark.parametrize("name", ["pt", "PT_kernel", "picotorch", "build", "Makefile", "LICENSE", "all",
                                  "target", "string", "kws_ptm"])
def test_a_name_of_the_project_is_rejected(name, tmp_path):
    with pytest.raises(Error, match=r"InvalidArgument .*every project has already; give the model"):
        write(tmp_path, "mlp", name=name)


@pytest.mark.parametrize(("path", "name"), [
    ("models/kws.pte", "kws"), ("int8-kws (1).pte", "int8_kws__1_"), ("2nd.pte", "model_2nd"),
    ("modèle.pte", "mod_le"), (".pte", "model__pte"),
    ("pt_kws.pte", "model_pt_kws"), ("kws_ptm.pte", "model_kws_ptm_model"),
    ("all.pte", "model_all")])
def test_the_name_of_a_file_becomes_one_of_c(path, name):
    assert c_project.name_of(Path(path)) == name


@pytest.mark.parametrize("name", ["1st", "a b", "", "x;y"])
def test_a_name_that_is_invalid_in_c_is_rejected(name, tmp_path):
    with pytest.raises(Error, match=r"InvalidArgument .*is not a C identifier"):
        write(tmp_path, "mlp", name=name)


def test_names_of_a_model_are_no_code(tmp_path):
    pte = fixture_store.load("mlp").pte.replace(b"forward", b"a\"#er;\\")
    c_project.write([c_project.Model("model", compile_ptm(pte).data, note="b\n#error\\")], tmp_path)
    build(tmp_path, *UNOPTIMISED)


def test_names_of_functions_begin_with_the_name(tmp_path):
    write(tmp_path, "mlp", name="gesture")
    assert "int gesture_run(pt_error *error);" in (tmp_path / "gesture/gesture.h").read_text()
    build(tmp_path, *UNOPTIMISED)


# ---- which sources

def test_each_kernel_is_found():
    for operator in supported_operators():
        assert any(not path.startswith("core/") for path in c_sources.needed_files([operator]))


@pytest.mark.thorough
@pytest.mark.parametrize("board", full_board_names())
def test_needed_sources_match_the_symbols_of_objects(board):
    """The test takes the undefined symbols of each object of the firmware without MicroPython, and the
    sources that define them."""
    folder = c_sources.KERNELS.parent / f"build/firmware/{board}-bare/kernels"
    sources = [path for path in c_sources.needed_files(list(supported_operators()))
               if path.endswith(".c") and not path.startswith("core/")]
    listed = sh("arm-none-eabi-nm", "-A", "-g", *[folder / f"{path[:-2]}.o" for path in sources])
    rows = re.findall(r"(?m)^.*/kernels/(\S+)\.o:\s*(?:[0-9a-f]+ )?(\w) (\w+)$", listed)
    defined = {name: f"{path}.c" for path, kind, name in rows if kind != "U"}
    wanted = [(f"{path}.c", defined[name]) for path, kind, name in rows
              if kind == "U" and name in defined]
    assert len(wanted) > 100
    assert [pair for pair in wanted if pair[1] not in c_sources.needed_by(pair[0])] == []
