"""Define arguments and options that several commands share, and their types."""

import dataclasses
import functools
import importlib
import math
import re
import sys
from collections.abc import Callable, Sequence, Set
from typing import Any, TypeVar

import click

from picotorch import Backend, Error, register_backend, unregister_backend
from picotorch.memory import LIMIT

from ..boards import chips
from ..host.inputs import SEED
from ..host.optimize import LEVELS, Optimize
from ..host.quantities import parse_bytes, parse_clock, parse_memory, parse_seconds
from ..host.request import ANSWER_TIMEOUT, RUN_TIMEOUT
from ..host.twin import BOARD as HOST
from ..run.run_request import RunRequest
from .command import Choice, InputFile, OutputFile, ParamType, did_you_mean

LAST_PORT = 65535
_Function = TypeVar("_Function", bound=Callable[..., Any])  # the function of a command


class Quantity(ParamType):
    """Accept a number with a unit, as a function of host/quantities.py parses it."""

    def __init__(self, name: str, parse: Callable[[str], float]) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            return self._parse(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


class Bytes(Quantity):
    """Accept bytes such as 65536, 64K or 1M, at most `maximum`."""

    def __init__(self, maximum: int = LIMIT, parse: Callable[[str], int] = parse_bytes) -> None:
        super().__init__("BYTES", parse)
        self.maximum = maximum

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        count = int(super().convert(value, param, ctx))
        if count > self.maximum:
            self.fail(f"{value} is more than {self.maximum} bytes", param, ctx)
        return count


CLOCK = Quantity("CLOCK", parse_clock)
MEMORY = Bytes(1 << 32, parse_memory)  # the size of a chip's memory; a core can address no more


class ChipName(ParamType):
    """Accept a chip of boards/chips.toml."""

    name = "CHIP"

    def convert(self, value: Any, param: click.Parameter | None,
                ctx: click.Context | None) -> chips.Chip:
        found = chips.load_chips()
        if isinstance(value, str) and value.lower() in found:
            return found[value.lower()]
        self.fail(f"{value!r} is not in the table of chips.{did_you_mean(value, found)} List it with "
                  "picotorch boards --chips, or describe a chip with --ram, --flash, --core and "
                  "--clock", param, ctx)

    @staticmethod
    def key(chip: chips.Chip) -> str:
        return chip.name


class Core(Choice):
    """Accept a core of chips.CORES, by any of its usual names."""

    def __init__(self) -> None:
        super().__init__(chips.CORES)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return super().convert(chips.core_of(value) or value, param, ctx)


class PlannedSize(ParamType):
    """Accept I=N: N bytes for planned buffer I."""

    name = "I=N"

    def convert(self, value: str, param: click.Parameter | None,
                ctx: click.Context | None) -> tuple[int, int]:
        index, equals, count = value.partition("=")
        try:
            bytes_of_buffer = parse_bytes(count)
        except ValueError:
            bytes_of_buffer = LIMIT + 1
        if not re.fullmatch("[0-9]{1,9}", index) or bytes_of_buffer > LIMIT:
            self.fail(f"{value!r} is not I=N: bytes N (1024 or 1K, at most {LIMIT}) of planned buffer "
                      "I, counted from 0", param, ctx)
        return int(index), bytes_of_buffer

    @staticmethod
    def key(value: tuple[int, int]) -> int:
        return value[0]


class Listen(ParamType):
    """Accept pty or tcp:PORT."""

    name = "pty|tcp:PORT"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        found = re.fullmatch(r"pty|tcp:([0-9]{1,5})", value)
        if not found or int(found[1] or 0) > LAST_PORT:
            self.fail(f"{value!r} is not pty or tcp:PORT, PORT at most {LAST_PORT}", param, ctx)
        return value


class InputSizes(ParamType):
    """Accept I=2,3: sizes 2, 3 of input I."""

    name = "I=2,3"

    def convert(self, value: str, param: click.Parameter | None,
                ctx: click.Context | None) -> tuple[int, tuple[int, ...]]:
        found = re.fullmatch(r"([0-9]{1,9})=(|[0-9]{1,9}(?:,[0-9]{1,9})*)", value)
        if not found:
            self.fail(f"{value!r} is not I=2,3: sizes of input I, counted from 0", param, ctx)
        return int(found[1]), tuple(map(int, found[2].split(","))) if found[2] else ()

    @staticmethod
    def key(value: tuple[int, tuple[int, ...]]) -> int:
        return value[0]


class Bounded(click.FloatRange):
    """Accept a number between bounds that is not nan."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not finite", param, ctx)
        return number


class Level(Choice):
    """Accept size, balanced or speed, and convert it to an Optimize."""

    def __init__(self) -> None:
        super().__init__(list(LEVELS))

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return value if isinstance(value, Optimize) else LEVELS[super().convert(value, param, ctx)]


class BackendClass(ParamType):
    """Accept [NAME=]MODULE:CLASS as (name, class); import the module as from the working folder."""

    name = "[NAME=]MODULE:CLASS"

    def convert(self, value: str, param: click.Parameter | None,
                ctx: click.Context | None) -> tuple[str, type[Backend]]:
        found = re.fullmatch(r"(?:([^=:]+)=)?([\w.]+):(\w+)", value)
        if not found:
            self.fail(f"{value!r} is not {self.name}", param, ctx)
        name, module, class_name = found.groups()
        sys.path.insert(0, "")
        try:
            return name or class_name, getattr(importlib.import_module(module), class_name)
        except Exception as error:  # the module may raise anything
            self.fail(f"{value}: {type(error).__name__}: {error}", param, ctx)
        finally:
            sys.path.remove("")


def _register(ctx: click.Context, param: click.Parameter,
              classes: tuple[tuple[str, type[Backend]], ...]) -> None:
    """Register the backends until the command ends."""
    for name, backend in classes:
        try:
            register_backend(name, backend())
        except Error as error:
            raise click.BadParameter(str(error), ctx, param) from None
        except Exception as error:  # the class may raise anything
            raise click.BadParameter(f"{name}: {type(error).__name__}: {error}", ctx, param) from None
        ctx.call_on_close(lambda name=name: unregister_backend(name))


def model(command: _Function) -> _Function:
    return click.argument("model", type=InputFile())(command)


def method(command: _Function) -> _Function:
    return click.option("--method", default="forward", show_default=True, metavar="M",
                        help="The method of the program.")(command)


def inputs(command: _Function) -> _Function:
    command = click.option("--seed", type=click.IntRange(min=0), default=SEED, show_default=True,
                           help="Seed of random inputs.")(command)
    command = click.option("--sizes", type=InputSizes(), multiple=True,
                           help="Sizes of random input I, if it is dynamic.  "
                                "[default: its largest]")(command)
    return click.option("--inputs", type=InputFile(), metavar="IN.NPZ",
                        help="Read the inputs from this file: arrays in0, in1 ...; otherwise they are "
                             "random. A file that unpacks to over 1 MB more than the method needs is "
                             "rejected.")(command)


def quantize(command: _Function) -> _Function:
    return click.option("--quantize", is_flag=True,
                        help="Quantize float arrays for inputs that are integers, by the scale and "
                             "zero point of the program.")(command)


def data(command: _Function) -> _Function:
    return click.option("--data", "files", multiple=True, type=InputFile(),
                        metavar="WEIGHTS.PTD", help="A data file of external tensors; repeat it for "
                        "more.")(command)


def backend(command: _Function) -> _Function:
    return click.option("--backend", type=BackendClass(), multiple=True, expose_value=False,
                        callback=_register, metavar="[NAME=]MODULE:CLASS",
                        help="Use this Python class on the twin as the backend of delegates of this "
                             "name (by default the name of the class); repeat it for more.")(command)


def as_json(command: _Function) -> _Function:
    return click.option("--json", "as_json", is_flag=True,
                        help="Print one JSON object instead of text.")(command)


def report(command: _Function) -> _Function:
    return click.option("--report", "page", type=OutputFile(".html"), metavar="OUT.HTML",
                        help="Also write a page about the model, as picotorch report does.")(command)


def pack_weights(command: _Function) -> _Function:
    return click.option("--pack-weights", is_flag=True,
                        help="Let kernels store constant weights in the method pool, packed for their "
                             "loops: faster, with a larger pool.")(command)


def optimize(text: str) -> Callable[[_Function], _Function]:
    return click.option("--optimize", type=Level(), default="balanced", show_default=True,
                        metavar="|".join(LEVELS), help=text)


def threads(command: _Function) -> _Function:
    return click.option("--threads", type=click.IntRange(min=1), default=1, show_default=True,
                        metavar="N", help="Threads that share large layers on the twin; use at most "
                        "the number of cores. The outputs have the same bytes.")(command)


def size(name: str, default: int, text: str) -> Callable[[_Function], _Function]:
    """Return an option for bytes. Without the option the value is None, for Request's default."""
    return click.option(name, type=Bytes(), metavar="N",
                        help=f"{text}  [default: {default} on the twin, all of an emulated board, with "
                        "--port the needs of the method]")


def firmware(command: _Function) -> _Function:
    return click.option("--firmware", type=InputFile(), metavar="FW.ELF",
                        help="Use this firmware, built for the board by picotorch firmware.")(command)


PORT_HELP = "A connected board: a serial port, auto, a pty, socket://HOST:PORT or rfc2217://HOST:PORT."


def timeout(command: _Function) -> _Function:
    return click.option("--timeout", metavar="S", type=Quantity("S", parse_seconds),
                        help="Time to wait for each answer of a connected board: 5, 500ms, 2min.  "
                        f"[default: {ANSWER_TIMEOUT:g}; {RUN_TIMEOUT:g} for a run]")(command)


def port(command: _Function) -> _Function:
    return click.option("--port", metavar="P", help=PORT_HELP)(timeout(command))


def bare(command: _Function) -> _Function:
    return click.option("--bare", is_flag=True,
                        help="Use the board's firmware without MicroPython.")(command)


def boards(names: Sequence[str], text: str) -> Callable[[_Function], _Function]:
    return click.option("--board", "boards", multiple=True, type=Choice(names),
                        metavar="BOARD", help=text)


def _given() -> dict[str, str]:
    """Return the options of the command line by the names of their parameters."""
    ctx = click.get_current_context()
    return {parameter.name: max(parameter.opts, key=len) for parameter in ctx.command.params
            if parameter.name is not None
            and ctx.get_parameter_source(parameter.name) is click.core.ParameterSource.COMMANDLINE}


def refuse_others(allowed: set[str], what: str) -> None:
    """Raise UsageError for options of the user that do not go with `what`."""
    refuse(_given().keys() - allowed, f"does not go with {what}")


def refuse(names: Set[str], why: str) -> None:
    """Raise UsageError if the user gave options of these parameters, which have no effect."""
    for name, option in _given().items():
        if name in names:
            raise click.UsageError(f"{option} {why}")


def run_request(command: Callable[..., None]) -> Callable[..., None]:
    """Pass the options that are fields of RunRequest as one argument, before the others."""
    fields = {field.name for field in dataclasses.fields(RunRequest)}

    @functools.wraps(command)
    def call(**values: Any) -> None:
        own = {name: values.pop(name) for name in fields & values.keys()}
        command(RunRequest(**own), **values)

    return call


def check_threads(request: RunRequest) -> None:
    """Raise UsageError for threads on a board: only the twin has threads."""
    if request.threads > 1 and request.target != HOST:
        raise click.UsageError("--threads is for the twin: leave out --board and --port")


def check_timeout(timeout: float | None, port: str | None) -> None:
    """Raise UsageError for a timeout without a connected board, whose answers it limits."""
    if timeout is not None and port is None:
        raise click.UsageError("--timeout is for a connected board: give --port")


def check_run(request: RunRequest) -> None:
    """Raise UsageError for options of a run that contradict each other."""
    check_timeout(request.timeout, request.port)
    if request.firmware is not None and request.board == HOST:
        raise click.UsageError("--firmware is for a board: give --board")
    if request.bare and request.board == HOST:
        raise click.UsageError("--bare is for a board: give --board")
    if request.quantize and request.inputs is None:
        raise click.UsageError("--quantize is for --inputs")
    if request.inputs is not None:
        refuse({"seed", "sizes"}, "is for random inputs: leave it out, or --inputs")
