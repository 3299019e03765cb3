"""Find the largest costs of a method, and changes that reduce them, without running it."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import click

from picotorch import MethodMeta

from ..host import show
from ..host.instructions import DELEGATE_CALL, Instruction, read_instructions
from ..host.request import Estimate
from ..host.twin import is_ptm, open_program
from ..host.values import LEFT_OUT, TENSOR, Values
from ..inspect.description import constant_bytes, partitioners, planned_buffers
from ..inspect.lifetimes import Box, lifetimes
from . import by_size, cycles, timing
from .advice import (
    IN_EITHER,
    IN_FLOAT32,
    IN_INT8,
    Advice,
    Advised,
    CostlyLayer,
    Int8Share,
    LargeTensor,
    Stance,
    agreed,
)
from .macs import factors, macs_of

_LARGEST = 5  # rows of what costs most
_UNROLLED = 3  # layers with the same weights from which on they are steps of a recurrent layer
_COPY = 256  # bytes of a constant from which on a copy in RAM is worth a word
_WEIGHTS = 4096  # bytes of float weights from which on int8 is
_CLONES = ("dim_order_ops::_clone_dim_order.out", "aten::clone.out")
_WITH_INDICES = "aten::max_pool2d_with_indices.out"
_FEW_PRODUCTS = 9  # products for an output of a convolution: int8 is as slow as float32
_CORE = "cortex-m4"  # that int8 and float32 are compared for, as picotorch export does by default
_BASE = 1000  # bytes of a program beside its constants, that do not depend on its calls
_CALL_IN_FLOAT = 0.9  # of the bytes of an int8 call, which has more numbers for arguments
_WITH_TABLE = "cortex_m::quantized_activation.out"
_SOME = 0.1  # of the instructions, from which on other layers help
_MOSTLY = 0.5  # of the instructions, from which on int8 gains little
WITHOUT_INT8 = "export it without --quantize"
_REPLACE = WITHOUT_INT8 + ", or replace the layers that int8 leaves in float"
_QUANTIZERS = ("quantize_per_tensor.out", "quantize_per_channel.out")

# What an int8 program has beside layers, and layers whose weights are int8
_NO_LAYERS = ("executorch_prim", "picotorch::")

# What an int8 program may leave in float, and what helps
_FLOAT_LAYERS = {
    "aten::convolution.out": "use Conv1d or Conv2d with constant weights, and with nothing between it "
    "and the input that changes the order of dims",
    "aten::linear.out": "let it follow a layer that is int8, and have no operator between it and its "
    "activation",
    "aten::addmm.out": "export it again: a linear layer was taken apart (picotorch export keeps it)",
    "aten::mm.out": "use a Linear layer, or torch.bmm on tensors of three dims",
    "aten::bmm.out": "give both factors three dims",
    "aten::mul.out": "multiply the weights of the layer before it, once, instead of its output",
    "aten::div.out": "multiply by the reciprocal, or divide the weights of the layer before it",
    "aten::native_layer_norm.out": "let it follow a layer that is int8",
    "aten::native_group_norm.out": "let it follow a layer that is int8",
    "aten::_native_batch_norm_legit_no_training.out": "put it right behind a convolution, where it "
    "costs nothing",
    "aten::mean.dim_out": "use AdaptiveAvgPool2d",
}
_ANOTHER_LAYER = ("use an operator that has an int8 kernel: functions of one element, normalizations "
                  "and softmax have one")


class _Method(NamedTuple):
    """A method and its origins.

    origins: of each instruction, {tensor: its constant, or the constant it was made from}. backends:
    names of unregistered ones. kept: the numbers of instructions that are in float, or convert, by
    request.
    """

    values: Values
    instructions: list[Instruction]
    boxes: list[Box]
    inputs: list[int]
    outputs: list[int]
    origins: list[dict[int, int]]
    backends: list[str]
    kept: frozenset[int] = frozenset()

    def tensors(self, indexes: Iterable[int]) -> list[int]:
        return self.values.all_tensors(indexes)

    def nbytes(self, index: int) -> int:
        return self.values.tensor(index).nbytes()

    def is_float(self, index: int) -> bool:
        return self.values.tensor(index).dtype == "Float"

    def is_int8(self) -> bool:
        """Return whether a part was quantized, if only tensors between layers of floats."""
        return any(_is_int8(one) or _is_conversion(one) for one in self.instructions)


def advise_export(model: bytes, kept: Iterable[int] = ()) -> list[Advice]:
    """Return advice on how the method "forward" was exported.

    It covers recurrent layers step by step, layers left in float, and max pools with indices. kept: the
    layers that are in float by request, by their numbers among layers(model). Raises NotFound,
    InvalidProgram.
    """
    found = _keep(_read(open_program(model).method_meta("forward")), kept)
    return [one for rule in (_unrolled, _float_layers, _conversions, _unused_indices)
            for one in rule(found)]


def layers(model: bytes) -> list[int]:
    """Return the numbers of the instructions of "forward" that do not convert between int8 and float.

    Raises NotFound, InvalidProgram.
    """
    return _layers(_read(open_program(model).method_meta("forward")))


def without_gain(model: bytes, whats: Iterable[str], kept: Iterable[int] = ()) -> list[Advice]:
    """Return findings of an int8 program that is slower or larger than in float32.

    They share one remedy. kept: as for advise_export. Raises NotFound, InvalidProgram.
    """
    meta = open_program(model).method_meta("forward")
    found = _keep(_read(meta), kept)
    share = _float_share(found, by_size.by_instruction(meta, _CORE))
    return [_no_gain(what, share) for what in whats]


def int8_share(model: bytes, method: str = "forward") -> Int8Share:
    """Count the int8 part of a method.

    Conversions between int8 and float are no layers. Raises NotFound, InvalidProgram.
    """
    found = _read(open_program(model).method_meta(method))
    counts: Counter[str] = Counter()
    for one in found.instructions:
        outputs = found.tensors(one.outputs)
        if not outputs or _is_conversion(one) or one.call.startswith("executorch_prim"):
            continue
        is_int8, macs = found.values.tensor(outputs[0]).dtype == "Char", macs_of(one, found.values)
        counts["all_layers"] += 1
        counts["all_macs"] += macs
        if is_int8:
            counts["layers"] += 1
            counts["macs"] += macs
    return Int8Share(counts["layers"], counts["all_layers"], counts["macs"], counts["all_macs"])


def advise(model: bytes, name: str, method: str) -> Advised:
    """Return advice on a method of a model. Raises NotFound, InvalidProgram."""
    meta = open_program(model).method_meta(method)
    found = _read(meta)
    rules = (_delegates, _copied_constants, _unrolled, _float_layers, _conversions, _slow_first_layer,
             _unused_indices, _idle_copies, _float_weights, _float_io)
    advice = agreed([*_int8_is_no_gain(model, meta, found),
                     *(one for rule in rules for one in rule(found))])
    return Advised(name, method, constant_bytes(found.values), planned_buffers(meta),
                   [one for one in advice if one.remedy], _fullest(found), _max_macs(found))


def _read(meta: MethodMeta) -> _Method:
    values = Values(meta.program, meta.plan)
    instructions = read_instructions(meta, values)
    return _Method(values, instructions, lifetimes(meta),
                   [meta.input_value(i) for i in range(meta.num_inputs())],
                   [meta.output_value(i) for i in range(meta.num_outputs())],
                   _origins(values, instructions), meta.missing_backends())


def _layers(method: _Method) -> list[int]:
    return [one.index for one in method.instructions if not _is_conversion(one)]


def _keep(method: _Method, kept: Iterable[int]) -> _Method:
    """Mark layers in float, by their numbers among all, and the conversions next to them, as kept."""
    numbers = _layers(method)
    by_index = {one.index: one for one in method.instructions}
    layers = [by_index[numbers[k]] for k in kept]
    tensors = {i for one in layers for i in method.tensors((*one.arguments, *one.outputs))}
    near = {one.index for one in method.instructions if _is_conversion(one)
            and not tensors.isdisjoint(method.tensors((*one.arguments, *one.outputs)))}
    return method._replace(kept=frozenset({one.index for one in layers} | near))


def _advice(what: str, instructions: Iterable[Instruction], nbytes: int, remedy: str,
            stance: Stance = IN_EITHER) -> Advice:
    return Advice(what, tuple(one.index for one in instructions), nbytes, remedy, stance)


# ---- int8 beside float32


def _no_gain(what: str, share: float, instructions: Iterable[Instruction] = (),
             nbytes: int = 0) -> Advice:
    """Return the advice for an int8 program without a gain.

    share: of its instructions, which other layers would save.
    """
    is_replaceable = share >= _SOME
    return _advice(what, instructions, nbytes, _REPLACE if is_replaceable else WITHOUT_INT8,
                   IN_EITHER if is_replaceable else IN_FLOAT32)


def _float_share(method: _Method, rows: list[by_size.Row]) -> float:
    """Return the share of the instructions in float layers and their conversions.

    Layers that are in float by request are left out.
    """
    total = sum(count for _, _, count, _, _ in rows)
    return sum(count for one, _, count, _, _ in rows if one.index not in method.kept
               and _is_in_float(method, one)) / total if total else 0


def _int8_is_no_gain(model: bytes, meta: MethodMeta, found: _Method) -> Iterator[Advice]:
    """Compare an int8 program with the same module in float32, in cycles and bytes.

    Cycles are those of picotorch export; for float32 they are estimated from the sizes of the tensors.
    A .ptm file has other bytes than a program.
    """
    if is_ptm(model) or not found.is_int8() or found.backends:
        return
    rows = by_size.by_instruction(meta, _CORE)
    if not any(row[3] for row in rows):  # no call of it has a float32 operator
        return
    is_float = [row[0] for row in rows if _is_in_float(found, row[0])]
    share = _float_share(found, rows)
    of_float = (f"{100 * share:.0f} % of the instructions are in float operators and conversions "
                "between them")
    ours, other = _estimates(model, found, meta.name(), rows)
    if ours.cycles > other.cycles:
        yield _no_gain(f"int8 is slower than float32, about {ours.cycles:,} cycles "
                       f"({ours.instructions:,} instructions) instead of about {other.cycles:,} "
                       f"({other.instructions:,}); {of_float}", share, is_float)
    elif share >= _MOSTLY:
        yield _no_gain(f"{of_float}, and int8 gains little", share, is_float)
    size = _bytes_in_float(model, found, sum(bool(row[3]) for row in rows) / len(rows))
    if len(model) > size:
        yield _no_gain(f"int8 is larger than float32, {len(model):,} B instead of about {size:,} B",
                       share, (), len(model) - size)


def _is_in_float(method: _Method, one: Instruction) -> bool:
    if _is_conversion(one):
        return not _touches_io(method, one)
    outputs = method.tensors(one.outputs)
    return bool(outputs) and method.is_float(outputs[0])


def _estimates(model: bytes, method: _Method, name: str,
               rows: list[by_size.Row]) -> tuple[Estimate, Estimate]:
    """Estimate an int8 program as picotorch export does, and the same module in float32.

    There, float operators cost as many instructions as a board counted here. A method that no board
    runs is estimated by its sizes.
    """
    found, counts = timing.estimate(model, _CORE) if name == "forward" else (None, [])
    return found or _sum_cycles([row[1:3] for row in rows]), _sum_cycles([
        (in_float, counts[one.index] if counts and _is_in_float(method, one) else count)
        for one, _, _, in_float, count in rows if in_float])


def _sum_cycles(counts: Iterable[tuple[str, int]]) -> Estimate:
    operators: Counter[str] = Counter()
    for operator, count in counts:
        operators[operator] += count
    return cycles.estimate(_CORE, None, sum(operators.values()), dict(operators))


def _bytes_in_float(model: bytes, found: _Method, calls: float) -> int:
    """Estimate the bytes of the program in float32. calls: the share of the calls that are left."""
    constants = {found.values.location(i): found.values.tensor(i) for i in range(len(found.values))
                 if found.values.kind(i) == TENSOR and found.values.location(i)[0] == "constant"}
    tables = {found.values.location(i) for one in found.instructions if one.call == _WITH_TABLE
              for i in found.tensors(one.arguments)}
    size: Counter[str] = Counter()
    for place, info in constants.items():
        size["table" if place in tables else info.dtype] += info.nbytes()
    rest = len(model) - sum(size.values())
    del size["table"]
    scales = size.pop("Int", 0)  # a bias, multipliers and shifts; only the bias remains
    weights = size.pop("Char", 0)
    base = min(rest, _BASE)
    return 4 * weights + scales // 3 + sum(size.values()) + base + round(
        (rest - base) * calls * _CALL_IN_FLOAT)


# ---- what there is to find


def _origins(values: Values, instructions: list[Instruction]) -> list[dict[int, int]]:
    """Return for each instruction {tensor: its constant, or the first tensor it was made from}.

    In a .ptm file layers share tensors.
    """
    found = {i: i for i in range(len(values)) if values.kind(i) == TENSOR
             and values.location(i)[0] in ("constant", "external", LEFT_OUT)}
    origins = []
    for one in instructions:
        operands, made = values.all_tensors(one.arguments), values.all_tensors(one.outputs)
        origin = {i: found[i] for i in operands if i in found}
        for i in made:
            found.pop(i, None)
        if operands and len(origin) == len(set(operands)):
            found |= dict.fromkeys(made, origin[operands[0]])
        origins.append(origin | {i: found[i] for i in made if i in found})
    return origins


def _delegates(method: _Method) -> Iterator[Advice]:
    """Find calls of backends that are missing: their cost is unknown."""
    if method.backends:
        yield _advice(
            f"parts are delegated, the program does not run without {', '.join(method.backends)}",
            [one for one in method.instructions if one.kind == DELEGATE_CALL], 0,
            f"export the module again without {partitioners(method.backends)}, or with picotorch "
            "export; register a backend of your own where the program runs")


def _copied_constants(method: _Method) -> Iterator[Advice]:
    """Return the instructions whose inputs are constants, and the ones that follow from these."""
    found: dict[int, int] = {}
    for one in method.instructions:
        outputs = method.tensors(one.outputs)
        if outputs and all(i in method.origins[one.index] for i in outputs):
            found[one.index] = sum(map(method.nbytes, outputs))
    copies = [one for one in method.instructions if found.get(one.index, 0) >= _COPY]
    if copies:
        yield _advice(
            f"constants are copied to RAM in each run, {sum(found.values()):,} B in all", copies,
            max(found.values()),
            "export the module with picotorch export, which keeps linear layers and computes constants "
            "ahead of time; in your own script use EdgeCompileConfig(preserve_ops=[torch.ops.aten."
            "linear.default]) and constant_prop_pass")


def _idle_copies(method: _Method) -> Iterator[Advice]:
    """Find copies in the same dim order, which come from a dropout, contiguous() or clone()."""
    found = []
    for one in method.instructions:
        if one.call in _CLONES:
            source, target = (method.values.tensor(i) for i in (one.arguments[0], one.outputs[0]))
            if source.dim_order() == target.dim_order() and source.dtype == target.dtype:
                found.append(one)
    if found:
        yield _advice("tensors are copied unchanged", found,
                      max(method.nbytes(one.outputs[0]) for one in found),
                      "remove the dropout, contiguous() or clone() from the module that is exported")


def _unused_indices(method: _Method) -> Iterator[Advice]:
    """Find max pools of int8 images that the portable operator computes, with the indices."""
    used = set(method.tensors(method.outputs)) | {
        i for one in method.instructions for i in method.tensors(one.arguments)}
    found = [one for one in method.instructions if one.call == _WITH_INDICES
             and method.values.tensor(one.outputs[0]).dtype == "Char"
             and used.isdisjoint(method.tensors(one.outputs[1:]))]
    if found:
        yield _advice("max pools of int8 images compute indices, which nothing uses", found,
                      max(method.nbytes(one.outputs[1]) for one in found),
                      "use max pools with dilation 1 and export the module with picotorch export: "
                      "these have an int8 kernel, which needs no indices", IN_INT8)


def _float_layers(method: _Method) -> Iterator[Advice]:
    """Find the layers of a program with int8 layers that compute with floats."""
    if not method.is_int8():
        return
    by_call: dict[str, list[Instruction]] = defaultdict(list)
    for one in method.instructions:
        outputs = method.tensors(one.outputs)
        if (outputs and method.is_float(outputs[0]) and not _is_conversion(one)
                and one.index not in method.kept and not one.call.startswith(_NO_LAYERS)):
            by_call[one.call].append(one)
    total = sum(macs_of(one, method.values) for one in method.instructions)
    for call, found in by_call.items():
        macs = sum(macs_of(one, method.values) for one in found)
        share = f", {100 * macs / total:.0f} % of the MACs" if macs else ""
        yield _advice(f"int8 leaves {call.removesuffix('.out')} in float{share}", found,
                      sum(sum(map(method.nbytes, method.tensors(one.outputs))) for one in found),
                      _FLOAT_LAYERS.get(call, _ANOTHER_LAYER), IN_INT8)


def _conversions(method: _Method) -> Iterator[Advice]:
    """Find operators inside the program that dequantize for float layers, or quantize their results."""
    found = [one for one in method.instructions if _is_conversion(one) and one.index not in method.kept
             and not _touches_io(method, one)]
    if len(found) > 1:
        count = sum(math.prod(method.values.tensor(one.outputs[0]).sizes()) for one in found)
        yield _advice(f"{len(found)} operators convert {count:,} values between int8 and float", found,
                      0, "put layers of floats next to each other, or replace them by layers that are "
                      "int8", IN_INT8)


def _unrolled(method: _Method) -> Iterator[Advice]:
    """Find layers that multiply by the same weights, one after the other.

    Batch norms that are depthwise convolutions may have equal weights before training.
    """
    by_weights: dict[tuple[str, int], list[Instruction]] = defaultdict(list)
    for one in method.instructions:
        if macs_of(one, method.values) and "depthwise" not in one.call:
            weights = method.origins[one.index].get(factors(one)[1])
            location = None if weights is None else method.values.location(weights)
            if location not in (None, (LEFT_OUT, 0)):  # equal weights cannot be detected there
                by_weights[location].append(one)
    found = max(by_weights.values(), key=len, default=[])
    if len(found) >= _UNROLLED:
        yield _advice(
            f"a recurrent layer was exported as {len(found)} steps, {len(method.instructions)} "
            "instructions in all", found, 0,
            "export a GRU or LSTM with --fuse-rnn, which makes it one instruction; or export one step, "
            "a GRUCell or LSTMCell with the state as input and output or as a buffer, and execute it "
            "for each step")


def _slow_first_layer(method: _Method) -> Iterator[Advice]:
    """Find int8 convolutions of one channel with a small kernel: they mostly round outputs."""
    found = []
    for one in method.instructions:
        if not one.call.startswith(("cortex_m::quantized_depthwise_conv2d",
                                    "cortex_m::quantized_conv2d")):
            continue
        image, kernel = (method.values.tensor(i).sizes() for i in factors(one))
        products = math.prod(kernel[1:-1])  # weights are 1 x height x width x outputs, or outputs first
        if image[1] == 1 and math.prod(kernel) > products <= _FEW_PRODUCTS:
            found.append(one)
    if found:
        yield _advice("int8 hardly speeds up a convolution of one channel with a small kernel",
                      found, 0,
                      "compute fewer outputs, by a larger stride; use padding=0; or give it more "
                      "channels: several frames, or 2x2 pixels as 4 channels")


def _float_weights(method: _Method) -> Iterator[Advice]:
    """Find weights of four bytes that could have one."""
    if method.is_int8():
        return
    found: list[Instruction] = []
    sizes: dict[tuple[str, int], int] = {}
    for one in method.instructions:
        if macs_of(one, method.values) and "depthwise" not in one.call:
            weights = method.origins[one.index].get(factors(one)[1])
            if weights is not None and method.is_float(weights):
                found.append(one)
                sizes[method.values.location(weights)] = method.nbytes(weights)
    total = sum(sizes.values())
    if total >= _WEIGHTS:
        yield _advice("weights are float32", found, total - total // 4,
                      "export the module with --quantize calibration.npz: int8 weights take a quarter, "
                      "and most layers run faster")


def _float_io(method: _Method) -> Iterator[Advice]:
    """Find operators that quantize inputs and dequantize outputs of an int8 program."""
    io = {*method.inputs, *method.outputs}
    found = [one for one in method.instructions
             if method.is_int8() and _is_quantizer(one) and _touches_io(method, one)]
    floats = [i for i in io if method.values.kind(i) == TENSOR and method.is_float(i)]
    if found and floats:
        yield _advice("inputs and outputs are float", found, sum(map(method.nbytes, floats)),
                      "export with --int8-io, if the sensor gives integers: fewer bytes, less work",
                      IN_INT8)


def _touches_io(method: _Method, instruction: Instruction) -> bool:
    """Return whether an instruction reads an input or writes an output.

    In a .ptm file other tensors may be one with these.
    """
    def writers(value: int) -> list[int]:
        return [one.index for one in method.instructions if value in one.outputs]

    return (any(i in method.inputs and not any(step < instruction.index for step in writers(i))
                for i in instruction.arguments[:1])
            or any(i in method.outputs and writers(i)[-1] == instruction.index
                   for i in instruction.outputs))


def _is_int8(instruction: Instruction) -> bool:
    return (instruction.call.startswith(("cortex_m::", "picotorch::quantized_"))
            and not _is_conversion(instruction))


def _is_conversion(instruction: Instruction) -> bool:
    return "quantize_per_tensor" in instruction.call or _is_quantizer(instruction)


def _is_quantizer(instruction: Instruction) -> bool:
    return instruction.call.endswith(_QUANTIZERS)


# ---- what costs most


def _fullest(method: _Method) -> list[LargeTensor]:
    """Return the tensors that lie in planned memory at the instruction that needs the most."""
    needed: dict[int, int] = {}
    for box in method.boxes:
        for step in (box.first, box.last):
            needed[step] = 0
    for step in needed:
        needed[step] = sum(box.nbytes for box in method.boxes if box.first <= step <= box.last)
    if not needed:
        return []
    step = max(needed, key=needed.__getitem__)
    boxes = sorted((box for box in method.boxes if box.first <= step <= box.last),
                   key=lambda box: -box.nbytes)
    return [LargeTensor(_maker(method, box), _shape(method, box), box.nbytes, box.first, box.last, step)
            for box in boxes[:_LARGEST]]


def _maker(method: _Method, box: Box) -> str:
    if isinstance(box.made_by, str):
        return box.made_by
    return method.instructions[box.made_by].call


def _shape(method: _Method, box: Box) -> str:
    info = method.values.tensor(max(box.values, key=method.nbytes))
    return f"{info.dtype} {'x'.join(map(str, info.sizes()))}"


def _max_macs(method: _Method) -> list[CostlyLayer]:
    found = [(macs_of(one, method.values), one) for one in method.instructions]
    total = sum(macs for macs, _ in found)
    rows = sorted((row for row in found if row[0]), key=lambda row: -row[0])
    return [CostlyLayer(one.index, one.call, macs, round(macs / total, 4))
            for macs, one in rows[:_LARGEST]]


# ---- for people


def show_text(found: Advised) -> None:
    show.line(f"{found.model}, method {found.method}: {found.constant_bytes:,} B of "
              f"constants, {sum(found.planned):,} B of planned memory")
    for number, one in enumerate(found.advice, 1):
        saved = f": {one.bytes:,} B" if one.bytes else ""
        show.heading(f"{number}. {one.what[0].upper()}{one.what[1:]}{saved}")
        if one.instructions:
            show.line(f"   instructions: {_numbers(one.instructions)}")
        click.echo(click.wrap_text(show.printable(one.remedy), 80, "   ", "   "))
    if not found.advice:
        show.line("No advice.")
    if found.memory:
        show.heading(f"Most RAM: tensors at instruction {found.memory[0].instruction}")
        show.table(["made by", "tensor", "bytes>", "from>", "to>"], [
            [one.made_by, one.shape, f"{one.bytes:,}", one.first, one.last] for one in found.memory])
    if found.layers:
        show.heading("Most work: multiply-accumulates")
        show.table(["", "operator", "MACs>", "share>"], [
            [one.instruction, one.call, f"{one.macs:,}", f"{100 * one.share:.1f} %"]
            for one in found.layers])
    click.echo("\nBytes are RAM or flash that the change can save. picotorch profile measures time.")


def _numbers(numbers: Sequence[int]) -> str:
    shown = ", ".join(map(str, numbers[:_LARGEST * 2]))
    return shown if len(numbers) <= _LARGEST * 2 else f"{shown} ... ({len(numbers)})"
