"""picotorch export model.pt: from a module that torch.jit.save wrote to a program.

The TorchScript converter of torch.export makes an exported program of it, and ExecuTorch's exporter
lowers that; both need the `export` extra.
"""

import contextlib
import io
import logging
import re
import time
import unittest.mock
import warnings
import zipfile
from pathlib import Path

import click
import numpy as np
from picotorch import Error
from picotorch.errors import INVALID_ARGUMENT, INVALID_PROGRAM, NOT_FOUND, NOT_SUPPORTED, fail

from .. import show, twin
from ..inspect.description import planned_buffers
from ..run.request import Request

_TEMP_SIZE = 1 << 24
_POOL_SIZE = 1 << 24
_LARGEST = 1 << 27  # elements of an example input
_DTYPES = ("float32", "float64", "float16", "int8", "int16", "int32", "int64", "uint8", "bool")
_EXTRA = "pip install -e '.[export]'"


# ---- files


def is_meant(data: bytes, path: Path) -> bool:
    """Whether a file is TorchScript, or is called so; all else is taken for a .pte."""
    return data[:4] == b"PK\3\4" or path.suffix in (".pt", ".pth", ".ts", ".jit", ".torchscript")


def check_file(data: bytes, name: str) -> None:
    """Raises InvalidProgram for what torch.jit.save did not write, and says what it is instead."""
    try:
        members = {member.split("/", 1)[-1] for member in zipfile.ZipFile(io.BytesIO(data)).namelist()}
    except (zipfile.BadZipFile, NotImplementedError, ValueError):
        members = set()
    if "constants.pkl" in members and any(member.startswith("code/") for member in members):
        return
    raise fail(INVALID_PROGRAM, _what_it_is(data, members), name,
               remedy="save the module with torch.jit.trace(module, inputs).save(path) or "
               "torch.jit.script(module).save(path)")


def _what_it_is(data, members):
    if any(member.startswith(("archive_format", "models/")) for member in members):
        return "is of torch.export.save, not TorchScript: give it to executorch.exir.to_edge"
    if "data.pkl" in members or data[:1] == b"\x80":
        return "is of torch.save, which keeps weights and no code: not TorchScript"
    return "is neither a .pte nor a TorchScript file"


# ---- example inputs


def parse_shape(text: str) -> np.ndarray:
    """The array of "1,3,224,224" or "1,16:int64": random floats, or zeros. ValueError says why not."""
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


def _example_inputs(torch, module, given, name):
    """The arguments of forward. Raises InvalidArgument."""
    arguments = module.forward.schema.arguments[1:]
    needed = sum(not argument.has_default_value() for argument in arguments)
    if not needed <= len(given) <= len(arguments):
        signature = ", ".join(f"{argument.type} {argument.name}" for argument in arguments)
        raise fail(INVALID_ARGUMENT, f"forward({signature}) takes {needed} example inputs, "
                   f"{len(given)} given", name,
                   remedy="give --shape 1,3,224,224 for each tensor, or --inputs in.npz with arrays "
                   "in0, in1 ...")
    numbers = {"int": int, "float": float, "bool": bool}
    inputs = []
    for argument, array in zip(arguments, given, strict=False):
        number = numbers.get(str(argument.type))
        if number is not None and np.ndim(array) == 0:
            inputs.append(number(array))
        else:
            inputs.append(torch.from_numpy(np.ascontiguousarray(array).reshape(np.shape(array))))
    return tuple(inputs)


# ---- export


def export_file(data: bytes, name: str, given: list, tell=None) -> tuple[bytes, dict]:
    """The bytes of the program, and what was done.

    given: arrays, the example inputs, whose shapes the program is for. tell(text) gets the steps: the
    text as a step begins, then how long it took, which ends the line.
    Raises InvalidProgram for a file that is no TorchScript, NotFound without the extra, InvalidArgument
    for other inputs than forward takes, NotSupported for what a program cannot hold.
    """
    check_file(data, name)
    steps = _Steps(tell)
    with steps.step("importing torch and executorch"), _quiet():
        torch, converter, exir = _imported()
    with steps.step("reading TorchScript"), _quiet():
        module = _loaded(torch, data, name)
    inputs = _example_inputs(torch, module, given, name)
    with steps.step("running it with the example inputs"), _quiet():
        expected = _eager(torch, module, inputs, name)
    try:
        with steps.step("converting to an exported program"), _quiet():
            exported = _convert(converter, module, inputs)
        with steps.step("lowering with ExecuTorch"), _quiet():
            config = exir.EdgeCompileConfig(_check_ir_validity=False)
            written = exir.to_edge(exported, compile_config=config).to_executorch().buffer
    except Exception as error:
        raise _explained(error, module, converter, inputs, name) from None
    entry = {"model": name, "bytes_before": len(data), "bytes": len(written)}
    with steps.step("running it on the twin"):
        entry |= _check(bytes(written), name, inputs, expected)
    return bytes(written), entry


