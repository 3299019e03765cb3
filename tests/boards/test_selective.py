"""Test a firmware with the kernels and the parts of the runtime that some models need. Test its
contents, and that nothing else changes."""

import collections
import ctypes
import dataclasses
import json
import random
import re
import subprocess
from pathlib import Path

import pytest
from picotorch import PARTS
from picotorch.boards.boards import load_board
from picotorch.firmware import selective
from picotorch.host import operators
from picotorch.host.elf import flash_bytes
from picotorch.host.operators import built_operators
from picotorch.host.optimize import BALANCED, Optimize
from picotorch.host.twin import open_program
from picotorch.measure.firmware_map import sections
from picotorch.measure.flash import LinkedObjects, flash_of_models, flash_of_operators
from picotorch.run.emulator import firmware_path
from support import fixture_store
from support.calling import assert_error, assert_usage

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).resolve().parents[2]
NOTHING = selective.Firmware("", [], "", [], [], [], 0, {})
BOARD = "mps2-an386"
KNOWN = operators.supported_operators()


def path(name):
    return fixture_store.load(name).path


# ---- the registry


def test_the_list_of_operators_is_that_of_the_twin():
    assert {one.name: one.number for one in KNOWN.values()} == built_operators()


def registry(folder, names, *options):
    """Compile the registry with these operators and options, as a library with empty kernels."""
    folder.mkdir()
    (folder / "operators.def").write_text(selective.operator_file(names))
    symbols = sorted({symbol for name in names
                      for symbol in (KNOWN[name].symbol, *KNOWN[name].others.values())})
    start = "#include <picotorch/kernel.h>\nconst int pt_pte_description = 0;\n"
    (folder / "kernels.c").write_text(start + "".join(
        f"const pt_kernel pt_{symbol} = {{0}};\n" for symbol in symbols))
    kernels = operators.LIST.parents[2]
    library = folder / "registry.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-std=c99", "-Wall", "-Wextra", "-Werror",
                    "-fsanitize=undefined", "-fno-sanitize-recover", f"-I{kernels}",
                    f"-I{kernels}/include",
                    f'-DPT_OPERATORS="{folder}/operators.def"', kernels / "core/registry/registry.c",
                    folder / "kernels.c", *options, "-o", library], check=True)
    loaded = ctypes.CDLL(str(library))
    for function in ("pt_operator_name", "pt_operator_signature"):
        getattr(loaded, function).restype = ctypes.c_char_p
    loaded.pt_operator_argument.restype = ctypes.c_void_p
    loaded.pt_operator_kernel.restype = ctypes.c_void_p
    return loaded


def find(library, operator):
    name, _, overload = operator.partition(".")
    return library.pt_find_operator(name.encode(), len(name), overload.encode(), len(overload))


def arguments(library, number):
    """Return the names of an operator's arguments, up to the first missing one."""
    length, names = ctypes.c_uint32(), []
    while len(names) < 20:
        at = library.pt_operator_argument(number, len(names), ctypes.byref(length))
        names.append(ctypes.string_at(at, length.value).decode())
        if not names[-1]:
            break
    return tuple(names[:-1])


SELECTIONS = {
    "none": [],
    "first": [next(iter(KNOWN))],
    "last": [list(KNOWN)[-1]],
    "ends": [next(iter(KNOWN)), list(KNOWN)[-1]],
    "same_symbol": ["cortex_m::transpose.out", "aten::permute_copy.out"],
    **{f"random_{n}": sorted(random.Random(n).sample(list(KNOWN), n)) for n in (2, 3, 7, 20, 90)},
    "all": list(KNOWN),
}


@pytest.mark.parametrize("selection", SELECTIONS)
def test_operators_keep_their_numbers(tmp_path, selection):
    names = SELECTIONS[selection]
    library = registry(tmp_path / selection, names)
    assert library.pt_operator_count() == max((KNOWN[name].number + 1 for name in names), default=1)
    for operator in KNOWN.values():
        linked = operator.name in names
        assert find(library, operator.name) == (operator.number if linked else -1)
        assert bool(library.pt_operator_kernel(operator.number)) == linked
        name = library.pt_operator_name(operator.number).decode()
        signature = library.pt_operator_signature(operator.number).decode()
        assert name == (operator.name if linked else "")
        assert signature == (operator.signature if linked else "")
        assert arguments(library, operator.number) == (operator.arguments if linked else ())
    for stranger in ("", "a.b", "aten::add", "aten::add.outs", "zzz::zzz.out"):
        assert find(library, stranger) == -1
    assert not library.pt_operator_kernel(0xFFFF)
    assert library.pt_operator_signature(0xFFFF) == b"" and not arguments(library, 0xFFFF)


