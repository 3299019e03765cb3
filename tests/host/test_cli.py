"""Test the command line: its output, its JSON, its exit status, its one-line errors."""

import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import xml.etree.ElementTree
import zipfile
from pathlib import Path

import click
import numpy as np
import pytest
from picotorch.cli.main import cli
from picotorch.errors import MEMORY_ALLOCATION_FAILED, fail
from picotorch.host import files, show, twin
from picotorch.host.request import Result
from picotorch.run import emulated, emulator, running
from picotorch.run.parity import same_bits
from support import fixture_store
from support.calling import assert_error, assert_usage
from support.flatbuffer_builder import string_value
from support.programs import call as call_of
from support.programs import plan, program, relu_plan, tensor
from test_signals import wait_for_emulator

SCRIPT = str(Path(sys.executable).parent / "picotorch")
RUN_FIELDS = {"model", "method", "board", "status", "error", "instructions", "cycles",
              "method_pool", "packed", "planned", "temp", "stack", "heap_bytes_allocated", "outputs",
              "seed"}


def path(name):
    return fixture_store.load(name).path


def inputs(name):
    return path(name).parent / "inputs.npz"


# ---- run


def test_run_prints_the_log_and_the_memory(call):
    status, out, error = call("run", path("ds_cnn"), "--inputs", inputs("ds_cnn"))
    assert (status, error) == (0, "")
    assert "random" not in out
    assert "Method 'forward' loaded." in out
    assert "Output[0][11]: (float) " in out
    assert "forward on host: ok" in out


def test_run_reports_random_inputs(call):
    first, second, other = [call("run", path("add_5"), "--seed", seed)[1] for seed in (0, 0, 1)]
    assert "The inputs are random (seed 0)" in first
    assert first == second != other


def test_run_json(call):
    status, out, _ = call("run", path("ds_cnn"), "--json")
    entry = json.loads(out)
    assert status == 0 and out.count("\n") == 1
    assert set(entry) == RUN_FIELDS
    assert entry["model"] == str(path("ds_cnn"))
    assert (entry["method"], entry["board"], entry["seed"]) == ("forward", "host", 0)
    assert (entry["status"], entry["error"]) == ("ok", None)
    assert entry["method_pool"]["size"] == entry["temp"]["size"] == 65536
    assert entry["planned"] == [{"used": 64000, "size": 64000}]
    (output,) = entry["outputs"]
    (wanted,) = fixture_store.load("ds_cnn").runs[0].expected
    assert (output["dtype"], output["sizes"]) == ("float32", [1, 12])
    assert call("run", path("ds_cnn"), "--json")[1] == out
    given = json.loads(call("run", path("ds_cnn"), "--inputs", inputs("ds_cnn"), "--json")[1])
    np.testing.assert_allclose(given["outputs"][0]["values"], wanted, rtol=1e-5, atol=1e-6)
    for name in ("instructions", "cycles", "stack", "heap_bytes_allocated"):
        assert entry[name] is None


@pytest.mark.parametrize("command", [["run"], ["parity", "--board", "host"], ["profile"]])
def test_threads_of_the_twin(call, monkeypatch, command):
    methods, make = [], twin.Method
    monkeypatch.setattr(twin, "Method", lambda *rest: methods.append(make(*rest)) or methods[-1])
    name, *options = command
    one, three = [call(name, path("ds_cnn"), *options, "--json", *threads)
                  for threads in ([], ["--threads", 3])]
    assert one[0] == three[0] == 0 and (name == "profile" or one == three)
    assert [method.library.threads for method in methods] == [1, 3]


def test_run_json_of_a_failure(call):
    status, out, error = call("run", path("planned_1785600"), "--planned-size", "0=1024", "--json")
    entry = json.loads(out)
    assert (status, error) == (1, "") and set(entry) == RUN_FIELDS
    assert entry["status"] == entry["error"]["name"] == "MemoryAllocationFailed"
    assert entry["error"]["code"] == 0x21
    assert entry["error"]["message"].startswith(
        f"{path('planned_1785600')}: planned buffer 0: 1785600B requested, 1024B available")
    assert entry["method_pool"] is None and entry["outputs"] == []


@pytest.mark.parametrize("name", ["add2_5", "channels_last_network", "integer_tensors", "two_methods"])
def test_run_reads_and_writes_arrays(call, tmp_path, name):
    run = fixture_store.load(name).runs[0]
    written = tmp_path / "written.npz"
    status, _, _ = call("run", path(name), "--method", run.method, "--inputs", inputs(name),
                        "--outputs", written)
    assert status == 0
    with np.load(written) as outputs:
        assert sorted(outputs) == [f"out{i}" for i in range(len(run.expected))]
        for i, wanted in enumerate(run.expected):
            output = outputs[f"out{i}"]
            assert (output.dtype, output.shape) == (wanted.dtype, wanted.shape)
            np.testing.assert_allclose(output, wanted, rtol=1e-5, atol=1e-6)


