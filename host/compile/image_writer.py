"""Writes images: methods of a program as loading makes them, stored as kernels/core/image.h describes.

Each method is loaded on the twin. What loading wrote to the pool becomes the image's records:
references to the program, to data files and to the pool are turned into references to the image, and
the numbers, strings and lists that the program's tables hold into records.
"""

import struct
from dataclasses import dataclass, field

from _picotorch import CORES
from _picotorch_c import ffi, lib
from picotorch import Error, HierarchicalAllocator, MemoryAllocator, MemoryManager, Method
from picotorch.errors import MEMORY_ALLOCATION_FAILED, NOT_SUPPORTED, fail

from .. import twin
from ..aligned import aligned
from .unwritten import read_before_written

_OFFSET_BITS = lib.PT_REF_OFFSET_BITS
_ALIGNMENT = 8
_MOST_METHODS = 255
_RECORD = struct.Struct("<IIIHBB")  # pt_value
_NO_INDEX = 1 << 16  # of a constant that instructions share, until it gets one behind the program's


_CALLS = (lib.PT_OP_KERNEL_CALL, lib.PT_OP_DYNAMIC_CALL)
_OUTPUTS = b"OoWw"  # letters of a signature, see operators.def
_WRITTEN = _OUTPUTS + b"NAXx"


def _ref(memory, position):
    return memory << _OFFSET_BITS | position >> 2


def _memory_of(ref):
    return ref >> _OFFSET_BITS


def _position_of(ref):
    return (ref & (1 << _OFFSET_BITS) - 1) << 2


def _at(c, ref):
    """Where a reference of a loaded method leads to."""
    return c.memory[_memory_of(ref)] + _position_of(ref)


@dataclass
class Part:
    """What an image consists of, in bytes."""

    header: int = 0
    records: int = 0
    constants: int = 0
    prepared: int = 0
    initial: int = 0


@dataclass
class Image:
    """The bytes of an image, and what they are for."""

    data: bytes
    parts: Part
    methods: list = field(default_factory=list)  # names


class _Data:
    """The data of an image: constants, prepared weights and initial values, each once."""

    def __init__(self, image):
        self._image = image
        self._bytes = bytearray()
        self._known = {}

    def add(self, data, kind):
        """Offset of bytes from where the data begins."""
        data = bytes(data)
        if data not in self._known:
            self._bytes += bytes(-len(self._bytes) % _ALIGNMENT)
            self._known[data] = len(self._bytes)
            self._bytes += data
            setattr(self._image.parts, kind, getattr(self._image.parts, kind) + len(data))
        return self._known[data]

    def bytes(self):
        return bytes(self._bytes) + bytes(-len(self._bytes) % 4)


class _Tables:
    """The part of an image before its data: words and bytes, each at a multiple of 4. A position that
    lies in the data is not known before all tables are: it is written at the end."""

    def __init__(self, start):
        self._bytes = bytearray(start)
        self._known = {}
        self._later = []  # (position, offset in the data, memory or None)

    def __len__(self):
        return len(self._bytes)

    def add(self, data):
        """Position of bytes."""
        position = len(self._bytes)
        self._bytes += data + bytes(-len(data) % 4)
        return position

    def share(self, data):
        """The same of bytes that never change: each once."""
        if data not in self._known:
            self._known[data] = self.add(data)
        return self._known[data]

    def vector(self, count, data):
        return self.share(struct.pack("<I", count) + data)

    def put(self, position, data):
        self._bytes[position : position + len(data)] = data

    def put_later(self, position, offset, memory=None):
        self._later.append((position, offset, memory))

    def bytes(self):
        self._bytes += bytes(-len(self._bytes) % _ALIGNMENT)
        start = len(self._bytes)
        for position, offset, memory in self._later:
            at = start + offset
            self.put(position, struct.pack("<I", at if memory is None else _ref(memory, at)))
        return bytes(self._bytes)


def _string(text):
    """Length and bytes, with a zero behind them: MicroPython shows what is terminated where it lies."""
    return len(text), text + b"\0"


