"""Start the console script, without imports that are slow.

Until the command line has its own handler, ctrl-C ends the process as the system does: there is
nothing to clean up, and Python would print where in its imports it was.
"""

import os
import signal


def main() -> None:
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    # Of numpy's linear algebra, which no command uses: it would start a thread for each core.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from picotorch.cli.main import main as command_line

    command_line()
