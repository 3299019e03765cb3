"""Test names and numbers of models in C: all names of a project differ, all numbers have a literal, and
the files compile without a warning."""

import itertools
import math
import random
import re
import shutil
import struct
import subprocess

import numpy as np
import pytest
from picotorch.compile.ptm_writer import compile_ptm
from picotorch.host import quoting
from picotorch.package import c_project
from picotorch.package.identifiers import Identifiers
from support.flatbuffer_builder import bool_value, double_value, int_value
from support.programs import call, plan, program, tensor

STRICT = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic"]
SUBNORMAL = 5e-324
INTS = [0, 1, -1, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**32, 2**63 - 1, -(2**63), -(2**63) + 1]
FLOATS = [0.0, -0.0, 1.0, -1.5, 0.1, 1e16, -1e22, 1e300, 1.7976931348623157e308,
          2.2250738585072014e-308, SUBNORMAL, -SUBNORMAL, 1e-45,
          math.inf, -math.inf, math.nan]
# Possible names of methods, inputs and outputs
WORDS = ["get_a.b", "get_a_b", "GET_A_B", "get_a_b_2", "a", "A", "a_2", "A_2", "input", "output",
         "open", "run", "ptm", "sample", "constant", "int", "größe", "??/", "a\\", "*/", "1", ""]


