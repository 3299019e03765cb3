"""Read the records in the pool of a method that is loaded on the twin."""

import builtins
import functools
from collections.abc import Iterator
from typing import Any, TypeAlias

from _picotorch import CORES, VALUES
from _picotorch_c import ffi, lib

from picotorch import (
    Error,
    HierarchicalAllocator,
    MemoryAllocator,
    MemoryManager,
    Method,
    Program,
    TensorInfo,
)
from picotorch.data import DataMap
from picotorch.errors import MEMORY_ALLOCATION_FAILED, NOT_SUPPORTED, fail

from ..host import twin
from ..host.aligned import aligned

_OFFSET_BITS: int = lib.PT_REF_OFFSET_BITS

CData: TypeAlias = Any  # a struct of C, or a pointer, of cffi


def is_call(instruction: CData) -> bool:
    """Return True if an instruction calls a kernel. Its high bits may select a variant."""
    kind: int = instruction.op & 15
    return kind in (lib.PT_OP_KERNEL_CALL, lib.PT_OP_DYNAMIC_CALL)


def make_ref(memory: int, position: int) -> int:
    """Return a pt_ref."""
    return memory << _OFFSET_BITS | position >> 2


def memory_of(reference: int) -> int:
    """Return the memory of a reference."""
    return reference >> _OFFSET_BITS


def position_of(reference: int) -> int:
    """Return the offset of a reference in its memory, in bytes."""
    return (reference & (1 << _OFFSET_BITS) - 1) << 2


