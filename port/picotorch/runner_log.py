"""What a run says: the lines that users of ExecuTorch's arm_executor_runner know.

    log = RunnerLog()           # or RunnerLog(lines.append)
    log.program(len(model), program.num_methods(), "forward")

Formatting allocates: under MicroPython with the heap unlocked only.
"""

from .platform import log
from .schema import ERROR_NAMES

SHOWN = 16  # elements of an output

_KINDS = {"Float": "float", "Double": "double", "Half": "half", "BFloat16": "bfloat16",
          "Bool": "bool", "Byte": "byte", "Char": "char", "Short": "short", "Int": "int",
          "Long": "long"}
_REAL = ("Float", "Double", "Half", "BFloat16")


def percent(used, size):
    return 100 * used // size if size else 0


class RunnerLog:
    """Writes each line to sink(text), by default to the platform's log."""

    def __init__(self, sink=None):
        self.sink = sink if sink is not None else log

    def info(self, text):
        self.sink("I [picotorch] " + text)

    def error(self, text):
        self.sink("E [picotorch] " + text)

    # ---- loading

    def program(self, size, methods, name):
        """size: bytes of the .pte file; name: of the method that will run."""
        self.info("Model PTE file loaded. Size: %d bytes." % size)
        self.info("Model buffer loaded, has %d methods" % methods)
        self.info("Running method %s" % name)

    def memories(self, pool, planned, temp):
        """pool, temp: bytes; planned: bytes of each planned buffer."""
        self.info("Setup Method allocator pool. Size: %d bytes." % pool)
        for i in range(len(planned)):
            self.info("Setting up planned buffer %d, size %d." % (i, planned[i]))
        self.info("Setup temp allocator pool. Size: %d bytes." % temp)

    def loading(self):
        self.info("Loading method.")

    def loaded(self, name):
        self.info("Method '%s' loaded." % name)

    def load_failed(self, name, code):
        self.error("Loading of method %s failed with status 0x%x (%s)" % (
            name, code, ERROR_NAMES.get(code, "Unknown")))

    # ---- execution

    def preparing_inputs(self):
        self.info("Preparing inputs...")

    def inputs_prepared(self):
        self.info("Input prepared.")

    def starting(self):
        self.info("Starting the model execution...")

    def executed(self):
        self.info("Model executed successfully.")

    def execute_failed(self, name, code):
        self.error("Execution of method %s failed with status 0x%x (%s)" % (
            name, code, ERROR_NAMES.get(code, "Unknown")))

    def instructions(self, verify, load, set_inputs, execute, get_outputs):
        """Instructions of the processor, counted: of Program.load and the methods of Method."""
        self.info("Instructions: verify %d, load %d, set inputs %d, execute %d, get outputs %d" % (
            verify, load, set_inputs, execute, get_outputs))

    # ---- afterwards

    def memory_report(self, size, report):
        """size: bytes of the .pte file; report: of Method.memory_report."""
        self.info("model_pte_program_size:    %d bytes." % size)
        self._usage("method_allocator_used:     ", report["method_pool"])
        for i in range(len(report["planned"])):
            self._usage("planned_buffer_%d_used:     " % i, report["planned"][i])
        self._usage("temp_allocator_used:       ", report["temp"])

    def _usage(self, label, usage):
        used, size = usage["used"], usage["size"]
        self.info("%s%d / %d  free: %d ( used: %d %% )" % (
            label, used, size, size - used, percent(used, size)))

    def outputs(self, outputs):
        """outputs: Tensors, numbers, bools, None, in order."""
        self.info("%d outputs:" % len(outputs))
        for i in range(len(outputs)):
            output = outputs[i]
            if hasattr(output, "data"):
                self._tensor(i, output)
            else:
                self.sink("Output[%d]: %s" % (i, output))

    def _tensor(self, i, tensor):
        kind = _KINDS.get(tensor.dtype)
        data = tensor.data
        if kind is None:
            self.sink("Output[%d]: %d bytes of %s" % (i, len(data), tensor.dtype))
            return
        for k in range(min(SHOWN, len(data))):
            self.sink("Output[%d][%d]: (%s) %s" % (i, k, kind, _text(tensor.dtype, tensor.number(k))))
        if len(data) > SHOWN:
            self.sink("Output[%d]: %d more" % (i, len(data) - SHOWN))


def _text(dtype, value):
    if dtype == "Bool":
        return "true" if value else "false"
    return "%f" % value if dtype in _REAL else "%d" % value
