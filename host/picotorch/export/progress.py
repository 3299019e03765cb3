"""Print the steps of an export, and silence torch meanwhile."""

import contextlib
import io
import logging
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

_PAUSE = 2.0  # seconds between two counts of a step

_Item = TypeVar("_Item")


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
        """Yield the items of a step, and report their count from time to time."""
        last = time.monotonic()
        for count, item in enumerate(items, 1):
            yield item
            if time.monotonic() - last > _PAUSE:
                last = time.monotonic()
                with contextlib.redirect_stdout(self._stdout):
                    self.tell(f"{count} ... ")


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
