"""Define the command line.

A command's module is imported only for this command, because importing all takes longer than most runs.
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
from pathlib import Path
from typing import Any

import click

from picotorch import Error
from picotorch.errors import INTERNAL, MEMORY_ALLOCATION_FAILED, fail

from ..host import files, show
from ..host.report import Report
from . import options
from .command import Choice, Command, did_you_mean

INTERRUPTED = 130

_SHELLS = ("bash", "zsh", "fish")

# For each command: its module, and the function in it.
_COMMANDS = {
    "advise": ("advise", "advise"),
    "boards": ("boards", "boards_command"),
    "compile": ("compile", "compile_command"),
    "deploy": ("deploy", "deploy"),
    "export": ("export", "export"),
    "firmware": ("firmware", "firmware"),
    "flash": ("deploy", "flash"),
    "inspect": ("inspect", "inspect"),
    "library": ("library", "library"),
    "natmod": ("firmware", "natmod"),
    "parity": ("parity", "parity_command"),
    "profile": ("profile", "profile_command"),
    "repl": ("boards", "repl"),
    "report": ("report", "report"),
    "run": ("run", "run"),
    "selftest": ("deploy", "selftest"),
    "size": ("size", "size"),
}


class _Group(click.Group):
    """Import a command when it is requested."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*_COMMANDS, *self.commands])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return super().get_command(ctx, cmd_name)
        module, function = _COMMANDS[cmd_name]
        command: click.Command = getattr(importlib.import_module(f".{module}", __package__), function)
        return command

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


@cli.command("examples", cls=Command)
@click.argument("name", required=False, metavar="[NAME")
@click.argument("folder", required=False, type=click.Path(path_type=Path), metavar="[FOLDER]]")
@options.as_json
def examples_command(name: str | None, folder: Path | None, as_json: bool) -> None:
    """List the examples, or copy example NAME into a new FOLDER (by default NAME).

    \b
    Examples:
      picotorch examples
      picotorch examples gesture my_gesture
    """
    from . import examples

    if name is None:
        show.report(examples.examples(), as_json, examples.show_list)
    else:
        show.report(examples.copy(name, folder or Path(name)), as_json, examples.show_copied)


@cli.command("completion", cls=Command)
@click.argument("shell", type=Choice(_SHELLS), metavar="|".join(_SHELLS))
def completion_command(shell: str) -> None:
    """Print the script that makes a shell complete commands, options and boards.

    \b
    Examples:
      picotorch completion bash >> ~/.bashrc
      picotorch completion zsh >> ~/.zshrc
      picotorch completion fish > ~/.config/fish/completions/picotorch.fish
    """
    from click import shell_completion

    found = shell_completion.get_completion_class(shell)
    assert found is not None  # click has a completion class for each shell of _SHELLS
    click.echo(found(cli, {}, "picotorch", "_PICOTORCH_COMPLETE").source())


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
                              remedy="this is a fault of picotorch: please report it"), as_json)


@contextlib.contextmanager
def _signals() -> Iterator[None]:
    """Make SIGTERM act like ctrl-C: as an exception that ends emulators and removes temporary folders.

    Restore the handlers at the end.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        for number, handler in before.items():
            if handler != signal.SIG_IGN:
                signal.signal(number, signal.default_int_handler)
        yield
    finally:
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
