"""Test the set-up: it reports missing parts, does nothing twice, and never leaves a stale host
extension."""

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.tool import load_tool

pytestmark = pytest.mark.check

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture
def setup(tmp_path, monkeypatch):
    """Load the set-up program as a module, with an empty folder as its repository."""
    module = load_tool("setup_picotorch")
    places = {
        "ROOT": tmp_path,
        "BUILD": tmp_path / "build",
        "LOGS": tmp_path / "build/log",
        "STAMP": tmp_path / "build/stamps/python",
        "VENV_PYTHON": Path(sys.executable),
    }
    for name, value in places.items():
        monkeypatch.setattr(module, name, value)
    for name in ("pyproject.toml", "tools/requirements/tools.txt", "kernels/include/picotorch/kernel.h",
                 "kernels/portable/relu.c", "README.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("first\n")
    return module


@pytest.fixture
def missing(setup):
    return [
        setup.Need("qemu-system-arm", "qemu-system-arm", lambda: False),
        setup.Need("Python's header Python.h", "python3-dev", lambda: False),
    ]


def test_without_rights_it_names_the_command(setup, missing, monkeypatch):
    monkeypatch.setattr(setup.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(setup, "administrator", lambda: None)
    with pytest.raises(setup.SetupError, match="sudo apt-get install .* qemu-system-arm python3-dev"):
        setup.install(missing)


def test_on_another_system_it_names_the_needed_packages(setup, missing, monkeypatch):
    monkeypatch.setattr(setup.shutil, "which", lambda name: None)
    with pytest.raises(setup.SetupError) as caught:
        setup.install(missing)
    assert "no apt-get" in str(caught.value)
    assert "Python's header Python.h (Debian: python3-dev)" in str(caught.value)


def test_it_installs_only_what_is_missing(setup, missing, monkeypatch):
    present = setup.Need("make", "make", lambda: True)
    monkeypatch.setattr(setup, "all_needs", lambda: [present, *missing])
    asked = []
    monkeypatch.setattr(setup, "install", asked.extend)
    with pytest.raises(setup.SetupError, match="Still missing"):
        setup.set_up_packages(None)
    assert asked == missing


def test_without_packages_it_leaves_the_system_as_it_is(setup, monkeypatch):
    done = []
    monkeypatch.setattr(setup, "STEPS", {name: lambda _, name=name: done.append(name)
                                         for name in setup.STEPS})
    monkeypatch.setattr(sys, "argv", ["setup_picotorch.py", "python", "--no-packages"])
    setup.main()
    assert done == ["python"]


def test_a_failed_command_shows_the_end_of_its_log(setup):
    code = "import sys; [print('line', i) for i in range(200)]; print('the reason'); sys.exit(3)"
    with pytest.raises(setup.SetupError) as caught:
        setup.run("packages", [sys.executable, "-c", code], "apt-install")
    lines = str(caught.value).splitlines()
    assert "failed with status 3" in lines[0]
    assert "build/log/apt-install.log" in lines[0]
    assert lines[-1] == "  | the reason"
    assert len(lines) == 1 + setup.LOG_TAIL


@pytest.mark.parametrize("name", ["pyproject.toml", "tools/requirements/tools.txt",
                                  "kernels/include/picotorch/kernel.h", "kernels/portable/relu.c"])
def test_a_change_of_a_source_makes_the_extension_anew(setup, name, tmp_path):
    before = setup.python_digest()
    (tmp_path / name).write_text("second\n")
    assert setup.python_digest() != before


def test_a_new_kernel_makes_the_extension_anew(setup, tmp_path):
    before = setup.python_digest()
    (tmp_path / "kernels/portable/gelu.c").write_text("first\n")
    assert setup.python_digest() != before


def test_a_change_of_the_readme_does_not(setup, tmp_path):
    before = setup.python_digest()
    (tmp_path / "README.md").write_text("second\n")
    assert setup.python_digest() == before


def test_an_extension_that_is_gone_is_made_anew(setup, tmp_path):
    setup.STAMP.parent.mkdir(parents=True)
    setup.STAMP.write_text(setup.python_digest())
    extension = tmp_path / "host/_picotorch_c.abi3.so"
    extension.parent.mkdir(parents=True)
    extension.touch()
    assert setup.python_is_current()
    extension.unlink()
    assert not setup.python_is_current()


def test_pip_installs_only_the_project_and_packages_with_a_hash(setup, monkeypatch):
    commands = []
    monkeypatch.setattr(setup, "run", lambda step, command, *_: commands.append(command))
    setup.set_up_python(None)
    installs = [command for command in commands if "install" in command]
    assert len(installs) == 2
    packages, project = installs
    assert {"--no-deps", "--require-hashes"} <= set(packages)
    assert {"--no-deps", "--no-build-isolation", "-e", "."} <= set(project)


def test_a_python_that_lacks_something_is_passed_over(setup, tmp_path, monkeypatch):
    incomplete = tmp_path / "python3"
    incomplete.write_text("#!/bin/sh\nexit 1\n")
    incomplete.chmod(0o755)
    nowhere = str(tmp_path / "nowhere" / "python3")
    monkeypatch.setattr(setup, "PYTHON_NEEDS", {"python3": ("import sys", "Python")})
    monkeypatch.setattr(setup, "python_candidates", lambda: [str(incomplete), nowhere, sys.executable])
    assert setup.find_python() == sys.executable
    monkeypatch.setattr(setup, "python_candidates", lambda: [str(incomplete), nowhere])
    assert setup.find_python() is None


def test_a_board_without_room_for_all_kernels_is_left_out(setup, tmp_path, monkeypatch, capsys):
    folder = tmp_path / "boards" / "small"
    folder.mkdir(parents=True)
    (folder / "board.toml").write_text("full_firmware = false\n")
    monkeypatch.setattr(setup, "BOARDS", ["small"])
    monkeypatch.setattr(setup, "make_firmware", None)
    setup.set_up_firmware(argparse.Namespace(board=None, variant=None, selection=None))
    assert "picotorch firmware --models MODEL.pte --board small" in capsys.readouterr().out
    with pytest.raises(setup.SetupError, match="small has no room for all kernels"):
        setup.set_up_firmware(argparse.Namespace(board=["small"], variant=None, selection=None))


def test_make_help_has_every_target():
    targets = re.findall(r"^\.PHONY: (\S+)", (REPOSITORY / "Makefile").read_text(), re.MULTILINE)
    environment = {key: value for key, value in os.environ.items() if not key.startswith("MAKE")}
    shown = subprocess.run(
        ["make", "help"], cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=True
    ).stdout
    assert re.findall(r"^  make (\S+) +\S", shown, re.MULTILINE) == targets
    assert {"run", "test", "lint", "bench", "size", "repl", "help"} <= set(targets)


ASKS_FOR_TORCH = re.compile(r"""(?:importorskip|find_spec)\("(?:torch|executorch|torchgen)\b""")


def test_a_target_runs_each_file_that_is_skipped_without_torch():
    """Each file with such a test is run by make conformance or make export-check."""
    lists = "lists: ; @echo $(NEEDS_TORCH) $(ALSO_NEED_TORCH) $(EXPORT_TESTS)"
    environment = {key: value for key, value in os.environ.items() if not key.startswith("MAKE")}
    listed = subprocess.run(["make", "-s", "--eval", lists, "lists"], cwd=REPOSITORY, check=True,
                            env=environment, capture_output=True, text=True).stdout.split()
    asking = {str(path.relative_to(REPOSITORY)) for path in (REPOSITORY / "tests").rglob("test_*.py")
              if ASKS_FOR_TORCH.search(path.read_text())}
    assert len(asking) > 20
    assert asking - set(listed) == set()


@pytest.mark.parametrize("name", ["a b", "$(touch PWNED)", "a#b", "a%b", "a:b", "a;b", "a'b", "a\nb"])
@pytest.mark.parametrize("place", ["repository", "selection", "micropython"])
def test_make_does_not_start_with_a_path_that_it_misreads(setup, monkeypatch, tmp_path, place, name):
    monkeypatch.setattr(setup, "run", lambda *_: pytest.fail("make was started"))
    monkeypatch.delenv("MICROPYTHON_DIR", raising=False)
    path = tmp_path / name
    if place == "repository":
        monkeypatch.setattr(setup, "ROOT", path)
    if place == "micropython":
        monkeypatch.setenv("MICROPYTHON_DIR", str(path))
    arguments = argparse.Namespace(selection=path if place == "selection" else None)
    with pytest.raises(setup.SetupError, match="make cannot use the path"):
        setup.run_make(arguments, "firmware", "log", "port/firmware")
