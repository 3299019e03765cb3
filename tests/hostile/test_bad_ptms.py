"""Test .ptm files that no `picotorch compile` writes, with correct checksums: each is rejected by name,
or does no harm, in bounded time. They run on the twin, and in C alone with the compiler's sanitizers at
64 and 32 bits."""

import functools
import re
import struct
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from picotorch import (
    BufferDataLoader,
    Error,
    HierarchicalAllocator,
    MemoryAllocator,
    MemoryManager,
    Method,
    Program,
)
from picotorch.compile import ptm_writer
from picotorch.program import MINIMAL
from support import figures, fixture_store, replayed
from support.programs import call
from support.targets import aligned, grow_array
from test_hostile_programs import LIST, OUT, RELU, VIEW, X, Y, dynamic, made

pytestmark = pytest.mark.thorough

FUZZ = Path(__file__).resolve().parents[1] / "hostile" / "fuzz"
sys.path.append(str(FUZZ))

import ptms  # noqa: E402

HEADER = ("magic", "size", "records", "sum0", "sum1", "data_sum0", "data_sum1", "kinds")
METHOD = ("name", "record", "n_records", "values", "inputs", "outputs", "operators", "planned",
          "attributes", "initial", "changing", "changing_bytes", "n_external",
          "places")
RECORD = ("counts", "n_instructions", "values", "instructions", "program_values", "scratch",
          "packed")
VALUE = ("data", "sizes", "dim_order", "kind")
CONSTANT, DYNAMIC = 0x40, 0x80  # flags of a value, in the last byte of its kind
POOL, PTM, PLANNED = 2, 3, 4  # memories


def ref(memory, offset):
    return memory << 25 | offset >> 2


def offset_of(reference):
    return (reference & (1 << 25) - 1) << 2


SOURCES = {
    "a view": made([call(VIEW, X, LIST, Y), call(RELU, Y, 8, 8)], {Y: dynamic([8])},
                   [dynamic([8], 64)], outputs=[8]),
    "dynamic tensors": made([call(RELU, X, OUT, OUT)]),
}


@functools.cache
def compiled(name):
    """Return the .ptm file of a fixture, with packed weights, or of a source."""
    if name in SOURCES:
        return ptm_writer.compile_ptm(SOURCES[name]).data
    fixture = fixture_store.load(name)
    return ptm_writer.compile_ptm(fixture.pte, fixture.data, "cortex-m4").data


class Edited:
    """A .ptm file with changed words. Words of its first method are addressed by the names of their
    fields."""

    def __init__(self, data):
        self.data = bytearray(data)
        self.method = self.word(len(HEADER) * 4 + 4)

    def word(self, position):
        return ptms.word(self.data, position)

    def put(self, position, value):
        struct.pack_into("<I", self.data, position, value & 0xFFFFFFFF)

    def at(self, field, record=None):
        """Return the position of a field: of the header, the method, its record, or with `record` of a
        value."""
        if record is not None:
            return offset_of(self["values_of_record"]) + 16 * record + 4 * VALUE.index(field)
        if field.endswith("_of_record"):
            return self["record"] + 4 * RECORD.index(field.removesuffix("_of_record"))
        return self.method + 4 * METHOD.index(field) if field in METHOD else 4 * HEADER.index(field)

    def __getitem__(self, field):
        return self.word(self.at(*field) if isinstance(field, tuple) else self.at(field))

    def __setitem__(self, field, value):
        self.put(self.at(*field) if isinstance(field, tuple) else self.at(field), value)

    def values(self, **wanted):
        """Return the indexes of the values with these flags set, or of this type."""
        found = []
        for i in range(self["n_records"]):
            kind = self["kind", i]
            if (wanted.get("flags", 0) & ~(kind >> 24)) == 0 and wanted.get(
                    "type", kind >> 16 & 0xFF) == kind >> 16 & 0xFF:
                found.append(i)
        return found

    def instructions(self):
        """Return the positions of the instructions."""
        position = offset_of(self["instructions_of_record"])
        for _ in range(self["n_instructions_of_record"]):
            yield position
            position += 4 + 4 * self.data[position + 2]

    def add(self, *words):
        """Append words to the records, and return their position. The .ptm file must have no data."""
        assert self["records"] == self["size"]
        position = len(self.data)
        self.data += struct.pack(f"<{len(words)}I", *[word & 0xFFFFFFFF for word in words])
        self.data += bytes(-len(self.data) % 8)
        self["records"] = self["size"] = len(self.data)
        return position

    def vector(self, *words):
        return self.add(len(words), *words)

    def bytes(self):
        return ptms.with_sums(self.data)