class _Method:
    """Writes one method, which is loaded."""

    def __init__(self, method, tables, data):
        self._meta = method.method_meta()
        self._m = method.library._m
        self._c = ffi.addressof(self._m, "c")
        self._plan = ffi.addressof(self._m, "plan")
        self._tables, self._data = tables, data
        self._record = ffi.cast("pt_method_record *", self._c.records + self._c.method)
        self._constants = {}  # (content, index) -> place among the image's records, once all are known
        self._places = {}  # reference to a record of the pool -> place among the image's
        self._keys = {}  # reference to a list, or to a value of the program -> content
        self._externals = lib.PT_MEMORY_PLANNED + self._m.n_planned

    # ---- what the pool has

    def _values(self, ref, count):
        values = ffi.cast("pt_value *", _at(self._c, ref))
        return [(ref + 4 * i, values[i]) for i in range(count)]

    def _bytes(self, ref, size):
        return bytes(ffi.buffer(_at(self._c, ref), size)) if size else b""

    def _instructions(self):
        position = _position_of(self._record.instructions)
        for _ in range(self._record.n_instructions):
            one = ffi.cast("pt_instruction *", self._c.records + position)
            yield one, [one.args[i] for i in range(one.n_args)]
            position += 4 + 4 * one.n_args

    # ---- all of it

    def write(self):
        """Position of its pt_image_method."""
        record, tables = self._record, self._tables
        tensors = self._values(record.values, record.n_values)
        variables = self._values(record.values + 4 * record.n_values, record.n_variables)
        self._variables = {ref: i for i, (ref, _) in enumerate(variables)}
        self._tensors = dict(tensors)
        used = self._find_used(tensors)
        self._kept = [(ref, value) for ref, value in tensors if ref in used]
        self._places = {ref: i for i, (ref, _) in enumerate(self._kept)}
        self._by_index = {value.index: ref for ref, value in [*self._kept, *variables]}
        for what in (lib.PT_INPUTS, lib.PT_OUTPUTS):
            for index, _ in self._signature(what):
                self._add_signature(index)
        self._changing = bytearray(b"".join(
            _RECORD.pack(value.data, value.sizes, 0, value.index, value.type, value.flags)
            for _, value in variables))
        for _, args in self._instructions_with_values():
            for arg in args:
                self._add_argument(arg)
        self._sort_constants()
        self._first = tables.add(bytes(_RECORD.size * (len(self._kept) + len(self._constants))))
        self._write_values()
        return self._write_method(record, variables)

    def _instructions_with_values(self):
        for one, args in self._instructions():
            yield one, args[:1] if one.op == lib.PT_OP_JUMP_FALSE else args

    def _find_used(self, tensors):
        """References of the tensors that something names."""
        by_index = {value.index: ref for ref, value in tensors}
        used = set()
        for _, args in self._instructions_with_values():
            for arg in args:
                used.update([arg] if arg in self._tensors else self._items(arg))
        for what in (lib.PT_INPUTS, lib.PT_OUTPUTS):
            used.update(by_index[entry] for entry in self._entries(what) if entry in by_index)
        self._named = {value: self._meta._tensor(lib.PT_VALUES, value).name()
                       for value in self._meta._attributes()}
        used.update(by_index[value] for value in self._named)
        return used

    def _signature(self, what):
        """(index, value) of each input or output."""
        library, plan = self._meta.program.library, self._meta.plan
        return [library.value(plan, what, i) for i in range(lib.pt_plan_count(self._plan, what))]

    def _entries(self, what):
        """Indexes of the inputs or outputs, of a list of tensors those of its items."""
        found = []
        for value, item in self._signature(what):
            if item.type in (lib.PT_TYPE_TENSOR_LIST, lib.PT_TYPE_OPTIONAL_TENSOR_LIST):
                found += [lib.pt_list_entry(self._plan, item, k) for k in range(item.count)]
            else:
                found.append(value)
        return found

    def _items(self, ref):
        """The items of a list of records."""
        if _memory_of(ref) != lib.PT_MEMORY_POOL or ref in self._variables or ref in self._tensors:
            return []
        return [lib.pt_list_item(self._c, ref, i) for i in range(lib.pt_list_length(self._c, ref))]

    # ---- constants: numbers, strings and lists

    def _add(self, content, index=_NO_INDEX):
        """Adds a constant; one with an index stands by itself."""
        key = (content, index)
        self._constants.setdefault(key, None)
        return key

    def _add_argument(self, ref):
        if not ref or ref in self._keys or ref in self._places or ref in self._variables:
            return
        if _memory_of(ref) == lib.PT_MEMORY_POOL:
            kind = ffi.cast("pt_value *", _at(self._c, ref)).type
            items = self._items(ref)
            for item in items:
                self._add_argument(item)
            self._keys[ref] = self._add(("records", kind, tuple(items)))
        else:
            self._keys[ref] = self._add(self._content(ref))

    def _content(self, ref):
        """Return (kind, type, content) of a value of the program."""
        c = self._c
        kind = lib.pt_value_type(_at(c, ref))
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
        raise fail(NOT_SUPPORTED, f"an argument of KernelTypes {kind}", self._meta.name())

    def _add_signature(self, index):
        """An input, output or item of one that is not a tensor: it keeps its index."""
        if index in self._by_index:
            return
        _, item = self._meta.program.library.value(self._meta.plan, lib.PT_VALUES, index)
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

    def _add_list(self, index, item, other):
        entries = [lib.pt_list_entry(self._plan, item, i) for i in range(item.count)]
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

    def _sort_constants(self):
        """Those with an index first, in its order."""
        order = sorted(self._constants, key=lambda key: key[1])
        self._constants = {key: len(self._kept) + i for i, key in enumerate(order)}
        self._constants_by_index = {key[1]: place for key, place in self._constants.items()}
        self._indexes = {}
        count = lib.pt_plan_count(self._plan, lib.PT_VALUES)
        for key in order:
            self._indexes[key] = key[1] if key[1] != _NO_INDEX else count
            count += key[1] == _NO_INDEX
        if count > 0xFFFF:
            raise fail(NOT_SUPPORTED, "more than 65535 values", self._meta.name())
        self._count = count

    # ---- references of the image

    def _image_ref(self, place):
        return _ref(lib.PT_MEMORY_IMAGE, self._first + _RECORD.size * place)

    def _argument(self, ref):
        if not ref:
            return 0
        if ref in self._variables:
            return _ref(lib.PT_MEMORY_POOL, _RECORD.size * self._variables[ref])
        if ref in self._places:
            return self._image_ref(self._places[ref])
        return self._image_ref(self._constants[self._keys[ref]])

    def _entry(self, index):
        """Return the entry of a list's item, by the index of the value."""
        if index in self._by_index:
            return self._argument(self._by_index[index])
        place = self._constants_by_index.get(index)
        return 0 if place is None else self._image_ref(place)

    # ---- records

    def _write_values(self):
        for place, (_, value) in enumerate(self._kept):
            self._write_tensor(self._first + _RECORD.size * place, value)
        for key, place in self._constants.items():
            (kind, other, what), index = key[0], self._indexes[key]
            flags = lib.PT_VALUE_CONSTANT
            if kind == "number":
                data, sizes = what & 0xFFFFFFFF, what >> 32 & 0xFFFFFFFF
            elif kind == "bytes":
                sizes, items = what
                data = _ref(lib.PT_MEMORY_IMAGE, self._tables.share(items))
            else:
                refs = [self._argument(one) if kind == "records" else self._entry(one)
                        for one in what]
                items = self._tables.add(struct.pack(f"<{len(refs)}I", *refs))
                data, sizes, flags = _ref(lib.PT_MEMORY_IMAGE, items), len(refs), 0
            self._tables.put(self._first + _RECORD.size * place,
                             _RECORD.pack(data, sizes, 0, index, other, flags))

    def _write_tensor(self, position, value):
        rank = value.flags & lib.PT_VALUE_RANK
        tables = self._tables
        dim_order = _ref(lib.PT_MEMORY_IMAGE, tables.share(self._bytes(value.dim_order, rank)))
        if value.flags & lib.PT_VALUE_DYNAMIC:
            sizes = _ref(lib.PT_MEMORY_POOL, len(self._changing) + 4)
            self._changing += self._bytes(value.sizes - 1, 4 + 4 * rank)
        else:
            sizes = _ref(lib.PT_MEMORY_IMAGE, tables.share(self._bytes(value.sizes, 4 * rank)))
        data, memory = value.data, _memory_of(value.data)
        if value.flags & lib.PT_VALUE_CONSTANT:
            size = self._nbytes(value, rank)
            tables.put_later(position, self._data.add(self._bytes(data, size), "constants"),
                             lib.PT_MEMORY_PROGRAM)
        elif memory >= self._m.first_external:
            data = _ref(memory - self._m.first_external + self._externals, 0)
        tables.put(position, _RECORD.pack(data, sizes, dim_order, value.index, value.type,
                                          value.flags))

    def _nbytes(self, value, rank):
        sizes = ffi.cast("int32_t *", _at(self._c, value.sizes))
        return lib.pt_product(sizes, rank) * lib.pt_element_size(value.type)

    def _write_instructions(self):
        """Position of the first."""
        rows = [(one, args) for one, args in self._instructions()]
        position = first = len(self._tables)
        places = []
        for _, args in rows:
            places.append(position)
            position += 4 + 4 * len(args)
        places.append(position)
        for one, args in rows:
            if one.op == lib.PT_OP_JUMP_FALSE:
                to = args[2]
                refs = [self._argument(args[0]), _ref(lib.PT_MEMORY_IMAGE, places[to]), to]
            else:
                refs = [self._argument(arg) for arg in args]
            self._tables.add(struct.pack(f"<HBB{len(refs)}I", one.kernel, len(refs), one.op, *refs))
        return first

    def _write_prepared(self):
        """Reference to the table of what is prepared; 0 for none."""
        n = self._record.n_instructions
        if not self._c.prepared:
            return 0
        table = ffi.cast("pt_ref *", _at(self._c, self._c.prepared))
        places = [(i, table[i]) for i in range(n) if table[i]]
        ends = [_position_of(ref) for _, ref in places[1:]] + [self._m.end]
        chunks = {i: self._bytes(ref, end - _position_of(ref))
                  for (i, ref), end in zip(places, ends, strict=True)}
        chunks = {i: chunk for i, chunk in chunks.items() if any(chunk)}
        if not chunks:
            return 0
        at = self._tables.add(bytes(4 * n))
        for i, chunk in chunks.items():
            self._tables.put_later(at + 4 * i, self._data.add(chunk, "prepared"),
                                   lib.PT_MEMORY_PROGRAM)
        return _ref(lib.PT_MEMORY_IMAGE, at)

    # ---- what planned memory has before the first run

    def _place(self, ref):
        """(memory, start, end) of a tensor in planned memory, in a list of one; else none."""
        value = self._tensors.get(ref)
        if value is None or not self._is_planned(value.data):
            return []
        start = _position_of(value.data)
        size = self._nbytes(value, value.flags & lib.PT_VALUE_RANK)
        return [(_memory_of(value.data), start, start + size)]

    def _is_planned(self, ref):
        return lib.PT_MEMORY_PLANNED <= _memory_of(ref) < self._externals

    def _places_of(self, refs):
        return [place for ref in refs for one in (ref, *self._items(ref)) if one
                for place in self._place(one)]

    def _reads_and_writes(self):
        """List for each instruction the places of tensors that it reads, and that it writes."""
        for one, args in self._instructions_with_values():
            read, written = (args[:1], args[1:]) if one.op not in _CALLS else self._of_call(one, args)
            yield self._places_of(read), self._places_of(written)

    def _of_call(self, call, args):
        """Arguments that it reads, and that it writes. An output that comes first is changed in place,
        maybe in part: it is read, too."""
        letters = ffi.string(lib.pt_operator_signature(call.kernel))
        if b"empty" in ffi.string(lib.pt_operator_name(call.kernel)):
            return [], []
        return ([arg for i, arg in enumerate(args) if i == 0 or letters[i] not in _WRITTEN],
                [arg for i, arg in enumerate(args) if letters[i] in _OUTPUTS])

    def _zeros(self):
        """(memory, start, end) of what has to be zero: all planned memory where the instructions that
        run, or the sizes of tensors, are not known beforehand."""
        planned = [(lib.PT_MEMORY_PLANNED + i, 0, self._meta.memory_planned_buffer_size(i))
                   for i in range(self._meta.num_memory_planned_buffers())]
        if any(one.op == lib.PT_OP_JUMP_FALSE for one, _ in self._instructions()) or any(
                value.flags & lib.PT_VALUE_DYNAMIC for _, value in self._kept):
            return [place for place in planned if place[2]]
        inputs, given = (
            [place for index in indexes for place in self._place(self._by_index.get(index))]
            for indexes in (self._entries(lib.PT_INPUTS),
                            [*self._entries(lib.PT_OUTPUTS), *self._named]))
        instructions = [(given, []), *self._reads_and_writes()]  # they can be read before the first run
        return read_before_written(inputs, instructions).all()

    def _write_initial(self):
        """Position of the vector of pt_image_initial."""
        zeros = [(_ref(memory, start), end - (start & ~3)) for memory, start, end in self._zeros()]
        places = {}
        for _, value in self._kept:
            if not self._is_planned(value.data):
                continue
            size = self._nbytes(value, value.flags & lib.PT_VALUE_RANK)
            if any(self._bytes(value.data, size)):
                places[value.data] = max(size, places.get(value.data, 0))
        tables = self._tables
        rows = b"".join(struct.pack("<III", ref, lib.PT_IMAGE_ZEROS, size) for ref, size in zeros)
        at = tables.add(struct.pack("<I", len(zeros) + len(places)) + rows + bytes(12 * len(places)))
        for i, (ref, size) in enumerate(sorted(places.items())):
            position = at + 4 + len(rows) + 12 * i
            tables.put(position, struct.pack("<III", ref, 0, size))
            tables.put_later(position + 4, self._data.add(self._bytes(ref, size), "initial"))
        return at

    def _write_method(self, record, variables):
        tables = self._tables
        prepared = self._write_prepared()
        instructions = self._write_instructions()
        at = tables.add(struct.pack(
            "<HHIIIIII", len(self._kept), len(variables), record.n_instructions,
            self._image_ref(0), _ref(lib.PT_MEMORY_IMAGE, instructions), 0, record.scratch, prepared))
        indexes = [[index for index, _ in self._signature(what)]
                   for what in (lib.PT_INPUTS, lib.PT_OUTPUTS)]
        planned = [self._meta.memory_planned_buffer_size(i)
                   for i in range(self._meta.num_memory_planned_buffers())]
        operators = sorted({one.kernel for one, _ in self._instructions() if one.op in _CALLS})
        name = self._meta.name().encode()
        named = [(value, text.encode()) for value, text in self._named.items()]
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
            self._m.end_external - self._m.first_external,
        ]
        return tables.add(struct.pack("<13I", *fields))


