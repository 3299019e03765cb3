"""Print lines, headings, tables and sizes for people, JSON for machines.

Names in a file are the file's choice: control characters of a terminal are not printed.
"""

import contextlib
import json
import math
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import click

from picotorch.errors import Error

from .report import Report

Reported = TypeVar("Reported", bound=Report)

# Of the verdict in the last column of a table, on a terminal
_COLOURS = {"fits": "green", "DOES NOT FIT": "red", "PASS": "green", "FAIL": "red"}


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
    """Show a progress line on a terminal while the block runs, in the main thread only."""
    if not sys.stderr.isatty() or threading.current_thread() is not threading.main_thread():
        yield
        return
    text = printable(text)
    click.echo(f"{text} ...\r", err=True, nl=False)
    try:
        yield
    finally:
        click.echo(" " * (len(text) + 4) + "\r", err=True, nl=False)


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


def table(columns: list[str], rows: list[list[Any]]) -> None:
    """Print a table. Columns whose name ends in ">" are aligned to the right."""
    rows = [[printable(str(cell)) for cell in row] for row in rows]
    names = [name.rstrip(">") for name in columns]
    widths = [max(map(len, column)) for column in zip(names, *rows, strict=True)]
    for number, row in enumerate([names, *rows]):
        cells = [cell.rjust(width) if name.endswith(">") else cell.ljust(width)
                 for cell, width, name in zip(row, widths, columns, strict=True)]
        if number and row[-1] in _COLOURS:
            cells[-1] = click.style(cells[-1].rstrip(), fg=_COLOURS[row[-1]])
        click.secho("  ".join(cells).rstrip(), dim=number == 0)


def size(count: int) -> str:
    """Return the bytes, with separated thousands."""
    return f"{count:,} B"


def sizes(values: Iterable[int]) -> str:
    """Return sizes as text: "[1, 64]" without spaces around the brackets."""
    return "[" + ", ".join(map(str, values)) + "]"

