"""Test the results of instructions that load_program(enable_etdump=True, debug_buffer_size=...)
stores."""

import importlib.util

import numpy as np
import pytest
from picotorch import Error
from picotorch.host.tensors import DTYPES
from picotorch.runtime import Runtime
from support import fixture_store, programs
from support.flatbuffer_builder import bool_value

needs_executorch = pytest.mark.skipif(not importlib.util.find_spec("executorch"),
                                      reason="needs executorch")
SIZE = 1 << 20
NAMES = ["add2_5", "channels_last_network", "counter", "dynamic_batch", "max_dim", "mlp", "split",
         "symbolic_sizes", "view_copies", "zero_dim"]


def loaded(name, size=SIZE):
    return Runtime.get().load_program(fixture_store.load(name).path, enable_etdump=True,
                                      debug_buffer_size=size)


def executed(name, size=SIZE):
    program, run = loaded(name, size), fixture_store.load(name).runs[0]
    return program, program.load_method(run.method).execute(run.inputs)


def array(program, stored):
    dtype = np.dtype(DTYPES[stored.dtype])
    flat = np.frombuffer(program._record.buffer.data, dtype, offset=stored.offset)
    strides = [dtype.itemsize * stride for stride in stored.strides]
    return np.lib.stride_tricks.as_strided(flat, stored.sizes, strides)


@pytest.mark.parametrize("name", NAMES)
def test_the_outputs_follow_the_results_of_instructions(name):
    program, outputs = executed(name)
    (execution,) = program._record.executions
    assert len(execution.outputs) == sum(isinstance(output, np.ndarray) for output in outputs)
    for output, stored in zip(outputs, execution.outputs, strict=True):
        np.testing.assert_array_equal(array(program, stored), output)
    stored = [tensor for one in execution.computed for tensor in one.tensors] + execution.outputs
    offsets = [tensor.offset for tensor in stored]
    assert offsets == sorted(set(offsets)) and offsets[0] == 64
    assert not any(offset % 64 for offset in offsets)


@pytest.mark.parametrize("name", NAMES)
def test_outputs_are_as_without(name):
    fixture = fixture_store.load(name)
    plain, recorded = Runtime.get().load_program(fixture.path), loaded(name)
    for run in fixture.runs:
        found, expected = (program.load_method(run.method).execute(run.inputs)
                           for program in (recorded, plain))
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_array_equal(a, b)


def test_each_turn_of_a_loop_is_kept():
    program, _ = executed("map_over_rows")
    (execution,) = program._record.executions
    turns = [one.instruction for one in execution.computed]
    calls = [event.calls for event in execution.events[1:]]
    assert max(calls) > 1
    assert {i: turns.count(i) for i in turns} == {i: calls[i] for i in turns}


def test_a_buffer_that_is_too_small_is_named_and_the_next_execution_starts_anew():
    program = loaded("mlp", 200)
    run = fixture_store.load("mlp").runs[0]
    method = program.load_method(run.method)
    for _ in range(2):
        with pytest.raises(Error, match="debug buffer.*200.*debug_buffer_size") as caught:
            method.execute(run.inputs)
        assert caught.value.name == "MemoryAllocationFailed"
        assert caught.value.requested > caught.value.available == 200
    assert len(program._record.executions) == 2


def test_a_negative_size_is_rejected():
    with pytest.raises(Error, match="debug_buffer_size"):
        loaded("mlp", -1)


@pytest.mark.parametrize("size", [0, SIZE])
def test_the_buffer_is_written_where_there_is_one(size, tmp_path):
    program, _ = executed("mlp", size)
    program.write_etdump_result_to_file(tmp_path / "events", tmp_path / "values")
    assert (tmp_path / "values").exists() == bool(size)
    assert (tmp_path / "events").stat().st_size > 100


def test_a_failed_execution_keeps_no_values():
    program = loaded("mlp")
    method = program.load_method("forward")
    with pytest.raises(Error):
        method.execute([])
    assert all(not execution.computed for execution in program._record.executions)