def test_numbers_need_not_be_in_the_order_of_names(tmp_path, monkeypatch):
    """The numbers have gaps, as in a list to which operators were added and from which some were
    removed."""
    shuffled = random.Random(0).sample(range(3 * len(KNOWN)), len(KNOWN))
    known = {name: dataclasses.replace(one, number=number, line=one.line.replace(
        f'{one.number}, "{name}"', f'{number}, "{name}"'))
        for (name, one), number in zip(KNOWN.items(), shuffled, strict=True)}
    monkeypatch.setattr(selective, "supported_operators", lambda: known)
    library = registry(tmp_path / "all", list(known))
    assert library.pt_operator_count() == max(shuffled) + 1
    for name, operator in known.items():
        assert find(library, name) == operator.number
        assert library.pt_operator_name(operator.number).decode() == name
        assert arguments(library, operator.number) == operator.arguments
    for hole in set(range(max(shuffled) + 1)) - set(shuffled):
        assert library.pt_operator_name(hole) == b"" and not library.pt_operator_kernel(hole)
        assert library.pt_operator_signature(hole) == b"" and not arguments(library, hole)


# ---- the command line


def test_a_missing_model_argument_is_reported_with_a_remedy(call):
    assert_usage(call("firmware"), "--models", "make firmware")
    assert_usage(call("firmware", path("add_1"), "--output", "fw.bin"), ".elf")


@pytest.mark.parametrize("command", ["run", "parity"])
def test_a_firmware_is_of_one_board(call, command):
    boards = ["--board", BOARD, "--board", "mps2-an385"] if command == "parity" else []
    assert_usage(call(command, path("add_1"), "--firmware", "fw.elf", *boards), "--board")


def test_firmware_names_what_it_cannot_build(call, tmp_path):
    assert_error(call("firmware", "--models", path("add_1"), tmp_path / "nix.pte"), "AccessFailed",
                 "nix.pte")
    (tmp_path / "text.pte").write_text("no program at all")
    assert_error(call("firmware", "--models", tmp_path / "text.pte"), "InvalidProgram")


def test_all_missing_operators_of_all_models_are_named(call):
    models = [path(name) for name in ("missing_operators", "add_1", "missing_in_one_method")]
    assert_error(call("firmware", "--models", *models), "OperatorMissing",
                 f"aten::_upsample_bicubic2d_aa.out ({models[0]})",
                 f"aten::lgamma.out ({models[0]})",
                 f"aten::_upsample_bicubic2d_aa.out ({models[2]})")


@pytest.mark.parametrize("option", [["--models"], []])
def test_models_may_follow_one_another(call, monkeypatch, option):
    built = []
    monkeypatch.setattr(selective, "build", lambda *given: built.append(given) or NOTHING)
    assert call("firmware", *option, path("add_1"), path("add_5"), "--json")[0] == 0
    ((board, programs, *others),) = built
    assert (board, *others) == (BOARD, selective.default_output(BOARD), False, (), BALANCED)
    assert list(programs) == [str(path("add_1")), str(path("add_5"))]


def test_a_build_that_fails_is_an_error(call, monkeypatch, tmp_path):
    (tmp_path / "setup.py").write_text("raise SystemExit('set-up stopped: no compiler')")
    monkeypatch.setattr(selective, "SETUP", tmp_path / "setup.py")
    monkeypatch.setattr(selective.emulator, "FIRMWARE_DIR", tmp_path)
    assert_error(call("firmware", path("add_1")), "Internal", "the firmware was not built")


# ---- parts of the runtime


def test_the_manifest_freezes_every_module_and_by_default_all_parts():
    """Modules of picotorch that are in neither list are for the host only."""
    found = dict(re.findall(r'_(CORE|PARTS) = "(.*)"', (ROOT / "port/manifest.py").read_text()))
    assert found["PARTS"].split() == [name for name, _ in PARTS]
    modules = {path.stem for path in (ROOT / "host/picotorch").glob("*.py")}
    assert {*found["CORE"].split(), *found["PARTS"].split()} == modules - {"__main__"}


@pytest.mark.parametrize("models, parts", [
    (["int8_ds_cnn", "add_1"], set()), (["external_two_files"], {"data"}),
    (["add_1", "delegate_named_data"], {"delegates"}),
    (["delegate_named_data", "external_weights"], {"data", "delegates"})])
def test_models_need_parts(models, parts):
    programs = {name: open_program(path(name).read_bytes()) for name in models}
    assert selective.needed_parts(programs) == parts


