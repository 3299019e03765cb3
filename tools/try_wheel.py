#!/usr/bin/env python3
"""Install the wheel into a new environment of each PYTHON, and follow the quick start there.

The environment gets the wheel's requirements from the package index. The commands of the page have to
print what it shows; commands that need PyTorch are left out. Without PYTHON, each Python from 3.11 to
3.14 on the PATH is tried.

Example: make try-wheel
Example: tools/try_wheel.py python3.13
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "quickstart.md"
PYTHONS = [f"python3.{minor}" for minor in range(11, 15)]


def is_followed(python: str, wheel: Path) -> bool:
    """Return True if the page can be followed with the wheel in an environment of this Python."""
    with tempfile.TemporaryDirectory(prefix="picotorch-wheel-") as name:
        subprocess.run([python, "-m", "venv", name], check=True)
        installed = Path(name) / "bin" / "python"
        subprocess.run([installed, "-m", "pip", "install", "-q", wheel], check=True)
        done = subprocess.run([sys.executable, ROOT / "tools" / "pages.py", "--check", "--python",
                               installed, PAGE])
    return done.returncode == 0


def is_there(python: str) -> bool:
    """Return True if the Python starts. pyenv has a command even for a version that it hides."""
    if not shutil.which(python):
        return False
    return subprocess.run([python, "-V"], capture_output=True).returncode == 0


@click.command(help=__doc__)
@click.argument("pythons", nargs=-1, metavar="[PYTHON]...")
@click.option("--wheel", type=click.Path(exists=True, path_type=Path), metavar="FILE",
              help="The wheel; by default the only one in dist.")
def main(pythons, wheel):
    wheels = [wheel] if wheel else sorted((ROOT / "dist").glob("*.whl"))
    if len(wheels) != 1:
        raise click.ClickException(f"{len(wheels)} wheels in dist; call make wheel, or give --wheel")
    found = [python for python in pythons or PYTHONS if is_there(python)]
    missing = [python for python in pythons or PYTHONS if python not in found]
    if missing:
        click.echo(f"not installed: {', '.join(missing)}")
    results = {python: is_followed(python, wheels[0].resolve()) for python in found}
    for python, is_good in results.items():
        click.echo(f"{python}: {'quick start followed' if is_good else 'FAILED'}")
    is_complete = results and not (pythons and missing)
    sys.exit(0 if is_complete and all(results.values()) else 1)


if __name__ == "__main__":
    main()
