"""Define picotorch examples: programs for MicroPython, each with its model, as a starting point."""

import ast
from dataclasses import dataclass
from pathlib import Path

import click

from picotorch.errors import ACCESS_FAILED, NOT_FOUND, fail

from ..host import files, quoting, show
from ..host.report import Report
from ..host.sources import ROOT
from ..measure import sizing
from ..run import running
from . import options
from .command import command

EXAMPLES_DIR = ROOT / "examples"
NO_COPY = (".mpy",)  # suffixes of files that tests write there


@command("examples")
@click.argument("name", required=False, metavar="[NAME")
@click.argument("folder", required=False, type=click.Path(path_type=Path), metavar="[FOLDER]]")
@options.as_json
def examples_command(name: str | None, folder: Path | None, as_json: bool) -> None:
    """List the examples, or copy example NAME into a new FOLDER (by default NAME).

    \b
    Examples:
      picotorch examples
      picotorch examples gesture my_gesture
    """
    if name is None:
        show.report(examples(), as_json, show_list)
    else:
        show.report(copy(name, folder or Path(name)), as_json, show_copied)


def names() -> list[str]:
    """Return the names of the examples, sorted."""
    return sorted(path.parent.name for path in EXAMPLES_DIR.glob("*/main.py"))


@dataclass(frozen=True)
class Example(Report):
    """An example. method_pool, planned, temp: the RAM of its model in bytes."""

    example: str
    title: str
    program_bytes: int
    method_pool: int
    planned: list[int]
    temp: int


@dataclass(frozen=True)
class Examples(Report):
    """All examples."""

    examples: list[Example]


@dataclass(frozen=True)
class Copied(Report):
    """An example in a new folder."""

    example: str
    folder: str
    files: list[str]


def examples() -> Examples:
    """Return the examples."""
    return Examples([_example(name) for name in names()])


def _example(name: str) -> Example:
    folder = EXAMPLES_DIR / name
    title = (ast.get_docstring(ast.parse((folder / "main.py").read_text())) or "").split("\n")[0]
    need = sizing.measure(running.read_program(folder / "model.pte"), name, "forward", [], False).needs
    return Example(name, title, need.program_bytes, need.method_pool, need.planned, need.temp)


def copy(name: str, folder: Path) -> Copied:
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
    return Copied(name, str(folder), [path.name for path in copied])


def show_list(found: Examples) -> None:
    show.table(["example", "model>", "RAM>", ""], [
        [one.example, show.size(one.program_bytes),
         show.size(one.method_pool + sum(one.planned) + one.temp), one.title]
        for one in found.examples])
    click.echo("\nmodel: bytes of flash. RAM: method pool, planned buffers and temp memory.\n"
               "picotorch examples NAME copies one into a new folder.")


def show_copied(found: Copied) -> None:
    show.line(f"{found.folder}: {', '.join(found.files)}")
    folder = quoting.operand(found.folder)
    show.line(f"Without a board: {quoting.shell('cd', folder)} && python main.py")
    show.line("On a board: copy model.pte, main.py and the recording to it (README.md explains it)")
