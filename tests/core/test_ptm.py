"""Run every fixture as `picotorch compile` stores it, and compare it with its .pte file."""

import functools
import json
import random
import re
import struct

import pytest
from _picotorch_c import ffi, lib
from picotorch import Error, HierarchicalAllocator, MemoryAllocator, MemoryManager, Method
from picotorch.boards.boards import load_board
from picotorch.compile import ptm_writer
from picotorch.compile.uninitialized_reads import Ranges
from picotorch.host.aligned import aligned
from picotorch.host.inputs import random_inputs
from picotorch.host.request import Request
from picotorch.host.twin import (
    attach_outputs,
    open_data,
    open_program,
    outputs,
    planned_sizes,
    set_inputs,
)
from picotorch.run import running
from picotorch.run.parity import same_bits
from support import benchmark_store, fixture_store, programs
from support.calling import assert_error, assert_usage
from support.fixture_jobs import job_of, script_of
from support.fixture_runs import on_host, with_one_nan, without_stack
from support.flatbuffer_builder import bool_value, int_value
from support.programs import call, move, tensor
from support.targets import BOARDS, HOST, on_boards, run_script
from support.tiers import SWEEP, is_of_each_kind

FIXTURES = {fixture.name: fixture for fixture in fixture_store.load_all()}
LOADED = [name for name, fixture in FIXTURES.items() if not fixture.refused
          and name not in fixture_store.NOT_SUPPORTED]
# One board runs all fixtures. The others run fixtures with packed weights, and some of each kind; `make
# ptms` runs all fixtures on all boards.
ALL_ON = "mps2-an386"
SOME = ("cond_on_a_size", "conv2d_channels_last", "dynamic_batch", "external_state", "two_methods")
FIT_EVERYWHERE = ("int8_ds_cnn",)  # models of the benchmark; on netduinoplus2, too


class Compiled:
    """A fixture whose program is its .ptm file."""

    data = ()

    def __init__(self, fixture, core=None):
        self._fixture = fixture
        self.pte = ptm_writer.compile_ptm(fixture.pte, fixture.data, core).data

    def __getattr__(self, name):
        return getattr(self._fixture, name)


@functools.cache
def compiled(name, core=None):
    return Compiled(FIXTURES[name], core)


def run(ptm, target):
    return run_script(script_of("fixture.py", [ptm]), job_of(ptm), target)


def of_values(result):
    """Return a run's files and lines without those about the pool."""
    files = {path: data for path, data in result.files.items() if not path.startswith("pool_")}
    return files, [line for line in result.lines if "pool" not in line]


@pytest.mark.parametrize("name", LOADED)
def test_outputs_are_those_of_the_program(name):
    if FIXTURES[name].backends:
        with pytest.raises(Error, match=r"NotSupported .*with delegates cannot be compiled"):
            compiled(name)
        return
    assert of_values(run(compiled(name), HOST)) == of_values(on_host(name))


@pytest.mark.parametrize(("name", "board"), [
    pytest.param(name, board, marks=[] if is_of_each_kind(name) else pytest.mark.thorough)
    for name, board in on_boards(LOADED) if not FIXTURES[name].backends
    and (SWEEP or board == ALL_ON or name.startswith("int8_") or name in SOME)])
def test_board_outputs_of_ptm_files_equal_the_twin(name, board):
    """The .ptm file has weights packed for the board's core, for which the pool would be too small."""
    ptm = compiled(name, load_board(board).core)
    on_twin, on_board = run(ptm, HOST), run(ptm, board)
    assert of_values(on_twin) == of_values(on_host(name))
    assert without_stack(on_board.lines) == without_stack(on_twin.lines)
    wanted, files = with_one_nan(ptm, on_twin), with_one_nan(ptm, on_board)
    assert sorted(files) == sorted(wanted)
    assert [path for path in wanted if wanted[path] != files[path]] == []


def loaded_in_dirty_memory(program, data_map, name):
    """Load a method into memories that are not zero."""
    meta = program.method_meta(name)
    planned = [aligned(size) for size in planned_sizes(meta, {})]
    pool, temp = aligned(1 << 16), aligned(1 << 20)
    for memory in (*planned, pool, temp):
        memory[:] = b"\x7f" * len(memory)
    manager = MemoryManager(MemoryAllocator(pool), HierarchicalAllocator(planned),
                            MemoryAllocator(temp, "temp memory"))
    method = Method(manager, max(meta.num_outputs(), 1), 0, 0)
    method.load(program, name, data_map=data_map)
    return method


def in_dirty_memory(program, data_map, name, runs):
    """Return the outputs of each run; the state is reset halfway."""
    method, meta, found = loaded_in_dirty_memory(program, data_map, name), program.method_meta(name), []
    for k in range(runs):
        if k == runs // 2:
            method.reset_state()
        set_inputs(method, meta, random_inputs(meta))
        attach_outputs(method, meta)
        method.execute()
        found.append(outputs(method, meta))
    return found


