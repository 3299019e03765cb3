"""Test that a command imports only the modules that it needs, because imports take most of a short
run's time."""

import ast
import importlib.util
import subprocess
import sys
from pathlib import Path

import picotorch
import pytest
from picotorch.cli import main as cli
from support import fixture_store

pytestmark = pytest.mark.check

MODEL = str(fixture_store.load("int8_ds_cnn").path)
# Modules that load slowly, and modules of other commands
FOREIGN = {"asyncio", "concurrent.futures", "email", "executorch", "flatbuffers", "http.client",
           "logging", "mpremote", "rich", "serial", "subprocess", "torch", "unittest", "urllib.request",
           "picotorch.measure.advising", "picotorch.compile", "picotorch.deploy",
           "picotorch.export", "picotorch.firmware"}
REPORT = """
import os, sys
from _picotorch_start import main
sys.argv = sys.argv[:1] + sys.argv[2:]
try:
    main()
finally:
    threads = os.listdir("/proc/self/task") if os.path.exists("/proc/self/task") else [0]
    print("THREADS", len(threads))
    print("MODULES", *sys.modules)
"""


def report(*arguments):
    """Return (modules, threads) of a process at the end of the command."""
    ended = subprocess.run([sys.executable, "-c", REPORT, "", *arguments], capture_output=True,
                           text=True, check=True)
    *_, threads, modules = ended.stdout.splitlines()
    return set(modules.split()[1:]), int(threads.split()[1])


@pytest.mark.parametrize("arguments", [
    ["run", MODEL],
    ["parity", MODEL, "--board", "host"],
    ["inspect", MODEL],
], ids=lambda arguments: arguments[0])
def test_a_command_imports_only_its_modules(arguments):
    modules, threads = report(*arguments)
    assert "numpy" in modules and "picotorch.cli.main" in modules
    assert modules & FOREIGN == set()
    assert threads == 1  # numpy's linear algebra would start more


@pytest.mark.parametrize("arguments, needed", [
    (["size", MODEL, "--chip", "rp2040"], {"subprocess"}),
    (["boards"], {"subprocess"}),
    (["advise", MODEL], {"picotorch.measure.advising", "subprocess"}),
    (["profile", MODEL, "--board", "host"], {"flatbuffers"}),
], ids=lambda value: value[0] if isinstance(value, list) else "")
def test_other_commands_import_little_more(arguments, needed):
    assert report(*arguments)[0] & FOREIGN == needed


def test_the_list_of_commands_imports_none_of_them():
    modules, _ = report("--help")
    of_commands = {f"picotorch.cli.{path.stem}" for path in Path(cli.__file__).parent.glob("*.py")}
    assert modules & of_commands == {cli.__name__, "picotorch.cli.command"}
    assert modules & (FOREIGN | {"numpy"}) == set()


def late_imports():
    """Return {(package, name)} of the relative imports by importlib, for example of modules that need
    torch."""
    top = Path(picotorch.__file__).parent
    found = set()
    for path in top.rglob("*.py"):
        package = ".".join(("picotorch", *path.parent.relative_to(top).parts))
        for node in ast.walk(ast.parse(path.read_text())):
            if (isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "import_module"
                    and isinstance(node.args[0], ast.Constant)):
                found.add((package, node.args[0].value))
    return found


def test_modules_that_are_imported_late_exist():
    """A module under an old name would be reported as a missing torch."""
    found = late_imports()
    assert found
    assert [one for one in found if importlib.util.find_spec(one[1], one[0]) is None] == []
