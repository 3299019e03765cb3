#!/usr/bin/env python3
"""Check the objects of kernels/: no heap, no foreign functions, no data that changes.

Every symbol that an object takes from elsewhere must be in ALLOWED. So malloc and its family, printf,
assert's handler and the C library's math.h are rejected. No object may have a writable section. The
sources are compiled here with variable length arrays and alloca as errors. The objects are those of the
host, compiled here, and of every firmware that is built.

The exit status is 1 if something is rejected, with a list.

Example: tools/check_symbols.py
Example: tools/check_symbols.py build/firmware/mps2-an386-run/kernels/core/run/executor.o
"""

import argparse
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KERNELS = ROOT / "kernels"
HOST_OBJECTS = ROOT / "build" / "symbols"
FIRMWARE = ROOT / "build" / "firmware"

ALLOWED = re.compile(
    r"pt_\w+"  # other files of kernels/
    r"|memcpy|memmove|memset|memcmp"  # every C compiler may call these
    r"|__aeabi_\w+|__\w+(?:si|di|sf|df)[2-4]?"  # arithmetic in the compiler's own library
    r"|__gnu_thumb1_case_\w+"  # switch, in that library
    r"|_GLOBAL_OFFSET_TABLE_"
)
HEAP = re.compile(r"_*(?:malloc|calloc|realloc|free|sbrk|alloca)(?:_r)?")

HOST_FLAGS = ["-std=c99", "-O2", "-ffp-contract=off", "-fno-math-errno", "-fno-stack-protector"]
HOST_FLAGS += ["-Wall", "-Wextra", "-Wvla", "-Walloca", "-Werror"]


class CheckError(Exception):
    """The check itself cannot be done."""


def run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise CheckError(f"{' '.join(map(str, command))}:\n{done.stderr}")
    return done.stdout


def undefined_symbols(symbols):
    """Return the names that readelf -s shows as undefined."""
    rows = [line.split() for line in symbols.splitlines()]
    return sorted({row[7] for row in rows if len(row) > 7 and row[6] == "UND"})


def writable_sections(sections):
    """Return (name, bytes) of the sections of readelf -S that a running program can write to.

    .data.rel.ro is constant once the program is loaded, so it is left out.
    """
    row = re.compile(r"\s*\[\s*\d+\]\s+(\S+)\s+\S+\s+\w+\s+\w+\s+(\w+)\s+\w+\s+(\w+)\s")
    found = (row.match(line) for line in sections.splitlines())
    return [
        (match[1], int(match[2], 16))
        for match in found
        if match and "W" in match[3] and int(match[2], 16) and "data.rel.ro" not in match[1]
    ]


def faults(path):
    """Return the faults of an object, one line each."""
    lines = []
    shown = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
    for name in undefined_symbols(run(["readelf", "-W", "-s", path])):
        if HEAP.fullmatch(name):
            lines.append(f"{shown}: takes {name} from the heap")
        elif not ALLOWED.fullmatch(name):
            lines.append(f"{shown}: takes {name} from outside of kernels/")
    for name, size in writable_sections(run(["readelf", "-W", "-S", path])):
        lines.append(f"{shown}: has {size} bytes in {name} that can change")
    return lines


def compile_for_host(sources, folder):
    """Compile sources into objects below folder, and return the objects.

    Raises CheckError if a source does not compile.
    """
    includes = [f"-I{path}" for path in (KERNELS / "include", KERNELS)]

    def compile_one(source):
        name = source.relative_to(ROOT) if source.is_relative_to(ROOT) else Path(source.name)
        target = (folder / name).with_suffix(".o")
        target.parent.mkdir(parents=True, exist_ok=True)
        run(["gcc", *HOST_FLAGS, *includes, "-c", source, "-o", target])
        return target

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(compile_one, sources))


def groups_to_check():
    """Yield (name, objects): the host's, then each firmware's."""
    sources = sorted(KERNELS.rglob("*.c"))
    if not sources:
        raise CheckError("there is no C file in kernels/")
    yield "host", compile_for_host(sources, HOST_OBJECTS)
    firmware = sorted(path for path in FIRMWARE.glob("*") if (path / "firmware.elf").exists())
    if not firmware:
        raise CheckError("no firmware is built: make all-firmware")
    for path in firmware:
        objects = sorted((path / "kernels").rglob("*.o"))
        if not objects:
            raise CheckError(f"{path} has no object of kernels/")
        yield path.name, objects


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("objects", nargs="*", type=Path, help="objects to check instead of all")
    arguments = parser.parse_args()
    refused = []
    try:
        groups = [("named", arguments.objects)] if arguments.objects else groups_to_check()
        for name, objects in groups:
            found = [line for path in objects for line in faults(path)]
            print(f"check_symbols: {name}: {len(objects)} objects, {len(found)} refused", flush=True)
            refused += found
    except CheckError as error:
        sys.exit(f"check_symbols: {error}")
    if refused:
        sys.exit("\n".join(refused))


if __name__ == "__main__":
    main()
