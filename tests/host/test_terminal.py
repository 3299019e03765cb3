"""Test the terminal: names that it cannot encode, colours, progress, warnings, completion."""

import os
import pty
import re
import subprocess
import sys
import xml.etree.ElementTree
from pathlib import Path

import click
import pytest
from picotorch.boards.boards import board_names, load_board
from picotorch.host import show
from picotorch.run import listing, running
from support import fixture_store

MODEL = fixture_store.load("add_5").path
SCRIPT = str(Path(sys.executable).parent / "picotorch")


def ended(*command, **environment):
    return subprocess.run([SCRIPT, *command], capture_output=True,
                          env={**os.environ, **environment})


@pytest.mark.parametrize("environment", [
    {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, {"PYTHONIOENCODING": "ascii"},
    {"PYTHONIOENCODING": "utf-8"},
])
@pytest.mark.parametrize("name", ["né".encode(), b"\xff\xfe", "模型".encode()])
def test_a_name_that_stdout_cannot_encode(tmp_path, environment, name):
    path = os.path.join(os.fsencode(tmp_path), name + b".pte")
    os.symlink(os.fsencode(MODEL), path)
    for command in ("run", "inspect"):
        done = ended(command, path, **environment)
        assert (done.returncode, done.stderr) == (0, b"")
    missing = ended("run", path + b"x", **environment)
    assert missing.returncode == 1 and missing.stderr.startswith(b"AccessFailed (0x22): ")


def test_no_warning_is_printed(call, monkeypatch):
    def warn(*_):
        import warnings

        warnings.warn("of a library", stacklevel=1)
        warnings.warn("of a library", DeprecationWarning, stacklevel=1)
        return real(*_)

    real = running.run
    monkeypatch.setattr(running, "run", warn)
    status, _, error = call("run", MODEL)
    assert (status, error) == (0, "")


def on_terminal(*command, program=SCRIPT, columns=80, folder=None, **environment):
    """Run a command on a terminal, and return the text on the terminal."""
    screen, terminal = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": str(columns), **environment}
    with subprocess.Popen([program, *command], stdout=terminal, stderr=terminal, cwd=folder,
                          env=environment) as process:
        os.close(terminal)
        said = b""
        while True:
            try:
                said += os.read(screen, 4096)
            except OSError:  # the other end is closed
                break
    os.close(screen)
    assert process.returncode == 0
    return said


SIZE = ("size", str(MODEL), "--board", "mps2-an386", "--board", "lm3s6965evb")


def test_colours_are_for_terminals_that_want_them():
    assert b"\x1b[32mfits" in on_terminal(*SIZE, NO_COLOR="")
    assert b"\x1b" not in on_terminal(*SIZE, NO_COLOR="1")
    assert b"\x1b" not in on_terminal(*SIZE, TERM="dumb")
    assert b"\x1b" not in ended(*SIZE).stdout


def test_a_deployment_that_does_not_fit_is_red():
    large = MODEL.parents[2] / "benchmark" / "int8_mobilenet_v1_025" / "m3.pte"
    said = on_terminal("size", large, "--board", "lm3s6965evb", NO_COLOR="")
    assert b"\x1b[31mDOES NOT FIT" in said


def test_a_board_that_runs_is_shown_on_a_terminal_only():
    command = ("run", str(MODEL), "--board", "mps2-an386")
    assert b"mps2-an386 runs ...\r" in on_terminal(*command)
    done = ended(*command)
    assert b"runs ..." not in done.stdout and done.stderr == b""


WAIT = """
import time
from picotorch.host import show
with show.progress('It runs' + 100 * '.'):
    with show.progress('Inside'):
        time.sleep(1.5)
"""


def test_a_wait_shows_its_seconds_and_leaves_an_empty_line():
    screen = on_terminal("-c", WAIT, program=sys.executable)
    lines = screen.split(b"\r")
    assert any(line.startswith(b"It runs...") and line.endswith(b". ... 1 s") for line in lines)
    assert b"Inside" not in screen and not lines[-2].strip()
    assert len(lines[-2]) == max(map(len, lines)) < 80


@pytest.mark.parametrize("board", ["host", "mps2-an386"])
def test_a_profile_fits_the_terminal(board, tmp_path):
    model = tmp_path / "model.pte"
    model.write_bytes(fixture_store.load("int8_ds_cnn").path.read_bytes())
    command = ("profile", model.name, "--board", board)
    narrow, wide = (re.split(r"\r+\n|\r", on_terminal(*command, columns=columns, NO_COLOR="1",
                                                    folder=tmp_path).decode())
                    for columns in (80, 200))
    file = subprocess.run([SCRIPT, *command], cwd=tmp_path, capture_output=True, text=True).stdout
    assert max(map(len, narrow)) <= 80 < max(map(len, wide))
    unit, cost = ("ns", "ns") if board == "host" else ("instr.", "cycles")
    heads = [next(line for line in lines if "operator " in line)
             for lines in (narrow, wide, file.splitlines())]
    assert f"of {cost}" in heads[0] and "MACs/" not in heads[0]
    assert heads[1].split() == heads[2].split() and f"MACs/{unit}" in heads[1]
    further = [line for line in narrow if line.startswith("A wider terminal shows further columns: ")]
    assert len(further) == 1 and f"MACs/{unit}" in further[0]
    assert "A wider terminal" not in "".join(wide) + file


@pytest.mark.parametrize("omitted, shortened, printed", [
    ((), {}, ["a_long_name  1,000,000   50 %"]),
    (("count",), {}, ["a_long_name   50 %"]),
    (("count",), {"name": 7}, ["a..name  1,000,000   50 %"]),
    (("count", "share"), {"name": 9}, ["a_long_name   50 %"]),
])
def test_columns_are_omitted_before_others_are_short(monkeypatch, capsys, omitted, shortened, printed):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "25")
    rows = [["a_long_name", "1,000,000", "50 %"]]
    dropped = show.table(["name", "count>", "share>"], rows, omitted, shortened)
    assert click.unstyle(capsys.readouterr().out).splitlines()[1:] == printed
    assert dropped == (["count"] if "1,000,000" not in printed[0] else [])


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(call, shell):
    status, out, error = call("completion", shell)
    assert (status, error) == (0, "") and "_PICOTORCH_COMPLETE" in out


