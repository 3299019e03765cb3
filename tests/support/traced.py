"""Visit the places of the runtime's Python where another thread or a handler of signals may run."""

import dis
import sys
from pathlib import Path

import _picotorch
import picotorch
import picotorch.runtime

RUNTIME = (str(Path(picotorch.__file__).parent), str(Path(picotorch.runtime.__file__).parent),
           _picotorch.__file__)
# places where CPython handles signals, besides the start of a function
CHECKING = {dis.opmap[name] for name in dis.opmap if name.startswith(("CALL", "JUMP_BACKWARD"))}


def traced(function, visit):
    """Call function() and return its result. visit(code, position) is called at each place of the
    runtime where CPython handles signals."""

    def trace(frame, event, argument):
        code = frame.f_code
        if not code.co_filename.startswith(RUNTIME) or code.co_name == "handle_signals":
            return None  # skips places that depend on the clock
        opcodes = code.co_code
        last = None

        def at_opcode(frame, event, argument):
            nonlocal last
            if event == "opcode":
                if last in CHECKING:
                    visit(code, frame.f_lasti)
                last = opcodes[frame.f_lasti]
            elif event == "exception":
                last = None
            return at_opcode

        frame.f_trace_opcodes = True
        visit(code, -1)
        return at_opcode

    sys.settrace(trace)
    try:
        return function()
    finally:
        sys.settrace(None)
