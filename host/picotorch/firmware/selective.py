"""Build the firmware of a board with only the kernels and parts that some models need.

The parts are those of the runtime that a firmware can lack. The operators keep their numbers, so the
pool of a loaded method has the same bytes as with all kernels. The board rejects a model with another
operator by the operator's name.
"""

import contextlib
import hashlib
import re
import subprocess
import sys
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

import click

from picotorch import Program
from picotorch.errors import INTERNAL, MEMORY_ALLOCATION_FAILED, NOT_FOUND, fail

from ..boards.boards import load_board
from ..host import child, quoting, show, twin
from ..host.elf import flash_bytes
from ..host.files import check_output, write
from ..host.operators import (
    FEATURES,
    methods_of,
    needed_features,
    needed_operators,
    supported_operators,
)
from ..host.optimize import BALANCED, Optimize
from ..host.report import Report
from ..host.sources import ROOT
from ..measure.flash import OperatorsFlash, flash_of_operators, flash_rows
from ..run import emulator

STDERR = 2
_OVERFLOW = re.compile(rb"region `(\w+)' overflowed by (\d+) bytes")
SETUP = ROOT / "tools" / "setup_picotorch.py"


def operator_file(names: Collection[str], features: Collection[str] = ("programs",)) -> str:
    """Return the text of an operators.def with only these operators and FEATURES."""
    kept = sorted((operator for name, operator in supported_operators().items() if name in names),
                  key=lambda operator: operator.name.encode())
    features = {*features, *(operator.subject for operator in kept if operator.subject)}
    lines = ["// The operators of a selective build, see kernels/core/registry/registry.c."]
    lines += [f"#define {switch}" for name, switch in FEATURES.items() if name not in features]
    if kept:
        lines.append(f"#define PT_FIRST_OPERATOR {min(operator.number for operator in kept)}")
    lines += [operator.line for operator in kept] or ["PT_NO_OPERATOR"]
    return "\n".join(lines) + "\n"


def selection(programs: dict[str, Program], optimize: Optimize = BALANCED) -> str:
    """Return the text of an operators.def with the operators that these programs need."""
    return operator_file(needed_operators(programs), needed_features(programs) - optimize.left_out)


def only_ptms(programs: dict[str, Program]) -> bool:
    """Return True if there are programs, and all are .ptm files."""
    return bool(programs) and all(twin.is_ptm(program.loader.buffer) for program in programs.values())


def needed_parts(programs: dict[str, Program]) -> set[str]:
    """Return the parts of picotorch.PARTS without which a method of these programs cannot be loaded."""
    metas = [meta for program in programs.values() for meta in methods_of(program)]
    parts = set()
    if any(meta.num_backends() for meta in metas):
        parts.add("delegates")
    if any(meta.attribute_tensor_meta(i).is_external() for meta in metas
           for i in range(meta.num_attributes())):
        parts.add("data")
    return parts


def manifest(parts: set[str], path: Path | str = "$(PORT_DIR)/manifest.py") -> str:
    """Return the text of a manifest.py, reduced to these parts."""
    return f'include({quoting.python(str(path))}, parts="{" ".join(sorted(parts))}")\n'


@dataclass(frozen=True)
class Firmware(Report):
    """A firmware that was built.

    backends: the backends that its models need. flash: bytes of the whole firmware. kernels: see
    flash_of_operators.
    """

    board: str
    models: list[str]
    firmware: str
    operators: list[str]
    parts: list[str]
    backends: list[str]
    flash: int
    kernels: OperatorsFlash


def default_output(board: str, bare: bool = False) -> Path:
    """Return the default path of a board's selective firmware."""
    return emulator.selected_path(board, bare)


