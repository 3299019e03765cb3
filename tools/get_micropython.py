#!/usr/bin/env python3
"""Get the MicroPython v1.25.0 source tree and print its path.

The tool uses the first of these trees that works: the tree that MICROPYTHON_DIR names, in place; the
tree of an earlier call in build/micropython; Debian's source package, through a private apt
configuration with this machine's mirror; the release's commit, through git. It prints its progress to
stderr.

With --ports it gets a second tree, build/micropython-ports, which also has MicroPython's own ports
unix, qemu and rp2, and the sources that they are built from.

A tree that this tool got contains the release's files that a build reads, byte for byte, and no other
file, which make or Python might run. Their SHA-256 hashes are in micropython.sha256, those of the
ports' files in micropython_ports.sha256, and every call compares them. A tree that MICROPYTHON_DIR
names belongs to its user: it has to be of that version, and the tool only prints the differences.

Example: tools/get_micropython.py
Example: tools/get_micropython.py --ports
Example: MICROPYTHON_DIR=$HOME/micropython tools/get_micropython.py
"""

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"

VERSION = (1, 25, 0)
GIT_URL = "https://github.com/micropython/micropython"
GIT_TAG = "v1.25.0"
GIT_COMMIT = "f498a16c7db6d4b2de200b3e0856528dfe0613c3"  # a tag can be moved
DIR_VARIABLE = "MICROPYTHON_DIR"
STDERR = 2  # the file that commands write to

DEBIAN_PACKAGE = "micropython"
DEBIAN_VERSION = "1.25.0+ds-1"
DEBIAN_SUITE = "trixie"
# Debian's own suites, by code name and by role: their mirror has DEBIAN_SUITE, too.
DEBIAN_SUITES = {
    *("bookworm", "trixie", "forky", "sid"),
    *("oldstable", "stable", "testing", "unstable"),
}
ORIG_TARBALL = "micropython_1.25.0+ds.orig.tar.xz"
SHA256 = {
    ORIG_TARBALL: (
        "7b25be99a502f070b2de81dafc08da7051d992325d6e67daa9045a918fffdbea"
    ),
    "micropython_1.25.0+ds-1.debian.tar.xz": (
        "87cd89f7900c86b963885dabe25acf3e5348815993f1500278ad8f6464465af4"
    ),
}

# Output of sha256sum: for the sources of our firmware, and for the further files of MicroPython's own
# ports.
HASHES = (ROOT / "tools" / "micropython.sha256",)
PORTS_HASHES = (*HASHES, ROOT / "tools" / "micropython_ports.sha256")

# One file of every part of the tree that the firmware needs.
NEEDED_FILES = (
    "py/mkenv.mk",
    "py/mkrules.mk",
    "py/py.mk",
    "py/persistentcode.c",
    "py/nlrthumb.c",
    "extmod/extmod.mk",
    "lib/libm/math.c",
    "mpy-cross/Makefile",
    "shared/libc/string0.c",
    "shared/readline/readline.c",
    "shared/runtime/gchelper_thumb2.s",
    "shared/runtime/pyexec.c",
    "tools/makemanifest.py",
    "tools/mpy-tool.py",
    "tools/mpy_ld.py",
)

APT_CONFIGURATION = """\
{acquire}
Dir::Etc::Main "/dev/null";
Dir::Etc::Parts "/dev/null";
Dir::Etc::SourceList "{sources}";
Dir::Etc::SourceParts "/dev/null";
Dir::State::Lists "{state}/lists";
Dir::Cache "{state}/cache";
APT::Sandbox::User "{user}";
"""


class GetError(Exception):
    """An attempt to get the tree failed; the message has the reason."""


def say(text):
    """Print the progress to stderr; stdout has the path only."""
    print(f"get_micropython: {text}", file=sys.stderr, flush=True)


# -- check of a tree ----------------------------------------------------------------


def tree_version(tree):
    """Return (major, minor, micro) of a MicroPython tree. Raises GetError if it has none."""
    try:
        text = (tree / "py" / "mpconfig.h").read_text()
    except OSError as error:
        raise GetError(f"{tree} is no MicroPython tree: it has no py/mpconfig.h") from error
    found = dict(re.findall(r"#define MICROPY_VERSION_(\w+) (\d+)", text))
    try:
        return tuple(int(found[part]) for part in ("MAJOR", "MINOR", "MICRO"))
    except KeyError as error:
        raise GetError(f"{tree}/py/mpconfig.h does not define MICROPY_VERSION_{error}") from error


def check_tree(tree):
    """Raise GetError unless tree is MicroPython VERSION with every part that the firmware needs."""
    version = tree_version(tree)
    if version != VERSION:
        have, required = (".".join(map(str, v)) for v in (version, VERSION))
        raise GetError(f"{tree} is MicroPython {have}, wanted is {required}")
    missing = [name for name in NEEDED_FILES if not (tree / name).is_file()]
    if missing:
        raise GetError(f"{tree} lacks {', '.join(missing)}")


