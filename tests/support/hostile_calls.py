"""Make hostile calls of single operators: arguments of the kinds in the signature, with any values.

    HostileCall(Draw(data)).run()      # the outcome, or an exception that describes the fault
    BoundaryCall(Draw(data)).run()     # the same with sizes 0 and 1, and numbers 0, 1 and -1

A call starts from an example of an operator (example_calls.py, random_operators.py). The bytes of
`data` change some of its arguments: sizes, dtypes, dim orders, numbers, lists, data, shared memory, the
tensors that are dynamic with their sizes and bounds, constants, packed weights. Every memory has
exactly the bytes that its tensors need, so that a sanitizer detects the first byte outside.

The guarantees of a loader hold: data lies at multiples of 4 (8 for elements of 8 bytes), dim orders are
permutations, a tensor has at most LARGEST bytes, and a dynamic one is within its bound. A tensor with a
size of 0 may have other sizes that are huge.
"""

import argparse
import collections
import dataclasses
import faulthandler
import json
import math
import struct
import sys
import time

import _picotorch
import numpy as np
from picotorch.host import program_schema
from picotorch.host.operators import (
    OUTPUTS,
    SCRATCH,
    built_operators,
    operator_signature,
    supported_operators,
)
from picotorch.schema import ERROR_NAMES
from support import random_operators, records
from support.example_calls import EXAMPLES
from support.exercise import exactly
from support.flatbuffer_builder import bool_value, build, double_value, int_value, string_value
from support.kernel_call import CONSTANT, CONTIGUOUS, DYNAMIC, Tensor, Variable, ref
from support.records import OTHER, VALUE

LENGTH = 200  # maximum bytes from which a call is drawn
LARGEST = 1 << 12  # bytes of a tensor
SECONDS = 30  # for a call, on a busy machine
WORK = 1  # processor seconds of a call: its tensors are small
LIMIT = 1 << 27  # bytes of a tensor, with 1 in place of sizes of 0
MAX_RANK = 16
FILL = 0xA5
INT32_MAX, INT64_MAX = 2**31 - 1, 2**63 - 1
DTYPES = [i for i in range(256) if _picotorch.element_size(i)]
COMMON_DTYPES = (0, 1, 2, 3, 4, 5, 6, 7, 11, 15)
OPERATORS, CLASSES = list(EXAMPLES), list(random_operators.CLASSES)
NUMBERS = built_operators()
FORMS = {name: operator.forms for name, operator in supported_operators().items()}
TENSORS = OUTPUTS + SCRATCH + "TVUtA"  # letters of tensors, and of lists of them
# With check_errors they fail for a matrix that is singular or not positive definite, after some of the
# outputs are written.
FAILS_LATE = {"aten::linalg_cholesky_ex.L", "aten::linalg_inv_ex.inverse",
              "aten::linalg_lu_factor_ex.out", "aten::_linalg_solve_ex.result"}
INTS = (0, 1, -1, 2, 3, 4, 5, 7, 8, 16, 17, 31, 32, 33, 63, 64, 100, 127, 128, -128, -127, 255, 256,
        1000, 4096, 32767, 32768, 65535, 65536, 1 << 20, 1 << 24, 1 << 27, 1 << 28, INT32_MAX - 1,
        INT32_MAX, 1 << 31, -INT32_MAX, -1 << 31, (-1 << 31) - 1, (1 << 32) - 1, 1 << 32, (1 << 32) + 1,
        1 << 40, INT64_MAX, INT64_MAX - 1, -INT64_MAX, -INT64_MAX - 1, -2, -3, -4, -5, -16, -17)
DOUBLES = (0.0, -0.0, 0.5, 1.0, -1.0, 2.0, 3.0, 1.5, 1e-3, 1e-8, 1e-45, 5e-324, 1e10, 2.0**31, 2.0**32,
           2.0**63, -2.0**63, 2.0**64, 3e38, 1e300, -1e300, 1e-300, float("inf"), float("-inf"),
           float("nan"))
SIZES = (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 17, 20, 31, 32, 33, 64, 65, 100, 127, 128, 255, 256,
         300, 512, 1000, 1024)
