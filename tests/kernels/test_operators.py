"""Test the list of operators, kernels/core/registry/operators.def, and the errors of its tool."""

import hashlib
import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from picotorch.host.operators import LIST, built_operators, operator_signature, supported_operators

pytestmark = pytest.mark.check

KNOWN = supported_operators()
TOOL = Path(__file__).resolve().parents[2] / "tools" / "generate_operators.py"
LAST = max(KNOWN.values(), key=lambda operator: operator.name.encode())  # that of the last line


def test_every_line_of_the_list_is_understood():
    assert len(KNOWN) == len(re.findall(r"^PT_\w+\(", LIST.read_text(), re.MULTILINE))


def test_signatures_have_known_letters_and_an_output():
    for operator in KNOWN.values():
        assert set(operator.signature) & set("OoWNACE"), operator.name
        assert re.fullmatch(r"[TVSIBDMLQRUOWCEXtsibdmlqruo]+[NA]?", operator.signature), operator.name


def test_outputs_stand_at_the_end_where_the_name_says_out():
    for operator in KNOWN.values():
        if operator.name.split(".")[-1].endswith("out"):
            assert re.fullmatch(r"[^OWE]*(O+E*|o+|W|E)", operator.signature), operator.name


def aten_schemas():
    """{name: (names of the arguments, number of results)} as the installed torch has them. Skips where
    there is none."""
    found = importlib.util.find_spec("torchgen")
    if not found:
        pytest.skip("torch is not installed (pip install '.[export]'): no native_functions.yaml")
    folder = Path(next(iter(found.submodule_search_locations)))
    text = (folder / "packaged" / "ATen" / "native" / "native_functions.yaml").read_text()
    schemas = {}
    for name, written, results in re.findall(r"^- func: ([\w.]+)\((.*)\) -> (.*)$", text, re.MULTILINE):
        arguments = [one.partition("=")[0].split()[-1] for one in written.split(", ") if one.strip("*")]
        schemas[f"aten::{name}"] = arguments, results.count(",") + 1
    return schemas


def test_arguments_have_the_names_of_the_schema():
    """If torch makes the form with outputs, they are those of the other form without tensor options."""
    schemas, options = aten_schemas(), {"dtype", "layout", "device", "pin_memory"}
    for name, operator in KNOWN.items():
        if name.startswith("aten::"):
            names, results = schemas.get(name, ([], 0))
            outputs = ["out"] if "N" in operator.signature else []
            if not results:
                names, results = schemas[re.sub(r"\.out$|_out$", "", name)]
                names = [one for one in names if one not in options or not options <= set(names)]
                outputs = ["out"] if results == 1 else [f"out{i}" for i in range(results)]
            assert list(operator.arguments) == [*names, *outputs], name


def test_the_built_registry_is_the_list():
    built = {name: (i, operator_signature(i)) for name, i in built_operators().items()}
    assert built == {name: (one.number, one.signature) for name, one in KNOWN.items()}


def test_operator_numbers_never_change():
    """Pools had these numbers before operators.lock was there."""
    lines = (LIST.parent / "operators.lock").read_text().splitlines()[2:]
    digest = hashlib.sha256("\n".join(lines[:274]).encode()).hexdigest()
    assert digest == "6404260b854a76cd66854f0fd53395ec1a997f3e310041d4b66bb97cee84feab"


# ---- the tool


@pytest.fixture
def folder(tmp_path):
    """One with the list and what is made of it, to be changed."""
    for name in ("registry", "generated"):
        shutil.copytree(LIST.parents[1] / name, tmp_path / name)
    return tmp_path / "registry"


def generate(folder, *options):
    """(exit status, what it says)"""
    ended = subprocess.run([sys.executable, TOOL, "--folder", folder, *options], capture_output=True,
                           text=True)
    assert not ended.stderr
    return ended.returncode, ended.stdout


def change(path, old, new):
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))


def assert_refused(folder, *words):
    """By both its calls, of which neither writes anything."""
    before = {path: path.read_bytes() for path in folder.iterdir()}
    for options in ([], ["--check"]):
        status, out = generate(folder, *options)
        assert status == 1
        for word in words:
            assert word in out
    assert before == {path: path.read_bytes() for path in folder.iterdir()}


def line(number, name="zzz::last.out", signature="TO", arguments="self out"):
    return f'PT_OPERATOR({number}, "{name}", symbol, "{signature}", "{arguments}")\n'


def add(folder, text):
    with open(folder / "operators.def", "a") as file:
        file.write(text)


def test_committed_files_match_the_list(folder):
    assert generate(folder, "--check") == (0, "")


