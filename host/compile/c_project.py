"""picotorch compile --c: an image as a folder that builds by itself and that any firmware can take.

    OUT/model.h        what to call: model_open, model_run, where inputs and outputs lie
    OUT/model.c        static memories, and these functions
    OUT/model_image.c  the image
    OUT/picotorch/     the sources that these operators need, in the library's folders
    OUT/sample.h       inputs
    OUT/main.c         runs them and prints the outputs; target_*.c is what it needs of where it runs
"""

import re
import shutil
from pathlib import Path

import numpy as np
from picotorch import Program
from picotorch.errors import ACCESS_FAILED, INVALID_ARGUMENT, fail
from picotorch.method_meta import MethodMeta

from .. import twin
from ..boards.boards import board_names, load_board
from ..files import write as write_file
from ..firmware.selective import check_sources, operator_file
from ..inputs import checked_inputs, random_inputs
from ..operators import needed_operators
from . import c_method, c_sample, c_sources
from .c_method import MARK, CMethod

_TEMPLATES = Path(__file__).resolve().parent / "c_templates"
_TARGETS = c_sources.KERNELS.parent / "examples" / "c"
_TAKEN = ("target.h", "target_host.c", "target_mps2.c", "mps2.ld")
_LICENCE = c_sources.KERNELS.parent / "LICENSE"
_OWN = {"main.c", "Makefile", "CMakeLists.txt", *_TAKEN}
_WORDS = 8  # of the image in a line


def write(image: bytes, folder: Path, name: str = "model", inputs: dict[str, list] | None = None,
          note: str = "") -> dict:
    """Writes the project of an image, and says what is in it.

    name: what its functions begin with. inputs: arrays or numbers by method, of those that main.c
    runs; random ones otherwise. note: a line about the model, for the comments.

    A folder that this function wrote before is overwritten, except the files for the user to change:
    main.c, targets, Makefile and CMakeLists.txt stay where they are there. Raises AccessFailed for a
    folder with other files or that cannot be written, InvalidArgument for a name that is none in C,
    OperatorMissing, NotFound outside of picotorch's repository.
    """
    check_sources(name)
    if not re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII):
        raise fail(INVALID_ARGUMENT, "is not a C identifier", name)
    program = twin.open_program(image)
    operators = needed_operators({name: program})
    methods, constants = _methods(program, name)
    samples = {method.name: _sample(method.meta, (inputs or {}).get(method.name))
               for method in methods}
    files = {
        "model.h": c_method.header(name, len(image), methods, constants, note),
        "model.c": c_method.source(name, methods),
        "model_image.c": image_source(name, image),
        "sample.h": c_sample.data(methods, samples),
        **_templates(name, methods, note),
        **_library(operators, methods),
    }
    _write_files(Path(folder), files)
    return {"folder": str(folder), "files": len(files), "operators": operators,
            "methods": [method.entry() for method in methods]}


def _methods(program: Program, name: str):
    """Those that run, and the numbers of those that only give one, by their names."""
    metas = [program.method_meta(method) for method in program.method_names]
    constants = {meta.name(): c_method.constant_of(meta) for meta in metas}
    running = [(i, meta) for i, meta in enumerate(metas) if constants[meta.name()] is None]
    if not running:
        raise fail(INVALID_ARGUMENT, "all its methods give constants", name)
    methods = [CMethod(program, i, meta, prefix) for (i, meta), prefix in
               zip(running, _prefixes(name, [meta.name() for _, meta in running]), strict=True)]
    return methods, {method: number for method, number in constants.items() if number is not None}


def _prefixes(name, methods):
    """What the functions of each method begin with: where there are several, with the method's name."""
    if len(methods) == 1:
        return [name]
    found = []
    for method in methods:
        prefix = f"{name}_{c_method.identifier(method)}"
        found.append(prefix if prefix not in found else f"{prefix}_{len(found)}")
    return found


def _sample(meta: MethodMeta, given):
    values = random_inputs(meta) if given is None else given
    return checked_inputs(meta, values)