def sha256(path):
    """Return the SHA-256 of a file in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def stored_hashes(lists=HASHES):
    """Return {file below the tree: SHA-256} of all files that a build reads."""
    lines = [line for path in lists for line in path.read_text().splitlines()]
    return {name: digest for digest, name in (line.split("  ", 1) for line in lines)}


def changed_files(tree, lists=HASHES):
    """Return the names of files that a tree lacks, or that have other bytes."""
    return [
        name
        for name, digest in stored_hashes(lists).items()
        if not (tree / name).is_file() or sha256(tree / name) != digest
    ]


def added_files(tree, lists=HASHES):
    """Return the names of a tree's files that have no stored hash, and of all its links, sorted."""
    stored = stored_hashes(lists)
    added = []
    for folder, folders, files in os.walk(tree):
        links = [name for name in (*folders, *files) if Path(folder, name).is_symlink()]
        for name in {*files, *links}:
            path = Path(folder, name).relative_to(tree).as_posix()
            if name in links or path not in stored:
                added.append(path)
    return sorted(added)


def check_content(tree, lists=HASHES):
    """Raise GetError unless a tree has exactly the release's files that a build reads."""
    for what, names in (("changed", changed_files(tree, lists)), ("added", added_files(tree, lists))):
        if names:
            others = f" and {len(names) - 1} more" if len(names) > 1 else ""
            raise GetError(f"{tree} is not {GIT_TAG} as released: {names[0]}{others} {what}")


def remove_bytecode(tree):
    """Remove the folders of Python bytecode of a tree's tools."""
    for folder, folders, _ in os.walk(tree):
        if "__pycache__" in folders and not Path(folder, "__pycache__").is_symlink():
            shutil.rmtree(Path(folder, "__pycache__"))
            folders.remove("__pycache__")


def take_over(source, tree, lists=HASHES):
    """Copy the files of another tree that have a stored hash into a new tree."""
    for name in stored_hashes(lists):
        if (source / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source / name, tree / name)


# -- Debian's source package --------------------------------------------------------


@dataclass(frozen=True)
class Source:
    """A mirror of the machine's apt configuration; options as in a one-line entry."""

    uri: str
    suite: str
    components: tuple[str, ...]
    options: tuple[str, ...] = ()


def parse_list(text):
    """Yield the Source of each entry of a file in one-line style (sources.list)."""
    for line in text.splitlines():
        match = re.match(r"deb(?:-src)?\s+(?:\[([^]]*)\]\s+)?(\S+)\s+(\S+)\s+([^#]+)", line.strip())
        if match:
            options, uri, suite, components = match.groups()
            yield Source(uri, suite, tuple(components.split()), kept_options(options or ""))


def kept_options(text):
    """Return the options of a one-line entry that state whom to trust."""
    kept = ("signed-by=", "trusted=")
    return tuple(word for word in text.split() if word.lower().startswith(kept))


def parse_deb822(text):
    """Yield the Source of each URI and suite of a file in deb822 style (*.sources)."""
    text = re.sub(r"^#.*\n?", "", text, flags=re.MULTILINE)
    for stanza in re.split(r"\n\s*\n", text):
        fields = {
            name.lower(): value.strip()
            for name, value in re.findall(
                r"^([\w-]+):((?:.*)(?:\n[ \t]+.*)*)", stanza, flags=re.MULTILINE
            )
        }
        if "uris" not in fields or fields.get("enabled", "yes").lower() in ("no", "false"):
            continue
        options = tuple(
            f"{name}={fields[name]}"
            for name in ("signed-by", "trusted")
            if name in fields and "\n" not in fields[name]
        )
        components = tuple(fields.get("components", "").split())
        for uri in fields["uris"].split():
            for suite in fields.get("suites", "").split():
                yield Source(uri, suite, components, options)


def debian_mirrors():
    """Return the sources of the machine's apt configuration that are Debian's main archive."""
    etc = Path("/etc/apt")
    files = [etc / "sources.list", *sorted((etc / "sources.list.d").glob("*"))]
    sources = []
    for path in files:
        if path.is_file() and path.suffix == ".list":
            sources += parse_list(path.read_text())
        elif path.is_file() and path.suffix == ".sources":
            sources += parse_deb822(path.read_text())
    mirrors = [
        Source(source.uri, DEBIAN_SUITE, ("main",), source.options)
        for source in sources
        if source.suite in DEBIAN_SUITES
        and "main" in source.components
        and not source.uri.startswith("cdrom:")
    ]
    return list(dict.fromkeys(mirrors))


def run(command, environment=None, folder=None):
    """Run a command with its output on stderr. Raises GetError if it fails."""
    say(" ".join(command))
    try:
        done = subprocess.run(command, env=environment, cwd=folder, stdout=STDERR)
    except FileNotFoundError as error:
        raise GetError(f"{command[0]} is not installed") from error
    if done.returncode != 0:
        raise GetError(f"'{' '.join(command)}' failed with status {done.returncode}")


