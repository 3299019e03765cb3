"""Test MicroPython's own ports with picotorch inside, built by `picotorch firmware`: outputs are the
twin's."""

import json
import os
import re
from pathlib import Path

import pytest
from picotorch import BufferDataLoader, Error, Program
from picotorch.firmware import ports
from picotorch.host import frozen_models
from support import built_ports, fixture_store
from support.calling import assert_error, assert_usage

pytestmark = pytest.mark.thorough

REPOSITORY = Path(__file__).resolve().parents[2]
SCRIPT = REPOSITORY / "tests" / "boards" / "ports" / "models.py"
NAMES = ("int8_ds_cnn", "ds_cnn")
FIXTURES = REPOSITORY / "tests" / "fixtures"


@pytest.fixture(scope="module")
def frozen():
    return [(name, fixture_store.load(name).pte) for name in NAMES]


@pytest.fixture(scope="module")
def twin_lines():
    return built_ports.twin_lines(NAMES)


def test_the_unix_port_runs_as_the_twin_with_sanitizers(frozen, twin_lines):
    """The port has the kernels of two models, and rejects a third model."""
    programs = {name: Program.load(BufferDataLoader(data)) for name, data in frozen}
    program = built_ports.build_sanitized(programs, frozen)
    assert b"__asan_init" in Path(program).read_bytes()
    assert built_ports.run_unix(program, SCRIPT) == twin_lines
    gelu = FIXTURES / "gelu" / "model.pte"
    lines = built_ports.run_unix(program, "-c", f"""
import picotorch
try:
    picotorch.Module({str(gelu)!r}).load_method()
except picotorch.Error as error:
    print(error)
""")
    assert lines[0].startswith("OperatorMissing (0x14): no kernel for: aten::gelu.out")


def test_the_qemu_port_runs_as_the_twin(call, twin_lines):
    """The port has all kernels."""
    models = [f"--frozen-model={name}={FIXTURES / name / 'model.pte'}" for name in NAMES]
    status, out, _ = call("firmware", "--board", "MPS2_AN385", *models, "--json")
    entry = json.loads(out)
    assert status == 0 and entry["frozen"] == {"int8_ds_cnn": 54192, "ds_cnn": 113600}
    assert 500_000 < entry["flash"] < 720_000
    assert built_ports.run_qemu(entry["outputs"][0], SCRIPT) == twin_lines


@pytest.mark.parametrize("name", [name for name, board in ports.boards().items() if board.submodules])
def test_a_board_builds_where_its_submodules_are(call, name):
    """The test checks the build only: NUCLEO_F446RE has too little flash for any model."""
    board = ports.boards()[name]
    try:
        ports.tree_of(board)
    except Error as error:
        pytest.skip(str(error))
    model = FIXTURES / "int8_ds_cnn" / "model.pte"
    status, out, error = call("firmware", "--board", name, "--models", model, "--frozen-model", model,
                              "--json")
    if name == "NUCLEO_F446RE":
        assert "does not fit: overflows FLASH_TEXT by " in error.splitlines()[-1]
        return
    assert status == 0, error
    entry = json.loads(out)
    assert [Path(path).name for path in entry["outputs"]] == list(board.outputs)
    assert entry["flash"] <= entry["available"]


# ---- the command


def test_missing_submodules_are_reported_with_a_remedy(call, monkeypatch):
    monkeypatch.delenv("MICROPYTHON_DIR", raising=False)
    for name, board in ports.boards().items():
        if board.submodules:
            assert_error(call("firmware", "--board", name), "NotFound", name, *board.submodules,
                         "git clone", f"BOARD={name} submodules", "MICROPYTHON_DIR=")


def test_a_tree_without_submodules_is_rejected(call, monkeypatch):
    monkeypatch.delenv("MICROPYTHON_DIR", raising=False)
    tree = ports.tree_of(ports.boards()["MPS2_AN385"])
    monkeypatch.setenv("MICROPYTHON_DIR", str(tree))
    assert_error(call("firmware", "--board", "PYBV11"), "NotFound", "lacks ports/stm32/Makefile",
                 "lib/stm32lib", f"git clone --branch v1.25.0 {ports._URL} micropython-v1.25.0 && ",
                 "make -C micropython-v1.25.0/ports/stm32 BOARD=PYBV11 submodules")


