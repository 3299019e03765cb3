"""picotorch firmware: the firmware of a board with only the kernels that some models need.

The operators keep their numbers, so the pool of a loaded method has the same bytes as with all
kernels. A model with another operator is refused on the board, by the operator's name.
"""

import hashlib
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import click
from picotorch import Program
from picotorch.errors import INTERNAL, NOT_FOUND, OPERATOR_MISSING, fail

from . import emulator, show
from .elf import flash_bytes

ROOT = Path(__file__).resolve().parent.parent
OPERATORS = ROOT / "kernels" / "core" / "operators.def"
SETUP = ROOT / "tools" / "setup_picotorch.py"

_ENTRY = re.compile(r'^PT_OPERATOR\("([^"]+)", (\w+), "\w*"\)$', re.MULTILINE)


@dataclass(frozen=True)
class Operator:
    """An operator that picotorch knows: its number, its kernel `pt_<symbol>`, its line in the list."""

    number: int
    name: str
    symbol: str
    line: str


def known_operators() -> dict[str, Operator]:
    """All of them by name, in the order of their numbers."""
    matches = enumerate(_ENTRY.finditer(OPERATORS.read_text()))
    return {match[1]: Operator(number, match[1], match[2], match[0]) for number, match in matches}


def needed_operators(programs: dict[str, Program]) -> list[str]:
    """The operators of all methods of the programs, sorted. `programs` is by file name.

    Raises OperatorMissing with all that no build has a kernel for, NotFound for a delegate.
    """
    needed, missing = set(), []
    for name, program in programs.items():
        for meta in (program.method_meta(method) for method in program.method_names):
            if meta.num_backends():
                raise fail(NOT_FOUND, f"delegates to {', '.join(meta.backend_names())}", name,
                           remedy="export without a delegate")
            needed.update(meta.operator_name(i) for i in range(meta.num_operators()))
            missing += [f"{operator} ({name})" for operator in meta.missing_operators()]
    if missing:
        raise fail(OPERATOR_MISSING, "no kernel for: " + ", ".join(dict.fromkeys(missing)),
                   remedy="change these models or leave them out")
    return sorted(needed)


def operator_file(names: list[str]) -> str:
    """The text of an operators.def with these operators, from the first to the last of them."""
    known = known_operators()
    kept = {known[name].number for name in names} or {0}
    lines = ["// The operators of a selective build, see kernels/core/registry.c.",
             f"#define PT_FIRST_OPERATOR {min(kept)}"]
    lines += [operator.line if operator.name in names else "PT_NOT_LINKED"
              for operator in known.values() if min(kept) <= operator.number <= max(kept)]
    return "\n".join(lines) + "\n"


def default_output(board: str) -> Path:
    return emulator.FIRMWARE_DIR / f"{board}-selected.elf"


def build(board: str, programs: dict[str, Program], output: Path) -> dict:
    """Builds the firmware and says what is in it. What is made on the way is told on stderr.

    Raises OperatorMissing, NotFound, Internal when the build fails.
    """
    names = needed_operators(programs)
    text = operator_file(names)
    folder = emulator.FIRMWARE_DIR / f"{board}-run" / "selected" / _digest(text)
    _make(board, text, folder)
    output.parent.mkdir(parents=True, exist_ok=True)
    for suffix in (".elf", ".map"):
        shutil.copyfile(folder / f"firmware{suffix}", output.with_suffix(suffix))
    if output.is_relative_to(Path.cwd()):
        output = output.relative_to(Path.cwd())
    return {"board": board, "models": list(programs), "firmware": str(output), "operators": names,
            "known_operators": len(known_operators()), "flash": flash_bytes(output)}


def _digest(text):
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _make(board, text, folder):
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "operators.def"
    if not path.exists() or path.read_text() != text:
        path.write_text(text)
    command = [sys.executable, SETUP, "firmware", "--board", board, "--variant", "run",
               "--selection", folder]
    if subprocess.run(command, stdout=sys.stderr).returncode:
        raise fail(INTERNAL, "the firmware was not built", board,
                   remedy="what is above says where it stopped")


def show_text(entry: dict) -> None:
    click.echo(f"{entry['firmware']}: {entry['board']}, {show.size(entry['flash'])} of flash, "
               f"kernels of {len(entry['operators'])} of {entry['known_operators']} operators:")
    for name in entry["operators"]:
        click.echo(f"  {name}")
    click.echo(f"picotorch run {entry['models'][0]} --board {entry['board']} "
               f"--firmware {entry['firmware']}")