@pytest.mark.parametrize("name", [name for name in LOADED if not FIXTURES[name].backends])
def test_memories_need_not_be_zero(name):
    """Loading a .ptm file clears only memory that the method reads before it writes it."""
    fixture = FIXTURES[name]
    program, data_map = open_program(fixture.pte), open_data(fixture.data)
    ptm = open_program(compiled(name).pte)
    for method in program.method_names:
        try:
            wanted = in_dirty_memory(program, data_map, method, 4)
        except Error as error:
            with pytest.raises(Error, match=re.escape(str(error))):
                in_dirty_memory(ptm, None, method, 4)
            continue
        for one, other in zip(wanted, in_dirty_memory(ptm, None, method, 4), strict=True):
            assert all(same_bits(a, b) for a, b in zip(one, other, strict=True))


def cache_program(instructions, **fields):
    """Return a program with a cache of four floats, which is initially zero."""
    x, index, cache, out = (tensor([1], 0), tensor([1], 8, dtype=4), tensor([4], 16, **fields),
                            tensor([4], 32))
    values = [x, index, cache, out, {"val": ("OptionalTensorList", {"items": [1]})}, bool_value(False)]
    operators = ["aten::index_put_", "aten::relu.out"]
    return programs.program(programs.plan(values, instructions, operators, [0, 1], [3], [48]))


@pytest.mark.parametrize("instructions", [
    pytest.param([call(0, 2, 4, 0, 5, 2), call(1, 2, 3, 3)], id="written in part"),
    pytest.param([move(2, 3)], id="moved"),
])
def test_memory_that_is_read_before_it_is_written_is_zero(instructions):
    program = cache_program(instructions)
    wanted, found = (in_dirty_memory(open_program(file), None, "forward", 4)
                     for file in (program, ptm_writer.compile_ptm(program).data))
    assert all(same_bits(a, b) for one, other in zip(wanted, found, strict=True)
               for a, b in zip(one, other, strict=True))


def test_state_that_is_only_written_is_zero_before_the_first_run():
    program = cache_program([move(3, 2)], extra_tensor_info={"fully_qualified_name": "cache"})
    ptm = ptm_writer.compile_ptm(program).data
    method = loaded_in_dirty_memory(open_program(ptm), None, "forward")
    assert bytes(method.get_attribute("cache").data) == bytes(16)


def test_ranges_of_bytes_behave_as_sets():
    generator = random.Random(0)
    for _ in range(200):
        ranges, known = Ranges(), set()
        for _ in range(generator.randrange(12)):
            start = generator.randrange(30)
            end = start + generator.randrange(8)
            missing = {byte for gap in ranges.missing(1, start, end) for byte in range(*gap)}
            assert missing == set(range(start, end)) - known
            ranges.add(1, start, end)
            known |= set(range(start, end))
        assert {byte for _, *one in ranges.all() for byte in range(*one)} == known


def test_every_board_has_some():
    assert {board for name, board in on_boards(SOME)} == set(BOARDS)


@pytest.mark.parametrize(("name", "target"), [
    (name, target) for target in [HOST, *BOARDS] for name in benchmark_store.NAMES
    if target in (HOST, ALL_ON) or SWEEP and (target.startswith("mps") or name in FIT_EVERYWHERE)])
def test_a_benchmark_model_needs_no_pool(name, target):
    model = benchmark_store.load(name)
    board = ALL_ON if target == HOST else target
    ptm = ptm_writer.compile_ptm(model.pte(board), (), load_board(board).core).data
    result = running.run(Request(ptm, name, model.inputs, pool_size=0, temp_size=None), target)
    assert (result.code, result.message) == (0, "")
    assert result.method_pool.used == 0
    assert same_bits(result.outputs[0], model.expected[0])


def test_the_autoencoder_runs_on_a_board_of_1_mb_of_flash():
    """The .ptm file has no packed weights, since they have twice the size of the model."""
    model = benchmark_store.load("int8_deep_autoencoder")
    ptm = ptm_writer.compile_ptm(model.pte("netduinoplus2"), (), None).data
    result = running.run(Request(ptm, model.name, model.inputs, pool_size=0, temp_size=None),
                         "netduinoplus2")
    assert (result.code, result.message, result.method_pool.used) == (0, "", 0)
    assert same_bits(result.outputs[0], model.expected[0])


