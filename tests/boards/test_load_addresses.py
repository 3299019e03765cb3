"""Load addresses of firmware: only what has content is loaded behind the code, into flash."""

import re
import tomllib

import pytest
from picotorch.host.boards.boards import BOARDS_DIR, board_names
from support.tool import load_tool

board_config = load_tool("board_config")


@pytest.mark.parametrize("variant", ["run", "repl"])
@pytest.mark.parametrize("name", board_names())
def test_a_linker_script_loads_no_section_without_content(name, variant):
    toml = tomllib.loads((BOARDS_DIR / name / "board.toml").read_text())
    script = board_config.linker_script(board_config.of_variant(toml, variant))
    places = re.findall(r"^    \.\w+ \(NOLOAD\)[^}]*\} > (\w+)(?: AT > (\w+))?$", script, re.MULTILINE)
    assert len(places) == script.count("(NOLOAD)") >= 3
    assert all(memory == load for memory, load in places)
