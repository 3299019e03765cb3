"""Build MicroPython's own ports with picotorch inside, and run scripts in them."""

import functools
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from picotorch.firmware import ports

TIMEOUT = 120  # seconds
REPOSITORY = Path(__file__).resolve().parents[2]
SCRIPT = REPOSITORY / "tests" / "boards" / "ports" / "models.py"
FIXTURES = REPOSITORY / "tests" / "fixtures"
SANITIZERS = "-fsanitize=address,undefined,float-cast-overflow -fno-sanitize-recover=all"


@functools.cache
def twin_lines(names):
    """Run the script under CPython: it prints two good runs of each model and a failure between."""
    models = [f"{name}={FIXTURES / name / 'model.pte'}" for name in names]
    lines = subprocess.check_output([sys.executable, SCRIPT, *models], text=True).splitlines()
    assert lines.count("None") == 4 and lines.count("heap 0") == 6
    assert sum("MemoryAllocationFailed (0x21): method pool" in line for line in lines) == 2
    return lines


def build_sanitized(programs, frozen):
    """Build the unix port with the kernels of some programs, and floats as stm32, nrf and samd have
    them.

    Only our sources are compiled with sanitizers: MicroPython's garbage collector reads all of the
    stack, and its exceptions leave functions, whose frames would stay poisoned.
    """
    arguments = ("CFLAGS_EXTRA=-DMICROPY_FLOAT_IMPL=1 -fsingle-precision-constant",
                 f"PT_MODULE_CFLAGS={SANITIZERS} --param asan-stack=0",
                 f"LDFLAGS_EXTRA={SANITIZERS}", "STRIP=")
    return ports.build("unix", programs, frozen, arguments=arguments).outputs[0]


def run_unix(program, *arguments):
    """Return the lines that the program prints. Fail if a sanitizer prints anything."""
    options = {"ASAN_OPTIONS": "detect_leaks=0", "UBSAN_OPTIONS": "print_stacktrace=1"}
    ended = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=TIMEOUT,
                           env=os.environ | options)
    assert (ended.returncode, ended.stderr) == (0, ""), (ended.stderr[-3000:], ended.stdout[-3000:])
    return ended.stdout.splitlines()


def need(*programs):
    """Skip the test if one of these programs is not installed."""
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")


def run_qemu(firmware, script, machine="mps2-an385", options=(), emulator="qemu-system-arm"):
    """Return the lines that a script prints at the raw REPL of the qemu port."""
    need(emulator)
    command = [emulator, "-machine", machine, "-nographic", "-monitor", "null",
               "-serial", "stdio", "-semihosting", *options, "-kernel", firmware]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL)
    timer = threading.Timer(TIMEOUT, process.kill)
    timer.start()
    try:
        _read(process.stdout, lambda found: found.endswith(b">>> "))  # before, a UART drops its input
        process.stdin.write(b"\x01" + Path(script).read_bytes() + b"\x04")
        process.stdin.flush()
        printed, error = _answer(process.stdout)
    finally:
        timer.cancel()
        process.kill()
        process.communicate()
    assert not error, (error, printed)
    return printed.splitlines()


def _answer(stream):
    """Read the output of a script at the raw REPL, and the traceback that ended it."""
    found = _read(stream, lambda found: found.count(b"\x04") == 2)
    printed, error, _ = found.partition(b"raw REPL; CTRL-B to exit\r\n>OK")[2].split(b"\x04")
    return printed.decode(), error.decode()


def _read(stream, is_all):
    """Read bytes from the board until there are enough."""
    found = b""
    while not is_all(found):
        more = stream.read(1)
        assert more, f"the board stopped: {found[-2000:]}"
        found += more
    return found
