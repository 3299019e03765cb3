"""Test every macro that a build of the library may define. At the ends of a macro's range the library
works, with sanitizers. Beyond the ends, and in combinations that leave nothing to run, it does not
compile."""

import re
import subprocess
from pathlib import Path

import pytest
from picotorch.compile import ptm_writer
from support import replayed
from support.programs import program, relu_plan

KERNELS = Path(__file__).resolve().parents[2] / "kernels"
INCLUDES = [f"-I{KERNELS}/include", f"-I{KERNELS}"]
RELU = 149
PORTABLE = "activation", "arguments", "dtype_access", "elementwise", "float_math", "half"

REFUSED = {
    "PT_MAX_INPUTS": ["0", "1", "16", "31", "33", "48", "-32", "65505", "65536", "1048576"],
    "PT_MAX_MEMORIES": ["-1", "0", "1", "4", "33", "40", "255", "256"],
    "PT_PROGRAM_LIMIT": ["0", "1", "0x7FFFFFF", "0x8000001", "0x80000000", "0x100000000"],
    "PT_MAX_STEPS": ["-1", "0", "0x80000000", "0x100000000"],
}
COMBINATIONS = [("PT_NO_PROGRAMS", "PT_NO_PTM"), ("PT_NO_CHECKS",), ("PT_NO_DYNAMIC",),
                ("PT_NO_CHECKS", "PT_NO_PTM"), ("PT_NO_DYNAMIC", "PT_NO_PTM")]
WORKING = [
    ["PT_MAX_INPUTS=32", "PT_MAX_MEMORIES=5", "PT_MAX_STEPS=1", "PT_PROGRAM_LIMIT=0x8000000"],
    ["PT_MAX_INPUTS=65504", "PT_MAX_MEMORIES=32", "PT_MAX_STEPS=0x7FFFFFFF",
     "PT_PROGRAM_LIMIT=0x40000000", "PT_ANY_CORE"],
    ["PT_NO_PTM", "PT_NO_TEXTS", "PT_NO_TRACER", "PT_NO_PACKING", "PT_PLAIN_LOOPS"],
    ["PT_NO_PROGRAMS"],
    ["PT_NO_PROGRAMS", "PT_NO_CHECKS", "PT_NO_DYNAMIC", "PT_NO_TEXTS", "PT_NO_TRACER",
     "PT_MAX_MEMORIES=6", "PT_MAX_INPUTS=32"],
]
# Macros of a list of operators (see registry.c), which all builds below define.
LEFT_OUT = ["PT_NO_WINOGRAD", "PT_NO_POINTWISE", "PT_NO_IM2ROW",
            *(f"PT_NO_{path.name.upper()}" for path in sorted((KERNELS / "extra").iterdir()))]
INTERNAL = {"PT_NO_OPERATOR", "PT_ANY_FACTOR"}  # registry.c and fft_lines.inc define these names