class _Steps:
    """Says which step is under way, and how long it took."""

    def __init__(self, tell):
        self.tell = tell or (lambda text: None)

    @contextlib.contextmanager
    def step(self, text):
        start = time.monotonic()
        self.tell(f"{text} ... ")
        try:
            yield
        except Exception:
            self.tell("failed\n")
            raise
        self.tell(f"{time.monotonic() - start:.1f} s\n")


@contextlib.contextmanager
def _quiet():
    """Without the logs and warnings of torch and the exporter, and what they print."""
    disabled = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with (warnings.catch_warnings(action="ignore"), contextlib.redirect_stdout(io.StringIO()),
              contextlib.redirect_stderr(io.StringIO())):
            yield
    finally:
        logging.disable(disabled)


def _imported():
    try:
        import torch
        from executorch import exir
        from torch._export import converter
    except ImportError as error:
        raise fail(NOT_FOUND, f"torch and executorch cannot be imported ({error})",
                   remedy=_EXTRA) from None
    return torch, converter, exir


def _convert(converter, module, inputs):
    """The exported program, for just the sizes of the inputs: the converter makes all dims dynamic,
    through this function of its module."""
    with unittest.mock.patch.object(converter, "_tree_map_with_path", lambda *arguments: None):
        return converter.TS2EPConverter(module, inputs).convert()


def _loaded(torch, data, name):
    try:
        return torch.jit.load(io.BytesIO(data), map_location="cpu").eval()
    except Exception as error:
        text = str(error).strip()
        unknown = re.search(r"Unknown builtin op: (\S+?)\.?$", text, re.MULTILINE)
        if unknown:
            raise fail(NOT_SUPPORTED, f"this torch has no operator {unknown[1]}", name,
                       remedy="write the module with operators of PyTorch") from None
        raise fail(INVALID_PROGRAM, f"torch.jit.load: {_first_line(text)}", name) from None


def _eager(torch, module, inputs, name):
    try:
        with torch.no_grad():
            outputs = module(*inputs)
    except Exception as error:
        raise fail(INVALID_ARGUMENT, f"forward fails with these inputs: {_reason(str(error))}", name,
                   remedy="give the shapes and dtypes that the module takes") from None
    return _flat(outputs)


def _flat(value):
    if isinstance(value, list | tuple):
        return [item for part in value for item in _flat(part)]
    if isinstance(value, dict):
        return [item for part in value.values() for item in _flat(part)]
    return [value]


# ---- why not


def _explained(error, module, converter, inputs, name) -> Error:
    """The error that a user sees for what the converter or the exporter raised."""
    text = str(error)
    graph = _inlined(module)
    branches = _nodes(graph, "prim::If")
    if branches and re.search(r"branch|\bcond\b", text):
        return _different_branches(text, branches, name)
    if _nodes(graph, "prim::Print"):
        return fail(NOT_SUPPORTED, "a print" + _place(_nodes(graph, "prim::Print")), name,
                    remedy="take it out: programs have no text")
    if _nodes(graph, "prim::Loop") and "Loop" in text:
        return fail(NOT_SUPPORTED, "a loop whose number of rounds its values decide"
                    + _place(_nodes(graph, "prim::Loop")), name,
                    remedy="give the loop a fixed number of rounds, or run it around the program: "
                    "export the body and call execute for each round")
    missing = re.findall(r"'([\w:.]+)'", text) if "Missing out variants" in text else []
    if missing:
        return fail(NOT_SUPPORTED, "ExecuTorch has no out variant of " + ", ".join(sorted(missing)),
                    name, remedy="write the module with other operators")
    unsupported = _unsupported(module, converter, inputs)
    if unsupported:
        return fail(NOT_SUPPORTED, "cannot be converted: " + ", ".join(unsupported), name,
                    remedy="write the module without, or export it with torch.export.export")
    return fail(NOT_SUPPORTED, f"cannot be converted: {_reason(text) or type(error).__name__}", name,
                remedy="write the module with other operators, or export it with torch.export.export")


