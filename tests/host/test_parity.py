"""Test run, parity and profile in the memories of a board, and parity with named files."""

import json

import numpy as np
import pytest
from picotorch.boards.boards import full_board_names, load_board
from picotorch.run import emulated
from support import benchmark_store, fixture_store
from support.calling import assert_error, assert_usage


def path(name):
    return fixture_store.load(name).path


def inputs(name):
    return path(name).parent / "inputs.npz"


def copied(name, folder, **arrays):
    """Write a model with its inputs.npz and other expected arrays beside it."""
    (folder / "model.pte").write_bytes(fixture_store.load(name).pte)
    (folder / "inputs.npz").write_bytes(inputs(name).read_bytes())
    np.savez(folder / "expected.npz", **arrays)
    return folder / "model.pte"


@pytest.fixture
def large(tmp_path):
    """Return the file of a model whose packed weights need 160 KB of pool."""
    file = tmp_path / "model.pte"
    file.write_bytes(benchmark_store.load("int8_resnet8").pte("mps2-an386"))
    return file


@pytest.mark.parametrize("board", full_board_names())
@pytest.mark.parametrize("command", ["run", "parity", "profile"])
def test_a_board_offers_its_memories(call, command, board):
    status, out, error = call(command, path("int8_ds_cnn"), "--board", board, "--json")
    assert status == 0, error
    if command == "run":
        entry, arenas = json.loads(out), load_board(board).arenas
        assert entry["method_pool"]["size"] == arenas["pool"].size
        assert entry["temp"]["size"] == arenas["temp"].size


def test_packed_weights_may_use_all_memory_of_a_board(call, large):
    """The twin, which runs for comparison, uses as much."""
    arguments = [large, "--board", "mps2-an386", "--pack-weights", "--json"]
    assert json.loads(call("run", *arguments)[1])["packed"] > 150_000
    assert json.loads(call("parity", *arguments)[1])["agree"] is True


@pytest.mark.parametrize("command", ["run", "parity", "profile"])
def test_a_remedy_does_not_request_more_memory_than_the_board_has(call, large, command):
    result = call(command, large, "--board", "netduinoplus2", "--pack-weights")
    assert result[0] == 1
    assert result[2].endswith("8192B available; the board has no more, see picotorch boards\n")


def test_parity_with_named_files(call, tmp_path):
    model, given, wanted = tmp_path / "model.pte", tmp_path / "my in.npz", tmp_path / "my out.npz"
    model.write_bytes(fixture_store.load("ds_cnn").pte)
    given.write_bytes(inputs("ds_cnn").read_bytes())
    assert call("run", model, "--inputs", given, "--outputs", wanted)[0] == 0
    files = ["--inputs", given, "--expected", wanted]
    for board in ("host", "mps2-an386"):
        status, out, _ = call("parity", model, "--board", board, *files)
        assert status == 0
        assert f"\ninputs: {given}\nexpected outputs: {wanted}\n" in out
        assert out.splitlines()[-1].endswith(" agree")
    assert call("parity", model, "--board", "host", *files, "--inputs", inputs("add_5"))[0] != 0
    entry = json.loads(call("parity", model, "--board", "host", *files, "--json")[1])
    assert entry["agree"] is True and entry["boards"] == []
    assert (entry["inputs"], entry["expected"]) == (str(given), str(wanted))


@pytest.mark.parametrize(("rtol", "status"), [("2e-5", 0), ("1.05e-5", 1), ("0", 1)])
def test_parity_with_a_tolerance(call, tmp_path, rtol, status):
    (wanted,) = fixture_store.load("add_5").runs[0].expected
    other = wanted + np.abs(wanted).max() * np.float32(1.1e-5)
    model = copied("add_5", tmp_path, out0=other)
    assert call("parity", model, "--board", "host", "--rtol", rtol)[0] == status


def test_parity_reports_a_missing_reference(call, tmp_path):
    model = tmp_path / "model.pte"
    model.write_bytes(fixture_store.load("add_1").pte)
    assert "expected outputs: none" in call("parity", model)[1]
    assert_usage(call("parity", model, "--board", "host"), "--board host", "--expected")
    assert_usage(call("parity", model, "--rtol", 1), "--rtol", "--expected")
    assert_error(call("parity", model, "--expected", path("add_1").parent / "expected.npz"),
                 "InvalidArgument", "expected.npz", "the inputs are random", "--inputs")


def test_parity_prints_each_board_as_it_comes(call, monkeypatch, capsys):
    on_board, printed = emulated.run, []

    def run(request, board):
        printed.append(capsys.readouterr().out)
        return on_board(request, board)

    monkeypatch.setattr(emulated, "run", run)
    assert call("parity", path("add_1"), "--board", "mps2-an386", "--board", "netduinoplus2")[0] == 0
    first, second = printed
    assert "the twin and the expected outputs" in first and "mps2-an386" not in first
    assert "mps2-an386 and the twin, outputs: 1 identical" in second and "netduinoplus2" not in second