MAIN = r"""
#include <picotorch/picotorch.h>
#include <stdio.h>
#include <stdlib.h>

#ifndef PACK_WEIGHTS
#define PACK_WEIGHTS false
#endif

static pt_program opened;
static pt_method method; // zeros

int main(int n, char **paths) {
    for (int i = 1; i < n; i++) {
        FILE *file = fopen(paths[i], "rb");
        fseek(file, 0, SEEK_END);
        const size_t size = (size_t)ftell(file);
        void *data = malloc(size), *buffers[32], *pool;
        rewind(file);
        if (fread(data, 1, size, file) != size) {
            return 9;
        }
        pt_error error = {0};
        pt_method_meta plan;
        pt_span spans[32] = {{0}};
        pt_memories memories = {.planned = spans};
        const pt_options options = {.pack_weights = PACK_WEIGHTS};
        int code = pt_open(&opened, data, (uint32_t)size, PT_VERIFY_STRICT, &error);
        code = code ? code : pt_method_meta_find(&plan, &opened, "forward", 7, &error);
        const uint32_t inputs = code ? 0 : pt_method_meta_count(&plan, PT_INPUTS);
        const uint32_t planned = code ? 0 : pt_method_meta_count(&plan, PT_PLANNED_BUFFERS);
        for (uint32_t k = 0; !code && k < planned && k < 32; k++) {
            uint32_t bytes = 0;
            code = pt_method_meta_buffer(&plan, k, &bytes, &error);
            buffers[k] = calloc(1, bytes);
            spans[k].data = buffers[k];
            spans[k].size = bytes;
            memories.n_planned++;
        }
        memories.pool.data = pool = calloc(1, 1 << 20);
        memories.pool.size = 1 << 20;
        code = code ? code : pt_load(&method, &plan, &memories, &options, &error);
        for (uint32_t k = 0; !code && k < inputs; k++) {
            float x[4] = {-1, 2, -3, 4};
            code = pt_set_input(&method, k, x, sizeof(x), &error);
        }
        code = code ? code : pt_execute(&method, &error);
        pt_value_view y;
        code = code ? code : pt_output(&method, 0, &y, &error);
        printf("%d", code);
        for (int k = 0; !code && k < 4; k++) {
            printf(" %g", ((const float *)y.tensor.data)[k]);
        }
        printf("\n");
        pt_unload(&method);
        for (uint32_t k = 0; k < memories.n_planned; k++) {
            free(buffers[k]);
        }
        free(pool);
        free(data);
        fclose(file);
    }
    return 0;
}
"""


def many_inputs(n):
    """Return a program with relu of the last of n inputs, which are one tensor."""
    return program(relu_plan() | {"inputs": [0] * n})


def two_buffers():
    values = relu_plan()
    values["values"][1]["val"][1]["allocation_info"] = {"memory_id": 2, "memory_offset_low": 0}
    return program(values | {"non_const_buffer_sizes": [0, 16, 16]})


def compiled(*flags):
    return subprocess.run(["gcc", "-std=gnu99", "-Wall", "-Wextra", *INCLUDES, "-fsyntax-only",
                           *flags, KERNELS / "core/run/executor.c"], capture_output=True, text=True)


@pytest.mark.parametrize("knob, value", [(knob, value) for knob, values in REFUSED.items()
                                         for value in values])
def test_a_value_out_of_range_does_not_compile(knob, value):
    ended = compiled(f"-D{knob}={value}")
    assert ended.returncode and re.search(rf'#error "{knob} must be ', ended.stderr), ended.stderr


@pytest.mark.parametrize("knobs", COMBINATIONS, ids=" ".join)
def test_a_combination_that_leaves_nothing_to_run_does_not_compile(knobs):
    ended = compiled(*[f"-D{knob}" for knob in knobs])
    assert ended.returncode and re.search(rf'#error "{knobs[0]} ', ended.stderr), ended.stderr


def test_every_knob_is_here():
    found = set()
    knob = r"(?m)^#.*\b(?:ifdef |ifndef |defined\()(PT_(?:MOST|MAX|NO|ANY|PLAIN|PROGRAM)_\w+)"
    for path in (path for path in KERNELS.rglob("*.*") if path.suffix in (".c", ".h", ".inc")):
        found |= set(re.findall(knob, path.read_text()))
    tried = {knob.partition("=")[0] for knobs in WORKING for knob in knobs} | {*LEFT_OUT}
    assert found - INTERNAL == tried


