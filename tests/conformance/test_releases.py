"""Run the programs of every release of ExecuTorch on the twin and on boards: the outputs are the
release's own. Reject forms of operators that no release exports."""

import importlib.util
import json

import pytest
from picotorch import BufferDataLoader, Error, Program
from picotorch.compile import pool_records, uninitialized_reads
from picotorch.export.replan import export_file
from picotorch.host.instructions import read_instructions
from picotorch.host.operators import supported_operators
from picotorch.host.releases import FIRST, LAST, in_words
from picotorch.host.twin import open_program
from picotorch.host.values import Values
from picotorch.module import load_with_exact_memories
from support import fixture_store
from support.file_parts import Parts
from support.fixture_runs import with_one_nan, without_stack
from support.releases import FIXTURES, REFUSED, RELEASES, is_dialect, outcome, run
from support.targets import FAULT_BOARDS, aligned, on_boards

pytestmark = pytest.mark.check

SUPPORTED = in_words((FIRST, LAST))
RUN = [name for name in FIXTURES if name not in REFUSED]
# Programs that call operators in an earlier form, and the numbers of these calls
EARLIER = {"1.1.0/int8_convolutions": (1, 2, 4), "1.2.0/int8_elementwise": (2,),
           "1.2.0/int8_transposed_convolution": (2,), "1.3.1/int8_attention": (5,),
           "1.4.1/int8_pad": (3,)}


def outputs(result):
    return {path: data for path, data in result.files.items() if path.startswith("out")}


def bundle(release):
    return fixture_store.RELEASES / release / "bundled" / "model.bpte"


def load(pte):
    load_with_exact_memories(Program.load(BufferDataLoader(aligned(pte))), "forward")


def test_each_release_has_ten_programs():
    for release in RELEASES[1:]:
        run_by_it = [name for name in RUN if name.startswith(release)]
        assert len(run_by_it) + bundle(release).exists() >= 10
        assert sum(map(is_dialect, run_by_it)) >= 5


def test_programs_are_of_the_first_to_the_last_release():
    assert [release.rpartition(".")[0] for release in RELEASES] == [
        f"1.{minor}" for minor in range(FIRST, LAST + 1)]


@pytest.mark.parametrize("name", RUN)
def test_outputs_are_those_of_the_release(name):
    assert outcome(name) == ("equal" if is_dialect(name) else "close")


@pytest.mark.parametrize("name", RUN)
def test_a_ptm_file_has_the_same_outputs(name):
    assert outputs(run(name, compiled=True)) == outputs(run(name))


@pytest.mark.parametrize(("name", "board"), [
    (name, board) if board in FAULT_BOARDS else pytest.param(name, board, marks=pytest.mark.thorough)
    for name, board in on_boards(filter(is_dialect, RUN))])
def test_boards_have_the_same_outputs(name, board):
    on_board, on_host = run(name, board), run(name)
    assert without_stack(on_board.lines) == without_stack(on_host.lines)
    assert with_one_nan(FIXTURES[name], on_board) == with_one_nan(FIXTURES[name], on_host)


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "board"), [
    pair for pair in on_boards(RUN) if is_dialect(pair[0]) or pair[1] in FAULT_BOARDS])
def test_boards_have_the_same_outputs_of_ptm_files(name, board):
    wanted = with_one_nan(FIXTURES[name], run(name, compiled=True))
    found = with_one_nan(FIXTURES[name], run(name, board, compiled=True))
    assert {path: found[path] for path in found if path.startswith("out")} == {
        path: wanted[path] for path in wanted if path.startswith("out")}


@pytest.mark.parametrize("release", RELEASES)
def test_bundled_programs_pass_their_test_sets(call, release):
    status, out, error = call("run", bundle(release), "--json")
    assert (status, error) == (0, "")
    methods = json.loads(out)["methods"]
    assert [len(method["test_sets"]) for method in methods] == [2, 2]


@pytest.mark.parametrize("name", REFUSED)
def test_a_program_that_its_release_cannot_run_is_rejected(name):
    assert outcome(name) == "rejected"
    assert rejected(FIXTURES[name].pte) == f"NotSupported (0x10): {REFUSED[name]}"


# ---- forms


def with_arguments(name, index, change):
    """Return the program with changed arguments of an instruction, and their number."""
    parts = Parts(FIXTURES[name].pte)
    place = ("execution_plan", 0, "chains", 0, "instructions", index, "instr_args", 1, "args")
    arguments = change(list(parts.get(place)))
    return parts.changed(place, arguments), len(arguments)


def rejected(pte):
    with pytest.raises(Error) as caught:
        load(pte)
    return str(caught.value)


def calls(test):
    return pytest.mark.parametrize(
        ("name", "index"), [(name, i) for name, indexes in EARLIER.items() for i in indexes])(test)


