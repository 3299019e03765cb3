"""Test the English of comments and docstrings: phrases that were replaced do not return.

A docstring begins with a verb, or with the name of the thing that it describes. A clause (what it does,
whether it works) or a fragment (of the first one) is neither.
"""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FRAGMENT = r"(Of|Those|That|What|Whether|Which|How|Where|Why|Who)\b"
PYTHON = ("boards", "examples", "host", "kernels", "port", "schema", "tests", "tools")
C = ("examples", "kernels", "port")


def docstrings(path):
    """Yield the docstrings of a module, of its classes and functions."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            yield ast.get_docstring(node) or ""


@pytest.mark.parametrize("folder", PYTHON)
def test_docstrings(folder):
    for path in sorted((ROOT / folder).rglob("*.py")):
        for text in docstrings(path):
            found = re.match(rf"{FRAGMENT}|.*\banew\b", text, re.DOTALL)
            assert found is None, f"{path.relative_to(ROOT)}: {text}"


def comments(path):
    """Yield the comments of a C file: runs of lines, and comments behind code."""
    for found in re.finditer(r"(^ *//.*\n)+|//.*|/\*(.|\n)*?\*/", path.read_text(), re.MULTILINE):
        yield re.sub(r"\s*\n *(//|\*)", "", found[0].strip()).lstrip("/*- ")


@pytest.mark.parametrize("folder", C)
def test_comments(folder):
    for path in sorted((ROOT / folder).rglob("*.[chi]*")):
        for text in comments(path):
            found = re.match(rf"(?!Where\b){FRAGMENT}|.*\b(anew|so many|what is no)\b", text)
            assert found is None, f"{path.relative_to(ROOT)}: {text}"


@pytest.mark.parametrize("page", [ROOT / "README.md", ROOT / "CONTRIBUTING.md",
                                  *sorted((ROOT / "docs").glob("*.md"))], ids=lambda page: page.name)
def test_pages(page):
    """A sentence begins with its subject, and commands print or state facts instead of saying them."""
    found = re.search(r"(^|[.;:|] )What\b.*|.*\b(anew|so many|says (so|what|which)|what is no)\b.*",
                      page.read_text(), re.MULTILINE)
    assert found is None, found[0]
