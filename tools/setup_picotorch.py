#!/usr/bin/env python3
"""Set up everything between a fresh clone and the first run, step by step.

  packages      packages of the system: compilers, emulator, Python with headers
  python        .venv with picotorch, its host extension and the tools of the tests
  bare          the firmware of each board without MicroPython
  micropython   the MicroPython source tree
  firmware      the firmware of each board, to run a model and with a prompt
  ports         the MicroPython source tree with its own ports unix, qemu and rp2
  riscv         compiler and emulator for tests on RISC-V
  arm64         compiler and emulator for tests on Arm computers of 64 bits
  recordings    recordings of spoken words for a test
  rp2           the firmware of Raspberry Pi Pico and Pico 2, and an emulator of the first

A step without work prints a line and takes no time. Each step writes a log to build/log. The program
needs the standard library only, since it runs before anything is installed.

Example: tools/setup_picotorch.py
Example: tools/setup_picotorch.py python
Example: tools/setup_picotorch.py firmware --board mps2-an386 --variant repl

With --variant the firmware without MicroPython is left out. `picotorch firmware --models` calls the
program with --selection FOLDER, which names the kernels to link.
"""

import argparse
import hashlib
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
LOGS = BUILD / "log"
STAMP = BUILD / "stamps" / "python"
VENV = ROOT / ".venv"
VENV_PYTHON = VENV / "bin" / "python"
BOARDS = sorted(path.parent.name for path in (ROOT / "boards").glob("*/board.toml"))
RP2 = ROOT / "port" / "upstream" / "rp2"
RP2_BOARDS = sorted(path.parent.name for path in RP2.glob("*/mpconfigboard.h"))
RP2_EMULATOR = ("package.json", "package-lock.json")  # in tools/rp2040
VARIANTS = ("run", "repl")
ARCHES = ("armv6m", "armv7m", "armv7emsp", "armv7emdp", "x64", "rv32imc")

# .venv is made from these files, and made again when one of them changes.
PYTHON_SOURCES = (
    "pyproject.toml",
    "hatch_build.py",
    "tools/requirements/tools.txt",
    "host/_picotorch/*.c",
    "host/_picotorch/*.py",
    "kernels/**/*.[chi]*",
    "kernels/**/*.def",
)
MINIMUM_PYTHON = (3, 11)
LOG_TAIL = 30


class SetupError(Exception):
    """A step cannot be done; the message has the remedy."""


def say(step, text, end="\n"):
    print(f"{step + ':':<13}{text}", end=end, flush=True)


# -- running commands ---------------------------------------------------------------


def succeeds(command, text=""):
    """Return True if the command can be started and ends with status 0."""
    try:
        done = subprocess.run(command, input=text, text=True, capture_output=True)
    except OSError:
        return False
    return done.returncode == 0


def run(step, command, log_name, environment=None):
    """Run a command with its output in build/log/<log_name>.log, shown at the end if it fails."""
    LOGS.mkdir(parents=True, exist_ok=True)
    log = LOGS / f"{log_name}.log"
    say(step, f"{shlex.join(map(str, command))}  (log: {log.relative_to(ROOT)})", end=" ... ")
    started = time.monotonic()
    with log.open("w") as file:
        done = subprocess.run(
            command, stdout=file, stderr=subprocess.STDOUT, cwd=ROOT, env=environment
        )
    print(f"{time.monotonic() - started:.0f} s", flush=True)
    if done.returncode != 0:
        tail = log.read_text(errors="replace").splitlines()[-LOG_TAIL:]
        raise SetupError(
            f"'{shlex.join(map(str, command))}' failed with status {done.returncode}. "
            f"The end of {log.relative_to(ROOT)}:\n" + "\n".join(f"  | {line}" for line in tail)
        )


# -- packages -----------------------------------------------------------------------


@dataclass(frozen=True)
class Need:
    """A requirement of the system, and the Debian package that provides it."""

    what: str
    package: str
    is_there: Callable[[], bool]


def has_program(name):
    """Return a function that returns whether a program is installed."""
    return lambda: shutil.which(name) is not None


def compiles(compiler, source, *flags):
    """Return a check that the compiler exists and accepts source (C)."""
    command = [compiler, *flags, "-x", "c", "-c", "-o", os.devnull, "-"]
    return lambda: succeeds(command, source)


def python_candidates():
    """Yield the interpreters from which .venv may be made, in the order of preference."""
    for name in ("python3", "python3.14", "python3.13", "python3.12", "python3.11"):
        path = shutil.which(name)
        if path:
            yield path
    yield from ("/usr/bin/python3", "/usr/bin/python3.11")


def python_can(python, code):
    """Return True if a Python of the minimum version runs the code."""
    version = f"import sys; assert sys.version_info >= {MINIMUM_PYTHON}\n"
    return succeeds([python, "-"], version + code)