def test_a_new_operator_gets_the_next_number(folder):
    add(folder, line(len(KNOWN)))
    status, out = generate(folder, "--check")
    assert status == 1 and "operators.lock is not" in out and "operator_arguments.h is not" in out
    assert generate(folder) == (0, "")
    assert (folder / "operators.lock").read_text().endswith(f"\n{len(KNOWN)} zzz::last.out\n")
    arguments = folder.parent / "generated/operator_arguments.h"
    assert "enum { LAST_SELF, LAST_OUT };" in arguments.read_text()
    assert generate(folder, "--check") == (0, "")


@pytest.mark.parametrize("number", [len(KNOWN) + 1, 1 << 16])
def test_no_number_is_left_out(folder, number):
    add(folder, line(number))
    assert_refused(folder, "zzz::last.out", f"next number is {len(KNOWN)}")


def test_a_number_is_assigned_once(folder):
    add(folder, line(len(KNOWN)) + line(len(KNOWN), "zzz::later.out"))
    assert_refused(folder, "zzz::later.out", f"next number is {len(KNOWN) + 1}")


def test_a_new_operator_gets_no_number_of_another(folder):
    add(folder, line(LAST.number))
    assert_refused(folder, "zzz::last.out", f"number {LAST.number} is that of {LAST.name}")


def test_an_operator_keeps_its_number(folder):
    change(folder / "operators.def", '10, "aten::abs.out"', '11, "aten::abs.out"')
    assert_refused(folder, "aten::abs.out has number 10 for ever")


def test_the_number_of_a_removed_operator_is_not_reused(folder):
    change(folder / "operators.def", KNOWN["aten::abs.out"].line + "\n", "")
    assert generate(folder)[0] == 0
    assert "\n10 aten::abs.out\n" in (folder / "operators.lock").read_text()
    add(folder, line(10))
    assert_refused(folder, "zzz::last.out", "number 10 is that of aten::abs.out")


@pytest.mark.parametrize("old, new, word", [
    ("\n10 aten::abs.out", "", "where number 10 has to be"),
    ("\n10 aten::abs.out\n11 aten::acos.out", "\n11 aten::acos.out\n10 aten::abs.out",
     "where number 10 has to be"),
    ("\n10 aten::abs.out", "\n10 aten::acos.out", "stands there twice"),
    ("\n10 aten::abs.out", "\n10 aten::other.out", "aten::abs.out")])
def test_the_lock_is_only_added_to(folder, old, new, word):
    change(folder / "operators.lock", old, new)
    assert_refused(folder, word)


def test_lines_stand_in_the_order_of_their_names(folder):
    add(folder, line(len(KNOWN), "aten::zzz.out"))
    assert_refused(folder, f"aten::zzz.out has to stand before {LAST.name}")


def test_an_operator_stands_there_once(folder):
    add(folder, LAST.line + "\n")
    assert_refused(folder, f"{LAST.name} stands there twice")


@pytest.mark.parametrize("signature, arguments, word", [
    ("TTO", "self out", "2 names of arguments for a signature of 3"),
    ("TO", "self other out", "3 names of arguments for a signature of 2"),
    ("TTO", "self self out", "two arguments of one name")])
def test_every_argument_has_a_name(folder, signature, arguments, word):
    add(folder, line(len(KNOWN), signature=signature, arguments=arguments))
    assert_refused(folder, "zzz::last.out", word)


def test_a_line_that_is_not_understood_is_named(folder):
    add(folder, 'PT_OPERATOR("zzz::last.out", symbol, "TO")\n')
    assert_refused(folder, 'not understood: PT_OPERATOR("zzz::last.out"')


def test_no_two_arguments_have_the_same_constant(folder):
    change(folder / "operators.def", KNOWN["aten::abs.out"].line,
           line(len(KNOWN), "aten::_abs.out") + KNOWN["aten::abs.out"].line)
    text = (folder / "operators.def").read_text().splitlines(keepends=True)
    comments = [one for one in text if one.startswith("//")]
    lines = sorted((one for one in text if one.startswith("PT_")), key=lambda one: one.split('"')[1])
    (folder / "operators.def").write_text("".join(comments + lines))
    assert_refused(folder, "ABS_SELF is an argument of aten::_abs.out and of aten::abs.out")


def test_generated_files_are_compared_with_the_list(folder):
    change(folder.parent / "generated/operator_arguments.h", "TOPK_DIM, ", "")
    status, out = generate(folder, "--check")
    assert status == 1 and "operator_arguments.h is not" in out
