"""The platforms that a C project can be for: where each looks for sources and headers.

A platform has two folders of templates in c_templates/, for projects with models and for the library
alone: files by their paths. In their texts and paths, @WORD@ stands for what the writer of the project
has for it. The sources of models and of the library are equal on all platforms, except for `flat`.
"""

import fnmatch
import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from . import c_sources

_TEMPLATES = Path(__file__).resolve().parent / "c_templates"
PROJECTS, LIBRARIES = _TEMPLATES / "project", _TEMPLATES / "library"
LIBRARY = "picotorch"
_INCLUDED = "include/picotorch/"
_HEADER = re.compile(  # the path of a file of kernels/ in quotes
    r'"((?:arch|core|cortex_m|extra|portable|quantized)/[\w./]+\.(?:h|inc|def))"')


@dataclass(frozen=True)
class Platform:
    """A build system, or an environment with its own, and the layout that it expects.

    name: the value of --for, and the name of the folder of templates. root: the folder of the sources.
    flat: the compiler searches `root` only and has the flags of the user's project. Paths in #include
    begin with picotorch/ then, and pragmas state the library's flags. main: the path of the program
    that runs the models; `runs` is the name of its function. sketch: the path of the sketch that calls
    it, "" without Arduino's functions. targets: files beside `main`, of examples/c.
    is_arm: False for other cores, which have no loops for packed weights.
    """

    name: str
    root: str = ""
    flat: bool = False
    main: str = "main.c"
    runs: str = "main"
    sketch: str = ""
    targets: tuple[str, ...] = ("target.h",)
    is_arm: bool = True

    @property
    def library(self) -> str:
        """Return the folder of the library."""
        return f"{self.root}{LIBRARY}"

    def path_of(self, path: str) -> str:
        """Return the path in the project of a file of kernels/."""
        inside = path.removeprefix(_INCLUDED) if self.flat else path
        return f"{self.library}/{inside}"

    def text_of(self, path: str, text: str) -> str:
        """Return the text in the project of a file of kernels/."""
        if not self.flat:
            return text
        text = _HEADER.sub(rf'"{LIBRARY}/\1"', text)
        return _pragmas(path) + text if path.endswith(".c") else text

    def templates(self, kind: Path) -> dict[str, str]:
        """Return the texts of the platform's templates by their paths. kind: PROJECTS or LIBRARIES."""
        folder = kind / self.name
        return {path.relative_to(folder).as_posix(): path.read_text()
                for path in sorted(folder.rglob("*")) if path.is_file()}


_SKETCH = "examples/@PROGRAM@"
MAKE = Platform("make", targets=("target.h", "target_host.c", "target_mps2.c", "mps2.ld"))
PLATFORMS = {one.name: one for one in (
    MAKE,
    Platform("arduino", "src/", True, f"{_SKETCH}/main.c", "run_models",
             f"{_SKETCH}/@PROGRAM@.ino"),
    Platform("cmsis-pack", "src/", True, "template/main.c"),
    Platform("esp-idf", main=f"{_SKETCH}/main/main.c", runs="run_models",
             is_arm=False),
    Platform("platformio", "src/", True, f"{_SKETCH}/src/main.c", "run_models",
             f"{_SKETCH}/src/main.cpp"),
    Platform("zephyr", main="sample/src/main.c"))}
_ALIASES = {"cmake": MAKE}  # one project has the files of both
NAMES = (*PLATFORMS, *_ALIASES)  # the values of --for


def named(name: str) -> Platform:
    """Return the platform of a value of --for."""
    return _ALIASES.get(name) or PLATFORMS[name]


def replace_words(texts: Mapping[str, str], words: Mapping[str, str]) -> dict[str, str]:
    """Replace @WORD@ in templates and in their paths."""
    return {_replaced(path, words): _replaced(text, words) for path, text in texts.items()}


def _replaced(text: str, words: Mapping[str, str]) -> str:
    return re.sub(r"@([A-Z]+)@", lambda match: words[match[1]], text)


def _pragmas(path: str) -> str:
    """Return lines that state the flags of kernels.mk for a source."""
    lists = _lists()
    flags = lists["PT_KERNELS_CFLAGS"] + lists[
        "PT_FAST_CFLAGS" if _is_fast(path) else "PT_SMALL_CFLAGS"]
    names = ", ".join(f'"{flag.removeprefix("-f").removeprefix("-")}"'
                      for flag in ["-fno-fast-math", *flags])
    return ("#if defined(__clang__)\n#pragma STDC FP_CONTRACT OFF\n"
            f"#elif defined(__GNUC__)\n#pragma GCC optimize({names})\n#endif\n")


def _is_fast(path: str) -> bool:
    """Return True for a source that is compiled for speed."""
    lists, parts = _lists(), len(Path(path).parts)
    return (any(fnmatch.fnmatchcase(path, pattern) and len(Path(pattern).parts) == parts
                for pattern in lists["PT_FAST"])
            and not any(path.endswith(f"/{name}") for name in lists["PT_NOT_FAST"]))


@functools.cache
def _lists() -> dict[str, list[str]]:
    """Return the lists of names and flags that kernels.mk assigns."""
    found: dict[str, list[str]] = {}
    for line in (c_sources.KERNELS / "kernels.mk").read_text().splitlines():
        match = re.fullmatch(r"(PT_\w+) [:+]= (.*)", line)
        if match:
            found.setdefault(match[1], []).extend(match[2].split())
    return found
