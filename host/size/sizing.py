"""picotorch size: what a method needs, to the byte, and which boards have it.

Pool, planned buffers and temp memory are those of the method as the twin loads it, which are the
same on every board. Stack and flash of the kernels are those of boards whose firmware is built: the
stack as a run measures it, and the most that any run of the method can take.
"""

import contextlib
from typing import NamedTuple

import click
from picotorch import Backend, Error, MethodMeta, register_backend, unregister_backend
from picotorch.errors import NOT_SUPPORTED, fail
from picotorch.module import load_with_exact_memories

from .. import show
from ..aligned import ALIGNMENT
from ..boards.boards import Board, load_board
from ..inputs import random_inputs
from ..inspect.description import constant_bytes, delegate_list, operator_list
from ..run import emulator, running
from ..run.request import Request
from ..twin import is_image, open_data, open_program, planned_sizes
from ..values import TENSOR, Values
from .elf import flash_bytes
from .flash import flash_of_operators, flash_rows
from .stack import FREE, bound_on

_MOST_BACKENDS = 64  # each registration looks at all before it


def measure(model: bytes, name: str, method: str, boards: list[str], prepare: str,
            data: list[bytes] = ()) -> dict:
    """What the method needs and how it fits each board; `data`: its .ptd files. Raises what loading
    raises."""
    program = open_program(model)
    meta = program.method_meta(method)
    planned = planned_sizes(meta, {})
    with _stand_ins(meta):
        report = load_with_exact_memories(program, method, prepare == "pool",
                                          open_data(data)).memory_report()
    need = {
        "model": name,
        "method": method,
        "method_pool": report["method_pool"]["used"],
        "prepared": report["prepared"],
        "planned": planned,
        "temp": report["temp"]["used"],
        "stack_free": FREE,
        "program_bytes": len(model),
        "data_bytes": [len(file) for file in data],
        "constant_bytes": constant_bytes(Values(program, meta.plan)),
        "operators": [operator["name"] for operator in operator_list(meta)],
        "delegates": delegate_list(meta),
    }
    request = Request(model, name, random_inputs(meta), method, need["method_pool"],
                      temp_size=need["temp"], prepare=prepare, data=list(data))
    placed = Placed(_output_sizes(meta), _input_bytes(meta))
    need["boards"] = [_on_board(load_board(board), need, request, placed) for board in boards]
    return need


class Placed(NamedTuple):
    """What a board's runner keeps in memory besides: bytes of each output and mutable buffer outside
    the planned buffers, which it puts behind these, and of all inputs."""

    outputs: list[int]
    inputs: int


@contextlib.contextmanager
def _stand_ins(meta: MethodMeta):
    """Registers backends that do nothing in place of those that a method needs and that are not there:
    what these would allocate is not known. Raises NotSupported for more than _MOST_BACKENDS."""
    missing = meta.missing_backends()
    if len(missing) > _MOST_BACKENDS:
        raise fail(NOT_SUPPORTED, f"{len(missing)} that are not registered, {_MOST_BACKENDS} at most",
                   "backends", remedy="register those that there are, with --backend")
    for name in missing:
        register_backend(name, _StandIn())
    try:
        yield
    finally:
        for name in missing:
            unregister_backend(name)


class _StandIn(Backend):
    def init(self, context, processed, compile_specs):
        return None


def _on_board(board: Board, need: dict, request: Request, placed: Placed) -> dict:
    memories = {
        "pool": (need["method_pool"], board.arenas["pool"].size),
        **_planned_arenas(board, need["planned"], placed.outputs),
        "temp": (need["temp"], board.arenas["temp"].size),
        "model": (need["program_bytes"] + sum(need["data_bytes"]) + placed.inputs,
                  _room_for_job(board)),
    }
    entry = {
        "board": board.name,
        "fits": all(needed <= size for needed, size in memories.values()),
        "memories": {name: {"needed": needed, "size": size}
                     for name, (needed, size) in memories.items()},
        "stack": None,
        "stack_bound": bound_on(board, need["operators"]),
        "stack_size": board.stack_size,
        **_flash(board, need["operators"], is_image(request.model)),
        "message": "",
    }
    if entry["fits"]:
        _measure_stack(entry, board, request)
    return entry


def _room_for_job(board):
    """Bytes; where the job lies behind the firmware and that is not built, what both have together."""
    with contextlib.suppress(emulator.FirmwareMissing):
        return emulator.job_memory(board, emulator.firmware_path(board)).size
    return board.job.size


