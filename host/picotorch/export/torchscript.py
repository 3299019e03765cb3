"""Read TorchScript files as sources of an export, by torch.export's converter; detect them."""

import io
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from picotorch import Error
from picotorch.errors import INVALID_ARGUMENT, INVALID_PROGRAM, NOT_SUPPORTED, fail

from . import arrays
from .module_state import unchanged
from .pipeline import Source, explained
from .progress import Steps, quiet

if TYPE_CHECKING:
    from torch._C import Graph, Node
    from torch.export import ExportedProgram
    from torch.jit import ScriptModule

_LARGEST = 1 << 27  # elements of an example input
_DTYPES = ("float32", "float64", "float16", "int8", "int16", "int32", "int64", "uint8", "bool")


# ---- files


TORCHSCRIPT, PT2, PTE = "TorchScript", "pt2", "pte"
_SUFFIXES = (".pt", ".pth", ".ts", ".jit", ".torchscript", ".pt2")


_WEIGHTS = ("load its weights in a function that returns (module, example inputs), and export "
            "file.py:function")
_REBUILD = f"write the model as an nn.Module, {_WEIGHTS}"
_FOREIGN = {  # suffix: name of the format, how to export what it has
    ".onnx": ("ONNX", f"convert it to an nn.Module (package onnx2torch), or {_REBUILD}"),
    ".tflite": ("TensorFlow Lite", _REBUILD), ".h5": ("HDF5, of Keras", _REBUILD),
    ".hdf5": ("HDF5, of Keras", _REBUILD), ".keras": ("Keras", _REBUILD),
    ".pb": ("TensorFlow", _REBUILD), ".mlmodel": ("Core ML", _REBUILD),
    ".safetensors": ("safetensors, which keeps weights and no code",
                     f"with module.load_state_dict(safetensors.torch.load_file(path)) {_WEIGHTS}"),
    ".gguf": ("GGUF, which keeps weights and no code", _REBUILD),
    ".ckpt": ("a checkpoint, which keeps weights and no code",
              f"with module.load_state_dict(torch.load(path)[\"state_dict\"]) {_WEIGHTS}"),
}  # fmt: skip
_MAGIC = {".tflite": (4, b"TFL3"), ".h5": (0, b"\x89HDF\r\n"), ".gguf": (0, b"GGUF")}


def _check_foreign(data: bytes, path: Path) -> None:
    """Raise InvalidProgram for a file of another framework, by its first bytes or by its name."""
    if data[4:6] in (b"ET", b"BP"):
        return
    suffix = next((suffix for suffix, (start, magic) in _MAGIC.items()
                   if data[start : start + len(magic)] == magic), path.suffix.lower())
    if suffix in _FOREIGN:
        name, remedy = _FOREIGN[suffix]
        raise fail(INVALID_PROGRAM, f"is a file of {name}", str(path), remedy=remedy)


def kind_of(data: bytes, path: Path) -> str:
    """Return the kind of a file: TORCHSCRIPT (torch.jit.save), PT2 (torch.export.save), else PTE.

    Raises InvalidProgram for another archive or format, and names it.
    """
    _check_foreign(data, path)
    if data[:4] != b"PK\3\4" and path.suffix not in _SUFFIXES:
        return PTE
    try:
        names = zipfile.ZipFile(io.BytesIO(data)).namelist()
    except (zipfile.BadZipFile, NotImplementedError, ValueError):
        names = []
    members = {member.split("/", 1)[-1] for member in names}
    if "constants.pkl" in members and any(member.startswith("code/") for member in members):
        return TORCHSCRIPT
    if any(member.startswith(("archive_format", "models/")) for member in members):
        return PT2
    what = "is neither a .pte, a .pt2 nor a TorchScript file"
    if "data.pkl" in members or data[:1] == b"\x80":
        what = "is of torch.save, which keeps weights and no code: not TorchScript"
    raise fail(INVALID_PROGRAM, what, str(path),
               remedy="save the module with torch.jit.trace(module, inputs).save(path) or "
               "torch.export.save(torch.export.export(module, inputs), path), or export "
               "file.py:function, which returns (module, inputs)")


# ---- example inputs


