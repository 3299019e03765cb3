"""Compile the program of a .pte file to a .ptm file, which runs from flash without a loader."""

import dataclasses
import functools
import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from picotorch import Error, MethodMeta, Program
from picotorch.errors import INTERNAL, INVALID_ARGUMENT, fail
from picotorch.module import load_with_exact_memories

from ..boards.boards import Board
from ..boards.chips import Chip
from ..export import replan
from ..export.progress import Steps
from ..host import inputs, show, twin
from ..host.drawing import write_drawing
from ..host.files import about, check_output, write
from ..host.instructions import read_instructions
from ..host.optimize import BALANCED, Optimize
from ..host.request import Request, Result
from ..host.values import Values
from ..inspect import memory_map
from ..measure import fitting
from ..measure.sizing import unplanned_bytes
from ..package import c_project, io_names
from ..package.platforms import MAKE, Platform
from ..run import running
from ..run.parity import same_bits
from . import fit_check, packing, summary
from .ptm_writer import Ptm, compile_ptm
from .report import Compiled, CompiledMethod, CompiledModel, Memories

_DIRT = 0x7F  # a large number in every dtype
HasRoom = Callable[[Sequence[Memories]], bool]  # of the needs of methods
_GAIN = 0.05  # share of a run's cycles; if the gain is smaller, a C project has the minimum temp memory


@dataclasses.dataclass(frozen=True)
class Job:
    """The work of picotorch compile: one .ptm file, or a C project with all models.

    With `folder` the job writes a C project for `platform`, else it writes the only model to `output`,
    by default the model's name with .ptm.

    models: .pte files. data: .ptd files. names: of the models in the C project, by default their files'
    names. target: the chip or board to fit. core: used without target. optimize, int8_io, keep_plan:
    see the options of the command. memory_map: a file for a drawing of the planned memory.
    """

    models: Sequence[Path]
    data: Sequence[Path] = ()
    output: Path | None = None
    folder: Path | None = None
    platform: Platform = MAKE
    names: Sequence[str] = ()
    target: Board | Chip | None = None
    core: str = "cortex-m4"
    optimize: Optimize = BALANCED
    int8_io: bool = False
    keep_plan: bool = False
    memory_map: Path | None = None


def compile_models(job: Job, tell: Callable[[str], None] | None = None) -> Compiled:
    """Compile models, and write the .ptm file or the C project.

    tell: receives the steps as they begin and end. Raises Error.
    """
    programs = [running.read_program(model) for model in job.models]
    names = list(job.names) or list(map(c_project.name_of, job.models))
    output = job.output or default_output(job.models[0])
    if job.folder:
        c_project.check(names, job.folder, job.platform)
    elif not job.output:
        check_output(output)
    core = job.target.core if job.target else job.core
    compiling = _Compiling(job, core, running.read_data(list(job.data)), sum(map(len, programs)))
    steps = [Steps(tell, f"{show.printable(str(model))}: " if len(job.models) > 1 else "")
             for model in job.models]
    drawings: list[tuple[MethodMeta, str]] = []
    for model, program, step in zip(job.models, programs, steps, strict=True):
        with about(model):
            ptm = compiling.add(program, str(model), step)
        if job.memory_map is not None:
            drawings += _drawings(program, ptm, str(model))
    ptms, models = compiling.ptms, _with_temp(compiling.models, compiling.has_room)
    for i, (ptm, step) in enumerate(zip(ptms, steps, strict=True)):
        with step.step("Measuring on an emulated board"):
            models[i] = summary.measured(models[i], ptm, core,
                                         job.target.clock_hz if job.target else None)
    if job.memory_map is not None:
        write_drawing(job.memory_map, memory_map.draw_all(drawings))
    models = [dataclasses.replace(model, output=str(job.folder / name if job.folder else output))
              for model, name in zip(models, names, strict=True)]
    library = fit_check.library_of([ptm.data for ptm in ptms], core)
    fit = None
    if job.target:
        fit = fit_check.fit(job.target, bool(job.folder), library,
                            [len(ptm.data) for ptm in ptms],
                            [method.after for model in models for method in model.methods])
    kept = _write_project(job, core, names, programs, ptms, models) if job.folder else None
    if not job.folder:
        write(output, ptms[0].data)
    return Compiled(str(job.folder or output), core, models, library,
                    job.target.name if job.target else None, fit, kept)


