"""Test the numbers of a program as kernels read them."""

import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.check

KERNELS = Path(__file__).resolve().parents[2] / "kernels"

SOURCE = r"""
#include <picotorch/kernel.h>
#include <stdio.h>
#include <string.h>

static int fails(int64_t i) {
    pt_scalar s = {.type = PT_TYPE_INT, .as.i = i};
    double found = pt_scalar_as_double(s), wanted = (double)i;
    if (memcmp(&found, &wanted, sizeof(found)) == 0) {
        return 0;
    }
    printf("%lld: %a, not %a\n", (long long)i, found, wanted);
    return 1;
}

int main(void) {
    int failed = fails(0) + fails(INT64_MIN) + fails(INT64_MAX);
    for (int bit = 0; bit < 63; bit++) { // around every power of two, and where the rest is a half
        for (int64_t near = -3; near <= 3; near++) {
            for (int half = 0; half < bit; half++) {
                int64_t i = (int64_t)(1ull << bit) + (int64_t)(1ull << half) + near;
                failed += fails(i) + fails(-i);
            }
        }
    }
    uint64_t random = 1;
    for (int n = 0; n < 1000000; n++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        failed += fails((int64_t)random >> (n % 64));
    }
    return failed != 0;
}
"""


def test_an_integer_becomes_the_nearest_double(tmp_path):
    (tmp_path / "test.c").write_text(SOURCE)
    sources = [tmp_path / "test.c", KERNELS / "core/run/values.c"]
    subprocess.run(["gcc", "-std=c99", "-O2", "-Wall", "-Wextra", "-fsanitize=undefined",
                    "-fno-sanitize-recover", f"-I{KERNELS}/include", f"-I{KERNELS}", *sources,
                    "-o", tmp_path / "test"], check=True)
    done = subprocess.run([tmp_path / "test"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[:500]
