"""picotorch compile: the program of a .pte file as an image, which runs from flash without a loader."""

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from picotorch import Error, MethodMeta, Program
from picotorch.errors import INTERNAL, INVALID_ARGUMENT, fail
from picotorch.module import load_with_exact_memories

from ..export import exporting
from ..export.steps import Steps
from ..host import inputs, twin
from ..host.instructions import read_instructions
from ..host.optimize import Optimize
from ..host.request import Request, Result
from ..host.values import Values
from ..measure.sizing import unplanned_bytes
from ..run.parity import same_bits
from . import preparing
from .image_writer import Image, compile_image

_DIRT = 0x7F  # a large number in every dtype
HasRoom = Callable[[list[dict[str, Any]]], bool]  # takes the needs of methods
_GAIN = 0.05  # of a run's cycles: for less, a C project takes the temp memory that kernels use


def compile_file(model: bytes, name: str, data: list[bytes], core: str, optimize: Optimize,
                 room: Callable[[Image], int | None], has_room: HasRoom | None,
                 before: list[dict[str, Any]], int8_io: bool, keep_plan: bool,
                 steps: Steps) -> tuple[Image, dict[str, Any]]:
    """Return an image of all methods, and what is in it.

    optimize: with paying weights packed, preparing.choose takes room. With fitting scratch memory,
    kernels have the smallest where the target has no room for more beside the models before, or without
    a target (has_room is None) where more gains little. Raises Error.
    """
    program = model
    notes: list[str] = []
    if not keep_plan:
        with steps.step("Planning memory"):
            program, notes = _plan(model, name, int8_io)
    with steps.step("Loading, and storing what loading made"):
        image = compile_image(program, data, None if optimize.pack_weights == "none" else core)
    prepared = None
    least_temp = optimize.scratch == "min"
    if optimize.scratch == "fitting":
        methods = [_method(model, image.data, data, method, core) for method in image.methods]
        if has_room:
            least_temp = not has_room(_wanted([*before, {"least_temp": False, "methods": methods}]))
        else:
            with steps.step("Measuring with the temp memory that kernels use, and with more"):
                least_temp = not _gains_by_temp(image, name, core, methods)
    if optimize.pack_weights == "paying" and image.parts.prepared:
        with steps.step("Measuring with and without prepared weights"):
            image, prepared = preparing.choose(program, data, name, core, room, least_temp)
    methods = [_method(model, image.data, data, method, core) for method in image.methods]
    entry = {"model": name, "model_bytes": len(model) + sum(map(len, data)), "core": core,
             "bytes": len(image.data), "flash": vars(image.parts), "prepared": prepared, "notes": notes,
             "least_temp": least_temp, "methods": methods}
    with steps.step("Comparing the outputs of program and image"):
        for method in methods:
            _check(program, image.data, name, data, method)
    return image, entry


def _method(model: bytes, image: bytes, data: list[bytes], method: str, core: str) -> dict[str, Any]:
    """constant: it has no instructions. temp_least, temp_fastest: bytes of temp memory that its kernels
    use, and those with which it is fastest; the latter of the program are temp_before. "after" and
    "before" have those of the two that choose_temp chooses; "before" is None where the program has no
    such method. time, other_temp, slowest: for summary.add_measured, with the same."""
    compiled, program = twin.open_program(image), twin.open_program(model)
    meta, after = compiled.method_meta(method), _need(compiled, [], method)
    fastest = fastest_temp(image, method, core, after["temp"])
    before = _need(program, data, method) if method in program.method_names else None
    return {"method": method, "constant": not read_instructions(meta, Values(meta.program, meta.plan)),
            "before": before, "after": after, "temp_least": after["temp"], "temp_fastest": fastest,
            "temp_before": before and fastest_temp(model, method, core, before["temp"], data),
            "time": None, "other_temp": None,
            "slowest": []}


def _plan(model: bytes, name: str, int8_io: bool) -> tuple[bytes, list[str]]:
    """The program with a smaller memory plan, where ExecuTorch's exporter can make one; and what to say
    where it cannot."""
    try:
        return exporting.export_file(model, name, int8_io)[0], []
    except Error as error:
        if int8_io:
            raise
        return model, [f"The memory plan is the program's own: {error}"]


