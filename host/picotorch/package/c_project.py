"""Write compiled methods as a C project: picotorch compile --c.

The folder builds by itself, and any firmware can include it:

    OUT/kws/kws.h         what to call of the model kws: kws_open, kws_run, where inputs and outputs lie
    OUT/kws/kws.c         static memories, and these functions
    OUT/kws/kws_ptm.c     the .ptm file, as an array
    OUT/kws/kws_sample.h  inputs
    OUT/picotorch/        the sources that the operators of all models need, in the library's folders
    OUT/main.c            runs the inputs and prints the outputs; target_*.c is what it needs of where
                          it runs

Platforms other than make have these files in the folders that they expect, see platforms.py.
"""

import itertools
import re
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from picotorch import Error, Program, __version__
from picotorch.errors import INVALID_ARGUMENT, fail
from picotorch.method_meta import MethodMeta

from ..boards.boards import board_names, load_board
from ..firmware.selective import operator_file
from ..host import quoting, twin
from ..host.inputs import checked_inputs, random_inputs
from ..host.operators import methods_of, needed_features, needed_operators
from . import c_files, c_method, c_sample, c_sources
from .c_method import MARK, CMethod
from .identifiers import Identifiers, spelled
from .license import license_text
from .platforms import LIBRARY, MAKE, PROJECTS, Platform, replace_words

_TARGETS = c_sources.KERNELS.parent / "examples" / "c"
_OF_MAIN = ("main", "run_models", "say", "line", "used", "put", "put_text", "put_unsigned",
            "put_number", "put_float", "put_elements")
# Names that no model can have: folders and files of the project, targets of CMake, devices of Windows,
# and headers of C, POSIX and Arduino, which a folder or a header of the same name would hide.
_RESERVED = {LIBRARY, "build", "main", "makefile", "license", "readme", "cmakelists", "target",
             "all", "clean", "install", "test", "help", "package", "assert", "complex", "ctype",
             "errno", "fenv", "float", "inttypes", "iso646", "limits", "locale", "math", "memory",
             "setjmp", "signal", "stdarg", "stdbool", "stddef", "stdint", "stdio", "stdlib",
             "string", "strings", "tgmath", "time", "wchar", "wctype", "stdatomic", "threads",
             "uchar", "stdalign", "stdnoreturn", "unistd", "new", "arduino", "wire", "con", "nul",
             "prn", "aux"}
_WORDS = 8  # words of the .ptm file in a line
# The conditions under which the loops of a core that reads packed weights are compiled
_DSP = "defined(__ARM_FEATURE_DSP) && !defined(__ARM_FEATURE_MVE)"
_LOOPS = {"cortex-m0plus": "defined(__ARM_ARCH_6M__)", "cortex-m4": _DSP, "cortex-m7": _DSP,
          "cortex-m33": _DSP}


@dataclass
class Model:
    """A .ptm file for a project.

    name: the start of its files' and functions' names. inputs: arrays or numbers by method, for main.c;
    random ones otherwise. note: a line for the comments. board: an emulated board that runs the file.
    temp: bytes of temp memory by method, if more than needed. io_names: of inputs and outputs by
    method, see io_names.of_program.
    """

    name: str
    ptm: bytes
    inputs: dict[str, list[Any]] | None = None
    note: str = ""
    board: str = "mps2-an386"
    temp: dict[str, int] = field(default_factory=dict)
    io_names: dict[str, tuple[list[str], list[str]]] = field(default_factory=dict)


class _Part:
    """A model with its methods, and their texts for the files of the project."""

    def __init__(self, model: Model, identifiers: Identifiers) -> None:
        self.name, self.ptm, self.identifiers = model.name, model.ptm, identifiers
        self.board = load_board(model.board)
        self.note = quoting.c_comment(model.note or model.name)
        self.program = twin.open_program(model.ptm)
        self.methods, self.constants = _methods(self.program, model, identifiers)
        self.samples = {method.name: _sample(method.meta, (model.inputs or {}).get(method.name))
                        for method in self.methods}

    def files(self, platform: Platform, shared_temp: int) -> dict[str, str]:
        name = self.name
        header = c_method.header(name, len(self.ptm), self.methods, self.constants, self.note,
                                 self.identifiers)
        texts = (header, c_method.source(name, self.methods, shared_temp),
                 ptm_source(name, self.ptm),
                 c_sample.data(name, self.methods, self.samples, self.identifiers))
        return dict(zip(_paths(name, platform), texts, strict=True))


