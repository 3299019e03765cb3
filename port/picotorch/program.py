"""A program: the verified bytes of a .pte file, and where things lie in them.

What is trusted and what is not: no byte of the file is trusted. `Program.load` checks that the
FlatBuffer's tables, vectors and strings lie inside the file (strict verification, the default), and
that the segments do. Every number in it that means a place, an index or a size is checked where it is
used, against what it indexes, before a record is written. Reader raises ValueError for a place outside
the file, which becomes InvalidProgram.
"""

import _picotorch

from . import schema
from .errors import (
    INTERNAL,
    INVALID_ARGUMENT,
    NOT_FOUND,
    NOT_SUPPORTED,
    Error,
    bad_program,
    check_stack,
    fail,
)
from .memory import LIMIT, buffer_size, bytes_at, check_alignment

STRICT = 1  # structure of the whole file
MINIMAL = 0  # header only: for a file whose bytes are known to be good


def text_at(data, reader, position):
    """The string at a position of a file, as Program.string gives it."""
    if position == 0:
        return ""
    start = position + 4
    text = bytes(data[start : start + reader.length(position)])
    try:
        if not text or min(text) >= 32:
            return str(text, "utf-8")
    except ValueError:
        pass
    return "".join([chr(c) if 32 <= c < 127 else "?" for c in text])


