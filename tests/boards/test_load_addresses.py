"""Test the load addresses of firmware: only sections with content are loaded behind the code, into
flash."""

import re
import tomllib
from pathlib import Path

import pytest
from picotorch.boards.boards import BOARDS_DIR, board_names
from support.tool import load_tool

ROOT = Path(__file__).resolve().parents[2]
board_config = load_tool("board_config")


def sections_without_content(script):
    """Return (memory, memory of the load address) of each section without content. The script has to
    name both."""
    found = re.findall(r"^    \.\w+ \(NOLOAD\)[^}]*\} > (\w+)(?: AT > (\w+))?$", script, re.MULTILINE)
    assert len(found) == script.count("(NOLOAD)") > 0
    return found


@pytest.mark.parametrize("variant", ["run", "repl"])
@pytest.mark.parametrize("name", board_names())
def test_a_linker_script_loads_no_section_without_content(name, variant):
    toml = tomllib.loads((BOARDS_DIR / name / "board.toml").read_text())
    script = board_config.linker_script(board_config.of_variant(toml, variant))
    assert all(memory == load for memory, load in sections_without_content(script))


SCRIPTS = [path for folder in ("examples", "port") for path in sorted((ROOT / folder).rglob("*.ld"))
           if "(NOLOAD)" in path.read_text()]


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_neither_does_a_script_that_is_no_board_s(path):
    assert all(memory == load for memory, load in sections_without_content(path.read_text()))


def test_the_linker_script_of_the_example_is_there():
    assert ROOT / "examples" / "c" / "mps2.ld" in SCRIPTS