def name_of(path: Path) -> str:
    """Make the default prefix of functions from the name of the model's file."""
    name = re.sub(r"\W", "_", path.stem, flags=re.ASCII)
    name = name if name[:1].isalpha() and not _is_reserved(name) else f"model_{name}"
    return f"{name}_model" if _is_reserved(name) else name


def _is_reserved(name: str) -> bool:
    """Return True if the project uses a name. pt_... is the library's, ..._ptm a method's."""
    return name.lower() in _RESERVED or bool(re.match("pt(_|$)|.*_ptm$", name.lower()))


class Written(NamedTuple):
    """A project that was written. kept: the changed files that do not fit its models."""

    methods: list[c_method.CMethod]
    kept: list[str]


def write(models: list[Model], folder: Path, platform: Platform = MAKE) -> Written:
    """Write a project with these models.

    A folder that this function wrote before is overwritten, except the user's changes of files that
    belong neither to the library nor to a model. `kept` lists the changed files that do not
    fit these models, see c_files.write_files.

    Raises AccessFailed for a folder with other contents, for files of the user's that it would replace,
    and for a folder that cannot be written. Raises InvalidArgument for a name that is invalid in C or
    that two models share, and OperatorMissing.
    """
    folder = Path(folder)
    check([model.name for model in models], folder, platform)
    identifiers = Identifiers(*_OF_MAIN)
    for model in models:
        _claim(model.name, identifiers, "{}_ptm", "{}_ptm_bytes")
    parts = [_Part(model, identifiers) for model in models]
    methods = [method for part in parts for method in part.methods]
    programs = {part.name: part.program for part in parts}
    operators, features = needed_operators(programs), needed_features(programs)
    shared_temp = max(method.temp for method in methods)
    files = {path: text for part in parts for path, text in part.files(platform, shared_temp).items()}
    files |= _library(operators, features, parts, methods, platform)
    sources = [path for path in files if path.endswith(".c")]
    own = replace_words(_texts(platform), _words(parts, methods, platform, sources))
    kept = c_files.write_files(folder, platform.library, files | own, own.keys())
    return Written(methods, kept)


def check(names: list[str], folder: Path, platform: Platform = MAKE) -> None:
    """Check names of models and the folder, before the work on the models starts.

    Raises the errors of write().
    """
    check_names(names)
    c_files.check_folder(folder, platform.library,
                         [path for name in names for path in _paths(name, platform)],
                         [path.replace("@PROGRAM@", _program(names)) for path in _texts(platform)])


def _program(names: list[str]) -> str:
    """Return the name of the project."""
    return "models" if len(names) > 1 else names[0]


def _paths(name: str, platform: Platform) -> list[str]:
    """Return the paths of the files of a model: header, source, .ptm file in C, inputs."""
    return [f"{platform.root}{name}/{name}{end}" for end in (".h", ".c", "_ptm.c", "_sample.h")]


def check_names(names: list[str]) -> None:
    """Check the names of models.

    Raises InvalidArgument for a name that is invalid in C, that the project uses, or that two models
    share. Names are compared in upper case, because macros have no lower case.
    """
    for name in names:
        if not re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII):
            raise fail(INVALID_ARGUMENT, "is not a C identifier", name,
                       remedy="give the model a --name of letters, digits and _, with a letter first")
        if _is_reserved(name):
            raise fail(INVALID_ARGUMENT, "is a name that every project has already", name,
                       remedy="give the model another --name")
    for one, other in itertools.combinations(names, 2):
        if one.lower() == other.lower():
            raise _is_of_two(other)


def _is_of_two(name: str) -> Error:
    return fail(INVALID_ARGUMENT, "is the name of two models", name,
                remedy="give each its own --name")


