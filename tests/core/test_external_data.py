"""Test external tensors: .ptd files, their faults, and the search of a load for a tensor's data in .ptd
files."""

import functools
import json
import os
import struct
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from picotorch import (
    BufferDataLoader,
    Error,
    FileDataLoader,
    FlatTensorDataMap,
    MergedDataMap,
    Module,
    Program,
)
from picotorch.module import load_with_exact_memories
from picotorch.run.job import Job
from support import damage, fixture_store, sanitized
from support.flatbuffer_builder import build_data
from support.programs import call, external_relu, external_tensor, plan, program, tensor
from support.targets import HOST, SCRIPT_BOARDS, aligned, run_script

WEIGHTS = struct.pack("<4f", 1, -2, 3, -4)
FLOATS = {"scalar_type": 6, "sizes": [4], "dim_order": [0]}


def data_file(data=WEIGHTS, layout=FLOATS, segments=({"offset": 0, "size": 16},), key="w", index=0,
              version=0, **header):
    """Build a .ptd file with one key. With `layout` None the key has no layout."""
    named = {"key": key, "segment_index": index}
    if layout is not None:
        named["tensor_layout"] = dict(layout)
    return build_data({"version": version, "segments": [dict(s) for s in segments],
                       "named_data": [named]}, data, **header)


def load_data(data):
    return FlatTensorDataMap.load(BufferDataLoader(aligned(data)))


def run(data, pte=None):
    """Return relu of the data of w in the file."""
    loaded = Program.load(BufferDataLoader(aligned(pte or external_relu())))
    method = load_with_exact_memories(loaded, "forward", data_map=data and load_data(data))
    method.execute()
    return list(method.get_output(0).data)


# ---- data maps


@functools.cache
def fixture_map(name, number=0):
    return load_data(fixture_store.load(name).data[number])


def test_keys_layouts_and_data_of_a_file():
    data_map = fixture_map("external_two_files")
    assert data_map.get_num_keys() == 2
    assert data_map.keys() == ["0.weight", "0.bias"]
    layout = data_map.get_tensor_layout("0.weight")
    assert (layout.sizes(), layout.dim_order(), layout.dtype, layout.nbytes()) == (
        (4, 3), (0, 1), "Float", 48)
    assert len(data_map.get_data("0.weight")) == 48
    assert repr(data_map) == "<FlatTensorDataMap 528B: 0.weight, 0.bias>"
    assert fixture_map("external_weights").get_tensor_layout("0.weight").dim_order() == (0, 2, 3, 1)


def test_data_is_where_it_lies_in_the_file():
    file = aligned(fixture_store.load("external_two_files").data[0])
    data = FlatTensorDataMap.load(BufferDataLoader(file)).get_data("0.bias")
    start = np.frombuffer(file, np.uint8).ctypes.data
    assert start <= np.frombuffer(data, np.uint8).ctypes.data < start + len(file)


def test_a_file_loader_and_paths():
    fixture = fixture_store.load("external_two_files")
    data_map = FlatTensorDataMap.load(FileDataLoader(str(fixture.data_paths[0])))
    assert data_map.get_num_keys() == 2
    module = Module(str(fixture.path), [str(path) for path in fixture.data_paths])
    run = fixture.runs[0]
    output = module.forward(*[aligned(value.tobytes()).cast("f") for value in run.inputs])
    np.testing.assert_allclose(list(output.data), run.expected[0].reshape(-1), rtol=1e-5)


def test_an_entry_missing_from_a_data_map():
    data_map = load_data(data_file())
    with pytest.raises(Error, match=r"NotFound .*: x: is none of the keys: w; give one of them"):
        data_map.get_data("x")
    with pytest.raises(Error, match="NotFound"):
        data_map.get_tensor_layout("x")
    for index in (-1, 1):
        with pytest.raises(Error, match="InvalidArgument"):
            data_map.get_key(index)
    with pytest.raises(Error, match="InvalidExternalData .*: w: is not a tensor"):
        load_data(data_file(layout=None)).get_tensor_layout("w")