def opened(data):
    loaded = Program.load(BufferDataLoader(aligned(data)))
    return loaded, loaded.method_meta(loaded.get_method_name(0))


def planned_of(meta):
    return HierarchicalAllocator([aligned(meta.memory_planned_buffer_size(i))
                                  for i in range(meta.num_memory_planned_buffers())])


def method_of(meta, pool=4096, temp=65536):
    """Load a method. pool: bytes, or an allocator."""
    pool = MemoryAllocator(aligned(pool)) if isinstance(pool, int) else pool
    return Method(MemoryManager(pool, planned_of(meta), MemoryAllocator(aligned(temp), "temp memory")),
                  meta.num_outputs())


def load(data):
    loaded, meta = opened(data)
    method = method_of(meta)
    method.load(loaded, meta.name())
    return method


# ---- faults that the walk and the kernels' checks reject

CASES = {}


def case(source, error):
    def register(change):
        CASES[change.__name__.replace("_", " ")] = source, change, error
        return change

    return register


OUTSIDE = "InvalidProgram .*a part lies outside the file"
PLACE = "InvalidProgram .*lies outside its memory"


@case("add_1", "the file is shorter than its header states")
def longer_than_its_file(ptm):
    ptm["size"] += 8


@case("add_1", "its header claims more than the file has")
def records_beyond_the_end(ptm):
    ptm["records"] = ptm["size"] + 4


@case("add_1", "its header claims more than the file has")
def records_at_no_word(ptm):
    ptm["records"] -= 2


@case("add_1", "another number of methods")
def another_number_of_methods(ptm):
    ptm["kinds"] += 1 << 24


@case("add_1", "no method in it")
def no_method(ptm):
    ptm.put(4 * len(HEADER), 0)


@case("add_1", OUTSIDE)
def methods_beyond_the_end(ptm):
    ptm.put(4 * len(HEADER), 1 << 30)


@case("add_1", OUTSIDE)
def method_at_no_word(ptm):
    ptm.put(4 * len(HEADER) + 4, ptm.method + 2)


for _field in ("name", "record", "values", "inputs", "outputs", "operators", "planned", "attributes",
               "initial", "changing", "places"):
    for _label, _value in (("beyond the end", 0x7FFFFFF0), ("at no word", 0x42), ("at the top", -4)):
        def _change(ptm, field=_field, value=_value):
            ptm[field] = value

        CASES[f"{_field} {_label}"] = "counter_initialized", _change, "InvalidProgram"

for _field in ("n_records", "changing_bytes", "n_instructions_of_record"):
    for _value in (0xFFFFFFFF, 1 << 28, 0x80000000):
        def _change(ptm, field=_field, value=_value):
            ptm[field] = value

        CASES[f"{_field} {_value:#x}"] = "counter_initialized", _change, "InvalidProgram|NotSupported"


@case("add_1", OUTSIDE)
def more_values_than_an_index_has_bits(ptm):
    ptm["values"] = ptm.vector()
    ptm.put(ptm["values"], 65536)


@case("add_1", OUTSIDE)
def more_tensors_than_records(ptm):
    ptm["counts_of_record"] = ptm["n_records"] + 1


@case("add_1", OUTSIDE)
def more_inputs_than_a_method_may_have(ptm):
    ptm["inputs"] = ptm.vector(*[0] * 257)


@case("add_1", OUTSIDE)
def more_memories_than_references_reach(ptm):
    ptm["planned"] = ptm.vector(*[0] * 2 * 29)
    ptm.put(ptm["planned"], 29)


@case("add_1", OUTSIDE)
def more_external_memories_than_there_are(ptm):
    ptm["n_external"] = 28


@case("add_1", "InvalidProgram .*planned buffer 0.*negative size|lies outside its memory")
def planned_buffer_of_a_negative_size(ptm):
    ptm["planned"] = ptm.vector(2, 0, 0, 48, 0x80000000)
    ptm.put(ptm["planned"], 2)


@case("add_1", PLACE)
def planned_buffer_smaller_than_its_tensors(ptm):
    ptm.put(ptm["planned"] + 4 + 8, 0)


@case("add_1", PLACE)
def data_in_the_pool(ptm):
    ptm["data", 0] = ref(POOL, 0)


@case("add_1", PLACE)
def data_in_the_ptm_file(ptm):
    ptm["data", 0] = ref(PTM, 64)


@case("add_1", PLACE)
def data_in_the_program_that_is_no_constant(ptm):
    ptm["data", 0] = ref(1, 64)


@case("add_1", PLACE)
def data_nowhere(ptm):
    ptm["data", 0] = 0


@case("add_1", PLACE)
def data_unplanned_as_in_a_pte(ptm):
    ptm["data", 0] = 1