def _different_branches(text, branches, name):
    found = re.search(r"expected same (\w+) but got (\S+) and (\S+?)\.?[\"')]*(\s|$)", text)
    differ = {"dim": "rank", "dtype": "dtype"}.get(found[1], found[1]) if found else "shapes"
    what = f"of different {differ}"
    if found:
        what = f"of {differ} {found[2]} and {found[3]}"
    return fail(
        NOT_SUPPORTED,
        f"the branches of an if{_place(branches)} give tensors {what}: a program (.pte) states the "
        "rank, the dtype and the largest sizes of every value, so both branches have to give the same",
        name,
        remedy="let both branches give the same shape and dtype (expand the smaller one, convert), or "
        "export each branch as a module of its own and choose between them where the program is called")


def _inlined(module):
    try:
        return module.inlined_graph
    except Exception:
        return module.graph


def _nodes(graph, kind):
    return list(graph.findAllNodes(kind, True))


def _place(nodes):
    """Where the module's source has the first of some nodes."""
    lines = [line.strip() for line in nodes[0].sourceRange().splitlines()]
    file = re.search(r'File "([^"]*)", line (\d+)', nodes[0].sourceRange())
    marked = next((before for before, line in zip(lines, lines[1:], strict=False)
                   if re.fullmatch(r"~+ *<--- HERE", line) or line.startswith("~~~")), "")
    where = f" in line {file[2]} of {Path(file[1]).name}" if file else ""
    return f"{where} ({marked.rstrip(':')})" if marked else where


def _unsupported(module, converter, inputs):
    """The nodes that the converter does not know, as it tells."""
    try:
        with _quiet():
            text = converter.TS2EPConverter(module, inputs).explain(print_output=False)
    except Exception:
        return []
    return sorted(set(re.findall(r"^\s*\d+\. (\S+) \[", text, re.MULTILINE)))


def _first_line(text):
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def _reason(text):
    """The line of an error of torch that says what is wrong."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    for line in reversed(lines):
        if re.match(r"(\w+)?(Error|Exception): ", line):
            return line.partition(": ")[2]
    return lines[0] if lines else ""


# ---- the new program beside the module, on the twin


def _check(written, name, inputs, expected):
    program = twin.open_program(written)
    meta = program.method_meta("forward")
    entry = {"planned": planned_buffers(meta), "missing_operators": meta.missing_operators(),
             "largest_difference": None, "largest_magnitude": None}
    values = [value.detach().numpy() if hasattr(value, "numpy") else value for value in inputs]
    result = twin.run(Request(written, name, values, pool_size=_POOL_SIZE, temp_size=_TEMP_SIZE))
    entry["checked"] = f"not run: {result.message}" if result.code else "executed"
    wanted = [value.detach().numpy() for value in expected if hasattr(value, "detach")]
    if result.code or [v.shape for v in wanted] != [v.shape for v in result.outputs]:
        return entry
    differences = [np.abs(one.astype(np.float64) - other.astype(np.float64))
                   for one, other in zip(wanted, result.outputs, strict=True)]
    entry["largest_difference"] = max((float(np.nan_to_num(d).max(initial=0)) for d in differences),
                                      default=0.0)
    entry["largest_magnitude"] = max((float(np.nan_to_num(np.abs(w.astype(np.float64))).max(initial=0))
                                      for w in wanted), default=0.0)
    return entry


def show_text(entry: dict) -> None:
    show.line(f"{entry['model']}: {show.size(entry['bytes_before'])}; {entry['output']}: "
              f"{show.size(entry['bytes'])}")
    for i, size in enumerate(entry["planned"]):
        click.echo(f"planned buffer {i}: {show.size(size)}")
    if entry["missing_operators"]:
        show.line("without a kernel here: " + ", ".join(entry["missing_operators"]))
    checked = entry["checked"]
    if entry["largest_difference"] is not None:
        checked = (f"outputs differ from PyTorch's by up to {entry['largest_difference']:.3g}, "
                   f"of values up to {entry['largest_magnitude']:.3g}")
    show.line(f"On the twin, with the example inputs: {checked}")
