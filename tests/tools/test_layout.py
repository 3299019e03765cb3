"""Test the folders of tests/: tools and tests do not import each other, and helpers lie in
tests/support."""

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TESTS, TOOLS = ROOT / "tests", ROOT / "tools"
TOOL_NAMES = {path.stem for path in TOOLS.glob("*.py")}
TEST_NAMES = {path.stem for path in TESTS.rglob("*.py")} | {path.name for path in TESTS.iterdir()}
BY_WHAT_THEY_SHOW = ("core", "kernels", "runtime", "host", "boards", "hostile", "tools")


def imported(path):
    """Return the top-level names of the modules that a file imports anywhere."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.partition(".")[0])
    return found


@pytest.mark.parametrize(("folder", "own", "others"), [
    (TOOLS, TOOL_NAMES, TEST_NAMES), (TESTS, TEST_NAMES, TOOL_NAMES)], ids=["tools", "tests"])
def test_tools_and_tests_do_not_import_each_other(folder, own, others):
    foreign = others - own - set(sys.stdlib_module_names)
    paths = list(folder.rglob("*.py"))
    assert len(paths) > 15
    assert {path: names for path in paths if (names := imported(path) & foreign)} == {}


def test_only_the_test_of_a_tool_loads_it():
    callers = [path for path in TESTS.rglob("*.py") if "load_tool(" in path.read_text()]
    others = [path for path in callers if not path.name.startswith("test_")]
    assert others == [TESTS / "support" / "tool.py"]


@pytest.mark.parametrize("folder", BY_WHAT_THEY_SHOW)
def test_helpers_lie_in_support(folder):
    """Such a folder has tests only, and these import nothing from the tests of another folder."""
    paths = list((TESTS / folder).glob("*.py"))
    assert paths and [path.name for path in paths if not path.name.startswith("test_")] == []
    names = {path.stem for path in paths}
    assert {path: far for path in paths if (far := {
        name for name in imported(path) if name.startswith("test_")} - names)} == {}


def test_every_test_is_in_the_folder_of_its_subject():
    found = {path.parent.relative_to(TESTS).as_posix() for path in TESTS.rglob("test_*.py")}
    assert found == {*BY_WHAT_THEY_SHOW, "architectures", "conformance", "benchmark"}


def test_no_two_tests_have_one_name():
    """pytest imports the files of all folders as top-level modules."""
    names = [path.name for path in TESTS.rglob("test_*.py")]
    assert sorted(names) == sorted(set(names))