@pytest.mark.thorough
def test_a_program_that_never_ends():
    endless = programs.program(
        programs.plan([bool_value(False)], [programs.jump(0, 0)], [], [], [], []))
    method = Runtime.get().load_program(endless, enable_etdump=True,
                                        debug_buffer_size=SIZE).load_method("forward")
    with pytest.raises(Error, match="1,000,000 instructions.*debug_buffer_size") as caught:
        method.execute([])
    assert caught.value.name == "NotSupported"


# ---- comparison with ExecuTorch


def debug_events(runtime, name, inputs, folder):
    """Read [(instruction, value's type, [(dtype, sizes, strides, bytes)])] with executorch.devtools."""
    from executorch.devtools.etdump.serialize import deserialize_from_etdump_flatcc

    program = runtime.load_program(fixture_store.load(name).path, enable_etdump=True,
                                   debug_buffer_size=SIZE)
    method = program.load_method(fixture_store.load(name).runs[0].method)
    for _ in range(2):
        method.execute(inputs)
    paths = str(folder / "events"), str(folder / "values")
    program.write_etdump_result_to_file(*paths)
    with open(paths[0], "rb") as events, open(paths[1], "rb") as values:
        dump, data = deserialize_from_etdump_flatcc(events.read()), values.read()
    found = []
    for event in (event.debug_event for block in dump.run_data for event in block.events):
        if event is not None:
            entry = event.debug_entry
            tensors = [entry.tensor] if entry.tensor else entry.tensor_list.tensors
            found.append((event.instruction_id, event.chain_index, entry.val,
                          [_tensor(tensor, data) for tensor in tensors]))
    return found


def _tensor(tensor, data):
    dtype = np.dtype(DTYPES[int(tensor.scalar_type)])
    count = int(np.prod(tensor.sizes))
    return ((int(tensor.scalar_type), tensor.sizes, tensor.strides),
            np.frombuffer(data, dtype, count, tensor.offset if count else 0))


@needs_executorch
@pytest.mark.parametrize("name", sorted({*NAMES} - {"symbolic_sizes", "channels_last_network"}))
def test_the_events_equal_executorch_runtime(name, tmp_path):
    import torch
    from executorch.runtime import Runtime as ExecuTorchRuntime

    inputs = fixture_store.load(name).runs[0].inputs
    theirs = debug_events(ExecuTorchRuntime.get(), name, list(map(torch.from_numpy, inputs)), tmp_path)
    ours = debug_events(Runtime.get(), name, inputs, tmp_path)
    assert len(ours) == len(theirs) > 0
    for (*place, tensors), (*their_place, their_tensors) in zip(ours, theirs, strict=True):
        assert place == their_place
        for (kind, values), (their_kind, their_values) in zip(tensors, their_tensors, strict=True):
            assert kind == their_kind
            np.testing.assert_allclose(values, their_values, rtol=1e-5, atol=1e-6)


@needs_executorch
def test_the_inspector_finds_the_numeric_gap(tmp_path):
    import torch
    from executorch.devtools import Inspector
    from executorch.exir import to_edge

    module = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.Tanh(), torch.nn.Linear(5, 2)).eval()
    inputs = (torch.ones(1, 6),)
    manager = to_edge(torch.export.export(module, inputs), generate_etrecord=True).to_executorch()
    record = manager.get_etrecord()
    record.update_representative_inputs(inputs)
    record.save(str(tmp_path / "record"))
    program = Runtime.get().load_program(bytes(manager.buffer), enable_etdump=True,
                                         debug_buffer_size=SIZE)
    program.load_method("forward").execute(inputs)
    program.write_etdump_result_to_file(str(tmp_path / "events"), str(tmp_path / "values"))
    inspector = Inspector(etdump_path=str(tmp_path / "events"), etrecord=str(tmp_path / "record"),
                          debug_buffer_path=str(tmp_path / "values"))
    gaps = inspector.calculate_numeric_gap("L1")["gap"]
    assert len(gaps) == 3
    assert all(gap[0] < 1e-5 for gap in gaps)