def _write_project(job: Job, core: str, names: Sequence[str], programs: Sequence[bytes],
                   ptms: Sequence[Ptm], models: Sequence[CompiledModel]) -> list[str]:
    """Write a C project, and return the files that were kept because the user had changed them."""
    assert job.folder is not None
    board = job.target.name if isinstance(job.target, Board) else fitting.board_with(core).name
    return c_project.write([
        c_project.Model(name, ptm.data, note=_note(job, path, ptm, core), board=board,
                        temp={method.method: method.after.temp for method in model.methods},
                        io_names=io_names.of_program(program))
        for name, ptm, path, model, program in zip(names, ptms, job.models, models, programs,
                                                   strict=True)], job.folder, job.platform).kept


def _note(job: Job, path: Path, ptm: Ptm, core: str) -> str:
    """Return the title of a model: its file, and the core if it is for one only."""
    is_for_core = job.platform == MAKE or twin.has_packed(ptm.data, core)
    return f"{path.name} for {core}" if is_for_core else path.name


class _Compiling:
    """Compile the models of a job, one after the other.

    ptms, models: the finished ones. has_room: returns True if the target has room for methods with
    these needs; None without a limit.
    """

    def __init__(self, job: Job, core: str, data: list[bytes], program_bytes: int) -> None:
        self.job, self.core, self.data = job, core, data
        self.ptms: list[Ptm] = []
        self.models: list[CompiledModel] = []
        self.has_room: HasRoom | None = None
        self._program_bytes = program_bytes
        self._scratch = job.optimize.scratch
        if self._scratch == "fitting" and not (job.folder or job.target):
            self._scratch = "preferred"
        if job.target is not None and self._scratch != "preferred":
            self.has_room = functools.partial(fit_check.has_room, job.target, bool(job.folder))

    def add(self, program: bytes, name: str, steps: Steps) -> Ptm:
        """Compile one more model. Raises Error."""
        model, job, data, notes = program, self.job, self.data, list[str]()
        pack = job.optimize.pack_weights
        if not job.keep_plan:
            with steps.step("Planning memory"):
                program, notes = _plan(model, name, job.int8_io)
        with steps.step("Loading, and storing the loaded records"):
            ptm = compile_ptm(program, data, None if pack == "none" else self.core)
        min_temp, packed = self._has_min_temp(model, ptm, name, steps), None
        if pack == "paying" and ptm.parts.packed:
            with steps.step("Measuring with and without packed weights"):
                max_size = functools.partial(self._max_bytes, self._program_bytes - len(model))
                ptm, packed = packing.choose(program, data, name, self.core, max_size, min_temp)
        methods = self._methods(model, ptm)
        with steps.step("Comparing the outputs of program and .ptm file"):
            for method in methods:
                _check(program, ptm.data, name, data, method)
        self.ptms.append(ptm)
        self.models.append(CompiledModel(name, len(model) + sum(map(len, data)), self.core,
                                         len(ptm.data), dict(vars(ptm.parts)), packed, notes,
                                         min_temp, methods))
        return ptm

    def _methods(self, model: bytes, ptm: Ptm) -> list[CompiledMethod]:
        return [_method(model, ptm.data, self.data, method, self.core) for method in ptm.methods]

    def _has_min_temp(self, model: bytes, ptm: Ptm, name: str, steps: Steps) -> bool:
        """Return True if the methods have the minimum temp memory.

        They do if the target has no room for more, beside the models before. Without a target they do
        if more temp memory gains little.
        """
        if self._scratch != "fitting":
            return self._scratch == "min"
        methods = self._methods(model, ptm)
        if self.has_room:
            needs = [need for one in self.models for need in _preferred(one.methods, one.min_temp)]
            return not self.has_room([*needs, *_preferred(methods, False)])
        with steps.step("Measuring with the default temp memory, and with more"):
            return not _gains_by_temp(ptm, name, self.core, methods)

    def _max_bytes(self, others: int, ptm: Ptm) -> int | None:
        """Return the maximum bytes of a .ptm file of this core beside others, or None if unknown."""
        library = fit_check.library_of([ptm.data], self.core)
        maximum = fit_check.max_bytes(self.job.target, bool(self.job.folder), library)
        return maximum and maximum - others


def _method(model: bytes, ptm: bytes, data: list[bytes], method: str, core: str) -> CompiledMethod:
    compiled, program = twin.open_program(ptm), twin.open_program(model)
    meta, after = compiled.method_meta(method), _need(compiled, [], method)
    before = _need(program, data, method) if method in program.method_names else None
    return CompiledMethod(
        method, not read_instructions(meta, Values(meta.program, meta.plan)), before, after, after.temp,
        fastest_temp(ptm, method, core, after.temp),
        fastest_temp(model, method, core, before.temp, data) if before else None)


def _plan(model: bytes, name: str, int8_io: bool) -> tuple[bytes, list[str]]:
    """Return the program with a smaller memory plan, or a message if ExecuTorch cannot plan it.

    ExecuTorch's exporter plans the memory.
    """
    try:
        return replan.export_file(model, name, int8_io)[0], []
    except Error as error:
        if int8_io:
            raise
        return model, [f"The memory plan is the program's own: {error}"]


