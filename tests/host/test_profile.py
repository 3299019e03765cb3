"""Test picotorch profile: the table, MACs, the memory map and the ETDump."""

import importlib.util
import json
import re
import struct
import sys
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
import resvg_py
from picotorch.compile.ptm_writer import compile_ptm
from picotorch.host import drawing
from picotorch.host.inputs import random_inputs
from picotorch.host.instructions import read_instructions
from picotorch.host.request import Request
from picotorch.host.twin import open_program
from picotorch.host.values import Values
from picotorch.inspect import memory_map
from picotorch.inspect.lifetimes import Box, lifetimes, live_bytes
from picotorch.measure import cycles, etdump, profiling
from picotorch.measure.macs import macs_of
from picotorch.runtime import Runtime
from support import benchmark_store, fixture_store
from support.calling import assert_error, assert_usage
from support.flatbuffer_builder import bool_value
from support.programs import call as kernel_call
from support.programs import plan, program, tensor

BOARD = "mps2-an386"
SVG = "{http://www.w3.org/2000/svg}"
MACS = {"ds_cnn": 2_656_768, "resnet8": 12_501_632, "mobilenet_v1_025": 7_489_664,
        "deep_autoencoder": 264_192, "int8_ds_cnn": 2_656_768, "int8_resnet8": 12_501_632,
        "int8_mobilenet_v1_025": 7_489_664, "int8_deep_autoencoder": 264_192,
        "int8_mv2_005_2": 4_129_024}
needs_executorch = pytest.mark.skipif(not importlib.util.find_spec("executorch"),
                                      reason="executorch is not installed (the export extra)")


def path(name):
    return fixture_store.load(name).path


def meta_of(model, method="forward"):
    return open_program(model).method_meta(method)


def profile(call, name, *options):
    status, out, error = call("profile", path(name), *options, "--json")
    assert (status, error) == (0, "")
    return json.loads(out)


def fixtures_that_run():
    return [fixture for fixture in fixture_store.load_all()
            if not fixture.refused and not fixture.backends]


# ---- the table


@pytest.mark.parametrize("board", ["host", BOARD])
def test_contents_of_the_json(call, board):
    entry = profile(call, "ds_cnn", "--board", board)
    assert (entry["method"], entry["board"], entry["pack_weights"]) == ("forward", board, False)
    assert entry["unit"] == ("ns" if board == "host" else "instructions")
    rows = entry["instructions"]
    assert [row["index"] for row in rows] == list(range(32))
    assert rows[31] | {"ticks": 0, "share": 0, "macs_per_tick": 0, "cycles": 0} == {
        "index": 31, "call": "aten::addmm.out", "estimated_as": "aten::addmm.out",
        "shapes": "1x64 * 64x12 -> 1x12", "calls": 1,
        "ticks": 0, "macs": 768, "share": 0, "macs_per_tick": 0, "cycles": 0}
    assert entry["macs"] == MACS["ds_cnn"]
    assert entry["total"] == sum(row["ticks"] for row in rows) + entry["end_of_loop"]
    assert sum(row["share"] for row in rows) == pytest.approx(1, abs=0.01)
    for key in ("ticks", "macs", "calls"):
        assert sum(one[key] for one in entry["operators"]) == sum(row[key] for row in rows)
    assert entry["operators"][0]["call"] == "aten::convolution.out"
    if board == "host":
        assert {row["cycles"] for row in [entry, *rows, *entry["operators"]]} == {None}
        return
    _, usual, _ = cycles.factors("cortex-m4", "aten::addmm.out")
    assert rows[31]["cycles"] == round(usual * rows[31]["ticks"])
    assert sum(row["cycles"] for row in rows) == pytest.approx(entry["cycles"], rel=0.001)


