#!/usr/bin/env python3
"""Make the files of a release page: wheels, sdist, UF2s, native modules, C library, notes, checksums.

The wheels are for Linux on x86-64 and 64-bit Arm. zig compiles their extension for an old glibc, and
auditwheel checks the platform tag against the symbols in it. `make prebuilt` builds the firmware and
the native modules first, and `make release` follows the quick start with the wheel for this computer.

Example: make release
Example: tools/make_release.py --output dist/release
"""

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable
from pathlib import Path

import click
import make_wheel
import picotorch
from picotorch.firmware.native_module import ARCHES

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ROOT / "build" / "release-packages"  # of tools/requirements/release.txt
PICOTORCH = [sys.executable, "-m", "picotorch"]
GLIBC = "2.17"
PROCESSORS = ("x86_64", "aarch64")
BOARDS = {"RPI_PICO": "Raspberry Pi Pico", "RPI_PICO2": "Raspberry Pi Pico 2"}
LIBRARIES = {  # platform of picotorch library: name of the archive, what it is for
    "cmake": ("picotorch-{version}-c.zip", "the C library with files for CMake and Make"),
    "arduino": ("picotorch-{version}-arduino.zip", "the C library for Arduino: Add .ZIP Library"),
    "cmsis-pack": ("picotorch.picotorch.{version}.pack", "the C library as a CMSIS-Pack"),
}
FIRST_DATE = (1980, 1, 1, 0, 0, 0)  # of a zip file


class ReleaseFailed(click.ClickException):
    """A part of the release cannot be made, or is wrong; the text has the reason."""


def run(*command: str | Path, **environment: str) -> str:
    """Run a command at the top of the repository, and return its output.

    Raises ReleaseFailed with the end of the output if it fails.
    """
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, env={**os.environ, **environment})
    if done.returncode != 0:
        raise ReleaseFailed(f"{shlex.join(map(str, command))}\n{done.stdout[-2000:]}")
    return done.stdout


def platform_tag(processor: str) -> str:
    """Return the platform tag of a wheel for Linux, see PEP 600."""
    return f"manylinux_{GLIBC.replace('.', '_')}_{processor}"


def build_wheel(prebuilt: Path, output: Path, processor: str) -> Path:
    """Build the wheel for Linux on a processor, and return its path."""
    compiler = f"{sys.executable} -m ziglang cc -target {processor}-linux-gnu.{GLIBC}"
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", output,
        PICOTORCH_PREBUILT=str(prebuilt), PYTHONPATH=str(PACKAGES), CC=compiler, CFLAGS="",
        LDSHARED=f"{compiler} -shared -s", ZIG_GLOBAL_CACHE_DIR=str(ROOT / "build" / "zig"),
        _PYTHON_HOST_PLATFORM=platform_tag(processor))
    path, = output.glob(f"*-{platform_tag(processor)}.whl")
    return path


def check_tag(wheel: Path) -> None:
    """Raise ReleaseFailed if the wheel needs a newer system than its platform tag states."""
    found = run(sys.executable, "-m", "auditwheel", "show", wheel, PYTHONPATH=str(PACKAGES))
    tags = re.findall(r"manylinux_\d+_\d+_\w+", " ".join(found.split()).partition("platform tag")[2])
    if not tags or f"-{tags[0]}.whl" not in wheel.name:
        raise ReleaseFailed(f"{wheel.name}: auditwheel reports\n{found}")