def _claim(name: str, identifiers: Identifiers, *patterns: str) -> None:
    """Raise InvalidArgument if the project already has identifiers of a model."""
    if identifiers.claim(name, *patterns) != name:
        raise _is_of_two(name)


def _methods(program: Program, model: Model,
             identifiers: Identifiers) -> tuple[list[CMethod], dict[str, int | float]]:
    """Return the methods that run, and the numbers of the methods that only return one, by name."""
    metas = methods_of(program)
    constants = {meta.name(): c_method.constant_of(meta) for meta in metas}
    running = [(i, meta) for i, meta in enumerate(metas) if constants[meta.name()] is None]
    if not running:
        raise fail(INVALID_ARGUMENT, "all its methods give constants", model.name)
    methods = []
    for i, meta in running:
        name = meta.name()
        prefix = model.name if len(running) == 1 else f"{model.name}_{spelled(name)}"
        methods.append(CMethod(program, i, meta, prefix, identifiers, model.temp.get(name, 0),
                               model.io_names.get(name, ([], []))))
        if len(running) == 1 and methods[0].prefix != prefix:
            raise _is_of_two(model.name)
    return methods, {method: number for method, number in constants.items() if number is not None}


def _sample(meta: MethodMeta, inputs: list[Any] | None) -> list[Any]:
    values = random_inputs(meta) if inputs is None else inputs
    return checked_inputs(meta, values)


def ptm_source(name: str, ptm: bytes) -> str:
    """Return the .ptm file as a C array: words, at a multiple of 16 bytes."""
    words = np.frombuffer(ptm + bytes(-len(ptm) % 4), "<u4")
    lines = [f"// The .ptm file of {name} as little-endian words. {MARK}.", f'#include "{name}.h"', "",
             f"const uint32_t {name}_ptm[{len(words)}] __attribute__((aligned(16))) = {{"]
    for at in range(0, len(words), _WORDS):
        lines.append("    " + " ".join(f"0x{word:08x}," for word in words[at : at + _WORDS]))
    return "\n".join([*lines, "};", ""])


# ---- the library

def _library(operators: list[str], features: Collection[str], parts: list[_Part],
             methods: list[CMethod], platform: Platform) -> dict[str, str]:
    """Return the texts of the library's files by their paths in the project."""
    builds = [] if platform.flat else ["kernels.mk", "CMakeLists.txt"]
    files = {path: (c_sources.KERNELS / path).read_text()
             for path in [*c_sources.needed_files(operators, features), *builds]}
    files["core/registry/operators.def"] = operator_file(operators, features)
    files["include/picotorch/config.h"] = _config(parts, methods)
    return {platform.path_of(path): platform.text_of(path, text) for path, text in files.items()}


def _packed_core(parts: list[_Part]) -> str | None:
    """Return the core for whose loops weights are packed, None without packed weights."""
    cores = [part.board.core for part in parts if twin.has_packed(part.ptm, part.board.core)]
    return cores[0] if cores else None