class Loaded:
    """A loaded method.

    meta: its MethodMeta. m, c, method_meta, record: pt_method, pt_context, pt_method_meta,
    pt_method_record. tensors, variables: a pt_value by its reference. named: names of mutable buffers
    by the index of the value.
    """

    def __init__(self, method: Method) -> None:
        self._method = method  # keeps the memories
        self.meta = method.method_meta()
        self.m = method.library.c
        self.c = ffi.addressof(self.m, "c")
        self.method_meta = ffi.addressof(self.m, "meta")
        self.record = ffi.cast("pt_method_record *", self.c.records + self.c.method)
        first = self.record.values
        self.tensors = self._values(first, self.record.n_values)
        self.variables = self._values(first + 4 * self.record.n_values, self.record.n_variables)
        # the first memory behind planned memory
        self.externals: int = lib.PT_MEMORY_PLANNED + self.m.n_planned
        of, number = self.meta.program.library, self.meta.plan
        self.named = {value: TensorInfo(of.tensor(number, VALUES, value)).name()
                      for value in range(of.count(number, VALUES)) if of.item(number, VALUES, value)[3]}

    def _values(self, first: int, count: int) -> dict[int, CData]:
        values = ffi.cast("pt_value *", self.at(first))
        return {first + 4 * i: values[i] for i in range(count)}

    def at(self, reference: int) -> CData:
        """Return the address of a reference."""
        return self.c.memory[memory_of(reference)] + position_of(reference)

    def bytes(self, reference: int, size: int) -> bytes:
        """Return the bytes at a reference."""
        return bytes(ffi.buffer(self.at(reference), size)) if size else b""

    def nbytes(self, value: CData) -> int:
        """Return the present bytes of a tensor."""
        sizes = ffi.cast("int32_t *", self.at(value.sizes))
        elements: int = lib.pt_product(sizes, value.flags & lib.PT_VALUE_RANK)
        size: int = lib.pt_element_size(value.type)
        return elements * size

    def is_planned(self, value: CData) -> bool:
        """Return True for a tensor in planned memory."""
        first: int = lib.PT_MEMORY_PLANNED
        return first <= memory_of(value.data) < self.externals

    def value(self, index: int) -> CData:
        """Return the pt_evalue of a value of the program."""
        return self.meta.program.library.value(self.meta.plan, lib.PT_VALUES, index)[1]

    def planned_sizes(self) -> list[int]:
        """Return the bytes of each planned buffer."""
        return [self.meta.memory_planned_buffer_size(i)
                for i in range(self.meta.num_memory_planned_buffers())]

    # ---- instructions

    def instructions(self) -> Iterator[tuple[CData, list[int]]]:
        """Yield (pt_instruction, its arguments)."""
        position = position_of(self.record.instructions)
        for _ in range(self.record.n_instructions):
            one = ffi.cast("pt_instruction *", self.c.records + position)
            yield one, [one.args[i] for i in range(one.n_args)]
            position += 4 + 4 * one.n_args

    def instructions_with_values(self) -> Iterator[tuple[CData, list[int]]]:
        """Yield the instructions with only the arguments that are values."""
        for one, args in self.instructions():
            yield one, args[:1] if one.op == lib.PT_OP_JUMP_FALSE else args

    def items(self, reference: int) -> list[int]:
        """Return the items of a list of records."""
        is_list = (memory_of(reference) == lib.PT_MEMORY_POOL and reference not in self.variables
                   and reference not in self.tensors)
        return [lib.pt_list_item(self.c, reference, i)
                for i in range(lib.pt_list_length(self.c, reference))] if is_list else []

    def tensors_of(self, references: list[int]) -> list[int]:
        """Return the references of the tensors among these references, and in lists among them."""
        return [one for reference in references for one in (reference, *self.items(reference))
                if one in self.tensors]

    @functools.cached_property
    def named_by_index(self) -> set[int]:
        """Return the references of the tensors that are inputs, outputs or mutable buffers."""
        refs = {value.index: one for one, value in self.tensors.items()}
        entries = [*self.entries(lib.PT_INPUTS), *self.entries(lib.PT_OUTPUTS), *self.named]
        return {refs[entry] for entry in entries if entry in refs}

    @functools.cached_property
    def used(self) -> set[int]:
        """Return the references of the tensors that a record names."""
        return self.named_by_index | {one for _, args in self.instructions_with_values()
                                      for one in self.tensors_of(args)}

    # ---- inputs and outputs

    def signature(self, what: int) -> list[tuple[int, CData]]:
        """Return (index, pt_evalue) of each input or output."""
        library, number = self.meta.program.library, self.meta.plan
        count = lib.pt_method_meta_count(self.method_meta, what)
        return [library.value(number, what, i) for i in range(count)]

    def entries(self, what: int) -> list[int]:
        """Return the indexes of the inputs or outputs, with a list of tensors replaced by its items."""
        found = []
        for value, item in self.signature(what):
            if item.type in (lib.PT_TYPE_TENSOR_LIST, lib.PT_TYPE_OPTIONAL_TENSOR_LIST):
                found += [lib.pt_list_entry(self.method_meta, item, k) for k in range(item.count)]
            else:
                found.append(value)
        return found

    # ---- packed weights

    def packed(self) -> tuple[dict[int, builtins.bytes], dict[int, int]]:
        """Return the packed bytes that loops read instead of arguments, by number of instruction.

        Each has a bit for an argument that the loops read only in packed form.
        """
        if not self.c.packed:
            return {}, {}
        table = ffi.cast("pt_ref *", self.at(self.c.packed))
        refs = [(i, table[i]) for i in range(self.record.n_instructions) if table[i]]
        ends = [position_of(start) for _, start in refs[1:]] + [self.m.end]
        chunks = {i: self.bytes(start, end - position_of(start))
                  for (i, start), end in zip(refs, ends, strict=True)}
        uses = self._uses()
        chunks = {i: chunk for i, chunk in chunks.items() if any(chunk) and uses[i] is not None}
        return chunks, {i: use for i, use in enumerate(uses) if use is not None and i in chunks}

    def _uses(self) -> list[int | None]:
        """Call the check of each instruction, and return the bits.

        None if loops read the plain arguments.
        """
        c, found = self.c, []
        c.packs = True
        lib.pt_start(c)
        for one, _ in self.instructions():
            lib.pt_check_instruction(c, c.position)
            found.append(None if c.uses_plain else c.replaced)
            c.instruction += 1
            c.position += 4 + 4 * one.n_args
        lib.pt_start(c)
        return found


def load(program: Program, name: str, data_map: DataMap | None, core: str | None) -> Loaded:
    """Load a method in sufficient memories, and let the kernels of a core pack weights."""
    meta = program.method_meta(name)
    if meta.num_backends():
        raise fail(NOT_SUPPORTED, "a method with delegates cannot be compiled", name,
                   remedy="export it without delegates, or run the .pte file")
    planned = HierarchicalAllocator([aligned(size) for size in twin.planned_sizes(meta, {})])
    sizes = {"method pool": 0, "temp memory": 0}
    while True:
        manager = MemoryManager(MemoryAllocator(aligned(sizes["method pool"])), planned,
                                MemoryAllocator(aligned(sizes["temp memory"]), "temp memory"))
        method = Method(manager, max(meta.num_outputs(), 1), meta.num_backends(),
                        meta.max_delegate_arguments())
        twin.pack_for(method, core)
        try:
            method.load(program, name, core in CORES, data_map)
            used = method.memory_report()["temp"]["used"]
            if used <= sizes["temp memory"]:
                return Loaded(method)
            method.unload()
            sizes["temp memory"] = used
        except Error as error:
            subject = error.subject or ""
            if (error.code != MEMORY_ALLOCATION_FAILED
                    or error.requested <= sizes.get(subject, error.requested)):
                raise
            sizes[subject] = error.requested