def test_a_key_that_a_file_has_twice_is_the_same_data_in_each_load():
    twice = [{"key": "w", "segment_index": i, "tensor_layout": dict(FLOATS)} for i in (0, 1)]
    segments = [{"offset": 0, "size": 16}, {"offset": 16, "size": 16}]
    data = build_data({"version": 0, "segments": segments, "named_data": twice},
                      WEIGHTS + struct.pack("<4f", 9, 9, 9, 9))
    loaded, data_map = Program.load(BufferDataLoader(aligned(external_relu()))), load_data(data)
    for _ in range(3):
        method = load_with_exact_memories(loaded, "forward", data_map=data_map)
        method.execute()
        assert list(method.get_output(0).data) == [1, 0, 3, 0]


def test_maps_merged():
    merged = MergedDataMap.load([fixture_map("external_two_files", i) for i in (0, 1)])
    assert merged.get_num_keys() == 4
    assert merged.keys() == [merged.get_key(i) for i in range(4)] == [
        "0.weight", "0.bias", "2.weight", "2.bias"]
    assert merged.get_tensor_layout("2.bias").sizes() == (2,)
    assert len(merged.get_data("2.bias")) == 8
    with pytest.raises(Error, match="NotFound"):
        merged.get_data("w")
    for index in (-1, 4):
        with pytest.raises(Error, match="InvalidArgument"):
            merged.get_key(index)


def test_maps_that_do_not_merge():
    data_map = fixture_map("external_two_files")
    with pytest.raises(Error, match="InvalidArgument .*: 0.weight: is in two of the data maps"):
        MergedDataMap.load([data_map, data_map])
    with pytest.raises(Error, match="InvalidArgument .*no key"):
        MergedDataMap.load([])


# ---- data that load finds and rejects, here and on the boards

