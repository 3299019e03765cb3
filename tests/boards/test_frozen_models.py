"""Test models in the flash of a firmware: commands with --port run them in place, and report which
model ran."""

import json
from pathlib import Path

import pytest
from picotorch.firmware import ports
from picotorch.host.twin import open_program
from picotorch.run.device import protocol
from support import fixture_store
from support.calling import assert_error
from support.wire import Board

pytestmark = pytest.mark.thorough

NAMES = ("int8_ds_cnn", "mlp", "add_5")
RUN_OVERHEAD = 45_000  # bytes on the wire for the runner, less than the size of int8_ds_cnn
COMMANDS = ("run", "parity", "profile")


def bytes_of(name):
    return fixture_store.load(name).pte


def path_of(name):
    return fixture_store.FOLDER / name / "model.pte"


def renamed(name, folder, stem=None):
    """Write a fixture's program to a file, named as the fixture or `stem`."""
    path = folder / f"{stem or name}.pte"
    path.write_bytes(bytes_of(name))
    return path


def flipped(data):
    return data[:-1] + bytes([data[-1] ^ 1])


FROZEN = {"kws": bytes_of("int8_ds_cnn"), "mlp": bytes_of("mlp")[:-1],
          "add_5": flipped(bytes_of("add_5")), "model": bytes(100)}
DIFFERENCES = {  # by the name of the file
    "mlp": "picotorch_models.mlp differs from the file: it has 5,547 B, the file 5,548 B",
    "add_5": "picotorch_models.add_5 differs from the file: both have 1,544 B",
    "other": "picotorch_models.model differs from the file: it has 100 B, the file 1,544 B",
}


@pytest.fixture(scope="module")
def firmware():
    """Build MicroPython's own qemu port with the kernels of NAMES and the models FROZEN."""
    programs = {name: open_program(bytes_of(name)) for name in NAMES}
    return Path(ports.build("MPS2_AN385", programs, list(FROZEN.items()), ("tracer",)).outputs[0])


@pytest.fixture(scope="module")
def frozen(firmware):
    with Board("mps2-an385", firmware) as board:
        yield board


@pytest.fixture(scope="module")
def plain():
    """Start a board whose firmware has no models."""
    with Board() as board:
        yield board


def connected(call, command, model, board):
    """Return the part of a command's report about the board."""
    status, out, err = call(command, model, "--port", board.port, "--json")
    entry = json.loads(out)
    assert status == 0, (entry["error"] if "error" in entry else entry, err)
    return (entry["boards"][0] if command == "parity" else entry)["connected"]


@pytest.mark.parametrize("command", COMMANDS)
def test_the_frozen_model_runs_in_place(call, frozen, command):
    """The model is found by its content, under another name."""
    found = connected(call, command, path_of("int8_ds_cnn"), frozen)
    assert (found["model_at"], found["in_place"]) == ("picotorch_models.kws", True)
    assert found["frozen_not_used"] is None
    assert frozen.passed < RUN_OVERHEAD < len(bytes_of("int8_ds_cnn"))


@pytest.mark.parametrize(("command", "name"), list(zip(COMMANDS, DIFFERENCES, strict=True)))
def test_a_frozen_model_with_other_bytes_is_named_and_not_used(call, frozen, tmp_path, command, name):
    """The frozen model is shorter, or damaged, or another model with the name `model`, which picotorch
    flash uses."""
    path = renamed("add_5" if name == "other" else name, tmp_path, name)
    found = connected(call, command, path, frozen)
    assert (found["model_at"], found["in_place"]) == (None, False)
    assert found["frozen_not_used"] == DIFFERENCES[name]


@pytest.mark.parametrize(("command", "name"), [("run", "int8_ds_cnn"), ("parity", "add_5"),
                                               ("profile", "add_5")])
def test_a_firmware_without_models(call, plain, tmp_path, command, name):
    found = connected(call, command, renamed(name, tmp_path), plain)
    assert (found["model_at"], found["frozen_not_used"]) == (None, None)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_reports_for_people_name_the_model_that_ran(call, frozen, tmp_path, command):
    out = call(command, path_of("int8_ds_cnn"), "--port", frozen.port)[1]
    assert "the model is picotorch_models.kws, used in place" in out
    out = call(command, renamed("mlp", tmp_path), "--port", frozen.port)[1]
    assert f"the model was sent into the heap ({DIFFERENCES['mlp']})" in out


def test_deploy_does_not_copy_a_model_that_the_firmware_has(call, frozen):
    model = path_of("int8_ds_cnn")
    status, out, _ = call("deploy", model, "--port", frozen.port, "--json")
    entry = json.loads(out)
    assert (status, entry["path"], entry["copied"]) == (0, "picotorch_models.kws", False)
    assert "in the firmware, not copied" in call("deploy", model, "--port", frozen.port)[1]


def test_selftest_runs_the_frozen_model(call, frozen, tmp_path):
    report = tmp_path / "report.json"
    status, out, _ = call("selftest", "--port", frozen.port, "--report", report)
    steps = {step["step"]: step for step in json.loads(report.read_text())["steps"]}
    assert status == 0
    assert steps["model int8_ds_cnn"]["model_at"] == "picotorch_models.kws"
    assert steps["model add_5"]["model_at"] is None and steps["model add_5"]["message"] == ""
    assert out.count("the model is picotorch_models.kws, used in place") == 1


def test_too_little_heap_names_the_model_that_is_not_used(call, frozen, tmp_path):
    failed = call("run", renamed("add_5", tmp_path), "--port", frozen.port, "--pool-size", 200_000)
    assert_error(failed, "MemoryAllocationFailed", DIFFERENCES["add_5"], "requested", "available")


