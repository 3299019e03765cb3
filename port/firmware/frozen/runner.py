"""Runs the model of the job as the settings say, with the heap locked from load to get_output.

Sections: model; data0, data1 ... (.ptd files); in0, in1 ... (bytes of the input tensors); settings:
method, pack_weights (none or pool), whole_pool (0 or 1), trace (0 or 1), pool_size, temp_size,
planned0, planned1 ... (bytes), input0 ... (int:3, float:0.5, bool:1, str:x or none for inputs that are
no tensors), sizes0 ... (2,3 for dynamic inputs), further (number of executions behind the first one;
their inputs are called in0_1, in1_1 ..., in0_2 ...). Writes the files report (lines key=value), pool
(the records of the loaded method, with whole_pool also the packed weights), out0, out1 ..., out0_1 ...,
sizes0 ... (int32, of dynamic outputs) and, with trace, events (the memory of the EventTracer) for the
host. host/picotorch/run/runner_files.py is the other end.

What differs between the firmware and a board that the host talks to is in the module board: board.py
beside this file, or host/picotorch/run/device/on_board/board.py, which the host sends with this file.
"""

import gc
import struct

import board
import job
import micropython
from picotorch import (
    BufferDataLoader,
    Error,
    HierarchicalAllocator,
    MemoryAllocator,
    MemoryManager,
    Method,
    Program,
    Tensor,
    ValueList,
    from_blob,
)
from picotorch.schema import SUBJECTS

# The measured phases, in the order of the counts
PHASES = ("verify", "load", "set_inputs", "execute", "get_outputs")


def _data_map(sections):
    """Return the map of the .ptd files, None if there are no such files."""
    if "data0" not in sections:
        return None
    from picotorch import FlatTensorDataMap, MergedDataMap

    maps = []
    while "data%d" % len(maps) in sections:
        maps.append(FlatTensorDataMap.load(BufferDataLoader(sections["data%d" % len(maps)])))
    return maps[0] if len(maps) == 1 else MergedDataMap.load(maps)


def _constant_input(text):
    if text == "none":
        return None
    kind, value = text.split(":", 1)
    if kind == "str":
        return value
    if kind == "bool":
        return bool(int(value))
    return float(value) if kind == "float" else int(value)


def _changeable(data, meta, i, arena):
    """Return an input in place, or a copy if the method may change it and returns it as an output."""
    outputs = [meta.output_value(k) for k in range(meta.num_outputs())]
    if meta.input_tensor_meta(i).is_memory_planned() or meta.input_value(i) not in outputs:
        return data
    copy = arena.take(len(data), "input", i)
    copy[:] = data
    return copy


class Run:
    """Run a model: set up in __init__, then execute in `locked`, which allocates nothing."""

    def __init__(self, sections, settings):
        self.counts = bytearray(4 * len(PHASES) * len(board.COUNTERS))
        self.program = _load_program(BufferDataLoader(sections["model"]), self.counts)
        self.name = settings["method"]
        self.pack_weights = settings["pack_weights"] == "pool"
        self.whole_pool = settings.get("whole_pool") == "1"
        self.meta = meta = self.program.method_meta(self.name)
        self.data_map = _data_map(sections)
        arenas = board.planned_arenas(meta.num_memory_planned_buffers())
        planned = HierarchicalAllocator([
            arenas[i].take(int(settings["planned%d" % i]), "planned buffer", i)
            for i in range(meta.num_memory_planned_buffers())])
        pool = board.Arena("pool").take(int(settings["pool_size"]), "method pool")
        temp = board.Arena("temp").take(int(settings["temp_size"]), "temp memory")
        self.manager = MemoryManager(MemoryAllocator(pool), planned,
                                     MemoryAllocator(temp, "temp memory"))
        self.inputs = _inputs(meta, sections, settings, "", arenas[0])
        self.further = [_inputs(meta, sections, settings, "_%d" % k, arenas[0])
                        for k in range(1, int(settings["further"]) + 1)]
        self.executed = 0
        self.results = [None] * meta.num_outputs()
        self.unplanned = [
            [i, arenas[0].take(meta.output_tensor_meta(i).nbytes(), "output", i)]
            for i in meta.unplanned_outputs()]
        self.state = [[info.name(), arenas[0].take(info.nbytes(), info.name())]
                      for info in meta.unplanned_attributes()]
        for _, memory in self.state:
            memory[:] = bytes(len(memory))
        self.tracer = None
        if settings.get("trace") == "1":
            from picotorch import EventTracer

            self.tracer = EventTracer(arenas[0].take(EventTracer.nbytes(meta), "event tracer"))
        self.method = Method(self.manager, meta.num_outputs())
        self.set_inputs = self.method.set_inputs  # made before the heap is locked
        self.get_outputs = self.method.get_outputs
        self.stack_load = 0
        self.stack_execute = 0
        self.error = None

    def locked(self):
        """Load the method, set its inputs, execute it and get its outputs."""
        # Local names for the counted functions, as counter.py requires
        start = board.count_start
        stop = board.count_stop
        counts = self.counts
        method = self.method
        set_inputs = self.set_inputs
        execute = method.execute
        get_outputs = self.get_outputs
        inputs = self.inputs
        results = self.results
        try:
            board.stack_paint()
            start()
            try:
                method.load(self.program, self.name, self.pack_weights, self.data_map, self.tracer)
            finally:
                stop(counts, 4)
                self.stack_load = board.stack_used()
            for i, memory in self.unplanned:
                method.set_output_data_ptr(memory, i)
            for name, memory in self.state:
                method.set_attribute_data_ptr(memory, name)
            start()
            set_inputs(inputs)
            stop(counts, 8)
            board.stack_paint()
            start()
            try:
                execute()
            finally:
                stop(counts, 12)
                self.stack_execute = board.stack_used()
            start()
            get_outputs(results)
            stop(counts, 16)
            self.executed = 1
        except Error as error:
            self.error = error

    def locked_again(self):
        """Run the next of the further executions."""
        try:
            self.method.set_inputs(self.further[self.executed - 1])
            self.method.execute()
            self.method.get_outputs(self.results)
            self.executed += 1
        except Error as error:
            self.error = error

    def write_outputs(self, suffix):
        """Write the outputs that are tensors, and the sizes of dynamic ones."""
        for i in range(len(self.results)):
            if isinstance(self.results[i], Tensor):
                board.write_file("out%d%s" % (i, suffix), self.results[i].data)
                if self.meta.is_output_dynamic(i):
                    board.write_file("sizes%d%s" % (i, suffix), self.results[i].raw_sizes())