def image_source(name: str, image: bytes) -> str:
    """The image as a C array: words, at a multiple of 16 bytes."""
    words = np.frombuffer(image + bytes(-len(image) % 4), "<u4")
    lines = [f'// The image of {name}: its words, little-endian. {MARK}.', '#include "model.h"', "",
             f"const uint32_t {name}_image[{len(words)}] __attribute__((aligned(16))) = {{"]
    for at in range(0, len(words), _WORDS):
        lines.append("    " + " ".join(f"0x{word:08x}," for word in words[at : at + _WORDS]))
    return "\n".join([*lines, "};", ""])


# ---- the library

def _library(operators, methods):
    """The texts of its files by their paths in the project."""
    files = {f"picotorch/{path}": (c_sources.KERNELS / path).read_text()
             for path in c_sources.needed_files(operators)}
    for name in ("kernels.mk", "CMakeLists.txt"):
        files[f"picotorch/{name}"] = (c_sources.KERNELS / name).read_text()
    files["picotorch/core/operators.def"] = operator_file(operators, images=True)
    files["picotorch/core/config.h"] = _config(methods)
    return files


def _config(methods):
    """config.h of the core with what the methods do not need left out."""
    text = (c_sources.KERNELS / "core" / "config.h").read_text()
    memories = max(method.memories for method in methods)
    inputs = max(-(-method.meta.num_inputs() // 32) * 32 or 32 for method in methods)
    guard = "#define PT_CORE_CONFIG_H\n"
    chosen = ["", f"// {MARK}: what this model needs. PT_NO_TEXTS may go where errors are to be read,",
              "// PT_NO_CHECKS where the image may be another one than the project was written for.",
              *(f"#define {switch}" for switch in
                ("PT_NO_PROGRAMS", "PT_NO_TEXTS", "PT_NO_TRACER", "PT_NO_CHECKS")),
              f"#define PT_MOST_MEMORIES {memories}", f"#define PT_MOST_INPUTS {inputs}", ""]
    assert guard in text
    return text.replace(guard, guard + "\n".join(chosen))


# ---- files

def _templates(name, methods, note):
    """The files that are the same for all models but for some words."""
    words = {"NAME": name, "MARK": MARK, "NOTE": c_method.comment(note or name),
             "USE": c_method.use(methods), "RAM": c_method.memory_table(methods),
             "RUNS": c_sample.runs(methods), "RUN": c_sample.calls(methods),
             "BOARDS": "\n".join(map(_board_lines, board_names()))}
    files = {path.name.removesuffix(".in"): path.read_text()
             for path in sorted(_TEMPLATES.iterdir())}
    files |= {path: (_TARGETS / path).read_text() for path in _TAKEN}
    if _LICENCE.exists():
        files["LICENSE"] = _LICENCE.read_text()
    return {path: re.sub(r"@([A-Z]+)@", lambda match: words[match[1]], text)
            for path, text in files.items()}


def _board_lines(name):
    """The lines of a board in Makefile."""
    board = load_board(name)
    unified = ["-masm-syntax-unified"] if board.core == "cortex-m0plus" else []
    code, data = board.code, board.data
    return "\n".join([
        f"CORE_{name} = {' '.join([*board.cflags, *unified])}",
        f"PLACE_{name} = FLASH={code.address:#x} FLASH_BYTES={code.size:#x} "
        f"RAM={data.address:#x} RAM_BYTES={data.size:#x}",
        f"MACHINE_{name} = {board.emulator.machine}"])


def _write_files(folder, files):
    try:
        if folder.exists() and any(folder.iterdir()):
            _remove_written(folder)
        for path, text in files.items():
            if path in _OWN and (folder / path).exists():
                continue
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            write_file(folder / path, text)
    except OSError as error:
        raise fail(ACCESS_FAILED, error.strerror or str(error), str(folder)) from None


def _remove_written(folder):
    """Removes the sources that an earlier call wrote."""
    header = folder / "model.h"
    if not (header.is_file() and MARK in header.read_text(errors="replace")):
        raise fail(ACCESS_FAILED, "has files that are not picotorch's", str(folder),
                   remedy="name a new folder")
    shutil.rmtree(folder / "picotorch", ignore_errors=True)
