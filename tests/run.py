"""Run all tests. Tests that call kernels run on the extension with sanitizers, others on the usual one.

    python tests/run.py -n auto -k conv        # pytest's arguments, for both
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from support import sanitized

BYTECODE = Path(__file__).resolve().parents[1] / "build" / "pycache"

NO_TESTS = 5  # pytest's exit status


def keep_bytecode():
    """Store bytecode in build/. Otherwise each worker, and each command that a test starts, may compile
    all of Python's files again. Bytecode of files in temporary folders is useless to a later run."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = str(BYTECODE)
    temporary = Path(tempfile.gettempdir())
    shutil.rmtree(BYTECODE / temporary.relative_to(temporary.anchor), ignore_errors=True)


def run(expression, arguments, environment=None):
    # Tests of one file run mostly in one process, which makes shared fixtures once
    command = [sys.executable, "-m", "pytest", "--dist", "worksteal", *arguments, "-m", expression]
    print(f"\n== pytest -m '{expression}'", flush=True)
    return subprocess.run(command, env=environment).returncode


def main():
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("-m", dest="expressions", action="append", default=[])
    known, arguments = parser.parse_known_args()
    given = "".join(f"({one}) and " for one in known.expressions)
    keep_bytecode()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
    environment = sanitized.environment()
    if environment is None:
        print("gcc has no libasan here: kernels are tested without sanitizers")
    kernels = (environment or os.environ) | {"PICOTORCH_TESTS": "kernels"}
    statuses = {run(f"{given}not kernels", arguments), run(f"{given}kernels", arguments, kernels)}
    if len(statuses) > 1:
        statuses.discard(NO_TESTS)
    return max(statuses)


if __name__ == "__main__":
    sys.exit(main())
