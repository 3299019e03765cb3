"""Load a method into its memories, set its inputs, execute it, and read its outputs.

The calls in order:

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
    INVALID_ARGUMENT,
    INVALID_STATE,
    MEMORY_ALLOCATION_FAILED,
    NOT_FOUND,
    NOT_SUPPORTED,
    OK,
    OUT_OF_RESOURCES,
    TEXTS,
    fail,
    library_error,
    need,
    part,
    spare_error,
)
from .memory import BUSY, MemoryManager
from .method_meta import MethodMeta, backends
from .tensor import Tensor, TensorInfo, new_kept

_EXPLAINED = (schema.SUBJECT_MISSING_OPERATOR, schema.SUBJECT_MISSING_BACKEND,
              schema.SUBJECT_EXTERNAL_TENSOR)  # and instructions
_DELEGATES = 4  # default of max_delegates if a backend is registered
_ARGUMENTS = 8  # default of max_arguments if a backend is registered
_MAX = 1 << 16  # objects of one kind that a Method makes


class Method:
    """A method of a program, loaded into memories of the caller.

    `max_outputs`: the number of outputs for which objects are made here; by default one, and more when
    they are first requested, unless the heap is locked. `max_delegates`: the same for delegates;
    `max_arguments`: of a call of a delegate. Both are fixed, by default 4 and 8 if any backend is
    registered, else 0. With the heap locked, data files and unplanned tensors may together be eight, or
    as many as in an earlier load.
    """

    texts = TEXTS

    def __init__(self, manager, max_outputs=None, max_delegates=None, max_arguments=None):
        need(manager, MemoryManager, "manager")
        self.manager = manager
        self._grows = max_outputs is None
        self.kept = (new_kept(self),) if self._grows else []  # of each output; the library reads it
        for _ in range(_count(max_outputs, 0, "max_outputs")):  # a comprehension allocates
            self.kept.append(new_kept(self))
        max_delegates = _count(max_delegates, _DELEGATES if backends else 0, "max_delegates")
        max_arguments = _count(max_arguments, _ARGUMENTS if backends else 0, "max_arguments")
        self.library = _picotorch.Method(self, max_delegates, max_arguments,
                                         len(manager.planned_memory))
        # without Python around them: 300 instructions a call instead of 2,000
        self.set_input = self.library.set_input
        self.execute = self.library.execute
        self.get_output = self.library.get_output
        self.program = None
        self.unloads = 0  # how often it gave its memory back
        self.name = ""
        self.data_map = None
        self._requested = None  # name of the attribute that was requested last
        self._busy = ""  # what load or unload, while one of them runs, is doing
        self._mark = -1  # start of the method in its pool; -1 without a load
        self._held = 0  # bytes of the methods before it
        self._pool = None
        self._delegates = None
        if max_delegates:
            self._delegates = part("delegates").Delegates(self, max_delegates, max_arguments)

    # ---- loading

    def load(self, program, name="forward", pack_weights=False, data_map=None, event_tracer=None):
        """Load a method of the program into the memories.

        `pack_weights` trades pool for speed: kernels pack constant weights there, once. `data_map`:
        FlatTensorDataMap or MergedDataMap of the tensors that the program leaves to .ptd files; their
        bytes must not move. `event_tracer`: an EventTracer that measures each instruction.

        Raises AlreadyLoaded, InvalidState, NotFound, InvalidExternalData, OperatorMissing,
        MemoryAllocationFailed, InvalidProgram, NotSupported, or the error of a kernel that rejects its
        arguments. After an error the memories are as before, and load may be called again.
        """
        library = self.library
        if self._busy:
            raise self._busy_error()
        need(program, "find_plan", "program")
        if data_map is not None:
            need(data_map, "libraries", "data_map")
        if event_tracer is not None:
            need(event_tracer, "attach", "event_tracer")
        if self._mark >= 0 and library.end() >= 0:
            raise fail(ALREADY_LOADED, "unload it first", "method")
        pool = self.manager.method_allocator
        temp = self.manager.temp_allocator
        try:
            self._busy = "is being loaded"
            if self._mark >= 0:  # what an interrupt may have left
                self._release()
            plan = program.plan(name)
            if pool.held == BUSY:
                raise fail(INVALID_STATE, "a method is being loaded or unloaded there", pool.name)
            pool.check_size()
            if temp is not None:
                temp.check_size()
            self._pool = pool
            self._held = pool.held
            self._mark = pool.used
            pool.held = BUSY  # blocks reset and other loads
            self.program = program
            self.name = name
            self.data_map = data_map
            if self._delegates is not None:
                self._delegates.take_error()  # of an interrupted load
                self._delegates.keeps_errors = False
            pool.used = pool.held = library.load(
                program.library, plan, pool.buffer, pool.size, self._mark,
                self.manager.planned_memory.buffers, None if temp is None else temp.buffer,
                None if data_map is None else data_map.libraries, pack_weights,
                None if event_tracer is None else event_tracer.buffer)
            if event_tracer is not None:
                event_tracer.attach(library.count(_picotorch.INSTRUCTIONS))
            self._busy = ""
        except RuntimeError:
            raise fail(MEMORY_ALLOCATION_FAILED, "is too small; "
                       "call from fewer functions or give the firmware more", "stack") from None
        finally:
            try:
                if self._busy:  # it is not loaded
                    spare_error()
                    self._release()
            finally:  # before any jump, where MicroPython raises an interrupt
                self._busy = ""

    def _release(self):
        """Release all memories. Each part may be interrupted, and done again."""
        if self._mark < 0:
            return
        pool = self._pool
        pool.held = BUSY
        self.unloads += 1
        self.library.unload()
        pool.held = self._held
        pool.used = self._mark
        self._mark = -1

    def unload(self):
        """Release the pool; load may follow.

        Raises InvalidState while a method that was loaded into the same pool after this one is there;
        after that, what a backend raised in destroy.
        """
        if self._busy:
            raise self._busy_error()
        if self._mark < 0:
            return
        if self.library.is_running():
            raise fail(INVALID_STATE, "is executing; unload it afterwards", "method")
        end = self.library.end()
        if end >= 0 and self._pool.used != end:
            raise fail(INVALID_STATE, "is not the last one in its pool; "
                       "unload the later ones", "method")
        delegates = self._delegates
        try:
            self._busy = "is being unloaded"
            if delegates is not None:
                delegates.keeps_errors = True
            self._release()
        finally:
            self._busy = ""
        if delegates is not None:
            delegates.raise_error()

    def is_loaded(self):
        """Return True while a method is loaded."""
        return self.library.end() >= 0

    @property
    def plan(self):
        """Return the number of the method in its program."""
        if self.program is None:
            self.library.check()
        return self.program.plan(self.name)

    def _busy_error(self):
        return fail(INVALID_STATE, self._busy, "method", remedy="call it afterwards")

    # ---- inputs and outputs

    def inputs_size(self):
        """Return the number of inputs."""
        return self.library.count(_picotorch.INPUTS)

    def outputs_size(self):
        """Return the number of outputs."""
        return self.library.count(_picotorch.OUTPUTS)

    def set_input(self, value, index):
        """Set input `index`.

        A tensor: any buffer of its bytes, in the program's dim order, or a Tensor, whose sizes a
        dynamic input adopts. It is copied into planned memory, or used in place if the program leaves
        the input unplanned. A number, bool, string or None must be the one that the program was
        exported with. Raises InvalidArgument for another dtype, value or type and for lists,
        NotSupported for unsupported sizes, InvalidState before load and between steps.
        """
        self.library.set_input(value, index)

    def set_inputs(self, values):
        """Set all inputs from a list."""
        if not isinstance(values, list):  # a call less
            need(values, list, "values")
        if len(values) != self.inputs_size():
            raise fail(INVALID_ARGUMENT, "has another length than inputs_size; give an input for each",
                       "inputs")
        for i in range(len(values)):
            self.set_input(values[i], i)

    def set_output_data_ptr(self, buffer, index):
        """Use a buffer as the memory of output `index`, which the program leaves unplanned.

        It needs MethodMeta.output_tensor_meta(index).nbytes() bytes, for the output's largest sizes.
        """
        self.library.set_output(buffer, index)

    def get_output(self, index):
        """Return output `index`: a Tensor in place, a number, bool, string, None, or a ValueList.

        A Tensor is valid until the next get_output of this index. With the heap locked, this also holds
        for a float, a string and a list, and an item of a list is valid until the next item is read.
        Such a string shows the program's own bytes, which must not be freed or overwritten.
        """
        return self.library.get_output(index)

    def get_outputs(self, into=None):
        """Get all outputs, in the list `into` (of the same length) or a new one."""
        count = self.outputs_size()
        if into is None:
            into = [None] * count
        elif not isinstance(into, list):
            need(into, list, "into")
        if len(into) != count:
            raise fail(INVALID_ARGUMENT, "has another length than outputs_size; give an item for each",
                       "outputs")
        for i in range(count):
            into[i] = self.get_output(i)
        return into

    # ---- state

    def get_attribute(self, name):
        """Return the parameter or buffer of this fully qualified name as a Tensor in place.

        A tensor that is not constant may be written. Raises NotFound.

        With the heap locked it is valid until the next get_attribute.
        """
        self._requested = name
        kept = self.kept[0] if _picotorch.heap_locked() else _picotorch.Kept(Tensor(), None)
        return self.library.attribute(name, kept)

    def set_attribute_data_ptr(self, buffer, name):
        """Use a buffer as the memory of a mutable buffer that the program leaves unplanned.

        For programs exported with alloc_mutable_buffers=False. The initial value is the bytes of the
        buffer. The caller owns it: methods may share it, and reset_state does not change it.

        Raises NotFound, InvalidArgument, InvalidState.
        """
        self._requested = name
        self.library.set_attribute(buffer, name)

    def reset_state(self):
        """Reset mutable buffers to their initial values, or to zero, and restart the execution.

        All planned memory, the sizes of tensors and the numbers that instructions write are again as
        after load, so inputs have to be set again.
        """
        self.library.reset_state()

    # ---- execution

    def execute(self):
        """Run all instructions from the first, wherever step stopped.

        Raises InvalidState before load or without memory for an unplanned tensor, InvalidArgument
        without all inputs, and the errors of kernels. After a failure outputs and buffers have the
        contents that the instructions before it left there: reset_state resets buffers to their initial
        values. The inputs stay set, and the next execute starts from the first instruction.
        """
        self.library.execute()

    def step(self):
        """Run one instruction. Raises EndOfMethod when there is none left: call reset_execution."""
        self.library.step()

    def reset_execution(self):
        """Go back to the first instruction."""
        self.library.restart()

    # ---- what it is and needs

    def method_meta(self):
        """Return the MethodMeta of the loaded method."""
        self.library.check()
        return MethodMeta(self.program, self.plan)

    @property
    def metadata(self):
        """Return the MethodMeta of the loaded method, as executorch.runtime names it."""
        return self.method_meta()

    def memory_report(self):
        """Return the used and total bytes: {"method_pool": {...}, "planned": [{...}], "temp": {...}}.

        "packed": bytes that load packed, at the end of the used part of the pool. "used" of
        "temp": bytes that the kernels use; with less they take longer. "preferred": bytes with which
        they are fastest.
        """
        meta = self.method_meta()
        _, packed, temp_used, preferred_temp = self.library.usage()
        planned = self.manager.planned_memory
        temp = self.manager.temp_allocator
        pool = self.manager.method_allocator
        return {
            "method_pool": {"used": pool.used, "size": pool.size},
            "packed": packed,
            "planned": [{"used": meta.memory_planned_buffer_size(i), "size": planned.size(i)}
                        for i in range(min(meta.num_memory_planned_buffers(), len(planned)))],
            "temp": {"used": temp_used, "preferred": preferred_temp, "size": temp.size if temp else 0},
        }

    # ---- what the library calls

    def on_request(self, what, index):
        """Do what the library requests for delegate or output number `index`; return an error code."""
        if what == _picotorch.KEPT:
            return self._make_kept(index)
        if what == _picotorch.FIND:
            for name, backend in backends:
                if self.program.library.has_backend(self.plan, index, name):
                    return OK if self._delegates is None else self._delegates.find(index, backend)
            return NOT_FOUND
        return self._delegates.call(what, index)

    def _make_kept(self, index):
        """Make objects for one more output."""
        if not self._grows or _picotorch.heap_locked():
            raise fail(OUT_OF_RESOURCES, "is beyond max_outputs; give Method a larger one", "output",
                       index)
        if isinstance(self.kept, tuple):
            self.kept = list(self.kept)
        while index >= len(self.kept):
            self.kept.append(new_kept(self))
        return OK

    def on_error(self, code, subject, index, argument, requested, available, what):
        """Raise the error of the library."""
        error = None
        if self._delegates is not None and code != INVALID_STATE:  # which another thread's call may get
            error = self._delegates.take_error()
        if error is None:
            name = None
            remedy = ""
            if subject == schema.SUBJECT_POOL:
                name = self.manager.method_allocator.name
            elif subject == schema.SUBJECT_ATTRIBUTE:
                name = self._requested
            elif subject == schema.SUBJECT_EXTERNAL_TENSOR:
                argument = index
                index = -1
            elif subject == schema.SUBJECT_INPUT and code == NOT_SUPPORTED:
                remedy = "see input_tensor_meta for its sizes"
            elif subject == schema.SUBJECT_KERNEL and code == MEMORY_ALLOCATION_FAILED:
                remedy = "pass more temp memory"
            explained = subject in _EXPLAINED or schema.SUBJECTS[subject] == "instruction"
            error = library_error(code, subject, index, argument, requested, available, what,
                                  self if explained else None, name, remedy)
        try:
            raise error
        finally:
            error = None  # a frame that refers to its own error is a cycle: only a collector frees it

    def explain(self, error):
        """Return details of an error: the missing operators, or the argument that a kernel rejected."""
        kind = error.subject_number
        if kind == schema.SUBJECT_KERNEL or error.subject == "instruction" and error.requested >= 0:
            return MethodMeta(self.program, self.plan).instruction_name(error.index, error.argument)
        if kind == schema.SUBJECT_MISSING_OPERATOR:
            return ", ".join(MethodMeta(self.program, self.plan).missing_operators())
        if kind == schema.SUBJECT_MISSING_BACKEND:
            return ", ".join(MethodMeta(self.program, self.plan).missing_backends())
        if kind == schema.SUBJECT_EXTERNAL_TENSOR:
            # the name of the tensor, and the files in which it was looked for
            info = TensorInfo(self.program.library.tensor(self.plan, _picotorch.VALUES, error.argument))
            files = [] if self.data_map is None else self.data_map.files
            names = [name for name in [file.loader.explain(None) for file in files] if name]
            return "%s in %s" % (info.name(), ", ".join(names)) if names else info.name()
        return ""

    def __repr__(self):
        if not self.is_loaded():
            return "<Method, not loaded>"
        pool = self.manager.method_allocator
        return "<Method %s: pool %dB of %dB, planned %s>" % (
            self.method_meta().name(), pool.used, pool.size,
            [self.manager.planned_memory.size(i) for i in range(len(self.manager.planned_memory))])


def _count(value, default, subject):
    """Return the number of objects to make: `value`, or the default for None."""
    if value is None:
        return default
    need(value, int, subject)
    return min(max(value, 0), _MAX)
