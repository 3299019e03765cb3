"""Emulate a Raspberry Pi Pico (tools/rp2040), with its USB serial port on a TCP port."""

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

from picotorch.errors import INTERNAL, NOT_FOUND, fail

from ..host import child, quoting
from ..host.sources import ROOT

PROGRAM = ROOT / "tools" / "rp2040" / "emulate.mjs"
INSTALLED = ROOT / "build" / "rp2040" / "node_modules"
BOARD = "RPI_PICO"


def command(*uf2: Path, port: int = 0) -> list[str]:
    """Return the command that starts an emulated Pico with the flash of UF2 files.

    Its serial port is on a TCP port; 0 selects a free one. Raises NotFound without the emulator or a
    file.
    """
    for path in (INSTALLED, *uf2):
        if not path.exists():
            raise fail(NOT_FOUND, "is not there", str(path), remedy="make rp2 makes it")
    return ["node", str(PROGRAM), *map(quoting.operand, uf2), "--port", str(port)]


@contextlib.contextmanager
def emulated(*uf2: Path) -> Iterator[str]:
    """Run an emulated Pico until the block ends, and yield the name of its port.

    mpremote and picotorch accept the name. Raises Internal if the emulator does not start.
    """
    with child.started(command(*uf2), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                       text=True) as process:
        assert process.stdout is not None
        port = process.stdout.readline().strip()
        if not port:
            raise fail(INTERNAL, "the emulator did not start", str(PROGRAM))
        yield port