# ---- any module of this name, on a board that imports it from a file

MODULES = {
    "bytes": ("net = DATA", "picotorch_models.net", None),
    "among others": ("def at():\n pass\nnumber = 7\ntext = 'net'\nnone = None\nshort = b''\nzoo = DATA",
                     "picotorch_models.zoo", None),
    "two, one of which differs": ("net = b'no'\nother = memoryview(DATA)", "picotorch_models.other",
                                  None),
    "not aligned": ("net = memoryview(b'.' + DATA)[1:]", "picotorch_models.net", None),
    "no model": ("def net():\n pass", None, None),
    "empty": ("net = b''", None,
              "picotorch_models.net differs from the file: it has 0 B, the file 1,544 B"),
    "longer": ("net = DATA + b'.'", None,
               "picotorch_models.net differs from the file: it has 1,545 B, the file 1,544 B"),
    "its own check fails": ("raise RuntimeError('copy models.uf2')", None,
                            "picotorch_models cannot be imported: RuntimeError: copy models.uf2"),
    "another module is missing": ("import nosuch", None,
                                  "picotorch_models cannot be imported: ImportError: no module named "
                                  "'nosuch'"),
    "no Python": ("net = (", None, "picotorch_models cannot be imported: SyntaxError: invalid syntax"),
}


@pytest.fixture
def put_module(plain):
    """Write picotorch_models.py on the board, in which DATA is the content of add_5."""
    def put(text):
        with protocol.Link(plain.port) as conversation:
            conversation.do("", "_f = open('picotorch_models.py', 'w')\n"
                                f"_f.write({text!r})\n_f.close()")

    with protocol.Link(plain.port) as conversation:
        for start in range(0, len(bytes_of("add_5")), 512):
            conversation.do("", f"_f = open('add_5.bin', {'ab' if start else 'wb'!r})\n"
                                f"_f.write({bytes_of('add_5')[start:start + 512]!r})\n_f.close()")
    yield put
    with protocol.Link(plain.port) as conversation:
        conversation.do("", "import os\nos.remove('picotorch_models.py')\nos.remove('add_5.bin')")


@pytest.mark.parametrize("kind", MODULES)
def test_any_module_of_this_name(call, plain, put_module, tmp_path, kind):
    text, place, not_used = MODULES[kind]
    put_module(f"DATA = open('add_5.bin', 'rb').read()\n{text}\ndel DATA\n")
    found = connected(call, "parity", renamed("add_5", tmp_path, "net"), plain)
    assert (found["model_at"], found["frozen_not_used"]) == (place, not_used)
    assert found["in_place"] == (place is not None and kind != "not aligned")


def test_a_frozen_model_comes_before_a_file_and_a_file_before_another_model(call, plain, put_module,
                                                                            tmp_path):
    path = renamed("add_5", tmp_path, "net")
    assert call("deploy", path, "--port", plain.port)[0] == 0
    put_module("net = open('add_5.bin', 'rb').read()")
    found = connected(call, "run", path, plain)
    assert (found["model_at"], found["in_place"]) == ("picotorch_models.net", True)
    put_module("net = open('add_5.bin', 'rb').read()[:-1]")
    found = connected(call, "run", path, plain)
    assert (found["model_at"], found["in_place"]) == ("net.pte", False)
    assert "differs from the file" in found["frozen_not_used"]


# ---- size --port: a model in place needs no heap for itself


def room(call, model, board):
    status, out, err = call("size", model, "--port", board.port, "--json")
    assert status == 0, err
    return json.loads(out)["connected"]


def test_size_does_not_count_a_frozen_model(call, frozen, tmp_path):
    found = room(call, path_of("int8_ds_cnn"), frozen)
    assert (found["model_at"], found["in_place"]) == ("picotorch_models.kws", True)
    assert found["in_place_needs"] == found["memories"] and found["fits_in_place"]
    text = call("size", path_of("int8_ds_cnn"), "--port", frozen.port)[1]
    (row,) = (line for line in text.splitlines() if "picotorch_models.kws, used in place" in line)
    assert f"{found['memories']} " in row.replace(",", "") and row.endswith("fits")
    found = room(call, renamed("mlp", tmp_path), frozen)  # with other bytes
    assert (found["model_at"], found["in_place"], found["fits_in_place"]) == (None, False, False)


@pytest.mark.parametrize("kind", [None, *MODULES])
def test_size_and_run_agree_on_where_a_model_is(call, plain, put_module, tmp_path, kind):
    put_module("" if kind is None else
               f"DATA = open('add_5.bin', 'rb').read()\n{MODULES[kind][0]}\ndel DATA\n")
    model = renamed("add_5", tmp_path, "net_of_size")
    found, ran = room(call, model, plain), connected(call, "run", model, plain)
    assert (found["model_at"], found["in_place"]) == (ran["model_at"], ran["in_place"])
    assert found["fits_in_place"] == found["in_place"]
    assert found["in_place_needs"] == (found["memories"] if found["in_place"] else None)


def test_an_unknown_size_never_fits(call, plain, put_module, monkeypatch):
    """The size is unknown because the backend is missing; the model is in place."""
    model = path_of("delegated")
    data = model.read_bytes()
    with protocol.Link(plain.port) as conversation:
        for start in range(0, len(data), 512):
            conversation.do("", f"_f = open('other.bin', {'ab' if start else 'wb'!r})\n"
                                f"_f.write({data[start:start + 512]!r})\n_f.close()")
    put_module("net = open('other.bin', 'rb').read()")
    found = room(call, model, plain)
    assert found["in_place"] and found["fits_in_place"] is None
    assert call("size", model, "--port", plain.port, "--fail-on", "fit")[0] == 1
