#!/usr/bin/env python3
"""Run the commands that pages of docs/ show, and write or compare their output.

    .venv/bin/python tools/pages.py docs/quickstart.md           # write the present output
    .venv/bin/python tools/pages.py --check docs/quickstart.md   # status 1 if the output differs
    tools/pages.py --check --python venv/bin/python docs/quickstart.md   # as a user without a checkout

A page's ```console blocks have commands, `$ picotorch size net.pte`, and their output on stdout. A line
`...` stands for omitted lines. Blocks of other kinds whose first line is a comment with a file name, `#
net.py`, are written to that file. All commands of a page run one after the other in one new folder.
Below `<!-- needs torch: net.pte -->` a block runs only if torch is installed; otherwise docs/net.pte
takes the place of its output.

--python names the Python of another environment, for example one with the wheel. Its commands run in a
folder without references to this repository; otherwise `tests` and `tools` are available.

A page may differ from the output in its spaces. All figures are exact, except the seconds of a step,
which are written as N.N. A page shows no other figure that depends on the computer or on the time.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"(?:<!-- needs torch: (?P<made>\S+) -->\n+)?```(?P<kind>\w*)\n(?P<body>.*?)```\n",
                   re.DOTALL)
FILE = re.compile(r"(?:#|//) ([\w.]+)\n")
NUMBER = re.compile(r"(?<![\w.])[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")
# The time of a step depends on the machine's load, and so does the number of its counts.
ELAPSED = re.compile(r"(?<= \.\.\. )(?:\d+(?: of \d+, \d+ s left)? \.\.\. )*\d+\.\d s$")
MASKED = "N.N s"


def shape(line: str) -> str:
    """Return a line with each number as #, and single spaces."""
    return re.sub(r" +", " ", NUMBER.sub("#", line)).strip()


def is_same(shown: str, printed: str) -> bool:
    """Compare a line of a page with one that a command printed, its seconds masked."""
    return re.sub(r" +", " ", shown).strip() == re.sub(r" +", " ", printed).strip()


def aligned(shown: list[str], printed: list[str], same) -> list[str] | None:
    """Return the printed lines that replace a page's lines, in which `...` stands for omitted lines.

    None if they do not match.
    """
    if not shown:
        return None if printed else []
    if shown[0] == "...":
        for i in range(len(printed) + 1):
            rest = aligned(shown[1:], printed[i:], same)
            if rest is not None:
                return ["...", *rest]
        return None
    if not printed or not same(shown[0], printed[0]):
        return None
    rest = aligned(shown[1:], printed[1:], same)
    return None if rest is None else [printed[0], *rest]


class Environment:
    """Run commands with the programs beside a Python, in a folder."""

    def __init__(self, python: Path, folder: Path):
        self.python = python
        self.folder = folder

    def run(self, command: str) -> list[str]:
        path = f"{self.python.parent}:{os.environ['PATH']}"
        done = subprocess.run(["bash", "-c", command], cwd=self.folder, text=True,
                              env={**os.environ, "PATH": path}, stdout=subprocess.PIPE)
        return [ELAPSED.sub(MASKED, line.rstrip()) for line in done.stdout.strip("\n").splitlines()]

    def has_torch(self) -> bool:
        """Return True if the environment has torch."""
        find = "import importlib.util as i, sys; sys.exit(i.find_spec('torch') is None)"
        return subprocess.run([self.python, "-c", find]).returncode == 0


def commands(body: str) -> list[list[str]]:
    """Return each command with the lines that are shown below it."""
    found = []
    for line in body.splitlines():
        if line.startswith("$ "):
            found.append([line])
        else:
            found[-1].append(line)
    return found


def renewed(body: str, environment: Environment, differences: list[str]) -> str:
    """Return a console block with the present output; add differences to `differences`."""
    lines = []
    for first, *shown in commands(body):
        printed = environment.run(first[2:])
        blank = 0
        while shown and not shown[-1]:
            shown, blank = shown[:-1], blank + 1
        if aligned(shown, printed, is_same) is None:
            differences.append("\n".join([first, *printed]))
            now = aligned(shown, printed, lambda a, b: shape(a) == shape(b))
            shown = printed if now is None else now
        lines += [first, *shown, *[""] * blank]
    return "\n".join(lines) + "\n"


def check(path: Path, python: Path | None) -> tuple[str, list[str]]:
    """Return the text of the page with the present output, and the commands whose output differs."""
    differences: list[str] = []
    with tempfile.TemporaryDirectory(prefix="picotorch-page-") as name:
        folder = Path(name)
        environment = Environment(python or Path(sys.executable), folder)
        has_torch = environment.has_torch()
        if python is None:
            for linked in ("tests", "tools"):
                (folder / linked).symlink_to(ROOT / linked)

        def one(found):
            body = found["body"]
            if found["made"] and not has_torch:
                shutil.copy(ROOT / "docs" / found["made"], folder)
            elif found["kind"] == "console":
                start, end = (found.start("body") - found.start(), found.end("body") - found.start())
                return found[0][:start] + renewed(body, environment, differences) + found[0][end:]
            elif FILE.match(body):
                (folder / FILE.match(body)[1]).write_text(body)
            return found[0]

        return BLOCK.sub(one, path.read_text()), differences


@click.command(help=__doc__)
@click.argument("pages", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--check", "only_check", is_flag=True, help="Write nothing; compare.")
@click.option("--python", type=click.Path(exists=True, path_type=Path), callback=lambda _, __, path:
              path and path.absolute(), help="The Python of the environment to run the commands in.")
def main(pages, only_check, python):
    failed = False
    for page in pages:
        text, differences = check(page, python)
        for difference in differences:
            click.echo(f"{page}: prints now\n{difference}\n")
        failed |= bool(differences)
        if not only_check:
            page.write_text(text)
    sys.exit(1 if only_check and failed else 0)


if __name__ == "__main__":
    main()