@case("add_1", PLACE)
def data_in_a_memory_that_there_is_not(ptm):
    ptm["data", 0] = ref(PLANNED + 5, 0)


@case("linear_5", PLACE)
def constant_beyond_the_end(ptm):
    place = ptm.values(flags=CONSTANT)[0]
    ptm["data", place] = ref(1, ptm["size"])


@case("linear_5", PLACE)
def constant_in_planned_memory(ptm):
    place = ptm.values(flags=CONSTANT)[0]
    ptm["data", place] = ref(PLANNED, 0)


def left_out(ptm):
    """Return a tensor whose bytes the .ptm file omits."""
    return next(i for i in ptm.values(flags=CONSTANT) if ptm["data", i] == ref(1, 0))


@case("int8_convolutions", PLACE)
def constant_left_out_of_a_ptm_file_for_any_core(ptm):
    left_out(ptm)
    ptm.data[ptms.CORE] &= ~ptms.OWN_CORE


@case("int8_convolutions", PLACE)
def constant_left_out_that_is_larger_than_the_ptm_file(ptm):
    at = offset_of(ptm["sizes", left_out(ptm)])
    ptm.put(at, 1 << 24)


@case("int8_convolutions", "needs weights that are left out")
def constant_left_out_without_packed_weights(ptm):
    """The first convolutions keep their plain weights, which a loop for three channels reads."""
    ptm.put(packed_of(ptm, -1), 0)


@case("int8_convolutions", "needs weights that are left out")
def nothing_packed_where_constants_are_left_out(ptm):
    ptm["packed_of_record"] = 0


@case("cat", "is not a constant")
def item_of_a_list_left_out(ptm):
    ptm.data[ptms.CORE] |= ptms.OWN_CORE
    item = ptm.word(offset_of(ptm["data", list_of(ptm, 10)]))
    at = (item - ptm["values_of_record"]) // 4
    ptm["data", at] = ref(1, 0)
    ptm["kind", at] |= CONSTANT << 24


@case("linear_5", "needs weights that are left out")
def constant_of_a_float_layer_left_out(ptm):
    ptm.data[ptms.CORE] |= ptms.OWN_CORE
    ptm["data", ptm.values(flags=CONSTANT)[0]] = ref(1, 0)


@case("int8_convolutions", "NotSupported .*is a .ptm file for another core; compile it for this one")
def core_that_there_is_not(ptm):
    ptm.data[ptms.CORE] = ptms.OWN_CORE | 9


@case("integer_tensors", PLACE)
def int64_at_no_multiple_of_8(ptm):
    longs = [i for i in ptm.values(type=4) if ptm["data", i] >> 25 == PLANNED]
    ptm["data", longs[0]] += 1


@case("add_1", "lies outside the .ptm file")
def sizes_in_planned_memory(ptm):
    ptm["sizes", 0] = ref(PLANNED, 0)


@case("add_1", "lies outside the .ptm file")
def sizes_beyond_the_end(ptm):
    ptm["sizes", 0] = ref(PTM, ptm["records"])


@case("add_1", "lies outside the .ptm file")
def rank_31(ptm):
    ptm["kind", 0] |= 0x1F << 24


@case("add_1", "not a permutation of the dims|dims in another order")
def dim_order_of_sizes(ptm):
    ptm["dim_order", 0] = ptm["sizes", 0]


@case("add_1", "NotSupported .*dtype|is in the wrong place")
def dtype_without_bytes(ptm):
    ptm["kind", 0] = ptm["kind", 0] & ~0xFF0000 | 18 << 16


@case("add_1", "negative size or is too large")
def sizes_that_overflow(ptm):
    ptm["sizes", 0] = ref(PTM, ptm.add(*[0x7FFFFFFF] * 4))


@case("dynamic tensors", "lies outside the .ptm file")
def two_tensors_with_one_size(ptm):
    first, second, *_ = ptm.values(flags=DYNAMIC)
    ptm["sizes", second] = ptm["sizes", first]


@case("dynamic tensors", "lies outside the .ptm file")
def bound_that_is_another_tensors_size(ptm):
    first, second, *_ = ptm.values(flags=DYNAMIC)
    ptm["sizes", second] = ptm["sizes", first] + 1


@case("map_over_rows", "lies outside the .ptm file")
def bound_in_a_variable(ptm):
    ptm["sizes", ptm.values(flags=DYNAMIC)[0]] = ref(POOL, 16)


@case("dynamic_batch", "lies outside the .ptm file")
def sizes_behind_what_is_copied(ptm):
    last = ptm.values(flags=DYNAMIC)[-1]
    ptm["sizes", last] = ref(POOL, ptm["changing_bytes"])


