"""Run the code and the commands of a page in an environment."""

import re
import subprocess

import numpy as np

_PYTHON = """\
import numpy as np

x = np.load("x.npy")
model = open("model.pte", "rb").read()
{block}
y = y[0] if isinstance(y, (list, tuple)) else y
np.save("y.npy", np.array(list(y.data), np.float32))
"""
_PROJECT = """\
#include "digits/digits.h"
#include <string.h>
extern const float pixels[]; extern void show(const float *, int);
int run(void); int run(void) {{ {block} return 0; }}
"""
_C = """\
#include <picotorch/picotorch.h>
extern const uint8_t model[]; extern uint32_t model_size; extern float x[4];
extern const pt_memories memories; extern const pt_options options; {declared}
int run(void); int run(void) {{ {block} return 0; }}
"""


def code(path, language):
    return re.findall(rf"^```{language}\n(.*?)^```\n", path.read_text(), re.DOTALL | re.MULTILINE)


def commands(path):
    """Return the calls of picotorch, with their arguments, outside of console blocks."""
    lines = [line.partition("  #")[0] for block in code(path, "") for line in block.splitlines()]
    spans = re.findall(r"`(picotorch [^`]+)`", re.sub(r"^```.*?^```", "", path.read_text(),
                                                      flags=re.DOTALL | re.MULTILINE))
    calls = [call.split() for call in (*lines, *spans) if call.startswith("picotorch ")]
    return sorted({" ".join(call) for call in calls if len(call) > 2})


def run_python(block, python, folder, model, x):
    """Run a block that computes y from model and x, by a Python in a folder, and return y."""
    (folder / "model.pte").write_bytes(model)
    np.save(folder / "x.npy", x)
    (folder / "shown.py").write_text(_PYTHON.format(block=block))
    subprocess.run([python, "shown.py"], cwd=folder, check=True)
    return np.load(folder / "y.npy")


def compile_c(path, include, folder):
    """Compile the first C block of a page with the headers in a folder."""
    block = code(path, "c")[0]
    declared = "" if "pt_value_view y;" in block else "static pt_value_view y;"
    _compile(_C.format(declared=declared, block=block), folder, include)


def compile_with_project(path, model, python, folder):
    """Compile the first C block of a page with the C project of a model, written by a Python."""
    subprocess.run([python, "-m", "picotorch", "compile", model, "--name", "digits", "--c", "project"],
                   cwd=folder, check=True, capture_output=True)
    project = folder / "project"
    _compile(_PROJECT.format(block=code(path, "c")[0]), folder, project, project / "picotorch/include")


def _compile(text, folder, *includes):
    program = folder / "shown.c"
    program.write_text(text)
    subprocess.run(["gcc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-fsyntax-only",
                    *(f"-I{include}" for include in includes), program], check=True)
