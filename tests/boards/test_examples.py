"""Run each example's main.py with its recording on the twin and on a board, and compare its output with
expected.txt."""

import subprocess
import sys
from pathlib import Path

import pytest
from picotorch.cli import examples
from picotorch.measure import sizing
from picotorch.run import running
from test_mpremote import Remote

pytestmark = pytest.mark.thorough

NAMES = examples.names()
PAGE = Path(__file__).resolve().parents[2] / "docs" / "examples.md"
FILES = {"README.md", "expected.txt", "export.py", "main.py", "model.pte"}


def folder(name):
    return examples.EXAMPLES_DIR / name


def expected(name):
    return (folder(name) / "expected.txt").read_text().splitlines()


def model(name):
    return (folder(name) / "model.pte").read_bytes()


def test_there_are_five():
    assert NAMES == ["anomaly", "gesture", "image", "keyword_spotting", "knock"]


@pytest.mark.parametrize("name", NAMES)
def test_a_folder_has_all_that_is_needed(name):
    files = {path.name for path in folder(name).iterdir() if path.is_file()}
    (recording,) = files - FILES
    assert files > FILES and recording.startswith("recording.")
    assert len(model(name)) < 64 * 1024


@pytest.mark.parametrize("name", NAMES)
def test_on_the_twin(name):
    done = subprocess.run([sys.executable, "main.py"], cwd=folder(name), text=True, check=True,
                          capture_output=True)
    assert done.stdout.splitlines() == expected(name)


@pytest.mark.parametrize("name", NAMES)
def test_on_a_board(name):
    """The commands are the commands of the README, with mpremote."""
    (recording,) = folder(name).glob("recording.*")
    with Remote(running.DEFAULT_BOARD) as remote:
        remote(["cp", folder(name) / "model.pte", recording, ":"])
        assert remote(["run", folder(name) / "main.py"]).splitlines() == expected(name)


def test_a_missing_model_is_reported():
    with Remote(running.DEFAULT_BOARD) as remote:
        status, said = remote.fails(["run", folder("gesture") / "main.py"])
    assert status == 1 and "AccessFailed (0x22): model.pte" in said and "check the path" in said


@pytest.mark.parametrize("name", NAMES)
def test_the_readme_states_the_memory(name):
    need = sizing.measure(model(name), name, "forward", [], False).needs
    figures = [need.program_bytes, need.method_pool, sum(need.planned), need.temp]
    row = "| " + " | ".join(f"{figure:,}" for figure in figures) + " |"
    assert row in (folder(name) / "README.md").read_text()


# ---- picotorch examples


def test_the_list(call):
    status, out, _ = call("examples")
    assert status == 0
    table = out.split("\n\n")[0]
    assert [line.split()[0] for line in table.splitlines()[1:]] == NAMES
    assert table in PAGE.read_text()


def test_a_copy(call, tmp_path):
    status, out, _ = call("examples", "gesture", tmp_path / "mine")
    assert status == 0 and "main.py" in out
    copied = {path.name: path.read_bytes() for path in (tmp_path / "mine").iterdir()}
    assert copied == {path.name: path.read_bytes() for path in folder("gesture").iterdir()
                      if path.is_file()}


def test_a_copy_into_the_working_folder(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert call("examples", "knock")[0] == 0
    assert (tmp_path / "knock" / "main.py").is_file()


def test_a_copy_overwrites_nothing(call, tmp_path):
    (tmp_path / "main.py").write_text("mine")
    status, _, err = call("examples", "gesture", tmp_path)
    assert status == 1 and err.startswith("AccessFailed (0x22): ") and "another folder" in err
    assert [path.name for path in tmp_path.iterdir()] == ["main.py"]


def test_an_example_that_there_is_not(call):
    status, _, err = call("examples", "face")
    assert status == 1 and "NotFound (0x20): example face" in err and "gesture" in err