@pytest.mark.parametrize("words, completed", [
    ("picotorch pro", "profile"), ("picotorch run --boa", "--board"),
    ("picotorch run --board mps2-an38", "mps2-an386"), ("picotorch size --board mps3", "mps3-an547"),
])
def test_shell_completions(words, completed):
    done = ended(_PICOTORCH_COMPLETE="bash_complete", COMP_WORDS=words,
                 COMP_CWORD=str(words.count(" ")))
    assert f"plain,{completed}" in done.stdout.decode().splitlines()


def test_the_list_of_boards_fits_the_terminal_and_shows_how_to_build(call, monkeypatch):
    monkeypatch.setattr(listing, "is_built", lambda board: board.name == running.DEFAULT_BOARD)
    lines = call("boards")[1].splitlines()
    assert max(map(len, lines)) <= 80
    for name in board_names():
        rows = [line for line in lines if line.startswith(f"{name} ")]
        assert len(rows) == 2 and ("not built" in rows[0]) == (name != running.DEFAULT_BOARD)
        board = load_board(name)
        sizes = [size // 1024 for size in (board.flash_of_project().size, board.data.size)]
        assert rows[0].split()[1:4] == [board.core, *map(str, sizes)]
    assert "  make firmware BOARD=NAME" in lines


def test_written_files_are_named(call, tmp_path):
    drawing, dump, arrays = tmp_path / "m.svg", tmp_path / "e.etdp", tmp_path / "o.npz"
    out = call("profile", MODEL, "--memory-map", drawing, "--etdump", dump)[1]
    assert out.endswith(f"Wrote {drawing}\nWrote {dump}\n")
    assert call("run", MODEL, "--outputs", arrays)[1].endswith(f"Wrote {arrays}\n")


def test_a_drawing_has_its_whole_title_and_units(call, tmp_path):
    model = tmp_path / ("a_long_name_" * 15 + ".pte")
    model.write_bytes(MODEL.read_bytes())
    drawing = tmp_path / "map.svg"
    assert call("profile", model, "--memory-map", drawing)[0] == 0
    root = xml.etree.ElementTree.parse(drawing).getroot()
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts[0] == f"{model.name}, forward"
    assert float(root.get("width")) > 8 * len(texts[0])
    assert {"bytes", "instruction"} <= set(texts)