@case("dynamic_batch", "more elements than its bound")
def more_elements_than_the_bound(ptm):
    first = ptm.values(flags=DYNAMIC)[0]
    ptm.put(ptm["changing"] + offset_of(ptm["sizes", first]) - 4, 0)


@case("dynamic_batch", "more elements than its bound|lies outside its memory")
def bound_of_more_than_its_memory(ptm):
    first = ptm.values(flags=DYNAMIC)[0]
    at = ptm["changing"] + offset_of(ptm["sizes", first]) - 4
    ptm.put(at, 1 << 20)


@case("dynamic_batch", "its arguments change, or do not change")
def dynamic_call_that_is_static(ptm):
    for at in ptm.instructions():
        ptm.data[at + 3] &= ~4


@case("add_1", "its arguments change, or do not change")
def static_call_that_is_dynamic(ptm):
    ptm.data[next(ptm.instructions()) + 3] = 4


@case("add_1", "not the shortcut of its arguments")
def shortcut_of_other_arguments(ptm):
    ptm.data[next(ptm.instructions()) + 3] = 2 << 4


@case("complex_arithmetic", "not the shortcut of its arguments")
def shortcut_of_real_numbers_for_complex_ones(ptm):
    for at in ptm.instructions():
        ptm.data[at + 3] |= 1 << 4


@case("dynamic_batch", "is of an unknown kind")
def shortcut_of_arguments_that_change(ptm):
    for at in ptm.instructions():
        ptm.data[at + 3] |= 1 << 4


@case("add_1", "is of an unknown kind")
def delegate_call(ptm):
    ptm.data[next(ptm.instructions()) + 3] = 8


@case("add_1", "is of an unknown kind")
def move_of_three(ptm):
    ptm.data[next(ptm.instructions()) + 3] = 2


@case("add_1", "calls an operator that does not exist")
def operator_beyond_the_last(ptm):
    ptm.data[next(ptm.instructions()) + 1] = 0xFF


@case("add_1", "OperatorMissing")
def operators_beyond_the_last(ptm):
    ptm["operators"] = ptm.vector(0xFFFFFFFF)


@case("add_1", "InvalidProgram")
def another_operator(ptm):
    at = next(ptm.instructions())
    struct.pack_into("<H", ptm.data, at, 0)


@case("add_1", OUTSIDE)
def more_arguments_than_the_ptm_file_has(ptm):
    ptm["instructions_of_record"] = ref(PTM, ptm.add(0x00FF0000 | ptm.data[0]))


@case("add_1", "has an argument that is not a value")
def argument_between_values(ptm):
    ptm.put(next(ptm.instructions()) + 4, ptm["values_of_record"] + 1)


@case("add_1", "has an argument that is not a value")
def argument_in_planned_memory(ptm):
    ptm.put(next(ptm.instructions()) + 4, ref(PLANNED, 0))


@case("add_1", "is of the wrong kind")
def argument_that_is_none(ptm):
    ptm.put(next(ptm.instructions()) + 4, 0)


@case("add_1", "fewer arguments|wrong kind|more arguments")
def argument_fewer(ptm):
    ptm.data[next(ptm.instructions()) + 2] -= 1


def jumps(ptm):
    return [at for at in ptm.instructions() if ptm.data[at + 3] == 1]


@case("control_flow", "jumps too far")
def jump_beyond_the_end(ptm):
    ptm.put(jumps(ptm)[0] + 12, 1000)


@case("control_flow", "jumps to no instruction")
def jump_between_instructions(ptm):
    at = jumps(ptm)[0] + 8
    ptm.put(at, ptm.word(at) + 1)


@case("control_flow", "jumps to no instruction")
def jump_to_another_than_its_index(ptm):
    at = jumps(ptm)[0] + 12
    ptm.put(at, ptm.word(at) - 1)


@case("control_flow", "a condition is not a bool")
def condition_that_is_none(ptm):
    ptm.put(jumps(ptm)[0] + 4, 0)


@case("map_over_rows", "is not a number")
def variable_that_is_a_list(ptm):
    ptm.put(ptm["changing"] + 12, (0x40 + 7) << 16)


@case("map_over_rows", "is not a number")
def variable_that_is_a_constant(ptm):
    ptm.data[ptm["changing"] + 15] = CONSTANT


def list_of(ptm, kind):
    return ptm.values(type=0x40 + kind)[0]


@case("cat", "is not a constant")
def list_beyond_the_end(ptm):
    ptm["sizes", list_of(ptm, 10)] = 1 << 20


@case("cat", "is not a constant")
def list_of_what_is_no_value(ptm):
    ptm.put(offset_of(ptm["data", list_of(ptm, 10)]), ref(PTM, 0))


