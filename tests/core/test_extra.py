"""Test the subjects of kernels/extra: a switch omits one, or all, from a build. The build then has the
other operators and no kernel of the subject, and rejects by name a program that needs one."""

import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from picotorch.host.operators import supported_operators
from support.programs import call, plan, program, relu_plan, tensor

KERNELS = Path(__file__).resolve().parents[2] / "kernels"
SUBJECTS = sorted(path.name for path in (KERNELS / "extra").iterdir())
KNOWN = supported_operators()
FLAGS = ["gcc", "-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O0", "-ffunction-sections",
         "-fdata-sections", f"-I{KERNELS}/include", f"-I{KERNELS}"]

# Print the names of the operators, then a line for each file: an error code, its text, and the missing
# operator.
MAIN = r"""
#include <core/record.h>
#include <picotorch/picotorch.h>
#include <stdio.h>
#include <stdlib.h>

static pt_program opened;
static pt_method method;
static uint64_t pool[1 << 15], planned[1 << 10];

int main(int n, char **paths) {
    for (uint32_t i = 0; i < pt_operator_count(); i++) {
        if (pt_operator_kernel(i)) {
            printf("%s ", pt_operator_name(i));
        }
    }
    for (int i = 1; i < n; i++) {
        FILE *file = fopen(paths[i], "rb");
        fseek(file, 0, SEEK_END);
        const size_t size = (size_t)ftell(file);
        void *data = malloc(size);
        rewind(file);
        if (fread(data, 1, size, file) != size) {
            return 9;
        }
        fclose(file);
        pt_error error = {0};
        pt_method_meta plan;
        pt_span span = {planned, sizeof(planned), false};
        const pt_memories memories = {
            .pool = {pool, sizeof(pool), false}, .planned = &span, .n_planned = 1};
        const pt_options options = {0};
        int code = pt_open(&opened, data, (uint32_t)size, PT_VERIFY_STRICT, &error);
        code = code ? code : pt_method_meta_find(&plan, &opened, "forward", 7, &error);
        code = code ? code : pt_load(&method, &plan, &memories, &options, &error);
        printf("\n%d", code);
        pt_text name, overload;
        int32_t number = 0;
        pt_method_meta_operator(&plan, 0, &name, &overload, &number, &error);
        if (number < 0) {
            printf(" %.*s.%.*s", (int)name.length, name.data, (int)overload.length, overload.data);
        }
        pt_unload(&method);
        free(data);
    }
    return 0;
}
"""


def call_of(name):
    """Return a program with a call of the operator, with arbitrary arguments."""
    arguments = [0] * len(KNOWN[name].signature)
    values = [tensor([4], 0), tensor([4], 16)]
    return program(plan(values, [call(0, *arguments)], [name], [0], [1], [32]))


def kernels_of(subject):
    """Return the kernels of a folder of kernels/extra, which a build without the folder lacks."""
    extended = {operator.others[subject] for operator in KNOWN.values() if subject in operator.others}
    return extended | {symbol for operator in KNOWN.values() if operator.subject == subject
                       for symbol in (operator.symbol, *operator.others.values())}


def defined_in(*command):
    """Return the symbols pt_... that a program or objects define, without this prefix."""
    listing = subprocess.check_output([*command, "--defined-only"], text=True)
    return {*re.findall(r"\bpt_(\w+)", listing)}


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """Compile all sources except the registry, which alone reads the switches, and a main. Return the
    objects by source."""
    folder = tmp_path_factory.mktemp("library")
    (folder / "main.c").write_text(MAIN)
    sources = [path for path in sorted(KERNELS.rglob("*.c")) if path.stem != "registry"]
    objects = {path: folder / f"{i}.o" for i, path in enumerate([*sources, folder / "main.c"])}

    def compiled(item):
        return subprocess.run([*FLAGS, "-c", item[0], "-o", item[1]], capture_output=True, text=True)

    with ThreadPoolExecutor(2) as pool:
        assert "".join(done.stderr for done in pool.map(compiled, objects.items())) == ""
    return objects


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Return programs by the name of their only operator: each extra operator, and relu."""
    folder = tmp_path_factory.mktemp("files")
    programs = {operator.name: call_of(operator.name) for operator in KNOWN.values()
                if operator.subject} | {"aten::relu.out": program(relu_plan())}
    paths = {name: folder / str(KNOWN[name].number) for name in programs}
    for name, path in paths.items():
        path.write_bytes(programs[name])
    return paths


def test_each_subject_is_a_folder_with_a_switch():
    config = (KERNELS / "include/picotorch/config.h").read_text()
    switches = {name.lower() for name in re.findall(r"#define PT_HAS_(\w+) 0", config)}
    used = {operator.subject for operator in KNOWN.values() if operator.subject}
    used |= {feature for operator in KNOWN.values() for feature in operator.others}
    assert used == {*SUBJECTS} <= switches


def test_each_folder_has_the_kernels_of_its_subject(library):
    """The folder has no other kernels. Kernels of float64 are in the folders of the kernels that they
    replace."""
    objects = library
    symbols = {symbol for operator in KNOWN.values()
               for symbol in (operator.symbol, *operator.others.values())}
    for subject in SUBJECTS:
        paths = [made for path, made in objects.items() if path.parent == KERNELS / "extra" / subject]
        found = symbols & defined_in("nm", *paths)
        assert found == (kernels_of(subject) if subject != "float64" else set())


@pytest.mark.parametrize("without", [[], *([one] for one in SUBJECTS), SUBJECTS], ids="-".join)
def test_a_build_may_leave_out_subjects(without, library, files, tmp_path):
    objects = library.values()
    switches = [f"-DPT_NO_{subject.upper()}" for subject in without]
    registry, main = tmp_path / "registry.o", tmp_path / "main"
    for command in ([*FLAGS, *switches, "-c", KERNELS / "core/registry/registry.c", "-o", registry],
                    ["gcc", "-Wl,--gc-sections", *objects, registry, "-lm", "-o", main]):
        made = subprocess.run(command, capture_output=True, text=True)
        assert made.returncode == 0 and made.stderr == "", made.stderr[-3000:]
    ended = subprocess.run([main, *files.values()], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr[-3000:]
    names, *lines = ended.stdout.splitlines()
    removed = {operator.name for operator in KNOWN.values() if operator.subject in without}
    assert {*names.split()} == KNOWN.keys() - removed
    for name, line in zip(files, lines, strict=True):
        assert (line == f"20 {name}") == (name in removed), line
    assert lines[-1] == "0"
    linked = defined_in("nm", main)
    assert not linked & set().union(*map(kernels_of, without), [])
    assert linked >= {symbol for operator in KNOWN.values() if operator.name not in removed
                      for symbol in [next((other for subject, other in operator.others.items()
                                           if subject not in without), operator.symbol)]}