def parse_shape(text: str) -> np.ndarray:
    """Return the array of "1,3,224,224" or "1,16:int64": random floats, or zeros.

    Raises ValueError with the reason.
    """
    sizes, colon, dtype = text.partition(":")
    dtype = dtype if colon else "float32"
    if dtype not in _DTYPES:
        raise ValueError(f"dtype {dtype!r} is none of {', '.join(_DTYPES)}")
    if not re.fullmatch(r"(\d{1,9}(,\d{1,9})*)?", sizes):
        raise ValueError(f"{text!r} is not like 1,3,224,224 or 1,16:int64")
    shape = tuple(int(size) for size in sizes.split(",")) if sizes else ()
    if np.prod(shape, dtype=float) > _LARGEST:
        raise ValueError(f"{text!r} has more than {_LARGEST} elements")
    if dtype.startswith("float"):
        return np.random.default_rng(0).uniform(-1, 1, shape).astype(dtype)
    return np.zeros(shape, dtype)


def _example_inputs(torch: ModuleType, module: "ScriptModule", examples: list[Any],
                    name: str) -> tuple[Any, ...]:
    """Return the arguments of forward. Raises InvalidArgument."""
    arguments = module.forward.schema.arguments[1:]
    needed = sum(not argument.has_default_value() for argument in arguments)
    if not needed <= len(examples) <= len(arguments):
        signature = ", ".join(f"{argument.type} {argument.name}" for argument in arguments)
        raise fail(INVALID_ARGUMENT, f"forward({signature}) takes {needed} example inputs, "
                   f"{len(examples)} given", name,
                   remedy="give --shape 1,3,224,224 for each tensor, or --inputs in.npz with arrays "
                   "in0, in1 ...")
    numbers = {"int": int, "float": float, "bool": bool}
    inputs = []
    for argument, array in zip(arguments, examples, strict=False):
        number = numbers.get(str(argument.type))
        if number is not None and np.ndim(array) == 0:
            inputs.append(number(array))
        else:
            inputs.append(arrays.tensor(torch, np.asarray(array)))
    return tuple(inputs)


# ---- export


def source(torch: ModuleType, data: bytes, name: str, examples: list[Any], steps: Steps) -> Source:
    """Read the module of a TorchScript file, for the shapes of example inputs, which are arrays.

    Raises InvalidProgram for a file that torch cannot read, InvalidArgument for inputs that forward
    rejects, NotSupported for modules that cannot be converted.
    """
    from torch._export import converter

    with steps.step("reading TorchScript"):
        module = _loaded(torch, data, name)
    inputs = _example_inputs(torch, module, examples, name)

    def run(arguments: tuple[Any, ...]) -> list[Any]:
        with torch.no_grad(), quiet():
            outputs = module(*arguments)
        return [arrays.numbers(value) for value in _flat(outputs)]

    def explain(error: Exception, quantized: bool = False) -> Error:
        return _explained(error, module, converter, inputs, quantized, name)

    with steps.step("running it with the example inputs"):
        with unchanged(torch, module):
            _try(run, inputs, name)
    try:
        with steps.step("converting to an exported program"):
            exported = _convert(converter, module, inputs)
    except Exception as error:
        raise explain(error) from None
    return Source(name, exported, run, inputs, len(data), explain, module)


def _try(run: Callable[[tuple[Any, ...]], list[Any]], inputs: tuple[Any, ...], name: str) -> None:
    try:
        run(inputs)
    except Exception as error:
        raise fail(INVALID_ARGUMENT, f"forward fails with these inputs: {_reason(str(error))}", name,
                   remedy="give the shapes and dtypes that the module takes") from None


def _convert(converter: ModuleType, module: "ScriptModule",
             inputs: tuple[Any, ...]) -> "ExportedProgram":
    """Convert a module to an exported program with just the sizes of the inputs.

    The converter makes all dims dynamic, through this function of its module.
    """
    import unittest.mock  # imports asyncio: slower than most of picotorch

    with unittest.mock.patch.object(converter, "_tree_map_with_path", lambda *arguments: None):
        return converter.TS2EPConverter(module, inputs).convert()


def _loaded(torch: ModuleType, data: bytes, name: str) -> "ScriptModule":
    try:
        return torch.jit.load(io.BytesIO(data), map_location="cpu").eval()
    except Exception as error:
        text = str(error).strip()
        unknown = re.search(r"Unknown builtin op: (\S+?)\.?$", text, re.MULTILINE)
        if unknown:
            raise fail(NOT_SUPPORTED, f"this torch has no operator {unknown[1]}", name,
                       remedy="write the module with operators of PyTorch") from None
        raise fail(INVALID_PROGRAM, f"torch.jit.load: {_first_line(text)}", name) from None


