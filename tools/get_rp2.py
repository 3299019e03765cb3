#!/usr/bin/env python3
"""Get the source tree for builds of MicroPython's port rp2, and print its path: build/rp2/tree.

It is the tree of get_micropython.py --ports with the submodules of MicroPython that rp2 needs:
Raspberry Pi's pico-sdk, TinyUSB and mbed TLS. They come from Debian, through a private apt
configuration with this machine's mirror, and each file has the SHA-256 below. A tree that
MICROPYTHON_DIR names is used in place if it has its submodules.

Example: tools/get_rp2.py
Example: MICROPYTHON_DIR=$HOME/micropython tools/get_rp2.py
"""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path

import get_micropython
from get_micropython import BUILD, DIR_VARIABLE, GetError, check_package, debian_mirrors, run, say

PORTS = BUILD / "micropython-ports"
FOLDER = BUILD / "rp2"
TREE = FOLDER / "tree"
STAMP = FOLDER / "tree.sha256"


@dataclass(frozen=True)
class Library:
    """A submodule of MicroPython, and the file of Debian's package that contains it.

    top: the folder of that file that becomes lib/<name>; None if the file has only one folder.
    """

    name: str
    package: str
    file: str
    sha256: str
    top: str | None = None


# Debian's binary package of pico-sdk lacks a tool that the build may need; TinyUSB's binary package
# contains its source.
LIBRARIES = (
    Library("pico-sdk", "pico-sdk", "pico-sdk_2.1.1.orig.tar.gz",
            "179c5531e75ac7f82d0679e70b6e8881f871738dc0ef17baf3b4ff4679291c41"),
    Library("mbedtls", "mbedtls", "mbedtls_3.6.6.orig.tar.bz2",
            "8fb65fae8dcae5840f793c0a334860a411f884cc537ea290ce1c52bb64ca007a"),
    Library("tinyusb", "tinyusb-source", "tinyusb-source_0.18.0+dfsg-1_all.deb",
            "01ce2c645df68f14a8a7dcfc8fb355713152543757955820479a87949a61154e", "usr/src/tinyusb"),
)


def download(library, folder, environment):
    """Download a library's file into folder. Raises GetError if it is missing or has another hash."""
    hashes = {library.file: library.sha256}
    if not (folder / library.file).is_file():
        if library.file.endswith(".deb"):
            command = ["apt-get", "-q", "download", library.package]
        else:
            command = ["apt-get", "-q", "source", "--download-only", "--tar-only", library.package]
        run(command, environment, folder)
    check_package(folder, hashes)


def download_all(folder):
    """Download the files of all libraries from a mirror. Raises GetError if none has them."""
    reasons = []
    for mirror in debian_mirrors():
        try:
            environment = get_micropython.private_apt(folder / "apt", mirror, ("deb", "deb-src"))
            run(["apt-get", "-q", "update"], environment)
            for library in LIBRARIES:
                download(library, folder, environment)
            return
        except GetError as error:
            reasons.append(str(error))
    raise GetError("; ".join(reasons) or "the machine's apt configuration names no Debian mirror")


def unpack(library, folder, target):
    """Unpack a library's file into the folder target."""
    say(f"unpacking {library.file}")
    unpacked = folder / library.name
    shutil.rmtree(unpacked, ignore_errors=True)
    unpacked.mkdir(parents=True)
    if library.file.endswith(".deb"):
        run(["dpkg-deb", "-x", str(folder / library.file), str(unpacked)])
    else:
        with tarfile.open(folder / library.file) as archive:
            archive.extractall(unpacked)
    top = unpacked / library.top if library.top else next(unpacked.iterdir())
    shutil.rmtree(target, ignore_errors=True)
    shutil.move(top, target)
    shutil.rmtree(unpacked)


def digest():
    """Return a digest of all files that the tree is made from."""
    hashes = [path.read_text() for path in get_micropython.PORTS_HASHES]
    hashes += [library.sha256 for library in LIBRARIES]
    return hashlib.sha256("\n".join(hashes).encode()).hexdigest() + "\n"


def get():
    """Make the tree. Raises GetError if this fails."""
    if shutil.which("apt-get") is None:
        raise GetError("this machine has no apt-get: "
                       f"set {DIR_VARIABLE} to a MicroPython tree with its submodules")
    tool = Path(__file__).with_name("get_micropython.py")
    environment = {key: value for key, value in os.environ.items() if key != DIR_VARIABLE}
    command = [sys.executable, tool, "--ports"]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, env=environment)
    if done.returncode != 0:
        raise GetError("without MicroPython's ports there is no rp2")
    packages = FOLDER / "debian"
    packages.mkdir(parents=True, exist_ok=True)
    download_all(packages)
    STAMP.unlink(missing_ok=True)
    shutil.rmtree(TREE, ignore_errors=True)
    shutil.copytree(PORTS, TREE)
    for library in LIBRARIES:
        unpack(library, packages, TREE / "lib" / library.name)
    STAMP.write_text(digest())


def missing_submodules(tree):
    """Return the names of the libraries that a tree lacks."""
    folders = {library.name: tree / "lib" / library.name for library in LIBRARIES}
    return [name for name, folder in folders.items() if not (folder.is_dir() and any(folder.iterdir()))]


def named_tree():
    """Return the tree that MICROPYTHON_DIR names, or None if rp2 cannot be built from it."""
    if not os.environ.get(DIR_VARIABLE):
        return None
    tree = Path(os.environ[DIR_VARIABLE]).resolve()
    get_micropython.check_tree(tree)
    missing = missing_submodules(tree)
    if missing:
        say(f"{tree} is not used for rp2: it lacks the submodules {', '.join(missing)}")
        return None
    return tree


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.parse_args()
    try:
        tree = named_tree()
        if tree is None and (not STAMP.is_file() or STAMP.read_text() != digest()):
            get()
    except GetError as error:
        sys.exit(f"get_rp2: {error}")
    print(tree or TREE)


if __name__ == "__main__":
    main()
