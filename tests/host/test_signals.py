"""Test ctrl-C and SIGTERM: no traceback, no running emulator, no temporary folder."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from picotorch.cli import main
from picotorch.host import child
from support import fixture_store

SCRIPT = str(Path(sys.executable).parent / "picotorch")
START = """
import signal
set_handler = signal.signal

def told(*arguments):
    before = set_handler(*arguments)
    print("begun", flush=True)
    return before

signal.signal = told
import _picotorch_start
_picotorch_start.main()
"""


def started(*command, **options):
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)


@pytest.mark.thorough
def test_an_interrupt_at_any_time_of_the_start():
    """The test begins with the first line of picotorch; before that, the interpreter starts."""
    for step in range(24):
        process = started(sys.executable, "-c", START, "boards")
        assert process.stdout.readline() == b"begun\n"
        time.sleep(step * 0.025)
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=60)
        assert process.returncode in (-signal.SIGINT, 130, 0), (step, error)
        # in a command, click closes the terminal's ^C with a blank line
        assert error in (b"", b"Interrupted\n", b"\nInterrupted\n"), step


class _Finalized:
    """Receive a signal where Python drops exceptions."""

    def __init__(self, number):
        self.number = number

    def __del__(self):
        signal.raise_signal(self.number)
        for _ in range(1000):
            pass


@pytest.fixture
def sigint():
    """Restore the handler of SIGINT."""
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("number, ignored", [
    (signal.SIGINT, False), (signal.SIGTERM, False), (signal.SIGTERM, True)])
def test_an_interrupt_in_a_finalizer_ends_the_command(monkeypatch, capfd, sigint, number, ignored):
    """Under nohup, SIGINT is ignored."""
    def command(*_):
        _Finalized(number)
        time.sleep(30)

    hook = sys.unraisablehook
    monkeypatch.setattr(main, "_call", command)
    if ignored:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    with pytest.raises(SystemExit) as ended:
        main.main(["boards"])
    assert ended.value.code == main.INTERRUPTED
    assert capfd.readouterr().err.strip() == "Interrupted"
    assert sys.unraisablehook is hook
    assert (signal.getsignal(signal.SIGINT) is signal.SIG_IGN) == ignored


def test_an_interrupt_in_the_last_finalizer_does_not_reach_the_caller(monkeypatch, capfd):
    monkeypatch.setattr(main, "_call", lambda *_: _Finalized(signal.SIGINT) and None)
    with pytest.raises(SystemExit):
        main.main(["boards"])
    time.sleep(0.05)
    assert capfd.readouterr().err.strip() in ("", "Interrupted")


# Names that Windows lacks, except those of processes: emulators need them
WITHOUT = """
import os, signal, sys
sys.modules["fcntl"] = sys.modules["termios"] = None
for module, names in ((signal, ("SIGALRM", "setitimer", "ITIMER_REAL", "pthread_kill")),
                      (os, ("fork", "getuid"))):
    for name in names:
        delattr(module, name)
from picotorch.cli.main import main
main(sys.argv[1:])
"""


@pytest.mark.parametrize("command", [["boards"], ["size", "{}"], ["run", "{}"], ["inspect", "{}"]])
def test_commands_run_on_the_twin_without_unix(command):
    words = [word.format(fixture_store.load("mlp").path) for word in command]
    done = subprocess.run([sys.executable, "-c", WITHOUT, *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def children(process):
    with contextlib.suppress(FileNotFoundError):
        for thread in Path(f"/proc/{process.pid}/task").iterdir():
            yield from map(int, (thread / "children").read_text().split())


def wait_for_emulator(process):
    """Return the emulator's process id once it has started."""
    for _ in range(3000):
        for pid in children(process):
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            if b"qemu" in words[0] and b"-kernel" in words:
                return pid
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    raise AssertionError("no emulator was started")


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("time", range(8))
def test_a_signal_while_a_program_starts_ends_it(tmp_path, time):
    """In most runs, Popen has not returned yet when the shell sends the signal."""
    said = tmp_path / "pid"
    command = ["sh", "-c", f"echo $$ > {said}; kill -INT $PPID; exec sleep 60"]
    with pytest.raises(KeyboardInterrupt), child.started(command) as process:
        process.wait(timeout=30)
    assert not is_alive(int(said.read_text()))
    assert signal.getsignal(signal.SIGINT) == signal.default_int_handler


@pytest.mark.thorough
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("command", [
    ["run", "{}", "--board", "mps2-an386"], ["profile", "{}", "--board", "mps2-an386"],
    ["parity", "{}", "--board", "mps2-an386"], ["size", "{}"],
    ["repl", "--board", "mps2-an386"], ["repl", "--board", "mps2-an386", "--listen", "tcp:0"],
])
def test_a_signal_ends_the_emulator_and_removes_its_folder(tmp_path, command, number):
    model = fixture_store.load("simple_conv_256").path
    process = started(SCRIPT, *[word.format(model) for word in command], stdin=subprocess.PIPE,
                      env={**os.environ, "TMPDIR": str(tmp_path),
                           "XDG_CACHE_HOME": str(tmp_path / "none")})
    emulator = wait_for_emulator(process)
    process.send_signal(number)
    process.wait(timeout=60)
    error = process.stderr.read()
    for file in (process.stdin, process.stdout, process.stderr):
        file.close()
    assert process.returncode == 130 and error.endswith(b"Interrupted\n") and b"Trace" not in error
    assert not is_alive(emulator) and not list(children(process))
    assert {path.name for path in tmp_path.iterdir()} <= {"none"}


# Starts other processes and waits for them, as make does; the last one leaves its parent.
COMPILERS = """#!/bin/sh
case "$*" in *--version*) exec /usr/bin/make "$@"; esac
sh -c 'sleep 61 & sleep 62 & echo $$ $! $PPID >> "$PIDS.part"; mv "$PIDS.part" "$PIDS"; wait' &
wait
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("command", [
    ["firmware", "--board", "mps2-an386", "--models"], ["natmod", "--arch", "armv6m", "--models"]])
def test_a_signal_ends_the_compilers(tmp_path, command, number):
    make, pids = tmp_path / "make", tmp_path / "pids"
    make.write_text(COMPILERS)
    make.chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    process = started(SCRIPT, *command, fixture_store.load("mlp").path, "--output", tmp_path / "fw.elf",
                      env={**os.environ, "PATH": path, "PIDS": str(pids)})
    while not pids.exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    process.send_signal(number)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 130 and error.endswith(b"Interrupted\n") and b"Trace" not in error
    assert not any(map(is_alive, map(int, pids.read_text().split())))
