"""Test the numbers that main.c of a C project prints: each reads back as the same element."""

import subprocess

import numpy as np
from picotorch.package.platforms import PROJECTS
from support.c_projects import sh

TEMPLATE = PROJECTS / "main.c.in"
EDGES = [0.0, -0.0, 1, -1, 0.1, 1e-5, 9.99999e-6, 99999.9, 1e8, 999999999, 1e9, 999999900, 1.5e-45,
         1.1754944e-38, 1.1754942e-38, 3.4028235e38, np.inf, -np.inf, 16777216, 16777217, 123456792,
         0.00001234, 100, 10, 5e-1]
RANDOM = 20_000


def printed(folder, body):
    """Return what a main prints that has the functions of main.c and this body."""
    functions = TEMPLATE.read_text().partition("static char line")[2].partition("@FUNCTIONS@")[0]
    (folder / "main.c").write_text(
        "#include <stdbool.h>\n#include <stdint.h>\n#include <stdio.h>\n#include <string.h>\n"
        "#define say puts\nstatic char line" + functions + f"int main(void) {{ {body} }}\n")
    sh("gcc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-fsanitize=undefined",
       "-fno-sanitize-recover=all", folder / "main.c", "-o", folder / "main")
    return subprocess.run([folder / "main"], capture_output=True, text=True, check=True,
                          input=(folder / "in").read_text()).stdout.split()


def test_floats_read_back_as_the_same_floats(tmp_path):
    bits = np.random.default_rng(0).integers(0, 1 << 32, RANDOM, np.uint32)
    values = np.concatenate([np.array(EDGES, np.float32), bits.view(np.float32)])
    (tmp_path / "in").write_text("\n".join(map(str, values.view(np.uint32))))
    words = printed(tmp_path, 'uint32_t x; while (scanf("%u", &x) == 1) put_elements(&x, 4, 4, 102);'
                    "(void)put_number; return 0;")
    found = np.array([float(word) for word in words], np.float32)
    is_nan = np.isnan(values)
    assert np.array_equal(np.isnan(found), is_nan)
    assert found[~is_nan].tobytes() == values[~is_nan].tobytes()
    plain = ["0", "-0", "1", "-1", "0.100000001", "9.99999975e-6", "9.99998974e-6", "99999.8984"]
    assert words[: len(plain)] == plain


def test_integers_of_each_size(tmp_path):
    (tmp_path / "in").write_text("")
    words = printed(tmp_path, """
        const int8_t a[] = {0, 1, -1, 127, -128};
        const int64_t b[] = {INT64_MIN, -1, 0, INT64_MAX};
        const uint16_t c[] = {0, 65535};
        const uint64_t d[] = {UINT64_MAX};
        put_elements(a, 5, 1, 'i'); put_elements(b, 32, 8, 'i'); put_elements(c, 4, 2, 'u');
        put_elements(d, 8, 8, 'u'); put_elements(c, 4, 2, 'x'); put_elements(b, 32, 16, 'x');
        return 0;""")
    assert words == ["0", "1", "-1", "127", "-128", str(-2**63), "-1", "0", str(2**63 - 1), "0",
                     "65535", str(2**64 - 1), "0x0000", "0xffff", "0x" + "f" * 16 + "8" + "0" * 15,
                     "0x7" + "f" * 15 + "0" * 16]
