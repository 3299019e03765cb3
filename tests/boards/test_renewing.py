"""Test picotorch deploy of a model with operators that the board's native module lacks."""

import json
import struct
import zlib

import pytest
from picotorch.deploy import files, installing
from picotorch.firmware import native_module, selective
from picotorch.host.operators import needed_operators
from picotorch.host.twin import open_program
from picotorch.run import pico
from picotorch.run.device import device_run, protocol
from support import on_pico, stock
from support.calling import assert_error
from support.fixture_store import FOLDER
from support.wire import Board, Fault

pytestmark = pytest.mark.thorough

MODULE = "/lib/_picotorch.mpy"
ADD, MUL = FOLDER / "add_5" / "model.pte", FOLDER / "mul_broadcast" / "model.pte"
OLD = b"the module that was there"
ARMV7EMSP = 7
DOUBLE = FOLDER / "double_tensors" / "model.pte"
DOUBLES = ["aten::add.out", "aten::mul.out", "dim_order_ops::_to_dim_order_copy.out"]


@pytest.fixture(scope="module")
def board():
    with Board() as board:
        yield board


@pytest.fixture
def has(board, tmp_path, monkeypatch):
    """Return has(path, operators, ...), which sets what the board reports about its native module. The
    module was built without `left_out`. The board has real files but cannot load a native module; it
    runs the firmware's."""
    real = stock.native_module.BUILD / "picotorch"
    if not real.is_dir():
        stock.make_module("armv7emsp")
    (tmp_path / "picotorch").mkdir()
    for name in ("__init__.mpy", "errors.mpy"):
        (tmp_path / "picotorch" / name).write_bytes((real / name).read_bytes())
    monkeypatch.setattr(installing, "BUILD", tmp_path)
    monkeypatch.setattr(installing, "facts_of", lambda conversation: {
        **device_run.facts_of(conversation), "mpy": native_module.MPY | ARMV7EMSP << 10})

    def says(path, operators, flash=False, left_out=None):
        numbers = [installing.supported_operators()[name].number for name in operators]
        monkeypatch.setattr(installing, "_MODULE",
                            f"say(({path!r}, {flash}, {numbers}, {left_out!r})) # {{}}")
        if path is not None and path.startswith("/lib"):
            with protocol.Link(board.port) as conversation:
                files.do(conversation, "", "make_folder", "/lib/picotorch")
                runtime = {f"/lib/picotorch/{file.name}": file.read_bytes()
                           for file in (tmp_path / "picotorch").iterdir()}
                files.copy_files(conversation, path, {**runtime, path: OLD}, lambda *told: None)

    return says


def on_board(board, path):
    with protocol.Link(board.port) as conversation:
        return files.checksum(conversation, path)


def checksum(data):
    return len(data), zlib.crc32(data)


def test_the_module_gets_the_operators_of_both(call, board, has):
    has(MODULE, ["aten::add.out"])
    status, out, err = call("deploy", MUL, "--port", board.port)
    assert status == 0, err
    assert "the native module had no kernels for aten::mul.out: it is replaced" in out
    assert f"{MODULE} is installed" in out and "errors.mpy" not in out  # it is installed already
    module = native_module.link("armv7emsp", ["aten::add.out", "aten::mul.out"]).read_bytes()
    assert on_board(board, MODULE) == checksum(module)


def test_a_module_that_has_them_stays(call, board, has):
    has(MODULE, ["aten::add.out", "aten::mul.out"])
    status, out, _ = call("deploy", MUL, "--port", board.port)
    assert status == 0 and "is installed" not in out and "is replaced" not in out
    assert on_board(board, MODULE) == checksum(OLD)


def test_a_module_without_a_feature_is_renewed(call, board, has):
    has(MODULE, DOUBLES, left_out=b"PTM FLOAT64 WINOGRAD\0more")
    status, out, err = call("deploy", DOUBLE, "--port", board.port)
    assert status == 0, err
    assert "the native module had no float64 functions: it is replaced" in out
    features = {"programs", "float64", "complex", "volumes", "pointwise", "im2row"}
    module = native_module.link("armv7emsp", DOUBLES, native_module.Kind(frozenset(features)))
    assert on_board(board, MODULE) == checksum(module.read_bytes())
    assert native_module.features_of_file(module) == features


@pytest.mark.parametrize("left_out", [b"PTM COMPLEX\0", b"\0\0\0\0", b"\xff\xfe"])
def test_a_module_with_the_features_stays(call, board, has, left_out):
    has(MODULE, DOUBLES, left_out=left_out)
    status, out, _ = call("deploy", DOUBLE, "--port", board.port)
    assert status == 0 and "is installed" not in out and "is replaced" not in out
    assert on_board(board, MODULE) == checksum(OLD)