def test_git_fetches_the_submodules_of_a_tree_that_has_the_port(tmp_path):
    board = ports.boards()["PYBV11"]
    make = f"make -C {tmp_path}/ports/stm32 BOARD=PYBV11 submodules"
    (tmp_path / "ports" / "stm32").mkdir(parents=True)
    assert make not in ports._how_to_get(board, tmp_path)  # unpacked from an archive
    (tmp_path / ".git").mkdir()
    assert ports._how_to_get(board, tmp_path).startswith(make)


def test_a_folder_without_micropython_is_rejected(call, monkeypatch, tmp_path):
    monkeypatch.setenv("MICROPYTHON_DIR", str(tmp_path))
    assert_error(call("firmware", "--board", "PYBV11"), "NotFound", "is no MicroPython tree")


@pytest.mark.parametrize("models, remedy", [
    ([], "with --models only the kernels that some models need are linked"),
    (["--models", FIXTURES / "add_1" / "model.pte"], "fewer models, or a board with more flash"),
])
def test_a_model_that_does_not_fit_is_reported_in_bytes(call, monkeypatch, tmp_path, models, remedy):
    """The fake make fails as a linker does for a board that is too small."""
    (tmp_path / "make").write_text("""#!/bin/sh
echo "ld: firmware.elf section \\`.text' will not fit in region \\`FLASH_TEXT'"
echo "ld: region \\`FLASH_TEXT' overflowed by 47252 bytes"
exit 1
""")
    (tmp_path / "make").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(ports, "BUILD", tmp_path / "build")
    status, _, error = call("firmware", "--board", "MPS2_AN385", *models)
    assert status == 1
    assert error.splitlines()[-1] == ("MemoryAllocationFailed (0x21): MPS2_AN385: does not fit: "
                                      f"overflows FLASH_TEXT by 47,252 B; {remedy}")


def test_a_build_that_fails_shows_the_end_of_its_log(call, monkeypatch, tmp_path):
    monkeypatch.setattr(ports, "BUILD", tmp_path)
    with pytest.raises(Error, match="make failed: .*Invalid BOARD specified.*; see .*make.log"):
        ports.build("MPS2_AN385", {}, arguments=("BOARD=NO_SUCH",))


def test_a_port_without_floats_has_one_error(tmp_path, monkeypatch):
    monkeypatch.setattr(ports, "BUILD", tmp_path)
    with pytest.raises(Error, match="picotorch needs floats"):
        ports.build("unix", {}, arguments=("CFLAGS_EXTRA=-DMICROPY_FLOAT_IMPL=0",))
    (log,) = tmp_path.rglob("make.log")
    assert len(re.findall(r"\berror: ", log.read_text())) == 1


def test_options_of_our_own_firmware_are_rejected(call):
    for option in (["--bare"], ["--output", "x.elf"]):
        assert_error(call("firmware", "--board", "PYBV11", *option), "InvalidArgument", option[0])
    assert_usage(call("firmware", "--frozen-model", "a.pte", "--models", "a.pte"), "--frozen-model")


# ---- models in flash


def test_a_model_is_named_as_its_file():
    assert frozen_models.parse("some/7-net.v2.pte") == ("_7_net_v2", Path("some/7-net.v2.pte"))
    assert frozen_models.parse("net=b.pte") == ("net", Path("b.pte"))
    assert frozen_models.parse("class.pte") == ("class_", Path("class.pte"))
    for name in ("class", "__name__", "1x", ""):
        with pytest.raises(ValueError, match="is not a Python identifier"):
            frozen_models.parse(name + "=b.pte")


def test_two_models_of_one_name_are_rejected(call):
    model = FIXTURES / "add_1" / "model.pte"
    assert_error(call("firmware", "--board", "MPS2_AN385", "--frozen-model", model, "--frozen-model",
                      model), "InvalidArgument", "two models are called model", "NAME=PATH")
    assert_usage(call("firmware", "--board", "MPS2_AN385", "--frozen-model", f"7={model}"),
                 "'7' is not a Python identifier")