def compiled(folder, *sources):
    """Compile all sources into one program, in strict C99, and return its output."""
    command = ["gcc", *STRICT, f"-I{folder}", f"-I{folder}/picotorch/include", "-o", folder / "a.out"]
    done = subprocess.run([*map(str, [*command, *sources])], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return subprocess.run([folder / "a.out"], capture_output=True, text=True, check=True).stdout


def checked(folder):
    """Compile the sources of a project's models, and main.c, each file with all headers before it."""
    models = sorted(path.parent.name for path in folder.glob("*/*_ptm.c"))
    both = "".join(f'#include "{name}/{name}{end}.h"\n' for name in models for end in ("", "_sample"))
    (folder / "all.c").write_text(both)
    command = ["gcc", *STRICT, "-Wno-unused-const-variable", "-fsyntax-only", f"-I{folder}",
               f"-I{folder}/picotorch/include"]
    sources = [folder / "all.c", folder / "main.c",
               *(folder / name / f"{name}.c" for name in models)]
    done = subprocess.run([*map(str, [*command, *sources])], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    if shutil.which("g++") is not None:
        command = ["g++", "-std=c++11", *STRICT[1:4], "-Wno-unused-variable", *command[-3:], "-xc++"]
        done = subprocess.run([*map(str, [*command, folder / "all.c"])], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def relu(name, **trees):
    """Return a method with two inputs and outputs."""
    values = [tensor([4], 16 * i) for i in range(4)]
    return plan(values, [call(0, 0, 2, 2), call(0, 1, 3, 3)], ["aten::relu.out"], [0, 1], [2, 3], [64],
                **trees) | {"name": name}


def constant(name, value):
    return plan([value], [], [], [], [0], []) | {"name": name}


def value_of(number):
    kind = {bool: bool_value, int: int_value, float: double_value}[type(number)]
    return kind(number)


def model(name, *plans, io_names=None):
    return c_project.Model(name, compile_ptm(program(*plans)).data, io_names=io_names or {})


# ---- literals


def test_numbers_have_literals(tmp_path):
    """Each literal prints with the bits of its number."""
    numbers = random.Random(1)
    ints = [*INTS, *(numbers.getrandbits(64) - (1 << 63) for _ in range(200))]
    doubles = [*FLOATS, *(struct.unpack("<d", numbers.randbytes(8))[0] for _ in range(500))]
    floats = [*map(float, np.float32([0.1, 3.4e38, 1e-45, 1.17549435e-38, math.inf, -math.inf, -0.0])),
              *(float(np.frombuffer(numbers.randbytes(4), "<f4")[0]) for _ in range(500))]

    def array(kind, name, found, suffix=""):
        items = ",\n    ".join(quoting.c_number(number, suffix) for number in found)
        return f"static const {kind} {name}[] = {{\n    {items}}};\n"

    text = ["#include <inttypes.h>", "#include <math.h>", "#include <stdio.h>", "#include <string.h>",
            array("int64_t", "ints", ints), array("double", "doubles", doubles),
            array("float", "floats", floats, "f"), "int main(void) {"]
    for name, kind in (("ints", "uint64_t"), ("doubles", "uint64_t"), ("floats", "uint32_t")):
        text += [f"    for (unsigned i = 0; i < sizeof({name}) / sizeof(*{name}); i++) {{",
                 f"        {kind} bits;", f"        memcpy(&bits, &{name}[i], sizeof(bits));",
                 '        printf("%" PRIu64 "\\n", (uint64_t)bits);', "    }"]
    (tmp_path / "numbers.c").write_text("\n".join([*text, "    return 0;", "}", ""]))
    printed = [int(line) for line in compiled(tmp_path, tmp_path / "numbers.c").split()]
    wanted = [number % (1 << 64) for number in ints]
    wanted += [struct.unpack("<Q", struct.pack("<d", number))[0] for number in doubles]
    wanted += [struct.unpack("<I", struct.pack("<f", number))[0] for number in floats]
    given = [*ints, *doubles, *floats]
    assert len(printed) == len(wanted)
    for number, one, other in zip(given, printed, wanted, strict=True):
        assert one == other or math.isnan(number), number


@pytest.mark.parametrize("number", [-1, -1.0, -0.0, -math.inf, -(2**63)])
def test_a_literal_with_a_sign_is_in_parentheses(number):
    assert re.fullmatch(r"\(-.*\)", quoting.c_number(number))


@pytest.mark.thorough
def test_constants_of_all_values_compile(tmp_path):
    """The constants include scales and zero points of inputs and outputs."""
    numbers = [*INTS, *FLOATS, True, False]
    for scale, zero_point in itertools.product([*FLOATS, 1], (-(2**63), 0)):
        plans = [relu("forward"), constant("input0_scale", value_of(scale)),
                 constant("input0_zp", value_of(zero_point)),
                 constant("output0_scale", value_of(scale)),
                 constant("output0_zp", value_of(zero_point))]
        c_project.write([model("kws", *plans)], tmp_path / "scale")
        checked(tmp_path / "scale")
    plans = [constant(f"number_{i}", value_of(number)) for i, number in enumerate(numbers)]
    c_project.write([model("kws", relu("forward"), *plans)], tmp_path / "all")
    checked(tmp_path / "all")
    text = (tmp_path / "all/kws/kws.h").read_text()
    assert text.count("#define KWS_CONSTANT_NUMBER_") == len(numbers)
    assert "KWS_CONSTANT_NUMBER_9 (-9223372036854775807LL - 1)\n" in text
    assert "int kws_run(pt_error *error);" in text  # the only method that is not a constant


# ---- identifiers


def test_identifiers_of_a_project_differ():
    numbers = random.Random(2)
    identifiers, found = Identifiers("main"), ["main"]
    for _ in range(2000):
        name = "_".join(numbers.choices(["a", "A", "b", "2", "3", "main"], k=numbers.randint(1, 4)))
        patterns = numbers.sample(["{}", "{}_b", "run_{}", "{}_2", "{}_A"], numbers.randint(1, 3))
        got = identifiers.claim(name, *patterns)
        assert re.fullmatch(rf"{name}(_\d+)?", got)
        found += {pattern.format(got).upper() for pattern in patterns}
    assert len(set(map(str.upper, found))) == len(found)


def test_constants_whose_macros_were_the_same_are_numbered(tmp_path):
    names = ["get_a.b", "get_a_b", "GET_A_B", "get_a_b_2", "get_a_b"]
    plans = [constant(name, int_value(i)) for i, name in enumerate(dict.fromkeys(names))]
    c_project.write([model("kws", relu("forward"), *plans)], tmp_path)
    text = (tmp_path / "kws/kws.h").read_text()
    assert [line for line in text.split("\n") if "KWS_CONSTANT" in line] == [
        "#define KWS_CONSTANT_GET_A_B 0 // get_a.b", "#define KWS_CONSTANT_GET_A_B_2 1 // get_a_b",
        "#define KWS_CONSTANT_GET_A_B_3 2 // GET_A_B",
        "#define KWS_CONSTANT_GET_A_B_2_2 3 // get_a_b_2"]
    checked(tmp_path)


@pytest.mark.parametrize("names", [
    ("kws", "kws_sample"), ("kws_sample", "kws"), ("kws", "kws_sample", "kws_sample_sample"),
    ("a", "a_input_0", "a_output_1"), ("sample", "kws", "sample_kws"), ("run", "kws", "run_kws"),
    ("a", "a_constant_x", "a_open"), ("put", "say", "line"), ("int", "default", "linux")])
def test_models_whose_names_begin_alike_go_into_one_project(names, tmp_path):
    found = [model(name, relu("forward"), relu("x"), constant("y", int_value(1))) for name in names]
    c_project.write(found, tmp_path)
    checked(tmp_path)
    found = [model(name, relu("forward"), io_names={"forward": (["open", "x"], ["x_0", "run"])})
             for name in names]
    c_project.write(found, tmp_path)
    checked(tmp_path)


def test_projects_of_any_names_compile(tmp_path):
    """The test takes random methods, constants, inputs and outputs with names from WORDS."""
    numbers = random.Random(3)
    for _ in range(12):
        models = []
        for name in numbers.sample(["kws", "kws_sample", "kws_a", "kws_input", "sample_kws", "run"], 3):
            methods = numbers.sample(WORDS[:-1], numbers.randint(1, 12))
            count = numbers.randint(1, len(methods))
            plans = [relu(method) for method in methods[:count]]
            plans += [constant(method, value_of(numbers.choice([*INTS, *FLOATS])))
                      for method in methods[count:]]
            ends = {method: (numbers.choices(WORDS, k=2), numbers.choices(WORDS, k=2))
                    for method in methods[:count]}
            models.append(model(name, *plans, io_names=ends))
        shutil.rmtree(tmp_path / "project", ignore_errors=True)
        c_project.write(models, tmp_path / "project")
        checked(tmp_path / "project")
