"""Test that the check for forbidden symbols detects forbidden symbols."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.check

TOOL = Path(__file__).resolve().parents[2] / "tools" / "check_symbols.py"

REFUSED = {
    "heap": (
        "#include <stdlib.h>\nvoid *pt_f(void) { return malloc(4); }",
        "takes malloc from the heap",
    ),
    "heap given back": (
        "#include <stdlib.h>\nvoid pt_f(void *p) { free(p); }",
        "takes free from the heap",
    ),
    "printing": (
        "#include <stdio.h>\nvoid pt_f(int x) { printf(\"%d\", x); }",
        "takes printf from outside",
    ),
    "assertion": (
        "#include <assert.h>\nvoid pt_f(int x) { assert(x); }",
        "takes __assert_fail from outside",
    ),
    "C library's math": (
        "#include <math.h>\nfloat pt_f(float x) { return expf(x); }",
        "takes expf from outside",
    ),
    "zeroed variable": (
        "static int count;\nint pt_f(void) { return ++count; }",
        "has 4 bytes in .bss that can change",
    ),
    "initialised variable": (
        "static short count[3] = {1, 2, 3};\nint pt_f(int i) { return ++count[i]; }",
        "has 6 bytes in .data that can change",
    ),
}

PASSED = {
    "constants": "const int pt_table[3] = {1, 2, 3};",
    "constant pointers": "int pt_g(int);\nint (*const pt_table[])(int) = {pt_g};",
    "other kernels": "int pt_g(int);\nint pt_f(int x) { return pt_g(x) + 1; }",
    "copies": "#include <string.h>\nvoid pt_f(char *a, const char *b) { memcpy(a, b, 999); }",
    "long division": "long long pt_f(long long a, long long b) { return a / b; }",
}


def check(folder, source, *flags):
    """Compile source and run the tool on the object."""
    path = folder / "one.c"
    path.write_text(source + "\n")
    target = folder / "one.o"
    subprocess.run(["gcc", "-O2", "-fPIC", *flags, "-c", path, "-o", target], check=True)
    return subprocess.run([sys.executable, TOOL, target], capture_output=True, text=True)


@pytest.mark.parametrize("name", REFUSED)
def test_it_rejects(name, tmp_path):
    source, message = REFUSED[name]
    result = check(tmp_path, source)
    assert result.returncode == 1
    assert f"one.o: {message}" in result.stderr


@pytest.mark.parametrize("name", PASSED)
def test_it_passes(name, tmp_path):
    result = check(tmp_path, PASSED[name])
    assert (result.returncode, result.stderr) == (0, "")


def test_it_sees_sections_of_single_variables(tmp_path):
    source, _ = REFUSED["zeroed variable"]
    result = check(tmp_path, source, "-fdata-sections")
    assert result.returncode == 1
    assert "has 4 bytes in .bss.count that can change" in result.stderr


def test_it_counts_rejected_symbols(tmp_path):
    source = "#include <stdlib.h>\nstatic void *p;\nvoid pt_f(void) { p = realloc(p, 4); }"
    result = check(tmp_path, source)
    assert "1 objects, 2 refused" in result.stdout