@pytest.mark.parametrize("board", ["host", BOARD, "mps3-an547"])
@pytest.mark.parametrize("name", ["int8_ds_cnn", "lstm", "mlp"])
def test_the_operator_with_the_largest_share_has_the_most_cycles(call, name, board):
    """The share is of cycles if these are estimated: an operator of long instructions may have few of
    them."""
    entry = profile(call, name, "--board", board)
    key = "ticks" if board == "host" else "cycles"
    assert entry["share_of"] == ("ns" if board == "host" else "cycles")
    total = entry["total"] if board == "host" else entry["cycles"]
    for one in (*entry["instructions"], *entry["operators"]):
        assert one["share"] == pytest.approx(one[key] / total, abs=1e-4)
    of_operators = [one[key] for one in entry["operators"]]
    assert of_operators == sorted(of_operators, reverse=True)
    if board != "host":
        rows = sorted(entry["instructions"], key=lambda row: -row[key])
        out = call("profile", path(name), "--board", board, "--sort", "share")[1]
        table = out.strip().partition("\n\n")[0].splitlines()
        assert " of cycles " in table[1]
        assert [line.split()[0] for line in table[2:]] == [str(row["index"]) for row in rows]


def test_counts_of_a_board_are_the_same_each_time(call):
    first, second = (profile(call, "mlp", "--board", BOARD) for _ in range(2))
    assert first == second


def test_the_table_in_order_or_by_share(call):
    by_order, by_share = (
        call("profile", path("ds_cnn"), "--board", BOARD, "--sort", sort)[1].splitlines()
        for sort in ("order", "share"))
    first = [line.split()[0] for line in by_order[3:35]]
    assert first == [str(i) for i in range(32)]
    assert sorted(by_order) == sorted(by_share) and by_order != by_share
    assert by_share[3].split()[1] == "aten::convolution.out"
    assert any(line.startswith("execute") and "100.0 %" in line for line in by_order)


def test_instructions_that_were_jumped_over(call):
    rows = profile(call, "control_flow", "--board", BOARD)["instructions"]
    assert {row["calls"] for row in rows} == {0, 1}
    assert all((row["ticks"] > 0) == (row["calls"] > 0) for row in rows)


def test_a_method_without_instructions(call):
    entry = profile(call, "constant_methods", "--method", "vocabulary")
    assert entry["instructions"] == [] and entry["executions"] == profiling.EXECUTIONS


def test_a_dynamic_program_reports_the_sizes_of_its_profile(call):
    status, out, _ = call("profile", path("dynamic_batch"), "--sizes", "0=3,3")
    assert status == 0 and "the largest sizes" in out
    assert "the largest sizes" not in call("profile", path("add_1"))[1]


def test_another_method_and_packed_weights(call):
    run = fixture_store.load("two_methods").runs[1]
    assert profile(call, "two_methods", "--method", run.method)["method"] == run.method
    entry = profile(call, "int8_resnet8", "--board", BOARD, "--pack-weights")
    assert entry["pack_weights"]


@pytest.mark.parametrize("core", ["cortex-m0plus", "cortex-m4"])
def test_this_computer_unpacks_weights_once(core):
    """A .ptm file that unpacks its weights for each block of patches takes forty times as long."""
    fixture = fixture_store.load("int8_resnet8")
    times = [profiling.profile(Request(model, "", fixture.runs[0].inputs), "host")[0].total
             for model in (fixture.pte, compile_ptm(fixture.pte, (), core).data)]
    assert times[1] < 3 * times[0]


@pytest.mark.parametrize("name", MACS)
def test_macs_of_networks(name):
    if name in benchmark_store.NAMES:
        model = benchmark_store.load(name).pte(BOARD)
    else:
        model = fixture_store.load(name).pte
    meta = meta_of(model)
    values = Values(meta.program, meta.plan)
    assert sum(macs_of(one, values) for one in read_instructions(meta, values)) == MACS[name]


@pytest.mark.parametrize("name", ["conv_transpose2d_groups", "conv2d_groups", "bmm", "linear_3d"])
def test_macs_of_single_operators(name):
    meta = meta_of(fixture_store.load(name).pte)
    values = Values(meta.program, meta.plan)
    found = [macs_of(one, values) for one in read_instructions(meta, values)]
    assert sum(found) > 0


