"""Compare a board with the twin to the bit, and both with expected outputs."""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from picotorch import MethodMeta
from picotorch.errors import INVALID_ARGUMENT, fail

from ..boards.boards import board_names, load_board
from ..host import show
from ..host.inputs import random_inputs, read_inputs
from ..host.npz import read_npz
from ..host.report import MERGED, Report
from ..host.request import HOST_MEMORY, Request, Result
from ..host.tensors import BFLOAT16, HALF, as_numbers
from ..host.twin import open_program
from ..host.values import TENSOR
from . import running
from .report import model_place
from .run_request import RunRequest

# Maximum difference, relative to the largest magnitude of an output. For float16 and bfloat16 it is a
# few units in the last place
BOUND = 1e-5
_BOUNDS: dict[int | None, float] = {HALF: 2.0**-8, BFLOAT16: 2.0**-5}


@dataclass
class Reference:
    """The origin of the inputs, and the expected outputs, if any.

    scalar_types: of the method's outputs, None for one that is not a tensor. rtol: the maximum
    difference of all outputs; by default BOUND, or the bound of the output's type.
    """

    inputs: str
    scalar_types: list[int | None]
    path: Path | None = None
    outputs: list[np.ndarray] | None = None
    rtol: float | None = None


@dataclass(frozen=True)
class AgainstReference(Report):
    """A comparison with expected outputs. difference, bound: relative maxima, found and allowed."""

    file: str
    difference: float
    bound: float
    agree: bool


@dataclass(frozen=True)
class BoardParity(Report):
    """A comparison of a board with the twin.

    differing_outputs: numbers of the outputs that are not equal to the bit. first_differing_pool_byte:
    None if the method pools are equal. agree: outputs and pool are equal, and the outputs agree with
    the expected ones.
    """

    result: Result = field(metadata=MERGED)
    compared_pool_bytes: int
    differing_outputs: list[int]
    first_differing_pool_byte: int | None
    reference: AgainstReference | None
    agree: bool


@dataclass(frozen=True)
class Parity(Report):
    """The twin's run, compared with boards. inputs: their source. agree: everything agrees."""

    twin: Result = field(metadata=MERGED)
    inputs: str
    expected: Path | None
    reference: AgainstReference | None
    boards: list[BoardParity]
    agree: bool


def make_request(requested: RunRequest, expected: Path | None = None,
                 rtol: float | None = None) -> tuple[Request, Reference]:
    """Return the request with all memory that a board has, and the reference.

    By default inputs and expected outputs are the files beside the model, if they exist. Otherwise
    inputs are random, without expected outputs.

    Raises Error, and InvalidArgument for expected outputs of random inputs.
    """
    data, model, inputs = running.read_program(requested.model), requested.model, requested.inputs
    sizes, seed = dict(requested.sizes), requested.seed
    meta = open_program(data).method_meta(requested.method_name)
    reference = Reference(f"random (seed {seed})", [
        meta.output_tensor_meta(i).scalar_type() if meta.output_tag(i) == TENSOR else None
        for i in range(meta.num_outputs())], rtol=rtol)
    path = inputs if inputs is not None else model.parent / "inputs.npz"
    if inputs is not None or (path.is_file() and not sizes):
        values = read_inputs(path, meta, requested.quantize)
        reference.inputs = str(path)
        beside = model.parent / "expected.npz"
        if expected is None and inputs is None and beside.is_file():
            expected = beside
    elif expected is not None:
        raise fail(INVALID_ARGUMENT, "belong to certain inputs, and the inputs are random",
                   f"expected outputs {expected}", remedy="give --inputs")
    else:
        values = random_inputs(meta, seed, sizes)
    if expected is not None:
        reference.path = expected
        reference.outputs = read_npz(expected, _output_bytes(meta), "out")
    return requested.with_values(data, values), reference