def test_memories_have_the_requested_sizes(call):
    arguments = ("--pool-size", 4096, "--planned-size", "0=64", "--temp-size", 128, "--json")
    entry = json.loads(call("run", path("add_1"), *arguments)[1])
    assert entry["method_pool"]["size"] == 4096
    assert entry["planned"] == [{"used": 32, "size": 64}]
    assert entry["temp"]["size"] == 128


def test_less_temp_memory_than_kernels_use_is_named(call):
    model = path("int8_ds_cnn")
    for size, percent in ((8, "100 %"), (0, ""), (3780, "100 %"), (65536, "5 %")):
        out = call("run", model, "--temp-size", size)[1]
        (row,) = [line for line in out.splitlines() if line.startswith("temp memory ")]
        assert row.split() == f"temp memory {min(3780, size):,} B {size:,} B {percent}".split()
        assert "free: -" not in out
        assert ("The kernels would use 3,780 B of temp memory" in out) == (size < 3780)
    entry = json.loads(call("run", model, "--temp-size", 8, "--json")[1])
    assert entry["temp"] == {"used": 3780, "size": 8}


def test_pool_of_just_the_bytes_that_are_used(call):
    used = json.loads(call("run", path("add_5"), "--json")[1])["method_pool"]["used"]
    assert call("run", path("add_5"), "--pool-size", used)[0] == 0
    assert_error(call("run", path("add_5"), "--pool-size", used - 1), "MemoryAllocationFailed",
                 f"method pool: {used}B requested, {used - 1}B available", "--pool-size")


# ---- errors


@pytest.mark.parametrize("command", ["run", "inspect", "size", "parity"])
def test_models_that_cannot_be_read(call, tmp_path, command):
    assert_error(call(command, tmp_path / "nix.pte"), "AccessFailed", "(0x22)", "nix.pte")
    assert_error(call(command, tmp_path), "AccessFailed", "(0x22)", "directory")
    (tmp_path / "text.pte").write_text("This is not a program, it is a text.")
    assert_error(call(command, tmp_path / "text.pte"), "InvalidProgram", "(0x23)")
    (tmp_path / "empty.pte").write_bytes(b"")
    assert_error(call(command, tmp_path / "empty.pte"), "InvalidProgram", "(0x23)")


@pytest.mark.parametrize("where", [[], ["--board", "mps2-an386"], ["--board", "mps2-an386", "--bare"]])
@pytest.mark.parametrize("options, hint", [
    (["--pool-size", 16], "--pool-size"), (["--planned-size", "0=16"], "--planned-size"),
    (["--temp-size", 8], None), (["--method", "nix"], "--method")])
def test_the_option_that_helps_is_that_of_the_subject(call, where, options, hint):
    """Words of the text do not select the option, since the file's name is part of the text."""
    with tempfile.TemporaryDirectory(prefix="temp memory requested") as folder:
        model = shutil.copy(path("planned_1785600"), folder)
        status, _, error = call("run", model, *where, *options)
        assert (status == 0) == (hint is None)
        assert hint is None or error.rstrip().endswith(f"({hint})"), error
        error = call("profile", model, *where, "--method", "nix")[2]
        assert error.rstrip().endswith("(--method)"), error


def test_no_option_is_named_that_the_command_does_not_have(call, monkeypatch):
    def run(request, board):
        result = Result(request.name, request.method, board)
        result.set_error(fail(MEMORY_ALLOCATION_FAILED, "", "method pool", -1, 2, 1))
        return result

    monkeypatch.setattr(running, "run", run)
    assert_error(call("run", path("add_1")), "MemoryAllocationFailed", "(--pool-size)")
    status, _, error = call("parity", path("add_1"))
    assert status == 1 and "method pool: 2B requested, 1B available" in error
    assert "--pool-size" not in error


@pytest.mark.parametrize("command", ["run", "inspect", "size", "parity"])
def test_method_that_there_is_not(call, command):
    assert_error(call(command, path("add_1"), "--method", "nix"), "NotFound",
                 f"(0x20): {path('add_1')}: nix: no method has this name", "forward",
                 "(--method)")


@pytest.mark.parametrize("command", ["run", "size"])
def test_missing_operators_are_all_named(call, command):
    assert_error(call(command, path("missing_operators")), "OperatorMissing", "(0x14)",
                 "aten::_upsample_bicubic2d_aa.out", "aten::lgamma.out")


@pytest.mark.parametrize("command", ["run", "inspect", "size", "parity", "profile"])
def test_name_of_a_method_that_is_no_utf8(call, command):
    """A shell passes such bytes unchanged."""
    assert_error(call(command, path("add_1"), "--method", os.fsdecode(b"\xff")), "NotFound")


def test_planned_buffer_that_there_is_not(call):
    assert_error(call("run", path("add_1"), "--planned-size", "1=64"), "InvalidArgument",
                 "planned buffer 1: the method has 1, counted from 0")


def npz(**arrays):
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def npy():
    file = io.BytesIO()
    np.save(file, np.zeros(5, np.float32))
    return file.getvalue()


ZEROS = np.zeros(5, np.float32)


