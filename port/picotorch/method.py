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
from .attributes import Attributes
from .errors import (
    ALREADY_LOADED,
    END_OF_METHOD,
    INVALID_ARGUMENT,
    INVALID_STATE,
    MEMORY_ALLOCATION_FAILED,
    NOT_FOUND,
    OPERATOR_MISSING,
    bad_program,
    check_stack,
    fail,
    no_stack,
    spare_error,
)
from .inputs import Inputs
from .memory import BUSY
from .method_loader import N_INSTRUCTIONS, MethodLoader
from .method_meta import MethodMeta
from .no_delegates import make_delegates
from .outputs import Outputs
from .values import Values

_NO_STACK = -1  # what the context says where execute did not begin


class Method:
    """`max_outputs`: how many outputs can be held at once; their objects are made here. So are those of
    delegates: `max_delegates` of them, whose calls have `max_arguments`; 4 and 8 if any backend is
    registered."""

    def __init__(self, manager, max_outputs=8, max_delegates=None, max_arguments=None):
        self.manager = manager
        self.values = Values(self)
        self._delegates = make_delegates(self, max_delegates, max_arguments)
        self.context = _picotorch.Context(self._on_failure, self._delegates.call)
        self._delegates.bind(self.context)
        # the methods below without Python around them: 300 instructions a call instead of 2,000
        self.execute = self.context.execute
        self.step = self.context.step
        self.program = None
        self.loads = 0  # how often another program took its place
        self.plan = 0
        self._inputs = Inputs(self)
        self._outputs = Outputs(self, max_outputs)
        self._attributes = Attributes(self)
        self._loader = MethodLoader(self, self.context, self._delegates)
        self._loaded = False
        self._busy = ""  # what load or unload, while one of them runs, is doing
        self._ready = False
        self._pool = None
        self._pool_mark = -1  # where the method begins in it, if it holds anything
        self._pool_end = 0  # where it ends, once it is loaded
        self._pool_held = 0  # what methods before it hold
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
        self._check_not_busy()
        if self._loaded:
            raise fail(ALREADY_LOADED, "unload it first", "method")
        check_stack()
        done = False
        try:
            self._busy = "is being loaded"
            self._release()  # what an interrupt may have left
            self._take_pool()
            self.loads += 1
            self.program = program
            self.plan = program.plan(name)
            self._loader.load(program, self.plan, self.manager, prepare, data_map)
            self._count_memories()
            self._delegates.init(program, data_map, name, self.manager, self._loader)
            self._check_moved()
            self._loader.bind_scratch(self.manager)
            self._start()
            if event_tracer is not None:
                event_tracer.attach(self.context,
                                    self.context.get_ref(self._loader.start + N_INSTRUCTIONS),
                                    self._external_start)
            done = True
        except ValueError:
            raise bad_program("something lies outside the file") from None
        except RuntimeError:
            raise no_stack() from None
        finally:
            try:
                if not done:
                    spare_error()
                    self._release()
            finally:
                self._busy = ""

    def _take_pool(self):
        """Until the method is loaded, backends allocate there, but nobody resets or loads."""
        pool = self.manager.method_allocator
        if pool.held == BUSY:
            raise fail(INVALID_STATE, "a method is being loaded or unloaded there", pool.name)
        self._pool = pool
        self._pool_held = pool.held
        self._pool_mark = pool.used
        pool.held = BUSY

    def _count_memories(self):
        loader = self._loader
        self._planned = loader.n_planned
        self._external_start = _picotorch.PLANNED + loader.n_planned + len(loader.external.files)
        self._external_end = loader.next_external

    def _start(self):
        self._inputs.check()
        self._outputs.check()
        self._inputs.forget()
        self.context.start(self._loader.start)
        self._pool_end = self._pool.held = self._pool.used
        self._loaded = True
        self.update_ready()

    def _release(self):
        """Gives everything back. Each part may be interrupted, and done again."""
        if self._pool_mark < 0:
            return
        was_loaded = self._loaded
        self._loaded = False
        self.make_unready()
        pool = self._pool
        pool.held = BUSY
        self._delegates.destroy(was_loaded)
        self.context.release()
        pool.held = self._pool_held
        pool.used = self._pool_mark
        self._pool_mark = -1
        self._delegates.raise_interrupt()

    def unload(self):
        """Gives the pool back; load may follow. Raises InvalidState while a method that was loaded into
        the same pool after this one is there; after that, what a backend raised in destroy."""
        self._check_not_busy()
        if self._pool_mark < 0:
            return
        self.check_not_running("unload it afterwards")
        if self._loaded and self._pool.used != self._pool_end:
            raise fail(INVALID_STATE, "is not the last one in its pool", "method",
                       remedy="unload those that were loaded after it")
        check_stack()
        try:
            self._busy = "is being unloaded"
            self._release()
        finally:
            self._busy = ""
        error = self._delegates.take_error()
        if error is not None:
            raise error

    def is_loaded(self):
        return self._loaded

    def first_external(self):
        """Number of the first memory of unplanned tensors."""
        return self._external_start

    def is_constant(self, memory):
        """True of the program and of data files."""
        first = _picotorch.PLANNED + self._planned
        return memory == _picotorch.PROGRAM or first <= memory < self._external_start

    def check_loaded(self):
        if not self._loaded:
            raise fail(INVALID_STATE, "is not loaded", "method", remedy="call load first")
        self._check_moved()

    def _check_moved(self):
        """An array that has grown may lie elsewhere, and its old bytes belong to something else."""
        memory = self.context.moved_memory()
        if memory:
            self._raise_moved(memory)

    def _raise_moved(self, memory):
        first_file = _picotorch.PLANNED + self._planned
        index = -1
        if memory >= _picotorch.MEMORIES:
            subject = "temp memory" if memory == _picotorch.MEMORIES else "event tracer"
        elif memory >= self._external_start:
            subject = "a tensor outside the planned memory"
        elif memory >= first_file:
            subject = "data file"
            index = memory - first_file
        elif memory >= _picotorch.PLANNED:
            subject = "planned buffer"
            index = memory - _picotorch.PLANNED
        else:
            subject = self._pool.name if memory == _picotorch.POOL else "program"
        raise fail(INVALID_STATE, "has been resized since it was handed over", subject, index,
                   remedy="leave its size alone, and load again")

    def _check_not_busy(self):
        if self._busy:
            raise fail(INVALID_STATE, self._busy, "method")

    def check_not_running(self, remedy=""):
        """Raises InvalidState in a backend that is called by the method, and in other threads."""
        if self.context.is_running():
            raise fail(INVALID_STATE, "is executing", "method", remedy=remedy)

    # ---- inputs and outputs

    def inputs_size(self):
        self.check_loaded()
        return self._inputs.count()

    def outputs_size(self):
        self.check_loaded()
        return self._outputs.count()

    def set_input(self, value, index):
        """Sets input `index`.

        A tensor: any buffer of its bytes, in the program's dim order, or a Tensor, whose sizes a
        dynamic input takes. It is copied into planned memory, or used in place where the program leaves
        the input unplanned. A number, bool, string or None must be the one that the program was
        exported with. Raises InvalidArgument for another dtype, value or type and for lists,
        NotSupported for sizes that the input cannot take, InvalidState before load and between steps.
        """
        self.check_loaded()
        self._inputs.set(value, index)
        self.update_ready()

    def set_inputs(self, values):
        """Sets all inputs from a list."""
        self.check_loaded()
        if len(values) != self._inputs.count():
            raise fail(INVALID_ARGUMENT, "another number of them than the method has", "inputs",
                       remedy="give inputs_size")
        for i in range(len(values)):
            self._inputs.set(values[i], i)
        self.update_ready()

    def set_output_data_ptr(self, buffer, index):
        """Makes a buffer the memory of output `index`, which the program leaves unplanned. It has at
        least the bytes of the program's sizes, which a dynamic output may come to have."""
        self.check_loaded()
        self.check_not_running()
        self._outputs.set_memory(buffer, index)
        self.update_ready()

    def get_output(self, index):
        """Output `index`: a Tensor that shows it where it lies, a number, bool, string, None, or a
        ValueList of them.

        A Tensor is valid until the next get_output of this index. With the heap locked so is a float, a
        string and a list, and each item of a list until the next one is read.
        """
        self.check_loaded()
        return self._outputs.get(index)

    def get_outputs(self, into=None):
        """All outputs, in the list `into` (whose length is theirs) or a new one."""
        count = self.outputs_size()
        if into is None:
            into = [None] * count
        if len(into) != count:
            raise fail(INVALID_ARGUMENT, "a list of another length than the method has of them",
                       "outputs", remedy="give one of outputs_size")
        for i in range(count):
            into[i] = self._outputs.get(i)
        return into

    # ---- state

    def get_attribute(self, name):
        """Tensor of the parameter or buffer of this fully qualified name, where it lies: what is not
        constant may be written. Raises NotFound.

        With the heap locked it is valid until the next get_attribute.
        """
        self.check_loaded()
        return self._attributes.get(name)

    def set_attribute_data_ptr(self, buffer, name):
        """Makes a buffer the memory of the mutable buffer of this name, which the program leaves
        unplanned (exported with alloc_mutable_buffers=False). Its bytes are the initial value. They
        stay the caller's: two methods may share them, reset_state leaves them alone. Raises NotFound,
        InvalidArgument, InvalidState."""
        self.check_loaded()
        self.check_not_running()
        self._attributes.set_memory(buffer, name)
        self.update_ready()

    def reset_state(self):
        """Takes buffers back to their initial values, or to zero, and the execution to its start.

        All planned memory, the sizes of tensors and the numbers that instructions write are as they are
        after load, so inputs have to be set again.
        """
        self.reset_execution()
        self.make_unready()
        self._inputs.forget()
        self._loader.reset_memory()
        for i in range(self._external_start, self._external_end):
            if self.context.has_memory(i):
                self.context.fit(i)
        self.context.reset_variables()
        self.update_ready()  # without inputs it is

    # ---- execution

    def execute(self):
        """Runs all instructions from the first, wherever step stopped.

        Raises InvalidState before load or without memory for an unplanned tensor, InvalidArgument
        without all inputs, and what a kernel answers. After a failure outputs and buffers hold what the
        instructions before it left there: reset_state takes buffers back to their initial values. The
        inputs stay set, and the next execute starts from the first instruction.
        """
        self.context.execute()

    def step(self):
        """Runs one instruction. Raises EndOfMethod when there is none left: call reset_execution."""
        self.context.step()

    def make_unready(self):
        self._ready = False
        self.context.set_ready(False)

    def update_ready(self):
        """Lets execute run when every input has been set and every unplanned tensor has memory."""
        if self._ready or self._inputs.missing:
            return
        for i in range(self._external_start, self._external_end):
            if not self.context.has_memory(i):
                return
        if self._shares_memory():
            return
        self._ready = True
        self.context.set_ready(True)

    def _shares_memory(self):
        """True when an input, output or mutable buffer lies over another and one is written."""
        return self.context.shared_memory(self._external_start, self._external_end) != 0

    def _on_failure(self, code):
        """Raises what execute or step failed with."""
        if code == _NO_STACK:
            raise no_stack()
        self.check_not_running()
        if code == INVALID_STATE:
            self.check_loaded()
        error = self._delegates.take_error()
        if code == END_OF_METHOD:
            raise fail(END_OF_METHOD, "has run all its instructions", "method",
                       remedy="call reset_execution")
        if not self._ready:
            self._raise_not_ready()
        if error is None:
            error = self._failure(code)
        raise error

    def _failure(self, code):
        """What an instruction failed with. Memory is short where its sizes, which load did not know,
        ask for more of the temp memory than there is."""
        requested = available = -1
        if code == MEMORY_ALLOCATION_FAILED:
            temp = self.manager.temp_allocator
            requested = self.context.scratch_needed()
            available = 0 if temp is None else temp.size
        return fail(code, "", "instruction", self.context.failed(), requested, available,
                    "hand over more temp memory" if requested >= 0 else "", self)

    def _raise_not_ready(self):
        self.check_loaded()
        self._inputs.check_all_set()
        if self._shares_memory():
            raise fail(INVALID_ARGUMENT, "shares bytes with another, and one of them is written",
                       "a tensor outside the planned memory",
                       remedy="hand over memories that lie apart")
        raise fail(INVALID_STATE, "has no memory", "a tensor outside the planned memory",
                   remedy="call set_input, set_output_data_ptr or set_attribute_data_ptr for each")

    def reset_execution(self):
        """Back to the first instruction."""
        self.check_loaded()
        self.check_not_running()
        self.context.start(self._loader.start)

    # ---- what it is and needs

    def method_meta(self):
        self.check_loaded()
        return MethodMeta(self.program, self.plan)

    @property
    def metadata(self):
        return self.method_meta()

    def memory_report(self):
        """Bytes used and there: {"method_pool": {...}, "planned": [{...}], "temp": {...}}; "prepared":
        bytes that load prepared, the last of those used in the pool."""
        self.check_loaded()
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
            return ", ".join(MethodMeta(self.program, self.plan).missing_backends())
        name = self._instruction_name(error.index)
        argument = self.context.argument()
        if argument >= 0:
            name = "%s: argument %d" % (name, argument)
        reason = self.context.reason()
        return "%s: %s" % (name, reason) if reason else name

    def backend_name(self, index):
        """The name of the backend of delegate `index`."""
        return MethodMeta(self.program, self.plan).get_backend_name(index)

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
