"""Replace the programs that flash by one that records its arguments, since none of them is installed
here."""

from collections.abc import Callable
from pathlib import Path


def hide(folder: Path, monkeypatch) -> None:
    """Make only the programs in folder/bin visible, and the drives of boot loaders in folder/drives."""
    (folder / "bin").mkdir()
    (folder / "drives").mkdir()
    monkeypatch.setenv("PATH", str(folder / "bin"))
    monkeypatch.setenv("PICOTORCH_DRIVES", str(folder / "drives"))


def install(folder: Path, name: str, status: int = 0) -> Callable[[], list[str] | None]:
    """Install a program that prints a line and ends with a status. Return a function that returns the
    arguments of its last start, or None."""
    got = folder / f"{name}.got"
    program = folder / "bin" / name
    program.write_text(f"#!/bin/sh\nprintf '%s\\0' \"$@\" > {got}\n"
                       f'echo "{name} says this" >&2\nexit {status}\n')
    program.chmod(0o755)
    got.unlink(missing_ok=True)

    def given():
        if not got.exists():
            return None
        return got.read_bytes().decode("utf-8", "surrogateescape").split("\0")[:-1]

    return given