def _planned_arenas(board, planned, outputs):
    """Bytes needed and there of each arena that a planned buffer or an unplanned output is in."""
    sizes = {"planned": []}
    for i, size in enumerate(planned):
        sizes.setdefault(board.planned_arena(i).name, []).append(size)
    sizes["planned"] += outputs
    return {name: (_together(found), board.arenas[name].size) for name, found in sizes.items()}


def _together(sizes):
    """Bytes of memories that lie behind one another, each at a multiple of 16."""
    return sum(-(-size // ALIGNMENT) * ALIGNMENT for size in sizes)


def _output_sizes(meta):
    return [meta.output_tensor_meta(i).nbytes() for i in meta.unplanned_outputs()] + [
        info.nbytes() for info in meta.unplanned_attributes()]


def _input_bytes(meta):
    return sum(meta.input_tensor_meta(i).nbytes() for i in range(meta.num_inputs())
               if meta.input_tag(i) == TENSOR)


def _flash(board, operators, images):
    """Bytes of the firmware, and of core and kernels for the method alone: None of what is not here."""
    flash = {"firmware_flash": None, "kernels": None}
    with contextlib.suppress(emulator.FirmwareMissing):
        flash["firmware_flash"] = flash_bytes(emulator.firmware_path(board))
        flash["kernels"] = flash_of_operators(board, operators, images=images)
    return flash


def _measure_stack(entry, board, request):
    """Runs the method on the board; where that cannot be, the message says why."""
    try:
        result = running.run(request, board.name)
        running.check_result(result)
        entry["stack"] = result.stack
    except Error as error:
        entry["message"] = str(error)


def show_text(need: dict) -> None:
    show.line(f"{need['model']}, method {need['method']}")
    show.heading("Needs, the same on every board")
    show.table(["memory", "bytes>"], [
        ["method pool", need["method_pool"]],
        *([["  prepared in it", need["prepared"]]] if need["prepared"] else []),
        *[[f"planned buffer {i}", size] for i, size in enumerate(need["planned"])],
        ["temp memory", need["temp"]],
        ["program (flash)", need["program_bytes"]],
        ["  constants in it", need["constant_bytes"]],
        *[[f"  delegate {i}, {delegate['backend']}", delegate["nbytes"]]
          for i, delegate in enumerate(need["delegates"])],
        *[[f"data file {i} (flash)", size] for i, size in enumerate(need["data_bytes"])]])
    missing = sorted({delegate["backend"] for delegate in need["delegates"]
                      if not delegate["registered"]})
    if missing:
        show.line(f"Without what these backends allocate, which are not registered here: "
                  f"{', '.join(missing)}")
    if need["boards"]:
        _show_boards(need)


def _show_boards(need):
    show.heading("Boards: needed of what there is")
    names = ["pool", *sorted({name for entry in need["boards"] for name in entry["memories"]
                              if name.startswith("planned")}), "temp", "model"]
    show.table(["board", *[name + ">" for name in names], ""],
               [_row(entry, names) for entry in need["boards"]])
    for entry in need["boards"]:
        if entry["message"]:
            show.line(f"{entry['board']}: {entry['message']}")
    _show_stack(need)
    _show_flash(need["boards"])


def _show_stack(need):
    """Of the boards whose firmware is built."""
    built = [entry for entry in need["boards"] if entry["stack_bound"] is not None]
    if not built:
        return
    show.heading("Stack: a run, and the most that any run of it takes to execute")
    show.table(["board", "load>", "execute>", "at most>", "of>"], [
        [entry["board"], *[(entry["stack"] or {}).get(phase, "-") for phase in ("load", "execute")],
         entry["stack_bound"], entry["stack_size"]] for entry in built])
    click.echo(f"Load and execute do not begin where less than {need['stack_free']} bytes are left.")
    if need["delegates"]:
        click.echo("The most is without what the backends of delegates take.")


def _show_flash(boards):
    """What each operator of the method takes, and the whole firmware."""
    built = [entry for entry in boards if entry["kernels"] is not None]
    if not built:
        return
    show.heading("Flash of core and kernels, for this method alone")
    show.table(["", *[entry["board"] + ">" for entry in built]], [
        *flash_rows([entry["kernels"] for entry in built]),
        ["whole firmware", *[entry["firmware_flash"] for entry in built]]])
    click.echo("An operator's bytes are those that no other operator of the method needs. The whole "
               "firmware holds\nMicroPython, the runtime and all kernels that it was built with; "
               "picotorch firmware builds one with these.")


def _row(entry, names):
    memories = entry["memories"]
    return [entry["board"], *[_usage(**memories[name]) if name in memories else "-" for name in names],
            "fits" if entry["fits"] else "DOES NOT FIT"]


def _usage(needed, size):
    return f"{needed}/{size}" + ("" if needed <= size else " !")