def test_parts_may_be_requested(call, monkeypatch):
    built = []
    monkeypatch.setattr(selective, "build", lambda *given: built.append(given[4]) or NOTHING)
    assert call("firmware", "--models", path("add_1"), "--with", "tracer", "--with", "module",
                "--json")[0] == 0
    assert built == [("tracer", "module")]
    assert_usage(call("firmware", "--models", path("add_1"), "--with", "nix"), "--with", "delegates")


def test_variants_of_convolutions_may_be_left_out(call, tmp_path):
    def switches(*options):
        output = tmp_path / "operators.def"
        command = "firmware", "--models", path("int8_ds_cnn"), "--operators", output
        assert call(*command, *options)[0] == 0
        return set(re.findall(r"#define (PT_NO_\w+)", output.read_text()))

    gaining = {"PT_NO_POINTWISE", "PT_NO_IM2ROW"}  # no model here gains by the third variant
    assert switches("--optimize", "size") - switches() == gaining
    assert switches("--optimize", "speed") == switches("--optimize", "balanced") == switches()
    programs = {"model": open_program(path("int8_ds_cnn").read_bytes())}
    one = selective.selection(programs, Optimize(variants=frozenset(["im2row"])))
    assert set(re.findall(r"#define (PT_NO_\w+)", one)) - switches() == {"PT_NO_POINTWISE"}
    assert_usage(call("firmware", "--models", path("int8_ds_cnn"), "--optimize", "nix"), "--optimize",
                 "balanced")
    assert_usage(call("firmware", "--board", "RPI_PICO2", "--optimize", "size"),
                 "--optimize size: give --models")


# ---- on a board


@pytest.fixture(scope="module")
def firmware(tmp_path_factory):
    """Return (path, entry) of the firmware for int8_ds_cnn."""
    model = path("int8_ds_cnn")
    output = tmp_path_factory.mktemp("selective") / "fw.elf"
    return output, selective.build(BOARD, {str(model): open_program(model.read_bytes())}, output)


def test_an_output_that_cannot_be_written_is_rejected_before_the_build(call, tmp_path, monkeypatch):
    monkeypatch.setattr(selective, "make", None)
    (tmp_path / "folder.elf").mkdir()
    (tmp_path / "file").write_text("")
    (tmp_path / "map.map").mkdir()
    for name in ("folder.elf", "file/a.elf", "map.elf"):
        assert_error(call("firmware", "--models", fixture_store.load("add_1").path,
                          "--output", tmp_path / name), "AccessFailed")
    assert not (tmp_path / "map.elf").exists()


def test_a_selective_firmware_has_the_kernels_of_the_model_only(firmware):
    output, entry = firmware
    assert "cortex_m::quantized_conv2d.out" in entry.operators
    assert len(entry.operators) < 20 < len(KNOWN)
    wanted = {KNOWN[name].symbol for name in entry.operators}
    linked = {section.removeprefix(".rodata.pt_") for section, _, _ in sections(
        output.with_suffix(".map"))} & {operator.symbol for operator in KNOWN.values()}
    assert linked == wanted
    assert entry.flash < flash_bytes(firmware_path(load_board(BOARD))) - 60_000


def test_a_selective_firmware_runs_as_the_full_one(call, firmware):
    status, out, _ = call("parity", path("int8_ds_cnn"), "--board", BOARD, "--firmware", firmware[0],
                          "--json")
    entry = json.loads(out)
    assert status == 0 and entry["agree"] and entry["reference"]["difference"] == 0
    assert entry["boards"][0]["differing_outputs"] == []
    assert entry["boards"][0]["first_differing_pool_byte"] is None


def test_a_selective_firmware_rejects_other_models_by_the_names_of_their_operators(call, firmware):
    assert_error(call("run", path("ds_cnn"), "--board", BOARD, "--firmware", firmware[0]),
                 "OperatorMissing", "aten::convolution.out", "aten::relu.out", "aten::addmm.out")


@pytest.mark.parametrize("bare", [[], ["--bare"]])
def test_cycles_are_estimated_by_the_loops_that_the_firmware_has(call, tmp_path, bare):
    """Without their variant, 1x1 layers take fewer instructions and more cycles
    (docs/performance.md). For a firmware without the tracer, the shares of operators come from the
    firmware with all kernels."""
    model = ROOT / "tests/benchmark/int8_ds_cnn/m4.pte"
    output, runs = tmp_path / "fw.elf", []
    for optimize in (BALANCED, Optimize(variants=frozenset(["winograd", "im2row"]))):
        programs = {str(model): open_program(model.read_bytes())}
        selective.build(BOARD, programs, output, bool(bare), optimize=optimize)
        for firmware in ([], ["--firmware", output]):
            status, out, _ = call("run", model, "--board", BOARD, *bare, *firmware, "--json")
            assert status == 0
            runs.append(json.loads(out))
    instructions = [run["instructions"]["execute"] for run in runs]
    full, selected, _, without = [run["cycles"] for run in runs]
    assert full == pytest.approx(selected, rel=0.01)
    assert instructions[3] < 0.92 * instructions[0] and without > 1.05 * full