PYTHON_NEEDS = {
    "python3": ("", f"Python {MINIMUM_PYTHON[0]}.{MINIMUM_PYTHON[1]} or newer"),
    "python3-venv": ("import ensurepip, venv, lzma, zlib, ssl", "Python's modules venv and ensurepip"),
    "python3-dev": (
        "import pathlib, sysconfig\n"
        "assert (pathlib.Path(sysconfig.get_path('include')) / 'Python.h').exists()",
        "Python's header Python.h",
    ),
}


def find_python():
    """Return the first interpreter that has all of PYTHON_NEEDS, else None."""
    code = "\n".join(code for code, _ in PYTHON_NEEDS.values())
    for python in python_candidates():
        if python_can(python, code):
            return python
    return None


def python_needs():
    """Return the Needs that the system's own Python lacks."""
    if find_python():
        return []
    python = "/usr/bin/python3"
    return [
        Need(what, package, lambda code=code: python_can(python, code))
        for package, (code, what) in PYTHON_NEEDS.items()
    ]


def needs_of_32_bits():
    """Return the Need of a compiler with sanitizers for 32 bits, which Debian has on x86-64."""
    if platform.machine() != "x86_64":
        return []
    command = ["gcc", "-m32", "-fsanitize=address,undefined", "-x", "c", "-o", os.devnull, "-"]
    source = "#include <errno.h>\nint main(void) { return 0; }\n"
    return [Need("C compiler for 32 bits", "gcc-multilib", lambda: succeeds(command, source))]


def all_needs():
    libc = "#include <stdio.h>\n"
    newlib = "#include <stdint.h>\n#include <string.h>\n#include <math.h>\n"
    return [
        Need("make", "make", has_program("make")),
        Need("C compiler for this machine", "gcc", has_program("gcc")),
        Need("C library's headers", "libc6-dev", compiles("gcc", libc)),
        Need("arm-none-eabi-gcc", "gcc-arm-none-eabi", has_program("arm-none-eabi-gcc")),
        Need(
            "newlib's headers for arm-none-eabi-gcc",
            "libnewlib-arm-none-eabi",
            compiles("arm-none-eabi-gcc", newlib, "-mcpu=cortex-m4"),
        ),
        Need("qemu-system-arm", "qemu-system-arm", has_program("qemu-system-arm")),
        *needs_of_32_bits(),
        *python_needs(),
    ]


def rp2_needs():
    """Return the Needs of a build of MicroPython's port rp2, and of its emulator."""
    return [
        Need("CMake", "cmake", has_program("cmake")),
        Need("Node.js", "nodejs", has_program("node")),
        Need("npm", "npm", has_program("npm")),
    ]


def needs_of_risc_v():
    """Return the compiler for rv32imc, and headers of a C library, which is not linked."""
    compiler = "riscv64-unknown-elf-gcc"
    flags = ("-march=rv32imc", "-mabi=ilp32", "--specs=picolibc.specs")
    return [
        Need(compiler, "gcc-riscv64-unknown-elf", has_program(compiler)),
        Need("picolibc's headers for it", "picolibc-riscv64-unknown-elf",
             compiles(compiler, "#include <string.h>\n", *flags)),
    ]


def administrator():
    """Return the words before a command to run it as root, or None if there are none."""
    if os.geteuid() == 0:
        return []
    if shutil.which("sudo"):
        if succeeds(["sudo", "-n", "true"]):
            return ["sudo", "-n"]
        if sys.stdin.isatty():
            return ["sudo"]
    return None


def install(missing):
    """Install the packages of the missing Needs with apt-get, or print their names."""
    packages = [need.package for need in missing]
    command = ["apt-get", "install", "--no-install-recommends", "-y", *packages]
    if shutil.which("apt-get") is None:
        needed = "\n".join(f"  {need.what} (Debian: {need.package})" for need in missing)
        raise SetupError(
            f"This system has no apt-get. Install by its own means, then call make again:\n{needed}"
        )
    prefix = administrator()
    if prefix is None:
        raise SetupError(
            "These packages are missing, and only root can install them. "
            f"Call this, then make again:\n  sudo {shlex.join(command)}"
        )
    if prefix == ["sudo"]:
        subprocess.run(["sudo", "-v"])
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    if prefix:
        prefix = [*prefix, "DEBIAN_FRONTEND=noninteractive"]
    run("packages", [*prefix, "apt-get", "-q", "update"], "apt-update", environment)
    run("packages", [*prefix, *command], "apt-install", environment)


def set_up_packages(_):
    have(all_needs())


def set_up_risc_v(_):
    emulator = "qemu-system-riscv32"
    have([*needs_of_risc_v(), Need(emulator, "qemu-system-misc", has_program(emulator))])