def archive(folder: Path, path: Path, top: Path) -> Path:
    """Write the files of a folder to a zip file, named relative to `top`, without their dates."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as target:
        for file in sorted(file for file in folder.rglob("*") if file.is_file()):
            name = file.relative_to(top).as_posix()
            entry = zipfile.ZipInfo(name, FIRST_DATE)
            entry.external_attr = 0o644 << 16
            target.writestr(entry, file.read_bytes(), zipfile.ZIP_DEFLATED)
    return path


def notes_of(changelog: str, version: str) -> str:
    """Return the text of a version in a change log. Raises ReleaseFailed if it has none."""
    found = re.search(rf"^## {re.escape(version)}(?: .*)?\n((?:(?!## ).*\n)*)", changelog, flags=re.M)
    if not found or not found[1].strip():
        raise ReleaseFailed(f"CHANGELOG.md has no text for {version}")
    return found[1].strip() + "\n"


def write_notes(output: Path, version: str, files: dict[Path, str]) -> None:
    """Write notes.md: the changes, then a table of the files, {path: what it is for}."""
    rows = [f"| {path.name} | {path.stat().st_size / 1e6:.1f} MB | {text} |"
            for path, text in files.items()]
    text = notes_of((ROOT / "CHANGELOG.md").read_text(), version)
    table = "\n".join(["| file | size | what it is for |", "|---|---|---|", *rows])
    (output / "notes.md").write_text(f"{text}\n## Files\n\n{table}\n")


def write_checksums(output: Path, files: Iterable[Path]) -> None:
    """Write SHA256SUMS, which sha256sum -c reads."""
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files]
    (output / "SHA256SUMS").write_text("".join(lines))


def make_python(output: Path, folder: Path) -> dict[Path, str]:
    """Make wheels and sdist."""
    prebuilt = make_wheel.stage(folder / "prebuilt")
    files = {}
    for processor in PROCESSORS:
        wheel = build_wheel(prebuilt, output, processor)
        check_tag(wheel)
        files[wheel] = f"Python 3.11 and newer on Linux, {processor}, glibc {GLIBC} and newer"
    run(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", output)
    sdist, = output.glob("*.tar.gz")
    files[sdist] = "other systems: pip compiles it"
    return files


def make_firmware(output: Path, version: str) -> dict[Path, str]:
    """Copy the UF2 of each Pico."""
    files = {}
    for board, name in BOARDS.items():
        path = output / f"picotorch-{version}-{board}.uf2"
        shutil.copyfile(ROOT / "build" / "rp2" / f"{board}.uf2", path)
        files[path] = f"MicroPython with picotorch for {name}: hold BOOTSEL, copy it to the drive"
    return files


def make_native_modules(output: Path, folder: Path, version: str) -> dict[Path, str]:
    """Make an archive of the small native modules, and one of the fast ones."""
    files = {}
    for kind, optimize in (("small", "size"), ("fast", "speed")):
        modules = folder / kind / "natmod"
        run(*PICOTORCH, "natmod", "--optimize", optimize, "--output", modules)
        path = archive(modules, output / f"picotorch-{version}-natmod-{kind}.zip", modules.parent)
        files[path] = (f"the {kind} native modules for stock MicroPython, with install.py and files "
                       f"for mip: {', '.join(ARCHES)}")
    return files


def make_libraries(output: Path, folder: Path, version: str) -> dict[Path, str]:
    """Make an archive of the C library for each of LIBRARIES."""
    files = {}
    for platform, (name, text) in LIBRARIES.items():
        library = folder / platform / "picotorch"
        run(*PICOTORCH, "library", "--for", platform, "-o", library)
        top = library if platform == "cmsis-pack" else library.parent
        files[archive(library, output / name.format(version=version), top)] = text
    return files


@click.command(help=__doc__)
@click.option("--output", type=click.Path(path_type=Path), default=ROOT / "dist" / "release",
              metavar="FOLDER", help="Where to put it; dist/release by default. It is emptied first.")
def main(output):
    version = picotorch.__version__
    output = output.resolve()
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)
    with tempfile.TemporaryDirectory(prefix="picotorch-release-") as name:
        folder = Path(name)
        files = make_python(output, folder)
        files |= make_firmware(output, version)
        files |= make_native_modules(output, folder, version)
        files |= make_libraries(output, folder, version)
    write_notes(output, version, files)
    write_checksums(output, files)
    click.echo((output / "SHA256SUMS").read_text(), nl=False)


if __name__ == "__main__":
    main()
