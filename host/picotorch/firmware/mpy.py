"""Compile scripts for a board whose firmware has no compiler."""

import subprocess
import tempfile
from pathlib import Path

from ..host.files import write
from ..host.sources import ROOT

MPY_CROSS = ROOT / "build" / "mpy-cross" / "mpy-cross"


class CompileError(Exception):
    """A script that mpy-cross rejects, or a missing mpy-cross."""


def compile_script(source: str, name: str = "script.py") -> bytes:
    """Return source compiled to .mpy bytecode. Tracebacks on the board show name."""
    if not MPY_CROSS.exists():
        raise CompileError(f"there is no {MPY_CROSS}: build the firmware first")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "script.py"
        write(path, source)
        command: list[str | Path] = [MPY_CROSS, "-s", name, "-o", path.with_suffix(".mpy"), path]
        compiled = subprocess.run(command, capture_output=True, text=True)
        if compiled.returncode != 0:
            raise CompileError(compiled.stderr.strip())
        return path.with_suffix(".mpy").read_bytes()
