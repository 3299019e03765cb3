#!/usr/bin/env python3
"""Write the versions and hashes of all Python packages that make installs: tools/requirements/*.txt.

  tools.txt      to build picotorch, to run it, to test it          make python
  export.txt     besides, ExecuTorch's exporter                     make conformance
  cuda.txt       besides, what PyTorch's builds with CUDA need      make conformance

Each version has the SHA-256 of all its files, for every platform and Python from 3.11 on, so that pip
(--require-hashes) takes no other. Needs uv (pip install uv), which asks the package index.

Example: tools/lock_packages.py
Example: tools/lock_packages.py --upgrade    takes newer versions where pyproject.toml allows them
"""

import argparse
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "tools" / "requirements"
HEADER = "# Written by tools/lock_packages.py.\n"
WITHOUT_DEPENDENCIES = ["tosa-tools==2026.5.0"]  # asks for another flatbuffers than executorch
# Builds that are on PyTorch's own index only: without CUDA, and 2 GB smaller.
CPU_BUILDS = {
    "torch==2.13.0": [
        # torch-2.13.0+cpu-cp311-cp311-manylinux_2_28_x86_64.whl
        "6746dbcbeb526eb61330b76b41ff1b4eb848951103a892eeb080dfa2b264667b",
    ],
}
CUDA = re.compile(r"(nvidia|cuda|triton)\b")


def resolve(extras, previous, upgrade):
    """Return the text of a requirements file for picotorch with these extras."""
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    command = [sys.executable, "-m", "uv", "pip", "compile", "--universal", "--generate-hashes"]
    command += ["--quiet", "--no-header", "--no-annotate", "--python-version", "3.11"]
    command += [f"--extra={extra}" for extra in extras]
    command += ["--upgrade"] * upgrade + ["pyproject.toml", "-"]
    if not upgrade:  # what was chosen before stays
        command += [f"--constraint={path}" for path in previous if path.exists()]
    return run(command, build)


def files_of(requirements):
    """Return the text of a requirements file of these packages alone."""
    command = [sys.executable, "-m", "uv", "pip", "compile", "--universal", "--generate-hashes"]
    command += ["--quiet", "--no-header", "--no-annotate", "--no-deps", "-"]
    return run(command, requirements)


def run(command, requirements):
    done = subprocess.run(
        command, input="\n".join(requirements), cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    if done.returncode != 0:
        sys.exit("lock_packages: uv found no versions that fit (without uv: pip install uv)")
    return done.stdout


def entries(text):
    """Return the entries of a requirements file, each with the lines of its hashes."""
    found = re.findall(r"^\S.*\n(?: .*\n)*", text, flags=re.MULTILINE)
    return [entry.rstrip("\n") + cpu_builds(entry) + "\n" for entry in found]


def cpu_builds(entry):
    hashes = CPU_BUILDS.get(entry.split(" ", 1)[0], [])
    return "".join(f" \\\n    --hash=sha256:{digest}" for digest in hashes)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--upgrade", action="store_true", help="take newer versions")
    upgrade = parser.parse_args().upgrade
    FOLDER.mkdir(exist_ok=True)
    tools, export, cuda = (FOLDER / f"{name}.txt" for name in ("tools", "export", "cuda"))
    test = entries(resolve(["test"], [tools], upgrade))
    tools.write_text(HEADER + "".join(test))
    every = entries(resolve(["test", "export"], [tools, export, cuda], upgrade))
    every += entries(files_of(WITHOUT_DEPENDENCIES))
    besides = [entry for entry in every if entry not in test]
    export.write_text(HEADER + "".join(e for e in besides if not CUDA.match(e)))
    cuda.write_text(HEADER + "".join(e for e in besides if CUDA.match(e)))


if __name__ == "__main__":
    main()
