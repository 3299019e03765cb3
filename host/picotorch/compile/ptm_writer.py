"""Write .ptm files: methods of a program in their loaded form (kernels/core/format/ptm.h).

Each method is loaded on the twin. The records that the load wrote to the pool become records of the
file. References to the program, to data files and to the pool become references to the file. The
numbers, strings and lists of the program's tables become records.
"""

import struct
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

from _picotorch import CORES
from _picotorch_c import ffi, lib

from picotorch.errors import NOT_SUPPORTED, fail
from picotorch.memory import LIMIT

from ..host import twin
from . import scratch_overlay, uninitialized_reads
from .pool_records import CData, Loaded, is_call, load, make_ref, memory_of

_ALIGNMENT = 8
_MAX_METHODS = 255
_RECORD = struct.Struct("<IIIHBB")  # pt_value
_INITIAL = struct.Struct("<III")  # pt_ptm_initial
_Content = tuple[str, int, Any]  # a constant: "number", "bytes", "records" or "entries"; type; value
_Key = tuple[_Content, int]  # a constant and its index
_NO_INDEX = 1 << 16  # the index of a shared constant, until it gets an index behind the other constants


@dataclass
class Part:
    """A part of a .ptm file, in bytes."""

    header: int = 0
    records: int = 0
    constants: int = 0
    packed: int = 0
    initial: int = 0


@dataclass
class Ptm:
    """The bytes of a .ptm file, and the choices in it.

    methods: names. can_pack: for each method, {instruction: bytes} of the packed weights that the
    core's kernels can use, stored or not. calls_packed: number of instructions with stored packed
    weights.
    """

    data: bytes
    parts: Part
    methods: list[str] = field(default_factory=list)
    can_pack: dict[str, dict[int, int]] = field(default_factory=dict)
    calls_packed: int = 0


class _Data:
    """The data of a .ptm file: constants, packed weights and initial values, each once."""

    def __init__(self, ptm: Ptm) -> None:
        self._ptm = ptm
        self._bytes = bytearray()
        self._offsets: dict[bytes, int] = {}

    def add(self, data: bytes, kind: str) -> int:
        """Return the offset of bytes from the beginning of the data."""
        data = bytes(data)
        if data not in self._offsets:
            self._bytes += bytes(-len(self._bytes) % _ALIGNMENT)
            self._offsets[data] = len(self._bytes)
            self._bytes += data
            setattr(self._ptm.parts, kind, getattr(self._ptm.parts, kind) + len(data))
        return self._offsets[data]

    def finish(self) -> bytes:
        return bytes(self._bytes) + bytes(-len(self._bytes) % 4)


class _Tables:
    """The part of a .ptm file before its data: words and bytes, each at a multiple of 4.

    An offset into the data is unknown until all tables exist, so it is written at the end.
    """

    def __init__(self, start: int) -> None:
        self._bytes = bytearray(start)
        self._offsets: dict[bytes, int] = {}
        # (position, offset in the data, memory or None)
        self._later: list[tuple[int, int, int | None]] = []

    def __len__(self) -> int:
        return len(self._bytes)

    def add(self, data: bytes) -> int:
        """Return the position of bytes."""
        position = len(self._bytes)
        self._bytes += data + bytes(-len(data) % 4)
        return position

    def share(self, data: bytes) -> int:
        """Return the position of bytes that never change; equal bytes share it."""
        if data not in self._offsets:
            self._offsets[data] = self.add(data)
        return self._offsets[data]

    def vector(self, count: int, data: bytes) -> int:
        return self.share(struct.pack("<I", count) + data)

    def put(self, position: int, data: bytes) -> None:
        self._bytes[position : position + len(data)] = data

    def put_later(self, position: int, offset: int, memory: int | None = None) -> None:
        self._later.append((position, offset, memory))

    def finish(self) -> bytes:
        self._bytes += bytes(-len(self._bytes) % _ALIGNMENT)
        start = len(self._bytes)
        for position, offset, memory in self._later:
            at = start + offset
            self.put(position, struct.pack("<I", at if memory is None else make_ref(memory, at)))
        return bytes(self._bytes)


