"""Build stock MicroPython from its own ports, unchanged, and copy files and a script into it.

    python stock.py        # builds the firmware of a Pico, which takes longest
"""

import functools
import os
import struct
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from picotorch.firmware import mpy, native_module, ports, rp2, selective, uf2
from picotorch.host import romfs
from support import built_ports

REPOSITORY = Path(__file__).resolve().parents[2]
BUILD = REPOSITORY / "build" / "stock"
FPU = REPOSITORY / "tests" / "boards" / "ports" / "MPS2_FPU"
PICO = REPOSITORY / "tests" / "boards" / "ports" / "RPI_PICO"
HEAP = 1 << 20  # MicroPython's own memory on the emulated boards
_JOBS = f"-j{os.cpu_count() or 1}"

_FPU = ["BOARD=MPS2_FPU", f"BOARD_DIR={FPU}"]
_M4F = "-mcpu=cortex-m4 -mfpu=fpv4-sp-d16"
# Debian's compiler has no library under the name with _zicsr; ISA 2.2 includes its instructions.
_RV32 = ["RV32_ARCH=rv32imac", "RV32_ABI=ilp32 -misa-spec=2.2"]
# port, arguments of make, the program
_BUILDS = {
    "unix": ("unix", ["VARIANT=standard", "MICROPY_PY_BTREE=0", "MICROPY_PY_FFI=0",
                      "MICROPY_PY_SSL=0"], "micropython"),
    "mps2-an385": ("qemu", ["BOARD=MPS2_AN385"], "firmware.elf"),
    # Floats pass in integer registers, as in rp2, or in registers of the FPU, as in stm32, nrf, samd,
    # mimxrt
    "mps2-an386": ("qemu", [*_FPU, "QEMU_MACHINE=mps2-an386", f"CPU={_M4F} -mfloat-abi=softfp"],
                   "firmware.elf"),
    "mps2-an386-hard": ("qemu", [*_FPU, "QEMU_MACHINE=mps2-an386", f"CPU={_M4F} -mfloat-abi=hard"],
                        "firmware.elf"),
    "mps2-an500": ("qemu", [*_FPU, "QEMU_MACHINE=mps2-an500",
                            "CPU=-mcpu=cortex-m7 -mfpu=fpv5-d16 -mfloat-abi=hard"], "firmware.elf"),
    "virt-rv32": ("qemu", ["BOARD=VIRT_RV32", *_RV32], "firmware.elf"),
    # By default these ports have 140 KB of heap, which netduino2 lacks, and no code emitter for
    # Armv6-M, which native modules need. The changes follow rp2.
    "microbit": ("qemu", ["BOARD=MICROBIT", f"MICROPY_HEAP_SIZE={200 << 10}", "CFLAGS_EXTRA="
                          "-DMICROPY_EMIT_THUMB=1 -DMICROPY_EMIT_THUMB_ARMV7M=0"], "firmware.elf"),
    "netduino2": ("qemu", ["BOARD=NETDUINO2", f"MICROPY_HEAP_SIZE={114 << 10}"], "firmware.elf"),
}


@dataclass(frozen=True)
class _Machine:
    """An emulated machine, a range of its memory that MicroPython does not use, and the functions to
    build and run it."""

    name: str
    rom: int = 0x21000000
    emulator: str = "qemu-system-arm"
    compiler: str = "arm-none-eabi-gcc"
    options: tuple[str, ...] = ()
    rom_size: int = 1 << 20


_MACHINES = {
    "mps2-an385": _Machine("mps2-an385"),
    "mps2-an386": _Machine("mps2-an386"),
    "mps2-an386-hard": _Machine("mps2-an386"),
    "mps2-an500": _Machine("mps2-an500", 0x60000000),
    "virt-rv32": _Machine("virt", 0x81000000, "qemu-system-riscv32", "riscv64-unknown-elf-gcc",
                          ("-bios", "none")),
    # in flash, behind the firmware
    "microbit": _Machine("microbit", 0x80000, rom_size=256 << 10, options=(
        "-global", "nrf51-soc.flash-size=1048576", "-global", "nrf51-soc.sram-size=262144")),
    "netduino2": _Machine("netduino2", 0x08080000, rom_size=256 << 10),
}


def _run(command):
    environment = ports.environment() | {"MICROPY_MPYCROSS": str(mpy.MPY_CROSS)}
    made = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL,
                          env=environment)
    assert made.returncode == 0, made.stdout[-2000:] + made.stderr[-2000:]