@pytest.mark.parametrize("fixture", fixtures_that_run(), ids=lambda fixture: fixture.name)
def test_every_fixture_has_a_profile(fixture, monkeypatch):
    monkeypatch.setattr(profiling, "EXECUTIONS", 1)
    run = fixture.runs[0]
    method = run.method
    meta = meta_of(fixture.pte, method)
    if meta.num_backends():
        pytest.skip("its backends are defined elsewhere")
    bounds = random_inputs(meta)
    dynamic = any(np.shape(value) != np.shape(bound)
                  for value, bound in zip(run.inputs, bounds, strict=True))
    inputs = bounds if dynamic else run.inputs
    data = [path.read_bytes() for path in fixture.data_paths]
    request = Request(fixture.pte, fixture.name, inputs, method, data=data)
    found, executions = profiling.profile(request, "host")
    assert len(found.instructions) == meta.num_instructions()
    assert etdump.to_bytes(executions)[8:12] == b"ED00"


def test_errors(call, tmp_path):
    assert_error(call("profile", tmp_path / "nix.pte"), "AccessFailed", "nix.pte")
    assert_error(call("profile", path("add_1"), "--method", "nix"), "NotFound", "forward")
    assert_error(call("profile", path("missing_operators")), "OperatorMissing", "lgamma")
    assert_usage(call("profile", path("add_1"), "--firmware", "x.elf"), "--board")
    assert_usage(call("profile", path("add_1"), "--sort", "nix"), "--sort")
    (tmp_path / "map.svg").mkdir()
    for option in ("--memory-map", "--etdump"):
        assert_error(call("profile", path("add_1"), option, tmp_path / "map.svg"), "AccessFailed")
    assert_error(call("profile", path("no_inputs"), "--memory-map", tmp_path / "a" / "b.svg"),
                 "AccessFailed")


# ---- the memory map


@pytest.mark.parametrize("fixture", fixtures_that_run(), ids=lambda fixture: fixture.name)
def test_boxes_of_a_plan_do_not_overlap(fixture):
    """ExecuTorch's planner assigns every byte to one tensor at a time, except for views."""
    for name in fixture.methods:
        boxes = lifetimes(meta_of(fixture.pte, name))
        for i, box in enumerate(boxes):
            for other in boxes[:i]:
                shared = min(box.offset + box.nbytes, other.offset + other.nbytes) - max(
                    box.offset, other.offset)
                assert box.buffer != other.buffer or shared <= 0 or not box.meets(other)


@pytest.mark.parametrize("name", ["ds_cnn", "control_flow", "counter", "add_1", "two_methods"])
def test_the_memory_map_is_an_svg_of_all_boxes(call, tmp_path, name):
    method = fixture_store.load(name).runs[0].method
    drawn = tmp_path / "map.svg"
    assert call("profile", path(name), "--method", method, "--memory-map", drawn)[0] == 0
    root = ElementTree.parse(drawn).getroot()
    width, height = float(root.get("width")), float(root.get("height"))
    tooltips = [box.find(SVG + "title").text for box in root.iter(SVG + "rect")
                if box.find(SVG + "title") is not None]
    meta = meta_of(path(name).read_bytes(), method)
    assert len(tooltips) == len(lifetimes(meta))
    for box in root.iter(SVG + "rect"):
        if box.get("x") is not None:
            assert 0 <= float(box.get("x")) and 0 <= float(box.get("y"))
            assert float(box.get("x")) + float(box.get("width")) <= width
            assert float(box.get("y")) + float(box.get("height")) <= height
    texts = [text.text for text in root.iter(SVG + "text")]
    assert any(text.startswith("peak: ") for text in texts)
    assert f"planned buffer 0: {meta.memory_planned_buffer_size(0):,} bytes" in texts


def test_the_peak_of_ds_cnn_fills_its_buffer():
    meta = meta_of(fixture_store.load("ds_cnn").pte)
    boxes = lifetimes(meta)
    assert max(nbytes for _, nbytes in live_bytes(boxes)) == meta.memory_planned_buffer_size(0) == 64000