def _output_bytes(meta: MethodMeta) -> list[int]:
    """Return the maximum bytes of each output. Numbers need less than the overhead of an .npz file."""
    return [meta.output_tensor_meta(i).nbytes() if meta.output_tag(i) == TENSOR else 0
            for i in range(meta.num_outputs())]


def compare(request: Request, boards: list[str], reference: Reference,
            tell: Callable[[Parity], None] = lambda found: None) -> Parity:
    """Run a method on the twin and on boards, and compare.

    boards: without the twin, which always runs. tell: receives the report so far, first of the twin
    alone, then with each board. Raises the error of a run that failed.
    """
    twin = _run(request, running.HOST)
    against = _against_reference(twin, reference)
    found = Parity(twin, reference.inputs, reference.path, against, [], _agree(against))
    tell(found)
    for name in boards:
        own = _for_its_core(request, name)
        same = twin if own is request else _run(own, running.HOST)
        board = _compared(same, _run(own, name), reference)
        found = dataclasses.replace(found, boards=[*found.boards, board],
                                    agree=found.agree and board.agree)
        tell(found)
    return found


def _for_its_core(request: Request, name: str) -> Request:
    """Return the request for a board, with packed weights for its core if that is known."""
    if not request.pack_weights or name not in board_names():
        return request
    return dataclasses.replace(request, core=load_board(name).core)


def agree(twin: Result, result: Result, reference: Reference) -> bool:
    """Return True if a board's result equals the twin's and is near the expected outputs."""
    return _compared(twin, result, reference).agree


def _compared(twin: Result, result: Result, reference: Reference) -> BoardParity:
    differing, byte = _differing_outputs(twin, result), _first_difference(twin.pool, result.pool)
    against = _against_reference(result, reference)
    return BoardParity(result, len(twin.pool), differing, byte, against,
                       not differing and byte is None and _agree(against))


def _run(request: Request, board: str) -> Result:
    """Return the result; the twin has all memory that any board has.

    Raises the error of a run that failed.
    """
    if board == running.HOST:
        request = dataclasses.replace(request, pool_size=HOST_MEMORY, temp_size=HOST_MEMORY)
    result = running.run(request, board)
    if result.code:
        raise running.error_of(result, board)
    return result


def _agree(reference: AgainstReference | None) -> bool:
    return reference is None or reference.agree


def _differing_outputs(one: Result, other: Result) -> list[int]:
    """Return the outputs that are not equal to the bit."""
    return [i for i, (a, b) in enumerate(zip(one.outputs, other.outputs, strict=True))
            if not same_bits(a, b)]


def same_bits(one: np.ndarray, other: np.ndarray) -> bool:
    """Return True if arrays are equal to the bit.

    The sign and payload of NaNs, which differ between FPUs, are ignored. A number that is not a tensor
    is compared with 32 bits, since a board prints it with 32.
    """
    if one.dtype == np.float64 and other.dtype == np.float32 and one.shape == other.shape:
        return bool(np.allclose(one, other, rtol=1e-6, equal_nan=True))
    if (one.dtype, one.shape) != (other.dtype, other.shape):
        return False
    if one.dtype == object:  # None
        return True
    if one.dtype.kind == "f":
        one, other = (np.where(np.isnan(array), one.dtype.type("nan"), array)
                      for array in (one, other))
    return one.tobytes() == other.tobytes()


def _first_difference(one: bytes, other: bytes) -> int | None:
    """Return the first byte at which two pools differ."""
    if one == other:
        return None
    shared = min(len(one), len(other))
    return next((i for i in range(shared) if one[i] != other[i]), shared)


def _against_reference(result: Result, reference: Reference) -> AgainstReference | None:
    if reference.outputs is None:
        return None
    if len(reference.outputs) != len(result.outputs):
        raise fail(INVALID_ARGUMENT, f"has {len(reference.outputs)} outputs, the method "
                   f"{len(result.outputs)}", str(reference.path))
    types = reference.scalar_types
    differences = [_difference(output, expected, types[i], f"out{i} of {reference.path}") for i,
                   (output, expected) in enumerate(zip(result.outputs, reference.outputs, strict=True))]
    bounds = [_BOUNDS.get(scalar_type, BOUND) if reference.rtol is None else reference.rtol
              for scalar_type in types]
    agree = all(d <= bound for d, bound in zip(differences, bounds, strict=True))
    return AgainstReference(str(reference.path), max(differences, default=0.0),
                            max(bounds, default=BOUND), agree)


