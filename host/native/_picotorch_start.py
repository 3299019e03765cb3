"""The console script's first module, without imports that take time.

Until the command line has its own handler, ctrl-C ends the process as the system does: there is
nothing to clean up, and Python would print where in its imports it was.
"""

import signal


def main() -> None:
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from picotorch.host.cli import main as command_line

    command_line()
