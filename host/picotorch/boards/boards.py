"""Read boards/*/board.toml into dataclasses."""

import functools
import tomllib
from dataclasses import dataclass
from typing import Any

from ..host.sources import ROOT

BOARDS_DIR = ROOT / "boards"


class BoardError(Exception):
    """A board that does not exist or whose board.toml is incomplete."""


@dataclass(frozen=True)
class Memory:
    """A range of addresses; sizes in bytes."""

    name: str
    address: int
    size: int


@dataclass(frozen=True)
class Arena:
    """A static memory of the runtime: "pool", "temp", "planned", or "planned1", "planned2" ...

    "planned1" is for planned buffer 1.
    """

    name: str
    memory: str
    size: int


@dataclass(frozen=True)
class Emulator:
    """The emulator for the board, and the arguments that start it.

    `program` is the emulator's program, and `package` the Debian package that contains it. The emulator
    sees the board's memory for the job at `job_address`.
    """

    program: str
    package: str
    machine: str
    arguments: tuple[str, ...]
    job_address: int


@dataclass(frozen=True)
class Board:
    """One board.toml."""

    name: str
    title: str
    core: str
    cflags: tuple[str, ...]
    fpu: bool
    flash: str
    memories: dict[str, Memory]
    arenas: dict[str, Arena]
    code: Memory
    job: Memory
    data: Memory
    clock_hz: int
    stack_size: int
    heap_size: int
    full_firmware: bool  # False: its flash is too small for all kernels
    emulator: Emulator

    @property
    def job_follows_code(self) -> bool:
        """Return True if firmware and job share a memory, in which the job lies behind the firmware."""
        return self.job is self.code

    def flash_of_project(self) -> Memory:
        """Return the memory for code and constants of a C project.

        It joins the memories of the code and of the job if one begins where the other ends.
        """
        code, job = self.code, self.job
        if code.address + code.size != job.address:
            return code
        return Memory(code.name, code.address, code.size + job.size)

    def build_command(self, bare: bool = False) -> str:
        """Return the command that builds the firmware of runs without --firmware."""
        if self.full_firmware:
            return f"make {'bare' if bare else 'firmware'} BOARD={self.name}"
        return (f"picotorch firmware --models MODEL.pte --board {self.name}"
                f"{' --bare' if bare else ''}")

    def planned_arena(self, index: int) -> Arena:
        """Return the arena that planned buffer `index` is in."""
        return self.arenas.get(f"planned{index}", self.arenas["planned"])


def board_names() -> list[str]:
    """Return the names of all boards, sorted."""
    return sorted(path.parent.name for path in BOARDS_DIR.glob("*/board.toml"))


def full_board_names() -> list[str]:
    """Return the names of the boards that have a firmware with all kernels."""
    return [name for name in board_names() if load_board(name).full_firmware]


@functools.cache
def load_board(name: str) -> Board:
    """Return the board with that name.

    Raises BoardError if the board is missing or its entries do not fit together.
    """
    if name not in board_names():
        raise BoardError(f"no board {name!r}; there are: {', '.join(board_names())}")
    try:
        return _from_toml(name, tomllib.loads((BOARDS_DIR / name / "board.toml").read_text()))
    except KeyError as error:
        raise BoardError(f"boards/{name}/board.toml: the entry {error} is missing") from error
    except (TypeError, tomllib.TOMLDecodeError) as error:
        raise BoardError(f"boards/{name}/board.toml: {error}") from error


def _from_toml(name: str, toml: dict[str, Any]) -> Board:
    memories = {key: Memory(key, **entry) for key, entry in toml["memories"].items()}
    job = memories[toml["place"]["job"]]
    emulator = toml["emulator"]
    return Board(
        name=name,
        title=toml["title"],
        core=toml["core"],
        cflags=tuple(toml["cflags"]),
        fpu=toml["fpu"],
        flash=toml["flash"].strip(),
        memories=memories,
        arenas={entry["name"]: Arena(**entry) for entry in toml["arenas"]},
        code=memories[toml["place"]["code"]],
        job=job,
        data=memories[toml["place"]["data"]],
        clock_hz=toml["systick"]["clock_hz"],
        stack_size=toml["stack"]["size"],
        heap_size=toml["heap"]["size"],
        full_firmware=toml.get("full_firmware", True),
        emulator=Emulator(
            program=emulator["program"],
            package=emulator["package"],
            machine=emulator["machine"],
            arguments=tuple(emulator["arguments"]),
            job_address=emulator.get("job_address", job.address),
        ),
    )
