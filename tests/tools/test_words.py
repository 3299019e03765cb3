"""Plain English in comments and docstrings: phrases that were replaced do not come back.

A docstring begins with a verb, or with the name of the thing that it describes. A clause (what it
does, whether it works) or a fragment (of the first one) is neither.
"""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FRAGMENT = r"(Of|Those|That|What|Whether|Which|How|Where|Why|Who)\b"
PYTHON = ("boards", "examples", "host", "kernels", "port", "schema", "tests", "tools")
C = ("kernels/core", "kernels/portable", "kernels/quantized", "kernels/cortex_m", "port/bare",
     "port/firmware", "port/module")


def docstrings(path):
    """Give the docstrings of a module, of its classes and functions."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            yield ast.get_docstring(node) or ""


@pytest.mark.parametrize("folder", PYTHON)
def test_docstrings(folder):
    for path in sorted((ROOT / folder).rglob("*.py")):
        for text in docstrings(path):
            found = re.match(rf"{FRAGMENT}|.*\banew\b", text, re.DOTALL)
            assert found is None, f"{path.relative_to(ROOT)}: {text}"


@pytest.mark.parametrize("folder", C)
def test_comments_of_functions(folder):
    for path in sorted((ROOT / folder).rglob("*.[ch]")):
        found = re.search(r"^\s*(//|/\*) Of\b.*|.*\banew\b.*", path.read_text(), re.MULTILINE)
        assert found is None, f"{path.relative_to(ROOT)}: {found[0]}"
