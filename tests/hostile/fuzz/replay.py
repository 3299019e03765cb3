"""Run each input of a target once, without atheris. Print how many ended with which error, and the
inputs that ended otherwise or took too long.

    python replay.py file INPUT ...

An input is a file, or a folder or .tgz of files. The exit status is 1 if there was a finding.
"""

import collections
import importlib
import json
import sys
import tarfile
import time
import traceback
from pathlib import Path


def inputs(path):
    """Yield (name, bytes) of each input."""
    if path.suffix == ".tgz":
        with tarfile.open(path) as archive:
            for member in archive:
                yield member.name, archive.extractfile(member).read()
    elif path.is_dir():
        for found in sorted(path.iterdir()):
            yield found.name, found.read_bytes()
    else:
        yield path.name, path.read_bytes()


def replay(target, paths):
    """Return (counts by outcome, findings)."""
    counts, findings = collections.Counter(), []
    for path in paths:
        for name, data in inputs(path):
            start = time.process_time()
            print(name, file=sys.stderr, flush=True)  # the last line names the input of a crash
            try:
                counts[target.one_input(data)] += 1
            except Exception:
                findings.append(f"{name}: {traceback.format_exc(limit=-4)}")
            if time.process_time() - start > target.SECONDS:
                findings.append(f"{name}: {time.process_time() - start:.1f} s")
    return counts, findings


def main():
    target = importlib.import_module(sys.argv[1])
    counts, findings = replay(target, map(Path, sys.argv[2:]))
    print(json.dumps({"counts": counts, "findings": findings}, indent=1))
    sys.exit(bool(findings))


if __name__ == "__main__":
    main()
