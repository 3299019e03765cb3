"""Loading: from a program's tables to the records of a method in its pool.

The layout of a loaded method, whose size is known before any of it is written but where numbers
change:

    pt_method | pt_value of each tensor, by value index | pt_value of each variable, by value index |
    bound and sizes of each dynamic tensor | lists: pt_value and references | instructions

What the kernels prepare for a faster run, where that was asked for, follows at a multiple of 8. Its
size is the same on every machine; its bytes are not.

Everything here runs with MicroPython's heap locked: no tuples, closures, slices or floats.
"""

import _picotorch

from .errors import (
    INVALID_ARGUMENT,
    INVALID_PROGRAM,
    MEMORY_ALLOCATION_FAILED,
    NOT_SUPPORTED,
    OPERATOR_MISSING,
    bad_program,
    fail,
    out_of_memory,
)
from .external_tensors import ExternalTensors
from .memory import LIMIT, check_memory, misplaced, reference
from .plan import evalue, planned_buffer_size, planned_buffers
from .schema import (
    ALLOCATION_DETAILS_FIELDS,
    CHAIN_INSTRUCTIONS,
    DELEGATE_CALL_FIELDS,
    EVALUE_VAL,
    EVALUE_VAL_TYPE,
    EXECUTION_PLAN_CHAINS,
    EXECUTION_PLAN_OPERATORS,
    EXECUTION_PLAN_VALUES,
    EXTRA_TENSOR_INFO_LOCATION,
    EXTRA_TENSOR_INFO_MUTABLE_DATA_SEGMENTS_IDX,
    FREE_CALL_FIELDS,
    INSTRUCTION_ARGUMENTS_DELEGATE_CALL,
    INSTRUCTION_ARGUMENTS_FREE_CALL,
    INSTRUCTION_ARGUMENTS_JUMP_FALSE_CALL,
    INSTRUCTION_ARGUMENTS_KERNEL_CALL,
    INSTRUCTION_ARGUMENTS_MOVE_CALL,
    INSTRUCTION_ARGUMENTS_NONE,
    JUMP_FALSE_CALL_FIELDS,
    KERNEL_CALL_FIELDS,
    KERNEL_TYPES_INT_LIST,
    KERNEL_TYPES_NULL,
    KERNEL_TYPES_OPTIONAL_TENSOR_LIST,
    KERNEL_TYPES_TENSOR,
    KERNEL_TYPES_TENSOR_LIST,
    MOVE_CALL_FIELDS,
    OPERATOR_NAME,
    OPERATOR_OVERLOAD,
    TENSOR_DATA_LOCATION_EXTERNAL,
    TENSOR_FIELDS,
    TENSOR_LIST_ITEMS,
)
from .tensor import bad_dims, bad_nbytes, is_external

METHOD_BYTES = 28
N_INSTRUCTIONS = 4  # where in a pt_method they are counted
_SCRATCH = 20  # where in a pt_method the bytes of scratch stand
VALUE_BYTES = 16
HEADER_BYTES = 4  # of an instruction, before its arguments

# References to byte 0 of a memory; + (offset >> 2) for another byte
_AT_PROGRAM = _picotorch.PROGRAM << 25
_AT_POOL = _picotorch.POOL << 25
_PLANNED = _picotorch.PLANNED

# What an instruction record does
_KERNEL_CALL = 0
_JUMP_FALSE = 1
_MOVE = 2
_NOTHING = 3
_DELEGATE_CALL = 8
# What _for_calls gives instead of the number of a kernel
_NO_KERNEL = -1
_NO_CALL = -2
_JUMP_ARGUMENTS = 3  # condition, place and index of the destination
_MOVE_ARGUMENTS = 2  # source, target
# Layouts of what belongs to an instruction, by InstructionArguments
_CALLS = (None, KERNEL_CALL_FIELDS, DELEGATE_CALL_FIELDS, MOVE_CALL_FIELDS, JUMP_FALSE_CALL_FIELDS,
          FREE_CALL_FIELDS)

_CONSTANT = 0x40
_RANK = 0x1F
_UNPLANNED = 1  # data of a tensor until settle has found where it lies
_DYNAMIC_BOUND = 1
_DYNAMIC_UNBOUND = 2
_MAX_VALUES = 65535
_LONGEST_WALK = 1 << 18  # instructions, of all walks to the destinations of jumps
_KERNELS_KEPT = 64

