"""Start a program that ends with the block that it was started for, or with the call."""

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

_TIMEOUT, _PAUSE = 2, 0.02  # seconds


def _kill(process: subprocess.Popen[Any]) -> None:
    process.kill()
    process.wait()


def kill_group(process: subprocess.Popen[Any]) -> None:
    """Kill the process group of its leader, and wait for the leader."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@contextlib.contextmanager
def started(command: Sequence[str], end: Callable[[subprocess.Popen[Any]], None] = _kill,
            **options: Any) -> Iterator[subprocess.Popen[Any]]:
    """Start a command, give its process, and end it when the block ends.

    end: ends it and waits for it, kills it by default; options: of subprocess.Popen. Raises OSError if
    the program does not start.
    """
    with contextlib.ExitStack() as stack:
        with _held_signals():  # Popen leaves its process alone when it is interrupted
            process = stack.enter_context(subprocess.Popen(command, **options))
            stack.callback(end, process)
        yield process


def run(command: Sequence[str], **options: Any) -> subprocess.CompletedProcess[Any]:
    """Run a command that starts others, make for instance, without input.

    ctrl-C and SIGTERM end all of them.

    options: of subprocess.Popen. Raises OSError if the program does not start.
    """
    with started(command, _end_group, stdin=subprocess.DEVNULL, process_group=0, **options) as process:
        output, errors = process.communicate()
    return subprocess.CompletedProcess(command, process.returncode, output, errors)


def _end_group(process: subprocess.Popen[Any]) -> None:
    """End a process and its children if it did not end itself.

    make and compilers remove unfinished files if they get the time.
    """
    if process.returncode is not None:
        return
    end = time.monotonic() + _TIMEOUT
    try:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
            while time.monotonic() < end:
                process.poll()  # else it stays in its group
                os.killpg(process.pid, 0)
                time.sleep(_PAUSE)
    finally:
        kill_group(process)


@contextlib.contextmanager
def _held_signals() -> Iterator[None]:
    """Defer ctrl-C and SIGTERM until the block ends; only the main thread receives them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came = []
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    handlers = {number: handler for number, handler in before.items() if callable(handler)}
    try:
        for number in handlers:
            signal.signal(number, lambda number, _: came.append(number))
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for missed in came:
            signal.raise_signal(missed)
