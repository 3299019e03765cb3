"""Make malformed files: real files of the fixtures with one change, sorted by the fault.

    for file in malformed.files("operator index"): file.label, file.pte, file.errors

The files are the same every time. KINDS names every kind; a kind's function yields (fixture, change,
bytes). The file is rejected with one of the kind's errors. A file of a kind without errors is accepted
by contract: ExecuTorch accepts it, too, and it runs. The modules malformed_* define the kinds.

    python malformed.py GROUP       # each file of a group on the twin, a line each, then their digest

tests/hostile/test_malformed.py runs this in a process of its own, which may crash.
"""

import dataclasses
import faulthandler
import functools
import hashlib
import importlib
import json
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from picotorch import Error, register_backend  # noqa: E402
from picotorch.run import bundled  # noqa: E402
from support import exercise, file_parts, fixture_store  # noqa: E402

EXAMPLE = "example"  # stands for a fixture if a program is made of example_calls
GROUPS = ("tables", "references", "fields", "calls", "data", "bundled", "contract")
INVALID = ("InvalidProgram",)


@dataclasses.dataclass(frozen=True)
class File:
    """A malformed file. kind: a key of KINDS. data: the bytes of a .pte, or of a .bpte. files: its .ptd
    files."""

    kind: str
    label: str
    data: bytes
    files: tuple[bytes, ...]
    backends: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Kind:
    """A kind of malformed files. errors: each file is rejected with one of these; () if all files are
    accepted."""

    group: str
    make: Callable[[], Iterator[tuple]]
    errors: tuple[str, ...]

    @property
    def outcomes(self) -> tuple[str, ...]:
        """Return the possible outcomes of a file. A program with nothing to run ends at its first
        step."""
        return self.errors or ("ok", "EndOfMethod")


KINDS: dict[str, Kind] = {}


def kind(group: str, name: str, errors: tuple[str, ...] = INVALID) -> Callable:
    """Register a function that yields (fixture's name, change, bytes of the .pte), or, with .ptd files,
    (fixture's name, change, bytes of the .pte, these files)."""
    def register(make):
        assert name not in KINDS
        KINDS[name] = Kind(group, make, errors)
        return make

    return register


@functools.cache
def fixture(name: str) -> fixture_store.Fixture:
    return fixture_store.load(name)


@functools.cache
def parts(name: str) -> file_parts.Parts:
    """Return the parts of the program of a fixture."""
    return file_parts.program(fixture(name).pte)


def load_kinds() -> None:
    for group in GROUPS:
        importlib.import_module(f"support.malformed_{group}")


def of_group(group: str) -> list[str]:
    """Return the names of a group's kinds."""
    return [name for name, found in KINDS.items() if found.group == group]


def files(name: str) -> Iterator[File]:
    """Yield the malformed files of a kind."""
    for source, label, data, *others in KINDS[name].make():
        found = None if source == EXAMPLE or source.endswith(".bpte") else fixture(source)
        of_fixture = others[0] if others else found.data if found else ()
        yield File(name, f"{source}: {label}", data, tuple(of_fixture),
                   tuple(found.backends) if found else ())


# ---- each file on the twin


def outcome(file: File) -> str:
    """Return the name of the Error that rejects a file, or "ok"."""
    if not file.label.split(":")[0].endswith(".bpte"):
        return exercise.outcome(file.data, file.files, thorough=False)
    try:
        found = bundled.read(file.data)
        for case in found.sets:
            for value in [*case.inputs, *case.expected]:
                if isinstance(value, bundled.BundledTensor):
                    value.array()
    except Error as error:
        assert str(error)
        return error.name
    return exercise.outcome(found.program, thorough=False)


def main():
    from support import malformed  # not __main__: the kinds register there

    faulthandler.enable()
    malformed.load_kinds()
    registered, digest = set(), hashlib.sha256()
    for name in malformed.of_group(sys.argv[1]):
        for file in malformed.files(name):
            for backend in set(file.backends) - registered:
                register_backend(backend, exercise.Curious())
                registered.add(backend)
            digest.update(file.data + b"".join(file.files))
            print(json.dumps(file.label), end="\t", flush=True)
            start = time.process_time()
            try:
                ended = outcome(file)
            except Exception:
                ended = traceback.format_exc(limit=-4)
            print(json.dumps([name, ended, time.process_time() - start]))
    print(digest.hexdigest())


if __name__ == "__main__":
    main()