def _load(program, name, data_map, core):
    """A method, loaded in memories that are large enough."""
    meta = program.method_meta(name)
    if meta.num_backends():
        raise fail(NOT_SUPPORTED, "an image has no delegates", name,
                   remedy="export without a delegate")
    planned = HierarchicalAllocator([aligned(size) for size in twin.planned_sizes(meta, {})])
    sizes = {"method pool": 0, "temp memory": 0}
    while True:
        manager = MemoryManager(MemoryAllocator(aligned(sizes["method pool"])), planned,
                                MemoryAllocator(aligned(sizes["temp memory"]), "temp memory"))
        method = Method(manager, max(meta.num_outputs(), 1), meta.num_backends(),
                        meta.max_delegate_arguments())
        twin.prepare_for(method, core)
        try:
            method.load(program, name, core in CORES, data_map)
            return method
        except Error as error:
            if error.code != MEMORY_ALLOCATION_FAILED or error.requested <= sizes.get(
                    error.subject, error.requested):
                raise
            sizes[error.subject] = error.requested


def compile_image(model, data=(), core=None):
    """The Image of all methods of a program's bytes, with those of its data files.

    core: whose kernels prepare weights in it, cortex-m4 for instance; None for none. Raises Error.
    """
    program, data_map = twin.open_program(model), twin.open_data(list(data))
    image = Image(b"", Part())
    count = program.num_methods()
    if count > _MOST_METHODS:
        raise fail(NOT_SUPPORTED, f"an image has at most {_MOST_METHODS} methods",
                   remedy="export fewer in one program")
    start = ffi.sizeof("pt_image_header") + 4 + 4 * count
    tables, blocks = _Tables(start), _Data(image)
    positions = []
    for i in range(count):
        name = program.get_method_name(i)
        method = _load(program, name, data_map, core)
        positions.append(_Method(method, tables, blocks).write())
        image.methods.append(name)
    header = ffi.sizeof("pt_image_header")
    tables.put(header, struct.pack(f"<{1 + count}I", count, *positions))
    image.data = _finish(tables.bytes(), blocks.bytes(), CORES.get(core, lib.PT_CORE_PLAIN), count)
    image.parts.header = start
    image.parts.records = len(tables) - start
    return image


def sums(data):
    """The two checksums of words."""
    total = totals = 0
    for (word,) in struct.iter_unpack("<I", data):
        total = total + word & 0xFFFFFFFF
        totals = totals + total & 0xFFFFFFFF
    return total, totals


def _finish(tables, data, core, count):
    """Header, tables and data in one."""
    rest = struct.pack("<HBBI", lib.pt_operator_count(), core, count, 0)
    start = ffi.offsetof("pt_image_header", "operators")
    tables = tables[:start] + rest + tables[start + len(rest) :]
    head = struct.pack("<III", lib.PT_IMAGE_MAGIC, len(tables) + len(data), len(tables))
    head += struct.pack("<4I", *sums(tables[start:]), *sums(data))
    return head + tables[len(head) :] + data