@pytest.mark.parametrize("pattern", ["*Makefile", "*.mk", "*CMakeLists.txt", "*.cmake", "*.py"])
def test_builds_define_no_macro_that_the_sources_lack(pattern):
    """A macro under an old name would have no effect."""
    root = KERNELS.parent
    rooms = (root / name for name in ("kernels", "port", "host/picotorch/package"))
    sources = [path.read_text() for room in rooms for path in room.rglob("*.*")
               if path.suffix in (".c", ".h", ".inc", ".py", ".txt")]
    known = set(re.findall(r"(?<!-D)\bPT_\w+", "\n".join(sources)))
    files = subprocess.run(["git", "ls-files", pattern], cwd=root, check=True, text=True,
                           capture_output=True).stdout.splitlines()
    macro = r"-D(PT_(?!WITH_|MANIFEST)\w+[A-Z0-9])(?![\w{])"  # not options of a project and of CMake
    for path in files:
        given = set(re.findall(macro, (root / path).read_text()))
        assert given <= known, path


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Write a program, its .ptm file, a program with 33 inputs and one with two buffers. Return their
    paths."""
    folder = tmp_path_factory.mktemp("files")
    paths = {name: folder / name for name in ("program", "ptm", "inputs", "buffers")}
    paths["program"].write_bytes(program(relu_plan()))
    paths["ptm"].write_bytes(ptm_writer.compile_ptm(program(relu_plan())).data)
    paths["inputs"].write_bytes(many_inputs(33))
    paths["buffers"].write_bytes(two_buffers())
    return paths


def answers(folder, knobs, paths):
    """Build with these knobs and sanitizers, and run the files. Return a line for each file, with an
    error code, or with 0 and outputs."""
    if not replayed.has_sanitizers(64):
        pytest.skip("gcc has no sanitizers here")
    operators = folder / "operators.def"
    line = next(line for line in (KERNELS / "core/registry/operators.def").read_text().splitlines()
                if f"({RELU}, " in line)
    operators.write_text("".join(f"#define {name}\n" for name in LEFT_OUT) + line + "\n")
    (folder / "main.c").write_text(MAIN)
    flags = ["gcc", "-std=gnu99", "-O0", "-g", "-w", "-ffunction-sections",
             "-fsanitize=address,undefined", "-fno-sanitize-recover=all", *INCLUDES,
             *[f"-D{knob}" for knob in knobs]]
    selection = [f'-DPT_OPERATORS="{operators}"', f"-DPT_FIRST_OPERATOR={RELU}"]
    sources = [path for path in sorted((KERNELS / "core").rglob("*.c")) if path.stem != "registry"]
    sources += [KERNELS / "portable" / f"{name}.c" for name in PORTABLE]
    registry = folder / "registry.o"
    for command in ([*flags, *selection, "-c", KERNELS / "core/registry/registry.c", "-o", registry],
                    [*flags, "-Wl,--gc-sections", *sources, folder / "main.c", registry,
                     "-o", folder / "main"]):
        made = subprocess.run(command, capture_output=True, text=True)
        assert made.returncode == 0, made.stderr[-3000:]
    ended = subprocess.run([folder / "main", *paths], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr[-3000:]
    return ended.stdout.splitlines()


WORKS = "0 0 2 0 4"


@pytest.mark.thorough
@pytest.mark.parametrize("knobs", WORKING, ids=" ".join)
def test_the_library_works_at_the_ends_of_a_range(knobs, files, tmp_path):
    of_program, of_ptm, of_inputs, of_buffers = answers(tmp_path, knobs, files.values())
    is_few = "PT_MAX_MEMORIES=5" in knobs
    assert (of_program == WORKS) == ("PT_NO_PROGRAMS" not in knobs)
    assert (of_ptm == WORKS) == ("PT_NO_PTM" not in knobs and not is_few)
    if "PT_NO_PROGRAMS" not in knobs:
        assert (of_inputs == WORKS) == ("PT_MAX_INPUTS=32" not in knobs)
        assert (of_buffers == WORKS) == (not is_few)


@pytest.mark.thorough
def test_a_build_that_packs_no_weights_rejects_to(files, tmp_path):
    """The build loads a .ptm file, which contains its packed weights."""
    of_program, of_ptm, *_ = answers(tmp_path, ["PT_NO_PACKING", "PACK_WEIGHTS=true"], files.values())
    assert of_program == "16" and of_ptm == WORKS