# What an operator has that has to be known, see _picotorch.operator_traits
_HAS_LISTS = 1
_HAS_VARIABLE = 2

_TENSOR = KERNEL_TYPES_TENSOR
_NULL = KERNEL_TYPES_NULL
_LISTS = (KERNEL_TYPES_TENSOR_LIST, KERNEL_TYPES_OPTIONAL_TENSOR_LIST)


class MethodLoader:
    """The working state of one load. One is made with each Method and used again by every load."""

    def __init__(self, method, context, delegates):
        self.method = method
        self.delegates = delegates
        self.context = context
        self.program = None
        self.reader = None
        self.plan = 0
        self.values = 0
        self.operators = 0
        self.chains = 0
        self.n_chains = 0
        self.n_instructions = 0
        self.n_planned = 0
        self.external = ExternalTensors()  # its files' memories follow the planned buffers'
        self.n_tensors = 0
        self.n_variables = 0  # until they are known: how often one is written
        self.n_written = 0
        self.n_size_bytes = 0
        self.n_list_bytes = 0
        self.n_instruction_bytes = 0
        self.start = 0
        self.records_end = 0
        self.value_at = 0
        self.variable_at = 0
        self.size_at = 0
        self.list_at = 0
        self.instruction_at = 0
        self.next_external = 0
        self.has_jumps = False
        # made here: a bound method needs the heap
        self.put_index = self._put_index
        self.count_variable_lists = self._count_variable_lists
        # the walk to the destinations of jumps: instructions in all, the last one's place
        self.walked = 0
        self.walked_at = 0
        self.walked_bytes = 0
        self.kernels = [0] * _KERNELS_KEPT  # of the program's first operators
        self.n_kernels = 0
        # fields of the table that is read, in slot order
        self.tensor = [0] * len(TENSOR_FIELDS)
        self.allocation = [0] * len(ALLOCATION_DETAILS_FIELDS)
        self.pair = [0] * 2
        self.sizes = memoryview(bytearray(8))  # of a tensor, in the program

    def load(self, program, plan, manager, prepare, data_map):
        """Writes the records, from `start` (the pt_method) to `records_end` of the pool."""
        reader = program.reader
        self.external.start(program, data_map)
        self.program = program
        self.reader = reader
        self.plan = plan
        self.values = reader.table(plan, EXECUTION_PLAN_VALUES)
        self.operators = reader.table(plan, EXECUTION_PLAN_OPERATORS)
        self.has_jumps = False
        self._find_chains()
        self._check_operators()
        self._check_memories(manager)
        self._count()
        self._bind(manager)
        self._write_values()
        self._write_instructions()
        self._settle()
        self._check(prepare)
        self._prepare(manager.method_allocator)

    def _find_chains(self):
        reader = self.reader
        if reader.length(self.values) > _MAX_VALUES:
            raise fail(NOT_SUPPORTED, "more than 65535 values")
        self.chains = reader.table(self.plan, EXECUTION_PLAN_CHAINS)
        self.n_chains = reader.length(self.chains)
        self.n_instructions = 0
        for i in range(self.n_chains):
            self.n_instructions += reader.length(self._instructions(i))
        self.delegates.find(self.program, self.plan)

    def _instructions(self, chain):
        """The vector of instructions of a chain. Each chain is run after the one before it."""
        return self.reader.table(self.reader.item(self.chains, chain), CHAIN_INSTRUCTIONS)

    def instruction(self, index):
        """Position of instruction `index` in the program, counted through all chains."""
        chain = 0
        while index >= self.reader.length(self._instructions(chain)):
            index -= self.reader.length(self._instructions(chain))
            chain += 1
        return self.reader.item(self._instructions(chain), index)

    # ---- what there is

    def _operator(self, index):
        """Number of the kernel of the program's operator `index`, -1 where there is none."""
        reader = self.reader
        if not 0 <= index < reader.length(self.operators):
            raise bad_program("there is no such operator", "operator", index)
        operator = reader.item(self.operators, index)
        name = reader.table(operator, OPERATOR_NAME)
        if name == 0:
            raise bad_program("has no name", "operator", index)
        return reader.operator(name, reader.table(operator, OPERATOR_OVERLOAD))

    def _check_operators(self):
        count = self.reader.length(self.operators)
        for i in range(count):
            kernel = self._operator(i)
            if kernel < 0:
                raise fail(OPERATOR_MISSING, "no kernel for", source=self.method,
                           remedy="use a build with these kernels or change the model")
            if i < _KERNELS_KEPT:
                self.kernels[i] = kernel
        self.n_kernels = min(count, _KERNELS_KEPT)

    def _count(self):
        """Counts tensors, variables, bytes of sizes, of lists and of instructions, after checking each
        of these.

        The program may name the output of a kernel once more behind the operator's arguments.
        """
        self.reader.count_tensors(self.values, self.pair)
        self.n_tensors, size_words = self.pair
        self.n_size_bytes = 4 * size_words
        self.n_variables = self.n_list_bytes = 0
        self.n_instruction_bytes = HEADER_BYTES * self.n_instructions
        first = 0
        for i in range(self.n_chains):
            instructions = self._instructions(i)
            self._count_instructions(instructions, first)
            first += self.reader.length(instructions)
        if self.n_size_bytes > LIMIT or self.n_instruction_bytes > LIMIT:
            raise fail(NOT_SUPPORTED, "records above 128 MiB", "method")

    def _count_instructions(self, instructions, first):
        """Of one chain, whose first instruction is number `first`."""
        reader = self.reader
        # names of the loop's own: a global or an attribute is another 100 to 200 instructions each time
        pair = self.pair
        kernels = self.kernels
        n_kernels = self.n_kernels
        operator_arguments = _picotorch.operator_arguments
        operator_traits = _picotorch.operator_traits
        kernel_call = INSTRUCTION_ARGUMENTS_KERNEL_CALL
        layouts = _CALLS
        total = 0
        for i in range(reader.length(instructions)):
            kind = reader.read_union(instructions, i, layouts, pair)
            if kind == kernel_call:
                index, arguments = pair
                kernel = kernels[index] if 0 <= index < n_kernels else self._operator(index)
                count = operator_arguments(kernel)
                if not count <= reader.length(arguments) <= count + 1:
                    raise fail(INVALID_PROGRAM, "has another number of arguments than its operator",
                               "instruction", first + i)
                traits = operator_traits(kernel)
                if traits & _HAS_LISTS:
                    self._count_lists(arguments, count)
                if traits & _HAS_VARIABLE:
                    self.n_variables += 1
                total += count
            else:
                total += self._count_other(kind, first + i)
        self.n_instruction_bytes += 4 * total

    def _count_other(self, kind, i):
        """How many arguments instruction `i` has, which calls no kernel."""
        if kind == INSTRUCTION_ARGUMENTS_JUMP_FALSE_CALL:
            return _JUMP_ARGUMENTS
        if kind == INSTRUCTION_ARGUMENTS_MOVE_CALL:
            if not self._is_tensor(self.pair[1]):
                self.n_variables += 1
            return _MOVE_ARGUMENTS
        if kind == INSTRUCTION_ARGUMENTS_FREE_CALL:  # planned memory is never freed
            evalue(self.reader, self.values, self.pair[0])
            return 0
        if kind == INSTRUCTION_ARGUMENTS_NONE:
            raise bad_program("is empty", "instruction", i)
        if kind == INSTRUCTION_ARGUMENTS_DELEGATE_CALL:
            return self._count_delegate_call(i)
        raise bad_program("is of no known kind", "instruction", i)

    def _count_delegate_call(self, i):
        """Arguments of the record: those of the call, and where the program lists them."""
        delegate, arguments = self.pair
        if arguments == 0:
            raise bad_program("has no arguments", "instruction", i)
        count = self.reader.length(arguments)
        self.delegates.check_call(delegate, count, i)
        self._count_lists(arguments, count)
        return count + 1

    def _is_tensor(self, index):
        value = evalue(self.reader, self.values, index)
        return self.reader.u8(value, EVALUE_VAL_TYPE) == _TENSOR

    def _count_lists(self, arguments, count):
        reader = self.reader
        for k in range(count):
            value = evalue(reader, self.values, reader.i32_item(arguments, k))
            if reader.u8(value, EVALUE_VAL_TYPE) in _LISTS:
                self._add_list_bytes(VALUE_BYTES + 4 * reader.length(self._list_items(value)))

    def _add_list_bytes(self, count):
        self.n_list_bytes += count
        if self.n_list_bytes > LIMIT:  # many instructions may name one long list
            raise bad_program("lists that need more than 128 MiB")

    def _list_items(self, value):
        """Position of the value indexes of a list of tensors or ints; all have them in one slot."""
        table = self.reader.table(value, EVALUE_VAL)
        return self.reader.table(table, TENSOR_LIST_ITEMS) if table else 0

    # ---- memories

    def _check_memories(self, manager):
        """What needs no count, first: it takes no time to say that a memory is too small."""
        pool = manager.method_allocator
        pool.check(pool.name)
        self._check_planned(manager.planned_memory)

    def _bind(self, manager):
        """Takes the pool and the planned buffers."""
        context = self.context
        pool = manager.method_allocator
        written = self.n_variables
        self.n_variables = 0
        self.start = pool.used
        self._allocate(pool)
        context.set_memory(_picotorch.PROGRAM, self.program.data)
        self._bind_files()
        self._check_apart(pool.buffer, pool.name, -1)
        context.set_memory(_picotorch.POOL, pool.buffer)
        for i in range(self.n_planned):
            size = planned_buffer_size(self.reader, self.plan, i)
            self._check_apart(manager.planned_memory.buffers[i], "planned buffer", i)
            context.set_memory(_PLANNED + i, manager.planned_memory.buffers[i])
            context.limit_memory(_PLANNED + i, size)
            context.clear(reference(_PLANNED + i, 0), size)
        if written:
            self._find_variables(pool, written)
        self._put_method()

    def _allocate(self, pool):
        """Takes what is known to be needed of the pool, and says where it all begins."""
        pool.used = self.start
        end = METHOD_BYTES + VALUE_BYTES * (self.n_tensors + self.n_variables)
        end += self.n_size_bytes + self.n_list_bytes + self.n_instruction_bytes
        self.start = pool.allocate(end)
        self.value_at = self.start + METHOD_BYTES
        self.variable_at = self.value_at + VALUE_BYTES * self.n_tensors
        self.size_at = self.variable_at + VALUE_BYTES * self.n_variables
        self.list_at = self.size_at + self.n_size_bytes
        self.instruction_at = self.list_at + self.n_list_bytes
        self._check_reach(self.start + end, pool)

    def _check_reach(self, end, pool):
        """References lead to the first 128 MiB of a pool."""
        if end > LIMIT:
            raise fail(NOT_SUPPORTED, "records above 128 MiB", pool.name)

    def _put_method(self):
        self.context.put_method(
            self.start, self.n_tensors, self.n_instructions,
            reference(_picotorch.POOL, self.value_at),
            reference(_picotorch.POOL, self.instruction_at),
            reference(_picotorch.PROGRAM, self.values), 0, self.n_variables)

    # ---- variables

    def _find_variables(self, pool, written):
        """Writes the records of the variables, which instructions write `written` times, and takes the
        pool for the lists of ints that they are in.

        Their indexes stand first where their records will: an index has 4 bytes, and an instruction
        that writes a variable at least 12.
        """
        context = self.context
        self._put_method()
        self.n_written = 0
        self._for_calls(self.put_index)
        self.n_variables = context.sort(self.variable_at, written)
        self._allocate(pool)
        bad = context.put_variables(self.variable_at, self.n_variables)
        if bad >= 0:
            raise bad_program("is written like a number", "value", bad)
        self._put_method()
        self._for_calls(self.count_variable_lists)
        self._allocate(pool)

    def _for_calls(self, function):
        """Calls function(kernel, value, count) for each call of a kernel, with the position of its
        arguments and how many the operator has; likewise for each call of a delegate, with kernel
        _NO_KERNEL; and for each move, with kernel _NO_CALL and its target."""
        reader = self.reader
        pair = self.pair
        for chain in range(self.n_chains):
            instructions = self._instructions(chain)
            for i in range(reader.length(instructions)):
                kind = reader.read_union(instructions, i, _CALLS, pair)
                if kind == INSTRUCTION_ARGUMENTS_KERNEL_CALL:
                    kernel = self._operator(pair[0])
                    function(kernel, pair[1], _picotorch.operator_arguments(kernel))
                elif kind == INSTRUCTION_ARGUMENTS_DELEGATE_CALL:
                    function(_NO_KERNEL, pair[1], reader.length(pair[1]))
                elif kind == INSTRUCTION_ARGUMENTS_MOVE_CALL:
                    function(_NO_CALL, pair[1], 0)

    def _put_index(self, kernel, value, count):
        """Adds the index of the variable that a call or a move writes."""
        if kernel == _NO_CALL:
            if self._is_tensor(value):
                return
        elif kernel != _NO_KERNEL and _picotorch.operator_traits(kernel) & _HAS_VARIABLE:
            value = self.reader.i32_item(value, count - 1)
        else:
            return
        if not 0 <= value < self.reader.length(self.values):
            raise bad_program("there is no such value", "value", value)
        self.context.put_ref(self.variable_at + 4 * self.n_written, value)
        self.n_written += 1

    def _count_variable_lists(self, kernel, arguments, count):
        if kernel != _NO_CALL:
            self._add_list_bytes(self.context.count_lists(self.reader, arguments, count))

    def _bind_files(self):
        first = _PLANNED + self.n_planned
        files = self.external.files
        self.next_external = first + len(files)
        if self.next_external > _picotorch.MEMORIES:
            raise fail(NOT_SUPPORTED, "so many planned buffers and data files")
        for i in range(len(files)):
            self.context.set_constant_memory(first + i, files[i].data)

    def _check_apart(self, buffer, subject, index):
        """Raises InvalidArgument when a memory shares bytes with one that is bound already."""
        if self.context.overlap(buffer, 0, _picotorch.MEMORIES):
            raise fail(INVALID_ARGUMENT, "shares bytes with the program or with another memory",
                       subject, index, remedy="hand over memories that lie apart")

    def _check_planned(self, planned):
        self.n_planned = planned_buffers(self.reader, self.plan)
        if self.n_planned > _picotorch.MEMORIES - _PLANNED:
            raise fail(NOT_SUPPORTED, "so many planned buffers")
        for i in range(self.n_planned):
            size = planned_buffer_size(self.reader, self.plan, i)
            if size > LIMIT:
                raise fail(NOT_SUPPORTED, "more than 128 MiB", "planned buffer", i)
            if i >= len(planned):
                if size == 0:
                    self.n_planned = i
                    return
                raise fail(INVALID_ARGUMENT, "is missing", "planned buffer", i, size, 0,
                           "hand over one buffer for each that the method needs")
            if planned.size(i) < size:
                raise out_of_memory("planned buffer", i, size, planned.size(i), "make it larger")
            check_memory(planned.buffers[i], "planned buffer", i)

    def _prepare(self, pool):
        """Lets the kernels prepare what they asked for; the error for a pool that is too small names
        the bytes for records and for this together."""
        self.records_end = pool.used
        needed = self.context.prepared_bytes(self.start)
        if needed:
            at = (self.records_end + 7) & -8
            pool.used = self.start
            pool.allocate(at + needed - self.start)
            self._check_reach(at + needed, pool)
            self.context.prepare(self.start, at)

    def bind_scratch(self, manager):
        """Takes the temp memory, once kernels and delegates have asked for theirs."""
        needed = self.context.scratch_needed()
        self.context.put_ref(self.start + _SCRATCH, needed)
        temp = manager.temp_allocator
        if temp is not None:
            temp.check("temp memory")
            self._check_apart(temp.buffer, "temp memory", -1)
            self.context.set_scratch(temp.buffer)
        if needed == 0:
            return
        available = temp.size if temp is not None else 0
        if needed > available:
            raise fail(MEMORY_ALLOCATION_FAILED, "", "temp memory", -1, needed, available,
                       "hand over a temp allocator of that size")

    # ---- values

    def _write_values(self):
        reader = self.reader
        context = self.context
        program = self.program
        offsets = program.constant_offsets
        n_offsets = program.n_constants
        constants_size = program.constant_size
        constants_at = program.constant_segment
        # names of the loop's own: a global is another 100 instructions each time
        fields = TENSOR_FIELDS
        into = self.tensor
        values = self.values
        limit = LIMIT
        location = EXTRA_TENSOR_INFO_LOCATION
        in_data_file = TENSOR_DATA_LOCATION_EXTERNAL
        bound = _DYNAMIC_BOUND
        at_program = _AT_PROGRAM
        is_constant = _CONSTANT
        at = self.value_at
        i = reader.read_tensor(values, 0, fields, into)
        while i >= 0:
            (dtype, storage_offset, sizes, order, _, constant, allocation, _, dynamism,
             extra) = into
            if dynamism > bound or storage_offset:
                raise self._unsupported(dynamism, storage_offset, i)
            flags = reader.tensor_flags(sizes, order)
            if flags < 0:
                raise bad_dims(reader, sizes)
            nbytes = reader.tensor_nbytes(dtype, sizes, limit)
            if nbytes < 0:
                raise bad_nbytes(dtype)
            place = reader.u8(extra, location) if extra else 0
            if place > in_data_file:
                raise bad_program("lies at a place of an unknown kind", "value", i)
            external = place == in_data_file
            if external and not allocation:
                flags |= is_constant
                data = self._external_constant(extra, dtype, sizes, order, nbytes)
            elif constant and not allocation:
                flags |= is_constant
                data = reader.i64_item(offsets, constant) if constant < n_offsets else -1
                if 0 <= data <= constants_size - nbytes:
                    data += constants_at
                else:
                    data = program.constant(constant, nbytes)  # inside the FlatBuffer, or an error
                if data & 7 and misplaced(data, dtype):
                    raise bad_program("has constant data at no multiple of 4" if data & 3
                                      else "has constant data at no multiple of 8", "value", i)
                data = at_program + (data >> 2)
            elif nbytes == 0:
                data = 0
            elif allocation:
                data = self._planned_data(reader, context, allocation, dtype, nbytes, i)
                if external:
                    self._copy_external(data, extra, dtype, sizes, order, nbytes)
                elif constant:
                    self._set_initial(data, extra, constant, nbytes)
            else:
                data = _UNPLANNED
            context.put_tensor(at, data, sizes, order, i, dtype, flags)
            if dynamism:
                self._make_dynamic(at, flags)
            at += VALUE_BYTES
            i = reader.read_tensor(values, i + 1, fields, into)

    def _unsupported(self, dynamism, storage_offset, index):
        if dynamism == _DYNAMIC_UNBOUND:
            return fail(NOT_SUPPORTED, "a tensor of dynamic shape without upper bound", "value", index,
                        remedy="export with upper bounds: Dim(name, max=...)")
        if dynamism > _DYNAMIC_UNBOUND:
            return bad_program("there is no such kind of shape", "value", index)
        return fail(NOT_SUPPORTED, "a storage offset", "value", index)

    def _planned_data(self, reader, context, allocation, dtype, nbytes, index):
        fields = self.allocation
        reader.read(allocation, ALLOCATION_DETAILS_FIELDS, fields)
        memory, offset, offset_high = fields
        if offset_high or not 0 < memory <= self.n_planned:  # 0 is reserved
            raise bad_program("lies outside the planned buffers", "value", index)
        memory += _PLANNED - 1
        if not context.is_inside(memory, offset, nbytes):
            raise bad_program("lies outside the planned buffers", "value", index)
        if offset & 7 and misplaced(offset, dtype):
            raise fail(NOT_SUPPORTED, "planned memory at no multiple of 4" if offset & 3
                       else "planned memory at no multiple of 8", "value", index)
        return (memory << 25) + (offset >> 2)

    def _set_initial(self, data, extra, constant, nbytes):
        """Copies the initial value of a mutable buffer to where it lives."""
        entry = self.reader.u32(extra, EXTRA_TENSOR_INFO_MUTABLE_DATA_SEGMENTS_IDX) if extra else 0
        self.context.copy(data, _picotorch.PROGRAM,
                          self.program.initial_data(entry, constant, nbytes), nbytes)

    def reset_memory(self):
        """Puts the planned memory of the loaded method, and the sizes of its tensors, back to what load
        leaves there."""
        context = self.context
        reader = self.reader
        for i in range(self.n_planned):
            context.clear(reference(_PLANNED + i, 0), planned_buffer_size(reader, self.plan, i))
        self.external.start_again()
        into = self.tensor
        i = reader.read_tensor(self.values, 0, TENSOR_FIELDS, into)
        while i >= 0:
            (dtype, _, sizes, order, _, constant, allocation, _, dynamism, extra) = into
            nbytes = reader.tensor_nbytes(dtype, sizes, LIMIT)
            if dynamism:
                self._reset_sizes(context.find_value(i), sizes)
            if allocation and nbytes:
                data = context.get_ref(context.find_value(i))
                if is_external(reader, extra):
                    self._copy_external(data, extra, dtype, sizes, order, nbytes)
                elif constant:
                    self._set_initial(data, extra, constant, nbytes)
            i = reader.read_tensor(self.values, i + 1, TENSOR_FIELDS, into)

    def _reset_sizes(self, at, sizes):
        """Those of the program; a view of fewer elements keeps its own until it is made again."""
        context = self.context
        self.sizes = context.view(self.sizes, _AT_PROGRAM + (sizes + 4 >> 2),
                                  4 * self.reader.length(sizes), "i")
        context.resize(at, self.sizes)

    def _external_constant(self, extra, dtype, sizes, order, nbytes):
        """Reference to the data of a constant where it lies in its file."""
        external = self.external
        external.find(extra, dtype, sizes, order, nbytes, True)
        return reference(_PLANNED + self.n_planned + external.file, external.position)

    def _copy_external(self, data, extra, dtype, sizes, order, nbytes):
        """Copies the initial value of a mutable buffer from a file to where it lives."""
        external = self.external
        external.find(extra, dtype, sizes, order, nbytes, False)
        self.context.copy(data, _PLANNED + self.n_planned + external.file, external.position, nbytes)

    def _make_dynamic(self, at, flags):
        self.context.make_dynamic(at, self.size_at)
        self.size_at += 4 + 4 * (flags & _RANK)

    # ---- instructions

    def _write_instructions(self):
        at = self.instruction_at
        first = 0
        for i in range(self.n_chains):
            instructions = self._instructions(i)
            at = self._write_chain(at, instructions, first)
            first += self.reader.length(instructions)
        if self.has_jumps:
            self._resolve_jumps()

    def _write_chain(self, at, instructions, first):
        """The instructions of a chain, whose first is number `first`; where the next one begins."""
        reader = self.reader
        context = self.context
        pair = self.pair
        kernel_call = INSTRUCTION_ARGUMENTS_KERNEL_CALL
        layouts = _CALLS
        length = reader.length(instructions)
        for i in range(length):
            kind = reader.read_union(instructions, i, layouts, pair)
            if kind == kernel_call:
                count = self._write_call(at)
            elif kind == INSTRUCTION_ARGUMENTS_JUMP_FALSE_CALL:
                count = self._write_jump(at, first, length)
            elif kind == INSTRUCTION_ARGUMENTS_MOVE_CALL:
                count = self._write_move(at)
            elif kind == INSTRUCTION_ARGUMENTS_DELEGATE_CALL:
                count = self._write_delegate_call(at)
            else:  # planned memory is never freed
                context.put_instruction(at, 0, 0, _NOTHING)
                count = 0
            at += HEADER_BYTES + 4 * count
        return at

    def _settle(self):
        end = self.context.settle(self.start, self.next_external)
        if end < 0:
            value = self.context.argument()
            if value >= 0:
                raise fail(NOT_SUPPORTED, "so many tensors outside the planned memory", "value", value)
            raise fail(-end, "", "instruction", self.context.instruction(), source=self.method)
        self.next_external = end

    def _check(self, prepare):
        context = self.context
        context.set_prepares(prepare)
        context.clear_scratch_needed()
        code = context.check(self.start)
        if code:
            raise fail(code, "", "instruction", context.instruction(), source=self.method)

    def _write_call(self, at):
        """The call of a kernel. Each of these returns how many arguments there are."""
        context = self.context
        index, arguments = self.pair
        kernel = self.kernels[index] if 0 <= index < self.n_kernels else self._operator(index)
        count = _picotorch.operator_arguments(kernel)
        context.put_instruction(at, kernel, count, _KERNEL_CALL)
        self._write_arguments(at, arguments)
        return count

    def _write_arguments(self, at, arguments):
        reader = self.reader
        context = self.context
        k = context.put_arguments(at, reader, arguments, 0)
        while k >= 0:
            self._write_list(at + HEADER_BYTES + 4 * k, reader.i32_item(arguments, k))
            k = context.put_arguments(at, reader, arguments, k + 1)

    def _write_delegate_call(self, at):
        context = self.context
        delegate, arguments = self.pair
        count = self.reader.length(arguments)
        context.put_instruction(at, delegate, count, _DELEGATE_CALL)
        self._write_arguments(at, arguments)
        context.put_instruction(at, delegate, count + 1, _DELEGATE_CALL)
        context.put_ref(at + HEADER_BYTES + 4 * count, reference(_picotorch.PROGRAM, arguments))
        return count + 1

    def _write_jump(self, at, first, length):
        """The destination, in a chain of `length` instructions from number `first` on, stays an index
        until the place of every instruction is known."""
        condition, destination = self.pair
        if not 0 <= destination <= length:
            raise bad_program("there is no such destination of a jump", "instruction", destination)
        self.has_jumps = True
        self.context.put_instruction(at, 0, _JUMP_ARGUMENTS, _JUMP_FALSE)
        self.context.put_ref(at + HEADER_BYTES, self._reference_of(condition))
        self.context.put_ref(at + HEADER_BYTES + 8, first + destination)
        return _JUMP_ARGUMENTS

    def _write_move(self, at):
        source, target = self.pair
        self.context.put_instruction(at, 0, _MOVE_ARGUMENTS, _MOVE)
        self.context.put_ref(at + HEADER_BYTES, self._reference_of(source))
        self.context.put_ref(at + HEADER_BYTES + 4, self._reference_of(target))
        return _MOVE_ARGUMENTS

    def _reference_of(self, index):
        value = evalue(self.reader, self.values, index)
        if self.reader.u8(value, EVALUE_VAL_TYPE) == _TENSOR:
            return self._tensor(index)
        variable = self.context.find_variable(index)
        return _AT_PROGRAM + (value >> 2) if variable < 0 else _AT_POOL + (variable >> 2)

    def _resolve_jumps(self):
        context = self.context
        at = self.instruction_at
        self.walked = self.walked_at = self.walked_bytes = 0
        for _ in range(self.n_instructions):
            header = context.get_ref(at)
            if header >> 24 == _JUMP_FALSE:
                self._walk_to(context.get_ref(at + HEADER_BYTES + 8))
                place = self.instruction_at + self.walked_bytes
                context.put_ref(at + HEADER_BYTES + 4, _AT_POOL + (place >> 2))
            at += HEADER_BYTES + 4 * (header >> 16 & 0xFF)

    def _walk_to(self, index):
        """Sets walked_bytes to the place of instruction `index`, or of the end, behind the first.

        Goes on from the last walk where it can. Their sum is bounded: jumps to and fro across a
        long program would make loading quadratic.
        """
        if index < self.walked_at:
            self.walked_at = self.walked_bytes = 0
        self.walked += index - self.walked_at
        if self.walked > _LONGEST_WALK:
            raise fail(NOT_SUPPORTED, "so many jumps across so many instructions")
        at = self.context.skip(self.instruction_at + self.walked_bytes, index - self.walked_at)
        self.walked_at = index
        self.walked_bytes = at - self.instruction_at

    def _tensor(self, index):
        at = self.context.find_value(index)
        if at < 0:
            raise bad_program("is no tensor", "value", index)
        return reference(_picotorch.POOL, at)

    def _write_list(self, to, index):
        """The record of value `index`, a list of tensors or of ints, and a reference to it at `to`."""
        context = self.context
        value = self.reader.item(self.values, index)
        kind = self.reader.u8(value, EVALUE_VAL_TYPE)
        items = self._list_items(value)
        count = self.reader.length(items)
        at = self.list_at
        self.list_at += VALUE_BYTES + 4 * count
        if self.list_at > self.instruction_at:
            raise bad_program("a list stands where the operator takes none")
        context.put_list(at, reference(_picotorch.POOL, at + VALUE_BYTES), count, kind)
        for i in range(count):
            context.put_ref(at + VALUE_BYTES + 4 * i, self._item(kind, items, i))
        context.put_ref(to, reference(_picotorch.POOL, at))

    def _item(self, kind, items, i):
        """Reference to item `i` of a list of this kind, 0 for None."""
        if kind == KERNEL_TYPES_INT_LIST:
            return self._reference_of(self.reader.i64_item(items, i))
        index = self.reader.i32_item(items, i)
        optional = kind == KERNEL_TYPES_OPTIONAL_TENSOR_LIST
        return 0 if optional and self._is_none(index) else self._tensor(index)

    def _is_none(self, index):
        """An optional tensor is left out as -1 or as a value that is Null."""
        if index < 0:
            return True
        value = evalue(self.reader, self.values, index)
        return self.reader.u8(value, EVALUE_VAL_TYPE) == _NULL
