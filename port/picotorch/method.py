"""A method: loaded into its memories, given inputs, executed, asked for outputs.

    method = Method(manager)            # set-up: makes all objects that are ever needed
    micropython.heap_lock()             # from here on nothing is allocated
    method.load(program, "forward")
    method.set_input(x, 0)
    method.execute()
    method.get_output(0)
"""

import _picotorch

from . import schema
from .errors import (
    ALREADY_LOADED,
    END_OF_METHOD,
    INVALID_ARGUMENT,
    INVALID_STATE,
    INVALID_TYPE,
    NOT_FOUND,
    NOT_SUPPORTED,
    OPERATOR_MISSING,
    OUT_OF_RESOURCES,
    bad_program,
    fail,
)
from .memory import check_alignment, check_memory
from .method_loader import N_INSTRUCTIONS, MethodLoader, reference
from .method_meta import MethodMeta
from .plan import evalue
from .tensor import TYPECODES, Tensor, accepts, tensor_nbytes

_TENSOR = schema.KERNEL_TYPES_TENSOR
_MAX_INPUTS = 256


class Method:
    """`max_outputs`: how many outputs can be held at once; their objects are made here."""

    def __init__(self, manager, max_outputs=8):
        self.manager = manager
        self.context = _picotorch.Context(self._on_failure)
        # the methods below without Python around them: 300 instructions a call instead of 2,000
        self.execute = self.context.execute
        self.step = self.context.step
        self.outputs = [Tensor() for _ in range(max_outputs)]
        self.program = None
        self.plan = 0
        self._loader = MethodLoader(self, self.context)
        self._loaded = False
        self._ready = False
        self._pool_mark = 0
        self._inputs_set = bytearray(_MAX_INPUTS)  # 1 for each input that was set
        self._inputs_missing = 0
        self._pool_end = 0
        self._planned = 0
        self._external_start = 0
        self._external_end = 0

    # ---- loading

    def load(self, program, name="forward", prepare=False, data_map=None, event_tracer=None):
        """Loads a method of the program into the memories. `prepare` trades pool for speed: kernels
        re-encode constant weights there, once. `data_map`: FlatTensorDataMap or MergedDataMap of the
        tensors that the program leaves to .ptd files; their bytes have to stay where they are.
        `event_tracer`: an EventTracer that measures what each instruction takes.

        Raises NotFound, InvalidExternalData, OperatorMissing, MemoryAllocationFailed, InvalidProgram,
        NotSupported, or what a kernel answers to its arguments. The method is then not loaded, its
        memories are as before, and load may be called again.
        """
        if self._loaded:
            raise fail(ALREADY_LOADED, "unload it first", "method")
        pool = self.manager.method_allocator
        self._pool_mark = pool.used
        self.program = program
        done = False
        try:
            self.plan = program.plan(name)
            self._loader.load(program, self.plan, self.manager, prepare, data_map)
            self._start()
            if event_tracer is not None:
                event_tracer.attach(self.context,
                                    self.context.get_ref(self._loader.start + N_INSTRUCTIONS),
                                    self._external_start)
            done = True
        except ValueError:
            raise bad_program("something lies outside the file") from None
        finally:
            if not done:
                self._release()

    def _start(self):
        loader = self._loader
        self._planned = loader.n_planned
        self._external_start = _picotorch.PLANNED + loader.n_planned + len(loader.external.files)
        self._external_end = loader.next_external
        inputs = self._count(schema.EXECUTION_PLAN_INPUTS)
        self._check_indexes(schema.EXECUTION_PLAN_INPUTS)
        self._check_indexes(schema.EXECUTION_PLAN_OUTPUTS)
        if inputs > _MAX_INPUTS:
            raise fail(NOT_SUPPORTED, "more than 256 inputs", "method")
        for i in range(inputs):
            self._inputs_set[i] = 0
        self._inputs_missing = inputs
        self._pool_end = self.manager.method_allocator.used
        self.context.start(loader.start)
        self._loaded = True
        self._update_ready()

    def _check_indexes(self, slot):
        reader = self.program.reader
        values = reader.table(self.plan, schema.EXECUTION_PLAN_VALUES)
        for i in range(self._count(slot)):
            evalue(reader, values, reader.i32_item(reader.table(self.plan, slot), i))

    def _release(self):
        """Gives everything back."""
        self.manager.method_allocator.reset(self._pool_mark)
        for i in range(_picotorch.PROGRAM, _picotorch.MEMORIES):
            self.context.set_memory(i, None)
        self.context.set_scratch(None)
        self.context.set_tracer(None)
        self.context.set_ready(False)
        self._ready = False
        self._loaded = False

    def unload(self):
        """Gives the pool back; load may follow. Raises InvalidState while a method that was loaded into
        the same pool after this one is there."""
        if not self._loaded:
            return
        if self.manager.method_allocator.used != self._pool_end:
            raise fail(INVALID_STATE, "is not the last one in its pool", "method",
                       remedy="unload those that were loaded after it")
        self._release()

    def is_loaded(self):
        return self._loaded

    def _check_loaded(self):
        if not self._loaded:
            raise fail(INVALID_STATE, "is not loaded", "method", remedy="call load first")

    def _count(self, slot):
        return self.program.reader.length(self.program.reader.table(self.plan, slot))

    def _value(self, slot, index, subject):
        """Position of the EValue of input or output `index`."""
        reader = self.program.reader
        if not 0 <= index < self._count(slot):
            raise fail(INVALID_ARGUMENT, "an index below 0" if index < 0 else "there is no such",
                       subject, index, remedy="inputs_size and outputs_size say how many there are")
        return evalue(reader, reader.table(self.plan, schema.EXECUTION_PLAN_VALUES),
                      self._value_index(slot, index))

    def _value_index(self, slot, index):
        return self.program.reader.i32_item(self.program.reader.table(self.plan, slot), index)

    def _tensor_table(self, slot, index, subject):
        value = self._value(slot, index, subject)
        if self.program.reader.u8(value, schema.EVALUE_VAL_TYPE) != _TENSOR:
            raise fail(INVALID_TYPE, "is no tensor", subject, index)
        return self.program.reader.table(value, schema.EVALUE_VAL)

    def _data(self, slot, index):
        """Reference to the data of input or output `index`, a tensor; 0 when it has no bytes."""
        return self.context.get_ref(self.context.find_value(self._value_index(slot, index)))

    def _anywhere(self):
        """A reference for a tensor without bytes."""
        return reference(_picotorch.POOL, 0)

    def _is_constant(self, memory):
        """True of the program and of data files."""
        return (memory == _picotorch.PROGRAM
                or _picotorch.PLANNED + self._planned <= memory < self._external_start)

    def _is_external(self, data):
        return data >> 25 >= self._external_start

    # ---- inputs and outputs

    def inputs_size(self):
        self._check_loaded()
        return self._count(schema.EXECUTION_PLAN_INPUTS)

    def outputs_size(self):
        self._check_loaded()
        return self._count(schema.EXECUTION_PLAN_OUTPUTS)

    def set_input(self, value, index):
        """Sets input `index`.

        A tensor: any buffer of its bytes, in the program's dim order; it is copied into planned memory,
        or used in place where the program leaves the input unplanned. A number, bool or None must be
        the one that the program was exported with. Raises InvalidArgument, InvalidType, InvalidState.
        """
        self._check_loaded()
        reader = self.program.reader
        found = self._value(schema.EXECUTION_PLAN_INPUTS, index, "input")
        kind = reader.u8(found, schema.EVALUE_VAL_TYPE)
        table = reader.table(found, schema.EVALUE_VAL)
        if kind != _TENSOR:
            self._check_constant_input(value, kind, table, index)
        else:
            self._set_tensor_input(value, table, index)
        if not self._inputs_set[index]:
            self._inputs_set[index] = 1
            self._inputs_missing -= 1
        self._update_ready()

    def _check_constant_input(self, value, kind, table, index):
        reader = self.program.reader
        if kind == schema.KERNEL_TYPES_NULL:
            same = value is None
        elif kind == schema.KERNEL_TYPES_INT:
            same = value == self._int(table, "input", index)
        elif kind == schema.KERNEL_TYPES_BOOL:
            same = value == bool(reader.u8(table, schema.BOOL_BOOL_VAL))
        elif kind == schema.KERNEL_TYPES_DOUBLE:
            number = isinstance(value, float) or isinstance(value, int)
            same = number and reader.same_double(table, schema.DOUBLE_DOUBLE_VAL, value)
        else:
            raise fail(NOT_SUPPORTED, "an input of this type", "input", index)
        if not same:
            raise fail(INVALID_ARGUMENT, "is not the value that the program was exported with",
                       "input", index)

    def _int(self, table, subject, index):
        """An int of the program, which the reader clamps to what needs no heap."""
        value = self.program.reader.i64(table, schema.INT_INT_VAL)
        if abs(value) == _picotorch.SMALL_INT_MAX:
            raise fail(NOT_SUPPORTED, "an int of more than 30 bits", subject, index)
        return value

    def _check_buffer(self, buffer, table, subject, index):
        """The bytes of a tensor, after checking that the buffer has them. Raises InvalidArgument."""
        reader = self.program.reader
        nbytes = tensor_nbytes(reader, table)
        given = _picotorch.nbytes(buffer)
        if given < 0:
            raise fail(INVALID_TYPE, "is no buffer of contiguous bytes", subject, index)
        if given != nbytes:
            raise fail(INVALID_ARGUMENT, "", subject, index, nbytes, given,
                       "give as many bytes as the program's sizes say")
        if not accepts(reader.u8(table, schema.TENSOR_SCALAR_TYPE), buffer):
            raise fail(INVALID_ARGUMENT, "has another dtype than the program", subject, index)
        return nbytes

    def _set_tensor_input(self, buffer, table, index):
        nbytes = self._check_buffer(buffer, table, "input", index)
        data = self._data(schema.EXECUTION_PLAN_INPUTS, index)
        if nbytes == 0:
            return
        if self._is_constant(data >> 25):
            raise fail(INVALID_ARGUMENT, "is constant in the program", "input", index)
        if self._is_external(data):
            self._check_input_memory(buffer, data >> 25, index)
            self.context.set_memory(data >> 25, buffer)
        else:
            self.context.copy_in(data, buffer)

    def _check_input_memory(self, buffer, memory, index):
        """A buffer that becomes the memory of an input. Only if no instruction writes to it, it may be
        read-only or part of the program."""
        check_alignment(buffer, "input", index)
        shared = self.context.overlap(buffer, self._external_start)
        if self.context.is_written(memory):
            check_memory(buffer, "input", index)
        elif self._is_constant(shared):
            shared = 0
        self._check_apart(shared, "input", index)

    def _check_apart(self, shared, subject, index):
        if shared:
            raise fail(INVALID_ARGUMENT, "shares bytes with the program or the method's memories",
                       subject, index, remedy="hand over a copy")

    def set_inputs(self, values):
        """Sets all inputs from a list."""
        self._check_loaded()
        if len(values) != self.inputs_size():
            raise fail(INVALID_ARGUMENT, "another number of them than the method has", "inputs",
                       remedy="give inputs_size")
        for i in range(len(values)):
            self.set_input(values[i], i)

    def set_output_data_ptr(self, buffer, index):
        """Makes a buffer the memory of output `index`, which the program leaves unplanned."""
        self._check_loaded()
        table = self._tensor_table(schema.EXECUTION_PLAN_OUTPUTS, index, "output")
        data = self._data(schema.EXECUTION_PLAN_OUTPUTS, index)
        nbytes = self._check_buffer(buffer, table, "output", index)
        if nbytes == 0:
            return
        if not self._is_external(data):
            raise fail(INVALID_STATE, "has planned memory", "output", index,
                       remedy="read it with get_output")
        check_memory(buffer, "output", index)
        self._check_apart(self.context.overlap(buffer, self._external_start), "output", index)
        self.context.set_memory(data >> 25, buffer)
        self._update_ready()

    def get_output(self, index):
        """Output `index`: a Tensor that shows it where it lies, or a number, bool or None."""
        self._check_loaded()
        reader = self.program.reader
        found = self._value(schema.EXECUTION_PLAN_OUTPUTS, index, "output")
        kind = reader.u8(found, schema.EVALUE_VAL_TYPE)
        table = reader.table(found, schema.EVALUE_VAL)
        if kind == schema.KERNEL_TYPES_NULL:
            return None
        if kind == schema.KERNEL_TYPES_INT:
            return self._int(table, "output", index)
        if kind == schema.KERNEL_TYPES_BOOL:
            return bool(reader.u8(table, schema.BOOL_BOOL_VAL))
        if kind != _TENSOR:
            raise fail(NOT_SUPPORTED, "an output of this type", "output", index)
        if index >= len(self.outputs):
            raise fail(OUT_OF_RESOURCES, "is one more than Method was made for", "output", index,
                       remedy="give Method a larger max_outputs")
        tensor = self.outputs[index]
        tensor.program = self.program
        tensor.table = table
        data = self._data(schema.EXECUTION_PLAN_OUTPUTS, index)
        if data and not self.context.has_memory(data >> 25):
            raise fail(INVALID_STATE, "has no memory", "output", index,
                       remedy="call set_output_data_ptr")
        dtype = reader.u8(table, schema.TENSOR_SCALAR_TYPE)
        tensor.data = self.context.view(tensor.data, data or self._anywhere(),
                                        tensor_nbytes(reader, table), TYPECODES.get(dtype, "B"))
        return tensor

    def get_outputs(self, into=None):
        """All outputs, in the list `into` (whose length is theirs) or a new one."""
        count = self.outputs_size()
        if into is None:
            into = [None] * count
        if len(into) != count:
            raise fail(INVALID_ARGUMENT, "a list of another length than the method has of them",
                       "outputs", remedy="give one of outputs_size")
        for i in range(count):
            into[i] = self.get_output(i)
        return into

    # ---- execution

    def execute(self):
        """Runs all instructions from the first, wherever step stopped.

        Raises InvalidState before load or without all inputs, and what a kernel answers. After a
        failure the outputs are undefined and the next execute starts from the first instruction.
        """
        self.context.execute()

    def step(self):
        """Runs one instruction. Raises EndOfMethod when there is none left: call reset_execution."""
        self.context.step()

    def _update_ready(self):
        """Lets execute run when every input has been set and every unplanned tensor has memory."""
        if self._ready or self._inputs_missing:
            return
        for i in range(self._external_start, self._external_end):
            if not self.context.has_memory(i):
                return
        self._ready = True
        self.context.set_ready(True)

    def _on_failure(self, code):
        """Raises what execute or step failed with."""
        if code == END_OF_METHOD:
            raise fail(END_OF_METHOD, "has run all its instructions", "method",
                       remedy="call reset_execution")
        if not self._ready:
            self._raise_not_ready()
        error = fail(code, "", "instruction", self.context.instruction(), source=self)
        self.reset_execution()
        raise error

    def _raise_not_ready(self):
        self._check_loaded()
        if self._inputs_missing:
            index = 0
            while self._inputs_set[index]:
                index += 1
            raise fail(INVALID_STATE, "was never set", "input", index, remedy="call set_input")
        raise fail(INVALID_STATE, "has no memory", "a tensor outside the planned memory",
                   remedy="call set_input and set_output_data_ptr for all that are not planned")

    def reset_execution(self):
        """Back to the first instruction."""
        self._check_loaded()
        self.context.start(self._loader.start)

    # ---- what it is and needs

    def method_meta(self):
        self._check_loaded()
        return MethodMeta(self.program, self.plan)

    @property
    def metadata(self):
        return self.method_meta()

    def memory_report(self):
        """Bytes used and there: {"method_pool": {...}, "planned": [{...}], "temp": {...}}; "prepared":
        bytes that load prepared, the last of those used in the pool."""
        self._check_loaded()
        meta = self.method_meta()
        temp = self.manager.temp_allocator
        pool = self.manager.method_allocator
        return {
            "method_pool": {"used": pool.used, "size": pool.size},
            "prepared": self._pool_end - self._loader.records_end,
            "planned": [{"used": meta.memory_planned_buffer_size(i),
                         "size": self.manager.planned_memory.size(i)}
                        for i in range(self._planned)],
            "temp": {"used": self.context.scratch_needed(), "size": temp.size if temp else 0},
        }

    def explain(self, error):
        """What an error does not say: what is missing, and what a kernel did not like."""
        if error.code == OPERATOR_MISSING:
            return ", ".join(MethodMeta(self.program, self.plan).missing_operators())
        if error.code == NOT_FOUND:
            return ", ".join(MethodMeta(self.program, self.plan).backend_names())
        name = self._instruction_name(error.index)
        argument = self.context.argument()
        if argument >= 0:
            name = "%s: argument %d" % (name, argument)
        reason = self.context.reason()
        return "%s: %s" % (name, reason) if reason else name

    def _instruction_name(self, index):
        reader = self.program.reader
        instruction = self._loader.instruction(index)
        kind = reader.u8(instruction, schema.INSTRUCTION_INSTR_ARGS_TYPE)
        if kind != schema.INSTRUCTION_ARGUMENTS_KERNEL_CALL:
            return "control flow"
        call = reader.table(instruction, schema.INSTRUCTION_INSTR_ARGS)
        return MethodMeta(self.program, self.plan).operator_name(
            reader.i32(call, schema.KERNEL_CALL_OP_INDEX))

    def __repr__(self):
        if not self._loaded:
            return "<Method, not loaded>"
        pool = self.manager.method_allocator
        return "<Method %s: pool %dB of %dB, planned %s>" % (
            self.method_meta().name(), pool.used, pool.size,
            [self.manager.planned_memory.size(i) for i in range(self._planned)])
