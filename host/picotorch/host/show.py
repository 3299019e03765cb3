"""Print lines, headings, tables and sizes for people, JSON for machines.

Names in a file are the file's choice: control characters of a terminal are not printed.
"""

import contextlib
import itertools
import json
import math
import shutil
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from picotorch.errors import Error

from .report import Report

Reported = TypeVar("Reported", bound=Report)

# Of the verdict in the last column of a table, on a terminal
_COLOURS = {"fits": "green", "DOES NOT FIT": "red", "PASS": "green", "FAIL": "red"}
_NOTHING: Mapping[str, int] = {}
_progress = threading.Lock()  # locked while a progress line is shown
_SECONDS_WIDTH = len(" ... 99999 s")


def report(found: Reported, is_json: bool, show_text: Callable[[Reported], None]) -> None:
    """Print the report of a command: as JSON, or by show_text for people."""
    if is_json:
        as_json(found.to_json())
    else:
        show_text(found)


def as_json(entry: dict[str, Any]) -> None:
    """Print one line of JSON."""
    click.echo(json_text(entry))


def json_text(value: Any) -> str:
    """Return a line of JSON, which has no infinities and NaN: they are "inf", "-inf" and "nan"."""
    return json.dumps(_finite(value), allow_nan=False)


def error(code: int | None, name: str, message: str) -> dict[str, Any]:
    """Return an error as JSON has it, the same for every command."""
    return {"name": name, "code": code, "message": message}


def with_report(error: Error, found: Report | None) -> Error:
    """Attach a report to an error: its JSON has the fields of both."""
    vars(error)["report"] = found
    return error


def _finite(entry: Any) -> Any:
    if isinstance(entry, dict):
        return {key: _finite(value) for key, value in entry.items()}
    if isinstance(entry, list | tuple):
        return [_finite(value) for value in entry]
    return str(entry) if isinstance(entry, float) and not math.isfinite(entry) else entry


@contextlib.contextmanager
def progress(text: str) -> Iterator[None]:
    """Show a progress line on a terminal while the block runs, in the main thread only.

    After a second, the line also shows the elapsed seconds, since the time of an emulator is not known.
    Inside another such block no line is shown, since the terminal shows the other one.
    """
    if (_progress.locked() or not sys.stderr.isatty()
            or threading.current_thread() is not threading.main_thread()):
        yield
        return
    width = shutil.get_terminal_size().columns - _SECONDS_WIDTH - 1
    text, ended = printable(text)[: max(width, 0)], threading.Event()

    def count_seconds() -> None:
        for seconds in itertools.count(1):
            if ended.wait(1):
                return
            click.echo(f"{text} ... {seconds} s\r", err=True, nl=False)

    counting = threading.Thread(target=count_seconds, daemon=True)
    try:
        with _progress:
            click.echo(f"{text} ...\r", err=True, nl=False)
            counting.start()
            yield
    finally:
        ended.set()
        if counting.is_alive():
            counting.join()
        click.echo(" " * (len(text) + _SECONDS_WIDTH) + "\r", err=True, nl=False)


def wrote(path: Path) -> None:
    """Print the name of a file that was written."""
    line(f"Wrote {path}")


def printable(text: str) -> str:
    """Replace by "?" control characters, line breaks, and marks that turn the direction of text."""
    return "".join(c if c.isprintable() else "?" for c in text)


def line(text: str, err: bool = False) -> None:
    """Print a line; err: on stderr."""
    click.echo(printable(text), err=err)


def heading(text: str) -> None:
    click.echo()
    click.secho(printable(text), bold=True)


def table(columns: list[str], rows: list[list[Any]], omitted: Sequence[str] = (),
          shortened: Mapping[str, int] = _NOTHING) -> list[str]:
    """Print a table. Columns whose name ends in ">" are aligned to the right.

    omitted: columns that a terminal omits, the first of them first, if the table is wider than it.
    shortened: columns whose cells it cuts in the middle, to these widths at least. Other output than a
    terminal's has all. Returns the names of the omitted columns.
    """
    cells = [[name.rstrip(">"), *(printable(str(cell)) for cell in column)]
             for name, *column in zip(columns, *rows, strict=True)]
    right = {name.rstrip(">") for name in columns if name.endswith(">")}
    limit = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    dropped = _fit(cells, limit, omitted, shortened) if limit else []
    widths = [max(map(len, column)) for column in cells]
    for number, row in enumerate(zip(*cells, strict=True)):
        texts = [cell.rjust(width) if column[0] in right else cell.ljust(width)
                 for cell, width, column in zip(row, widths, cells, strict=True)]
        if number and row[-1] in _COLOURS:
            texts[-1] = click.style(texts[-1].rstrip(), fg=_COLOURS[row[-1]])
        click.secho("  ".join(texts).rstrip(), dim=number == 0)
    return dropped


def _fit(cells: list[list[str]], limit: int, omitted: Sequence[str],
         shortened: Mapping[str, int]) -> list[str]:
    """Omit and shorten columns of a table, each with its name first, until it fits.

    Returns the names of the omitted columns.
    """
    def excess() -> int:
        return sum(widths.values()) + 2 * (len(widths) - 1) - limit

    widths = {column[0]: max(map(len, column)) for column in cells}
    spare = sum(max(0, widths[name] - shortest) for name, shortest in shortened.items())
    dropped = []
    for name in omitted:
        if excess() > spare:
            del widths[name]
            dropped.append(name)
    while excess() > 0 and (long := [name for name in shortened if widths[name] > shortened[name]]):
        widths[max(long, key=widths.__getitem__)] -= 1
    cells[:] = [[_cut(cell, widths[column[0]]) for cell in column]
                for column in cells if column[0] in widths]
    return dropped


def _cut(text: str, width: int) -> str:
    """Replace the middle of a text that is wider by two points."""
    if len(text) <= width:
        return text
    head = width // 4
    return f"{text[:head]}..{text[len(text) - (width - 2 - head):]}"


def size(count: int) -> str:
    """Return the bytes, with separated thousands."""
    return f"{count:,} B"


def sizes(values: Iterable[int]) -> str:
    """Return sizes as text: "[1, 64]" without spaces around the brackets."""
    return "[" + ", ".join(map(str, values)) + "]"

