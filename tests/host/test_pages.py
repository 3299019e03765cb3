"""What the tables of the documents name as shown by something is there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = ROOT / "docs"
LINK = re.compile(r"\[(\w+)\]\(\.\./(\S+?)\)")


def rows(page):
    """The rows of the tables whose last column is headed "shown by"."""
    shown = False
    for line in (DOCUMENTS / page).read_text().splitlines():
        if not line.startswith("|"):
            shown = False
        elif line.endswith("| shown by |"):
            shown = True
        elif shown and re.match(r"\| [^-|]", line):
            yield line


ROWS = [(page, row) for page in ("features.md", "trust.md") for row in rows(page)]


def is_defined(name, path):
    text = path.read_text()
    return (re.search(rf"^ *(def|class) {name}\b", text, re.MULTILINE) if path.suffix == ".py"
            else re.search(rf"^[^ /#].*\b{name}\(", text, re.MULTILINE)) or path.stem == name


def test_there_are_rows():
    assert len(ROWS) > 55


@pytest.mark.parametrize("row", [pytest.param(row, id=f"{page}: {row.split('|')[1].strip()[:40]}")
                                 for page, row in ROWS])
def test_what_a_row_names_is_there(row):
    assert LINK.findall(row.rpartition("|")[0].rpartition("|")[2])
    for name, path in LINK.findall(row):
        target = ROOT / path
        if target.is_dir():
            assert (target / "model.pte").is_file()
        else:
            assert is_defined(name, target), f"{name} is not in {path}"