def test_state_lives_all_the_time_and_views_share_a_box():
    counter = lifetimes(meta_of(fixture_store.load("counter").pte))
    (state,) = [box for box in counter if box.made_by == "state"]
    assert (state.first, state.last) == (-1, 3)
    ds_cnn = lifetimes(meta_of(fixture_store.load("ds_cnn").pte))
    (view,) = [box for box in ds_cnn if len(box.values) > 1]
    assert (view.first, view.last) == (29, 31)


def test_bytes_that_tensors_share_count_once():
    boxes = [Box(0, 0, 16, 0, 3, 0, [0]), Box(0, 8, 16, 1, 2, 1, [1]), Box(0, 32, 8, 3, 3, 3, [2])]
    assert live_bytes(boxes) == [(0, 16), (1, 24), (3, 24), (4, 0)]


def test_live_bytes_are_those_of_any_box_however_they_overlap():
    generator = np.random.default_rng(0)
    for count in [0, 1, 2, *[40] * 20]:
        boxes = []
        for _ in range(count):
            offset, nbytes, first, length = (int(n) for n in generator.integers([0, 1, -1, 0],
                                                                                [64, 32, 10, 10]))
            boxes.append(Box(0, offset, nbytes, first, first + length, 0, [0]))
        for place, live in live_bytes(boxes):
            held = [box for box in boxes if box.first <= place <= box.last]
            assert live == len({byte for box in held
                                for byte in range(box.offset, box.offset + box.nbytes)})


def test_names_of_a_program_cannot_leave_their_place():
    info = {"extra_tensor_info": {"fully_qualified_name": "</title><script>&\"'"}}
    made = program(plan([tensor([4], 0, **info), tensor([4], 16)], [kernel_call(0, 0, 1, 1)],
                        ["aten::relu.out"], [0], [1], [32]))
    drawn = memory_map.draw(meta_of(made), "<b>&")
    assert "<script>" not in drawn and "<b>" not in drawn
    assert any("</title><script>&" in (one.text or "") for one in ElementTree.fromstring(drawn).iter())


@pytest.mark.parametrize("arguments", [("profile",), ("compile", "-o", "out.ptm")])
def test_a_png_has_the_pixels_and_the_text_of_the_svg(call, tmp_path, monkeypatch, arguments):
    monkeypatch.chdir(tmp_path)
    command, *more = arguments
    for name in ("map.svg", "map.PNG"):
        out = call(command, path("ds_cnn"), *more, "--memory-map", name)[1]
        assert f"Wrote {name}\n" in out
    text = (tmp_path / "map.svg").read_text()
    svg = ElementTree.fromstring(text)
    width, height = png_size((tmp_path / "map.PNG").read_bytes())
    assert (width, height) == (2 * int(svg.get("width")), 2 * int(svg.get("height")))
    without_text = re.sub("<text.*?</text>", "", text)
    assert (tmp_path / "map.PNG").read_bytes() != resvg_py.svg_to_bytes(svg_string=without_text, zoom=2)


def png_size(data):
    assert data[:8] == b"\x89PNG\r\n\x1a\n" and data[12:16] == b"IHDR"
    return struct.unpack(">II", data[16:24])


def test_a_png_needs_resvg_and_a_font(call, tmp_path, monkeypatch):
    """The command finds them missing before it starts the work, since resvg would omit the text."""
    picture = tmp_path / "map.png"
    with monkeypatch.context() as patched:
        patched.setattr(drawing, "_render", lambda svg, **how: b"")  # text or none: the same pixels
        assert_error(call("profile", path("add_1"), "--memory-map", picture), "NotFound", "fonts",
                     ".svg")
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    assert_error(call("profile", path("add_1"), "--memory-map", picture), "NotFound", "resvg-py",
                 "pip install 'picotorch[png]'")
    assert not picture.exists()