def set_up_arm64(_):
    compiler = "aarch64-linux-gnu-gcc"
    have([Need(compiler, "gcc-aarch64-linux-gnu", has_program(compiler)),
          Need("C library for it", "libc6-dev-arm64-cross",
               compiles(compiler, "#include <stdio.h>\n")),
          Need("qemu-aarch64", "qemu-user", has_program("qemu-aarch64"))])


def set_up_recordings(_):
    recording = Path("/usr/share/sounds/alsa/Front_Left.wav")
    have([Need("recordings of spoken words", "alsa-utils", recording.is_file)])


def have(needs):
    """Install the packages of missing Needs. Raises SetupError if that fails."""
    missing = [need for need in needs if not need.is_there()]
    if not missing:
        say("packages", "all there")
        return
    for need in missing:
        say("packages", f"missing: {need.what} (Debian: {need.package})")
    install(missing)
    still_missing = [need.what for need in missing if not need.is_there()]
    if still_missing:
        raise SetupError(f"Still missing after the installation: {', '.join(still_missing)}")


# -- Python -------------------------------------------------------------------------


def python_digest():
    """Return a digest of all files that .venv is made from, and of the interpreter."""
    digest = hashlib.sha256()
    for pattern in PYTHON_SOURCES:
        for path in sorted(ROOT.glob(pattern)):
            digest.update(f"{path.relative_to(ROOT)}\0".encode())
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    digest.update(str(VENV_PYTHON.resolve()).encode())
    return digest.hexdigest()


def extension_files():
    return list((ROOT / "host").glob("_picotorch_c*.so"))


def python_is_current():
    return (
        STAMP.exists()
        and STAMP.read_text() == python_digest()
        and bool(extension_files())
        and succeeds([VENV_PYTHON, "-c", "import _picotorch_c"])
    )


def set_up_python(_):
    if python_is_current():
        say("python", ".venv is up to date")
        return
    STAMP.unlink(missing_ok=True)
    if not python_can(VENV_PYTHON, "import pip"):
        python = find_python()
        if python is None:
            raise SetupError("No Python that can make .venv: make packages lists what is missing")
        shutil.rmtree(VENV, ignore_errors=True)
        run("python", [python, "-m", "venv", ".venv"], "venv")
    for path in extension_files():
        path.unlink()
    pip_install = [VENV_PYTHON, "-m", "pip", "install", "--no-deps"]
    checked = [*pip_install, "--require-hashes", "-r", "tools/requirements/tools.txt"]
    run("python", checked, "pip-install-tools")
    run("python", [*pip_install, "--no-build-isolation", "-e", "."], "pip-install")
    STAMP.parent.mkdir(parents=True, exist_ok=True)
    STAMP.write_text(python_digest())


# -- MicroPython and firmware -------------------------------------------------------


def get_micropython(step, default, *options):
    """Get a tree of MicroPython, in build/<default> or in the folder MICROPYTHON_DIR."""
    command = [VENV_PYTHON, ROOT / "tools" / "get_micropython.py", *options]
    tree = Path(os.environ.get("MICROPYTHON_DIR") or BUILD / default)
    if not tree.exists():
        run(step, command, f"get-{default}")
        return
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise SetupError(done.stderr.strip())
    print(done.stderr, end="", flush=True)
    say(step, f"{done.stdout.strip()} is there")


def set_up_micropython(_):
    get_micropython("micropython", "micropython")


def set_up_ports(_):
    get_micropython("ports", "micropython-ports", "--ports")


def set_up_rp2(arguments):
    have(rp2_needs())
    command = [VENV_PYTHON, ROOT / "tools" / "get_rp2.py"]
    run("rp2", command, "get-rp2")
    done = subprocess.run(command, capture_output=True, text=True)
    for board in arguments.board or RP2_BOARDS:
        make_firmware(arguments, "port/upstream/rp2", board, "rp2", f"MPY_DIR={done.stdout.strip()}")
    set_up_emulator(BUILD / "rp2040")


def set_up_emulator(folder):
    """Install rp2040js in a folder, with the hashes in tools/rp2040/package-lock.json."""
    sources = [ROOT / "tools" / "rp2040" / name for name in RP2_EMULATOR]
    if all((folder / path.name).is_file() and (folder / path.name).read_bytes() == path.read_bytes()
           for path in sources) and (folder / "node_modules" / "rp2040js").is_dir():
        say("rp2", "rp2040js is up to date")
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for path in sources:
        shutil.copy(path, folder)
    run("rp2", ["npm", "ci", "--prefix", folder, "--ignore-scripts", "--no-audit"], "npm-ci")


