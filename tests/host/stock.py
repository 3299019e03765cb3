"""Stock MicroPython, built from its own ports as they are, and how files and a script get into it."""

import fcntl
import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import built_ports
import pytest
from picotorch.host import mpy, native_module, ports, rp2, uf2

REPOSITORY = Path(__file__).resolve().parents[2]
BUILD = REPOSITORY / "build" / "stock"
AN386 = REPOSITORY / "tests" / "ports" / "MPS2_AN386"
PICO = REPOSITORY / "tests" / "ports" / "RPI_PICO"
HEAP = 1 << 20  # what MicroPython has to itself on the emulated boards
ROM = 0x21000000  # RAM of these boards that MicroPython leaves alone
ROM_SIZE = 1 << 20

# port, what make is told, the program
_BUILDS = {
    "unix": ("unix", ["VARIANT=standard", "MICROPY_PY_BTREE=0", "MICROPY_PY_FFI=0",
                      "MICROPY_PY_SSL=0"], "micropython"),
    "mps2-an385": ("qemu", ["BOARD=MPS2_AN385"], "firmware.elf"),
    "mps2-an386": ("qemu", ["BOARD=MPS2_AN386", f"BOARD_DIR={AN386}"], "firmware.elf"),
}


def build(name):
    """The program of a port without picotorch."""
    port, settings, program = _BUILDS[name]
    folder = BUILD / name
    folder.mkdir(parents=True, exist_ok=True)
    with open(BUILD / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        tree = ports.tree_of(ports.boards()["unix"])
        (folder / "manifest.py").write_text("")
        command = ["make", "-C", tree / "ports" / port, f"-j{os.cpu_count() or 1}", "all",
                   f"BUILD={folder}", f"FROZEN_MANIFEST={folder / 'manifest.py'}",
                   f"MICROPY_MPYCROSS={mpy.MPY_CROSS}", f"MPY_LIB_DIR={tree}",
                   f"MICROPY_HEAP_SIZE={HEAP}", *settings]
        made = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL,
                              env=_environment())
        assert made.returncode == 0, made.stdout[-2000:] + made.stderr[-2000:]
    return folder / program


def build_pico():
    """The firmware of MicroPython's own RPI_PICO."""
    folder = BUILD / "RPI_PICO"
    folder.mkdir(parents=True, exist_ok=True)
    tree = subprocess.run([sys.executable, REPOSITORY / "tools" / "get_rp2.py"], check=True,
                          capture_output=True, text=True).stdout.strip()
    commands = [["cmake", "-G", "Unix Makefiles", "-S", f"{tree}/ports/rp2", "-B", folder,
                 "-DMICROPY_BOARD=RPI_PICO", f"-DMICROPY_BOARD_DIR={PICO}"],
                ["make", "-C", folder, f"-j{os.cpu_count() or 1}"]]
    with open(BUILD / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for command in commands:
            made = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL,
                                  env=_environment() | {"MICROPY_MPYCROSS": str(mpy.MPY_CROSS)})
            assert made.returncode == 0, made.stdout[-2000:] + made.stderr[-2000:]
    return (folder / "firmware.bin").read_bytes()


def pico_uf2(path):
    """Writes the UF2 file of it."""
    path.write_bytes(uf2.write({rp2.FLASH: build_pico()}, rp2.BOARDS["RPI_PICO"].family))
    return path


def _environment():
    inherited = ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "BOARD", "BUILD", "CFLAGS")
    return {name: value for name, value in os.environ.items() if name not in inherited} | {
        "PYTHONDONTWRITEBYTECODE": "1"}


def make_module(arch):
    """build/natmod/ARCH/_picotorch.mpy."""
    native_module.BUILD.mkdir(parents=True, exist_ok=True)
    with open(native_module.BUILD / "lock", "w") as lock:  # picotorch natmod builds there, too
        fcntl.flock(lock, fcntl.LOCK_EX)
        command = ["make", "-C", REPOSITORY / "port" / "natmod", f"-j{os.cpu_count() or 1}",
                   f"ARCH={arch}", f"PYTHON={sys.executable}"]
        made = subprocess.run(command, capture_output=True, text=True, env=_environment())
        assert made.returncode == 0, made.stdout[-2000:] + made.stderr[-2000:]
    return native_module.BUILD / arch / "_picotorch.mpy"


# ---- a file system in memory


def _number(value):
    encoded = [value & 0x7F]
    while value := value >> 7:
        encoded.insert(0, 0x80 | value & 0x7F)
    return bytes(encoded)


def _record(kind, payload):
    return _number(kind) + _number(len(payload)) + payload


def romfs(files):
    """A ROMFS image of {path: bytes}, with folders of one level."""
    verbatim, directory, file = 2, 4, 5
    folders = {}
    for path, data in files.items():
        folder, _, name = path.rpartition("/")
        entry = _record(file, _number(len(name)) + name.encode() + _record(verbatim, data))
        folders[folder] = folders.get(folder, b"") + entry
    body = folders.pop("", b"")
    for name, entries in folders.items():
        body += _record(directory, _number(len(name)) + name.encode() + entries)
    return b"\xd2\xcd\x31" + _number(len(body)) + body


# ---- runs


def run(name, script, files, models, folder):
    """The lines that a script prints with these files in its path; models: {name: bytes}, in the
    module picotorch_models."""
    if name == "unix":
        return _run_unix(script, files, models, folder)
    return _run_emulated(name, script, files, models, folder)


def _run_unix(script, files, models, folder):
    for path, data in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    lines = [f"{model} = memoryview({bytes(data)!r})\n" for model, data in models.items()]
    (folder / "picotorch_models.py").write_text("".join(lines))
    return built_ports.run_unix(build("unix"), "-X", "heapsize=16M", "-c",
                                f"import sys\nsys.path[:] = [{str(folder)!r}]\n" + script)


def _run_emulated(name, script, files, models, folder):
    if shutil.which("qemu-system-arm") is None:
        pytest.skip("qemu-system-arm is not installed")
    lines, blob = ["import uctypes\n"], b""
    for model, data in models.items():
        lines.append(f"{model} = memoryview(uctypes.bytearray_at({ROM + ROM_SIZE + len(blob)}, "
                     f"{len(data)}))\n")
        blob += data.ljust(-(-len(data) // 128) * 128, b"\0")
    image = romfs(files | {"picotorch_models.py": "".join(lines).encode()})
    assert len(image) <= ROM_SIZE
    rom = folder / "rom.img"
    rom.write_bytes(struct.pack(f"{ROM_SIZE}s", image) + blob)
    start = ("import vfs, sys, uctypes\n"
             f"vfs.mount(vfs.VfsRom(uctypes.bytearray_at({ROM}, {ROM_SIZE})), '/rom')\n"
             "sys.path[:] = ['/rom']\n")
    (folder / "script.py").write_text(start + script)
    loader = ["-device", f"loader,file={rom},addr={ROM},force-raw=on"]
    return built_ports.run_qemu(build(name), folder / "script.py", name, loader)
