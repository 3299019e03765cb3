"""Test picotorch run SCRIPT.py: the user's own program on an emulated board."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from picotorch.boards.boards import full_board_names
from support import fixture_store
from support.calling import assert_error, assert_usage
from support.tiers import with_prompt

MODEL = fixture_store.load("add_5").path
BOARD = ("--board", "mps2-an386")


@pytest.fixture
def script(tmp_path):
    """Return a function that writes main.py and returns its path."""
    def write(text):
        path = tmp_path / "main.py"
        path.write_text(text, encoding="utf-8")
        return path
    return write


@pytest.mark.parametrize("board", with_prompt(full_board_names()))
def test_a_script_uses_a_model_beside_it(call, script, board):
    path = script("import picotorch\n"
                  "data = open('model.pte', 'rb').read()\n"
                  "program = picotorch.Program.load(picotorch.BufferDataLoader(data))\n"
                  "print('é', __name__, program.method_names, len(data))\n")
    result = call("run", path, "--board", board, "--model", MODEL)
    assert result == (0, f"é __main__ ['forward'] {MODEL.stat().st_size}\n", "")


@pytest.mark.parametrize("end, status, output", [
    ("", 0, ""), ("sys.exit()", 0, ""), ("sys.exit(3)", 3, ""), ("sys.exit('why')", 1, "why\n"),
    ("import _board; _board.exit(4)", 4, ""),
])
def test_the_status_is_the_scripts(call, script, end, status, output):
    assert call("run", script(f"import sys\n{end}\n"), *BOARD) == (status, output, "")


def test_an_exception_is_shown_with_the_scripts_lines(call, script):
    status, out, error = call("run", script("def halve(x):\n    return x / 0\n\nhalve(1)\n"), *BOARD)
    assert (status, error) == (1, "")
    assert 'File "main.py", line 4, in <module>\n  File "main.py", line 2, in halve\n' in out
    assert out.endswith("ZeroDivisionError: divide by zero\n")


def test_json(call, script):
    path = script("print('one')\nraise SystemExit(2)\n")
    status, out, _ = call("run", path, *BOARD, "--json")
    assert json.loads(out) == {"script": str(path), "board": "mps2-an386", "exit_status": 2,
                               "output": "one\n"}
    assert status == 2


@pytest.mark.thorough
def test_a_script_that_does_not_end(call, script):
    path = script("print('begun')\nwhile True:\n    pass\n")
    status, out, error = call("run", path, *BOARD, "--timeout", 3)
    assert (status, out) == (1, "begun\n")
    assert "did not end within 3 s" in error and "--timeout" in error
    status, out, error = call("run", path, *BOARD, "--timeout", 3, "--json")
    assert (status, error) == (1, "") and "--timeout" in json.loads(out)["error"]["message"]


def test_a_stack_that_is_too_small_is_named(call, script):
    path = script("import _board\n_board.fault('stack')\n")
    _, _, error = call("run", path, *BOARD)
    assert "the stack of 32768 B overflowed; give [stack] in boards/mps2-an386/board.toml" in error


def test_another_fault_is_named(call, script):
    _, _, error = call("run", script("import _board\n_board.fault('undefined')\n"), *BOARD)
    assert "UsageFault" in error and " pc 0" in error and error.count("\n") == 1


def test_output_comes_as_it_is_printed(script):
    path = script("import time\nprint('first')\ntime.sleep(60)\n")
    command = [sys.executable, "-m", "picotorch", "run", path, *BOARD]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        begun = time.monotonic()
        assert process.stdout.readline() == "first\n"
        assert process.poll() is None, time.monotonic() - begun
        process.terminate()


def test_files_larger_than_the_boards_memory(call, script, tmp_path):
    (tmp_path / "large.bin").write_bytes(bytes(1 << 22))
    assert_error(call("run", script(""), *BOARD, "--model", tmp_path / "large.bin"),
                 "MemoryAllocationFailed", "of files", "memory 'job'")


@pytest.mark.parametrize("arguments, words", [
    ([], "give --board"),
    (["--board", "lm3s6965evb"], "has no room for a prompt"),
    ([*BOARD, "--sizes", "0=1"], "--sizes does not go with a script"),
    ([*BOARD, "--outputs", "out.npz"], "--outputs does not go with a script"),
    ([*BOARD, "--port", "auto"], "--port does not go with a script"),
    ([*BOARD, "--model", "{}/main.py"], "same name"),
])
def test_wrong_usage(call, script, tmp_path, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    assert_usage(call("run", script(""), *[word.format(tmp_path) for word in arguments]), words)


def test_a_model_of_a_model(call):
    assert_usage(call("run", MODEL, "--model", MODEL), "--model is for a script")
    assert_error(call("run", Path("missing.py"), *BOARD), "AccessFailed", "missing.py")
