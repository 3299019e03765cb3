"""Test the figures in the pages: a program writes each, or a test compares it, or code or the outside
world defines it."""

import re
from pathlib import Path

import pytest
from picotorch.host.operators import supported_operators

pytestmark = pytest.mark.check

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("boards/*.md"),
                *ROOT.glob("examples/*/README.md")])

# Output of the repository's programs, and code: it runs or compiles, and its output is compared
WRITTEN = re.compile(r"<!-- (?!needs torch|end)[\w ]+ -->\n.*?<!-- end -->"
                     r"|```(?:console|python|c)\n.*?```", re.DOTALL)
COMMAND = re.compile(r"`(?:picotorch|make|mpremote|tests/|-)[^`]*`")
# Rows of sizes, which test_examples.py compares
SIZES = re.compile(r"^\|( [\d,]+ \|)+$", re.MULTILINE)

NUMBER = r"-?(?<![\w.,/#-])\d[\d,]*(?:\.\d+)?"
UNITS = ("B", "KB", "MB", "GB", "KiB", "MiB", "GiB", "bytes?", "ns", "ms", "s", "microseconds?",
         "milliseconds?", "seconds?", "minutes?", "hours?", "kHz", "MHz", "GHz", "instructions?",
         "cycles?", "MACs?", "steps", "times", "%", "percent", "dB", "million", "operators?",
         "architectures?", "models?", "files", "points", "tests")
FIGURE = re.compile(rf"{NUMBER}(?:,?\s(?:to|or|and|of)\s{NUMBER})*[\s-]?(?:{'|'.join(UNITS)})(?![\w/])"
                    r"|(?<![\w.,#])\d{1,3}(?:,\d{3})+(?!\d)"  # 1,024; a comma is not part of a name
                    r"|(?<![\w.])\d*\.\d+(?= of)"  # .67 of
                    r"|(?<=\S \| )\d+(?= \|)")  # a cell of a table

# A limit of the code: a file and the text in it that sets the limit
LIMITS = {
    "128 MiB": ("kernels/include/picotorch/config.h", "#define PT_PROGRAM_LIMIT 0x8000000\n"),
    "1 GiB": ("kernels/include/picotorch/config.h", "#define PT_PROGRAM_LIMIT 0x40000000\n"),
    "10,000,000 instructions": ("kernels/include/picotorch/config.h",
                                "#define PT_MAX_STEPS 10000000\n"),
    "65,536 steps": ("kernels/include/picotorch/kernel.h", "PT_POLL_WORK = 1 << 16"),
    "1 MiB": ("host/picotorch/host/npz.py", "SPARE = 1 << 20 "),
    "3 %": ("host/picotorch/compile/packing.py", "MIN_GAIN = 0.03 "),
    "5 %": ("host/picotorch/compile/compiling.py", "_GAIN = 0.05 "),
    "20 dB": ("host/picotorch/export/report.py", "_ROUGH = 20 "),
    "15 dB": ("host/picotorch/export/report.py", "_FAR = 15 "),
    "10 dB": ("host/picotorch/export/report.py", "POOR = 10 "),
    "3 dB": ("host/picotorch/export/report.py", "BELOW_FAKE = 3 "),
    "512 KB": ("port/upstream/rp2/RPI_PICO/mpconfigboard.h", "ROMFS_BYTES (512 * 1024)"),
    "768 KB": ("port/upstream/rp2/RPI_PICO/mpconfigboard.h", "STORAGE_BYTES (768 * 1024)"),
    "1 MB": ("port/upstream/rp2/RPI_PICO2/mpconfigboard.h", "ROMFS_BYTES (1024 * 1024)"),
    "2 MB": ("port/upstream/rp2/RPI_PICO2/mpconfigboard.h", "STORAGE_BYTES (2048 * 1024)"),
    "1,024": ("port/firmware/mpconfigrepl.h", "MICROPY_REPL_STDIN_BUFFER_MAX (1024)"),
    "100 KB": ("tests/boards/test_kernels_in_flash.py", "FREE = 100 * 1024 "),
}
# Figures of the outside world: data sheets, data sets, the definition of decibels
OUTSIDE = {
    "boards/README.md": ("8 MHz", "16 MHz", "25 MHz", "50 MHz", "168 MHz"),
    "docs/export.md": ("40 dB", "1 %", "10 %", "6 dB"),
    "examples/image/README.md": ("1,797", "784 bytes"),
    "examples/keyword_spotting/README.md": ("8 kHz",),
    "examples/knock/README.md": ("40 ms",),
}


def figures(page: Path) -> set[str]:
    """Return the figures in the text of a page that nothing writes or compares."""
    text = page.read_text()
    for kept in (WRITTEN, COMMAND, SIZES):
        text = kept.sub("", text)
    return {re.sub(r"\s+", " ", found) for found in FIGURE.findall(text)}


@pytest.mark.parametrize("page", [pytest.param(page, id=str(page.relative_to(ROOT))) for page in PAGES])
def test_a_page_has_no_figure_that_nothing_keeps(page):
    kept = {*LIMITS, f"{len(supported_operators())} operators"}
    assert not figures(page) - kept - {*OUTSIDE.get(str(page.relative_to(ROOT)), ())}


@pytest.mark.parametrize("figure", LIMITS)
def test_a_limit_is_that_of_the_code(figure):
    path, line = LIMITS[figure]
    assert line in (ROOT / path).read_text()