def zipped(compression=zipfile.ZIP_STORED, **members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return file.getvalue()


def headed(text):
    """Return an array with this header, in the format of numpy 1."""
    return b"\x93NUMPY\1\0" + len(text).to_bytes(2, "little") + text.encode()


def encrypted():
    """Make a zip file with the flags of an encrypted file."""
    data = bytearray(zipped(**{"in0.npy": npy()}))
    data[6] |= 1
    data[data.find(b"PK\1\2") + 8] |= 1
    return bytes(data)


def compressed_badly():
    data = zipped(zipfile.ZIP_DEFLATED, **{"in0.npy": npy()})
    return data[:50] + b"\xff\xff" + data[52:]


@pytest.mark.parametrize("data, words", [
    (b"", "is not an .npz file"),
    (b"PK\x03\x04 not a zip after all", "is not an .npz file"),
    (npz(in0=ZEROS)[:-30], "is not an .npz file"),
    (npy(), "is not an .npz file"),
    (npz(in0=np.array([None], object)), "is not an .npz file"),
    (zipped(**{"in0.npy": b"is no array"}), "is not an .npz file"),
    (zipped(**{"in0.npy": npy(), "in0": npy()}), "is not an .npz file"),
    (zipped(**{"in0.npy": headed("{'descr': (")}), "is not an .npz file"),
    (zipped(**{"in0.npy": headed("{1: 2, 'a': 3}")}), "is not an .npz file"),
    (encrypted(), "is not an .npz file"),
    (compressed_badly(), "is not an .npz file"),
    (npz(x=ZEROS), "has x; name the arrays in0, in1"),
    (npz(in0=ZEROS, arr_0=ZEROS), "has arr_0; name the arrays in0, in1"),
    (npz(arr_1=ZEROS), "has arr_1; name the arrays in0, in1"),
    (npz(in1=ZEROS), "has in1"),
    (npz(), "1 expected, 0 given"),
    (npz(in0=ZEROS, in1=ZEROS), "1 expected, 2 given; the method takes in0: Float [5]"),
    (npz(in0=np.zeros(5)), "input 0: dtype float32 expected, float64 given"),
])
def test_inputs_that_do_not_fit(call, tmp_path, data, words):
    file = tmp_path / "in.npz"
    file.write_bytes(data)
    assert_error(call("run", path("add_5"), "--inputs", file), "InvalidArgument", words)


def test_arrays_without_names_are_inputs_in_their_order(call, tmp_path):
    """numpy.savez(file, array) names the array arr_0."""
    np.savez(tmp_path / "in.npz", np.arange(5, dtype=np.float32))
    status, out, error = call("run", path("add_5"), "--inputs", tmp_path / "in.npz", "--json")
    assert (status, error, json.loads(out)["status"]) == (0, "", "ok")


def test_inputs_of_other_sizes(call, tmp_path):
    file = tmp_path / "in.npz"
    file.write_bytes(npz(in0=np.zeros(6, np.float32)))
    assert_error(call("run", path("add_5"), "--inputs", file), "NotSupported",
                 "input 0: sizes [5] expected, [6] given")


def test_files_that_cannot_be_read_or_written(call, tmp_path):
    model = path("add_1")
    assert_error(call("run", model, "--inputs", tmp_path / "nix.npz"), "AccessFailed", "nix.npz")
    assert_error(call("run", model, "--inputs", tmp_path), "AccessFailed")
    (tmp_path / "folder.npz").mkdir()
    assert_error(call("run", model, "--outputs", tmp_path / "folder.npz"), "AccessFailed", "folder.npz")
    assert_error(call("run", model, "--outputs", tmp_path / "no" / "out.npz"), "AccessFailed")


@pytest.mark.parametrize("command", ["run", "inspect", "size", "parity", "profile"])
def test_a_file_that_never_ends(call, monkeypatch, command):
    assert_error(call(command, "/dev/zero"), "NotSupported", "/dev/zero: is a device, not a file")


@pytest.mark.parametrize("command", ["run", "inspect", "size", "parity", "profile"])
def test_a_file_that_is_too_large(call, monkeypatch, tmp_path, command):
    monkeypatch.setattr(files, "LARGEST_FILE", 1 << 20)
    (tmp_path / "large.pte").write_bytes(bytes((1 << 20) + 1))
    assert_error(call(command, tmp_path / "large.pte"), "NotSupported",
                 "large.pte: has more than 1048576 bytes")


def test_corrupted_program(call, tmp_path):
    data = bytearray(fixture_store.load("add_1").pte)
    file = tmp_path / "model.pte"
    generator = np.random.default_rng(2)
    for _ in range(100):
        place = generator.integers(len(data))
        file.write_bytes(data[:place] + bytes([data[place] ^ 0xFF]) + data[place + 1 :])
        for command in ("run", "inspect"):
            status, _, error = call(command, file)
            assert status in (0, 1)
            assert (error.count("\n") == 1) == (status == 1)
            assert "Internal" not in error, (place, command, error)


def test_fault_of_picotorch_is_one_line(call, monkeypatch):
    def fail(*_):
        raise ZeroDivisionError("by\nchance")

    monkeypatch.setattr(running, "run", fail)
    assert_error(call("run", path("add_1")), "Internal", "ZeroDivisionError: by chance")


def test_host_without_memory(call, monkeypatch):
    def fail(*_):
        raise MemoryError

    monkeypatch.setattr(running, "run", fail)
    assert_error(call("run", path("add_1")), "MemoryAllocationFailed")


def test_interrupt(call, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(running, "run", interrupt)
    assert call("run", path("add_1"))[::2] == (130, "\nInterrupted\n")


# ---- usage


@pytest.mark.parametrize("arguments, words", [
    (["nix"], "No such command 'nix'"),
    (["runn"], "No such command 'runn'. Did you mean run?\n"),
    (["run"], "Missing argument 'MODEL'. For example: picotorch run model.pte\n"),
    (["completion"], "Choose from: bash, zsh, fish. For example: picotorch completion bash"),
    (["compile"], "Missing argument 'MODEL...'. For example: picotorch compile model.pte --board"),
    (["compile", "m.pte", "-o"], "Option '-o' requires an argument: OUT.PTM."),
    (["compile", "m.pte", "-o", "other.pte"], "give the .ptm file one that ends in .ptm"),
    (["compile", "m.pte", "out.ptm"],
     "out.ptm is no program: if the .ptm file is to have this name, write -o"),
    (["compile", "a.pte", "b.pte", "-o", "o.ptm"], "compile each separately, or give --c FOLDER"),
    (["compile", "a.pte", "--c", "p", "--name", "a", "--name", "b"],
     "--name is given 2 times for 1 model: give one for each"),
    (["run", "m.pte", "--nix"], "No such option"),
    (["run", "m.pte", "--board", "nix"], "'nix' is not one of 'host', '"),
    (["run", "m.pte", "--pool-size", "-1"], "--pool-size"),
    (["run", "m.pte", "--pool-size", "many"], "--pool-size"),
    (["run", "m.pte", "--temp-size", str((1 << 27) + 1)], "--temp-size"),
    (["run", "m.pte", "--planned-size", "1024"], "is not I=N"),
    (["run", "m.pte", "--planned-size", "=1024"], "is not I=N"),
    (["run", "m.pte", "--planned-size", "0=-4"], "is not I=N"),
    (["run", "m.pte", "--planned-size", "0=99999999999"], "is not I=N"),
    (["run", "m.pte", "--planned-size", "0=" + "9" * 5000], "is not I=N"),
    (["run", "m.pte", "--sizes", "2,3"], "is not I=2,3"),
    (["run", "m.pte", "--sizes", "0=0,99999999999"], "is not I=2,3"),
    (["run", "m.pte", "--sizes", "0=" + "9" * 5000], "is not I=2,3"),
    (["profile", "m.pte", "--sizes", "0=1", "--inputs", "in.npz"], "--sizes is for random inputs"),
    (["parity", "m.pte", "--sizes", "0=1", "--inputs", "in.npz"], "--sizes is for random inputs"),
    (["run", "m.pte", "--rtol", "nan"], "not finite"),
    (["run", "m.pte", "--atol", "inf"], "not finite"),
    (["run", "m.pte", "--seed", "-1"], "--seed"),
    (["run", "m.pte", "more"], "unexpected extra argument"),
    (["size", "m.pte", "--board", "host"], "'host' is not one of"),
    *((arguments.split(), "--timeout is for a connected board: give --port") for arguments in (
        "run m.pte --timeout 1", "run m.pte --board mps2-an386 --timeout 1", "size m.pte --timeout 1",
        "parity m.pte --timeout 1", "profile m.pte --timeout 1",
        "flash m.uf2 --board RPI_PICO --timeout 1")),
])
def test_usage_errors(call, arguments, words):
    assert_usage(call(*arguments), words)


def test_usage_errors_as_json(call):
    status, out, _ = call("run", "--json")
    assert status == 2 and json.loads(out)["error"]["message"] == (
        "Missing argument 'MODEL'. For example: picotorch run model.pte; see picotorch run --help")


def test_a_folder_named_image_is_no_image(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "image").mkdir()
    assert_error(call("examples", "image"), "AccessFailed",
                 ": image: exists already; name another folder\n")


def test_json_has_no_infinities(capsys):
    show.as_json({"a": [1.5, float("inf"), {"b": float("-inf")}], "c": float("nan")})
    assert json.loads(capsys.readouterr().out) == {"a": [1.5, "inf", {"b": "-inf"}], "c": "nan"}


@pytest.mark.parametrize("command", [[], ["run"], ["inspect"], ["size"], ["parity"], ["profile"],
                                     ["export"], ["firmware"], ["boards"], ["examples"]])
def test_help_has_an_example(call, command):
    status, out, _ = call(*command, "--help")
    assert status == 0
    assert "Example" in out and "  picotorch " in out


def summaries(call):
    """Return the summaries of `picotorch --help` by command."""
    status, out, error = call("--help")
    assert (status, error) == (0, "") and "..." not in out.partition("Commands:")[2]
    assert max(map(len, out.splitlines())) <= 80
    entries = re.findall(r"^  (\S+) +(.+(?:\n {4,}.+)*)", out.partition("Commands:")[2], re.MULTILINE)
    return {name: " ".join(text.split()) for name, text in entries}


def test_the_list_of_commands_has_the_first_sentence_of_each_help(call):
    with click.Context(cli) as context:
        helps = {name: cli.get_command(context, name).help for name in cli.list_commands(context)}
    assert summaries(call) == {
        name: re.match(r".*?\.(?=\s)", text, re.DOTALL)[0].replace("\n", " ").replace("    ", "")
        for name, text in helps.items()}


# ---- inspect


def test_methods_of_the_same_printed_name_are_all_listed(call, tmp_path):
    """A terminal's control characters are printed as question marks, so two names may look the same."""
    model = tmp_path / "model.pte"
    model.write_bytes(Path(path("two_methods")).read_bytes().replace(b"decode", b"\1\2code").replace(
        b"encode", b"\3\4code"))
    status, out, _ = call("inspect", str(model), "--json")
    assert status == 0
    one, other = json.loads(out)["methods"]
    assert one["name"] == other["name"] == "??code" and one["instructions"] != other["instructions"]


def test_inspect(call):
    status, out, _ = call("inspect", path("channels_last_network"))
    assert status == 0
    assert "Float [1, 3, 8, 8] dim order 0 2 3 1" in out
    assert "aten::convolution.out" in out and "MISSING" not in out
    assert "planned buffer 0" in out


def test_inspect_of_lists_of_lists(call, tmp_path):
    """With each list inside the list before it, the output would be endless, or have 8**20 items."""
    lists = [{"val": ("IntList", {"items": [i + 1] * 8})} for i in range(2, 22)]
    values = [tensor([4], 0), tensor([4], 16), *lists, {"val": ("IntList", {"items": [22]})}]
    instructions = [call_of(0, 0, 2, 1, 1), call_of(0, 0, 22, 1, 1)]
    path = tmp_path / "lists.pte"
    path.write_bytes(program(plan(values, instructions, ["aten::view_copy.out"], [0], [1], [32])))
    out = call("inspect", path)[1]
    assert "[%3, %3, %3, %3, %3, %3, %3, %3]" in out and "[%22]" in out


COMMANDS_OF_TERMINALS = "\x1b[2J\x9b31m\x7f\u202e\r\nforward on host: ok"


@pytest.mark.parametrize("command", ["inspect", "run", "size", "profile"])
def test_names_cannot_command_a_terminal(call, tmp_path, command):
    method = relu_plan() | {"name": COMMANDS_OF_TERMINALS, "outputs": [1, 2]}
    method["values"].append(string_value(COMMANDS_OF_TERMINALS))
    (tmp_path / "model.pte").write_bytes(program(method))
    asked = [] if command == "inspect" else ["--method", COMMANDS_OF_TERMINALS]
    drawing = ["--memory-map", tmp_path / "map.svg"] if command == "profile" else []
    status, out, error = call(command, tmp_path / "model.pte", *asked, *drawing)
    assert (status, error) == (0, "")
    assert not [c for c in out if not c.isprintable() and c != "\n"]
    assert "forward on host: ok" not in out.splitlines()
    if drawing:
        xml.etree.ElementTree.parse(tmp_path / "map.svg")


def test_a_path_that_is_no_utf8(call, tmp_path):
    model = tmp_path / os.fsdecode(b"\xff.pte")
    model.write_bytes(fixture_store.load("add_1").pte)
    for command in ("inspect", "run"):
        status, out, error = call(command, model)
        assert (status, error) == (0, "")
    assert_error(call("run", tmp_path / os.fsdecode(b"\xfe.pte")), "AccessFailed")


def test_inspect_names_missing_operators(call):
    status, out, _ = call("inspect", path("missing_operators"))
    assert status == 0
    assert "2 without a kernel" in out
    for name in ("aten::_upsample_bicubic2d_aa.out", "aten::lgamma.out"):
        assert any(line.split() == [name, "MISSING"] for line in out.splitlines())


@pytest.mark.parametrize("fixture", fixture_store.load_all(), ids=lambda fixture: fixture.name)
def test_inspect_json_agrees_with_the_exporter(call, fixture):
    entry = json.loads(call("inspect", fixture.path, "--json")[1])
    assert entry["bytes"] == len(fixture.pte)
    assert [method["name"] for method in entry["methods"]] == [
        name for name in fixture.methods if name not in entry["constant_methods"]]
    for method in entry["methods"]:
        wanted = fixture.methods[method["name"]]
        assert method["planned_buffers"] == wanted["planned_buffers"]
        assert sorted(op["name"] for op in method["operators"]) == wanted["operators"]
        assert len(method["instructions"]) == wanted["instructions"]
        assert method["backends"] == wanted["backends"]
        for kind in ("inputs", "outputs"):
            assert [value.get("sizes") for value in method[kind]] == [
                value.get("sizes") for value in wanted[kind]]
        for operator in method["operators"]:
            assert operator["kernel"] == (operator["name"] not in fixture.refused)


def test_inspect_lists_instructions(call):
    (method,) = json.loads(call("inspect", path("add_5"), "--json")[1])["methods"]
    assert [call["call"] for call in method["instructions"]] == [
        "aten::add.out", "dim_order_ops::_to_dim_order_copy.out", "aten::add.out"]
    first = method["instructions"][0]
    assert first["arguments"][2] == "1" and len(first["outputs"]) == 1
    assert method["constant_bytes"] == 8


def test_inspect_shows_control_flow_and_values_of_inputs(call):
    out = call("inspect", path("control_flow"))[1]
    assert "jump if false" in out and "move" in out
    assert "Double 0.5" in call("inspect", path("scalar_inputs"))[1]


# ---- boards: the firmware is built


def test_boards(call):
    entries = json.loads(call("boards", "--json")[1])["boards"]
    assert {"mps2-an385", "mps2-an386"} <= {entry["board"] for entry in entries}
    assert [entry["board"] for entry in entries if entry["default"]] == ["mps2-an386"]
    out = call("boards")[1]
    assert "mps2-an386" in out and "cortex-m4" in out


def test_a_run_on_a_board_shows_cycles_beside_instructions(call):
    out = call("run", path("int8_ds_cnn"), "--board", "mps2-an386")[1].splitlines()
    i = next(i for i, line in enumerate(out) if line.startswith("instructions to execute"))
    instructions, cycles = (int(line.split()[-1].replace(",", "")) for line in out[i : i + 2])
    assert out[i + 1].startswith("  about cycles ")
    assert 1 < cycles / instructions < 2  # on a core that issues one instruction a cycle
    assert "cycles" not in "".join(call("run", path("int8_ds_cnn"))[1])


def test_run_on_a_board(call, tmp_path):
    written = tmp_path / "out.npz"
    status, out, error = call("run", path("ds_cnn"), "--board", "mps2-an386", "--json", "--inputs",
                              inputs("ds_cnn"), "--outputs", written)
    entry = json.loads(out)
    assert (status, error) == (0, "")
    assert set(entry) == RUN_FIELDS
    assert (entry["board"], entry["status"], entry["seed"]) == ("mps2-an386", "ok", None)
    assert all(entry["instructions"][phase] > 0 for phase in ("verify", "load", "execute"))
    assert entry["stack"]["load"] > 0 and entry["stack"]["execute"] > 0
    assert entry["heap_bytes_allocated"] == 0
    profile = json.loads(call("profile", path("ds_cnn"), "--board", "mps2-an386", "--json")[1])
    assert entry["cycles"] == pytest.approx(profile["cycles"], rel=0.001)
    assert entry["planned"] == [{"used": 64000, "size": 64000}]
    assert call("run", path("ds_cnn"), "--inputs", inputs("ds_cnn"), "--outputs",
                tmp_path / "host.npz")[0] == 0
    with np.load(written) as board, np.load(tmp_path / "host.npz") as host:
        assert board["out0"].tobytes() == host["out0"].tobytes()


def test_error_on_a_board(call):
    result = call("run", path("planned_1785600"), "--board", "mps2-an386", "--planned-size",
                  "0=1024")
    assert_error(result, "MemoryAllocationFailed", "(0x21): ", "planned buffer 0: 1785600B requested, "
                 "1024B available")


@pytest.mark.parametrize("option, memory", [
    ("--pool-size=1048577", "method pool: 1048577B requested, 1048576B available"),
    ("--temp-size=65537", "temp memory: 65537B requested, 65536B available"),
    ("--planned-size=0=100000000", "planned buffer 0: 100000000B requested, 15728640B available"),
])
def test_a_board_does_not_provide_less_memory_than_requested(call, option, memory):
    result = call("run", path("add_1"), "--board", "mps2-an386", option)
    assert_error(result, "MemoryAllocationFailed", memory)


@pytest.mark.parametrize("name", ["constant_output", "unplanned_io"])
def test_outputs_outside_the_planned_memory_on_a_board(call, name):
    status, out, error = call("parity", path(name))
    assert (status, error) == (0, "")
    assert out.splitlines()[-1].endswith(" agree")


def with_output(folder, value, **fields):
    """Write relu of four floats, with an additional output."""
    method = relu_plan() | {"outputs": [1, 2]} | fields
    method["values"] += [value, tensor([2], 0), {"val": ("Null", {})}]
    (folder / "model.pte").write_bytes(program(method))
    return folder / "model.pte"


@pytest.mark.parametrize("kind, items", [
    ("TensorList", [0, 1]), ("DoubleList", [1.5, float("nan"), -float("inf")]), ("BoolList", [True]),
])
def test_a_list_as_output_on_a_board(call, tmp_path, kind, items):
    status, out, error = call("parity", with_output(tmp_path, {"val": (kind, {"items": items})}))
    assert (status, error) == (0, "")
    assert out.splitlines()[-1] == "the twin and mps2-an386 agree"


@pytest.mark.parametrize("board", ["host", "mps2-an386"])
@pytest.mark.parametrize("kind, items, error", [
    ("TensorList", [0, 3], ("NotSupported", "output 1: is a list of tensors of different sizes")),
    ("OptionalTensorList", [0, -1], ("NotSupported", "output 1: is a list of tensors")),
    ("IntList", [0], ("InvalidProgram", "")),
])
def test_a_list_that_is_no_output(call, tmp_path, board, kind, items, error):
    model = with_output(tmp_path, {"val": (kind, {"items": items})})
    assert_error(call("run", model, "--board", board), *error)


def test_a_method_whose_name_a_job_cannot_hold(call, tmp_path):
    model = with_output(tmp_path, string_value("text"), name="a\nb")
    assert call("run", model, "--method", "a\nb")[0] == 0
    assert_error(call("run", model, "--method", "a\nb", "--board", "mps2-an386"), "NotSupported",
                 "line break")


@pytest.mark.thorough
@pytest.mark.parametrize("fields", [{"inputs": [0] * 60_000}, {"outputs": [1] * 20_000},
                                    {"non_const_buffer_sizes": [0] + [32] * 100_000}])
def test_a_run_that_needs_more_heap_than_the_board_has(call, tmp_path, fields):
    result = call("run", with_output(tmp_path, string_value("text"), **fields), "--board",
                  "mps2-an386")
    assert_error(result, "MemoryAllocationFailed", "mps2-an386")


def test_model_too_large_for_a_board(call, tmp_path):
    file = tmp_path / "model.pte"
    file.write_bytes(fixture_store.load("add_1").pte + bytes(1 << 22))
    assert_error(call("run", file, "--board", "mps2-an386"), "MemoryAllocationFailed", "mps2-an386")


def test_firmware_that_is_not_built(call, monkeypatch, tmp_path):
    monkeypatch.setattr(emulator, "FIRMWARE_DIR", tmp_path)
    assert_error(call("run", path("add_1"), "--board", "mps2-an385"), "NotFound",
                 "make firmware BOARD=mps2-an385")
    assert "make firmware BOARD=NAME" in call("boards")[1]


def test_emulator_that_is_not_installed(call, monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert_error(call("run", path("add_1"), "--board", "mps2-an386"), "NotFound",
                 "apt-get install qemu-system-arm")


# ---- parity


@pytest.mark.thorough
def test_parity(call):
    status, out, _ = call("parity", path("ds_cnn"), "--board", "mps2-an386", "--board", "mps2-an385")
    assert status == 0
    assert out.splitlines()[-1] == (
        "the twin, mps2-an386, mps2-an385 and the expected outputs "
        f"({path('ds_cnn').parent / 'expected.npz'}) agree")
    assert out.count("identical to the bit") == 2 and out.count("bytes identical") == 2
    assert out.count("expected outputs: largest relative difference") == 3


def test_parity_json(call):
    entry = json.loads(call("parity", path("mobilenet_v1_025"), "--json")[1])
    assert entry["agree"] is True
    assert entry["inputs"] == "random (seed 0)" and entry["reference"] is None
    (board,) = entry["boards"]
    assert board["compared_pool_bytes"] > 0
    assert board["agree"] is True and board["board"] == "mps2-an386"
    assert (board["differing_outputs"], board["first_differing_pool_byte"]) == ([], None)
    assert board["outputs"] == entry["outputs"] and entry["outputs"][0]["values"]
    assert entry.keys() & board.keys() >= RUN_FIELDS - {"seed"}


def test_same_bits():
    one = np.array([1, np.nan, -0.0], np.float32)
    other = one.copy()
    other[1] = -other[1]
    assert one.tobytes() != other.tobytes() and same_bits(one, other)
    assert not same_bits(one, np.array([1, np.nan, 0.0], np.float32))
    assert not same_bits(one, np.array([np.nan, np.nan, -0.0], np.float32))
    assert not same_bits(one, one.astype(np.float64))
    assert not same_bits(one, one.reshape(3, 1))
    assert not same_bits(np.array([1]), np.array([2]))


def copied(name, folder, **arrays):
    """Write a model with inputs.npz and other expected arrays beside it."""
    (folder / "model.pte").write_bytes(fixture_store.load(name).pte)
    (folder / "inputs.npz").write_bytes(inputs(name).read_bytes())
    np.savez(folder / "expected.npz", **arrays)
    return folder / "model.pte"


def test_parity_with_a_reference_that_differs(call, tmp_path):
    (wanted,) = fixture_store.load("add_5").runs[0].expected
    close = wanted + np.abs(wanted).max() * np.float32(0.9e-5)
    assert call("parity", copied("add_5", tmp_path, out0=close))[0] == 0
    far = wanted + np.abs(wanted).max() * np.float32(1.1e-5)
    status, out, error = call("parity", copied("add_5", tmp_path, out0=far))
    assert (status, error) == (1, "")
    assert "expected outputs: DIFFERENT: largest relative difference 1.1e-05, more than 1e-05" in out
    assert out.splitlines()[-1].endswith("DO NOT AGREE")


@pytest.mark.parametrize("arrays", [
    {"out0": np.zeros(4, np.float32)}, {"out0": np.zeros(5)},
    {"out0": np.zeros(5, np.float32), "out1": np.zeros(5, np.float32)}, {"x": np.zeros(5)},
])
def test_parity_with_another_models_reference(call, tmp_path, arrays):
    assert_error(call("parity", copied("add_5", tmp_path, **arrays)), "InvalidArgument",
                 "expected.npz")


@pytest.mark.parametrize("change, words", [
    (lambda result: result.outputs[0].__setitem__(0, 7), "outputs: DIFFERENT: these differ: 0"),
    (lambda result: setattr(result, "pool", result.pool[:-1] + b"\xff"),
     "method pool: DIFFERENT: differs from byte"),
    (lambda result: setattr(result, "pool", result.pool[:-4]),
     "method pool: DIFFERENT: differs from byte"),
])
def test_parity_with_a_board_that_differs(call, monkeypatch, change, words):
    on_board = emulated.run

    def run(request, board):
        result = on_board(request, board)
        change(result)
        return result

    monkeypatch.setattr(emulated, "run", run)
    status, out, _ = call("parity", path("conv1d"))
    assert status == 1
    assert words in out and out.splitlines()[-1].endswith("DO NOT AGREE")


def test_parity_compares_packed_weights(call, monkeypatch):
    on_board = emulated.run

    def run(request, board):
        result = on_board(request, board)
        result.pool = result.pool[:-1] + bytes([result.pool[-1] ^ 1])
        return result

    arguments = ["parity", path("int8_ds_cnn"), "--pack-weights", "--json"]
    (board,) = json.loads(call(*arguments)[1])["boards"]
    assert board["first_differing_pool_byte"] is None and board["compared_pool_bytes"] > 30_000
    monkeypatch.setattr(emulated, "run", run)
    status, out, _ = call(*arguments)
    assert status == 1 and json.loads(out)["boards"][0][
        "first_differing_pool_byte"] == board["compared_pool_bytes"] - 1


# ---- as programs


@pytest.mark.parametrize("command", [[SCRIPT], [sys.executable, "-m", "picotorch"]])
def test_entry_points(command):
    run = [*command, "run", str(path("add_1")), "--json"]
    ended = subprocess.run(run, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert json.loads(ended.stdout)["status"] == "ok"
    assert subprocess.run([*command, "nix"], capture_output=True).returncode == 2


def test_output_that_cannot_be_written():
    command = [sys.executable, "-m", "picotorch", "inspect", str(path("add_1"))]
    with open("/dev/full", "w") as full:
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert ended.returncode == 1
    assert ended.stderr.startswith("AccessFailed (0x22): ")


def test_reader_that_closes_the_pipe():
    process = subprocess.Popen([SCRIPT, "inspect", str(path("mobilenet_v1_025"))],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.close()
    error = process.stderr.read()
    process.wait()
    process.stderr.close()
    assert error == b""


def test_interrupt_while_a_board_runs():
    process = subprocess.Popen(
        [SCRIPT, "run", str(path("simple_conv_256")), "--board", "mps2-an386"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "PYTHONUNBUFFERED": "1"})
    wait_for_emulator(process)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=20)
    assert (process.returncode, error) == (130, b"\nInterrupted\n")


# ---- backends

BACKEND = """
from picotorch import Backend

class Sevens(Backend):
    def init(self, context, processed, compile_specs):
        return None

    def execute(self, context, handle, args):
        for i in range(len(args[-1].data)):
            args[-1].data[i] = 7
"""


def test_a_backend_of_a_module_in_the_working_folder(call, monkeypatch, tmp_path):
    (tmp_path / "sevens.py").write_text(BACKEND)
    monkeypatch.chdir(tmp_path)
    model = path("delegate_named_data").resolve()
    needed = ("--backend", "IntegerBackend=sevens:Sevens")
    for _ in range(2):  # and the backend is gone when the command ends
        assert_error(call("run", model), "NotFound", "IntegerBackend")
        assert call("run", model, *needed, "--outputs", "out.npz")[0] == 0
    assert set(np.load("out.npz")["out0"].tolist()) == {7}
    for command in ("size", "profile"):
        assert call(command, model, *needed)[0] == 0


@pytest.mark.parametrize("given, message", [
    ("sevens", "is not [NAME=]MODULE:CLASS"),
    ("no_such_module:A", "ModuleNotFoundError"),
    ("pathlib:Missing", "has no attribute 'Missing'"),
    ("pathlib:Path", "InvalidType (0x13)"),
    ("zipfile:ZipFile", "TypeError"),
    ("shutil:disk_usage", "TypeError"),
])
def test_a_backend_that_cannot_be_used(call, given, message):
    status, _, error = call("run", path("add_1"), "--backend", given)
    assert status == 2
    assert message in error
