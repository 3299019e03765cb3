"""Build a board that is a 32-bit process of this machine: MicroPython as on the boards, and the C
module and kernels with gcc's sanitizers, from tests/runtime/board32."""

import functools
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from picotorch.firmware import ports, selective
from picotorch.run.emulator import Result
from picotorch.run.job import Job
from support import replayed, targets

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "board32"
TIMEOUT = 60  # seconds
OPTIONS = {"ASAN_OPTIONS": "detect_leaks=0", "UBSAN_OPTIONS": "print_stacktrace=1"}


@functools.cache
def build():
    """Build the program. Skip the test if the compiler cannot make it."""
    if not replayed.has_sanitizers(32):
        pytest.skip("gcc has no sanitizers for 32 bits here (Debian: gcc-multilib)")
    with selective.locked(BUILD):
        found = subprocess.run([sys.executable, ROOT / "tools" / "get_micropython.py"],
                               capture_output=True, text=True)
        assert found.returncode == 0, found.stderr
        made = subprocess.run(
            ["make", "-s", "-j2", "-C", ROOT / "tests/runtime/board32",
             f"MPY_DIR={found.stdout.strip()}", f"PYTHON={sys.executable}"],
            capture_output=True, text=True, env=ports.environment())
        assert made.returncode == 0, made.stderr[-3000:]
    return BUILD / "firmware"


def run_script(script, job):
    """Run a script as targets.run_script does. Fail if a sanitizer prints anything."""
    firmware = build()
    job = job if isinstance(job, Job) else Job(job)
    job.add("script", targets._compiled(script))
    with tempfile.TemporaryDirectory() as folder:
        blob = Path(folder) / "job"
        blob.write_bytes(job.to_bytes())
        results = Path(folder) / "results"
        results.mkdir()
        ended = subprocess.run([firmware, blob], cwd=results, capture_output=True, text=True,
                               timeout=TIMEOUT, env=os.environ | OPTIONS)
        files = {path.name: path.read_bytes() for path in results.iterdir()}
    assert ended.returncode == 0, (ended.stderr[:3000], ended.stdout[-3000:])
    return Result(0, ended.stdout.splitlines(), files)