HUGE = 1 << 63
# file or None, begin of the error's text
CASES = {
    "empty": (b"", "InvalidArgument (0x12): data file: 48B requested, 0B available: too few"),
    "a program": (external_relu(), "NotFound (0x20): data file: no header FH01"),
    "magic": (data_file(magic=b"FH02"), "NotFound (0x20): data file: no header FH01"),
    "header": (data_file(length=39), "InvalidExternalData (0x24): data file: header is too short"),
    "identifier": (data_file().replace(b"FT01", b"FT02", 1),
                   "InvalidExternalData (0x24): data file: no file identifier FT01"),
    "offset": (data_file(flatbuffer_offset=1 << 40), "InvalidArgument (0x12): data file: its tables"),
    "offset 2": (data_file(flatbuffer_offset=HUGE), "InvalidArgument (0x12): data file: its tables"),
    "size": (data_file(flatbuffer_size=HUGE - 1), "InvalidArgument (0x12): data file: its tables"),
    "no tables": (data_file(flatbuffer_offset=0, flatbuffer_size=0),
                  "InvalidExternalData (0x24): "),
    "few tables": (data_file(flatbuffer_size=16), "InvalidExternalData (0x24): byte "),
    "base": (data_file(segment_base=1 << 20), "InvalidExternalData (0x24): data file: its seg"),
    "base 2": (data_file(segment_base=HUGE), "InvalidExternalData (0x24): data file: its seg"),
    "data size": (data_file(segment_data_size=17),
                  "InvalidExternalData (0x24): data file: its seg"),
    "data size 2": (data_file(segment_data_size=HUGE),
                    "InvalidExternalData (0x24): data file: its seg"),
    "version": (data_file(version=1), "NotSupported (0x10): data file: a schema version other than 0"),
    "no segments": (data_file(segments=()), "InvalidExternalData (0x24): named data 0: there is no"),
    "nothing": (build_data({}), "InvalidExternalData (0x24): data file: has no segments"),
    "no named data": (build_data({"segments": []}), "InvalidExternalData (0x24): data file: has no"),
    "no key": (build_data({"segments": [{"offset": 0, "size": 0}], "named_data": [{}]}),
               "InvalidExternalData (0x24): named data 0: has no key"),
    "segment": (data_file(index=1),
                "InvalidExternalData (0x24): named data 0: there is no such segment"),
    "segment offset": (data_file(segments=[{"offset": 4, "size": 16}]),
                       "InvalidExternalData (0x24): segment 0: lies outside"),
    "segment offset 2": (data_file(segments=[{"offset": HUGE, "size": 16}]),
                         "InvalidExternalData (0x24): segment 0: lies outside"),
    "segment size": (data_file(segments=[{"offset": 0, "size": 17}]),
                     "InvalidExternalData (0x24): segment 0: lies outside"),
    "segment size 2": (data_file(segments=[{"offset": 8, "size": HUGE + 8}]),
                       "InvalidExternalData (0x24): segment 0: lies outside"),
    "other key": (data_file(key="v"),
                  "NotFound (0x20): external tensor: no data file has this key: w; take the .ptd file"),
    "longer key": (data_file(key="ww"), "NotFound (0x20): external tensor: no data file has"),
    "no layout": (data_file(layout=None),
                  "InvalidExternalData (0x24): external tensor: is not a tensor in the data file: w"),
    "empty layout": (data_file(layout={}),
                     "InvalidExternalData (0x24): external tensor: has another dtype"),
    "dtype": (data_file(layout=FLOATS | {"scalar_type": 3}),
              "InvalidExternalData (0x24): external tensor: has another dtype in the data file: w"),
    "sizes": (data_file(layout=FLOATS | {"sizes": [3]}),
              "InvalidExternalData (0x24): external tensor: has other sizes in the data file: w"),
    "negative sizes": (data_file(layout=FLOATS | {"sizes": [-4]}),
                       "InvalidExternalData (0x24): external tensor: has other sizes"),
    "rank": (data_file(layout=FLOATS | {"sizes": [4, 1], "dim_order": [0, 1]}),
             "InvalidExternalData (0x24): external tensor: has other sizes"),
    "no sizes": (data_file(layout={"scalar_type": 6}),
                 "InvalidExternalData (0x24): external tensor: has other sizes"),
    "dim order": (data_file(layout=FLOATS | {"dim_order": [1]}),
                  "InvalidExternalData (0x24): external tensor: has another dim order"),
    "no dim order": (data_file(layout={"scalar_type": 6, "sizes": [4]}),
                     "InvalidExternalData (0x24): external tensor: has another dim order"),
    "too few bytes": (data_file(segments=[{"offset": 0, "size": 12}]),
                      "InvalidExternalData (0x24): external tensor: 16B requested, 12B available: w"),
    "odd place": (data_file(bytes(2) + WEIGHTS, segments=[{"offset": 2, "size": 16}]),
                  "InvalidExternalData (0x24): external tensor: has data not aligned to 4 bytes: w"),
    "good at 4": (data_file(bytes(4) + WEIGHTS, segments=[{"offset": 4, "size": 16}]), "[1, 0, 3, 0]"),
    "good": (data_file(), "[1, 0, 3, 0]"),
}


def job():
    return Job({"model": external_relu()}
               | {f"data{i}": data for i, (data, _) in enumerate(CASES.values())})


@pytest.mark.parametrize("target", [HOST, *SCRIPT_BOARDS])
def test_each_fault_of_a_data_file_is_named(target):
    lines = run_script("external_data.py", job(), target).lines
    assert lines[0].startswith("none InvalidState (0x02): external tensor: no data file was given: w")
    for i, (name, (_, expected)) in enumerate(CASES.items()):
        assert lines[1 + i].startswith(f"{i} {expected}"), (name, lines[1 + i])
    assert lines[1 + len(CASES) :] == ["[1, 0, 3, 0]", "[5, 6, 7, 0]"]


@pytest.mark.parametrize("shift", [1, 2, 4])
def test_a_misaligned_data_file_is_rejected(shift):
    data = data_file()
    memory = aligned(len(data) + 8)[shift : shift + len(data)]
    memory[:] = data
    with pytest.raises(Error, match="InvalidArgument .*data file: does not start at a multiple of 8"):
        FlatTensorDataMap.load(BufferDataLoader(memory))