def test_the_full_module_is_not_selected_if_it_lacks_a_feature(call, board, has):
    """make natmod builds it without complex arithmetic and .ptm files."""
    built = stock.make_module("armv7emsp")
    assert native_module.features_of_file(built) == {"programs"}
    (installing.BUILD / "armv7emsp-fast").mkdir()
    (installing.BUILD / "armv7emsp-fast" / built.name).write_bytes(built.read_bytes())
    has(MODULE, [])
    status, _, err = call("deploy", ADD, "--port", board.port)
    assert status == 0, err
    assert on_board(board, MODULE) == checksum(built.read_bytes())
    has(MODULE, [])
    model = FOLDER / "fft2" / "model.pte"
    status, _, err = call("deploy", model, "--port", board.port)
    assert status == 0, err
    programs = {"fft2": open_program(model.read_bytes())}
    own = native_module.link("armv7emsp", needed_operators(programs), native_module.kind_for(programs))
    assert on_board(board, MODULE) == checksum(own.read_bytes())
    assert native_module.features_of_file(own) == {"programs", "complex"}


def behind_progress(result):
    """Return the result with only the last line of stderr; the lines before are the copied files."""
    status, out, error = result
    return status, out, error.splitlines(keepends=True)[-1]


def test_a_module_of_another_version_is_renewed(call, board, has, monkeypatch):
    monkeypatch.setattr(installing.picotorch, "__version__", "9.9")
    has(MODULE, ["aten::mul.out"])
    failed = behind_progress(call("deploy", MUL, "--port", board.port))
    assert_error(failed, "NotSupported", "this computer 9.9")  # our firmware's version stays
    module = native_module.link("armv7emsp", ["aten::mul.out"]).read_bytes()
    assert on_board(board, MODULE) == checksum(module)


@pytest.mark.parametrize(("kind", "place"), [("cut", 25_000), ("stall", 40_000)])
def test_a_failed_update_keeps_the_old_module(call, board, has, monkeypatch, kind, place):
    """The connection breaks in the middle of the module; earlier breaks are too short for it."""
    has(MODULE, ["aten::add.out"])
    module = native_module.link("armv7emsp", ["aten::add.out", "aten::mul.out"]).read_bytes()
    board.fault = Fault(kind, place)
    with monkeypatch.context() as patch:
        patch.setattr(protocol, "ANSWER_TIMEOUT", 2.5)
        failed = behind_progress(call("deploy", MUL, "--port", board.port))
    board.fault = None
    assert_error(failed, "AccessFailed", f"while copying {MODULE}")
    assert on_board(board, MODULE) == checksum(OLD)
    assert call("deploy", MUL, "--port", board.port)[0] == 0
    assert on_board(board, MODULE) == checksum(module)


def test_the_full_module_is_selected_if_no_other_can_be_built(call, board, has, monkeypatch,
                                                                  tmp_path):
    """The model may only copy its float64 tensors; the report names the features that it surely
    needs."""
    monkeypatch.setattr(selective, "SETUP", tmp_path / "none")  # as without the repository
    built = installing.BUILD / "armv7emsp-fast" / "_picotorch.mpy"
    built.parent.mkdir()
    left_out = b"PTM FLOAT64 COMPLEX VOLUMES\0"
    built.write_bytes(b"code" + left_out + struct.pack("<I", len(left_out) + 4))
    has(MODULE, DOUBLES, left_out=left_out)
    assert call("deploy", DOUBLE, "--port", board.port, "--to", "/copied")[0] == 0
    assert on_board(board, MODULE) == checksum(OLD)
    has(MODULE, ["aten::add.out"], left_out=b"")
    status, out, err = call("deploy", DOUBLE, "--port", board.port, "--to", "/copied")
    assert status == 0 and "had no kernels for" in out and "float64" not in out, err
    assert on_board(board, MODULE) == checksum(built.read_bytes())
    has(MODULE, [], left_out=left_out)
    assert_error(behind_progress(call("deploy", FOLDER / "conv3d" / "model.pte", "--port", board.port,
                                      "--to", "/other")), "NotSupported",
                 "all kernels has no", "3-d convolutions",
                 "picotorch natmod --models")


def test_a_feature_that_deploy_cannot_add_is_named(call, board, has):
    """The error omits the feature of tensors that the model may only copy."""
    model = FOLDER / "conv3d" / "model.pte"
    operators = needed_operators({"": open_program(model.read_bytes())})
    has(MODULE, operators, True, b"PTM VOLUMES\0")
    assert_error(call("deploy", model, "--port", board.port, "--to", "/other"), "NotSupported",
                 "the flash has no 3-d convolutions",
                 "picotorch natmod --flash RPI_PICO --models MODEL")
    assert on_board(board, "/other/model.pte") is None
    has(MODULE, DOUBLES, True, b"PTM FLOAT64\0")
    assert call("deploy", DOUBLE, "--port", board.port, "--to", "/doubles")[0] == 0


