"""Test picotorch advise: its findings in programs of the tests, and the programs without findings."""

import json
from pathlib import Path

import pytest
from picotorch import Error
from picotorch.compile.ptm_writer import compile_ptm
from picotorch.host.instructions import JUMP_FALSE_CALL, read_instructions
from picotorch.host.twin import open_program
from picotorch.host.values import Values
from picotorch.inspect.lifetimes import lifetimes
from picotorch.measure import advising
from picotorch.measure.advising import advise, int8_share
from support import fixture_store

NET_INT8 = Path(__file__).parents[2] / "docs/net_int8.pte"
TRANSFORMER = Path(__file__).parents[1] / "models/export/programs/transformer_cortex-m4.pte"


def found(call, path):
    """Return {the finding, up to its figures: the instructions}."""
    status, text, error = call("advise", path, "--json")
    assert (status, error) == (0, "")
    return {one["what"].partition(", ")[0]: one for one in json.loads(text)["advice"]}


@pytest.mark.parametrize("name, what, instructions, nbytes", [
    ("deep_autoencoder", "constants are copied to RAM in each run", [*range(0, 40, 4)], 640 * 128 * 4),
    ("deep_autoencoder", "weights are float32", [*range(1, 40, 4)], 1_056_768 * 3 // 4),
    ("lstm", "a recurrent layer was exported as 3 steps", [21, 34, 47], 0),
    ("int8_ds_cnn", "tensors are copied unchanged", [2, 11], 8000),
    ("int8_ds_cnn", "inputs and outputs are float", [0, 15], 490 * 4 + 12 * 4)])
def test_files_that_cost_too_much_to_verify(call, name, what, instructions, nbytes):
    one = found(call, fixture_store.load(name).path)[what]
    assert (one["instructions"], one["bytes"]) == (instructions, nbytes) and one["remedy"]


def test_a_first_convolution_that_int8_hardly_speeds_up(call):
    what = "int8 hardly speeds up a convolution of one channel with a small kernel"
    assert found(call, NET_INT8)[what]["instructions"] == [1]
    assert what not in found(call, fixture_store.load("int8_ds_cnn").path)  # 40 products per output
    assert what not in found(call, fixture_store.load("int8_resnet8").path)  # three channels


def test_layers_that_int8_leaves_in_float(call):
    advice = found(call, TRANSFORMER)
    assert advice["int8 leaves aten::native_layer_norm in float"]["instructions"] == [2, 28]
    assert "int8 leaves aten::mul in float" in advice


def test_layers_in_float_and_conversions_between_them_are_counted(call):
    """All layers of the program stay in float, between conversions."""
    advice = found(call, TRANSFORMER)
    assert any(what.endswith("values between int8 and float") for what in advice)


def test_the_share_of_int8(call):
    shares = int8_share(fixture_store.load("int8_ds_cnn").pte)
    assert shares.macs == shares.all_macs > 0 and shares.layers == shares.all_layers > 1
    shares = int8_share(TRANSFORMER.read_bytes())
    assert 0 < shares.layers < shares.all_layers and shares.macs == shares.all_macs
    shares = int8_share(fixture_store.load("add_1").pte)
    assert shares.layers == 0 < shares.all_layers


def test_delegates_are_named_with_a_remedy(call):
    status, text, _ = call("advise", fixture_store.load("delegated").path)
    assert status == 0 and "does not run without XnnpackBackend" in text
    assert "without XnnpackPartitioner" in text and "instructions: 0" in text
    assert "No advice" not in text


@pytest.mark.parametrize("name", ["add_1", "int8_io_ds_cnn"])
def test_nothing_to_advise(call, name):
    path = fixture_store.load(name).path
    left = set(found(call, path)) - {"tensors are copied unchanged"}
    assert not left


def test_printed_text(call):
    status, text, _ = call("advise", fixture_store.load("deep_autoencoder").path)
    assert status == 0
    for words in ("1. Constants are copied to RAM in each run, 1,056,768 B in all: 327,680 B",
                  "picotorch export, which keeps linear layers", "Most RAM: tensors at instruction 1",
                  "Float 640x128  327,680", "1   aten::addmm.out  81,920  31.0 %"):
        assert words in text


@pytest.mark.thorough
def test_every_program_can_be_advised_on(call):
    for fixture in fixture_store.load_all():
        method = fixture.runs[0].method if fixture.runs else "forward"
        assert call("advise", fixture.path, "--method", method)[0] == 0, fixture.name


# ---- compiled methods, in which layers share tensors, and constants are omitted


def ptms():
    """Yield (program, its .ptm file, method) of each fixture's methods. Programs with jumps are left
    out, since advise does not distinguish their tensors in shared memory."""
    for fixture in fixture_store.load_all():
        try:
            ptm = compile_ptm(fixture.pte, fixture.data, "cortex-m4").data
        except Error:
            continue
        for name in fixture.methods:
            meta = open_program(fixture.pte).method_meta(name)
            instructions = read_instructions(meta, Values(meta.program, meta.plan))
            if all(one.kind != JUMP_FALSE_CALL for one in instructions):
                yield fixture.pte, ptm, name


def boxes(model, method):
    return sorted((box.buffer, box.offset, box.nbytes, box.first, box.last, str(box.made_by))
                  for box in lifetimes(open_program(model).method_meta(method)))


def test_tensors_of_a_ptm_file_live_as_those_of_its_program():
    count = 0
    for program, ptm, method in ptms():
        assert boxes(ptm, method) == boxes(program, method)
        count += 1
    assert count > 200


def is_comparison(what):
    """Return True for a comparison with float32. A .ptm file has other bytes and other cycles."""
    return what.startswith(("int8 is ", "int8 gains little")) or what.endswith("int8 gains little")


@pytest.mark.thorough
def test_advice_on_a_ptm_file_is_that_on_its_program(monkeypatch):
    """Only the comparison, which selects the remaining advice, is left out."""
    monkeypatch.setattr(advising, "agreed", lambda found: found)
    for program, ptm, method in ptms():
        of_program, of_ptm = (advise(model, "", method) for model in (program, ptm))
        assert of_ptm.advice == [one for one in of_program.advice if not is_comparison(one.what)]
        assert (of_ptm.memory, of_ptm.layers) == (of_program.memory, of_program.layers)


def test_inspect_names_the_constants_that_a_ptm_file_omits(call, tmp_path):
    file = tmp_path / "kws.ptm"
    ptm = compile_ptm(fixture_store.load("int8_ds_cnn").pte, (), "cortex-m4")
    file.write_bytes(ptm.data)
    (method,) = json.loads(call("inspect", file, "--json")[1])["methods"]
    memories = {tensor["memory"] for tensor in method["tensors"] if tensor["sizes"] == [64, 1, 1, 64]}
    assert memories == {"left out"}
    assert 0 <= ptm.parts.constants - method["constant_bytes"] < 100  # the bytes of lists
    lines = call("inspect", file)[1].splitlines()
    assert any(line.rstrip().endswith("  left out") for line in lines)
