"""docs/features.md names fixtures and tests that there are."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "features.md"
ROWS = [line for line in PAGE.read_text().splitlines() if re.match(r"\| [^-|]", line)]
LINK = re.compile(r"\[(\w+)\]\(\.\./(tests/\S+?)\)")


def test_there_are_rows():
    assert len(ROWS) > 30


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split("|")[1].strip())
def test_what_a_row_names_is_there(row):
    shown = LINK.findall(row.rpartition("|")[0].rpartition("|")[2])
    assert shown
    for name, path in shown:
        target = ROOT / path
        if target.suffix == ".py":
            assert f"\ndef {name}(" in target.read_text()
        else:
            assert (target / "model.pte").is_file()
