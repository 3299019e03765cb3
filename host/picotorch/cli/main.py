"""Define the command line.

A command's module is imported only for this command, because importing all takes longer than most runs.
The list of commands imports none: the table here has their summaries.
"""

import contextlib
import importlib
import io
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import click

from picotorch import Error
from picotorch.errors import INTERNAL, MEMORY_ALLOCATION_FAILED, fail

from ..host import files, show
from ..host.report import Report
from .command import did_you_mean

INTERRUPTED = 130
_HAS_ALARM = hasattr(signal, "SIGALRM")  # to repeat an interrupt; Windows has none
_INTERRUPTS = (signal.SIGINT, signal.SIGTERM, *((signal.SIGALRM,) if _HAS_ALARM else ()))
_REPEAT = 0.001  # seconds: after the finalizer has returned


class _Listed(NamedTuple):
    """A command: its module, the function in it, and the first sentence of its help."""

    module: str
    function: str
    summary: str


_COMMANDS = {
    "advise": _Listed(
        "advise", "advise",
        "Show what costs most in MODEL, and what to change in the module or its export."),
    "boards": _Listed(
        "boards", "boards_command",
        "List the emulated boards, the connected ones, or chips."),
    "compile": _Listed(
        "compile", "compile_command",
        "Compile MODEL ahead of time to a .ptm file, which runs from flash without a loader."),
    "completion": _Listed(
        "completion", "completion",
        "Print the script that makes a shell complete commands, options and boards."),
    "deploy": _Listed(
        "deploy", "deploy",
        "Copy MODEL to a connected board, and check the copy."),
    "examples": _Listed(
        "examples", "examples_command",
        "List the examples, or copy example NAME into a new FOLDER (by default NAME)."),
    "export": _Listed(
        "export", "export",
        "Export a PyTorch module as a program (.pte), or reduce a program's memory."),
    "firmware": _Listed(
        "firmware", "firmware",
        "Build the firmware of a board with only the kernels that some models need."),
    "flash": _Listed(
        "deploy", "flash",
        "Write FIRMWARE to the flash of a board, and check what was written."),
    "inspect": _Listed(
        "inspect", "inspect",
        "List the contents of MODEL: methods, signature, operators, memory plan, instructions."),
    "library": _Listed(
        "library", "library",
        "Write the C library for a build system, without a model."),
    "natmod": _Listed(
        "firmware", "natmod",
        "Build the native module, which adds picotorch to stock MicroPython without flashing."),
    "parity": _Listed(
        "parity", "parity_command",
        "Compare the outputs and the method pool of a board with the twin's, to the bit."),
    "profile": _Listed(
        "profile", "profile_command",
        "Measure each instruction of MODEL: machine instructions on an emulated board, time on the "
        "twin, processor cycles or time on a connected board."),
    "repl": _Listed(
        "boards", "repl",
        "Open MicroPython's prompt on an emulated board, with files and picotorch."),
    "report": _Listed(
        "report", "report",
        "Write a page of HTML about MODEL: does it fit, where do memory and time go, what to change."),
    "run": _Listed(
        "run", "run",
        "Execute a method of MODEL once, and print its outputs and what it needed."),
    "selftest": _Listed(
        "deploy", "selftest",
        "Test models, error handling and parity on a connected board, in about a minute."),
    "size": _Listed(
        "size", "size",
        "Show how much memory a method of MODEL needs, to the byte, and which chips and boards it "
        "fits."),
}


class _Group(click.Group):
    """Import a command when it is requested."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        listed = _COMMANDS[cmd_name]
        module = importlib.import_module(f".{listed.module}", __package__)
        command: click.Command = getattr(module, listed.function)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write each command with its whole summary."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, _COMMANDS[name].summary) for name in self.list_commands(ctx)])

    def resolve_command(self, ctx: click.Context,
                        args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        """Suggest similar names for a name that is not a command."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            text = error.message + did_you_mean(args[0], self.list_commands(ctx))
            raise click.UsageError(text, error.ctx) from None


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"],
                                          "max_content_width": 100})
@click.version_option(package_name="picotorch")
def cli() -> None:
    """Run PyTorch models on microcontrollers: ExecuTorch programs (.pte) on the host twin, on emulated
    boards and on connected ones.

    \b
    Example:
      picotorch run model.pte --board mps2-an386
    """  # noqa: D205 -- click prints it


# ---- errors


