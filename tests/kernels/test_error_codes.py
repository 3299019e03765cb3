"""Test that a kernel ends at the first error: it tests the code of each call, or returns the code."""

import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

KERNELS = Path(__file__).resolve().parents[2] / "kernels"
FOLDERS = "portable", "quantized", "cortex_m", "extra", "arch"
ENDS = (".c", ".h", ".inc")
SOURCES = [path for folder in FOLDERS for path in sorted((KERNELS / folder).rglob("*.*"))
           if path.suffix in ENDS]
CHECKED = "__attribute__((warn_unused_result)) "
FUNCTION = re.compile(r"(?m)^((?:PT_MUST_USE |static |inline |NOINLINE |NOT_INLINED |TWICE )*int "
                      r"(?:\w+\(\w+\)|\w+)\()(?=(?:struct )?pt_context \*c\b)")


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_no_code_is_kept_while_a_kernel_goes_on(path):
    """If a kernel stored the code and went on, it would compute with values that were never read."""
    kept = [line for line in path.read_text().splitlines()
            if re.search(r"(?<![\w.>])error = |!error\b|\bint error =", line)]
    assert kept == []


def compile_with_checked_codes(folder, path):
    """Return the warnings about codes that a file ignores, from its own functions and from others."""
    command = ["gcc", "-std=gnu99", "-DPT_ANY_CORE", "-S", "-o", "/dev/null", "-Wunused-result"]
    found = subprocess.run([*command, f"-I{folder / 'include'}", f"-I{folder}", path],
                           capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    return [line for line in found.stderr.splitlines() if "ignoring return value" in line]


def test_no_code_is_ignored(tmp_path):
    for path in (path for path in KERNELS.rglob("*.*") if path.suffix in ENDS):
        copy = tmp_path / path.relative_to(KERNELS)
        copy.parent.mkdir(parents=True, exist_ok=True)
        text = path.read_text()
        copy.write_text(FUNCTION.sub(CHECKED + r"\1", text) if path in SOURCES else text)
    sources = [tmp_path / path.relative_to(KERNELS) for path in SOURCES if path.suffix == ".c"]
    with ThreadPoolExecutor(2) as pool:
        found = pool.map(lambda path: compile_with_checked_codes(tmp_path, path), sources)
        assert [line for lines in found for line in lines] == []
