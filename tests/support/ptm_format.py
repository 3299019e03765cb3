"""List the parts of a .ptm file that other versions of picotorch have to read, besides the records:
variants of calls, and constants packed for each core. ptm.lock lists them for the fixtures.

    PYTHONPATH=tests .venv/bin/python -m support.ptm_format

adds the lines of new fixtures, and writes all lines again if PT_PTM_MAGIC has changed.
"""

import hashlib
import sys
from pathlib import Path

from _picotorch_c import lib
from picotorch import Error
from picotorch.compile.pool_records import is_call, load
from picotorch.host import twin
from support import fixture_store

LOCK = Path(__file__).resolve().parents[1] / "core" / "ptm.lock"
VERSION = lib.PT_PTM_MAGIC.to_bytes(4, "little").decode()
CORES = ("cortex-m0plus", "cortex-m4")


def line_of(name: str, method: str, program, data_map) -> str:
    """Return the line of a fixture's method: the variant of each call, and a digest of the packed
    weights for each core."""
    plain = load(program, method, data_map, None)
    calls = "".join(f"{one.op >> 4:x}" for one, _ in plain.instructions() if is_call(one))
    digests = [_digest(load(program, method, data_map, core).packed()[0]) for core in CORES]
    return " ".join([name, method, calls or "-", *digests])


def _digest(packed):
    found = hashlib.sha256()
    for i, data in sorted(packed.items()):
        found.update(f"{i} {len(data)}\n".encode() + data)
    return found.hexdigest()[:16] if packed else "-"


def lines_of(name: str) -> list[str]:
    """Return the lines of a fixture's methods, or none if it cannot be compiled."""
    fixture = fixture_store.load(name)
    program, data_map = twin.open_program(fixture.pte), twin.open_data(fixture.data)
    try:
        return [line_of(name, method, program, data_map) for method in program.method_names]
    except Error:
        return []


def locked() -> tuple[str, dict[str, list[str]]]:
    """Return the version of the lock, and the lines by fixture."""
    version, *lines = LOCK.read_text().splitlines()
    found = {}
    for line in lines:
        found.setdefault(line.split()[0], []).append(line)
    return version, found


def write() -> None:
    """Write the lock. Lines change only with the version."""
    version, lines = locked() if LOCK.exists() else ("", {})
    lines = lines if version == VERSION else {}
    for path in sorted(fixture_store.FOLDER.glob("*/model.pte")):
        lines[path.parent.name] = lines.get(path.parent.name) or lines_of(path.parent.name)
    rows = [row for name in sorted(lines) for row in lines[name]]
    LOCK.write_text("\n".join([VERSION, *rows, ""]))


if __name__ == "__main__":
    sys.exit(write())