def _string(text: bytes) -> tuple[int, bytes]:
    """Return length, bytes and a terminating zero of a string. MicroPython uses it in place."""
    return len(text), text + b"\0"


class _Method:
    """The writer of one method."""

    def __init__(self, method: Loaded, tables: _Tables, data: _Data, temp: scratch_overlay.Temp,
                 keep: set[int] | None) -> None:
        """Write a method.

        temp: offsets of the temp memory of its instructions. keep: numbers of the instructions whose
        packed weights to store; None for all.
        """
        self._of, self._tables, self._data = method, tables, data
        self._temp = temp
        # numbers among the file's records, set when all records exist
        self._constants: dict[_Key, int] = {}
        # reference to a record of the pool -> number among the file's records
        self._numbers: dict[int, int] = {}
        self._keys: dict[int, _Key] = {}  # by the reference to a list, or to a value of the program
        self._variables = {one: i for i, one in enumerate(method.variables)}
        packed, replaced = method.packed()
        self.can_pack = {i: len(chunk) for i, chunk in packed.items()}
        kept = [i for i in packed if keep is None or i in keep]
        self._packed = {i: packed[i] for i in kept}
        self._replaced = {i: replaced[i] for i in kept}
        self._left_out: set[int] = set()  # references to tensors whose bytes are omitted

    def calls_packed(self) -> int:
        return len(self._packed)

    def is_for_one_core(self) -> bool:
        return bool(self._left_out)

    def write(self) -> int:
        """Write the method, and return the position of its pt_ptm_method."""
        of, tables = self._of, self._tables
        self._left_out = self._find_left_out()
        self._keep()
        self._by_index = {value.index: one for one, value in [*self._kept, *of.variables.items()]}
        for what in (lib.PT_INPUTS, lib.PT_OUTPUTS):
            for index, _ in of.signature(what):
                self._add_signature(index)
        self._changing = bytearray(b"".join(
            _RECORD.pack(value.data, value.sizes, 0, value.index, value.type, value.flags)
            for value in of.variables.values()))
        for _, args in of.instructions_with_values():
            for arg in args:
                self._add_argument(arg)
        self._sort_constants()
        self._first = tables.add(bytes(_RECORD.size * (len(self._kept) + len(self._constants))))
        self._write_values()
        return self._write_method()

    # ---- tensors with records, and tensors with bytes

    def _find_left_out(self) -> set[int]:
        """Return the references of the constants that are only read in packed form.

        A call omits all of its constants or none: if one is stored, the loops may read the plain ones.
        """
        of, others = self._of, set(self._of.named_by_index)
        calls = []
        for i, (_, args) in enumerate(of.instructions_with_values()):
            bits = self._replaced.get(i, 0)
            replaced: set[int] = set()
            for k, arg in enumerate(args):
                (replaced if bits >> k & 1 else others).update(of.tensors_of([arg]))
            calls.append(replaced)
        while mixed := [call for call in calls if call & others and call - others]:
            others.update(*mixed)
        return {one for one in set().union(*calls) - others
                if of.tensors[one].flags & lib.PT_VALUE_CONSTANT}

    def _keep(self) -> None:
        """Find the tensors that get a record.

        Tensors that differ only in their index share a record, unless something refers to the index.
        """
        of = self._of
        same = {one: self._same(one, value) for one, value in of.tensors.items() if one in of.used}
        first = {same[one]: one for one in sorted(of.named_by_index, reverse=True)}
        for one, what in same.items():
            first.setdefault(what, one)
        self._kept = [(one, of.tensors[one]) for one, what in same.items()
                      if one in of.named_by_index or first[what] == one]
        numbers = {one: i for i, (one, _) in enumerate(self._kept)}
        self._numbers = {one: numbers.get(one, numbers[first[what]]) for one, what in same.items()}

    def _same(self, one: int, value: CData) -> Hashable:
        """Return a key that is equal for tensors that can share one record. Dynamic ones share none."""
        of, rank = self._of, value.flags & lib.PT_VALUE_RANK
        if value.flags & lib.PT_VALUE_DYNAMIC:
            return one
        data = value.data
        if one in self._left_out:
            data = lib.PT_DATA_LEFT_OUT
        elif value.flags & lib.PT_VALUE_CONSTANT:
            data = of.bytes(data, of.nbytes(value))
        return (data, of.bytes(value.sizes, 4 * rank), of.bytes(value.dim_order, rank), value.type,
                value.flags)

    # ---- constants: numbers, strings and lists

    def _add(self, content: _Content, index: int = _NO_INDEX) -> _Key:
        """Add a constant. A constant with an index is not shared."""
        key = (content, index)
        self._constants.setdefault(key, 0)
        return key

    def _add_argument(self, ref: int) -> None:
        if not ref or ref in self._keys or ref in self._numbers or ref in self._variables:
            return
        if memory_of(ref) == lib.PT_MEMORY_POOL:
            kind = ffi.cast("pt_value *", self._of.at(ref)).type
            items = self._of.items(ref)
            for item in items:
                self._add_argument(item)
            self._keys[ref] = self._add(("records", kind, tuple(items)))
        else:
            self._keys[ref] = self._add(self._content(ref))

    def _content(self, ref: int) -> _Content:
        """Return (kind, type, content) of a value of the program."""
        c = self._of.c
        kind = lib.pt_value_type(self._of.at(ref))
        other = lib.PT_VALUE_OTHER + kind
        if kind in (lib.PT_TYPE_INT, lib.PT_TYPE_BOOL, lib.PT_TYPE_DOUBLE):
            return "number", other, getattr(lib.pt_get_scalar(c, ref), "as").i
        if kind == lib.PT_TYPE_NULL:
            return "number", other, 0
        if kind == lib.PT_TYPE_STRING:
            length = ffi.new("uint32_t *")
            text = lib.pt_get_string(c, ref, length)
            return "bytes", other, _string(bytes(ffi.buffer(text, length[0])))
        count = lib.pt_list_length(c, ref)
        if kind == lib.PT_TYPE_INT_LIST:
            items = [lib.pt_list_int(c, ref, i) for i in range(count)]
            return "bytes", other, (count, struct.pack(f"<{count}q", *items))
        if kind == lib.PT_TYPE_DOUBLE_LIST:
            items = [lib.pt_list_double(c, ref, i) for i in range(count)]
            return "bytes", other, (count, struct.pack(f"<{count}d", *items))
        if kind == lib.PT_TYPE_BOOL_LIST:
            return "bytes", other, (count, bytes(lib.pt_list_bool(c, ref, i) for i in range(count)))
        raise fail(NOT_SUPPORTED, f"an argument of KernelTypes {kind}", self._of.meta.name())

    def _add_signature(self, index: int) -> None:
        """Add an input, output or list item that is not a tensor, under its index."""
        if index in self._by_index:
            return
        item = self._of.value(index)
        other = lib.PT_VALUE_OTHER + item.type
        if item.type in (lib.PT_TYPE_INT, lib.PT_TYPE_BOOL, lib.PT_TYPE_DOUBLE):
            self._add(("number", other, getattr(item.number, "as").i), index)
        elif item.type == lib.PT_TYPE_NULL:
            self._add(("number", other, 0), index)
        elif item.type == lib.PT_TYPE_STRING:
            text = bytes(ffi.buffer(item.text.data, item.text.length)) if item.text.length else b""
            self._add(("bytes", other, _string(text)), index)
        elif item.type != lib.PT_TYPE_NONE:
            self._add_list(index, item, other)

    def _add_list(self, index: int, item: CData, other: int) -> None:
        entries = [lib.pt_list_entry(self._of.method_meta, item, i) for i in range(item.count)]
        if item.type == lib.PT_TYPE_BOOL_LIST:
            self._add(("bytes", other, (len(entries), bytes(entries))), index)
        elif item.type == lib.PT_TYPE_DOUBLE_LIST:
            self._add(("bytes", other, (len(entries), struct.pack(f"<{len(entries)}q", *entries))),
                      index)
        else:
            for entry in entries:
                if entry >= 0:
                    self._add_signature(entry)
            self._add(("entries", other, tuple(entries)), index)

    def _sort_constants(self) -> None:
        """Sort constants: first those with an index, by the index."""
        order = sorted(self._constants, key=lambda key: key[1])
        self._constants = {key: len(self._kept) + i for i, key in enumerate(order)}
        self._constants_by_index = {key[1]: number for key, number in self._constants.items()}
        self._indexes: dict[_Key, int] = {}
        count = lib.pt_method_meta_count(self._of.method_meta, lib.PT_VALUES)
        for key in order:
            self._indexes[key] = key[1] if key[1] != _NO_INDEX else count
            count += key[1] == _NO_INDEX
        if count > 0xFFFF:
            raise fail(NOT_SUPPORTED, "more than 65535 values", self._of.meta.name())
        self._count = count

    # ---- references of the file

    def _ptm_ref(self, number: int) -> int:
        return make_ref(lib.PT_MEMORY_PTM, self._first + _RECORD.size * number)

    def _argument(self, ref: int) -> int:
        if not ref:
            return 0
        if ref in self._variables:
            return make_ref(lib.PT_MEMORY_POOL, _RECORD.size * self._variables[ref])
        if ref in self._numbers:
            return self._ptm_ref(self._numbers[ref])
        return self._ptm_ref(self._constants[self._keys[ref]])

    def _entry(self, index: int) -> int:
        """Return the entry of a list's item, by the index of the value."""
        if index in self._by_index:
            return self._argument(self._by_index[index])
        number = self._constants_by_index.get(index)
        return 0 if number is None else self._ptm_ref(number)

    # ---- records

    def _write_values(self) -> None:
        for number, (ref, value) in enumerate(self._kept):
            self._write_tensor(self._first + _RECORD.size * number, ref, value)
        for key, number in self._constants.items():
            (kind, other, what), index = key[0], self._indexes[key]
            flags = lib.PT_VALUE_CONSTANT
            if kind == "number":
                data, sizes = what & 0xFFFFFFFF, what >> 32 & 0xFFFFFFFF
            elif kind == "bytes":
                sizes, items = what
                data = make_ref(lib.PT_MEMORY_PTM, self._tables.share(items))
            else:
                refs = [self._argument(one) if kind == "records" else self._entry(one)
                        for one in what]
                items = self._tables.add(struct.pack(f"<{len(refs)}I", *refs))
                data, sizes, flags = make_ref(lib.PT_MEMORY_PTM, items), len(refs), 0
            self._tables.put(self._first + _RECORD.size * number,
                             _RECORD.pack(data, sizes, 0, index, other, flags))

    def _write_tensor(self, position: int, ref: int, value: CData) -> None:
        rank = value.flags & lib.PT_VALUE_RANK
        tables = self._tables
        dim_order = make_ref(lib.PT_MEMORY_PTM, tables.share(self._of.bytes(value.dim_order, rank)))
        if value.flags & lib.PT_VALUE_DYNAMIC:
            sizes = make_ref(lib.PT_MEMORY_POOL, len(self._changing) + 4)
            self._changing += self._of.bytes(value.sizes - 1, 4 + 4 * rank)
        else:
            sizes = make_ref(lib.PT_MEMORY_PTM, tables.share(self._of.bytes(value.sizes, 4 * rank)))
        data, memory = value.data, memory_of(value.data)
        if value.flags & lib.PT_VALUE_CONSTANT:
            data = lib.PT_DATA_LEFT_OUT
            if ref not in self._left_out:
                content = self._of.bytes(value.data, self._of.nbytes(value))
                tables.put_later(position, self._data.add(content, "constants"),
                                 lib.PT_MEMORY_PROGRAM)
        elif memory >= self._of.m.first_external:
            data = make_ref(memory - self._of.m.first_external + self._of.externals, 0)
        tables.put(position, _RECORD.pack(data, sizes, dim_order, value.index, value.type,
                                          value.flags))

    def _write_instructions(self) -> int:
        """Write the instructions, and return the position of the first one."""
        rows = [(one, args) for one, args in self._of.instructions()]
        position = first = len(self._tables)
        starts = []
        for _, args in rows:
            starts.append(position)
            position += 4 + 4 * len(args)
        starts.append(position)
        for one, args in rows:
            if one.op == lib.PT_OP_JUMP_FALSE:
                to = args[2]
                refs = [self._argument(args[0]), make_ref(lib.PT_MEMORY_PTM, starts[to]), to]
            else:
                refs = [self._argument(arg) for arg in args]
            self._tables.add(struct.pack(f"<HBB{len(refs)}I", one.kernel, len(refs), one.op, *refs))
        return first

    def _write_packed(self) -> int:
        """Write the table of packed weights, and return the reference to it, or 0."""
        if not self._packed:
            return 0
        at = self._tables.add(bytes(4 * self._of.record.n_instructions))
        for i, chunk in self._packed.items():
            self._tables.put_later(at + 4 * i, self._data.add(chunk, "packed"),
                                   lib.PT_MEMORY_PROGRAM)
        return make_ref(lib.PT_MEMORY_PTM, at)

    def _write_initial(self) -> int:
        """Write the vector of pt_ptm_initial, and return its position."""
        zeros = uninitialized_reads.zeros(self._of)
        values = uninitialized_reads.initial_values(self._of)
        tables = self._tables
        at = tables.add(struct.pack("<I", len(zeros) + len(values)))
        for memory, start, end in zeros:
            tables.add(_INITIAL.pack(make_ref(memory, start), lib.PT_PTM_ZEROS, end - (start & ~3)))
        for to, data in values:
            position = tables.add(_INITIAL.pack(to, 0, len(data)))
            tables.put_later(position + 4, self._data.add(data, "initial"))
        return at

    def _write_scratch_ranges(self) -> int:
        """Write the pt_idle_scratch of each instruction, and return the position, or 0."""
        rows = [struct.pack("<II", make_ref(memory, position), size)
                for memory, position, size in self._temp.ranges]
        return self._tables.add(b"".join(rows)) if rows else 0

    def _write_method(self) -> int:
        of, tables, record = self._of, self._tables, self._of.record
        packed = self._write_packed()
        instructions = self._write_instructions()
        at = tables.add(struct.pack(
            "<HHIIIIII", len(self._kept), len(of.variables), record.n_instructions,
            self._ptm_ref(0), make_ref(lib.PT_MEMORY_PTM, instructions), 0, self._temp.bytes,
            packed))
        indexes = [[index for index, _ in of.signature(what)]
                   for what in (lib.PT_INPUTS, lib.PT_OUTPUTS)]
        planned = of.planned_sizes()
        operators = sorted({one.kernel for one, _ in of.instructions() if is_call(one)})
        name = of.meta.name().encode()
        named = [(value, text.encode()) for value, text in of.named.items()]
        names = [(tables.vector(len(text), text), value) for value, text in named]
        fields = [
            tables.vector(len(name), name), at, len(self._kept) + len(self._constants),
            tables.vector(self._count, b""),
            *[tables.vector(len(one), struct.pack(f"<{len(one)}i", *one)) for one in indexes],
            tables.vector(len(operators), struct.pack(f"<{len(operators)}I", *operators)),
            tables.vector(1 + len(planned), struct.pack(f"<{1 + len(planned)}q", 0, *planned)),
            tables.vector(len(names), b"".join(struct.pack("<II", *one) for one in names)),
            self._write_initial(),
            tables.add(bytes(self._changing)), len(self._changing),
            of.m.end_external - of.m.first_external, self._write_scratch_ranges(),
        ]
        return tables.add(struct.pack("<14I", *fields))