class Program:
    """Made by Program.load(loader)."""

    def __init__(self, loader):
        self.loader = loader
        buffer_size(loader.buffer, "program")
        self.data = memoryview(loader.buffer)
        self.reader = None
        self.segment_base = 0
        self.root = 0
        self.plans = 0
        self.segments = 0
        self.constant_segment = 0  # position in the file of the constants, 0: none
        self.constant_size = 0
        self.constant_offsets = 0
        self.n_constants = 0
        self.constant_buffer = 0
        self._plans = None  # positions of the execution plans by name, once one was asked for

    @staticmethod
    def load(loader, verification=STRICT):
        """Reads header and tables of the loader's file. Raises InvalidProgram, InvalidArgument,
        InvalidType."""
        if verification != STRICT and verification != MINIMAL:
            raise fail(INVALID_ARGUMENT, "is neither STRICT nor MINIMAL", "verification")
        check_stack()
        program = Program(loader)
        try:
            program._read_header()
            if verification == STRICT:
                position = program.reader.verify()
                if position >= 0:
                    raise bad_program("structure is broken", "byte", position)
            program._read_root()
        except ValueError:
            raise bad_program("something lies outside the file") from None
        return program

    def _read_header(self):
        size = len(self.data)
        if size < 8:
            raise bad_program("%dB are too few for a header" % size)
        if bytes(self.data[4:8]) != schema.FILE_IDENTIFIER:
            raise bad_program("no file identifier ET12: not a .pte file")
        if size > LIMIT:
            raise fail(NOT_SUPPORTED, "programs above 128 MiB")
        check_alignment(self.data, "program")
        head = _picotorch.Reader(self.data)
        end = self._read_extended_header(head, size)
        self.reader = head if end == size else _picotorch.Reader(self.data[:end])

    def _read_extended_header(self, head, size):
        """Size of the FlatBuffer: that of the file where there is no extended header."""
        at = schema.EXTENDED_HEADER_POSITION
        if bytes(self.data[at : at + 4]) != schema.EXTENDED_HEADER_MAGIC:
            return size
        length = head.u32_at(at + schema.EXTENDED_HEADER_LENGTH)
        if length < schema.EXTENDED_HEADER_MINIMUM_LENGTH:
            raise bad_program("extended header is too short")
        program_size = head.u64_at(at + schema.EXTENDED_HEADER_PROGRAM_SIZE)
        self.segment_base = head.u64_at(at + schema.EXTENDED_HEADER_SEGMENT_BASE)
        if not 8 <= program_size <= size:
            raise bad_program("the header says %dB, the file has %dB" % (program_size, size))
        if not 0 <= self.segment_base <= size:
            raise bad_program("segments start at byte %d of %d" % (self.segment_base, size))
        if length >= schema.EXTENDED_HEADER_SEGMENT_DATA_SIZE + 8:
            segments_size = head.u64_at(at + schema.EXTENDED_HEADER_SEGMENT_DATA_SIZE)
            if not 0 <= segments_size <= size - self.segment_base:
                raise bad_program("segments of %dB at byte %d of %d" %
                                  (segments_size, self.segment_base, size))
        return program_size

    def _read_root(self):
        reader = self.reader
        self.root = root = reader.root()
        if reader.u32(root, schema.PROGRAM_VERSION) != 0:
            raise fail(NOT_SUPPORTED, "schema version %d" %
                       reader.u32(root, schema.PROGRAM_VERSION))
        self.plans = reader.table(root, schema.PROGRAM_EXECUTION_PLAN)
        if reader.length(self.plans) == 0:
            raise bad_program("no method in it")
        self.segments = reader.table(root, schema.PROGRAM_SEGMENTS)
        for i in range(reader.length(self.segments)):
            self._check_segment(i)
        self.constant_buffer = reader.table(root, schema.PROGRAM_CONSTANT_BUFFER)
        constants = reader.table(root, schema.PROGRAM_CONSTANT_SEGMENT)
        if constants:
            self.constant_offsets = reader.table(constants, schema.SUBSEGMENT_OFFSETS_OFFSETS)
        self.n_constants = reader.length(self.constant_offsets)
        if self.n_constants:
            index = reader.u32(constants, schema.SUBSEGMENT_OFFSETS_SEGMENT_INDEX)
            if index >= reader.length(self.segments):
                raise bad_program("there is no such constant segment", "segment", index)
            segment = reader.item(self.segments, index)
            self.constant_segment = self.segment_base + reader.i64(segment,
                                                                   schema.DATA_SEGMENT_OFFSET)
            self.constant_size = reader.i64(segment, schema.DATA_SEGMENT_SIZE)

    def _check_segment(self, i):
        segment = self.reader.item(self.segments, i)
        offset = self.reader.i64(segment, schema.DATA_SEGMENT_OFFSET)
        size = self.reader.i64(segment, schema.DATA_SEGMENT_SIZE)
        rest = len(self.data) - self.segment_base if self.segment_base else 0
        if not 0 <= offset <= rest or not 0 <= size <= rest - offset:
            raise bad_program("lies outside the file", "segment", i)

    # ---- methods

    def num_methods(self):
        return self.reader.length(self.plans)

    def get_method_name(self, index):
        """Raises InvalidArgument when there is no method of this index."""
        try:
            plan = self.reader.item(self.plans, index)
        except ValueError:
            raise fail(NOT_FOUND, "there are %d" % self.num_methods(), "method", index) from None
        return self.string(self.reader.table(plan, schema.EXECUTION_PLAN_NAME))

    @property
    def method_names(self):
        return [self.get_method_name(i) for i in range(self.num_methods())]

    def plan(self, name):
        """Position of the execution plan of a method. Raises NotFound. Works with the heap locked."""
        reader = self.reader
        for i in range(reader.length(self.plans)):
            plan = reader.item(self.plans, i)
            text = reader.table(plan, schema.EXECUTION_PLAN_NAME)
            if text and reader.equals(text, name):
                return plan
        raise fail(NOT_FOUND, "there is no method of this name", name, source=self)

    def find_plan(self, name):
        """Position of the execution plan of a method, -1 where there is none. Allocates."""
        if self._plans is None:
            self._plans = {}
            for i in range(self.num_methods() - 1, -1, -1):  # the first one of a name stays
                self._plans[self.get_method_name(i)] = self.reader.item(self.plans, i)
        return self._plans.get(name, -1)

    def method_meta(self, name="forward"):
        from .method_meta import MethodMeta

        return MethodMeta(self, self.plan(name))

    def load_method(self, name, manager, prepare=False, data_map=None, event_tracer=None):
        """A new Method, loaded; see Method.load."""
        from .method import Method

        method = Method(manager)
        method.load(self, name, prepare, data_map, event_tracer)
        return method

    def explain(self, error):
        """What NotFound says beside the name that was asked for."""
        return "the program has " + ", ".join(self.method_names)

    # ---- parts of the file

    def string(self, position):
        """The text at a position; '' for 0. Text that is no UTF-8 or has control characters is
        shown as far as it is ASCII. Allocates."""
        return text_at(self.data, self.reader, position)

    def constant(self, index, size):
        """Position in the file of constant `index`, of `size` bytes. Raises InvalidProgram."""
        reader = self.reader
        if self.n_constants:
            if index >= self.n_constants:
                raise bad_program("there is no such constant", "constant", index)
            offset = reader.i64_item(self.constant_offsets, index)
            if not 0 <= offset <= self.constant_size or size > self.constant_size - offset:
                raise bad_program("lies outside its segment", "constant", index)
            return self.constant_segment + offset
        if index >= reader.length(self.constant_buffer):
            raise bad_program("there is no such constant", "constant", index)
        storage = reader.table(reader.item(self.constant_buffer, index), schema.BUFFER_STORAGE)
        if size > reader.length(storage):
            raise bad_program("has too few bytes", "constant", index)
        return storage + 4

    def bytes_of(self, vector, view=None):
        """A read-only memoryview of a vector of bytes; of none for 0. `view`: see bytes_at."""
        size = self.reader.length(vector)
        return bytes_at(self.data, vector + 4 if size else 0, size, view, False)

    def segment(self, index, view=None):
        """A read-only memoryview of the bytes of a segment. Raises NotFound."""
        if self.segment_base == 0 or index >= self.reader.length(self.segments):
            raise fail(NOT_FOUND, "there is no such", "segment", index)
        segment = self.reader.item(self.segments, index)
        return bytes_at(
            self.data, self.segment_base + self.reader.i64(segment, schema.DATA_SEGMENT_OFFSET),
            self.reader.i64(segment, schema.DATA_SEGMENT_SIZE), view, False)

    def delegate_data(self, reference, view=None):
        """A read-only memoryview of the data that a BackendDelegateDataReference names. Raises
        NotFound, Internal for a place of an unknown kind."""
        reader = self.reader
        location = reader.u8(reference, schema.BACKEND_DELEGATE_DATA_REFERENCE_LOCATION)
        index = reader.u32(reference, schema.BACKEND_DELEGATE_DATA_REFERENCE_INDEX)
        if location == schema.DATA_LOCATION_SEGMENT:
            return self.segment(index, view)
        if location != schema.DATA_LOCATION_INLINE:
            raise fail(INTERNAL, "lies at a place of an unknown kind", "delegate data", index)
        entries = reader.table(self.root, schema.PROGRAM_BACKEND_DELEGATE_DATA)
        if index >= reader.length(entries):
            raise fail(NOT_FOUND, "there is no such", "delegate data", index)
        return self.bytes_of(reader.table(reader.item(entries, index),
                                          schema.BACKEND_DELEGATE_INLINE_DATA_DATA), view)

    # ---- named data

    def get_named_data_map(self):
        """The program's bytes that have a key, a new NamedDataMap."""
        from .named_data import NamedDataMap

        named_data = NamedDataMap()
        named_data.bind(self)
        return named_data

    def get_named_data(self, key, view=None):
        """As get_data of the NamedDataMap."""
        return self.get_named_data_map().get_data(key, view)

    def initial_data(self, segments, index, size):
        """Position in the file of the initial value of a mutable buffer: item `index` of entry
        `segments` of the mutable data segments. Raises InvalidProgram."""
        reader = self.reader
        entries = reader.table(self.root, schema.PROGRAM_MUTABLE_DATA_SEGMENTS)
        if segments >= reader.length(entries):
            raise bad_program("there is no such mutable data segment", "entry", segments)
        entry = reader.item(entries, segments)
        offsets = reader.table(entry, schema.SUBSEGMENT_OFFSETS_OFFSETS)
        if index >= reader.length(offsets):
            raise bad_program("there is no such initial value", "value", index)
        segment = reader.item(self.segments,
                              reader.u32(entry, schema.SUBSEGMENT_OFFSETS_SEGMENT_INDEX))
        offset = reader.i64_item(offsets, index)
        segment_size = reader.i64(segment, schema.DATA_SEGMENT_SIZE)
        if not 0 <= offset <= segment_size or size > segment_size - offset:
            raise bad_program("lies outside its segment", "initial value", index)
        return self.segment_base + reader.i64(segment, schema.DATA_SEGMENT_OFFSET) + offset

    def __repr__(self):
        try:
            return "<Program %dB: %s>" % (len(self.data), ", ".join(self.method_names))
        except Error:
            return "<Program %dB>" % len(self.data)