HUGE_SIZES = (65536, 1 << 24, 1 << 30, INT32_MAX)
STRINGS = ("", "none", "tanh", "floor", "trunc", "floo", "floor\0", "nonetanh", "é", "x" * 300)


class Draw:
    """Choices taken from bytes, 0 after their end."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def byte(self):
        self.at += 1
        return self.data[self.at - 1] if self.at <= len(self.data) else 0

    def below(self, n):
        value = self.byte()
        if n > 256:
            value |= self.byte() << 8
        return value % n

    def pick(self, choices):
        return choices[self.below(len(choices))]

    def chance(self, percent):
        """Return True with this chance, and False after the end of the bytes."""
        return self.below(100) >= 100 - percent

    def int(self):
        kind = self.below(8)
        if kind == 7:
            return struct.unpack("<q", bytes(self.byte() for _ in range(8)))[0]
        return self.below(12) - 4 if kind < 4 else self.pick(INTS)

    def double(self):
        if self.chance(20):
            return struct.unpack("<d", bytes(self.byte() for _ in range(8)))[0]
        return self.pick(DOUBLES)

    def size(self):
        return self.pick(HUGE_SIZES) if self.chance(4) else self.pick(SIZES[:11] if self.chance(60)
                                                                      else SIZES)


def valid_call(draw):
    """Return (operator, arguments) of an example, or of a call of random_operators.py."""
    i = draw.below(len(OPERATORS) + 3 * len(CLASSES))
    if i < len(OPERATORS):
        return OPERATORS[i], EXAMPLES[OPERATORS[i]]
    make = CLASSES[i % len(CLASSES)]
    case = make(random_operators.Draw(draw.below(1 << 16)))
    return case.operator, case.arguments


@dataclasses.dataclass(eq=False)
class HostileTensor:
    dtype: int
    sizes: list
    order: list
    data: bytes  # the first contents of the tensor, in memory order
    constant: bool = False
    bound: int | None = None  # in elements, of a dynamic tensor
    shift: int = 0
    shares: object = None  # the tensor in whose memory it starts, `shift` bytes behind that tensor

    @staticmethod
    def of(argument):
        tensor = argument if isinstance(argument, Tensor) else Tensor(argument)
        return HostileTensor(tensor.dtype, list(tensor.array.shape), list(tensor.dim_order),
                             tensor.stored(), tensor.constant)

    @property
    def numel(self):
        return math.prod(self.sizes)

    def nbytes(self):
        """Return the bytes of its memory."""
        numel = self.numel if self.bound is None else self.bound
        return numel * _picotorch.element_size(self.dtype)

    def is_fair(self):
        """Return True if a loader would accept the tensor."""
        element = _picotorch.element_size(self.dtype)
        if self.numel == 0:
            within = math.prod(size for size in self.sizes if size) * element <= LIMIT
        else:
            within = (self.numel * element <= LARGEST
                      and (self.bound is None or self.numel <= self.bound))
        return (within and self.nbytes() <= LARGEST and len(self.sizes) <= MAX_RANK
                and sorted(self.order) == list(range(len(self.sizes))))


class HostileCall:
    """A call made by at most `changes` changes, which `draw` selects, from a valid one or from `start`:
    (operator, arguments)."""

    def __init__(self, draw, start=None, changes=4):
        self.draw = draw
        operator, arguments = start or valid_call(draw)
        self.operator = operator
        self.signature = operator_signature(NUMBERS[operator])
        self.tensors, self.values = {}, []
        self.cpu_seconds = 0.0  # processor time of the kernel's run
        self.keep = arguments
        self.arguments = [self._copy(argument) for argument in arguments]
        self.form = self.signature
        if FORMS[operator] and draw.chance(40):
            self._use_form(draw.pick(FORMS[operator]).signature)
        for _ in range(draw.below(changes + 1)):
            self._change()
        if draw.chance(65):
            self._free_outputs()
        if draw.chance(20):
            self._lay_over_output()
        self.packs_weights = draw.chance(15)
        for tensor in self._all_tensors():
            self._make_fair(tensor)

    # ---- arguments

    def _use_form(self, form):
        """Leave out the arguments that a form of an earlier release lacks."""
        self.form = form
        self.arguments = [None if letter == "-" else argument
                          for argument, letter in zip(self.arguments, form, strict=True)]

    def _copy(self, argument):
        if isinstance(argument, (list, tuple)):
            return [self._copy(item) for item in argument]
        if not isinstance(argument, (np.ndarray, Tensor)):
            return argument
        if id(argument) not in self.tensors:
            self.tensors[id(argument)] = HostileTensor.of(argument)
            alias = getattr(argument, "alias", None)
            if alias is not None:
                self.tensors[id(argument)].shares = self._copy(alias)
        return self.tensors[id(argument)]

    def _places(self):
        """Yield (list, index, letter) of each tensor among the arguments, including items of lists."""
        for i, (argument, letter) in enumerate(zip(self.arguments, self.signature, strict=True)):
            if isinstance(argument, HostileTensor):
                yield self.arguments, i, letter
            elif isinstance(argument, list):
                for j, item in enumerate(argument):
                    if isinstance(item, HostileTensor):
                        yield argument, j, letter

    def _all_tensors(self):
        found = {}
        for where, i, _ in self._places():
            tensor = where[i]
            while tensor is not None and id(tensor) not in found:
                found[id(tensor)] = tensor
                tensor = tensor.shares
        return list(found.values())

    def _outputs(self):
        return [where[i] for where, i, letter in self._places() if letter in OUTPUTS + SCRATCH + "A"]

    # ---- changes

    def _change(self):
        draw = self.draw
        kind = draw.below(16)
        tensors = self._all_tensors()
        if kind < 4 and any(letter not in TENSORS for letter in self.signature):
            self._change_number()
        elif kind == 4:
            self._rename_size(tensors)
        elif kind == 5:
            self._rename_dtype(tensors)
        elif kind == 6:
            self._change_argument(draw.below(len(self.arguments)))
        elif tensors:
            changes = (self._change_sizes, self._change_sizes, self._change_rank, self._change_order,
                       self._change_data, self._change_data, self._change_dtype, self._share,
                       self._make_constant, self._empty)
            draw.pick(changes)(draw.pick(tensors))

    def _change_number(self):
        """Change an argument that is not a tensor."""
        draw = self.draw
        places = [i for i, letter in enumerate(self.signature) if letter not in TENSORS + "N"]
        if places:
            self._change_argument(draw.pick(places))

    def _change_argument(self, i):
        draw, letter, old = self.draw, self.signature[i], self.arguments[i]
        if letter.islower() and draw.chance(30):
            self.arguments[i] = None
            return
        letter = letter.upper()
        if letter == "S":
            new = draw.pick((draw.int, draw.double, lambda: draw.chance(50)))()
        elif letter == "I":
            new = draw.int()
        elif letter == "B":
            new = draw.chance(50)
        elif letter == "D":
            new = draw.double() if draw.chance(70) else draw.int()
        elif letter == "M":
            new = draw.pick(STRINGS)
        elif letter in "LQR":
            new = self._list(letter, old)
        elif letter in "VUW":
            new = self._tensors(letter, old)
        elif letter == "T":
            new = draw.pick(self._all_tensors() or [self._tensor()])
        else:
            return
        self.arguments[i] = new

    def _list(self, letter, old):
        draw = self.draw
        item = {"L": draw.int, "Q": lambda: draw.chance(50), "R": draw.double}[letter]
        items = list(old or [])
        kind = draw.below(4)
        if kind < 2 and items:
            items[draw.below(len(items))] = item()
        elif kind == 2:
            items = [item() for _ in range(draw.pick((0, 1, 2, 3, 4, 5, 6, 8, 16, 17, 32, 40)))]
        else:
            items = items * draw.below(4)
        return items

    def _tensors(self, letter, old):
        draw = self.draw
        items = list(old or [])
        kind = draw.below(4)
        if kind == 0 and items:
            items[draw.below(len(items))] = draw.pick(self._all_tensors() or [self._tensor()])
        elif kind == 1 and letter == "U" and items:
            items[draw.below(len(items))] = None
        elif kind == 2:
            items = items * draw.below(4)
        else:
            items.append(self._tensor())
        return items

    def _tensor(self):
        draw = self.draw
        sizes = [draw.size() for _ in range(draw.below(4))]
        return HostileTensor(draw.pick(COMMON_DTYPES), sizes, list(range(len(sizes))), b"")

    def _rename_size(self, tensors):
        """Change one size in all tensors and lists that have it."""
        draw = self.draw
        known = sorted({size for tensor in tensors for size in tensor.sizes})
        if not known:
            return
        self._rename(tensors, draw.pick(known), draw.size())

    def _rename(self, tensors, old, new):
        for tensor in tensors:
            tensor.sizes = [new if size == old else size for size in tensor.sizes]
        for argument, letter in zip(self.arguments, self.signature, strict=True):
            if letter in "Ll" and argument:
                argument[:] = [new if item == old else item for item in argument]

    def _empty(self, tensor):
        """Change one size to 0, and another one to a huge size, in all tensors."""
        tensors = self._all_tensors()
        for new in (0, self.draw.pick(HUGE_SIZES)):
            if tensor.sizes:
                self._rename(tensors, self.draw.pick(tensor.sizes), new)

    def _rename_dtype(self, tensors):
        draw = self.draw
        if tensors:
            old, new = draw.pick(tensors).dtype, draw.pick(COMMON_DTYPES)
            for tensor in tensors:
                tensor.dtype = new if tensor.dtype == old else tensor.dtype

    def _change_sizes(self, tensor):
        if tensor.sizes:
            tensor.sizes[self.draw.below(len(tensor.sizes))] = self.draw.size()

    def _change_rank(self, tensor):
        draw = self.draw
        rank = draw.below(17) if draw.chance(30) else max(0, min(16, len(tensor.sizes)
                                                                 + draw.pick((-1, 1, -2, 2))))
        extra = [draw.pick((1, 1, 1, 2, 3, 0)) for _ in range(rank - len(tensor.sizes))]
        tensor.sizes = (extra + tensor.sizes)[-rank:] if rank else []
        tensor.order = list(range(rank))

    def _change_order(self, tensor):
        draw, rank = self.draw, len(tensor.sizes)
        if rank > 2 and draw.chance(60):
            tensor.order = [0, *range(2, rank), 1]
            return
        left = list(range(rank))
        tensor.order = [left.pop(draw.below(len(left))) for _ in range(rank)]

    def _change_data(self, tensor):
        """Change some elements of a tensor to unusual numbers."""
        draw, size = self.draw, _picotorch.element_size(tensor.dtype)
        if draw.chance(20):
            item = self._element(tensor.dtype)
            tensor.data = item * max(1, len(tensor.data) // size)
            return
        data = bytearray(tensor.data or bytes(8 * size))
        for _ in range(1 + draw.below(3)):
            at = draw.below(max(1, len(data) // size)) * size
            data[at : at + size] = self._element(tensor.dtype)
        tensor.data = bytes(data)

    def _element(self, dtype):
        draw, size = self.draw, _picotorch.element_size(dtype)
        if dtype == 6:
            with np.errstate(all="ignore"):
                return np.float32(draw.double()).tobytes()
        if dtype == 7:
            return struct.pack("<d", draw.double())
        return (draw.int() & ((1 << 8 * size) - 1)).to_bytes(size, "little")

    def _change_dtype(self, tensor):
        tensor.dtype = self.draw.pick(COMMON_DTYPES if self.draw.chance(85) else DTYPES)

    def _share(self, tensor):
        """Put a tensor over another one, or replace an argument by another tensor."""
        draw = self.draw
        other = draw.pick(self._all_tensors())
        if draw.chance(40):
            places = [(where, i) for where, i, _ in self._places()]
            where, i = draw.pick(places)
            where[i] = other
            return
        at = other
        while at is not None:  # no cycle
            if at is tensor:
                return
            at = at.shares
        tensor.shares = other
        tensor.shift = 4 * draw.pick((0, 0, 0, 1, 2, 4, 8))

    def _lay_over_output(self):
        """Let an output overlap the data of an input."""
        draw = self.draw
        outputs = self._outputs()
        inputs = [where[i] for where, i, letter in self._places() if letter in "TVUCtvu"]
        if outputs and inputs:
            tensor, output = draw.pick(inputs), draw.pick(outputs)
            if tensor is not output and output.shares is None:
                tensor.shares, tensor.shift = output, 4 * draw.pick((0, 0, 0, 1, 2, 4, 16))

    def _make_constant(self, tensor):
        tensor.constant = not tensor.constant

    def _free_outputs(self):
        """Let outputs have any sizes that follow from the inputs, within a bound."""
        draw = self.draw
        for tensor in self._outputs():
            if tensor.sizes and draw.chance(85):
                largest = LARGEST // _picotorch.element_size(tensor.dtype)
                tensor.bound = draw.pick((largest, largest, min(tensor.numel, largest),
                                          min(tensor.numel + 7, largest), 0))
        if draw.chance(30):
            for tensor in self._all_tensors():
                if tensor.sizes:
                    tensor.bound = tensor.bound or min(tensor.numel,
                                                       LARGEST // _picotorch.element_size(tensor.dtype))

    def _make_fair(self, tensor):
        """Change values that a loader would reject into values that it accepts."""
        if sorted(tensor.order) != list(range(len(tensor.sizes))):
            tensor.order = list(range(len(tensor.sizes)))
        element = _picotorch.element_size(tensor.dtype)
        if tensor.bound is not None:
            tensor.bound = min(tensor.bound, LARGEST // element)
            if tensor.numel > tensor.bound:
                tensor.sizes = [0] * len(tensor.sizes)
        i = 0
        while not tensor.is_fair():
            tensor.sizes[i] = tensor.sizes[i] and 1
            i += 1
        if not tensor.shares and self.draw.chance(20):
            tensor.shift = self.draw.pick((4, 8, 12))

    # ---- records and memories

    def _write(self):
        self.pool, self.context = bytearray(records.METHOD_BYTES), records.Context()
        self.code = 0
        self.sizes_at, self.tensor_at, self.variables, self.values = {}, {}, {}, []
        tensors = self._all_tensors()
        self._place(tensors)
        for tensor in tensors:
            self._write_tensor(tensor)
        self._write_program()
        refs = [self._argument(argument, letter, self.indexes.get(i)) for i, (argument, letter)
                in enumerate(zip(self.arguments, self.signature, strict=True))]
        record = len(self.pool)
        self.pool += struct.pack(f"<HBB{len(refs)}I", NUMBERS[self.operator], len(refs), 0, *refs)
        self.pool += bytes(-len(self.pool) % 8)
        self._bind(record, 0)
        code = self._check()
        needed = self.context.packed_bytes() if code == 0 and self.packs_weights else 0
        if needed:
            self._bind(record, needed)
            code = self._check()
            self.context.pack(len(self.pool))
        return code

    def _check(self):
        return self.context.check(self.packs_weights)

    def _bind(self, record, spare):
        """Move the pool, with `spare` bytes more, to a memory of exactly its bytes."""
        self.pool_memory = exactly(bytes(self.pool) + bytes(spare))
        context = self.context
        context.set_memory(records.POOL, self.pool_memory)
        context.set_memory(records.PROGRAM, self.program)
        for number, memory in self.memories.items():
            context.set_memory(number, memory)
        context.put_method(0, 0, ref(records.POOL, record),
                           ref(records.PROGRAM, self.program_values))

    def _place(self, tensors):
        """Give each tensor without a shared memory its own memory. In the last memory, tensors lie one
        after the other."""
        sizes, self.places = {}, {}
        number = records.PLANNED
        for tensor in tensors:
            if tensor.shares is None:
                at = self._aligned(sizes.get(number, 0) + tensor.shift, tensor)
                self.places[id(tensor)] = number, at
                sizes[number] = at + tensor.nbytes()
                number = min(number + 1, 31)
        for tensor in tensors:
            if tensor.shares is not None:
                number, at = self._place_of(tensor)
                self.places[id(tensor)] = number, at
                sizes[number] = max(sizes[number], at + tensor.nbytes())
        contents = {number: bytearray([FILL]) * size for number, size in sizes.items()}
        outputs = self._outputs()
        for tensor in sorted(tensors, key=lambda tensor: tensor not in outputs):
            number, at = self.places[id(tensor)]
            data = (tensor.data * (tensor.nbytes() // max(1, len(tensor.data)) + 1))[:tensor.nbytes()]
            contents[number][at : at + len(data)] = data
        self.memories = {number: exactly(content) for number, content in contents.items()}

    def _place_of(self, tensor):
        if tensor.shares is None:
            return self.places[id(tensor)]
        number, at = self._place_of(tensor.shares)
        return number, self._aligned(at + tensor.shift, tensor)

    @staticmethod
    def _aligned(at, tensor):
        return -(-at // 8) * 8 if _picotorch.element_size(tensor.dtype) == 8 else -(-at // 4) * 4

    def _write_tensor(self, tensor):
        rank = len(tensor.sizes)
        order = self._put(bytes(tensor.order).ljust(-(-rank // 4) * 4, b"\0"))
        bound = b"" if tensor.bound is None else struct.pack("<I", tensor.bound)
        sizes = self._put(bound + struct.pack(f"<{rank}i", *tensor.sizes)) + len(bound)
        flags = rank | (CONSTANT if tensor.constant else 0) | (DYNAMIC if bound else 0)
        flags |= CONTIGUOUS if tensor.order == list(range(rank)) else 0
        data = ref(*self.places[id(tensor)]) if tensor.nbytes() else 0
        self.tensor_at[id(tensor)] = self._put(VALUE.pack(
            data, ref(records.POOL, sizes), ref(records.POOL, order), 0, tensor.dtype, flags))
        if bound:
            self.sizes_at[id(tensor)] = sizes

    def _put(self, data):
        position = len(self.pool)
        self.pool += data
        return position

    def _write_program(self):
        self.indexes = {}
        for i, (argument, letter) in enumerate(zip(self.arguments, self.signature, strict=True)):
            if letter.upper() in "SIBDM" and argument is not None:
                self.indexes[i] = self._value(argument)
            elif letter.upper() in "LQR" and argument is not None:
                self.indexes[i] = self._list_value(letter.upper(), argument)
        program = build({"execution_plan": [{"name": "forward", "values": self.values}]})
        self.program = exactly(program)
        self.reader, plan = records.first_plan(self.program)
        self.program_values = self.reader.table(plan, program_schema.EXECUTION_PLAN_VALUES)

    def _value(self, argument):
        make = {bool: bool_value, int: int_value, float: double_value, str: string_value}
        self.values.append(make[type(argument)](argument))
        return len(self.values) - 1

    def _list_value(self, letter, items):
        kinds = {"Q": "BoolList", "R": "DoubleList", "L": "IntList"}
        items = [self._value(int(item)) for item in items] if letter == "L" else list(items)
        self.values.append({"val": (kinds[letter], {"items": items})})
        return len(self.values) - 1

    def _argument(self, argument, letter, place):
        if argument is None:
            return 0
        if isinstance(argument, Variable):
            if argument not in self.variables:
                value = VALUE.pack(0, 0, 0, 0, OTHER + program_schema.KERNEL_TYPES_INT, 0)
                self.variables[argument] = self._put(value)
            return ref(records.POOL, self.variables[argument])
        if isinstance(argument, HostileTensor):
            return ref(records.POOL, self.tensor_at[id(argument)])
        if letter in "VWU":
            items = [0 if item is None else ref(records.POOL, self.tensor_at[id(item)])
                     for item in argument]
            at = self._put(struct.pack(f"<{len(items)}I", *items))
            kind = program_schema.KERNEL_TYPES_OPTIONAL_TENSOR_LIST if None in argument \
                else program_schema.KERNEL_TYPES_TENSOR_LIST
            return ref(records.POOL, self._put(VALUE.pack(ref(records.POOL, at), len(items), 0, 0,
                                                             OTHER + kind, 0)))
        return ref(records.PROGRAM, self.reader.item(self.program_values, place))

    # ---- running

    def run(self, poll=None):
        """Return the name of the error that rejected the call, or "ok". Raise AssertionError if the
        call wrote outside the outputs. The call polls `poll`."""
        code = self._write()
        if poll is not None:
            self.context._c.poll = poll
        if code:
            self._assert_unwritten(())
            return ERROR_NAMES[code]
        context = self.context
        self.scratch = exactly(bytes([FILL]) * context.scratch_needed())
        context.set_scratch(self.scratch)
        context.start()
        self.pool_before = bytes(self.pool_memory)
        self.before = {number: bytes(memory) for number, memory in self.memories.items()}
        self.program_before = bytes(self.program)
        started = time.process_time()
        self.code = context.execute()
        self.cpu_seconds = time.process_time() - started
        if self.code:
            reason = context.reason()
            assert reason, "a refusal without a reason"
            self._assert_unwritten(self._outputs() if self.operator in FAILS_LATE else ())
            return ERROR_NAMES[self.code]
        self._assert_unwritten(self._outputs())
        return "ok"

    def _assert_unwritten(self, outputs):
        if not hasattr(self, "before"):
            return
        assert bytes(self.program) == self.program_before, "the program was written"
        pool, pool_before = bytearray(self.pool_memory), bytearray(self.pool_before)
        changed = [(at, 4 * len(tensor.sizes)) for tensor in self._outputs()
                   for at in [self.sizes_at.get(id(tensor))] if at is not None]
        changed += [(at, 16) for at in self.variables.values()]
        for at, size in changed:
            pool[at : at + size] = pool_before[at : at + size] = bytes(size)
        assert pool == pool_before, "the pool was written"
        ranges = {}
        for tensor in outputs:
            number, at = self.places[id(tensor)]
            twice = outputs.count(tensor) > 1  # the sizes belong to the last part
            nbytes = tensor.nbytes() if twice else self._nbytes_now(tensor)
            ranges.setdefault(number, []).append((at, at + nbytes))
        for number, memory in self.memories.items():
            now, before = bytearray(memory), bytearray(self.before[number])
            for start, end in ranges.get(number, ()):
                now[start:end] = before[start:end] = bytes(end - start)
            assert now == before, f"memory {number} was written beside the outputs"

    def _nbytes_now(self, tensor):
        at = self.sizes_at.get(id(tensor))
        sizes = tensor.sizes
        if at is not None:
            sizes = struct.unpack_from(f"<{len(tensor.sizes)}i", self.pool_memory, at)
            assert min(sizes) >= 0 and math.prod(sizes) <= tensor.bound, f"sizes {sizes}"
        return math.prod(sizes) * _picotorch.element_size(tensor.dtype)

    def __repr__(self):
        return f"{self.operator} {self.signature} {self.arguments} pack_weights={self.packs_weights}"


class BoundaryCall(HostileCall):
    """A call of an operator whose tensors are 0-d or have sizes 0 and 1, and whose numbers are 0, 1 and
    -1.

    A check and a run may treat a rare combination in different ways, for example a number of 0 for a
    tensor without dims. Calls that mix such values with ordinary ones seldom have such a combination.

    With `turn` nothing is drawn. The turns of an operator go through all combinations of one size for
    all tensors (none, 1, 0) and all values of its numbers; the items of a list are equal.
    """

    NUMBERS = 0, 1, -1

    def __init__(self, draw, operator=None, turn=None):
        operator = operator or draw.pick(OPERATORS)
        super().__init__(draw if turn is None else Draw(b""), (operator, EXAMPLES[operator]), changes=0)
        self.turn = turn
        sizes = self._next(((), 1, 0))
        self._shrink_tensors(sizes)
        self.kept = 0 if turn is not None else draw.pick((0, 0, 30, 90))  # percent of the numbers
        self.arguments = [self._boundary(argument, letter)
                          for argument, letter in zip(self.arguments, self.signature, strict=True)]
        self.is_repeated = self.turn is not None and self.turn > 0
        for tensor in self._all_tensors():
            self._make_fair(tensor)

    def _next(self, choices):
        """Return the choice of this turn, or a drawn one."""
        if self.turn is None:
            return self.draw.pick(choices)
        self.turn, i = divmod(self.turn, len(choices))
        return choices[i]

    def _shrink_tensors(self, alike):
        draw, tensors = self.draw, self._all_tensors()
        kind = draw.below(5) if self.turn is None else 0
        by_size = {size: draw.below(2) for tensor in tensors for size in tensor.sizes}
        for tensor in tensors:
            if kind < 2:
                sizes = [] if alike == () else [alike] * len(tensor.sizes)
            elif kind == 2:  # operands still fit together
                sizes = [by_size[size] for size in tensor.sizes]
            elif kind == 3:
                sizes = [draw.below(2) for _ in tensor.sizes]
            else:
                sizes = [draw.below(2) for _ in range(draw.pick((0, 0, len(tensor.sizes), 1, 2, 4)))]
            tensor.sizes, tensor.order = sizes, list(range(len(sizes)))
            if not sizes:
                tensor.bound = None
            elif self.turn is not None and tensor in self._outputs():
                tensor.bound = 1
            if draw.chance(50):
                tensor.data = self._element_of(tensor.dtype, draw.pick(self.NUMBERS))

    @staticmethod
    def _element_of(dtype, number):
        size = _picotorch.element_size(dtype)
        if dtype in (6, 7):
            return struct.pack("<f" if dtype == 6 else "<d", number)
        return (number & ((1 << 8 * size) - 1)).to_bytes(size, "little")

    def _boundary(self, argument, letter):
        """Return the argument, or in most cases a boundary number in its place."""
        draw = self.draw
        if letter.islower() and draw.chance(20):
            return None
        if isinstance(argument, list) and letter in "LlQqRr":
            item = {"L": "I", "Q": "B", "R": "D"}[letter.upper()]
            if self.turn is not None:
                value = self._boundary(argument[0], item) if argument else None
                return [value] * len(argument)
            items = argument if draw.chance(70) else argument[: draw.below(2)]
            return [self._boundary(one, item) for one in items]
        if letter.upper() not in "SIBD" or argument is None or isinstance(argument, Variable) \
                or draw.chance(self.kept):
            return argument
        if letter.upper() == "B":
            return self._next((False, True))
        return type(argument)(self._next(self.NUMBERS))


def hostile_call(seed):
    return HostileCall(Draw(random_data(seed)))


def boundary_call(seed):
    """Return the call of a seed: each operator in turn, first with its turns in order, then with drawn
    choices."""
    turn, i = divmod(seed, len(OPERATORS))
    if turn % 2 == 0:
        one = BoundaryCall(None, OPERATORS[i], turn // 2)
        if not one.is_repeated:
            return one
    return BoundaryCall(Draw(random_data(seed)), OPERATORS[i])


KINDS = {"hostile": hostile_call, "boundary": boundary_call}


def random_data(seed, length=LENGTH):
    """Return the bytes from which the call of a seed is drawn."""
    return np.random.default_rng(seed).bytes(length)


def main():
    """Run the calls of the seeds from first to end, or forever without `end`. Print the outcomes as
    JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("first", type=int)
    parser.add_argument("end", type=int)
    parser.add_argument("--verbose", action="store_true", help="print each call to stderr")
    options = parser.parse_args()
    faulthandler.enable()
    outcomes, wrong, longest = collections.Counter(), [], 0
    for seed in range(options.first, options.end):
        faulthandler.dump_traceback_later(SECONDS, exit=True)
        one = KINDS[options.kind](seed)
        print(seed, one, file=sys.stderr) if options.verbose else None
        start = time.process_time()
        try:
            outcomes[one.run()] += 1
        except AssertionError as error:
            wrong.append(f"{seed}: {one.operator}: {error}")
        seconds = time.process_time() - start
        longest = max(longest, seconds)
        if seconds > WORK:
            wrong.append(f"{seed}: {one.operator}: {seconds:.1f} s")
    faulthandler.cancel_dump_traceback_later()
    print(json.dumps({"outcomes": outcomes, "wrong": wrong, "seconds": longest}))


if __name__ == "__main__":
    main()
