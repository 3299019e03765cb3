"""Check the globals of the modules that run on boards."""

import ast
from pathlib import Path

import pytest

pytestmark = pytest.mark.check

ROOT = Path(__file__).resolve().parents[2]
MODULES = sorted(path for path in (ROOT / "host" / "picotorch").glob("*.py") if path.stem != "__main__")
SIZES = (0, 2, 4, 6, 8, 10, 12, 17, 23, 29, 37, 47, 59, 73, 97)  # of the tables of MicroPython's maps


def names_of(target):
    return {node.id for node in ast.walk(target)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def globals_of(source):
    """Return the names of a module after its import."""
    names = {"__name__", "__file__"}
    for node in ast.parse(source).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            names |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        else:
            names |= names_of(node)
    return names


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_no_table_of_globals_is_full(path):
    """In a full table, MicroPython looks at all names before it tries the builtins. A full table cost a
    third of set_inputs."""
    count = len(globals_of(path.read_text()))
    assert count not in SIZES, f"{path.name} has {count} globals: import a module, or one name less"
