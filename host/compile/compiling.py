"""picotorch compile: the program of a .pte file as an image, which runs from flash without a loader."""

from pathlib import Path

from _picotorch import CORES
from picotorch import Error
from picotorch.errors import INTERNAL, fail
from picotorch.module import load_with_exact_memories

from .. import inputs, show, twin
from ..boards.boards import load_board
from ..export import exporting
from ..run.parity import same_bits
from ..run.request import Request
from .image_writer import Image, compile_image

PLAIN = "cortex-m55"  # whose kernels prepare nothing


def cores() -> list[str]:
    """Names of the cores for which kernels prepare weights, and of one for which they do not."""
    return [*CORES, PLAIN]


def core_of(board: str) -> str:
    """The name of a board's core."""
    return load_board(board).core


def compile_file(model: bytes, name: str, data: list[bytes], core: str, prepare: bool,
                 int8_io: bool, keep_plan: bool) -> tuple[Image, dict]:
    """An image of all methods, and what is in it. Raises Error."""
    program, notes = model, []
    if not keep_plan:
        program, notes = _plan(model, name, int8_io)
    image = compile_image(program, data, core if prepare else PLAIN)
    methods = [{"method": method, "before": _need(model, data, method),
                "after": _need(image.data, [], method)} for method in image.methods]
    entry = {"model": name, "model_bytes": len(model) + sum(map(len, data)), "core": core,
             "bytes": len(image.data), "flash": vars(image.parts), "notes": notes,
             "methods": methods}
    for method in image.methods:
        _check(program, image.data, name, data, method)
    return image, entry


def _plan(model, name, int8_io):
    """The program with a smaller memory plan, where ExecuTorch's exporter can make one; and what to say
    where it cannot."""
    try:
        return exporting.export_file(model, name, int8_io)[0], []
    except Error as error:
        if int8_io:
            raise
        return model, [f"The memory plan is the program's own: {error}"]


def _need(file, data, name):
    """Bytes of the memories that a method takes; None where the file has no such method."""
    opened = twin.open_program(file)
    if name not in opened.method_names:
        return None
    report = load_with_exact_memories(opened, name, False, twin.open_data(data)).memory_report()
    return {"method_pool": report["method_pool"]["used"],
            "planned": [one["used"] for one in report["planned"]], "temp": report["temp"]["used"]}


def _run(file, data, name, method, given):
    """A run on the twin, in memories of the sizes that it needs."""
    need = _need(file, data, method)
    return twin.run(Request(file, name, given, method, need["method_pool"],
                            temp_size=need["temp"], data=data))


def _check(program, image, name, data, method):
    """Runs program and image on the twin with the same random inputs. Raises Internal when they
    differ."""
    given = inputs.random_inputs(twin.open_program(program).method_meta(method))
    was = _run(program, data, name, method, given)
    now = _run(image, [], name, method, given)
    same = was.code == now.code and len(was.outputs) == len(now.outputs) and all(
        same_bits(one, other) for one, other in zip(was.outputs, now.outputs, strict=True))
    if not same:
        raise fail(INTERNAL, "the image gives other outputs than the program", method,
                   remedy="this is a fault of picotorch: please report it with the model")


def default_output(model: Path) -> Path:
    return model.with_suffix(".ptm")


# ---- for people


def show_text(entry: dict) -> None:
    show.line(f"{entry['model']}: {show.size(entry['model_bytes'])}; {entry['output']}: "
              f"{show.size(entry['bytes'])}, for {entry['core']}")
    show.heading("Flash")
    show.table(["part", "bytes>"], [[name, f"{size:,}"] for name, size in entry["flash"].items()
                                    if size] + [["all", f"{entry['bytes']:,}"]])
    for method in entry["methods"]:
        before, after = method["before"], method["after"]
        show.heading(f"RAM of method {method['method']}")
        rows = [["method pool", before["method_pool"] if before else "-", after["method_pool"]]]
        rows += [[f"planned buffer {i}", before["planned"][i] if before else "-", size]
                 for i, size in enumerate(after["planned"])]
        rows.append(["temp memory", before["temp"] if before else "-", after["temp"]])
        show.table(["memory", "loaded from the program>", "image>"], rows)
    for note in entry["notes"]:
        show.line(note)