def _need(program: Program, data: list[bytes], name: str) -> Memories:
    """Return the bytes of each memory that a method needs."""
    report = load_with_exact_memories(program, name, False, twin.open_data(data)).memory_report()
    return Memories(report["method_pool"]["used"], [one["used"] for one in report["planned"]],
                    report["temp"]["used"], unplanned_bytes(program.method_meta(name)))


def fastest_temp(file: bytes, method: str, core: str | None, minimum: int,
                 data: Sequence[bytes] = ()) -> int:
    """Return the fastest temp memory of a method in bytes.

    The method belongs to a compiled method, or to a program with its data files. minimum: the default
    size.
    """
    files = twin.open_data(list(data))
    loaded = load_with_exact_memories(twin.open_program(file), method, False, files)
    return max(twin.preferred_temp(loaded, core, False, files), minimum)


def _gains_by_temp(ptm: Ptm, name: str, core: str, methods: list[CompiledMethod]) -> bool:
    """Return True if the fastest temp memory saves _GAIN of the cycles.

    The result is True if no board can measure it.
    """
    if not any(method.temp_fastest > method.min_temp for method in methods):
        return False
    try:
        minimum, fastest = (
            sum(row.cost for row in packing.measured(ptm, name, core, min_temp).values())
            for min_temp in (True, False))
    except Error:
        return True
    return bool(fastest < (1 - _GAIN) * minimum)


def _with_temp(models: list[CompiledModel], has_room: HasRoom | None) -> list[CompiledModel]:
    """Select the fastest temp memory for the methods if the target then has room for all of them.

    Models with min_temp keep the minimum.
    """
    if has_room and not has_room([need for one in models
                                  for need in _preferred(one.methods, one.min_temp)]):
        return models
    return [one if one.min_temp else
            dataclasses.replace(one, methods=list(map(_with_fastest_temp, one.methods)))
            for one in models]


def _with_fastest_temp(method: CompiledMethod) -> CompiledMethod:
    before = method.before
    if before is not None and method.temp_before is not None:
        before = dataclasses.replace(before, temp=method.temp_before)
    return dataclasses.replace(method, before=before,
                               after=dataclasses.replace(method.after, temp=method.temp_fastest))


def _preferred(methods: Sequence[CompiledMethod], min_temp: bool) -> list[Memories]:
    """List the needs of methods, with the minimum or the fastest temp memory."""
    return [method.after if min_temp else _with_fastest_temp(method).after for method in methods]


def _run(file: bytes, data: list[bytes], name: str, method: str, values: list[Any],
         need: Memories) -> Result:
    """Run a method twice on the twin, in memories of the sizes that it needs.

    Planned memory is not zero before, since a load has to clear the bytes that need it.
    """
    return twin.run(Request(file, name, values, method, need.method_pool, temp_size=need.temp,
                            data=data, further=[values], planned_fill=_DIRT))


def _check(program: bytes, ptm: bytes, name: str, data: list[bytes],
           compiled: CompiledMethod) -> None:
    """Run a method of the program and of the .ptm file on the twin with the same random inputs.

    Raises Internal if they differ.
    """
    method = compiled.method
    opened = twin.open_program(program)
    values = inputs.random_inputs(opened.method_meta(method))
    was = _run(program, data, name, method, values, _need(opened, data, method))
    now = _run(ptm, [], name, method, values, compiled.after)
    before, after = (list(itertools.chain(result.outputs, *result.further)) for result in (was, now))
    same = was.code == now.code and len(before) == len(after) and all(
        same_bits(one, other) for one, other in zip(before, after, strict=True))
    if not same:
        raise fail(INTERNAL, "the .ptm file gives other outputs than the program", method,
                   remedy="this is a bug in picotorch: please report it with the model")


def default_output(model: Path) -> Path:
    """Return the default name of a model's .ptm file."""
    return model.with_suffix(".ptm")


def _drawings(model: bytes, ptm: Ptm, name: str) -> list[tuple[MethodMeta, str]]:
    """Return (title, method) of each method with planned memory, for the program and the .ptm file."""
    found = []
    before, after = twin.open_program(model), twin.open_program(ptm.data)
    for method in ptm.methods:
        for program, kind in ((before, "before"), (after, "in the .ptm file")):
            if method in program.method_names:
                meta = program.method_meta(method)
                if any(twin.planned_sizes(meta, {})):
                    found.append((meta, f"{name}, {method}, {kind}"))
    if not found:
        raise fail(INVALID_ARGUMENT, "no method has planned memory to draw", "memory map")
    return found