@case("cat", "is not a constant")
def list_of_none(ptm):
    ptm.put(offset_of(ptm["data", list_of(ptm, 10)]), 0)


@case("cat", "is not a constant")
def list_of_itself(ptm):
    at = list_of(ptm, 10)
    ptm.put(offset_of(ptm["data", at]), ptm["values_of_record"] + 4 * at)


@case("avg_pool2d_padding", "is not a constant")
def ints_that_are_constant_and_are_not(ptm):
    """The check would treat the items as references, of 4 bytes, but the kernel would read numbers, of
    8."""
    at, count = list_of(ptm, 7), 200
    ptm["kind", at] |= 1 << 24
    number = ptm["values_of_record"] + 4 * list_of(ptm, 2)
    ptm["data", at], ptm["sizes", at] = ref(PTM, ptm.add(*[number] * count)), count


@case("counter_initialized", "an initial value lies outside its memory")
def initial_value_in_the_pool(ptm):
    ptm.put(ptm["initial"] + 4, ref(POOL, 0))


@case("counter_initialized", "an initial value lies outside its memory")
def initial_value_behind_planned_memory(ptm):
    ptm.put(ptm["initial"] + 12, 1 << 20)


@case("counter_initialized", "an initial value lies outside its memory")
def initial_value_behind_the_ptm_file(ptm):
    ptm.put(ptm["initial"] + 8, len(ptm.data))


@case("lstm_stateful", "is in the wrong place")
def names_of_one_value(ptm):
    at = ptm["attributes"]
    assert ptm.word(at) > 1
    ptm.put(at + 16, ptm.word(at + 8))


@case("gelu", "is not a constant")
def string_without_an_end(ptm):
    at = list_of(ptm, 6)
    ptm.data[offset_of(ptm["data", at]) + ptm["sizes", at]] = ord("x")


@case("a view", "makes a view outside its source")
def view_of_another_memory(ptm):
    """An input in place has few bytes, and then the view gives it the sizes of its source."""
    ptm["n_external"] = 1
    ptm["data", ptm.values(flags=DYNAMIC)[1]] = ref(PLANNED + 1, 0)


@case("a view", "makes a view outside its source")
def view_of_another_dtype(ptm):
    at = ptm.values(flags=DYNAMIC)[1]
    ptm["kind", at] = ptm["kind", at] & ~0xFF0000 | 3 << 16


def packed_of(ptm, which=0):
    """Return the position of the first reference, or of reference `which`, to packed weights."""
    at = offset_of(ptm["packed_of_record"])
    words = range(at, at + 4 * ptm["n_instructions_of_record"], 4)
    return [word for word in words if ptm.word(word)][which]


NOT_ASKED = "InvalidProgram .*the packed weights do not match its kernels' requests"


@case("int8_convolutions", NOT_ASKED)
def packed_beyond_the_end(ptm):
    ptm.put(packed_of(ptm), ref(1, ptm["size"] - 16))


@case("int8_convolutions", NOT_ASKED)
def packed_at_no_multiple_of_8(ptm):
    at = packed_of(ptm)
    ptm.put(at, ptm.word(at) - 1)


@case("int8_convolutions", NOT_ASKED)
def packed_in_planned_memory(ptm):
    ptm.put(packed_of(ptm), ref(PLANNED, 0))


@case("int8_convolutions", NOT_ASKED)
def packed_for_a_call_that_packs_nothing(ptm):
    at = offset_of(ptm["packed_of_record"])
    ptm.put(next(at + 4 * i for i in range(ptm["n_instructions_of_record"])
                   if not ptm.word(at + 4 * i)), ptm.word(packed_of(ptm)))


@case("int8_convolutions", OUTSIDE)
def references_to_packed_weights_beyond_the_end(ptm):
    ptm["packed_of_record"] = ref(PTM, ptm["records"] - 4)


PLACES = "InvalidProgram .*temp memory lies outside its planned buffer"


def place_of(ptm, call=0):
    """Return the position of the pt_idle_scratch of a call that has one."""
    places = [ptm["places"] + 8 * i for i in range(ptm["n_instructions_of_record"])]
    return [at for at in places if ptm.word(at + 4)][call]


@case("int8_attention", PLACES)
def temp_memory_behind_its_planned_buffer(ptm):
    at = place_of(ptm)
    ptm.put(at, ref(PLANNED, ptm.word(ptm["planned"] + 4 + 8)))


@case("int8_attention", PLACES)
def more_temp_memory_than_its_planned_buffer_has(ptm):
    ptm.put(place_of(ptm) + 4, 0xFFFFFFFF)