def _load_program(loader, counts):
    start = board.count_start
    stop = board.count_stop
    load = Program.load
    start()
    program = load(loader)
    stop(counts, 0)
    return program


def _inputs(meta, sections, settings, suffix, arena):
    """Return the inputs of one execution."""
    inputs = []
    for i in range(meta.num_inputs()):
        key = "in%d%s" % (i, suffix)
        inputs.append(_tensor_input(_changeable(sections[key], meta, i, arena), meta, i,
                                    settings.get("sizes%d%s" % (i, suffix)))
                      if key in sections else _constant_input(settings["input%d%s" % (i, suffix)]))
    return inputs


def _tensor_input(data, meta, i, sizes):
    """Return the bytes of an input, or a Tensor for a dynamic input with its sizes "2,3"."""
    if sizes is None:
        return data
    info = meta.input_tensor_meta(i)
    return from_blob(data, [int(size) for size in sizes.split(",") if size], info.scalar_type(),
                     info.dim_order())


def _write_results(run, report):
    """Write lines of the report, and files, as far as the run came."""
    for k in range(len(board.COUNTERS)):
        for i in range(len(PHASES) if run.error is None else 2):
            count = struct.unpack_from("<I", run.counts, 4 * (k * len(PHASES) + i))[0]
            report.append("%s%s=%d" % (board.COUNTERS[k], PHASES[i], count))
    report.append("stack_load=%d" % run.stack_load)
    if run.method.is_loaded():
        pool = run.manager.method_allocator
        usage = run.method.memory_report()
        packed = usage["packed"]
        report.append("packed=%d" % packed)
        left_out = 0 if run.whole_pool else packed
        board.write_file("pool", pool.buffer[: pool.used - left_out])
        planned = usage["planned"]
        for name, each in [["pool", usage["method_pool"]], ["temp", usage["temp"]]] + [
                ["planned%d" % i, planned[i]] for i in range(len(planned))]:
            report.append("%s_used=%d" % (name, each["used"]))
            report.append("%s_size=%d" % (name, each["size"]))
    if run.error is None:
        report.append("stack_execute=%d" % run.stack_execute)
        if run.tracer is not None:
            board.write_file("events", run.tracer.buffer)
        run.write_outputs("")
        for i in range(len(run.results)):
            if not isinstance(run.results[i], Tensor):
                report.append("output%d=%r" % (i, _plain(run.results[i])))


def _plain(output):
    """Convert lists of tensors to lists of lists of their elements."""
    if isinstance(output, ValueList):
        return [_plain(item) for item in output]
    return list(output.data) if isinstance(output, Tensor) else output


def _with_locked_heap(step):
    micropython.heap_lock()
    try:
        step()
    finally:
        micropython.heap_unlock()


def _run(sections, report):
    """Run the executions of the job. Return the Error of the failed execution, or None."""
    run = Run(sections, job.settings(sections["settings"]))
    gc.collect()
    report.append("heap_free=%d" % gc.mem_free())
    step = run.locked  # created before the heap is measured
    before = gc.mem_alloc()
    _with_locked_heap(step)
    report.append("heap=%d" % (gc.mem_alloc() - before))
    _write_results(run, report)
    while run.error is None and run.executed <= len(run.further):
        gc.collect()
        _with_locked_heap(run.locked_again)
        if run.error is None:
            run.write_outputs("_%d" % (run.executed - 1))
    report.append("executed=%d" % run.executed)
    return run.error


def _subject_of(error):
    """Return the index of the subject of an error; 0 if it has none."""
    return error.subject_number or (SUBJECTS.index(error.subject) if error.subject in SUBJECTS else 0)


def main(sections):
    """Run the job of the sections. Return the exit status: 1 for an error, see the report."""
    report = []
    try:
        error = _run(sections, report)
    except Error as raised:
        error = raised
    if error is not None:
        report.append("code=%d" % error.code)
        report.append("message=%s" % error.message.replace("\n", " "))
        report.append("subject=%d" % _subject_of(error))
    board.write_file("report", "\n".join(report).encode())
    return 0 if error is None else 1
