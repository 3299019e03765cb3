#!/usr/bin/env python3
"""Export the programs of release_programs.py with releases of ExecuTorch; write tests/models/releases.

Needs the `export` extra, and for each release 8 GB of disk and some minutes: the program installs the
wheels of ExecuTorch and PyTorch into a folder of build/, and removes it afterwards. The last bits of
float outputs depend on the CPU.
"""

import argparse
import hashlib
import json
import logging
import shutil
import subprocess
import sys
import venv
import warnings
from pathlib import Path

import numpy as np

_TESTS = Path(__file__).resolve().parents[1]
_BUILD = _TESTS.parent / "build" / "releases"
_RELEASES = Path(__file__).resolve().parent / "releases"
_PROGRAMS = Path(__file__).resolve().parent / "release_programs.py"

sys.path.insert(0, str(_TESTS))
# Releases, each with the PyTorch that it needs
_TORCH = {"1.0.1": "2.9.1", "1.1.0": "2.10.0", "1.2.0": "2.11.0", "1.3.1": "2.12.0", "1.4.1": "2.13.0",
          "1.5.1": "2.13.0"}
_BESIDE = ("tosa-tools==2026.5.0", "ml_dtypes==0.5.1")  # that the Cortex-M backend imports


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--release", choices=_TORCH, action="append", help="this one (repeatable)")
    parser.add_argument("--exported", metavar="DIR", type=Path,
                        help="folder that has the programs of release_programs.py in DIR/RELEASE")
    return parser.parse_args()


def export(release: str, folder: Path) -> None:
    """Install a release, call release_programs.py with it, and remove it."""
    python = _BUILD / release / "bin" / "python"
    venv.create(python.parents[1], with_pip=True, clear=True)
    install = [python, "-m", "pip", "install", "-q", "--no-cache-dir"]
    subprocess.run([*install, f"executorch=={release}", f"torch=={_TORCH[release]}"], check=True)
    subprocess.run([*install, "--no-deps", *_BESIDE], check=True)
    subprocess.run([python, _PROGRAMS, folder], check=True)
    shutil.rmtree(python.parents[1])


def write_program(source: Path, target: Path, name: str) -> dict | None:
    """Copy a program with its arrays. Return its entry in the index, None for a bundled program."""
    from models.zoo import exporter, store

    target.mkdir(parents=True)
    for path in sorted(source.iterdir()):
        if path.suffix == ".npz":
            arrays = np.load(path)
            prefix = "in" if path.name.startswith("in") else "out"
            store.write_arrays(target / path.name, prefix,
                               [arrays[f"{prefix}{i}"] for i in range(len(arrays.files))])
        else:
            shutil.copy(path, target)
    if not (target / "model.pte").exists():
        return None
    pte = (target / "model.pte").read_bytes()
    data = sorted(path.name for path in target.glob("*.ptd"))
    return {
        "name": name,
        "pte_bytes": len(pte),
        "sha256": hashlib.sha256(pte).hexdigest(),
        "refused": [],
        **({"data": data} if data else {}),
        "reference": "dialect" if source.name.startswith("int8_") else "executorch",
        "methods": exporter.describe_methods(exporter.read_program(pte), []),
        "runs": [{"method": "forward", "expected": path.name.replace("inputs", "expected"),
                  "stride": 1, "inputs": path.name} for path in sorted(target.glob("inputs*.npz"))],
    }


def write_release(release: str, exported: Path) -> list[dict]:
    """Write the programs of a release, and return their entries in the index."""
    shutil.rmtree(_RELEASES / release, ignore_errors=True)
    entries = [write_program(source, _RELEASES / release / source.name, f"{release}/{source.name}")
               for source in sorted(exported.iterdir())]
    return [entry for entry in entries if entry]


def write_index(entries: list[dict]) -> None:
    """Merge the entries into index.json, sorted by name."""
    index = _RELEASES / "index.json"
    known = json.loads(index.read_text())["fixtures"] if index.exists() else []
    releases = {entry["name"].partition("/")[0] for entry in entries}
    kept = [entry for entry in known if entry["name"].partition("/")[0] not in releases]
    lines = ",\n".join(json.dumps(entry)
                       for entry in sorted(kept + entries, key=lambda entry: entry["name"]))
    index.write_text(f'{{"fixtures": [\n{lines}\n]}}\n')


def main() -> int:
    logging.disable(logging.WARNING)
    warnings.filterwarnings("ignore")
    arguments = parse_arguments()
    for release in arguments.release or _TORCH:
        folder = (arguments.exported or _BUILD / "programs") / release
        if not arguments.exported:
            shutil.rmtree(folder, ignore_errors=True)
            export(release, folder)
        write_index(write_release(release, folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
