"""docs/usability.md: a row shows what its command prints now; rows whose command no test runs have no
figures, and name tests that exist."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODEL = "tests/fixtures/int8_ds_cnn/model.pte"
CODE = re.compile(r"`([^`]+)`")
# Files that a command can read here, or that it says are missing
READABLE = re.compile(r"(?:^| )(?:tests|docs)/\S+\.pte\b|\bnix\.pte\b")
BUILDS = "picotorch firmware "  # a firmware, which takes long: tests/boards has these
FIGURE = re.compile(r"\d,\d{3}|\d ?(?:ms|dB|KB|B)\b|\d (?:bytes|instructions)\b")
COUNT = re.compile(r"[\d,]+ generated calls \(`tests/\w+/\w+\.py`\)")  # these tests compare it
TEST = re.compile(r"\[(test_\w+)\]\(\.\./(\S+?)\)")


def rows():
    """The cells of each row: what was found, the command, the output."""
    for line in (ROOT / "docs" / "usability.md").read_text().splitlines():
        if line.startswith("| ") and line.count(" | ") == 2:
            yield line.strip("| ").split(" | ")


def command_of(row):
    """The only command of a row, if it can run here, else None."""
    codes = CODE.findall(row[1])
    if len(codes) != 1 or not codes[0].startswith("picotorch ") or codes[0].startswith(BUILDS):
        return None
    command = re.sub(r"\bM\b", MODEL, codes[0])
    return command if READABLE.search(command) else None


ROWS = list(rows())
RUN = {command_of(row): row for row in ROWS if command_of(row)}


def test_there_are_rows_and_most_figures_are_printed():
    assert len(ROWS) > 70 and len(RUN) >= 18


@pytest.mark.parametrize("command", RUN)
def test_a_row_shows_what_its_command_prints(command, tmp_path):
    """Apart from spaces; … stands for what is left out."""
    for name in ("tests", "docs"):
        (tmp_path / name).symlink_to(ROOT / name)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, env={**os.environ, "PATH": path},
                          text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    printed = " ".join(done.stdout.split())
    for shown in CODE.findall(RUN[command][2]):
        pattern = ".*?".join(map(re.escape, " ".join(shown.split()).split("…")))
        assert re.search(pattern, printed), f"{shown}\n{done.stdout}"


@pytest.mark.parametrize("row", [pytest.param(row, id=row[0][:40]) for row in ROWS])
def test_a_row_has_no_figure_that_nothing_prints_and_names_tests_that_exist(row):
    finding, command, output = row
    assert not FIGURE.search(command if command_of(row) else COUNT.sub("", f"{command} {output}"))
    for name, path in TEST.findall(output):
        assert re.search(rf"^def {name}\(", (ROOT / path).read_text(), re.MULTILINE), name