def test_a_tensor_without_a_name():
    with pytest.raises(Error, match="InvalidExternalData .*external tensor: has no name"):
        run(data_file(), external_relu(name=None))


def test_initial_values_need_a_data_file_too():
    """As in ExecuTorch, the error differs from the error of a missing constant."""
    with pytest.raises(Error, match="InvalidExternalData .*no data file was given: w"):
        run(None, external_relu(offset=0))
    assert run(data_file(), external_relu(offset=0)) == [1, 0, 3, 0]
    odd = data_file(bytes(2) + WEIGHTS, segments=[{"offset": 2, "size": 16}])
    assert run(odd, external_relu(offset=0)) == [1, 0, 3, 0]  # copied, so any place does


def test_an_external_tensor_without_elements():
    layout = FLOATS | {"sizes": [0]}
    nothing = plan([external_tensor([0]), tensor([0], 0)], [call(0, 0, 1, 1)], ["aten::relu.out"], [],
                   [1], [16])
    file = data_file(b"", layout, [{"offset": 0, "size": 0}])
    assert run(file, program(nothing)) == []
    with pytest.raises(Error, match="has other sizes"):
        run(file)


def test_an_error_names_the_file(tmp_path):
    path = tmp_path / "weights.ptd"
    path.write_bytes(data_file(magic=b"FH02"))
    with pytest.raises(Error, match=r"NotFound .*no header FH01: not a .ptd file: .*weights\.ptd;"):
        FlatTensorDataMap.load(FileDataLoader(str(path)))
    path.write_bytes(data_file(index=1))
    with pytest.raises(Error, match=r"InvalidExternalData .*no such segment: .*weights\.ptd; take"):
        FlatTensorDataMap.load(FileDataLoader(str(path)))
    path.write_bytes(data_file(layout=FLOATS | {"scalar_type": 3}))
    data_map = FlatTensorDataMap.load(FileDataLoader(str(path)))
    loaded = Program.load(BufferDataLoader(aligned(external_relu())))
    with pytest.raises(Error, match=r"another dtype in the data file: w in .*weights\.ptd; take"):
        load_with_exact_memories(loaded, "forward", data_map=data_map)


def many(names, keys):
    """Return a program with external tensors of these names, and a data file with these keys."""
    values = [external_tensor([4], name) for name in names] + [tensor([4], 0)]
    last = len(values) - 1
    pte = program(plan(values, [call(0, 0, last, last)], ["aten::relu.out"], [], [last], [16]))
    named = [{"key": key, "segment_index": 0, "tensor_layout": FLOATS} for key in keys]
    return pte, build_data({"segments": [{"offset": 0, "size": 16}], "named_data": named}, WEIGHTS)


def test_many_tensors_are_found_in_many_keys():
    """The search finds tensors at once in the order of the keys, and within a bound in any other
    order."""
    names = [f"w{i}" for i in range(300)]
    for keys in (names, names[::-1], sorted(names)):
        pte, data = many(names, keys)
        assert run(data, pte) == [1, 0, 3, 0]


def test_so_many_searches_end_with_an_error():
    """Each search looks at all keys."""
    pte, data = many(["w"] * 60, ["x"] * 20000 + ["w"])
    start = time.process_time()
    with pytest.raises(Error, match="NotSupported .*external tensor: too many key lookups"):
        run(data, pte)
    assert time.process_time() - start < damage.SECONDS


# ---- damaged files


@pytest.mark.thorough
@pytest.mark.parametrize(("kind", "name"), [
    ("data_truncations", "external_two_methods"), ("data_truncations", "external_state"),
    ("data_flips", "external_two_methods"), ("data_flips", "external_weights"),
    ("data_flips", "external_state"), ("flips", "external_state")])
def test_a_damaged_file_works_or_is_rejected(kind, name):
    command = [sys.executable, Path(damage.__file__), kind, name]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300,
                           env=sanitized.environment() or os.environ)
    assert ended.returncode == 0, ended.stderr[-3000:]
    report = json.loads(ended.stdout)
    assert report["wrong"] == []
    counts = report["counts"]
    assert sum(counts.values()) - counts.get("ok", 0) > 50
    if kind == "data_truncations":
        assert "ok" not in counts