def _config(parts: list[_Part], methods: list[CMethod]) -> str:
    """Return config.h of the core, which excludes the parts that the methods do not need."""
    text = (c_sources.KERNELS / "include" / "picotorch" / "config.h").read_text()
    core = _packed_core(parts)
    memories = max(method.memories for method in methods)
    inputs = max(-(-method.meta.num_inputs() // 32) * 32 or 32 for method in methods)
    guard = "#define PT_CORE_CONFIG_H\n"
    chosen = ["", f"// {MARK}: what the models need. -DPT_WITH_TEXTS where errors are to be read,",
              "// -DPT_WITH_CHECKS if the .ptm file may be replaced.",
              "#define PT_NO_PROGRAMS", "#define PT_NO_TRACER",
              *(["#define PT_NO_DYNAMIC"] if all(method.is_static() for method in methods) else []),
              *(f"#ifndef PT_WITH_{part}\n#define PT_NO_{part}\n#endif"
                for part in ("TEXTS", "CHECKS")),
              f"#define PT_MAX_MEMORIES {memories}", f"#define PT_MAX_INPUTS {inputs}", "",
              "// A build whose loops read no packed weights, for this computer or with clang,",
              "// restores plain ones as it runs.",
              "#if !defined(__ARM_FEATURE_DSP) && !defined(__ARM_ARCH_7M__) && "
              "!defined(__ARM_ARCH_6M__)",
              "#define PT_ANY_CORE",
              *([f"#elif !({_LOOPS[core]})",
                 f'#error "the weights are packed for {core}: compile for it, or write the project '
                 'with --optimize size"'] if core else []),
              "#endif", ""]
    assert guard in text
    return text.replace(guard, guard + "\n".join(chosen))


# ---- files

def _texts(platform: Platform) -> dict[str, str]:
    """Return the templates of the files that belong neither to the library nor to a model, by path."""
    beside = Path(platform.main).parent
    texts = {**platform.templates(PROJECTS), platform.main: (PROJECTS / "main.c.in").read_text(),
             **{(beside / target).as_posix(): (_TARGETS / target).read_text()
                for target in platform.targets}, "LICENSE": license_text()}
    if platform.sketch:
        texts[platform.sketch] = (PROJECTS / "sketch.cpp.in").read_text()
    # of target.h
    return {path: text.replace("int main(void);", "int @RUNS@(void);") for path, text in texts.items()}


def _words(parts: list[_Part], methods: list[CMethod], platform: Platform,
           sources: list[str]) -> dict[str, str]:
    """Return the texts for @WORD@ in templates. Only NOTE has characters that XML or JSON quotes."""
    several = len(parts) > 1
    names = [part.name for part in parts]
    program, board = _program(names), parts[0].board
    headers = [f"{name}/{name}.h" for name in names]
    return {"PROGRAM": program, "MARK": MARK, "VERSION": __version__,
            "SUMMARY": f"Model{'s' * several} {' and '.join(names)}, compiled by picotorch",
            "MODELS": " ".join(names), "BOARD": board.name, "CORE": board.core, "RUNS": platform.runs,
            "TEXTS": "make TEXTS=1" if platform == MAKE else "-DPT_WITH_TEXTS",
            "NOTE": " and ".join(quoting.html(part.note) for part in parts),
            "FOLDERS": ", ".join(f"`{platform.root}{name}/`" for name in names),
            "SOURCES": ", ".join(f"`{name}/*.c`" for name in names),
            "HEADERS": " and ".join(f"`{header}`" for header in headers),
            "HEADERLINES": "\n".join(f'#include "{header}"' for header in headers),
            "MODELSOURCES": " ".join(f"{name}/{name}.c {name}/{name}_ptm.c" for name in names),
            "PACKFILES": c_files.pack_lines(sources),
            "DECLARE": "declare" if several else "declares",
            "RUNSON": _runs_on(_packed_core(parts)),
            "USE": c_method.use(parts[0].methods), "RAM": c_method.memory_table(methods),
            "INCLUDES": "\n".join(f'#include "{name}/{name}{end}.h"' for name in names
                                  for end in ("", "_sample")),
            "FUNCTIONS": c_sample.runs(methods), "CALLS": c_sample.calls(methods),
            "BOARDS": "\n".join(map(_board_lines, board_names()))}


def _runs_on(core: str | None) -> str:
    """Return a sentence on the cores that run a project."""
    if core is None:
        return "The project runs on any core, with the loops of the core that it is compiled for."
    others = [name for name, loops in _LOOPS.items() if loops == _LOOPS[core]]
    return (f"The weights are packed for {' and '.join(others)}, so the project compiles for no other "
            "core. `picotorch compile` without a core writes it for all.")


def _board_lines(name: str) -> str:
    """Return the lines of a board in the Makefile."""
    board = load_board(name)
    code, data = board.flash_of_project(), board.data
    return "\n".join([
        f"CORE_{name} = {' '.join(board.cflags)}",
        f"PLACE_{name} = FLASH={code.address:#x} FLASH_BYTES={code.size:#x} "
        f"RAM={data.address:#x} RAM_BYTES={data.size:#x}",
        f"MACHINE_{name} = {board.emulator.machine}"])
