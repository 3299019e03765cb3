"""host/export/confined.py: a command that can change files in one folder only, tried as root."""

import json
import os
import signal
import socket
import subprocess
import sys

import pytest
from picotorch.host.export import confined

pytestmark = pytest.mark.skipif(not confined.version(), reason="this computer has no Landlock")

# Tries each statement of argv[1]; prints what came of it.
TRY = """
import json, os, shutil, signal, socket, subprocess, sys
found = []
for statement in json.loads(sys.argv[1]):
    try:
        exec(statement)
        found.append("done")
    except (OSError, subprocess.CalledProcessError) as error:
        found.append(type(error).__name__)
print(json.dumps(found))
"""


@pytest.fixture
def attempt(tmp_path):
    """Run each statement in a confined process: it gives "done" or the error's name."""
    (tmp_path / "folder").mkdir()

    def run(*statements):
        words = [sys.executable, "-c", TRY, json.dumps(statements)]
        done = subprocess.run(confined.command(str(tmp_path / "folder"), words), capture_output=True,
                              text=True, check=True, cwd=tmp_path)
        return json.loads(done.stdout)
    return run


def test_in_its_folder_it_does_all(attempt, tmp_path):
    assert attempt(
        "open('folder/a', 'w').write('x')", "open('folder/a', 'a').write('y')", "os.mkdir('folder/b')",
        "os.rename('folder/a', 'folder/b/a')", "os.symlink('/etc', 'folder/c')",
        "os.truncate('folder/b/a', 1)", "os.mkfifo('folder/d')", "os.unlink('folder/c')",
        "subprocess.run(['touch', 'folder/e'], check=True)") == ["done"] * 9
    assert (tmp_path / "folder/b/a").read_text() == "x"
    assert (tmp_path / "folder/e").exists()


def test_elsewhere_it_changes_nothing(attempt, tmp_path):
    kept = tmp_path / "kept"
    kept.write_text("kept")
    (tmp_path / "empty").mkdir()
    (tmp_path / "folder/way_out").symlink_to(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    results = attempt(
        "open('new', 'w')", "open('kept', 'w')", "open('kept', 'a')", "open('kept', 'r+')",
        "os.unlink('kept')", "os.rmdir('empty')", "os.mkdir('new')", "os.mkfifo('new')",
        "os.symlink('kept', 'new')", "os.link('kept', 'new')", "os.rename('kept', 'new')",
        "os.rename('kept', 'folder/kept')", "os.link('kept', 'folder/kept')",
        "open('folder/way_out/new', 'w')", "open('/dev/shm/picotorch-new', 'w')",
        "subprocess.run(['touch', 'new'], check=True)")
    assert results.pop() == "CalledProcessError"
    assert set(results) <= {"PermissionError", "OSError"}  # OSError: EXDEV, of links and names
    assert kept.read_text() == "kept"
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.skipif(confined.version() < 3, reason="this Landlock knows no truncate")
def test_it_truncates_nothing_elsewhere(attempt, tmp_path):
    (tmp_path / "kept").write_text("kept")
    assert attempt("os.truncate('kept', 0)") == ["PermissionError"]
    assert (tmp_path / "kept").read_text() == "kept"


def test_it_reads_and_has_dev_null(attempt, tmp_path):
    (tmp_path / "kept").write_text("kept")
    assert attempt("assert open('kept').read() == 'kept'", "open(os.devnull, 'w').write('x')",
                   "os.listdir('.')") == ["done"] * 3


@pytest.mark.skipif(confined.version() < 4, reason="this Landlock knows no network")
def test_it_connects_to_nobody(attempt):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert attempt(f"socket.create_connection(('127.0.0.1', {port}))",
                       "socket.create_server(('127.0.0.1', 0))") == ["PermissionError"] * 2


@pytest.mark.skipif(confined.version() < 6, reason="this Landlock knows no signals")
def test_it_ends_no_other_process(attempt):
    assert attempt(f"os.kill({os.getpid()}, {int(signal.SIGCONT)})") == ["PermissionError"]


def test_a_command_does_not_run_where_it_cannot_be_confined(tmp_path):
    words = confined.command(str(tmp_path / "none"), [sys.executable, "-c", "print('ran')"])
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.startswith("confined: [Errno 2]")
