"""Define commands that reject some calls that click accepts, and types for files and names.

The commands reject a repeated option, an empty value, and an output that is an input.
"""

import collections
import difflib
import functools
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from picotorch import Error
from picotorch.errors import MEMORY_ALLOCATION_FAILED, NOT_FOUND
from picotorch.schema import SUBJECT_METHOD_NAME, SUBJECTS

from ..host import files

if TYPE_CHECKING:
    ParamType: TypeAlias = click.ParamType[Any]
    _Choice: TypeAlias = click.Choice[str]
else:  # older releases of click have no generic types
    ParamType = click.ParamType
    _Choice = click.Choice


# The option that fixes an error, by code and number of the subject
_OPTIONS = {(MEMORY_ALLOCATION_FAILED, SUBJECTS.index("method pool")): "--pool-size",
            (MEMORY_ALLOCATION_FAILED, SUBJECTS.index("planned buffer")): "--planned-size",
            (MEMORY_ALLOCATION_FAILED, SUBJECTS.index("temp memory")): "--temp-size",
            (NOT_FOUND, SUBJECT_METHOD_NAME): "--method"}


class InputFile(click.Path):
    """Accept a file that a command reads. takes_folder: a folder of files, too."""

    def __init__(self, takes_folder: bool = False) -> None:
        super().__init__(path_type=Path)
        self.takes_folder = takes_folder

    def file_of(self, value: Path) -> Path:
        """Return the file that a value of the parameter names."""
        return value


class OutputFile(click.Path):
    """Accept a file that a command writes; reject an unwritable one before the work starts.

    suffixes: endings of its name, any if there are none. make_folder: make its folder if it is missing.
    """

    def __init__(self, *suffixes: str, make_folder: bool = False) -> None:
        super().__init__(path_type=Path)
        self.suffixes = suffixes
        self.make_folder = make_folder

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        path = super().convert(value, param, ctx)
        assert isinstance(path, Path)
        if self.suffixes and path.suffix.lower() not in self.suffixes:
            self.fail(f"{str(value)!r} has to end in {' or '.join(self.suffixes)}, the kind of file "
                      "to be written", param, ctx)
        files.check_output(path, self.make_folder)
        return path


def did_you_mean(value: object, names: Iterable[str]) -> str:
    """Return a question with up to three similar names, with a space before it, or ""."""
    names = {name.lower(): name for name in names}
    close = [names[name] for name in difflib.get_close_matches(str(value).lower(), names, 3, 0.6)]
    return f" Did you mean {' or '.join(close)}?" if close else ""


