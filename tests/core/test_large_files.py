"""Programs above 128 MiB, which only a host has: constants beyond a reference's reach lie in further
memories."""

import struct

import numpy as np
import pytest
from picotorch import Error, Module
from picotorch.host.compile import image_writer
from picotorch.host.run import running
from picotorch.host.run.request import Request
from picotorch.host.twin import open_data, open_program
from support import fixture_store, taken_apart

REACH = 1 << 27
TABLES_SIZE, SEGMENT_BASE = 16, 24  # positions of fields of the header


def spread(pte, base):
    """A program with its segments at `base` of the file, and zeros in front of them."""
    before = struct.unpack_from("<Q", pte, SEGMENT_BASE)[0]
    file = bytearray(base) + pte[before:]
    file[:before] = pte[:before]
    struct.pack_into("<Q", file, SEGMENT_BASE, base)
    return bytes(file)


def run(fixture, pte, **memories):
    """The result of the first run of a fixture, of a program like its own."""
    first = fixture.runs[0]
    return running.run(Request(pte, fixture.name, first.inputs, first.method, data=fixture.data,
                               **memories), running.HOST)


@pytest.mark.parametrize("base", [REACH - 128, 2 * REACH])
@pytest.mark.parametrize("name", ["ds_cnn", "dynamic_unplanned_io", "external_some"])
def test_constants_lie_anywhere(name, base):
    fixture = fixture_store.load(name)
    result, same = run(fixture, spread(fixture.pte, base)), run(fixture, fixture.pte)
    assert result.code == 0, result.message
    for output, expected in zip(result.outputs, same.outputs, strict=True):
        np.testing.assert_array_equal(output, expected)
    assert len(result.pool) == len(same.pool)


def test_initial_values_lie_anywhere():
    fixture = fixture_store.load("counter_initialized")
    method = Module(spread(fixture.pte, REACH)).load_method("forward")
    for _ in range(2):
        for one in fixture.runs:
            method.set_input(one.inputs[0], 0)
            method.execute()
            np.testing.assert_array_equal(method.get_output(0).numpy(), one.expected[0])
        method.reset_state()


def large_table(rows):
    """The program of fixture embedding with this many rows of zeros before its own."""
    parts = taken_apart.program(fixture_store.load("embedding").pte)
    more, values = 12 * rows, parts.tables["execution_plan"][0]["values"]
    (table,) = [i for i, value in enumerate(values) if value["val"][0] == "Tensor"
                and value["val"][1].get("data_buffer_idx")]

    def change(tables):
        tables["execution_plan"][0]["values"][table]["val"][1]["sizes"][0] += rows
        tables["segments"][0]["size"] += more

    sizes = {"segment_data_size": parts.header["segment_data_size"] + more}
    pte = parts.edited(change, **sizes)
    start = struct.unpack_from("<Q", pte, SEGMENT_BASE)[0]
    start += parts.tables["constant_segment"]["offsets"][1]
    return pte[:start] + bytes(more) + pte[start:]


def test_a_constant_may_be_larger_than_a_reference_reaches():
    fixture, rows = fixture_store.load("embedding"), 12_000_000
    request = Request(large_table(rows), "embedding", [fixture.runs[0].inputs[0] + rows])
    result = running.run(request, running.HOST)
    assert result.code == 0, result.message
    np.testing.assert_array_equal(result.outputs[0], fixture.runs[0].expected[0])


def test_an_image_keeps_what_the_program_needs():
    fixture = fixture_store.load("ds_cnn")
    image = image_writer.compile_image(spread(fixture.pte, REACH))
    assert image.data == image_writer.compile_image(fixture.pte).data


# ---- what is refused


def test_a_pool_too_small():
    fixture = fixture_store.load("ds_cnn")
    one, other = [run(fixture, pte, pool_size=64)
                  for pte in (spread(fixture.pte, 2 * REACH), fixture.pte)]
    assert one.code and (one.code, one.message) == (other.code, other.message)


def test_an_image_of_more_than_a_reference_reaches():
    with pytest.raises(Error, match="NotSupported.*images above 128 MiB"):
        image_writer.compile_image(large_table(12_000_000))


def test_tables_beyond_the_reach():
    pte = bytearray(spread(fixture_store.load("ds_cnn").pte, REACH + 4096))
    struct.pack_into("<Q", pte, TABLES_SIZE, REACH + 8)
    with pytest.raises(Error, match="NotSupported.*program: tables above 128 MiB"):
        open_program(bytes(pte))


def test_a_constant_outside_the_file():
    pte = spread(fixture_store.load("ds_cnn").pte, 2 * REACH)
    with pytest.raises(Error, match="InvalidProgram"):
        open_program(pte[:-64])


def test_a_data_file_beyond_the_reach():
    data = fixture_store.load("external_weights").data[0]
    with pytest.raises(Error, match="NotSupported.*134217736B requested.*.*files above 128 MiB"):
        open_data([data + bytes(REACH + 8 - len(data))])


def test_a_file_of_a_gibibyte():
    pte = np.zeros(1 << 30, np.uint8)
    pte[:8] = np.frombuffer(fixture_store.load("add_1").pte, np.uint8, 8)
    with pytest.raises(Error, match="NotSupported.*program: has 1 GiB or more"):
        open_program(pte)