def test_a_part_that_a_firmware_was_built_without_is_named(call, firmware):
    assert firmware[1].parts == []
    command = ("--board", BOARD, "--firmware", firmware[0])
    assert_error(call("profile", path("int8_ds_cnn"), *command), "NotSupported",
                 "part tracer: is not in this firmware", "--with tracer")
    external = fixture_store.load("external_two_files")
    assert_error(call("run", external.path, "--data", external.data_paths[0], *command),
                 "NotSupported", "part data", "--with data")


def test_a_firmware_has_the_needed_and_the_requested_parts(call, tmp_path):
    external, output = fixture_store.load("external_two_files"), tmp_path / "fw.elf"
    entry = selective.build(BOARD, {str(external.path): open_program(external.path.read_bytes())},
                            output, parts=("tracer",))
    assert entry.parts == ["data", "tracer"]
    files = [word for file in external.data_paths for word in ("--data", file)]
    status, out, _ = call("profile", external.path, *files, "--board", BOARD, "--firmware", output)
    assert status == 0, out


def test_a_firmware_of_another_board_is_rejected(call, firmware, tmp_path):
    assert_error(call("run", path("add_1"), "--board", "mps2-an385", "--firmware", firmware[0]),
                 "InvalidArgument", "is not a firmware of mps2-an385")
    assert_error(call("run", path("add_1"), "--board", BOARD, "--firmware", tmp_path / "nix.elf"),
                 "AccessFailed", "nix.elf")


# ---- bytes of flash by operator


def test_estimated_kernels_equal_the_linked_ones(firmware):
    """The sizes are equal section by section. The compiler's library is the exception, since
    MicroPython may need more of it."""
    output, entry = firmware
    linked = LinkedObjects(load_board(BOARD))
    features = operators.conv_variants(open_program(path("int8_ds_cnn").read_bytes()))
    pieces = linked.reach(linked.module_symbols() | {
        f"pt_{KNOWN[name].symbol}" for name in entry.operators}, features)
    names = {(one.path, number): section.name for one in linked.objects
             for number, section in one.sections.items()}
    needed = collections.Counter()
    for piece in pieces:
        if len(piece.key) == 2 and "registry" not in piece.key[0]:
            needed[_end(piece.key[0]), names[piece.key]] += piece.size
    linked = linked_sections(output, r"/kernels/|libgcc|memory_copy|string0")
    assert needed <= linked
    ours = linked_sections(output, r"/kernels/")
    assert {key: size for key, size in needed.items() if key in ours} == ours


def linked_sections(output, pattern):
    """Return the bytes of the sections in objects of these names, without strings, which the linker
    merges."""
    linked = collections.Counter()
    for section, size, path in sections(output.with_suffix(".map")):
        if re.search(pattern, path) and ".str1." not in section and "registry" not in path:
            linked[_end(path), section] += size
    return linked


def _end(path):
    return path.rpartition("/")[2]


def test_flash_of_operators_adds_up(firmware):
    kernels = firmware[1].kernels
    own = [size.own for size in kernels.operators.values()]
    assert kernels.kernels == sum(own) + kernels.shared and kernels.shared > 0
    assert all(size.own <= size.alone for size in kernels.operators.values())
    parts = ("core", "registry", "kernels", "library")
    assert kernels.core_and_kernels == sum(getattr(kernels, part) for part in parts)
    linked = sum(size for _, size, path in sections(firmware[0].with_suffix(".map"))
                 if "/kernels/" in path)
    ours = kernels.core_and_kernels - kernels.library
    assert abs(ours - linked) < linked / 50  # merged ends of strings, gaps


def test_shared_code_counts_once():
    board = load_board(BOARD)
    both = flash_of_operators(board, ["aten::add.out", "aten::sub.out"])
    (add,) = flash_of_operators(board, ["aten::add.out"]).operators.values()
    assert add.own == add.alone == both.operators["aten::add.out"].alone
    assert both.shared > both.operators["aten::add.out"].own
    assert both.kernels < 2 * add.alone
    none = flash_of_operators(board, [])
    assert none.kernels == none.shared == 0 < none.core < none.core_and_kernels


def test_flash_of_models_is_that_of_their_operators(firmware):
    models = [path(name).read_bytes() for name in ("int8_ds_cnn", "add_1")]
    assert flash_of_models(load_board(BOARD), models[:1]) == firmware[1].kernels
    both = flash_of_models(load_board(BOARD), models)
    assert set(both.operators) == {*firmware[1].operators, "aten::add.out"}