@pytest.mark.parametrize(("path", "flash", "words"), [
    (None, False, ("the firmware has no kernels for aten::mul.out",
                   "picotorch firmware --board NAME --models MODEL")),
    ("/rom/lib/_picotorch.mpy", False, ("/rom/lib/_picotorch.mpy has no", "out of the ROMFS")),
    (MODULE, True, ("the flash has no kernels", "picotorch natmod --flash RPI_PICO --models MODEL")),
])
def test_deploy_names_files_that_it_cannot_replace(call, board, has, path, flash, words):
    has(path, ["aten::add.out"], flash)
    assert_error(call("deploy", MUL, "--port", board.port, "--to", "/other"), "OperatorMissing", *words)
    assert on_board(board, "/other/model.pte") is None


@pytest.mark.parametrize("flash", [False, True])
def test_a_wheel_has_a_firmware_with_all_kernels_for_a_pico(call, board, has, monkeypatch, tmp_path,
                                                           flash):
    monkeypatch.setattr(selective, "SETUP", tmp_path / "none")
    monkeypatch.setattr(installing, "machine_of", lambda protocol: "Raspberry Pi Pico with RP2040")
    has(MODULE if flash else None, ["aten::add.out"], flash)
    assert_error(call("deploy", MUL, "--port", board.port, "--to", "/other"), "OperatorMissing",
                 "the flash has" if flash else "the firmware has",
                 "picotorch firmware --board RPI_PICO --models MODEL")


def test_module_and_model_together_may_not_fit(call, board, has, monkeypatch):
    has(MODULE, ["aten::add.out"])
    monkeypatch.setattr(native_module, "HEAP_BESIDE", 1 << 30)
    assert_error(call("deploy", MUL, "--port", board.port), "MemoryAllocationFailed", "heap",
                 f"remove {MODULE}", "for this model alone")
    assert on_board(board, MODULE) == checksum(OLD)


def test_on_stock_micropython(call, monkeypatch, tmp_path):
    """An emulated Pico runs one model, then one with another operator."""
    monkeypatch.setattr(installing, "BUILD", native_module.BUILD)
    firmware = stock.pico_uf2(tmp_path / "firmware.uf2")
    with pico.emulated(firmware) as port:
        status, out, err = call("deploy", ADD, "--port", port)
        assert status == 0 and f"{MODULE} is installed" in out, err
        status, out, err = call("deploy", MUL, "--port", port, "--to", "/two")
        assert status == 0 and "aten::mul.out: it is replaced" in out, err
        assert "errors.mpy" not in out
        status, out, err = call("deploy", DOUBLE, "--port", port, "--to", "/three")
        assert status == 0 and "had no float64 functions: it is replaced" in out, err
        for model in (MUL, ADD, DOUBLE):
            status, out, err = call("parity", model, "--port", port)
            assert status == 0 and "method pool: " in out, out + err
        assert "_picotorch.mpy.part" not in on_pico.mpremote(port)("fs", "ls", ":/lib")


def test_a_model_that_needs_most_of_the_heap_of_stock_micropython(call, monkeypatch, tmp_path):
    """An emulated Pico holds module, runtime, model and memories of int8 ds_cnn, as size predicted."""
    monkeypatch.setattr(installing, "BUILD", native_module.BUILD)
    firmware = stock.pico_uf2(tmp_path / "firmware.uf2")
    model = FOLDER / "int8_ds_cnn" / "model.pte"
    with pico.emulated(firmware) as port:
        status, out, err = call("size", model, "--port", port, "--json")
        room = json.loads(out)["connected"]
        assert status == 0 and room["fits_in_heap"] and not room["installs"]["small"], err
        status, out, err = call("deploy", model, "--port", port, "--json")
        entry = json.loads(out)
        assert status == 0 and f"{MODULE}" in entry["installed"], err
        assert 0 <= entry["heap_free"] - room["heap_free"] < 4096
        status, out, err = call("run", model, "--port", port, "--json")
        found = json.loads(out)["connected"]
        assert (status, found["in_place"]) == (0, False), err
        assert found["heap_free"]["set up"] >= 28_500
        assert call("parity", model, "--port", port)[0] == 0
        status, out, _ = call("size", model, "--port", port, "--json")
        assert json.loads(out)["connected"]["installs"] is None
        assert abs(json.loads(out)["connected"]["heap_free"] - room["heap_free"]) < 8192


def test_a_ptm_file_on_stock_micropython(call, monkeypatch, tmp_path):
    """The heap of an emulated Pico has room for int8 ds_cnn, its native module and its memories."""
    monkeypatch.setattr(installing, "BUILD", native_module.BUILD)
    firmware = stock.pico_uf2(tmp_path / "firmware.uf2")
    model, ptm = FOLDER / "int8_ds_cnn" / "model.pte", tmp_path / "model.ptm"
    assert call("compile", model, "--optimize", "size", "--keep-plan", "--output", ptm)[0] == 0
    with pico.emulated(firmware) as port:
        status, out, err = call("deploy", ptm, "--port", port)
        assert status == 0 and f"{MODULE} is installed" in out, err
        status, out, err = call("run", ptm, "--port", port, "--json")
        found = json.loads(out)["connected"]
        assert (status, found["model_at"]) == (0, "model.ptm"), err
        assert found["heap_free"]["set up"] >= 56_000
        assert call("parity", ptm, "--port", port)[0] == 0
