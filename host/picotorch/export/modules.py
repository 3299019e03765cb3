"""Read modules of Python code, and exported programs (.pt2), as sources of an export."""

import ast
import contextlib
import functools
import importlib
import importlib.util
import io
import keyword
import re
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from picotorch import Error
from picotorch.errors import (
    ACCESS_FAILED,
    INVALID_ARGUMENT,
    INVALID_PROGRAM,
    NOT_FOUND,
    NOT_SUPPORTED,
    fail,
)

from . import arrays, torchvision_operators
from .module_state import assigned_buffers, assigned_in_place, copy_of, hidden_state, unchanged
from .pipeline import Source, explained
from .progress import Steps, quiet
from .torch_errors import cause, export_remedy, line_of

if TYPE_CHECKING:
    from torch import nn


def is_function(text: str) -> bool:
    """Return True for module:function and file.py:function."""
    return re.fullmatch(r"(.+\.py|[\w.]+):[A-Za-z_]\w*", text) is not None and not Path(text).exists()


def source_file(text: str) -> Path | None:
    """Return file.py of file.py:function, None for module:function."""
    file = text.rpartition(":")[0]
    return Path(file) if file.endswith(".py") else None


def check_function(path: Path) -> None:
    """Raise InvalidArgument for a file of Python code without the name of a function."""
    if path.suffix == ".py":
        names = _functions(path)
        raise fail(INVALID_ARGUMENT, "is Python code, and no function is named", str(path),
                   remedy="name the function: " + " or ".join(f"{path}:{name}" for name in names)
                   if names else "add a function that returns (module, example inputs), and name it: "
                   f"{path}:function")


def _functions(path: Path, count: int = 0) -> list[str]:
    """Return the names of a file's functions that accept `count` arguments and return a value."""
    try:
        nodes = ast.parse(path.read_bytes()).body
    except (OSError, SyntaxError, ValueError):
        return []
    return [node.name for node in nodes if isinstance(node, ast.FunctionDef)
            and not node.name.startswith("_")
            and _accepts(node.args, count)
            and any(isinstance(part, ast.Return) and part.value for part in ast.walk(node))]


def _accepts(arguments: ast.arguments, count: int) -> bool:
    """Return True if a call with `count` positional arguments fits."""
    names = len(arguments.posonlyargs + arguments.args)
    return (names - len(arguments.defaults) <= count
            and (count <= names or arguments.vararg is not None) and None not in arguments.kw_defaults)


def call_function(text: str, imported: dict[str, ModuleType] | None = None) -> tuple[Any, ...]:
    """Return (module, example inputs) of the user's function. imported: see function_of.

    Raises NotFound without such a function, InvalidArgument for another result and for an exception.
    """
    file, _, name = text.rpartition(":")
    found = function_of(text, 0, "returns (module, example inputs)", imported)
    if hasattr(found, "forward"):
        made = f"{name}()" if isinstance(found, type) else name
        raise fail(INVALID_ARGUMENT, "is a module, not a function", text,
                   remedy=f"add a function that returns ({made}, (example,)), and name it")
    with _errors_of(text):
        returned = found()
    if not (isinstance(returned, tuple | list) and len(returned) == 2):
        raise fail(INVALID_ARGUMENT, "does not return (module, example inputs)", text,
                   remedy=f"end {name} with: return module, (example,)")
    return tuple(returned)


def function_of(text: str, count: int, what: str, imported: dict[str, ModuleType] | None = None
                ) -> Callable[..., Any]:
    """Return the user's function file.py:function of `count` arguments.

    what: its result in words, "returns a number" for example. imported: modules by file, so that each
    file runs once; this function adds to it. Raises NotFound without such a function, InvalidArgument
    for anything else and for an exception.
    """
    file, _, name = text.rpartition(":")
    imported = {} if imported is None else imported
    with _errors_of(text):
        if file not in imported:
            imported[file] = _import(file)
        found: Any = getattr(imported[file], name, None)
    if found is None:
        names = _functions(Path(file), count) if file.endswith(".py") else []
        raise fail(NOT_FOUND, f"has no {name}", file,
                   remedy=f"name one of its functions: {', '.join(names)}" if names else
                   f"name a function that {what}")
    if not callable(found):
        raise fail(INVALID_ARGUMENT, f"is {type(found).__name__}, not a function", text,
                   remedy=f"name a function that {what}")
    return found  # type: ignore[no-any-return]


@contextlib.contextmanager
def _errors_of(text: str) -> Iterator[None]:
    """Raise InvalidArgument for an exception of the user's code, whatever it is."""
    try:
        yield
    except Error:
        raise
    except Exception as error:
        raise fail(INVALID_ARGUMENT, f"{type(error).__name__}: {error}"
                   f"{line_of(error, text.rpartition(':')[0])}", text) from None


def _import(file: str) -> ModuleType:
    if not file.endswith(".py"):
        sys.path.insert(0, "")
        try:
            return importlib.import_module(file)
        finally:
            sys.path.remove("")
    path = Path(file)
    if not path.is_file():
        raise fail(ACCESS_FAILED, "No such file", file)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None  # every .py file has them
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent))  # for what the file imports from its own folder
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(path.parent))
    return module


