#!/usr/bin/env python3
"""Check host/ with pyright, and how tests/ and tools/ use the classes and functions of host/.

tests/ and tools/ have no annotations. Pyright infers their types; of its findings there this program
reports those about picotorch: an attribute, a key or an argument that does not exist.

Example: tools/check_types.py
"""

import ast
import json
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parent.parent
PYRIGHT = Path(sys.executable).with_name("basedpyright")
PROJECTS = (ROOT / "pyproject.toml", ROOT / "tests" / "pyrightconfig.json")
OF_CLASS = re.compile(r'(?:for class|on type) "(?:type\[)?(\w+)')
OF_ANY = re.compile(r'module "picotorch\.|^No parameter named|^Arguments? missing|'
                    r'is unknown import symbol')


def findings(project):
    """Return the findings of pyright for a configuration file."""
    done = subprocess.run([PYRIGHT, "-p", project, "--outputjson"], capture_output=True, text=True)
    if done.returncode not in (0, 1):
        sys.exit(f"check_types: pyright failed\n{done.stdout}{done.stderr}")
    return json.loads(done.stdout)["generalDiagnostics"]


def typed_classes():
    """Return the names of the dataclasses and named tuples of host/, whose fields are all declared."""
    found = set()
    for path in (ROOT / "host").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and (
                    any("dataclass" in ast.unparse(one) for one in node.decorator_list)
                    or any(ast.unparse(one) == "NamedTuple" for one in node.bases)):
                found.add(node.name)
    return found


def is_of_picotorch(text, classes):
    """Return whether a finding is about a class of these names, or any function or module."""
    return OF_ANY.search(text) or any(name in classes for name in OF_CLASS.findall(text))


@click.command(help=__doc__)
def main():
    with ThreadPoolExecutor() as pool:
        host, users = pool.map(findings, PROJECTS)
    classes = typed_classes()
    found = host + [one for one in users if is_of_picotorch(one["message"], classes)]
    for one in found:
        line = one["range"]["start"]["line"] + 1
        click.echo(f"{Path(one['file']).relative_to(ROOT)}:{line}: {one['message']}", err=True)
    click.echo(f"pyright: {len(found)} findings")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