@pytest.mark.parametrize("name", benchmark_store.NAMES)
def test_packed_weights_in_the_ptm_file_save_instructions(name):
    """They save at least as many as packed weights in the pool."""
    model = benchmark_store.load(name)
    program = model.pte(ALL_ON)
    runs = [running.run(Request(file, name, model.inputs, pack_weights=pack, pool_size=None), ALL_ON)
            for file, pack in ((ptm_writer.compile_ptm(program, (), "cortex-m4").data, False),
                               (program, True), (program, False))]
    in_ptm, in_pool, plain = [run.instructions["execute"] for run in runs]
    assert in_ptm <= in_pool < plain


def test_the_same_program_gives_the_same_bytes():
    fixture = FIXTURES["int8_ds_cnn"]
    assert ptm_writer.compile_ptm(fixture.pte, (), "cortex-m4").data == \
        ptm_writer.compile_ptm(fixture.pte, (), "cortex-m4").data


def leaves_out(ptm):
    core = ptm.pte[ffi.offsetof("pt_ptm_header", "core")]
    return bool(core & lib.PT_PTM_OWN_CORE)


@pytest.mark.parametrize("core", ["cortex-m3", None])
def test_a_ptm_file_for_another_core_runs_without_its_packed_weights(core):
    ptm = compiled("int8_ds_cnn", core)
    assert not leaves_out(ptm)
    on_board = run(ptm, ALL_ON)
    assert with_one_nan(ptm, on_board) == with_one_nan(ptm, run(ptm, HOST))


@pytest.mark.thorough
@pytest.mark.parametrize("core", ["cortex-m0plus", "cortex-m4"])
def test_a_ptm_file_for_another_core_that_leaves_weights_out_is_rejected(core):
    ptm = compiled("int8_ds_cnn", core)
    assert leaves_out(ptm)
    result = running.run(Request(ptm.pte, "int8_ds_cnn", ptm.runs[0].inputs), "mps2-an385")
    assert result.status == "NotSupported"
    assert "is a .ptm file for another core; compile it for this one, or with --optimize size" in \
        result.message


@pytest.mark.parametrize("core", ["cortex-m0plus", "cortex-m4"])
@pytest.mark.parametrize("name", ["int8_convolutions", "int8_resnet8"])
def test_the_twin_runs_packed_weights(name, core):
    """Wrong packed weights change the outputs, in one run and in measurements, which unpack the weights
    once."""
    ptm = compiled(name, core)
    data = bytearray(ptm.pte)
    start = struct.unpack_from("<3I", data)[2]
    data[start:] = bytes(~byte & 0xFF for byte in data[start:])
    struct.pack_into("<2I", data, ffi.offsetof("pt_ptm_header", "data_sums"),
                     *ptm_writer.sums(data[start:]))

    def outputs_of(ptm, executions=0):
        result = running.run(Request(ptm, name, random_inputs(
            open_program(compiled(name).pte).method_meta("forward")), executions=executions), HOST)
        return [output.tobytes() for output in result.outputs]

    for executions in (0, 2):
        assert outputs_of(ptm.pte, executions) == outputs_of(compiled(name).pte)
        assert outputs_of(bytes(data), executions) != outputs_of(ptm.pte)


def two_convolutions():
    """Return two 1x1 convolutions for one .ptm file, whose weights differ in the last of three
    channels."""
    values, buffers = [], [{"storage": b""}]

    def add(value):
        values.append(value)
        return len(values) - 1

    def ptm(channels, offset):
        return add(tensor([1, channels, 2, 2], offset, dtype=1, dim_order=[0, 2, 3, 1]))

    def constant(sizes, dtype, data):
        buffers.append({"storage": data})
        return add(tensor(sizes, data_buffer_idx=len(buffers) - 1, dtype=dtype))

    zero, one, low, high = (add(int_value(number)) for number in (0, 1, -128, 127))
    zeros, ones = (add({"val": ("IntList", {"items": [i, i]})}) for i in (zero, one))
    multipliers, shifts = (constant([3], 3, struct.pack("<3i", *[number] * 3))
                           for number in (1 << 30, -2))
    scratch = add(tensor([0], 112, dtype=0))
    x, *outputs = ptm(4, 0), ptm(3, 32), ptm(3, 64)
    calls = []
    for out, last in zip(outputs, (1, 2), strict=True):
        weights = constant([3, 1, 1, 4], 1, bytes([1] * 8 + [last] * 4))
        calls.append(call(0, x, weights, add({"val": ("Null", {})}), ones, zeros, ones, zero, zero,
                          multipliers, shifts, low, high, scratch, out, out))
    return programs.program(programs.plan(values, calls, ["cortex_m::quantized_conv2d.out"], [x],
                                          outputs, [128]), constant_buffer=buffers)