@functools.cache
def build(name):
    """Return the program of a port without picotorch."""
    port, settings, program = _BUILDS[name]
    folder = BUILD / name
    with selective.locked(BUILD):
        tree = ports.tree_of(ports.boards()["unix"])
        selective.write_changed(folder, {"manifest.py": ""})
        _run(["make", "-C", tree / "ports" / port, _JOBS, "all", f"BUILD={folder}",
              f"FROZEN_MANIFEST={folder / 'manifest.py'}", f"MICROPY_MPYCROSS={mpy.MPY_CROSS}",
              f"MPY_LIB_DIR={tree}", f"MICROPY_HEAP_SIZE={HEAP}", *settings])
    return folder / program


@functools.cache
def build_pico():
    """Return the firmware of MicroPython's own RPI_PICO."""
    folder = BUILD / "RPI_PICO"
    tree = subprocess.run([sys.executable, REPOSITORY / "tools" / "get_rp2.py"], check=True,
                          capture_output=True, text=True).stdout.strip()
    with selective.locked(BUILD):
        _run(["cmake", "-G", "Unix Makefiles", "-S", f"{tree}/ports/rp2", "-B", folder,
              "-DMICROPY_BOARD=RPI_PICO", f"-DMICROPY_BOARD_DIR={PICO}"])
        _run(["make", "-C", folder, _JOBS])
    return (folder / "firmware.bin").read_bytes()


def pico_uf2(path):
    """Write the UF2 file of the Pico's firmware."""
    path.write_bytes(uf2.write({rp2.FLASH: build_pico()}, rp2.BOARDS["RPI_PICO"].family))
    return path


def make_module(arch, small=False):
    """Return build/natmod/ARCH/_picotorch.mpy, or the one in ARCH-fast, with all kernels."""
    return native_module.link(arch, None, native_module.Kind(small=small))


# ---- runs


def need(name):
    """Skip the test if a program that builds or runs this machine is not installed."""
    if name in _MACHINES:
        built_ports.need(_MACHINES[name].emulator, _MACHINES[name].compiler)


def run(name, script, files, models, folder, options=()):
    """Return the lines that a script prints with these files in its path. models: {name: bytes}, in the
    module picotorch_models. options: of the emulator, if there is one."""
    if name == "unix":
        return _run_unix(script, files, models, folder)
    return _run_emulated(name, script, files, models, folder, options)


def _run_unix(script, files, models, folder):
    for path, data in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    lines = [f"{model} = memoryview({bytes(data)!r})\n" for model, data in models.items()]
    (folder / "picotorch_models.py").write_text("".join(lines))
    return built_ports.run_unix(build("unix"), "-X", "heapsize=16M", "-c",
                                f"import sys\nsys.path[:] = [{str(folder)!r}]\n" + script)


def _in_folders(files):
    """Return {path: bytes} for romfs.build, with folders of one level."""
    nested = {}
    for path, data in files.items():
        folder, _, name = path.rpartition("/")
        (nested.setdefault(folder, {}) if folder else nested)[name] = data
    return nested


def _run_emulated(name, script, files, models, folder, options):
    machine = _MACHINES[name]
    lines, blob = ["import uctypes\n"], b""
    behind = machine.rom + machine.rom_size
    for model, data in models.items():
        lines.append(f"{model} = memoryview(uctypes.bytearray_at({behind + len(blob)}, {len(data)}))\n")
        blob += data.ljust(-(-len(data) // 128) * 128, b"\0")
    image = romfs.build(_in_folders(files | {"picotorch_models.py": "".join(lines).encode()}))
    assert len(image) <= machine.rom_size
    rom = folder / "rom.img"
    rom.write_bytes(struct.pack(f"{machine.rom_size}s", image) + blob)
    start = ("import vfs, sys, uctypes\n"
             f"vfs.mount(vfs.VfsRom(uctypes.bytearray_at({machine.rom}, {machine.rom_size})), '/rom')\n"
             "sys.path[:] = ['/rom']\n")
    (folder / "script.py").write_text(start + script)
    loader = ["-device", f"loader,file={rom},addr={machine.rom},force-raw=on"]
    return built_ports.run_qemu(build(name), folder / "script.py", machine.name,
                                [*machine.options, *options, *loader], machine.emulator)


if __name__ == "__main__":
    build_pico()
