"""The command line. The commands are in commands.py of each subject's package."""

import os
import signal
import sys
import threading
from pathlib import Path

import click
from picotorch import Error
from picotorch.errors import ACCESS_FAILED, INTERNAL, MEMORY_ALLOCATION_FAILED, NOT_FOUND, fail

from . import examples, options, show
from .boards import commands as boards
from .compile import commands as compile_
from .connected import commands as connected
from .export import commands as export
from .firmware import commands as firmware
from .inspect import commands as inspect
from .profile import commands as profile
from .run import commands as run
from .size import commands as size

INTERRUPTED = 130

_HINTS = {"method pool": "--pool-size", "planned buffer": "--planned-size",
          "temp memory": "--temp-size"}


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="picotorch")
def cli():
    """Run PyTorch models on microcontrollers: ExecuTorch programs (.pte) on the host twin, on emulated
    boards and on connected ones.

    \b
    Example:
      picotorch run model.pte --board mps2-an386
    """


@cli.command("examples")
@click.argument("name", required=False, metavar="[NAME")
@click.argument("folder", required=False, type=click.Path(path_type=Path), metavar="[FOLDER]]")
@options.as_json
def examples_command(name, folder, as_json):
    """List the examples, or copy example NAME into a new FOLDER (by default NAME).

    \b
    Examples:
      picotorch examples
      picotorch examples gesture my_gesture
    """
    if name is None:
        show.entry(examples.examples(), as_json, examples.show_list)
    else:
        show.entry(examples.copy(name, folder or Path(name)), as_json, examples.show_copied)


for command in (
    run.run, inspect.inspect, size.size, run.parity_command, profile.profile_command,
    compile_.compile_command, firmware.firmware, firmware.natmod, export.export, boards.repl,
    boards.boards_command, connected.deploy, connected.flash, connected.selftest,
):
    cli.add_command(command)


# ---- errors


def _complain(error):
    """Print the error as one line on stderr."""
    text = show.printable(" ".join(str(error).split()))
    for subject, option in _HINTS.items():
        if error.code == MEMORY_ALLOCATION_FAILED and error.message.startswith(subject):
            text += f" ({option})"
    if error.code == NOT_FOUND and "no method of this name" in error.message:
        text += " (--method)"
    click.echo(text, err=True)
    return 1


def _drop_output():
    """Discard the rest of stdout, on which Python would fail again at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _call(arguments):
    try:
        return cli.main(arguments, prog_name="picotorch", standalone_mode=False)
    except click.UsageError as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("Interrupted", err=True)
        return INTERRUPTED
    except BrokenPipeError:
        _drop_output()
        return 1
    except Error as error:
        return _complain(error)
    except OSError as error:
        _drop_output()
        return _complain(fail(ACCESS_FAILED, error.strerror or str(error), error.filename))
    except MemoryError:
        return _complain(fail(MEMORY_ALLOCATION_FAILED, "the host has too little memory"))
    except Exception as error:
        return _complain(fail(INTERNAL, f"{type(error).__name__}: {error}",
                              remedy="this is a fault of picotorch: please report it"))


def main(arguments: list[str] | None = None) -> None:
    """Run the console script: exits with 0, 1 for an error, 2 for wrong usage. SIGTERM acts like
    ctrl-C, which leaves no emulator and no compiler running."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(_call(arguments) or 0)


