"""Follow README.md, docs/quickstart.md and docs/install.md without a checkout: the wheel is in an
environment of its own, and the folder is outside of the repository."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from picotorch import Module
from picotorch.firmware import selective
from support import installed, shown_code

ROOT = Path(__file__).resolve().parents[2]
README, QUICKSTART, INSTALL = (ROOT / page for page in (
    "README.md", "docs/quickstart.md", "docs/install.md"))
NET = ROOT / "docs" / "net.pte"
HAS_TORCH = importlib.util.find_spec("torch") is not None
# Requirements of commands that are missing here. The other commands run.
NEEDS = {"--port auto": "a connected board", "picotorch flash": "a connected board",
         "firmware --board PYBV11": "a checkout"}
NEEDS |= {} if HAS_TORCH else {"export": "PyTorch"}


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """Return the environment's Python, which all processes of pytest-xdist share."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    made = folder / "new_user" / "python"
    with selective.locked(made.parent):
        if not made.exists():
            wheel = installed.build_wheel(made.parent / "dist")
            made.write_text(str(installed.make_environment(made.parent / "venv", wheel)))
    return Path(made.read_text())


@pytest.fixture
def shell(python, tmp_path):
    """Return shell(command), which returns the output of a command that has to succeed."""
    def run(command):
        path = f"{python.parent}:{os.environ['PATH']}"
        done = subprocess.run(["bash", "-c", command], cwd=tmp_path, env={**os.environ, "PATH": path},
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert done.returncode == 0, f"{command}\n{done.stdout}"
        return done.stdout

    return run


@pytest.mark.thorough
def test_the_quick_start_prints_what_it_shows(python):
    done = subprocess.run([sys.executable, ROOT / "tools" / "pages.py", "--check", "--python", python,
                           QUICKSTART], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


COMMANDS = [(page, command) for page in (README, QUICKSTART, INSTALL)
            for command in shown_code.commands(page)]


def test_most_commands_run():
    run = [command for _, command in COMMANDS if not any(words in command for words in NEEDS)]
    assert {command.split()[1] for command in run} >= {"size", "advise", "run", "parity", "compile"}


@pytest.mark.thorough
@pytest.mark.parametrize("page, command", COMMANDS,
                         ids=lambda given: given.name if isinstance(given, Path) else given)
def test_a_command_of_a_page_succeeds(page, command, shell, tmp_path):
    for words, needed in NEEDS.items():
        if words in command:
            pytest.skip(f"needs {needed}")
    (tmp_path / "net.py").write_text(shown_code.code(QUICKSTART, "python")[0])
    for name in ("net.pte", "model.pte"):
        shutil.copy(NET, tmp_path / name)
    assert shell(command)


def test_a_command_that_needs_a_checkout_or_pytorch_reports_it(python, tmp_path):
    shutil.copy(NET, tmp_path / "model.pte")
    (tmp_path / "net.py").write_text(shown_code.code(QUICKSTART, "python")[0])
    for page, command in COMMANDS:
        expected = {"firmware --board PYBV11": "call this in picotorch's repository",
                    "export": "pip install 'picotorch[export]'"}
        for words, message in expected.items():
            if words in command and words in NEEDS:
                command = command.replace("net.pte", "model.pte")
                done = subprocess.run([python, "-m", *command.split()], cwd=tmp_path,
                                      capture_output=True, text=True)
                assert done.returncode == 1 and message in done.stderr, page


@pytest.mark.parametrize("block", range(len(shown_code.code(README, "python"))))
def test_the_python_code_of_readme_has_the_outputs_of_the_model(block, python, tmp_path):
    x = np.random.default_rng(0).random((1, 1, 28, 28), np.float32)
    y = shown_code.run_python(shown_code.code(README, "python")[block], python, tmp_path,
                              NET.read_bytes(), x)
    expected = Module(NET).forward(x)
    assert y.tolist() == np.ravel(expected.numpy()).tolist() and len(set(y.tolist())) == 10


def test_the_c_of_the_pages_compiles_with_the_installed_header(python, tmp_path):
    (include,) = python.parents[1].glob("lib/*/site-packages/picotorch/sources/kernels/include")
    shown_code.compile_c(ROOT / "docs" / "c.md", include, tmp_path)


def test_the_c_of_readme_calls_a_project(python, tmp_path):
    shown_code.compile_with_project(README, ROOT / "docs" / "net_int8.pte", python, tmp_path)


def test_a_c_project_runs_here_and_is_the_one_that_the_checkout_writes(shell, call, tmp_path):
    shutil.copy(NET, tmp_path / "model.pte")
    shell("picotorch compile model.pte --core cortex-m4 --c project")
    call("compile", tmp_path / "model.pte", "--core", "cortex-m4", "--c", tmp_path / "from_checkout")
    written = {name: {path.relative_to(tmp_path / name): path.read_bytes()
                      for path in (tmp_path / name).rglob("*") if path.is_file()}
               for name in ("project", "from_checkout")}
    assert written["project"] == written["from_checkout"]
    assert "model_output_0: " in shell("make -C project run")


def test_the_shell_completion_of_the_page_loads(shell):
    (line,) = [line for line in shown_code.code(INSTALL, "")[-1].splitlines() if "COMPLETE" in line]
    assert "picotorch" in shell(f"{line}; complete -p picotorch")