def private_apt(state, mirror, kinds=("deb-src",)):
    """Write an apt configuration of our own below state, and return the environment that uses it.

    kinds: of packages, "deb-src" sources, "deb" binary ones. The settings for access to mirrors, such
    as proxies, are those of the machine. Its sources, lists and hooks are not used.
    """
    for folder in ("lists/partial", "cache/archives/partial"):
        (state / folder).mkdir(parents=True, exist_ok=True)
    options = f"[{' '.join(mirror.options)}] " if mirror.options else ""
    entry = f"{options}{mirror.uri} {mirror.suite} {' '.join(mirror.components)}\n"
    (state / "sources.list").write_text("".join(f"{kind} {entry}" for kind in kinds))
    dump = subprocess.run(["apt-config", "dump", "Acquire"], capture_output=True, text=True)
    configuration = APT_CONFIGURATION.format(
        acquire=dump.stdout,
        sources=state / "sources.list",
        state=state,
        user="root" if os.geteuid() == 0 else "",
    )
    (state / "apt.conf").write_text(configuration)
    return {**os.environ, "APT_CONFIG": str(state / "apt.conf")}


def check_package(folder, hashes=SHA256):
    """Raise GetError unless the files of a package have the stored hashes."""
    for name, digest in hashes.items():
        path = folder / name
        if not path.is_file():
            raise GetError(f"{name} was not downloaded")
        if sha256(path) != digest:
            path.unlink()
            raise GetError(f"{name} has another SHA-256 than {digest}")


def unpack(tarball, tree, lists=HASHES):
    """Unpack a tarball with one top folder into tree."""
    say(f"unpacking {tarball.name}")
    with tempfile.TemporaryDirectory(dir=tree.parent) as folder:
        with tarfile.open(tarball) as archive:
            archive.extractall(folder)
        (top,) = Path(folder).iterdir()
        take_over(top, tree, lists)


def download(folder, mirror):
    """Download the source package from a mirror into folder. Raises GetError if it has none."""
    environment = private_apt(folder / "apt", mirror)
    run(["apt-get", "-q", "update"], environment)
    package = f"{DEBIAN_PACKAGE}={DEBIAN_VERSION}"
    run(["apt-get", "-q", "source", "--download-only", package], environment, folder)
    check_package(folder)


def get_from_debian(tree, lists=HASHES):
    """Get tree from Debian's source package. Raises GetError if this fails."""
    if shutil.which("apt-get") is None:
        raise GetError("this machine has no apt-get")
    folder = BUILD / "debian"
    folder.mkdir(parents=True, exist_ok=True)
    mirrors = debian_mirrors()
    if not mirrors:
        raise GetError("the machine's apt configuration names no Debian mirror")
    reasons = []
    for mirror in mirrors:
        try:
            download(folder, mirror)
            unpack(folder / ORIG_TARBALL, tree, lists)
            return
        except GetError as error:
            reasons.append(str(error))
    raise GetError("; ".join(reasons))


# -- git ----------------------------------------------------------------------------


def get_from_git(tree, lists=HASHES):
    """Get tree from the release's commit. Raises GetError if this fails."""
    with tempfile.TemporaryDirectory(dir=tree.parent) as folder:
        git = ["git", "-C", folder]
        run([*git, "init", "--quiet"])
        run([*git, "fetch", "--quiet", "--depth", "1", GIT_URL, GIT_COMMIT])
        run([*git, "checkout", "--quiet", GIT_COMMIT])
        take_over(Path(folder), tree, lists)


# -- main ---------------------------------------------------------------------------


def get(tree, lists=HASHES):
    """Get tree from the first source that works. Raises GetError with the reason of each failure."""
    tree.parent.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(tree, ignore_errors=True)
    reasons = []
    for name, get_from in (("Debian's source package", get_from_debian), ("git", get_from_git)):
        try:
            get_from(tree, lists)
            check_tree(tree)
            check_content(tree, lists)
            say(f"MicroPython {GIT_TAG} from {name} is in {tree}")
            return
        except GetError as error:
            say(f"{name}: {error}")
            reasons.append(f"  {name}: {error}")
            shutil.rmtree(tree, ignore_errors=True)
    raise GetError(
        "no way to MicroPython worked:\n" + "\n".join(reasons) + "\n"
        f"Install git, or set {DIR_VARIABLE} to a MicroPython {GIT_TAG} tree."
    )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--ports", action="store_true", help="with MicroPython's own ports unix, qemu and rp2"
    )
    ports = parser.parse_args().ports
    lists = PORTS_HASHES if ports else HASHES
    named = os.environ.get(DIR_VARIABLE)
    tree = Path(named).resolve() if named else BUILD / f"micropython{'-ports' if ports else ''}"
    try:
        if named:
            check_tree(tree)
            changed = len(changed_files(tree, lists))
            if changed:
                say(f"{tree} differs from {GIT_TAG} as released in {changed} files: used as it is")
        elif tree.exists():
            remove_bytecode(tree)
            check_tree(tree)
            check_content(tree, lists)
        else:
            get(tree, lists)
    except GetError as error:
        remedy = "" if named or not tree.exists() else f"; remove {tree} to fetch it again"
        sys.exit(f"get_micropython: {error}{remedy}")
    print(tree)


if __name__ == "__main__":
    main()
