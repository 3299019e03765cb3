#!/usr/bin/env python3
"""Build the wheel and the firmware a second time, elsewhere, and compare them byte for byte.

The second build is in another folder, with only the files of MicroPython whose hashes are stored, and
with another umask, time zone, language and order of Python's sets. The second wheel is built from an
sdist. The program prints the SHA-256 of each file, and ends with status 1 if one differs.

The bytes depend on the compiler and on Python, so the program first prints their versions.

Example: make reproducible
Example: tools/reproducible.py --board mps2-an386 --variant run
"""

import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import click
import get_micropython
import make_wheel
from picotorch.boards import boards
from picotorch.run import emulator
from picotorch.run.listing import full_boards

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ("boards", "examples", "host", "kernels", "port", "schema", "tests/fixtures", "tools",
           "LICENSE", "README.md", "hatch_build.py", "pyproject.toml")
NO_SOURCES = shutil.ignore_patterns("__pycache__", "*.egg-info", "*.so")
OTHERWISE = {"TZ": "Pacific/Chatham", "LC_ALL": "C", "PYTHONHASHSEED": "7", "SOURCE_DATE_EPOCH": "1",
             "MICROPY_GIT_HASH": "another"}
OTHER_UMASK = 0o077
VARIANTS = ("run", "repl")


class BuildFailed(Exception):
    """The end of the log of a build that failed."""


@dataclass(frozen=True)
class Twice:
    """A file that was built twice: here, and elsewhere."""

    name: str
    here: Path
    elsewhere: Path

    def digests(self) -> tuple[str, str]:
        """Return the SHA-256 of both files."""
        return tuple(hashlib.sha256(path.read_bytes()).hexdigest()
                     for path in (self.here, self.elsewhere))


def _run(command, folder, **otherwise):
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith(("MAKE", "MFLAGS"))}
    environment.update(otherwise)
    done = subprocess.run(list(map(str, command)), cwd=folder, env=environment, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          umask=OTHER_UMASK if otherwise else -1)
    if done.returncode:
        raise BuildFailed(f"in {folder}: {' '.join(map(str, command))}\n{done.stdout[-2000:]}")


def copy_sources(folder: Path) -> Path:
    """Copy the files of this checkout that a build needs, and return folder."""
    folder.mkdir(parents=True)
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=NO_SOURCES)
        else:
            shutil.copy(ROOT / name, folder / name)
    return folder


def copy_micropython(folder: Path) -> Path:
    """Copy the files of MicroPython whose hashes are stored, and return folder."""
    tree = Path(os.environ.get("MICROPYTHON_DIR") or ROOT / "build" / "micropython")
    for name in get_micropython.stored_hashes():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(tree / name, folder / name)
    return folder


def make_firmware(sources: Path, micropython: Path, board: str, variant: str, *arguments: str | Path):
    """Call the firmware's make elsewhere.

    Raises:
        BuildFailed: make ended with another status than 0.
    """
    _run(["make", "-C", "port/firmware", f"-j{os.cpu_count()}", f"BOARD={board}", f"VARIANT={variant}",
          *arguments], sources, **OTHERWISE, MICROPYTHON_DIR=str(micropython))


def build_firmware(sources: Path, micropython: Path, board: str, variant: str,
                   selection: Path | None = None) -> Path:
    """Build the firmware elsewhere, and return its path.

    The selective build is returned if there is a selection.
    """
    make_firmware(sources, micropython, board, variant, f"SELECTION={selection or ''}")
    return (selection or sources / "build" / "firmware" / f"{board}-{variant}") / "firmware.elf"


def _build_wheel(sources, output, **otherwise):
    _run([sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index",
          "--wheel-dir", output, "."], sources, **otherwise)
    (wheel,) = output.glob("*.whl")
    return wheel


def build_wheels(folder: Path) -> Twice:
    """Build one wheel from a copy of this checkout, and one elsewhere from an sdist.

    Both contain the firmware that was built here.
    """
    prebuilt = {"PICOTORCH_PREBUILT": str(make_wheel.stage(folder / "prebuilt"))}
    sources = copy_sources(folder / "checkout")
    here = _build_wheel(sources, folder / "here", **prebuilt)
    _run([sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", folder], sources)
    (archive,) = folder.glob("*.tar.gz")
    shutil.unpack_archive(archive, folder / "sdist")
    (unpacked,) = (folder / "sdist").iterdir()
    return Twice(here.name, here, _build_wheel(unpacked, folder / "elsewhere", **OTHERWISE, **prebuilt))


def _tools():
    def first_line(program):
        return subprocess.check_output([program, "--version"], text=True).splitlines()[0]

    return [first_line("arm-none-eabi-gcc"), first_line(sysconfig.get_config_var("CC").split()[0]),
            f"Python {sys.version.split()[0]}",
            *(f"{name} {version(name)}" for name in ("hatchling", "setuptools", "cffi"))]


@click.command(help=__doc__)
@click.option("--board", "names", multiple=True, type=click.Choice(boards.full_board_names()),
              help="All by default.")
@click.option("--variant", "variants", multiple=True, type=click.Choice(VARIANTS),
              help="Of the firmware; both by default.")
def main(names, variants):
    click.echo("\n".join(_tools()))
    differs = []

    def tell(twice):
        here, elsewhere = twice.digests()
        click.echo(f"{here}  {twice.name}")
        if here != elsewhere:
            differs.append(f"{twice.name} differs elsewhere: {elsewhere}")

    with tempfile.TemporaryDirectory(prefix="picotorch-elsewhere-") as folder:
        folder = Path(folder)
        tell(build_wheels(folder / "wheel"))
        sources = copy_sources(folder / "sources")
        micropython = copy_micropython(folder / "micropython")
        for name in names or full_boards():
            for variant in variants or VARIANTS:
                here = emulator.firmware_path(boards.load_board(name), variant)
                elsewhere = build_firmware(sources, micropython, name, variant)
                tell(Twice(f"{name}-{variant}/firmware.elf", here, elsewhere))
                shutil.rmtree(elsewhere.parent)
    sys.exit("\n".join(differs) or 0)


if __name__ == "__main__":
    main()