def test_a_program_calls_each_earlier_form():
    called = {form for name, indexes in EARLIER.items() for form in forms_of(name, indexes)}
    assert called == {(operator.name, form.n_args) for operator in supported_operators().values()
                      for form in operator.forms}


def forms_of(name, indexes):
    meta = open_program(FIXTURES[name].pte).method_meta("forward")
    instructions = read_instructions(meta, Values(meta.program, meta.plan))
    return [(instructions[i].call, len(instructions[i].arguments + instructions[i].outputs))
            for i in indexes]


@pytest.mark.parametrize(("name", "index"), [
    (name, index) for name, indexes in EARLIER.items() for index in indexes
    if not name.startswith("1.4")])  # the pool of 1.4 then has the form of 1.1
def test_a_form_without_its_last_input_is_rejected(name, index):
    pte, given = with_arguments(name, index, lambda found: found[:-3] + found[-2:])
    text = rejected(pte)
    assert text.startswith(f"InvalidProgram (0x23): instruction {index}: ")
    assert f" arguments wanted, {given} given: " in text
    assert (f": no release of ExecuTorch from {SUPPORTED} has this form, perhaps a version between "
            "them: cortex_m::quantized_") in text
    assert text.endswith(f".out; export the program again with ExecuTorch 1.{LAST}")


@pytest.mark.parametrize("name", ["1.5.1/int8_elementwise", "1.3.1/int8_elementwise"])
def test_a_form_with_an_argument_more_is_rejected(name):
    pte, given = with_arguments(name, 2, lambda found: [*found[:-2], found[-3], *found[-2:]])
    assert rejected(pte) == (
        f"InvalidProgram (0x23): instruction 2: 15 arguments wanted, {given} given: "
        f"more than in ExecuTorch {SUPPORTED}, as in a later release: cortex_m::quantized_add.out; "
        f"update picotorch, or export the program again with ExecuTorch 1.{LAST}")


@calls
def test_an_argument_more_in_an_earlier_form_is_rejected(name, index):
    """Either as a form that no release has, or since the argument of the next form is of another
    kind."""
    pte, _ = with_arguments(name, index, lambda found: [*found[:-2], found[1], *found[-2:]])
    text = rejected(pte)
    assert "arguments wanted" in text or "is of the wrong kind" in text


@calls
def test_arguments_of_wrong_kinds_in_an_earlier_form_are_rejected(name, index):
    wrong_kind = 0
    parts = Parts(FIXTURES[name].pte)
    plan = ("execution_plan", 0)
    place = (*plan, "chains", 0, "instructions", index, "instr_args", 1, "args")
    kinds = [value["val"][0] for value in parts.get((*plan, "values"))]
    arguments = parts.get(place)
    for i, argument in enumerate(arguments[:-1]):
        other = "Int" if kinds[argument] != "Int" else "Tensor"
        changed = [*arguments[:i], kinds.index(other), *arguments[i + 1 :]]
        wrong_kind += "is of the wrong kind" in rejected(parts.changed(place, changed))
    assert wrong_kind == len(arguments) - 1


def test_planned_memory_of_scratch_needs_no_zeros():
    program = open_program(FIXTURES["1.5.1/int8_convolutions"].pte)
    assert uninitialized_reads.zeros(pool_records.load(program, "forward", None, None)) == []


@pytest.mark.skipif(not importlib.util.find_spec("executorch"),
                    reason="executorch is not installed (the export extra)")
@pytest.mark.parametrize("int8_io", [False, True])
@pytest.mark.parametrize("name", EARLIER)
def test_a_program_exported_again_has_the_same_outputs(name, int8_io):
    _, report = export_file(FIXTURES[name].pte, name, int8_io)
    assert [method.checked for method in report.methods] == ["same outputs"]


# ---- the release that a program looks like


@pytest.mark.parametrize(("name", "releases"), [
    ("1.1.0/int8_convolutions", "1.1 to 1.3"), ("1.2.0/int8_elementwise", "1.1 to 1.2"),
    ("1.2.0/int8_transposed_convolution", "1.2 to 1.3"), ("1.3.1/int8_elementwise", "1.3 to 1.5"),
    ("1.4.1/int8_pad", "1.4"), ("1.5.1/int8_pad", "1.5"), ("1.2.0/float_transformer", None)])
def test_inspect_names_the_releases_that_a_program_can_be_from(call, name, releases):
    path = FIXTURES[name].path
    assert json.loads(call("inspect", path, "--json")[1])["executorch"] == releases
    line = call("inspect", path)[1].splitlines()[0]
    assert line.endswith(f", exported by ExecuTorch {releases}" if releases else "1 method(s)")


def test_a_program_with_forms_of_different_releases_is_from_none(call, tmp_path):
    pte, _ = with_arguments("1.3.1/int8_elementwise", 2,
                            lambda found: [*found[:-4], *found[-2:]])
    path = tmp_path / "mixed.pte"
    path.write_bytes(pte)
    assert json.loads(call("inspect", path, "--json")[1])["executorch"] is None