def test_layers_that_share_packed_weights_differ_in_the_last_channel():
    """A .ptm file stores equal bytes once, and stores no packed weights for the last of three
    channels."""
    program = two_convolutions()
    inputs = random_inputs(open_program(program).method_meta("forward"))
    ptm = ptm_writer.compile_ptm(program, (), "cortex-m4")
    assert ptm.calls_packed == 2
    wanted, found = (running.run(Request(file, "", inputs, executions=2), HOST).outputs
                     for file in (program, ptm.data))
    assert wanted[0].tobytes() != wanted[1].tobytes()
    assert list(map(same_bits, found, wanted)) == [True, True]


@pytest.mark.parametrize("name", ["int8_ds_cnn", "int8_resnet8", "int8_mobilenet_v1_025",
                                  "int8_deep_autoencoder"])
def test_a_ptm_file_is_little_more_than_constants_and_packed_weights(name):
    """The file omits constants that the core's loops read only in packed form."""
    program = benchmark_store.load(name).pte(ALL_ON)
    constants = ptm_writer.compile_ptm(program).parts.constants
    ptm = ptm_writer.compile_ptm(program, (), load_board(ALL_ON).core)
    assert len(ptm.data) <= 1.02 * (constants + ptm.parts.packed)
    assert ptm.parts.constants < constants / 3


def test_commands_accept_a_ptm_file(call, tmp_path):
    def answer(*arguments):
        status, out, err = call(*arguments, "--json")
        assert (status, err) == (0, "")
        return json.loads(out)

    model, ptm = tmp_path / "model.pte", tmp_path / "model.ptm"
    model.write_bytes(FIXTURES["int8_ds_cnn"].pte)
    entry = answer("compile", model, "--board", ALL_ON, "--keep-plan")
    assert entry["output"] == str(ptm)
    (method,) = entry["models"][0]["methods"]
    assert method["method"] == "forward" and not method["constant"]
    same = {"planned": [16000], "temp": 16424, "unplanned": 0}  # the fastest sizes
    assert method["before"] == {"method_pool": 2588, **same}
    assert method["after"] == {"method_pool": 0, **same}
    for board in (["--board", ALL_ON], ["--board", ALL_ON, "--bare"]):
        result = answer("run", ptm, *board)
        assert (result["status"], result["method_pool"]["used"]) == ("ok", 0), board
        assert answer("parity", ptm, *board)["agree"] is True, board
    assert answer("size", ptm)["method_pool"] == 0
    assert len(answer("profile", ptm)["instructions"]) == 16
    assert answer("inspect", ptm)["methods"][0]["name"] == "forward"


def test_compile_rejects(call, tmp_path):
    model = tmp_path / "model.pte"
    model.write_bytes(FIXTURES["delegate_inline"].pte)
    assert_usage(call("compile", model, "--output", model), "are the same file")
    assert_usage(call("compile", model, "--board", ALL_ON, "--core", "cortex-m3"), "only one of")
    assert_usage(call("compile", model, "--int8-io", "--keep-plan"), "leave out --keep-plan")
    assert_error(call("compile", model), "NotSupported",
                 "a method with delegates cannot be compiled; export it without delegates, or run")
    assert not (tmp_path / "model.ptm").exists()
    model.write_bytes(compiled("add_1").pte)
    assert_usage(call("compile", model, "--c", tmp_path / "project"), "is a .ptm file already")


def test_damaged_data_is_rejected(call, tmp_path):
    """The change breaks no reference, but changes outputs: the host verifies the checksum of all
    data."""
    ptm = bytearray(compiled("int8_ds_cnn").pte)
    ptm[-100] ^= 1
    (tmp_path / "model.ptm").write_bytes(ptm)
    assert_error(call("run", tmp_path / "model.ptm"), "InvalidProgram", "checksum of its data")


@pytest.mark.parametrize("begin", [b"PTM4", b"PTM6", b"PTM\0", b"PTM"])
def test_another_version_of_a_ptm_file_is_reported(begin, call, tmp_path):
    ptm = begin + compiled("add_1").pte[4:] if len(begin) == 4 else begin
    (tmp_path / "model.ptm").write_bytes(ptm)
    for command in ("run", "size", "inspect"):
        assert_error(call(command, tmp_path / "model.ptm"), "NotSupported",
                     "model.ptm: .ptm file: is of another version; compile it again with this "
                     "picotorch")
    assert_usage(call("compile", tmp_path / "model.ptm"), "is a .ptm file already")


def test_a_damaged_ptm_file_has_the_remedy_to_compile_it_again(call, tmp_path):
    ptm = compiled("add_1").pte
    for damaged in (ptm[:-20], ptm[:60] + b"x" + ptm[61:], ptm[:-1] + b"x", ptm[:20]):
        (tmp_path / "model.ptm").write_bytes(damaged)
        assert_error(call("run", tmp_path / "model.ptm"), "InvalidProgram",
                     "; compile it again or copy it again")
