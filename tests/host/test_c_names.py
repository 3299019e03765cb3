"""Test that functions and macros of a C project are named after the inputs and outputs of the
program."""

import json
import shutil
import subprocess
import tracemalloc

import pytest
from picotorch.package import io_names
from support import fixture_store
from support.flatbuffer_builder import double_value, int_value
from support.programs import call, plan, program, tensor

pytestmark = pytest.mark.check

UNOPTIMISED = ["PT_SMALL_CFLAGS=-O0", "PT_FAST_CFLAGS=-O0"]  # compiles fastest
LEAF = {"type": None, "context": None, "children_spec": []}
INT8 = 1

USE = """#include "kws/kws.h"

int main(void) {
    static const int8_t image[KWS_INPUT_IMAGE_ELEMENTS] = {-1, 2, -3, 4};
    pt_error error;
    if (kws_open(&error)) {
        return 1;
    }
    for (int i = 0; i < KWS_INPUT_IMAGE_ELEMENTS; i++) {
        kws_input_image()[i] = image[i];
    }
    if (kws_run(&error)) {
        return 2;
    }
    const int8_t *scores = kws_output_scores();
    return !(scores[0] == 0 && scores[1] == 2 && scores[3] == 4 && KWS_INPUT_IMAGE_SCALE == 0.5f &&
             KWS_INPUT_IMAGE_ZERO_POINT == -3 && KWS_OUTPUT_SCORES_SCALE == 0.25f);
}
"""


def sequence(kind, *children):
    return node(f"builtins.{kind}", "null", *children)


def node(kind, context, *children):
    return {"type": kind, "context": context, "children_spec": list(children)}


def keyed(**children):
    return node("builtins.dict", json.dumps(list(children)), *children.values())


def encoded(tree):
    return json.dumps([1, tree])


def called(*arguments, **keywords):
    """Return the inputs of a method that was exported with these arguments."""
    return encoded(sequence("tuple", sequence("tuple", *arguments), keyed(**keywords)))


def number(name, value):
    return plan([value], [], [], [], [0], []) | {"name": name}


def named_program(inputs, outputs):
    """Build scores = relu(image) and mask = relu(second), with int8 inputs and outputs, and encoded
    trees."""
    values = [tensor([4], 8 * i, dtype=INT8) for i in range(4)]
    trees = {"container_meta_type": {"encoded_inp_str": inputs, "encoded_out_str": outputs}}
    return program(
        plan(values, [call(0, 0, 2, 2), call(0, 1, 3, 3)], ["aten::relu.out"], [0, 1], [2, 3], [32],
             **trees),
        number("input0_scale", double_value(0.5)), number("input0_zp", int_value(-3)),
        number("output0_scale", double_value(0.25)), number("output0_zp", int_value(0)))


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """Build the C project of a program with names, and a main.c that uses some of them."""
    folder = tmp_path_factory.mktemp("named")
    model = folder / "kws.pte"
    model.write_bytes(named_program(called(image=LEAF, mask=LEAF), encoded(keyed(
        scores=LEAF, **{"mask of all": LEAF}))))
    return model, folder / "project"


def sh(*command):
    done = subprocess.run(list(map(str, command)), text=True, capture_output=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_functions_and_macros_have_the_names_of_the_program(project, call):
    model, folder = project
    assert call("compile", model, "--keep-plan", "--c", folder)[0] == 0
    text = sh("make", "-s", "-C", folder, "run", *UNOPTIMISED)
    assert text.startswith("kws_output_scores: ") and "kws_output_mask_of_all: " in text
    assert "kws_input_image()[0] = ...;" in (folder / "README.md").read_text()
    (folder / "main.c").write_text(USE)
    sh("make", "-s", "-C", folder, "run", *UNOPTIMISED)
    symbols = sh("nm", folder / "build/host/kws").split()
    assert "kws_output_scores" in symbols
    assert "kws_output_mask_of_all" not in symbols  # nothing calls the function, so it takes no bytes
    if shutil.which("g++") is not None:
        (folder / "use.cpp").write_text(USE)
        sh("g++", "-std=c++11", "-Wall", "-Wextra", "-Werror", "-c", "-o", folder / "use.o",
           f"-I{folder}", f"-I{folder}/picotorch/include", folder / "use.cpp")


@pytest.mark.parametrize(("inputs", "names"), [
    (called(LEAF, LEAF), ["", ""]),
    (called(LEAF, image=LEAF), ["", "image"]),
    (called(pair=sequence("list", LEAF, LEAF)), ["pair_0", "pair_1"]),
    (called(keyed(a=LEAF, b=keyed(c=LEAF))), ["a", "b_c"]),
    (called(x=node("Out", '[["a", "b"], []]', LEAF, LEAF)), ["x_a", "x_b"]),  # a dataclass
    (called(x=node("collections.namedtuple", "Pair", LEAF, LEAF), y=LEAF), ["x_0", "x_1", "y"]),
    (called(x=node("collections.defaultdict", {"dict_context": ["a"]}, LEAF), y=LEAF), ["x_a", "y"]),
    (called(**{"k" * 100: LEAF, "l" * 101: LEAF}), ["k" * 100, ""]),
    (called(), []), ("", []), ("{", []), ("[1, 2]", []), ("[1, {}]", []), ("[" * 100_000, [])])
def test_names_are_the_keys_of_trees(inputs, names):
    assert io_names.of_program(named_program(inputs, encoded(LEAF))) == {
        "forward": (names, [""]), **{f"{end}_{what}": ([], []) for end in ("input0", "output0")
                                     for what in ("scale", "zp")}}


def test_a_long_key_of_many_leaves_uses_little_memory():
    text = called(**{"k" * 1_000_000: sequence("list", *[LEAF] * 10_000)})
    tracemalloc.start()
    assert io_names._names(text) == [""] * 10_000
    maximum = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert maximum < 100_000_000


def test_positional_inputs_of_exported_programs_have_no_names():
    assert io_names.of_program(fixture_store.load("mlp").pte) == {"forward": ([""], [""])}


@pytest.mark.parametrize(("names", "found"), [
    (["image", "mask"], ["image", "mask"]),
    (["", "1", "2nd"], ["0", "1", "2nd"]),
    (["a.b", "a b", "_a__b_"], ["a_b", "1", "2"]),
    (["ids", "IDS", "iDs_"], ["ids", "1", "2"]),
    (["ids", "ids_mask", "ids_sizes"], ["ids", "ids_mask", "2"]),
    (["ids_set", "ids"], ["ids_set", "1"]),
    (["", "0_set"], ["0", "1"]),
    (["größe", "图", "int"], ["gr_e", "1", "int"]),
    (["one"], ["0", "1"]), ([], ["0"])])
def test_names_become_identifiers_that_differ(names, found):
    assert io_names.identifiers(names, len(found)) == found
