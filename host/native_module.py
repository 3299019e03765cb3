"""picotorch natmod: the native module for stock MicroPython, with all kernels or those of some models,
and beside it the runtime as bytecode and what mip and install.py need: a folder to copy to a board.
"""

import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import click
import picotorch
from picotorch import Program
from picotorch.errors import INTERNAL, NOT_FOUND, fail

from . import show
from .firmware_map import sections
from .operators import known_operators, needed_operators
from .selective import operator_file, write_changed

ROOT = Path(__file__).resolve().parent.parent
SETUP = ROOT / "tools" / "setup_picotorch.py"
BUILD = ROOT / "build" / "natmod"
SELECTED = BUILD / "selected"
INSTALL = ROOT / "port" / "natmod" / "install.py"
# By the number that sys.implementation._mpy has for them.
ARCHES = {"x64": 2, "armv6m": 4, "armv7m": 5, "armv7emsp": 7, "armv7emdp": 8, "rv32imc": 11}
WITHOUT_TEXTS = "no-texts"  # the folder for what is built so
# By what is in the path of an object in the linker's map; the first that fits.
PARTS = {"/port/": "binding", "/kernels/core/": "library", "/registry.o": "library",
         "/kernels/": "kernels", "": "compiler's library"}
STDERR = 2


def build(arches: tuple[str, ...], programs: dict[str, Program], output: Path,
          texts: bool = True) -> dict:
    """Builds the module for each architecture into OUTPUT/ARCH and says how large it is.

    programs: link only the kernels that these need; all where there are none. texts: of errors; without
    them an error has its name, number, subject and sizes only. Raises NotFound outside of picotorch's
    repository, OperatorMissing, Internal when the build fails.
    """
    names = needed_operators(programs) if programs else sorted(known_operators())
    parts = {}
    for arch in arches:
        built = link(arch, programs, texts)
        parts[arch] = _parts(built.with_suffix(".map"))
        (output / arch).mkdir(parents=True, exist_ok=True)
        shutil.copyfile(built, output / arch / built.name)
    write_package(output, arches)
    return {"output": str(output), "models": list(programs), "operators": names,
            "modules": {arch: (output / arch / "_picotorch.mpy").stat().st_size for arch in arches},
            "parts": parts,
            "runtime": sum(path.stat().st_size for path in (output / "picotorch").glob("*.mpy"))}


def link(arch: str, programs: dict[str, Program], texts: bool = True) -> Path:
    """The module of one architecture, with the kernels that these programs need or with all; beside
    it build/natmod/picotorch is made. Raises as build does."""
    name = arch if texts else f"{WITHOUT_TEXTS}/{arch}"
    folder = select(needed_operators(programs), name) if programs else BUILD / name
    return make(arch, folder, *([] if texts else ["--no-texts"]))


def select(names: list[str], name: str) -> Path:
    """A folder of that name for make, with a list of these operators."""
    text = operator_file(names)
    folder = SELECTED / hashlib.sha256(text.encode()).hexdigest()[:12] / name
    folder.mkdir(parents=True, exist_ok=True)
    write_changed(folder / "operators.def", text)
    return folder


def make(arch: str, folder: Path, *options: str) -> Path:
    """Builds the module into a folder of select, or where it is built with all kernels. options: of
    setup_picotorch.py. NotFound outside of picotorch's repository, Internal when the build fails."""
    if not SETUP.is_file():
        raise fail(NOT_FOUND, "the sources of the native module are not installed",
                   remedy="call this in picotorch's repository")
    BUILD.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, SETUP, "natmod", "--arch", arch, *options]
    command += ["--selection", folder] if folder.is_relative_to(SELECTED) else []
    with open(BUILD / "lock", "w") as lock:
        import fcntl  # not on Windows, where there is nothing to build with either

        fcntl.flock(lock, fcntl.LOCK_EX)
        if subprocess.run(command, stdout=STDERR).returncode:
            raise fail(INTERNAL, "the native module was not built", arch,
                       remedy="what is above says where it stopped")
    return folder / "_picotorch.mpy"


def _parts(map_file):
    """Bytes of machine code, constants and texts by what they belong to, as the linker says."""
    found = dict.fromkeys(PARTS.values(), 0)
    for _, size, path in sections(map_file):
        found[next(part for place, part in PARTS.items() if place in path)] += size
    return found


def write_package(output: Path, arches: Iterable[str], extra: Iterable[str] = (),
                  flash: dict | None = None) -> None:
    """Writes besides the modules the runtime, package.json of each architecture for mip, and install.py
    with the sizes of what it copies. extra: files that go with the runtime; flash: what install.py is
    told of kernels in flash."""
    (output / "picotorch").mkdir(parents=True, exist_ok=True)
    for path in sorted((BUILD / "picotorch").glob("*.mpy")):
        if path.parent != output / "picotorch":
            shutil.copyfile(path, output / "picotorch" / path.name)
    runtime = [*(output / "picotorch").glob("*.mpy"), *(output / name for name in extra)]
    sizes = {path.relative_to(output).as_posix(): path.stat().st_size for path in sorted(runtime)}
    for name, text in _of_install(output, arches, sizes, flash or {}).items():
        (output / name).write_text(text)


def _of_install(output, arches, runtime, flash):
    modules = {ARCHES[arch]: [arch, (output / arch / "_picotorch.mpy").stat().st_size]
               for arch in arches}
    texts = {f"{arch}/package.json": _package(f"../{name}" for name in runtime) for arch in arches}
    text = INSTALL.read_text()
    for name, value in (("MODULES", modules), ("RUNTIME", runtime), ("FLASH", flash)):
        text = text.replace(f"{name} = {{}}\n", f"{name} = {json_like(value)}\n")
    return texts | {"install.py": text}


def _package(runtime):
    urls = [["_picotorch.mpy", "_picotorch.mpy"],
            *([path.removeprefix("../"), path] for path in runtime)]
    return json.dumps({"urls": urls, "version": picotorch.__version__}, indent=1) + "\n"


def json_like(value: dict) -> str:
    """A table as Python writes it, an entry a line."""
    lines = [f"    {key!r}: {entry!r},\n" for key, entry in value.items()]
    return "{\n" + "".join(lines) + "}"


def show_text(entry: dict) -> None:
    show.line(f"{entry['output']}: kernels of {len(entry['operators'])} of {len(known_operators())} "
              "operators")
    kinds = list(dict.fromkeys(PARTS.values()))
    show.table(["", "bytes>", *(f"{kind}>" for kind in kinds)],
               [*([f"{arch}/_picotorch.mpy", size, *entry["parts"][arch].values()]
                  for arch, size in entry["modules"].items()),
                ["picotorch/*.mpy", entry["runtime"], *("" for _ in kinds)]])
    click.echo()
    show.line(f"To copy it: cd {entry['output']} && mpremote mount . run install.py")