def _difference(output: np.ndarray, expected: np.ndarray, scalar_type: int | None,
                subject: str) -> float:
    if expected.dtype == np.float64 and output.dtype == np.float32 and output.shape == ():
        output = output.astype(np.float64)  # a board has 32 bits of a number that is not a tensor
    if (output.dtype, output.shape) != (expected.dtype, expected.shape):
        raise fail(INVALID_ARGUMENT, f"{expected.dtype} {list(expected.shape)}, the output is "
                   f"{output.dtype} {list(output.shape)}", subject)
    if scalar_type is not None:
        output, expected = (as_numbers(array, scalar_type) for array in (output, expected))
    return relative_difference(output, expected)


def relative_difference(output: np.ndarray, expected: np.ndarray) -> float:
    """Return the largest difference, divided by the largest finite magnitude of the expected array.

    The result is 0 for equal arrays, and infinite if integers, NaNs or infinities differ.
    """
    if expected.dtype.kind != "f":
        return 0.0 if np.array_equal(output, expected) else float("inf")
    finite = np.isfinite(expected)
    if not np.array_equal(output[~finite], expected[~finite], equal_nan=True):
        return float("inf")
    expected, output = expected[finite].astype(np.float64), output[finite].astype(np.float64)
    difference = np.abs(output - expected).max(initial=0)
    if difference == 0:
        return 0.0
    return float(difference / np.abs(expected).max()) if np.isfinite(difference) else float("inf")


# ---- for people


def show_progress(found: Parity) -> None:
    """Print the last board of a report, or the result of the twin if there is no board yet."""
    if not found.boards:
        show.line(f"{found.twin.model}, method {found.twin.method}")
        show.line(f"inputs: {found.inputs}")
        show.line(f"expected outputs: {found.expected or 'none'}")
        _show_reference("the twin", found.reference)
        return
    board = found.boards[-1]
    name, from_byte = board.result.board, board.first_differing_pool_byte
    _line(f"{name} and the twin, outputs", not board.differing_outputs,
          f"{len(found.twin.outputs)} identical to the bit",
          "these differ: " + ", ".join(map(str, board.differing_outputs)))
    _line(f"{name} and the twin, method pool", from_byte is None,
          f"{board.compared_pool_bytes} bytes identical", f"differs from byte {from_byte} on")
    connected = board.result.connected
    if connected is not None:
        show.line(f"{name}, heap free: " + ", ".join(
            f"{show.size(count)} {when}" for when, count in connected.heap_free.items()
            if count is not None))
        show.line(f"{name}: {model_place(connected)}")
    _show_reference(name, board.reference)


def show_verdict(found: Parity) -> None:
    """Print a line that names everything that was compared, and the verdict."""
    compared = ["the twin", *(board.result.board for board in found.boards)]
    if found.reference is not None:
        compared.append(f"the expected outputs ({found.reference.file})")
    verdict = "agree" if found.agree else "DO NOT AGREE"
    show.line(f"{', '.join(compared[:-1])} and {compared[-1]} {verdict}")


def _show_reference(name: str, reference: AgainstReference | None) -> None:
    if reference is not None:
        text = f"largest relative difference {reference.difference:.2g}"
        _line(f"{name} and the expected outputs", reference.agree,
              f"{text} (at most {reference.bound:g})", f"{text}, more than {reference.bound:g}")


def _line(what: str, good: bool, if_good: str, if_not: str) -> None:
    show.line(f"{what}: {if_good if good else 'DIFFERENT: ' + if_not}")
