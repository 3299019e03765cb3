"""Print the steps of an export, and silence torch meanwhile."""

import contextlib
import io
import logging
import math
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sized
from typing import Any, TypeVar

_FIRST_PAUSE = 2.0  # seconds to the first count of a step
_GROWTH = 1.5  # of each pause beside the one before: a line has few counts, however long it takes

_Item = TypeVar("_Item")
Each = Callable[[Iterable[Any]], Iterable[Any]]  # yields the items, and reports progress


class Steps:
    """Report each step to tell(text): the text as it begins, then its time, which ends the line.

    subject: start of the text, one file of several for instance.
    """

    def __init__(self, tell: Callable[[str], None] | None = None, subject: str = "") -> None:
        self.tell = tell or (lambda text: None)
        self.subject = subject
        self._stdout = sys.stdout  # where quiet does not reach

    @contextlib.contextmanager
    def step(self, text: str) -> Iterator[None]:
        """Report a step of the block, and its time when it ends."""
        start = time.monotonic()
        self.tell(f"{self.subject}{text} ... ")
        try:
            with quiet():
                yield
        except BaseException:
            self.tell("failed\n")
            raise
        self.tell(f"{time.monotonic() - start:.1f} s\n")

    def each(self, items: Iterable[_Item]) -> Iterator[_Item]:
        """Yield the items of a step, and report their count from time to time.

        If the number of items is known, it is reported, too, with the time that the rest will take.
        """
        total = len(items) if isinstance(items, Sized) else None
        start = last = time.monotonic()
        pause = _FIRST_PAUSE
        for count, item in enumerate(items, 1):
            yield item
            now = time.monotonic()
            if now - last > pause and count != total:
                last, pause = now, pause * _GROWTH
                with contextlib.redirect_stdout(self._stdout):
                    self.tell(f"{_counted(count, total, now - start)} ... ")


def _counted(count: int, total: int | None, seconds: float) -> str:
    """Return "12 of 200, 8 s left", or the count alone."""
    if total is None:
        return str(count)
    return f"{count} of {total}, {math.ceil(seconds / count * (total - count))} s left"


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Silence torch and the exporter: logs, warnings and output."""
    disabled = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with (warnings.catch_warnings(action="ignore"), contextlib.redirect_stdout(io.StringIO()),
              contextlib.redirect_stderr(io.StringIO())):
            yield
    finally:
        logging.disable(disabled)