def _need(program: Program, data: list[bytes], name: str) -> dict[str, Any]:
    """Measure the bytes of each memory that a method needs."""
    report = load_with_exact_memories(program, name, False, twin.open_data(data)).memory_report()
    return {"method_pool": report["method_pool"]["used"],
            "planned": [one["used"] for one in report["planned"]], "temp": report["temp"]["used"],
            "unplanned": unplanned_bytes(program.method_meta(name))}


def fastest_temp(file: bytes, method: str, core: str | None, least: int,
                 data: Sequence[bytes] = ()) -> int:
    """Return the bytes of temp memory with which a method of an image, or of a program with its data
    files, is fastest; least: the default."""
    files = twin.open_data(list(data))
    loaded = load_with_exact_memories(twin.open_program(file), method, False, files)
    return max(twin.wished_temp(loaded, core, False, files), least)


def _gains_by_temp(image: Image, name: str, core: str, methods: list[dict[str, Any]]) -> bool:
    """True where the temp memory with which methods are fastest saves _GAIN of their cycles, or no
    board can measure."""
    if not any(method["temp_fastest"] > method["temp_least"] for method in methods):
        return False
    try:
        least, fastest = (
            sum(row["cycles"] for row in preparing.measured(image, name, core, least_temp).values())
            for least_temp in (True, False))
    except Error:
        return True
    return bool(fastest < (1 - _GAIN) * least)


def choose_temp(entries: list[dict[str, Any]], has_room: HasRoom | None) -> None:
    """Let methods have the temp memory with which they are fastest, but for entries with least_temp,
    and if the target has room for all of them then. entries: compile_file's."""
    methods = [method for entry in entries for method in entry["methods"]]
    wanted = _wanted(entries)
    if has_room is None or has_room(wanted):
        for method, need in zip(methods, wanted, strict=True):
            if need is not method["after"] and method["before"]:
                method["before"] |= {"temp": method["temp_before"]}
            method["after"] = need


def _wanted(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """List the needs of the methods, with the best temp memory for each entry."""
    return [method["after"] if entry["least_temp"] else
            method["after"] | {"temp": method["temp_fastest"]}
            for entry in entries for method in entry["methods"]]


def _run(file: bytes, data: list[bytes], name: str, method: str, given: list[Any],
         need: dict[str, Any]) -> Result:
    """Runs a method twice on the twin, in memories of the sizes that it needs. Planned memory is not
    zero before: loading has to clear what needs it."""
    return twin.run(Request(file, name, given, method, need["method_pool"], temp_size=need["temp"],
                            data=data, further=[given], planned_fill=_DIRT))


def _check(program: bytes, image: bytes, name: str, data: list[bytes], entry: dict[str, Any]) -> None:
    """Runs a method of program and image on the twin with the same random inputs. entry: _method's.
    Raises Internal when they differ."""
    method = entry["method"]
    opened = twin.open_program(program)
    given = inputs.random_inputs(opened.method_meta(method))
    was = _run(program, data, name, method, given, _need(opened, data, method))
    now = _run(image, [], name, method, given, entry["after"])
    before, after = (list(itertools.chain(result.outputs, *result.further)) for result in (was, now))
    same = was.code == now.code and len(before) == len(after) and all(
        same_bits(one, other) for one, other in zip(before, after, strict=True))
    if not same:
        raise fail(INTERNAL, "the image gives other outputs than the program", method,
                   remedy="this is a fault of picotorch: please report it with the model")


def default_output(model: Path) -> Path:
    return model.with_suffix(".ptm")


def drawings(model: bytes, image: Image, name: str) -> list[tuple[MethodMeta, str]]:
    """Methods with planned memory, each in the program and in the image, with a title for each."""
    found = []
    before, after = twin.open_program(model), twin.open_program(image.data)
    for method in image.methods:
        for program, kind in ((before, "before"), (after, "in the image")):
            if method in program.method_names:
                meta = program.method_meta(method)
                if any(twin.planned_sizes(meta, {})):
                    found.append((meta, f"{name}, {method}, {kind}"))
    if not found:
        raise fail(INVALID_ARGUMENT, "no method has planned memory to draw", "memory map")
    return found
