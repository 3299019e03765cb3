"""Printing for people: tables, drawn on a terminal and plain columns elsewhere."""

import sys

import click


def heading(text: str) -> None:
    click.echo()
    click.secho(text, bold=True)


def table(columns: list[str], rows: list[list]) -> None:
    """Columns whose name ends in ">" are aligned to the right."""
    rows = [[str(cell) for cell in row] for row in rows]
    if sys.stdout.isatty():
        _draw(columns, rows)
    else:
        _print_columns(columns, rows)


def _draw(columns, rows):
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in columns:
        drawn.add_column(name.rstrip(">"), justify="right" if name.endswith(">") else "left")
    for row in rows:
        drawn.add_row(*[Text(cell) for cell in row])
    Console(highlight=False).print(drawn)


def _print_columns(columns, rows):
    names = [name.rstrip(">") for name in columns]
    widths = [max(map(len, column)) for column in zip(names, *rows, strict=True)]
    for row in [names, *rows]:
        cells = [cell.rjust(width) if name.endswith(">") else cell.ljust(width)
                 for cell, width, name in zip(row, widths, columns, strict=True)]
        click.echo("  ".join(cells).rstrip())


def size(count: int) -> str:
    """Bytes, with separated thousands."""
    return f"{count:,} B"


def sizes(values) -> str:
    return "[" + ", ".join(map(str, values)) + "]"


def tensor(entry: dict) -> str:
    """A tensor of description.py: "Float [1, 3, 8, 8] dim order 0 2 3 1"."""
    text = f"{entry['dtype']} {sizes(entry['sizes'])}"
    order = entry["dim_order"]
    return text if order == sorted(order) else f"{text} dim order {' '.join(map(str, order))}"
