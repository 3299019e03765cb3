"""Build the twin's extension a second time, with the compiler's address and undefined-behaviour
sanitizers.

python sanitized.py FOLDER COMPILER FLAGS       # builds it into a folder
"""

import ctypes
import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "host" / "_picotorch" / "build.py"
FOLDER = ROOT / "build" / "sanitized"
SANITIZERS = "-fsanitize=address,undefined,float-cast-overflow"
# Python's own flags have -fwrapv, which defines overflows. If a damaged program puts an output over an
# input, memcpy's ranges overlap, but only accesses outside its memories matter.
FLAGS = ("-O1 -g -fno-wrapv -fno-sanitize-recover=all -DPT_MAX_STEPS=10000 "
         "-Dmemcpy=memmove -D__builtin_memcpy=__builtin_memmove")


def _libraries():
    """Return the paths of the sanitizers' libraries; [] if the compiler has none."""
    paths = []
    for name in ("libasan.so", "libubsan.so"):
        found = subprocess.run(["gcc", f"-print-file-name={name}"], capture_output=True, text=True)
        if found.returncode or not os.path.isabs(found.stdout.strip()):
            return []
        paths.append(found.stdout.strip())
    return paths


def _is_built(folder):
    built = list(folder.glob("_picotorch_c*.so"))
    sources = [*(ROOT / "kernels").rglob("*.[chi]*"), *(ROOT / "kernels").rglob("*.def"),
               *BUILD.parent.glob("*.c"), BUILD,
               Path(__file__)]
    return bool(built) and all(path.stat().st_mtime < built[0].stat().st_mtime for path in sources)


def build(folder, compiler="gcc", compiling=SANITIZERS, linking=SANITIZERS):
    """Build the extension with a compiler's sanitizers into a folder, unless it exists already."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if _is_built(folder):
            return
        command = [sys.executable, BUILD, folder]
        flags = {"CC": compiler, "CFLAGS": f"{FLAGS} {compiling}", "LDFLAGS": linking}
        built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True,
                               env=os.environ | flags)
        assert built.returncode == 0, built.stderr


def environment():
    """Return an environment for a python that uses the sanitized extension, built if necessary; None if
    the compiler has no sanitizers."""
    libraries = _libraries()
    if not libraries:
        return None
    build(FOLDER)
    return os.environ | {"LD_PRELOAD": " ".join(libraries), "PYTHONPATH": str(FOLDER),
                         "ASAN_OPTIONS": "detect_leaks=0",
                         "UBSAN_OPTIONS": "print_stacktrace=1"}


def run(*arguments):
    """Run a python with these arguments on the sanitized extension. Skip the test without
    sanitizers."""
    found = environment()
    if found is None:
        pytest.skip("gcc has no libasan here")
    path = os.pathsep.join([found["PYTHONPATH"], *map(os.path.abspath, sys.path)])
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True,
                          env=found | {"PYTHONPATH": path})


_POISON = "__asan_poison_memory_region", "__asan_unpoison_memory_region"
_FUNCTIONS = [getattr(ctypes.CDLL(None), name, None) for name in _POISON]


def is_active():
    """Return True if this process runs on the sanitized extension."""
    return _FUNCTIONS[0] is not None


def poison(regions):
    """Let each access of the extension to these (address, size) end the process with an error."""
    _apply(_FUNCTIONS[0], regions)


def unpoison(regions):
    _apply(_FUNCTIONS[1], regions)


def _apply(function, regions):
    for address, size in regions:
        function(ctypes.c_size_t(address), ctypes.c_size_t(size))


if __name__ == "__main__":
    build(Path(sys.argv[1]), *sys.argv[2:4], linking="")
