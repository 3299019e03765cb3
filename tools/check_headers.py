#!/usr/bin/env python3
"""Compile each header of kernels/ by itself: a header includes everything that it needs.

Fragments, which a file includes after it has defined macros for them, end in .inc.

Example: tools/check_headers.py
"""

import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import click

KERNELS = Path(__file__).resolve().parent.parent / "kernels"
ARM = ("arm-none-eabi-gcc", "-mthumb")
COMPILERS = {  # the compilers for the headers of a folder
    "arch/dsp": (*ARM, "-mcpu=cortex-m4"), "arch/mve": (*ARM, "-mcpu=cortex-m55", "-mfloat-abi=hard"),
    "arch/v6m": (*ARM, "-mcpu=cortex-m0"), "arch/v7m": (*ARM, "-mcpu=cortex-m3"),
}
HOST = ("gcc", "-DPT_HOST", "-DPT_ANY_CORE")
FLAGS = ("-std=gnu99", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function", "-fsyntax-only",
         f"-I{KERNELS}/include", f"-I{KERNELS}", "-x", "c", "-")


def compile_alone(header: Path) -> str:
    """Return the compiler's messages for a file that includes this header only."""
    name = header.relative_to(KERNELS)
    include = f"<{name.relative_to('include')}>" if name.is_relative_to("include") else f'"{name}"'
    command = COMPILERS.get(name.parent.as_posix(), HOST)
    done = subprocess.run([*command, *FLAGS], input=f"#include {include}\n", text=True,
                          capture_output=True)
    return done.stderr or (f"{name}: the compiler ended with {done.returncode}\n" if done.returncode
                           else "")


@click.command(help=__doc__)
def main():
    headers = sorted(set(KERNELS.rglob("*.h")) - {KERNELS / "arch/host/neon.h"})  # of AArch64
    if shutil.which(ARM[0]) is None:
        headers = [one for one in headers
                   if one.parent.relative_to(KERNELS).as_posix() not in COMPILERS]
        click.echo(f"{ARM[0]} is not installed: headers for Arm only are left out")
    with ThreadPoolExecutor() as pool:
        failed = [text for text in pool.map(compile_alone, headers) if text]
    click.echo(f"{len(headers)} headers, {len(failed)} do not compile alone")
    click.echo("".join(failed), nl=False, err=True)
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
