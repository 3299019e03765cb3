#!/usr/bin/env python3
"""Build the wheel, including the files that a user could not build without a compiler.

It contains the firmware of the default board, stripped, with the tables of its stack and flash. It also
contains the firmware of Raspberry Pi Pico and Pico 2, native modules, native modules for kernels in
flash, and their runtime, if they are built. The folder licenses has the licences of the third-party
code in these files.

Example: make wheel
Example: tools/make_wheel.py --output dist
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import click
import notices
from picotorch.boards.boards import load_board
from picotorch.firmware import kernels_in_flash, native_module
from picotorch.measure import flash
from picotorch.run import emulator, running

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
BUILT = (*(f"natmod/{native_module.Kind(small=small).folder(arch)}/_picotorch.mpy"
           for arch in native_module.ARCHES for small in (False, True)),
         "natmod/picotorch/*.mpy", "rp2/*/firmware.bin",
         *(f"natmod/{board}/{name}" for board in kernels_in_flash.BOARDS
           for name in (kernels_in_flash.KERNELS, "*/_picotorch.mpy")))
LICENSES = "licenses"


def stage(folder: Path) -> Path:
    """Fill a folder for PICOTORCH_PREBUILT, and return it.

    Raises FirmwareMissing if the firmware is not built, NoticeMissing if a licence is not on this
    machine.
    """
    board = load_board(running.DEFAULT_BOARD)
    firmware = emulator.firmware_path(board)
    target = folder / firmware.parent.relative_to(BUILD)
    target.mkdir(parents=True)
    subprocess.run(["arm-none-eabi-strip", "-o", target / firmware.name, firmware], check=True)
    shutil.copyfile(firmware.with_name("stack.json"), target / "stack.json")
    (target / flash.TABLE).write_text(json.dumps(flash.tables_of(board)) + "\n")
    for pattern in BUILT:
        for path in sorted(BUILD.glob(pattern)):
            (folder / path.relative_to(BUILD)).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, folder / path.relative_to(BUILD))
    notices.write(folder / LICENSES, with_rp2=(folder / "rp2").is_dir())
    return folder


@click.command(help=__doc__)
@click.option("--output", type=click.Path(path_type=Path), default=ROOT / "dist", metavar="FOLDER",
              help="Where to put it; dist by default.")
def main(output):
    with tempfile.TemporaryDirectory(prefix="picotorch-wheel-") as folder:
        prebuilt = stage(Path(folder))
        subprocess.run([sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation",
                        "--no-index", "--wheel-dir", output.resolve(), ROOT], check=True,
                       env={**os.environ, "PICOTORCH_PREBUILT": str(prebuilt)})
        for path in sorted(prebuilt.rglob("*")):
            if path.is_file():
                click.echo(f"{path.stat().st_size:9,} B  {path.relative_to(prebuilt)}")


if __name__ == "__main__":
    main()