def source_of_module(torch: ModuleType, module: Any, inputs: Any, name: str, steps: Steps,
                     dynamic_shapes: Any = None) -> Source:
    """Export an nn.Module with example inputs (a tensor, or a tuple of the arguments of forward).

    Raises InvalidArgument where forward refuses them, NotSupported for what torch.export cannot export,
    and for names that the code of torch cannot contain.
    """
    if not isinstance(module, torch.nn.Module):
        raise fail(INVALID_ARGUMENT, f"is {type(module).__name__}, not an nn.Module", name)
    _check_names([path for named in (module.named_modules, module.named_parameters,
                                     module.named_buffers)
                  for path, _ in named(remove_duplicate=False)], name)
    module, arguments = module.eval(), _arguments(torch, inputs, name)
    with steps.step("running it with the example inputs"):
        run = _runner(torch)
        try:
            hidden = hidden_state(torch, module, run, arguments)
        except Exception as error:
            raise fail(INVALID_ARGUMENT, f"forward fails with these inputs: {cause(error)}", name,
                       remedy="give the shapes and dtypes that the module takes") from None
    if hidden:
        raise fail(NOT_SUPPORTED, f"forward changes {', '.join(hidden)}, and its outputs depend on "
                   "that, but a program would keep the first value", name,
                   remedy="make it a buffer, by register_buffer in the module's __init__")
    with steps.step("exporting it with torch.export"):
        torchvision_operators.register(torch)
        traced = copy_of(module)  # tracing leaves what is no tensor in its attributes
        try:
            assigned = assigned_buffers(torch, module, run, arguments)
            with unchanged(torch, traced), assigned_in_place(torch, traced, assigned):
                exported = torch.export.export(traced, arguments, dynamic_shapes=dynamic_shapes,
                                               strict=False)
        except Exception as error:
            raise fail(NOT_SUPPORTED, f"torch.export cannot export it: {cause(error)}", name,
                       remedy=export_remedy(error)) from None
    return Source(name, exported, functools.partial(run, module), arguments, _kept(module),
                  functools.partial(explained, name=name), module)


def source_of_pt2(torch: ModuleType, data: bytes, name: str, inputs: Sequence[Any] | None,
                  steps: Steps) -> Source:
    """Read a file of torch.export.save; inputs: arguments of forward instead of the file's."""
    with steps.step("reading the exported program"):
        try:
            exported = torch.export.load(io.BytesIO(data))
        except Exception as error:
            raise fail(INVALID_PROGRAM, f"torch.export.load: {cause(error)}", name) from None
    _check_names([*exported.state_dict, *exported.constants], name)
    torchvision_operators.register(torch)
    if inputs is None and exported.example_inputs is None:
        raise fail(INVALID_ARGUMENT, "the file has no example inputs", name,
                   remedy="give --inputs in.npz with arrays in0, in1 ...")
    arguments = exported.example_inputs[0] if inputs is None else _arguments(torch, inputs, name)
    module = exported.module(check_guards=False)
    return Source(name, exported, functools.partial(_runner(torch), module), tuple(arguments),
                  len(data), functools.partial(explained, name=name), module)


def _check_names(paths: Iterable[str], name: str) -> None:
    """Raise NotSupported for modules, parameters and buffers that the code of torch.fx cannot name."""
    for path in paths:
        if not all(map(_is_writable, path.split("."))):
            raise fail(NOT_SUPPORTED, f"torch cannot write the name {path!r} in Python code", name,
                       remedy="rename this module, parameter or buffer: use letters, digits and _, and "
                       "no keyword of Python")


def _is_writable(name: str) -> bool:
    """Return whether the code of torch.fx can name this attribute.

    The code is .name, or getattr(..., "name") for a name that is no identifier.
    """
    if not name.isprintable():
        return False
    if name.isidentifier():
        return not keyword.iskeyword(name) and unicodedata.normalize("NFKC", name) == name
    return '"' not in name and "\\" not in name


def _arguments(torch: ModuleType, inputs: Any, name: str) -> tuple[Any, ...]:
    """Return the arguments of forward, tensors and numbers.

    One tensor for two arguments, h = c = torch.zeros(1, 8), is two: torch.export would make them one
    input.
    """
    if isinstance(inputs, torch.Tensor):
        return (inputs,)
    if not isinstance(inputs, tuple | list):
        raise fail(INVALID_ARGUMENT, f"example inputs are {type(inputs).__name__}", name,
                   remedy="give a tuple of the arguments of forward")
    found: list[Any] = []
    for value in inputs:
        if not isinstance(value, torch.Tensor | int | float | bool | None.__class__):
            value = arrays.tensor(torch, np.asarray(value))
        found.append(value.clone() if any(
            isinstance(value, torch.Tensor) and value is one for one in found) else value)
    return tuple(found)


def _runner(torch: ModuleType) -> "Callable[[nn.Module, tuple[Any, ...]], list[Any]]":
    """Return run(module, arguments), which returns the outputs as a flat list of arrays and numbers."""
    def run(module: "nn.Module", arguments: tuple[Any, ...]) -> list[Any]:
        with torch.no_grad(), quiet():
            outputs = module(*arguments)
        return [arrays.numbers(value) for value in torch.utils._pytree.tree_leaves(outputs)]
    return run


def _kept(module: "nn.Module") -> int:
    tensors = {tensor.data_ptr(): tensor for tensor in (*module.parameters(), *module.buffers())}
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())
