"""Find the files of kernels/ that a build with some operators needs, by reading them.

A file outside of the core needs the files that define the pt_ names in it, and in the inline functions
of the headers that it includes. Variants for other instruction sets are included: the compiler selects
among them.
"""

import functools
import re
from collections.abc import Collection

from ..host.operators import FEATURES, feature_kernels, supported_operators
from ..host.sources import ROOT

KERNELS = ROOT / "kernels"
# Files of the core that read .pte and .ptd files, or that measure.
_NOT_FOR_PTM = {f"core/{name}.c" for name in (
    "format/ptd", "format/program", "format/pte", "format/verify", "load/pte_load",
    "load/pte_state", "run/tracer")}
_PACKING = {"arch/pack/dsp.c", "arch/pack/v6m.c"}  # weights in .ptm files are packed already
_FEATURES = {name: f"arch/dsp/{name}.c" for name in ("winograd", "pointwise", "im2row")}

_FLOAT64 = "pt_all_float64"

_COMMENT = re.compile(r"//.*")
_INCLUDE = re.compile(r'(?m)^#include (?:"([^"]+)"|<(picotorch/[^>]+)>)')
_DEFINITION = re.compile(  # the definition of a function or a constant with external linkage
    r"(?m)^(?!static|typedef|inline)(?:const )?\w[\w ]*?[ *]\**(pt_\w+)"
    r"(?:\([^;{}]*\) \{|(?:\[[^\n]*\])? =\s)")
_PROTOTYPE = re.compile(r"(?m)^(?!static|typedef|#)\w[\w *]*\([^{};]*\);")
_PASTED = re.compile(r"\w+(?:##\w+)+")


def all_files() -> list[str]:
    """Return the sources and headers of kernels/, sorted."""
    return sorted(path.relative_to(KERNELS).as_posix() for path in KERNELS.rglob("*")
                  if path.suffix in (".c", ".h", ".inc", ".def"))


def needed_files(operators: list[str], features: Collection[str] = tuple(FEATURES),
                 runs_programs: bool = False) -> list[str]:
    """Return the files of kernels/ with these operators and features, sorted.

    Headers are included. runs_programs: for .pte files, too, and not only for .ptm files.
    """
    supported = supported_operators()
    found = {path for path in _sources() if path.startswith("core/")}
    left_out = {path for name, path in _FEATURES.items() if name not in features}
    if not runs_programs:
        found, left_out = found - _NOT_FOR_PTM, left_out | _PACKING
    symbols = {supported[name].symbol for name in operators}
    for name in features:
        symbols |= {feature_kernels()[name].get(symbol, symbol) for symbol in symbols}
    new = {_kernel_file(symbol) for symbol in symbols}
    new |= _definitions()[_FLOAT64] if "float64" in features else set()
    new = new.union(*map(needed_by, found)) - left_out
    while new:
        found |= new
        new = set().union(*map(needed_by, new)) - found - left_out
    return sorted(found.union(*map(_headers, found)))


@functools.cache
def needed_by(path: str) -> frozenset[str]:
    """Return the sources outside the core whose functions a source outside the core may call."""
    headers = (header for header in _headers(path) if not header.startswith(("core/", "include/")))
    text = _text(path) + "".join(_PROTOTYPE.sub("", _text(header)) for header in headers)
    definitions, names = _definitions(), set(re.findall(r"\bpt_\w+", text))
    kernels = {_kernel_file(symbol) for others in feature_kernels().values() for symbol in others
               if f"pt_{symbol}" in names}
    return frozenset(kernels.union(*(definitions.get(name, ()) for name in names)) - {path})


@functools.cache
def _text(path: str) -> str:
    return _COMMENT.sub("", (KERNELS / path).read_text())


@functools.cache
def _sources() -> list[str]:
    return sorted(path.relative_to(KERNELS).as_posix() for path in KERNELS.rglob("*.c"))


@functools.cache
def _definitions() -> dict[str, set[str]]:
    """Return the sources outside the core that define a name: at most one for each instruction set."""
    found: dict[str, set[str]] = {}
    for path in _sources():
        if not path.startswith("core/"):
            for name in _DEFINITION.findall(_text(path)):
                found.setdefault(name, set()).add(path)
    return found


@functools.cache
def _headers(path: str) -> set[str]:
    """Return all headers that a file includes, directly or indirectly."""
    found: set[str] = set()
    for private, public in _INCLUDE.findall(_text(path)):
        header = private or f"include/{public}"
        found |= {header} | _headers(header)
    return found


def _kernel_file(symbol: str) -> str:
    """Return the source with the kernel pt_<symbol>, whose name a macro may compose."""
    (path,) = _definitions().get(f"pt_{symbol}") or [
        path for path in _sources() if not path.startswith("core/") and _makes(path, symbol)]
    return path


def _makes(path: str, symbol: str) -> bool:
    words = _words(path)
    return symbol in words or any(
        match and words.issuperset(match.groups())
        for pattern in _patterns(path)
        for match in (pattern.fullmatch(symbol), pattern.fullmatch(f"pt_{symbol}")))


@functools.cache
def _words(path: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", _text(path)))


@functools.cache
def _patterns(path: str) -> list[re.Pattern[str]]:
    """Return patterns of the names that macros of a file compose, such as pt_aten_##name##_out.

    A part that neither begins nor ends with _ is a macro's parameter.
    """
    return [re.compile("".join(re.escape(part) if "_" in (part[0], part[-1]) else r"(\w+)"
                               for part in chain.split("##")))
            for chain in _PASTED.findall(_text(path))]