@case("int8_attention", PLACES)
def temp_memory_at_no_multiple_of_8(ptm):
    at = place_of(ptm)
    ptm.put(at, ptm.word(at) + 1)
    ptm.put(at + 4, 8)


@case("int8_attention", PLACES)
def temp_memory_in_the_pool(ptm):
    ptm.put(place_of(ptm), ref(POOL, 0))


@case("int8_attention", PLACES)
def temp_memory_in_a_memory_that_there_is_not(ptm):
    ptm.put(place_of(ptm), ref(PLANNED + 1, 0))


@case("int8_attention", OUTSIDE)
def places_of_fewer_instructions(ptm):
    ptm["places"] = ptm["records"] - 8


OVER = "InvalidProgram .*has temp memory over its tensors"


@case("add_1", OVER)
def temp_memory_over_a_tensor(ptm):
    ptm["places"] = ptm.add(ptm["data", 0], 4)


@case("cat", OVER)
def temp_memory_over_an_item_of_a_list(ptm):
    item = ptm.word(offset_of(ptm["data", list_of(ptm, 10)]))
    data = ptm["data", (item - ptm["values_of_record"]) // 4]
    ptm["places"] = ptm.add(*[data & ~1, 8] * ptm["n_instructions_of_record"])


# ---- hours of work in few bytes

MANY = "NotSupported .*more than four million records"


@case("cat", MANY)
def many_calls_with_one_long_list(ptm):
    at, count = list_of(ptm, 10), 50000
    ptm["data", at] = ref(PTM, ptm.add(*[ptm["values_of_record"]] * count))
    ptm["sizes", at] = count
    first = next(ptm.instructions())
    words = [ptm.word(first + 4 * i) for i in range(1 + ptm.data[first + 2])]
    ptm["instructions_of_record"] = ref(PTM, ptm.add(*words * 10000))
    ptm["n_instructions_of_record"] = 10000


@case("cat", "is not a constant")
def many_lists_over_each_other(ptm):
    at, count = list_of(ptm, 10), 10000
    items = ptm.add(*[0] * count)
    ptm["data", at], ptm["sizes", at] = ref(PTM, items), count
    old = offset_of(ptm["values_of_record"])
    records = [ptm.word(old + 4 * i) for i in range(4 * ptm["n_records"])]
    one = [ref(PTM, items), count, 0, ptm["kind", at]]
    values = ptm["values_of_record"] = ref(PTM, ptm.add(*records, *one * 10000))
    ptm["n_records"] += 10000
    struct.pack_into(f"<{count}I", ptm.data, items, *[values] * count)


@case("map_over_rows", "jumps too far")
def jumps_to_and_fro_across_many_instructions(ptm):
    count = 20000
    condition = ptm.word(jumps(ptm)[0] + 4)
    start = len(ptm.data)
    rows = [(3 << 16 | 1 << 24, condition, ref(PTM, start + 16 * to), to)
            for to in [count - 1, 0] * (count // 2)]
    ptm["instructions_of_record"] = ref(PTM, ptm.add(*[word for row in rows for word in row]))
    ptm["n_instructions_of_record"] = count


@case("add_1", MANY)
def many_instructions_and_operators(ptm):
    ptm["operators"] = ptm.vector(*[0] * 30000)
    ptm["instructions_of_record"] = ref(PTM, ptm.add(*[3 << 24] * 30000))
    ptm["n_instructions_of_record"] = 30000


@case("add_1", "another number of methods")
def one_method_many_times(ptm):
    for at in range(4 * len(HEADER) + 4, ptm["records"], 4):
        ptm.put(at, ptm.method)
    ptm.put(4 * len(HEADER), 50)


@pytest.mark.parametrize("name", CASES)
def test_is_rejected_by_name(name):
    source, change, error = CASES[name]
    ptm = Edited(compiled(source))
    change(ptm)
    start = time.process_time()
    with pytest.raises(Error) as caught:
        load(ptm.bytes())
    assert re.search(error, str(caught.value))
    assert time.process_time() - start < 1


@pytest.mark.reliability
@pytest.mark.parametrize("bits", replayed.WIDTHS)
def test_none_of_them_does_harm(bits):
    named = []
    for name, (source, change, _) in CASES.items():
        ptm = Edited(compiled(source))
        change(ptm)
        named.append((name, ptm.bytes()))
    results = replayed.run(bits, named)
    assert [name for (name, _), result in zip(named, results, strict=True) if result.executed] == []


@pytest.mark.parametrize("source", sorted({source for source, *_ in CASES.values()}))
def test_the_undamaged_program_loads(source):
    load(ptms.with_sums(compiled(source)))


# ---- damage


@pytest.mark.parametrize("name", ["add_1", "control_flow", "dynamic_batch", "int8_elementwise"])
def test_every_wrong_bit_in_the_records_is_rejected(name):
    data = np.frombuffer(compiled(name), np.uint8).copy()
    records = ptms.word(data, ptms.RECORDS)
    wrong = []
    for position in range(ptms.SUMMED, records):
        for bit in range(8):
            data[position] ^= 1 << bit
            try:
                Program.load(BufferDataLoader(data))
                wrong.append((position, bit))
            except Error as error:
                if "its checksum is wrong: it is damaged" not in str(error):
                    wrong.append((position, bit, str(error)))
            data[position] ^= 1 << bit
    assert wrong == []


def test_a_wrong_bit_in_the_data_is_found_by_its_checksum():
    data = aligned(compiled("linear_5"))
    loaded = Program.load(BufferDataLoader(data))
    loaded.library.check_data()
    data[-1] ^= 1
    with pytest.raises(Error, match="the checksum of its data is wrong"):
        loaded.library.check_data()


def test_a_shorter_ptm_file_is_rejected():
    data = compiled("linear_5")
    for size in range(len(data)):
        with pytest.raises(Error, match="NotSupported" if size == 3 else "InvalidProgram"):
            Program.load(BufferDataLoader(aligned(data[:size])))


# ---- words changed at random

MUTATIONS = 100  # for each .ptm file
TRANSFORMS = ("fft2", "rfft", "stft")


def _comparable(name, result):
    """Return the result, for a transform without its outputs. A transform adds NaNs, and the compiler
    decides which of two NaNs the sum is, so a changed word that makes the output one of integers would
    show it."""
    return replace(result, digest="") if name.split()[0] in TRANSFORMS else result


@pytest.mark.reliability
def test_ptm_files_with_other_words_work_or_are_rejected():
    """Each file is opened, loaded, run, stepped, reset and unloaded, twice, with memories of exactly
    the requested sizes. The results at both widths are equal."""
    found = [*ptms.of_fixtures(8192), *ptms.of_programs()]
    named = [(f"{name} {i}", data) for seed, (name, ptm) in enumerate(found)
             for i, data in enumerate(ptms.mutations(ptm, MUTATIONS, seed))]
    wide, narrow = (replayed.run(bits, named) for bits in replayed.WIDTHS)
    different = [(name, a, b) for (name, _), a, b in zip(named, wide, narrow, strict=True)
                 if _comparable(name, a) != _comparable(name, b)]
    executed = sum(result.executed > 0 for result in wide)
    figures.record("images", "mutations", files=len(named), executed=executed,
                   refused=len(named) - executed, different=len(different))
    assert different == []
    assert executed > len(named) / 10


# ---- memories


DYNAMIC_ONE = "map_over_rows"


def outputs(method, meta):
    for i in range(meta.num_inputs()):
        info = meta.input_tensor_meta(i)
        method.set_input(aligned(bytes(k % 256 for k in range(1, 1 + info.nbytes()))), i)
    method.execute()
    return [bytes(method.get_output(i).data) for i in range(meta.num_outputs())]


def test_every_smaller_pool_is_rejected_and_the_next_load_works():
    loaded, meta = opened(compiled(DYNAMIC_ONE))
    method = method_of(meta)
    pool = method.manager.method_allocator
    method.load(loaded, meta.name())
    needed, wanted = pool.used, outputs(method, meta)
    method.unload()
    assert needed == Edited(compiled(DYNAMIC_ONE))["changing_bytes"] > 0
    for pool.size in range(needed):
        with pytest.raises(Error, match=f"MemoryAllocationFailed .*method pool: {needed}B requested, "
                                        f"{pool.size}B available"):
            method.load(loaded, meta.name())
        assert pool.used == 0
    pool.size = needed
    method.load(loaded, meta.name())
    assert outputs(method, meta) == wanted


def test_a_ptm_file_without_anything_that_changes_loads_beside_a_full_pool():
    loaded, meta = opened(compiled("add_1"))
    for size in (0, 4, 8, 12):
        method = method_of(meta, size)
        pool = method.manager.method_allocator
        pool.used = size
        method.load(loaded, meta.name())
        assert pool.used == size
        method.unload()


def test_smaller_planned_memory_is_rejected_and_the_next_load_works():
    loaded, meta = opened(compiled("add_1"))
    needed = meta.memory_planned_buffer_size(0)
    for size in range(0, needed, 8):
        manager = MemoryManager(MemoryAllocator(aligned(0)), HierarchicalAllocator([aligned(size)]))
        with pytest.raises(Error, match=f"MemoryAllocationFailed .*planned buffer 0: {needed}B "
                                        f"requested, {size}B available"):
            Method(manager).load(loaded, meta.name())
    method_of(meta, 0).load(loaded, meta.name())


def test_smaller_temp_memory_is_rejected_and_the_next_load_works():
    loaded, meta = opened(compiled("antialias"))
    method = method_of(meta)
    method.load(loaded, meta.name())
    needed = method.memory_report()["temp"]["used"]
    assert needed > 0
    for size in range(0, needed, 4):
        with pytest.raises(Error, match=f"MemoryAllocationFailed .*temp memory: {needed}B requested, "
                                        f"{size}B available"):
            method_of(meta, temp=size).load(loaded, meta.name())
    method_of(meta, temp=needed).load(loaded, meta.name())


def test_with_smaller_temp_memory_kernels_do_without_that_can():
    loaded, meta = opened(compiled("int8_linear_kernel_sum"))
    method = method_of(meta)
    method.load(loaded, meta.name())
    needed, wanted = method.memory_report()["temp"]["used"], outputs(method, meta)
    assert needed > 0
    for size in range(0, needed, 4):
        method = method_of(meta, temp=size)
        method.load(loaded, meta.name())
        assert outputs(method, meta) == wanted


def test_a_place_that_is_too_small_is_no_temp_memory():
    ptm = Edited(compiled("int8_attention"))
    assert ptm["scratch_of_record"] == 0
    loaded, meta = opened(ptm.bytes())
    method = method_of(meta, temp=0)
    method.load(loaded, "forward")
    assert method.memory_report()["temp"]["used"] == 0
    wanted = outputs(method, meta)
    for at in range(ptm["places"], ptm["places"] + 8 * ptm["n_instructions_of_record"], 8):
        ptm.put(at + 4, 0)
    loaded, meta = opened(ptm.bytes())
    for temp in (0, 112, 116):
        method = method_of(meta, temp=temp)
        method.load(loaded, "forward")
        assert method.memory_report()["temp"]["used"] == 116
        assert outputs(method, meta) == wanted


def test_two_methods_of_one_ptm_file_in_one_pool():
    """The second method begins behind the first, and leaves it unchanged."""
    loaded, meta = opened(compiled(DYNAMIC_ONE))
    pool = MemoryAllocator(aligned(4096))
    methods = [method_of(meta, pool) for _ in range(2)]
    wanted = None
    for method in methods:
        method.load(loaded, meta.name())
        wanted = wanted or outputs(method, meta)
    for method in (*methods, methods[0]):
        assert outputs(method, meta) == wanted
    with pytest.raises(Error, match="AlreadyLoaded"):
        methods[0].load(loaded, meta.name())
    for method in reversed(methods):
        method.unload()
    assert pool.used == 0


def test_no_memory_overlaps_the_used_part_of_the_pool():
    loaded, meta = opened(compiled(DYNAMIC_ONE))
    region = aligned(4096)
    pool = MemoryAllocator(region)
    method_of(meta, pool).load(loaded, meta.name())
    temp = MemoryAllocator(region[:16], "temp memory")
    with pytest.raises(Error, match="InvalidArgument .*temp memory.*shares bytes"):
        Method(MemoryManager(pool, planned_of(meta), temp)).load(loaded, meta.name())


@pytest.mark.parametrize("name", ["counter_initialized", "lstm_stateful", DYNAMIC_ONE])
def test_reset_state_equals_a_fresh_load(name):
    loaded, meta = opened(compiled(name))
    method = method_of(meta)
    method.load(loaded, meta.name())
    first = [outputs(method, meta) for _ in range(3)]
    method.reset_state()
    assert [outputs(method, meta) for _ in range(3)] == first
    method.unload()
    method.load(loaded, meta.name())
    assert [outputs(method, meta) for _ in range(3)] == first


# ---- the rest


def test_a_missing_kernel_is_named_where_calls_are_not_checked():
    ptm = Edited(compiled("add_1"))
    ptm["operators"] = ptm.vector(0xFFFF)
    loaded = Program.load(BufferDataLoader(aligned(ptm.bytes())), MINIMAL)
    meta = loaded.method_meta("forward")
    with pytest.raises(Error, match="OperatorMissing"):
        method_of(meta).load(loaded, "forward")


def test_a_ptm_file_that_is_resized_is_noticed():
    data = compiled("add_1")
    memory = np.zeros(len(data), np.uint8)
    memory[:] = np.frombuffer(data, np.uint8)
    loaded = Program.load(BufferDataLoader(memory))
    meta = loaded.method_meta("forward")
    method = method_of(meta)
    method.load(loaded, "forward")
    outputs(method, meta)
    grow_array(memory)
    with pytest.raises(Error, match=r"InvalidState .*has been resized since it was passed"):
        method.execute()
