#!/usr/bin/env python3
"""Write the versions and hashes of all Python packages that make installs: tools/requirements/*.txt.

  tools.txt          to build picotorch, to run it, to test it          make python
  export.txt         in addition, ExecuTorch's exporter without PyTorch make conformance
  torch_cpu.txt      PyTorch without CUDA, if pip finds it              make conformance
  torch.txt          otherwise PyTorch from the index, with CUDA        make conformance
  architectures.txt  timm and transformers                              make architectures
  site.txt           mkdocs-material and mkdocstrings                   make site
  release.txt        auditwheel and zig                                 make release
  fuzz.txt           atheris                                            make fuzz

Each version has the SHA-256 of all its files, for every platform and Python from 3.11 on, so that pip
(--require-hashes) accepts no other file. The program needs uv (pip install uv), which queries the
package index.

Example: tools/lock_packages.py
Example: tools/lock_packages.py --upgrade    selects newer versions if pyproject.toml allows them
"""

import argparse
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "tools" / "requirements"
WITHOUT_DEPENDENCIES = ["tosa-tools==2026.5.0"]  # requires another flatbuffers than executorch
FUZZ = ["atheris==3.0.0"]
# Built by PyTorch for its own index, and 2 GB smaller.
TORCH_CPU = """\
torch==2.13.0+cpu \\
    --hash=sha256:6746dbcbeb526eb61330b76b41ff1b4eb848951103a892eeb080dfa2b264667b
"""  # torch-2.13.0+cpu-cp311-cp311-manylinux_2_28_x86_64.whl
TORCH = re.compile(r"(torch==|nvidia|cuda|triton)")


def resolve(extras, previous, upgrade):
    """Return the text of a requirements file for picotorch with these extras."""
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    command = [sys.executable, "-m", "uv", "pip", "compile", "--universal", "--generate-hashes"]
    command += ["--quiet", "--no-header", "--no-annotate", "--python-version", "3.11"]
    command += [f"--extra={extra}" for extra in extras]
    command += ["--upgrade"] * upgrade + ["pyproject.toml", "-"]
    if not upgrade:  # keeps the selected versions
        command += [f"--constraint={path}" for path in previous if path.exists()]
    return run(command, build)


def files_of(requirements):
    """Return the text of a requirements file with only these packages."""
    command = [sys.executable, "-m", "uv", "pip", "compile", "--universal", "--generate-hashes"]
    command += ["--quiet", "--no-header", "--no-annotate", "--no-deps", "-"]
    return run(command, requirements)


def run(command, requirements):
    """Return the output of a command with the requirements on stdin; exit if it fails."""
    done = subprocess.run(
        command, input="\n".join(requirements), cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    if done.returncode != 0:
        sys.exit("lock_packages: uv found no versions that fit (without uv: pip install uv)")
    return done.stdout


def entries(text):
    """Return the entries of a requirements file, each with the lines of its hashes."""
    return re.findall(r"^\S.*\n(?: .*\n)*", text, flags=re.MULTILINE)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--upgrade", action="store_true", help="take newer versions")
    upgrade = parser.parse_args().upgrade
    FOLDER.mkdir(exist_ok=True)
    tools, export, torch, built = (
        FOLDER / f"{name}.txt" for name in ("tools", "export", "torch", "architectures"))
    test = entries(resolve(["test"], [tools], upgrade))
    every = entries(resolve(["test", "export"], [tools, export, torch], upgrade))
    every += entries(files_of(WITHOUT_DEPENDENCIES))
    besides = [entry for entry in every if entry not in test]
    write(tools, test)
    write(export, [entry for entry in besides if not TORCH.match(entry)])
    write(torch, [entry for entry in besides if TORCH.match(entry)])
    further = entries(resolve(["test", "export", "architectures"], [tools, export, torch, built],
                              upgrade))
    write(built, [entry for entry in further if entry not in every])
    for extra in ("site", "release"):
        path = FOLDER / f"{extra}.txt"
        found = entries(resolve(["test", extra], [tools, path], upgrade))
        write(path, [entry for entry in found if entry not in test])
    write(FOLDER / "torch_cpu.txt", [TORCH_CPU])
    write(FOLDER / "fuzz.txt", entries(files_of(FUZZ)))


def write(path, chosen):
    path.write_text("# Written by tools/lock_packages.py.\n" + "".join(chosen))


if __name__ == "__main__":
    main()