def test_a_method_without_planned_memory_has_no_map(call, tmp_path):
    model = tmp_path / "model.pte"
    model.write_bytes(program(plan([bool_value(True)], [], [], [], [0], [])))
    assert_error(call("profile", model, "--memory-map", tmp_path / "map.svg"), "InvalidArgument",
                 "no planned memory")


# ---- the ETDump


def inspected(etdump):
    """Read {block: {event: values by execution}} with executorch.devtools."""
    from executorch.devtools import Inspector
    from executorch.devtools.inspector import TimeScale

    inspector = Inspector(etdump_path=str(etdump), source_time_scale=TimeScale.CYCLES,
                          target_time_scale=TimeScale.CYCLES)
    return {block.name: [(event.name, event.perf_data.raw) for event in block.events]
            for block in inspector.event_blocks}


def test_the_etdump_has_its_identifier_and_size(call, tmp_path):
    written = tmp_path / "out.etdp"
    assert call("profile", path("mlp"), "--etdump", written)[0] == 0
    data = written.read_bytes()
    assert data[8:12] == b"ED00"
    assert int.from_bytes(data[:4], "little") == len(data) - 4
    assert data.count(b"Method::execute\0") == 1


def test_the_debug_buffer_has_the_results_of_instructions(call, tmp_path):
    written = tmp_path / "out.etdp", tmp_path / "out.bin"
    assert call("profile", path("mlp"), "--etdump", written[0], "--debug-buffer", written[1])[0] == 0
    loaded = Runtime.get().load_program(path("mlp"), enable_etdump=True, debug_buffer_size=1 << 20)
    loaded.load_method("forward").execute(random_inputs(meta_of(path("mlp").read_bytes()), 0))
    assert written[1].read_bytes() == bytes(loaded._record.buffer.data)
    assert_usage(call("profile", path("mlp"), "--debug-buffer", written[1]), "--etdump")


@needs_executorch
def test_the_inspector_sees_the_counts_of_a_board(call, tmp_path):
    written = tmp_path / "out.etdp"
    entry = profile(call, "ds_cnn", "--board", BOARD, "--etdump", written)
    (block,) = inspected(written).values()
    calls = [(name, raw) for name, raw in block if name.startswith("native_call_")]
    assert calls == [("native_call_" + row["call"].split("::")[1], [row["ticks"]])
                     for row in entry["instructions"]]
    assert [raw for name, raw in block if name == "OPERATOR_CALL"] == [raw for _, raw in calls]
    assert dict(block)["Method::execute"] == [entry["total"]]


@needs_executorch
@pytest.mark.parametrize("name", ["add2_5", "control_flow", "two_methods", "mlp"])
def test_the_events_have_the_names_of_executorch_runtime(tmp_path, name):
    """Both have load_program(enable_etdump=True), and run the same inputs twice."""
    import torch
    from executorch.runtime import Runtime as ExecuTorchRuntime

    run = fixture_store.load(name).runs[0]
    torch_inputs = [torch.from_numpy(value) for value in run.inputs]
    blocks = []
    for runtime, inputs in ((ExecuTorchRuntime, torch_inputs), (Runtime, run.inputs)):
        loaded = runtime.get().load_program(path(name), enable_etdump=True)
        method = loaded.load_method(run.method)
        method.execute(inputs)
        method.execute(inputs)
        written = tmp_path / "out.etdp"
        loaded.write_etdump_result_to_file(str(written), str(tmp_path / "debug.bin"))
        blocks.append([(name, len(raw)) for name, raw in inspected(written)["Execute"]])
    assert blocks[0] == blocks[1]


def test_the_runtime_records_executed_instructions(tmp_path):
    loaded = Runtime.get().load_program(path("two_methods"), enable_etdump=True)
    runs = fixture_store.load("two_methods").runs
    for run in runs:
        loaded.load_method(run.method).execute(run.inputs)
    written = tmp_path / "out.etdp"
    loaded.write_etdump_result_to_file(written, tmp_path / "debug.bin")
    assert written.read_bytes()[8:12] == b"ED00"
    assert len(loaded._record.executions) == len(runs)
