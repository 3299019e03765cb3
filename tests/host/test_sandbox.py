"""Test export/sandbox.py: a command can change files in one folder only, even as root."""

import errno
import json
import os
import signal
import socket
import subprocess
import sys

import pytest
from picotorch.export import sandbox

pytestmark = pytest.mark.skipif(not sandbox.version(), reason="this computer has no Landlock")

# Executes each statement of argv[1] and prints its outcome.
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
    """Return a function that runs each statement in a sandbox, and returns "done" or the error's name
    for each."""
    (tmp_path / "folder").mkdir()

    def run(*statements):
        words = [sys.executable, "-c", TRY, json.dumps(statements)]
        done = subprocess.run(sandbox.command(str(tmp_path / "folder"), words), capture_output=True,
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


@pytest.mark.skipif(sandbox.version() < 3, reason="this Landlock knows no truncate")
def test_it_truncates_nothing_elsewhere(attempt, tmp_path):
    (tmp_path / "kept").write_text("kept")
    assert attempt("os.truncate('kept', 0)") == ["PermissionError"]
    assert (tmp_path / "kept").read_text() == "kept"


def test_it_reads_and_has_dev_null(attempt, tmp_path):
    (tmp_path / "kept").write_text("kept")
    assert attempt("assert open('kept').read() == 'kept'", "open(os.devnull, 'w').write('x')",
                   "os.listdir('.')") == ["done"] * 3


@pytest.mark.skipif(sandbox.version() < 4, reason="this Landlock knows no network")
def test_it_connects_to_nobody(attempt):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert attempt(f"socket.create_connection(('127.0.0.1', {port}))",
                       "socket.create_server(('127.0.0.1', 0))") == ["PermissionError"] * 2


@pytest.mark.skipif(sandbox.version() < 6, reason="this Landlock knows no signals")
def test_it_ends_no_other_process(attempt):
    assert attempt(f"os.kill({os.getpid()}, {int(signal.SIGCONT)})") == ["PermissionError"]


FILTERED = pytest.mark.skipif(not sandbox.denied(), reason="no filter of system calls is known here")


@FILTERED
@pytest.mark.parametrize("kind", ["SOCK_STREAM", "SOCK_DGRAM", "SOCK_SEQPACKET"])
def test_it_reaches_no_unix_socket(attempt, tmp_path, kind):
    """The sandbox blocks sockets by path, also in its own folder, and socket pairs."""
    for name in ("server", "folder/server"):
        with socket.socket(socket.AF_UNIX, getattr(socket, kind)) as server:
            server.bind(str(tmp_path / name))
            server.setblocking(False)
            if kind != "SOCK_DGRAM":
                server.listen()
            made = f"s = socket.socket(socket.AF_UNIX, socket.{kind})"
            pair = f"s, _ = socket.socketpair(socket.AF_UNIX, socket.{kind})"
            assert attempt(f"{made}; s.connect({name!r})", f"{made}; s.sendto(b'x', {name!r})",
                           f"{pair}; s.sendto(b'x', {name!r})", made) == ["PermissionError"] * 4
            with pytest.raises(BlockingIOError):
                server.recv(1) if kind == "SOCK_DGRAM" else server.accept()


@FILTERED
def test_it_sends_nothing_by_udp_or_netlink(attempt):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.setblocking(False)
        address = server.getsockname()
        assert attempt(
            f"socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', {address})",
            "socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)",
            "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0).send(bytes(16))",
            "socket.socket(socket.AF_PACKET, socket.SOCK_RAW)",
            "socket.socket(40, socket.SOCK_STREAM)") == ["PermissionError"] * 5  # 40: vsock
        with pytest.raises(BlockingIOError):
            server.recv(1)


@FILTERED
def test_it_changes_no_attribute_mode_owner_or_time(attempt, tmp_path):
    kept = tmp_path / "kept"
    kept.write_text("kept")
    before = kept.stat()
    results = attempt(
        "os.setxattr('kept', 'user.x', b'x')", "os.setxattr('kept', 'trusted.x', b'x')",
        "os.removexattr('kept', 'user.x')", "os.chmod('kept', 0o777)",
        "os.chown('kept', 1, 1)", "os.lchown('kept', 1, 1)",
        "os.utime('kept', (1, 1))", "os.chmod('.', 0o777)",
        "os.fchmod(os.open('kept', os.O_RDONLY), 0o777)",
        "os.utime(os.open('kept', os.O_RDONLY), (1, 1))",
        "os.fchown(os.open('kept', os.O_RDONLY), 1, 1)",
        "os.setxattr(os.open('kept', os.O_RDONLY), 'user.x', b'x')")
    assert set(results) == {"PermissionError"}
    assert kept.stat() == before and os.listxattr(kept) == []


def raw(number, *arguments):
    """Return a statement that makes a system call and raises its error."""
    words = ", ".join(f"ctypes.c_long({argument})" for argument in (number, *arguments))
    return ("import ctypes; libc = ctypes.CDLL(None, use_errno=True); "
            f"exec('if libc.syscall({words}) < 0: "
            "raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))')")


@FILTERED
def test_each_denied_system_call_is_denied(attempt):
    calls = sandbox.denied()
    assert attempt(*(raw(number, *[0] * 6) for number in calls.values())) == (
        ["PermissionError"] * len(calls))


@FILTERED
def test_it_gets_around_the_filter_by_no_other_call(attempt):
    """Denied are namespaces by clone, resources of another process, and typing at a terminal. System
    calls that are newer than the filter, and those of x32, appear as missing."""
    column, _ = sandbox._machine()
    clone, ioctl, limits = (numbers[column] for numbers in (
        sandbox._CLONE, sandbox._IOCTL, sandbox._LIMITS))
    assert attempt(raw(clone, 0x10000000 | signal.SIGCHLD, 0, 0, 0, 0),
                   raw(limits, os.getpid(), 7, 0, 0), raw(ioctl, 0, 0x5412, 0),
                   raw(ioctl, 0, 0x541C, 0)) == ["PermissionError"] * 4
    flags = (0x40086602, 0x40046602, 0x40087602, 0x401C5820, 0x40806685, 0x800C6613, 0x40049409,
             0xC0189436, 0xC0045877)  # flags, version, verity, encryption, clone, freeze
    assert attempt(*(raw(ioctl, 0, number, 0) for number in flags)) == ["PermissionError"] * len(flags)
    assert attempt("import fcntl, os; fcntl.ioctl(os.pipe()[0], 0x541B, bytes(4))") == ["done"]
    newer = [raw(number, *[0] * 6) for number in (463, 466, 500, 0x40000000 + 41, 0x7FFFFFFF)]
    no_such_call = f"assert error.errno == {errno.ENOSYS}"
    for statement in (*newer, raw(sandbox._CLONE3[column], 0, 0)):
        tried = f"try:\n exec({statement!r})\nexcept OSError as error:\n {no_such_call}\nelse:\n 1 / 0"
        assert attempt(tried) == ["done"]


@FILTERED
def test_child_processes_are_confined(attempt):
    script = "import socket; socket.socket(socket.AF_UNIX)"
    assert attempt(f"subprocess.run([sys.executable, '-c', {script!r}], check=True)") == [
        "CalledProcessError"]


@FILTERED
def test_it_computes_starts_processes_and_threads(attempt):
    assert attempt(
        "import threading; t = threading.Thread(target=print); t.start(); t.join()",
        "assert subprocess.run(['true']).returncode == 0",
        "assert os.waitpid(os.fork() or os._exit(0), 0)",
        "import resource; resource.getrlimit(resource.RLIMIT_NOFILE)",
        "import mmap; mmap.mmap(-1, 4096)[0] = 1", "import time; time.sleep(0.01)",
        "import tempfile; tempfile.TemporaryFile(dir='folder').write(b'x')",
        "import select; select.poll().poll(1)", "os.pipe()") == ["done"] * 9


def test_numbers_of_system_calls_differ():
    for column in (0, 1):
        numbers = [found[column] for found in (*sandbox._DENIED.values(), sandbox._CLONE,
                                               sandbox._CLONE3, sandbox._IOCTL, sandbox._LIMITS,
                                               sandbox._TIMES)]
        numbers = [number for number in numbers if number is not None]
        assert len(set(numbers)) == len(numbers) and max(numbers) < sandbox._UNKNOWN


@pytest.mark.parametrize("machine", ["riscv64", "i686", "ppc64le"])
def test_a_machine_with_unknown_system_calls_has_no_filter(machine, monkeypatch):
    monkeypatch.setattr(sandbox.platform, "machine", lambda: machine)
    assert sandbox.denied() == {}


@pytest.mark.parametrize(("landlock", "has_filter", "found"), [
    (0, False, ""), (0, True, ""), (6, True, ""), (5, True, "signal"), (3, True, "signal"),
    (2, True, "signal empty"), (1, True, "signal empty"), (6, False, "reach change use"),
    (5, False, "reach change use signal"), (3, False, "reach connect change use signal"),
    (1, False, "reach connect change use signal empty")])
def test_calls_that_the_filter_allows(landlock, has_filter, found, monkeypatch):
    monkeypatch.setattr(sandbox, "version", lambda: landlock)
    monkeypatch.setattr(sandbox, "denied", lambda: {"socket": 41} if has_filter else {})
    assert " ".join(gap.split()[0] for gap in sandbox.gaps()) == found


def test_a_command_does_not_run_where_it_cannot_be_confined(tmp_path):
    words = sandbox.command(str(tmp_path / "none"), [sys.executable, "-c", "print('ran')"])
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.startswith("confined: [Errno 2]")