class Choice(_Choice):
    """Accept one of some names; for another name suggest similar ones."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            self.fail(error.message.rstrip(".") + "." + did_you_mean(value, self.choices), param, ctx)

    def get_missing_message(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        return f"Choose from: {', '.join(self.choices)}."

    @staticmethod
    def key(value: str) -> str:
        """Return the key that two values must not share."""
        return value


class Command(click.Command):
    """A command that rejects some calls that click accepts."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not ctx.resilient_parsing:
            self._check_repeated(ctx, list(args))
        try:
            rest = super().parse_args(ctx, args)
        except click.MissingParameter as error:
            text = f"{error.format_message()} {self._example()}".rstrip()
            raise click.UsageError(text, ctx) from None
        if not ctx.resilient_parsing:
            self._check_keys(ctx)
            self._check_files(ctx)
        return rest

    def _example(self) -> str:
        """Return the first example of the help as a sentence, or ""."""
        found = re.search(r"Examples?:\n\s*(.+)", self.help or "")
        return f"For example: {found[1].strip()}" if found else ""

    def _check_repeated(self, ctx: click.Context, args: list[str]) -> None:
        """Raise UsageError for a repeated option and for an empty value."""
        try:
            parsed, _, order = self.make_parser(ctx).parse_args(args=args)
        except click.UsageError as error:
            error.ctx = error.ctx or ctx  # the error shows the usage of this context
            for parameter in self.params:
                is_its = getattr(error, "option_name", None) in parameter.opts
                if is_its and "requires an argument" in error.message:
                    text = f"{error.message.rstrip('.')}: {parameter.make_metavar(ctx)}."
                    raise click.UsageError(text, error.ctx) from None
            raise
        for parameter, count in collections.Counter(order).items():
            values = parsed.get(parameter.name)
            name = _name_of(parameter, ctx)
            if count > 1 and isinstance(parameter, click.Option) and not (
                    parameter.multiple or parameter.is_flag):
                raise click.UsageError(f"{name} is given {count} times: give it once.", ctx)
            if "" in (values if isinstance(values, list | tuple) else [values]):
                raise click.UsageError(f"{name} is empty: give a value, or leave it out.", ctx)

    def _check_keys(self, ctx: click.Context) -> None:
        """Raise UsageError for two values of the same board or input."""
        for parameter in self.params:
            key_of = getattr(parameter.type, "key", None)
            if not getattr(parameter, "multiple", False) or key_of is None:
                continue
            keys = collections.Counter(map(key_of, ctx.params.get(parameter.name) or ()))
            for key, count in keys.items():
                if count > 1:
                    raise click.UsageError(f"{_name_of(parameter, ctx)} {key} is given {count} times: "
                                           "give it once.", ctx)

    def _check_files(self, ctx: click.Context) -> None:
        """Check the files of a call.

        Raises NotSupported for an input that is a FIFO or a device, AccessFailed for a folder,
        UsageError for an output that is an input or another output.
        """
        paths = []
        for parameter in self.params:
            kind = parameter.type
            if not isinstance(kind, InputFile):
                continue
            for path in map(kind.file_of, _values(ctx, parameter)):
                paths.append((parameter, path))
                if path.exists() and not (kind.takes_folder and path.is_dir()):
                    files.check_input(path)
        for parameter in self.params:
            if not isinstance(parameter.type, OutputFile):
                continue
            for path in _values(ctx, parameter):
                for other, used in paths:
                    if _same_file(path, used):
                        raise click.UsageError(
                            f"{_name_of(parameter, ctx)} and {_name_of(other, ctx)} are the same file, "
                            f"{path}: name another one.", ctx)
                paths.append((parameter, path))

    def invoke(self, ctx: click.Context) -> Any:
        """Add to an error the option that fixes it, and the program's file if it names no file."""
        try:
            return super().invoke(ctx)
        except Error as error:
            from ..host.request import subject_of  # imports numpy, which --help does without

            option = _OPTIONS.get((error.code, subject_of(error)))
            if any(option in parameter.opts for parameter in self.params):
                vars(error)["option"] = option
            model = ctx.params.get("model")
            if model is not None and not _is_named(error.message, ctx):
                files.name(error, model)
            raise


def _is_named(message: str, ctx: click.Context) -> bool:
    """Return True if an error names a file of the call, or begins with a board."""
    if message.startswith("board at "):  # a connected board
        return True
    passed = [(parameter, value) for parameter in ctx.command.params
              for value in _values(ctx, parameter)]
    return any(isinstance(value, Path) and str(value) in message
               or parameter.name in ("board", "boards") and message.startswith(f"{value}:")
               for parameter, value in passed)


def _name_of(parameter: click.Parameter, ctx: click.Context) -> str:
    """Return the user's name of a parameter: "--method", "MODEL"."""
    if parameter.param_type_name == "argument":
        return parameter.make_metavar(ctx)
    return max(parameter.opts, key=len)


def _values(ctx: click.Context, parameter: click.Parameter) -> list[Any]:
    value = ctx.params.get(parameter.name)
    return [] if value is None else list(value) if isinstance(value, list | tuple) else [value]


def _same_file(one: Path, other: Path) -> bool:
    return os.path.realpath(one) == os.path.realpath(other) or (
        os.path.exists(one) and os.path.exists(other) and os.path.samefile(one, other))


command = functools.partial(click.command, cls=Command)
