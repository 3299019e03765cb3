"""Define picotorch examples: programs for MicroPython, each with its model, as a starting point."""

import ast
from pathlib import Path
from typing import Any

import click

from picotorch.errors import ACCESS_FAILED, NOT_FOUND, fail

from ..host import files, quoting, show
from ..host.sources import ROOT
from ..measure import sizing
from ..run import running

EXAMPLES_DIR = ROOT / "examples"
NO_COPY = (".mpy",)  # suffixes of files that tests write there


def names() -> list[str]:
    """Return the names of the examples, sorted."""
    return sorted(path.parent.name for path in EXAMPLES_DIR.glob("*/main.py"))


def examples() -> list[dict[str, Any]]:
    """Return the examples as plain data; pool, planned and temp are the RAM of the model in bytes."""
    return [_entry(name) for name in names()]


def _entry(name: str) -> dict[str, Any]:
    folder = EXAMPLES_DIR / name
    title = (ast.get_docstring(ast.parse((folder / "main.py").read_text())) or "").split("\n")[0]
    need = sizing.measure(running.read_program(folder / "model.pte"), name, "forward", [], False).needs
    return {"example": name, "title": title, "program_bytes": need.program_bytes,
            "method_pool": need.method_pool, "planned": need.planned, "temp": need.temp}


def copy(name: str, folder: Path) -> dict[str, Any]:
    """Copy an example into a new folder. Raises NotFound, AccessFailed."""
    if name not in names():
        raise fail(NOT_FOUND, "there are " + ", ".join(names()), f"example {name}",
                   remedy="name one of them")
    if folder.exists():
        raise fail(ACCESS_FAILED, "exists already", str(folder), remedy="name another folder")
    copied = sorted(path for path in (EXAMPLES_DIR / name).iterdir()
                    if path.is_file() and path.suffix not in NO_COPY)
    with files.making(folder) as part:
        for path in copied:
            files.copy(path, part / path.name)
    return {"example": name, "folder": str(folder), "files": [path.name for path in copied]}


def show_list(found: dict[str, Any]) -> None:
    show.table(["example", "model>", "RAM>", ""], [
        [entry["example"], show.size(entry["program_bytes"]),
         show.size(entry["method_pool"] + sum(entry["planned"]) + entry["temp"]), entry["title"]]
        for entry in found["examples"]])
    click.echo("\nmodel: bytes of flash. RAM: method pool, planned buffers and temp memory.\n"
               "picotorch examples NAME copies one into a new folder.")


def show_copied(entry: dict[str, Any]) -> None:
    show.line(f"{entry['folder']}: {', '.join(entry['files'])}")
    folder = quoting.operand(entry["folder"])
    show.line(f"Without a board: {quoting.shell('cd', folder)} && python main.py")
    show.line("On a board: copy model.pte, main.py and the recording to it (README.md explains it)")
