"""Test picotorch selftest: a board without some kernels, or with little memory, passes the steps that
it can run."""

import json
from types import SimpleNamespace

import pytest
from picotorch.deploy import selftest
from picotorch.errors import INTERNAL, MEMORY_ALLOCATION_FAILED, OPERATOR_MISSING, fail
from picotorch.firmware import selective
from picotorch.host.twin import open_program
from picotorch.run import emulator
from support import fixture_store
from support.wire import BOARD, Board

pytestmark = pytest.mark.thorough

FAILURES = ["a pool that is too small", "a pool that is large enough", "a damaged program"]
SMALL_BOARD = "netduinoplus2"


@pytest.fixture(params=["int8_ds_cnn", "mul_broadcast"])
def firmware(request):
    """Return the name of a fixture, and a firmware with a prompt and only the kernels of this
    fixture."""
    programs = {"model": open_program(fixture_store.load(request.param).pte)}
    folder = emulator.build_folder(BOARD, "repl") / "selected" / request.param
    with selective.locked(folder.parent):
        selective.write_changed(folder, {
            "operators.def": selective.selection(programs),
            "manifest.py": selective.manifest(selective.needed_parts(programs))})
        selective.make(BOARD, ["firmware", "--variant", "repl"], folder)
    return request.param, folder / "firmware.elf"


def report_of(call, port, tmp_path):
    """Return status, {step: passed}, {step: message} and the printed text."""
    status, out, _ = call("selftest", "--port", port, "--report", tmp_path / "report.json")
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["passed"] == (status == 0) and "-1B" not in json.dumps(report)
    steps = report["steps"]
    return (status, {step["step"]: step["passed"] for step in steps},
            {step["step"]: step["message"] for step in steps}, out)


def test_the_firmware_of_one_model_passes_the_tests_of_its_kernels(call, firmware, tmp_path):
    name, path = firmware
    with Board(firmware=path) as board:
        status, passed, messages, out = report_of(call, board.port, tmp_path)
    ran = [f"model {name}"] * (name in selftest.MODELS) + FAILURES
    assert status == 0 and [step for step, verdict in passed.items() if verdict] == ran
    assert False not in passed.values()
    left_out = [messages[step] for step, verdict in passed.items() if verdict is None]
    assert all(message.startswith("OperatorMissing: no kernel for: ") for message in left_out)
    assert f"{len(ran)} passed, {len(left_out)} left out" in out and "left out  model mlp" in out


def test_a_board_with_little_memory_passes_the_tests_that_fit(call, tmp_path):
    with Board(SMALL_BOARD) as board:
        status, passed, messages, _ = report_of(call, board.port, tmp_path)
    left_out = [step for step, verdict in passed.items() if verdict is None]
    assert status == 0 and False not in passed.values() and "model int8_ds_cnn" in left_out
    for step in left_out:
        requested, available = sizes_of(messages[step])
        assert requested > available > 1024


def sizes_of(message):
    assert message.startswith("MemoryAllocationFailed (0x21): heap: ")
    words = message.split()
    return [int(words[words.index(word) - 1][:-1]) for word in ("requested,", "available:")]


# ---- verdicts


STEPS = {"fits": lambda: selftest._Outcome(True), "kernel": lambda: leave_out(OPERATOR_MISSING),
         "heap": lambda: refuse(MEMORY_ALLOCATION_FAILED, "heap"),
         "pool": lambda: refuse(MEMORY_ALLOCATION_FAILED, "method pool"),
         "broken": lambda: refuse(INTERNAL, None), "other": lambda: selftest._Outcome(False, "no")}


def refuse(code, subject):
    raise fail(code, "", subject, requested=2, available=1)


def leave_out(code):
    selftest._passing(SimpleNamespace(code=code, status="OperatorMissing", message="no kernel"))


@pytest.mark.parametrize(("steps", "passed"), [
    (["fits"], True), (["fits", "kernel", "heap"], True), (["kernel", "heap"], False), ([], False),
    (["fits", "pool"], False), (["fits", "broken"], False), (["fits", "other"], False)])
def test_something_has_to_run_and_nothing_may_fail(call, monkeypatch, tmp_path, steps, passed):
    monkeypatch.setattr(selftest, "_steps", lambda run: [(name, STEPS[name]) for name in steps])
    with Board() as board:
        status, *_, out = report_of(call, board.port, tmp_path)
    assert status == (0 if passed else 1)
    assert ("Nothing was tested" in out) == ("fits" not in steps)