# ---- the command line


def arguments(name, *options):
    fixture = fixture_store.load(name)
    return [fixture.path, *options, *[word for path in fixture.data_paths for word in ("--data", path)]]


@pytest.mark.parametrize("name", ["external_two_files", "external_state"])
def test_run_and_parity_accept_data_files(call, name):
    fixture = fixture_store.load(name)
    inputs = ["--inputs", fixture.path.parent / "inputs.npz"]
    assert call("run", *arguments(name), *inputs, "--board", "mps2-an386")[0] == 0
    status, out, _ = call("parity", *arguments(name), "--board", "mps2-an386")
    assert (status, out.splitlines()[-1].endswith(" agree")) == (0, True)
    assert call("size", *arguments(name), "--board", "mps2-an386")[0] == 0


@pytest.mark.parametrize("method", ["encode", "decode"])
def test_a_small_board_accepts_data_files(call, method):
    status, _, err = call("run", *arguments("external_two_methods", "--method", method), "--board",
                          "netduinoplus2", "--pool-size", "4096", "--temp-size", "1024")
    assert (status, err) == (0, "")


def test_the_command_line_names_missing_data(call):
    path, first = fixture_store.load("external_two_files").path, arguments("external_two_files")[1:3]
    status, _, err = call("run", path)
    assert status == 1
    assert err == (f"InvalidState (0x02): {path}: external tensor: no data file was given: 0.weight; "
                   "give its .ptd file\n")
    status, _, err = call("run", path, *first, "--board", "mps2-an386")
    assert status == 1
    assert err.startswith(
        f"NotFound (0x20): {path}: external tensor: no data file has this key: 2.weight; ")
    status, out, err = call("run", path, "--data", "nowhere.ptd", "--json")
    assert (status, err) == (1, "")
    error = json.loads(out)["error"]
    assert error["name"] == "AccessFailed" and error["message"].startswith("nowhere.ptd: No such file")


def test_inspect_shows_external_tensors(call):
    status, out, _ = call("inspect", fixture_store.load("external_two_files").path)
    assert status == 0
    assert any(line.split()[-3:] == ["external", "0", "2.weight"] for line in out.splitlines())


def test_size_counts_data_files(call):
    status, out, _ = call("size", *arguments("external_two_files"), "--board", "mps2-an386", "--json")
    entry = json.loads(out)
    assert (status, entry["data_bytes"], entry["constant_bytes"]) == (0, [528, 520], 0)
    assert entry["boards"][0]["memories"]["model"]["needed"] == 2216 + 528 + 520


def test_a_reset_leaves_the_constant_that_a_buffer_is_a_view_of():
    """The initial value of w is in the planned memory of the program, after load and after a reset."""
    values = [external_tensor([2, 4], name="v"), {"val": ("IntList", {"items": [4]})},
              external_tensor([8], name="w", offset=0), tensor([8], 32),
              {"val": ("Int", {"int_val": 8})}]
    method = plan(values, [call(0, 0, 1, 2), call(1, 2, 3, 3)],
                  ["executorch_prim::et_view.default", "aten::relu.out"], [], [3], [64])
    keys = [{"key": name, "segment_index": i,
             "tensor_layout": {"scalar_type": 6, "sizes": sizes, "dim_order": list(range(len(sizes)))}}
            for i, (name, sizes) in enumerate({"v": [2, 4], "w": [8]}.items())]
    data = build_data({"version": 0, "named_data": keys,
                       "segments": [{"offset": 0, "size": 32}, {"offset": 32, "size": 32}]},
                      struct.pack("<16f", *range(16)))
    loaded = Program.load(BufferDataLoader(aligned(program(method))))
    found = load_with_exact_memories(loaded, "forward", data_map=load_data(data))
    for _ in range(2):
        found.execute()
        assert list(found.get_output(0).data) == list(range(8))
        found.reset_state()