def build(board: str, programs: dict[str, Program], output: Path, bare: bool = False,
          parts: tuple[str, ...] = (), optimize: Optimize = BALANCED) -> Firmware:
    """Build the firmware, `bare` without MicroPython. The steps of the build are printed on stderr.

    parts: further parts of picotorch.PARTS, which the programs do not need. optimize: selects the
    variants of convolutions.

    Raises NotFound outside of picotorch's repository, AccessFailed if the output cannot be written,
    OperatorMissing, MemoryAllocationFailed if it is too large, and Internal if the build fails.
    """
    check_sources(board)
    for suffix in (".elf", ".map"):
        check_output(output.with_suffix(suffix), make_folder=True)
    names = needed_operators(programs)
    variant = "bare" if bare else "run"
    selected = set() if bare else needed_parts(programs) | set(parts)
    files = {"operators.def": selection(programs, optimize),
             "manifest.py": manifest(selected)}
    folder = emulator.build_folder(board, variant) / "selected" / _digest(files)
    with locked(folder.parent):
        write_changed(folder, files)
        step = ["bare"] if variant == "bare" else ["firmware", "--variant", variant]
        make(board, step, folder)
        for suffix in (".elf", ".map"):
            write(output.with_suffix(suffix), (folder / f"firmware{suffix}").read_bytes())
    if output.is_relative_to(Path.cwd()):
        output = output.relative_to(Path.cwd())
    start = load_board(board)
    mapped = None if start.full_firmware else output
    kernels = flash_of_operators(start, names, variant, mapped,
                                 needed_features(programs) - optimize.left_out)
    return Firmware(board, list(programs), str(output), names, sorted(selected), _backends(programs),
                    flash_bytes(output), kernels)


def _backends(programs: dict[str, Program]) -> list[str]:
    """Return the names of the backends that delegates of the programs need."""
    return sorted({name for program in programs.values() for meta in methods_of(program)
                   for name in meta.backend_names()})


def has_sources() -> bool:
    """Return True in picotorch's repository, which can build. An installed wheel cannot."""
    return SETUP.is_file()


def check_sources(board: str | None, what: str = "firmware",
                  remedy: str = "call this in picotorch's repository") -> None:
    """Raise NotFound outside of picotorch's repository."""
    if not has_sources():
        raise fail(NOT_FOUND, f"the sources of the {what} are not installed", board, remedy=remedy)


def _digest(files: dict[str, str]) -> str:
    return hashlib.sha256("".join(files.values()).encode()).hexdigest()[:12]


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Make the folder, and allow one build in it at a time."""
    import fcntl  # Windows has no fcntl, and builds no firmware

    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def write_changed(folder: Path, files: dict[str, str]) -> None:
    """Make a folder, and write texts that differ from its files.

    Files with the same text keep their times, so that their outputs are not rebuilt.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        path = folder / name
        if not path.exists() or path.read_text() != text:
            write(path, text)


def make(board: str, step: list[str], folder: Path | None) -> None:
    """Build a board's firmware from the selection in a folder.

    Raises MemoryAllocationFailed if it is too large, Internal if the build fails otherwise.
    """
    set_up([*step, "--board", board], folder, board)


def set_up(step: list[str], folder: Path | None, subject: str, what: str = "firmware") -> None:
    """Do a step of setup_picotorch.py with the selection in a folder.

    Raises MemoryAllocationFailed if the linker found no room, Internal if the step fails otherwise.
    """
    selection = [] if folder is None else ["--selection", quoting.make(folder)]
    done = child.run([sys.executable, str(SETUP), *step, *selection], stdout=STDERR,
                     stderr=subprocess.PIPE)
    with open(STDERR, "wb", closefd=False) as terminal:
        terminal.write(done.stderr)
    too_large = _OVERFLOW.search(done.stderr)
    if done.returncode and too_large:
        raise fail(MEMORY_ALLOCATION_FAILED, f"the {what} does not fit: it needs "
                   f"{int(too_large[2])}B more than memory '{too_large[1].decode()}' has", subject,
                   remedy="include fewer models")
    if done.returncode:
        raise fail(INTERNAL, f"the {what} was not built", subject,
                   remedy="the lines above show where it stopped")


def show_text(entry: Firmware) -> None:
    show.line(f"{entry.firmware}: {entry.board}, kernels of {len(entry.operators)} of "
              f"{len(supported_operators())} operators")
    show.heading("Flash")
    show.table(["", "bytes>"], [*flash_rows(entry.kernels), ["whole firmware", entry.flash]])
    if entry.parts:
        show.line(f"Parts of the runtime: {', '.join(entry.parts)}")
    for name in entry.backends:
        show.line(f"A delegate needs the backend {name}: register it in Python.")
    click.echo()
    command = quoting.shell("picotorch", "run", quoting.operand(entry.models[0]), "--board",
                            entry.board, "--firmware", entry.firmware)
    show.line(f"To run it: {command}")
