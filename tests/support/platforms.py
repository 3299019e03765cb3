"""Compile C projects as the platforms of picotorch.package.platforms do."""

from pathlib import Path

from picotorch.package.platforms import PLATFORMS

TESTS = Path(__file__).resolve().parents[1]
SHIMS = TESTS / "host/platforms"  # the functions of platforms that projects call
EXAMPLE = TESTS.parent / "examples/c"
C_FLAGS = ["-std=gnu11", "-Os", "-ffunction-sections", "-fdata-sections", "-Wall", "-Wextra", "-Werror"]


def sources(folder: Path, platform: str) -> list[Path]:
    """Return the C files that a platform without a list of sources compiles: all in its folder."""
    return sorted((folder / PLATFORMS[platform].root).rglob("*.c"))