def _format_error(error: Error) -> str:
    """Return the text of an error, with the option that helps."""
    option = getattr(error, "option", None)  # see Command.invoke
    text = f"{error.message} ({option})" if option else error.message
    return show.printable(" ".join(text.split()))


def _print_error(error: Error, as_json: bool) -> int:
    """Print an error as one line on stderr, or as an object on stdout."""
    if as_json:
        report: Report | None = getattr(error, "report", None)
        show.as_json({**(report.to_json() if report else {}),
                      "error": show.error(error.code, error.name, _format_error(error))})
    else:
        click.echo(f"{error.name} (0x{error.code:02X}): {_format_error(error)}", err=True)
    return 1


def _print_usage_error(error: click.UsageError, as_json: bool) -> int:
    if as_json:
        text = " ".join(error.format_message().split()).rstrip(".")
        command = error.ctx.command_path if error.ctx else "picotorch"
        show.as_json({"error": show.error(None, "UsageError", f"{text}; see {command} --help")})
    else:
        error.show()
    return error.exit_code


def _interrupted(as_json: bool) -> int:
    if as_json:
        show.as_json({"error": show.error(None, "Interrupted", "stopped by ctrl-C or SIGTERM")})
    else:
        click.echo("Interrupted", err=True)
    return INTERRUPTED


def _drop_output() -> None:
    """Discard the rest of stdout, on which Python would fail again at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _colour() -> bool | None:
    """Return False if NO_COLOR is set (no-color.org), else None: colours on a terminal only."""
    return False if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" else None


def _call(arguments: Sequence[str], as_json: bool) -> Any:
    try:
        return cli.main(arguments, prog_name="picotorch", standalone_mode=False, color=_colour())
    except click.UsageError as error:
        return _print_usage_error(error, as_json)
    except (click.Abort, KeyboardInterrupt):
        return _interrupted(as_json)
    except BrokenPipeError:
        _drop_output()
        return 1
    except Error as error:
        return _print_error(error, as_json)
    except OSError as error:
        refused = files.access_failed(error, error.filename or "stdout")
        _drop_output()
        return _print_error(refused, as_json and error.filename is not None)
    except MemoryError:
        return _print_error(fail(MEMORY_ALLOCATION_FAILED, "this computer does not have enough memory",
                              remedy="close other programs"), as_json)
    except Exception as error:
        return _print_error(fail(INTERNAL, f"{type(error).__name__}: {error}",
                              remedy="this is a bug in picotorch: please report it"), as_json)


@contextlib.contextmanager
def _signals() -> Iterator[None]:
    """Make SIGTERM act like ctrl-C: as an exception that ends emulators and removes temporary folders.

    Restore the handlers at the end. Ignored signals stay ignored.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in _INTERRUPTS}
    hook = sys.unraisablehook

    def repeat(dropped: "sys.UnraisableHookArgs") -> None:
        """Interrupt a little later if Python drops an interrupt.

        It drops every exception of finalizers and of weak references' callbacks. Imports have such
        callbacks, so the first tenth of a second of a command is full of them.
        """
        if _HAS_ALARM and issubclass(dropped.exc_type, KeyboardInterrupt):
            signal.setitimer(signal.ITIMER_REAL, _REPEAT)
        else:
            hook(dropped)

    try:
        sys.unraisablehook = repeat
        for number, handler in before.items():
            if handler != signal.SIG_IGN:
                signal.signal(number, signal.default_int_handler)
        yield
    finally:
        sys.unraisablehook = hook
        try:
            if _HAS_ALARM:
                signal.setitimer(signal.ITIMER_REAL, 0)
        finally:  # an interrupt may arrive here, too
            for number, handler in before.items():
                signal.signal(number, handler)


def _prepare_output() -> None:
    """Escape characters that the terminal cannot encode, and hide warnings of libraries."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    if not sys.warnoptions:
        warnings.simplefilter("ignore")


def main(arguments: list[str] | None = None) -> None:
    """Run the command line. Exit with 0, 1 for an error, 2 for wrong usage, 130 for a signal."""
    arguments = sys.argv[1:] if arguments is None else arguments
    as_json = "--json" in arguments
    status = INTERRUPTED
    try:
        with _signals(), warnings.catch_warnings():
            _prepare_output()
            status = _call(arguments, as_json)
    except KeyboardInterrupt:  # while the handlers change
        _interrupted(as_json)
    sys.exit(status or 0)