def _flat(value: Any) -> list[Any]:
    if isinstance(value, list | tuple):
        return [item for part in value for item in _flat(part)]
    if isinstance(value, dict):
        return [item for part in value.values() for item in _flat(part)]
    return [value]


# ---- why not


def _explained(error: Exception, module: "ScriptModule", converter: ModuleType, inputs: tuple[Any, ...],
               quantized: bool, name: str) -> Error:
    """Return the error that a user sees for what the converter or the exporter raised."""
    text = str(error)
    graph = _inlined(module)
    branches = _nodes(graph, "prim::If")
    if branches and re.search(r"branch|\bcond\b", text):
        return _different_branches(text, branches, name)
    if _nodes(graph, "prim::Print"):
        return fail(NOT_SUPPORTED, "a print" + _location(_nodes(graph, "prim::Print")), name,
                    remedy="remove it: programs have no text")
    if _nodes(graph, "prim::Loop") and "Loop" in text:
        return fail(NOT_SUPPORTED, "a loop whose number of rounds its values decide"
                    + _location(_nodes(graph, "prim::Loop")), name,
                    remedy="give the loop a fixed number of rounds, or run it around the program: "
                    "export the body and call execute for each round")
    if "Missing out variants" in text:
        return explained(error, quantized, name)
    unsupported = _unsupported(module, converter, inputs)
    if unsupported:
        return fail(NOT_SUPPORTED, "cannot be converted: " + ", ".join(unsupported), name,
                    remedy="write the module without it, or export it with torch.export.export")
    return fail(NOT_SUPPORTED, f"cannot be converted: {_reason(text) or type(error).__name__}", name,
                remedy="write the module with other operators, or export it with torch.export.export")


def _different_branches(text: str, branches: "list[Node]", name: str) -> Error:
    found = re.search(r"expected same (\w+) but got (\S+) and (\S+?)\.?[\"')]*(\s|$)", text)
    differ = {"dim": "rank", "dtype": "dtype"}.get(found[1], found[1]) if found else "shapes"
    what = f"of different {differ}"
    if found:
        what = f"of {differ} {found[2]} and {found[3]}"
    return fail(
        NOT_SUPPORTED,
        f"the branches of an if{_location(branches)} give tensors {what}: a program (.pte) states the "
        "rank, the dtype and the largest sizes of every value, so both branches have to give the same",
        name,
        remedy="let both branches give the same shape and dtype (expand the smaller one, convert), or "
        "export each branch as a module of its own and choose between them where the program is called")


def _inlined(module: "ScriptModule") -> "Graph":
    try:
        return module.inlined_graph
    except Exception:
        return module.graph


def _nodes(graph: "Graph", kind: str) -> "list[Node]":
    return list(graph.findAllNodes(kind, True))


def _location(nodes: "list[Node]") -> str:
    """Describe the line in the module's source of the first of some nodes."""
    lines = [line.strip() for line in nodes[0].sourceRange().splitlines()]
    file = re.search(r'File "([^"]*)", line (\d+)', nodes[0].sourceRange())
    marked = next((before for before, line in zip(lines, lines[1:], strict=False)
                   if re.fullmatch(r"~+ *<--- HERE", line) or line.startswith("~~~")), "")
    where = f" in line {file[2]} of {Path(file[1]).name}" if file else ""
    return f"{where} ({marked.rstrip(':')})" if marked else where


def _unsupported(module: "ScriptModule", converter: ModuleType, inputs: tuple[Any, ...]) -> list[str]:
    """Return the nodes that the converter does not support, by its report."""
    try:
        with quiet():
            text = converter.TS2EPConverter(module, inputs).explain(print_output=False)
    except Exception:
        return []
    return sorted(set(re.findall(r"^\s*\d+\. (\S+) \[", text, re.MULTILINE)))


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def _reason(text: str) -> str:
    """Return the line with the cause in an error of torch."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    for line in reversed(lines):
        if re.match(r"(\w+)?(Error|Exception): ", line):
            return line.partition(": ")[2]
    return lines[0] if lines else ""