def compile_ptm(model: bytes, data: Sequence[bytes] = (), core: str | None = None,
                  keep: dict[str, set[int]] | None = None) -> Ptm:
    """Compile all methods of a program's bytes, and its data files, to a Ptm.

    core: the core whose kernels use packed weights, for instance cortex-m4; None for none. keep: by
    method, the instructions whose packed weights are stored; None for all. Raises Error.
    """
    program, data_map = twin.open_program(model), twin.open_data(list(data))
    ptm = Ptm(b"", Part())
    count = program.num_methods()
    if count > _MAX_METHODS:
        raise fail(NOT_SUPPORTED, f"a .ptm file has at most {_MAX_METHODS} methods",
                   remedy="export fewer in one program")
    start = ffi.sizeof("pt_ptm_header") + 4 + 4 * count
    tables, blocks = _Tables(start), _Data(ptm)
    number, positions = CORES.get(core, int(lib.PT_CORE_PLAIN)), []
    names = [program.get_method_name(i) for i in range(count)]
    states = [uninitialized_reads.shared_state(load(program, name, data_map, None))
              for name in names] if count > 1 else []
    for i, name in enumerate(names):
        method = load(program, name, data_map, core)
        if any(size > LIMIT for size in method.planned_sizes()):
            raise fail(NOT_SUPPORTED, ".ptm files of planned buffers above 128 MiB",
                       remedy="run the program itself")
        # instructions with plain weights may need more
        others = [] if keep is None else [load(program, name, data_map, None)]
        kept = [area for k, state in enumerate(states) if k != i for area in state]
        temp = scratch_overlay.find_temp(method, others, kept)
        writer = _Method(method, tables, blocks, temp, None if keep is None else keep[name])
        positions.append(writer.write())
        ptm.can_pack[name] = writer.can_pack
        ptm.calls_packed += writer.calls_packed()
        if writer.is_for_one_core():
            number |= lib.PT_PTM_OWN_CORE
        ptm.methods.append(name)
    header = ffi.sizeof("pt_ptm_header")
    tables.put(header, struct.pack(f"<{1 + count}I", count, *positions))
    ptm.data = _finish(tables.finish(), blocks.finish(), number, count)
    if len(ptm.data) > LIMIT:
        raise fail(NOT_SUPPORTED, ".ptm files above 128 MiB", remedy="run the program itself")
    ptm.parts.header = start
    ptm.parts.records = len(tables) - start
    return ptm


def sums(data: bytes) -> tuple[int, int]:
    """Return the two checksums of data."""
    total = totals = 0
    for (word,) in struct.iter_unpack("<I", data):
        total = total + word & 0xFFFFFFFF
        totals = totals + total & 0xFFFFFFFF
    return total, totals


def _finish(tables: bytes, data: bytes, core: int, count: int) -> bytes:
    """Join header, tables and data into a file."""
    rest = struct.pack("<HBB", lib.pt_operator_count(), core, count)
    start = ffi.offsetof("pt_ptm_header", "operators")
    tables = tables[:start] + rest + tables[start + len(rest) :]
    head = struct.pack("<III", lib.PT_PTM_MAGIC, len(tables) + len(data), len(tables))
    head += struct.pack("<4I", *sums(tables[start:]), *sums(data))
    return head + tables[len(head) :] + data
