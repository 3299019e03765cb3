"""Collect the notices of third parties for the firmware and native modules of a wheel.

The notices are files with a licence, and comments that state a copyright, in the sources of these
parties. None is stored in this repository.
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path

import click
import get_micropython
import get_rp2

DEBIAN = Path("/usr/share/doc")  # documentation of Debian's packages
SOURCES = (".c", ".h", ".s", ".S")
COMMENT = re.compile(r"/\*.*?\*/|(?:^[ \t]*//[^\n]*\n)+", re.DOTALL | re.MULTILINE)
NOTICE = re.compile(r"copyright|SPDX-License|public domain", re.IGNORECASE)
HOLDER = re.compile(r"(?:Copyright|COPYRIGHT|\([cC]\))\W.*")


@dataclass(frozen=True)
class Component:
    """Third-party code that a binary contains.

    folders: of its sources, below MicroPython's tree. licences: patterns of files with a licence, below
    the tree, or below DEBIAN for those of a compiler. only_rp2: only the firmware of a Pico contains
    it.
    """

    name: str
    folders: tuple[str, ...] = ()
    licences: tuple[str, ...] = ()
    only_rp2: bool = True


PICO_SDK = "lib/pico-sdk"
BSD = f"{PICO_SDK}/LICENSE.TXT"  # the text of BSD-3-Clause, for sources that only name it
COMPONENTS = (
    Component("micropython", ("py", "extmod", "shared", "drivers", "ports/rp2"), only_rp2=False),
    Component("libm", ("lib/libm",), only_rp2=False),
    Component("newlib", licences=("libnewlib-arm-none-eabi/copyright",), only_rp2=False),
    # The copyright file of gcc-arm-none-eabi refers to gcc's, which has the exception for libgcc
    Component("libgcc", licences=("gcc-[0-9]*-base/copyright",), only_rp2=False),
    Component("cmsis", ("lib/cmsis", f"{PICO_SDK}/src/rp2_common/cmsis"),
              (f"{PICO_SDK}/src/rp2_common/cmsis/stub/CMSIS/LICENSE.txt",)),
    Component("pico-sdk", tuple(f"{PICO_SDK}/src/{folder}" for folder in (
        "boards", "common", "rp2040", "rp2350", "rp2_common")),
              (BSD, f"{PICO_SDK}/src/rp2_common/pico_printf/LICENSE")),
    Component("tinyusb", ("lib/tinyusb/src",)),
    Component("mbedtls", ("lib/mbedtls/library",), ("lib/mbedtls/LICENSE",)),
    Component("littlefs", ("lib/littlefs",), (BSD,)),
    Component("oofatfs", ("lib/oofatfs",)),
    Component("re1.5", ("lib/re1.5",), (BSD,)),
    Component("uzlib", ("lib/uzlib",)),
    Component("crypto-algorithms", ("lib/crypto-algorithms",)),
)


class NoticeMissing(click.ClickException):
    """A component whose licence is not on this machine."""


def trees() -> tuple[Path, Path]:
    """Return MicroPython's trees: of our firmware and native modules, and of a Pico's firmware."""
    named = os.environ.get(get_micropython.DIR_VARIABLE)
    ours = Path(named).resolve() if named else get_micropython.BUILD / "micropython"
    return ours, get_rp2.named_tree() or get_rp2.TREE


def lines_of(comment: str) -> list[str]:
    """Return the lines of a C comment, without the comment markers."""
    lines = [re.sub(r"^[ \t]*(?:/[*/]+|\*+/?|/(?= |$))|[-*/=]*\*/$|[ \t]+$", "", line)
             for line in comment.splitlines()]
    lines = ["" if re.fullmatch(r"[-*/= \t]*", line) else line.strip() for line in lines]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines).strip("\n")).split("\n")


def comments(files: list[Path]) -> list[str]:
    """Return the notices in comments. A notice names all copyright holders with the same words."""
    holders: dict[str, set[str]] = {}
    for path in files:
        for comment in COMMENT.findall(path.read_text("utf-8", errors="replace")):
            if NOTICE.search(comment):
                lines = lines_of(comment)
                words = [line for line in lines if not HOLDER.match(line)]
                text = re.sub(r"\n{3,}", "\n\n", "\n".join(words).strip("\n"))
                holders.setdefault(text, set()).update(filter(HOLDER.match, lines))
    return ["\n".join([*sorted(names), "", text]).strip("\n")
            for text, names in sorted(holders.items())]


def _version(licence):
    """Return the numbers in the name of a package, so that gcc-12-base is newer than gcc-9-base."""
    return [int(number) for number in re.findall(r"\d+", licence.parent.name)]


def notice(component: Component, tree: Path, packages: Path = DEBIAN) -> str:
    """Return the text for a component.

    Raises:
        NoticeMissing: a licence that it names is not there, or its sources state no copyright.
    """
    parts = []
    for folder in component.folders:
        files = sorted(path for path in (tree / folder).rglob("*") if path.suffix in SOURCES)
        parts += comments(files)
    root = tree if component.only_rp2 else packages
    for pattern in component.licences:
        found = sorted(root.glob(pattern))
        if not found:
            raise NoticeMissing(f"the licence of {component.name} is missing: {root / pattern}")
        parts.append(max(found, key=_version).read_text("utf-8", errors="replace").strip("\n"))
    if not parts:
        raise NoticeMissing(f"{tree} has no notice of {component.name}")
    return f"\n\n{'-' * 80}\n\n".join(parts) + "\n"


def write(folder: Path, with_rp2: bool):
    """Write the notices of all third parties in the binaries, a file for each component."""
    ours, of_rp2 = trees()
    folder.mkdir(parents=True)
    for component in COMPONENTS:
        if with_rp2 or not component.only_rp2:
            text = notice(component, of_rp2 if with_rp2 else ours)
            (folder / f"{component.name}.txt").write_text(text, "utf-8")