def check_path(path):
    """Raise SetupError for a path that make, which has no quoting, splits or expands."""
    if not re.fullmatch(r"[\w./+@-]+", str(path)):
        raise SetupError(f"make cannot use the path {str(path)!r}: move it to one of letters, digits, "
                         "'_', '-' and '.'")


def run_make(arguments, step, log_name, folder, *settings):
    """Run make in a folder without an outer make's variables. Raises SetupError."""
    for path in filter(None, (ROOT, arguments.selection, os.environ.get("MICROPYTHON_DIR"))):
        check_path(path)
    inherited = ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES")
    environment = {key: value for key, value in os.environ.items() if key not in inherited}
    command = ["make", "-C", folder, f"-j{os.cpu_count() or 1}", *settings]
    if arguments.selection:
        command.append(f"SELECTION={arguments.selection.resolve()}")
    run(step, command, log_name, environment)


def make_firmware(arguments, folder, board, variant, *settings):
    run_make(arguments, "firmware", f"firmware-{board}-{variant}", folder, f"BOARD={board}", *settings)


def has_room_for_all_kernels(arguments, board):
    """Return True if the board has room for all kernels.

    Otherwise print what to build, or raise SetupError for a named board.
    """
    toml = tomllib.loads((ROOT / "boards" / board / "board.toml").read_text())
    if arguments.selection or toml.get("full_firmware", True):
        return True
    advice = (f"{board} has no room for all kernels: "
              f"picotorch firmware --models MODEL.pte --board {board} (--bare: without MicroPython)")
    if arguments.board:
        raise SetupError(advice)
    say("firmware", advice)
    return False


def boards_to_build(arguments):
    return [board for board in arguments.board or BOARDS if has_room_for_all_kernels(arguments, board)]


def set_up_bare(arguments):
    for board in [] if arguments.variant else boards_to_build(arguments):
        make_firmware(arguments, "port/bare", board, "bare")


def set_up_firmware(arguments):
    for board in boards_to_build(arguments):
        for variant in arguments.variant or VARIANTS:
            make_firmware(arguments, "port/firmware", board, variant, f"VARIANT={variant}")


def set_up_natmod(arguments):
    arches = arguments.arch or ARCHES
    if "rv32imc" in arches:
        have(needs_of_risc_v())
    set_up_micropython(arguments)
    for arch in arches:
        settings = [f"ARCH={arch}", *([f"FLASH={arguments.flash}"] if arguments.flash else []),
                    *(["PTM_ONLY=1"] if arguments.ptm_only else []),
                    f"OPTIMIZE={arguments.optimize}"]
        run_make(arguments, "natmod", f"natmod-{arch}", "port/natmod", *settings)


# -- main ---------------------------------------------------------------------------

STEPS = {
    "packages": set_up_packages,
    "python": set_up_python,
    "bare": set_up_bare,
    "micropython": set_up_micropython,
    "firmware": set_up_firmware,
    "ports": set_up_ports,
    "riscv": set_up_risc_v,
    "arm64": set_up_arm64,
    "recordings": set_up_recordings,
    "rp2": set_up_rp2,
    "natmod": set_up_natmod,
}
BEFORE = {"python": "packages", "bare": "python", "micropython": "bare", "firmware": "micropython",
          "ports": "python", "rp2": "python", "natmod": "python"}


def steps_to(step):
    """Return the steps that end with this one."""
    return [*(steps_to(BEFORE[step]) if step in BEFORE else ()), step]


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "step", nargs="?", choices=STEPS, default="firmware",
        help="the step to end with; those before it are done, too (default: firmware)",
    )
    parser.add_argument("--board", action="append", choices=[*BOARDS, *RP2_BOARDS],
                        help="default: all boards")
    parser.add_argument(
        "--variant", action="append", choices=VARIANTS, help="of the firmware; default: both"
    )
    parser.add_argument(
        "--arch", action="append", choices=ARCHES, help="of the native module; default: all"
    )
    parser.add_argument(
        "--selection", type=Path, metavar="FOLDER",
        help="build with the kernels that FOLDER/operators.def names; the result is in FOLDER, too",
    )
    parser.add_argument("--flash", metavar="ADDRESS",
                        help="of the native module: link its kernels for this address in flash")
    parser.add_argument("--ptm-only", action="store_true",
                        help="build the native module for .ptm files only")
    parser.add_argument("--no-packages", action="store_true", help="install nothing in the system")
    parser.add_argument("--optimize", choices=("size", "speed"), default="size",
                        help="of the native module: smaller, or faster")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    try:
        for name in steps_to(arguments.step):
            if not (name == "packages" and arguments.no_packages):
                STEPS[name](arguments)
    except SetupError as error:
        sys.exit(f"set-up stopped: {error}")
    except KeyboardInterrupt:
        sys.exit("set-up stopped: interrupted")


if __name__ == "__main__":
    main()
