"""Make a new environment with the wheel of this checkout."""

import subprocess
import sys
import sysconfig
from pathlib import Path

from picotorch.firmware import kernels_in_flash, native_module

ROOT = Path(__file__).resolve().parents[2]


def make_kernels_in_flash():
    """Build the kernels in flash for the wheel as `make wheel` does. The Makefile has built the
    firmware (make rp2)."""
    for board in kernels_in_flash.BOARDS:
        kernels_in_flash.build(board, {}, [], None, native_module.BUILD / board)


def build_wheel(folder):
    """Return the wheel that `make wheel` builds."""
    make_kernels_in_flash()
    subprocess.run([sys.executable, ROOT / "tools" / "make_wheel.py", "--output", folder], check=True,
                   stdout=subprocess.DEVNULL)
    (wheel,) = folder.glob("*.whl")
    return wheel


def make_environment(folder, wheel):
    """Return the Python of a new environment with the wheel, and with the packages that it needs from
    this one."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    python = folder / "bin" / "python"
    subprocess.run([sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-deps",
                    "--no-index", wheel], check=True)
    (site,) = folder.glob("lib/*/site-packages")
    (site / "packages.pth").write_text(sysconfig.get_path("platlib"))
    found = subprocess.check_output([python, "-c", "import picotorch; print(picotorch.__file__)"],
                                    text=True)
    assert Path(found).is_relative_to(site)
    return python
