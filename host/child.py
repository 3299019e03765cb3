"""Start a program that ends with the block that it was started for."""

import contextlib
import signal
import subprocess
import threading
from collections.abc import Iterator, Sequence


@contextlib.contextmanager
def started(command: Sequence[str], **options) -> Iterator[subprocess.Popen]:
    """Give the process of a command; when the block ends, kill it and wait for it.

    options: as subprocess.Popen takes them. Raises OSError where the program does not start.
    """
    with contextlib.ExitStack() as stack:
        with _held_signals():  # Popen leaves its process alone when it is interrupted
            process = stack.enter_context(subprocess.Popen(command, **options))
            stack.callback(_end, process)
        yield process


def _end(process):
    process.kill()
    process.wait()


@contextlib.contextmanager
def _held_signals():
    """Hold ctrl-C and SIGTERM back until the block ends. Only the main thread gets them."""
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
        for number in came:
            signal.raise_signal(number)
