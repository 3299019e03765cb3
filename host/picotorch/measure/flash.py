"""Count the bytes of flash of the kernels of operators on a board, each operator on its own.

An operator's kernel is all that can be reached from its `pt_kernel`, as the linker sees it: functions
and constants are sections of their own, and relocations name the sections that another one needs.
Sections that several of the operators reach are shared and counted once. The objects are those of the
board's firmware, with or without a selective build. Gaps between sections are not counted.
"""

import functools
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..boards.boards import Board, load_board
from ..host import cache
from ..host.operator_list import Operator
from ..host.operators import (
    FEATURES,
    LIST,
    feature_kernels,
    needed_features,
    needed_operators,
    supported_operators,
)
from ..host.report import Report
from ..host.twin import open_program
from ..run import emulator
from .firmware_map import linked_objects, sections
from .object_files import ObjectFile, Section, read_objects

TABLE = "flash.json"  # beside a firmware
_OBJECTS = re.compile(r"(selected/\w+/)?(kernels|port|shared/libc)/|memory_copy\.o$")
_KERNELS = re.compile(r"/kernels/(?!core/)\w+(?:/\w+){1,2}\.o$")
_CORE = re.compile(r"/kernels/core/(?:\w+/)?\w+\.o$")
_REGISTRY = re.compile(r"/kernels/core/registry/registry\.o$")
_USER = re.compile(r"/port/(?:module|bare)/\w+\.o$")
_TABLES = (".rodata.operators", ".rodata.by_name")
# What the registry refers to in a build with the feature.
_FEATURES: dict[str | int, str] = {
             "pt_ptm_description": "images", "pt_all_float64": "float64",
             "pt_winograd": "winograd", "pt_pointwise": "pointwise",
             "pt_im2row": "im2row"}
_WITH = " with "
# Functions of the library that a C project of .ptm files calls. Without the reader of .pte files, and
# without checks of .ptm files.
_PROJECT = ("pt_ptm_open", "pt_method_meta_at", "pt_load", "pt_unload", "pt_execute", "pt_give_input",
            "pt_output")
_NOT_IN_PROJECTS = ("pt_pte_description", "pt_walk_ptm", "pt_check_calls")
_CHECKS = "checks"  # of kernels: in a project only if its method is not static
_CHECK = "pt_check_instruction"
_ENTRY_BYTES = 12  # of an operator in the registry's table by number
_INDEX_BYTES = 2  # in that by name


@dataclass(frozen=True)
class Piece:
    """A section, or a string that the linker keeps once. `part`: see _part."""

    part: str
    size: int
    key: tuple[str, int] | tuple[bytes]  # (object, section), or (string,)


_Reference = tuple[ObjectFile, int, int]  # a section, and an offset in it
Row = list[Any]  # part, bytes, names of users


class LinkedObjects:
    """The objects of a board's firmware, of a variant or of the one in a file, and references.

    Raises emulator.FirmwareMissing if it is not built, or was built elsewhere.
    """

    def __init__(self, board: Board, variant: str = "run", firmware: Path | None = None) -> None:
        map_file = (firmware or emulator.firmware_path(board, variant)).with_suffix(".map")
        if not map_file.exists():
            raise emulator.FirmwareMissing(f"there is no {map_file}: the firmware was built elsewhere")
        folder = emulator.build_folder(board.name, variant)
        paths = [folder / name for name in linked_objects(map_file, folder)
                 if _OBJECTS.match(name)] + _libraries(map_file)
        try:
            self.objects = [one for path in sorted(paths) for one in read_objects(path)]
        except FileNotFoundError as error:
            raise emulator.FirmwareMissing(f"there is no {error.filename}: the firmware was built "
                                           "elsewhere, or is being built") from None
        self._defined = {name: (one, *section) for one in self.objects
                         for name, section in one.defines.items()}
        kernels = [f"pt_{operator.symbol}" for operator in supported_operators().values()]
        kernels += [f"pt_{name}" for others in feature_kernels().values() for name in others.values()]
        self._kernels = self._sections_of(kernels)

    def _sections_of(self, symbols: Iterable[str]) -> set[tuple[str, int]]:
        """Return {(object, section)} of these symbols, if defined."""
        return {(self._defined[name][0].path, self._defined[name][1])
                for name in symbols if name in self._defined}

    def _needs(self, one: ObjectFile, number: int, features: Collection[str],
               project: bool) -> Iterator[_Reference]:
        """Return (object, section, offset) of all references of a section.

        The registry's references to kernels and names are left out.
        """
        if one.sections[number].name in _TABLES:
            return
        references = one.sections[number].references
        if project and _CHECKS not in features and (one.path, number) in self._kernels:
            references = references[1:]  # a pt_kernel: {check, run}
        for target, offset in references:
            feature = _FEATURES.get(target)
            if feature and feature not in features:
                continue
            key = (one, target, offset) if isinstance(target, int) else self._defined.get(target)
            if key and (feature or not (_REGISTRY.search(one.path)
                                        and _KERNELS.search(key[0].path))):
                yield key

    def reach(self, symbols: Iterable[str], features: Collection[str] = (),
              project: bool = False) -> set[Piece]:
        """Collect the sections that these symbols need, their own included.

        The build has these of FEATURES, or is a C project: without texts of errors. The kernels' checks
        are a feature.
        """
        pieces: dict[tuple[str, int] | tuple[bytes], Piece] = {}
        waiting = [self._defined[symbol] for symbol in symbols]
        left_out: tuple[str, ...] = _NOT_IN_PROJECTS if project else ()
        left_out += (_CHECK,) if project and _CHECKS not in features else ()
        sections_left_out = self._sections_of(left_out)
        while waiting:
            one, number, offset = waiting.pop()
            section = one.sections.get(number)
            if section is None:
                continue  # not a part of flash
            key = (_text(section, offset),) if section.strings else (one.path, number)
            if key in pieces or project and section.strings or key in sections_left_out:
                continue
            size = -(-len(key[0]) // 4) * 4 if section.strings else section.size
            pieces[key] = Piece(_part(one.path, section.name), size, key)
            if not section.strings:
                waiting += self._needs(one, number, features, project)
        return set(pieces.values())

    def has(self, symbol: str) -> bool:
        """Return whether a symbol is defined in the objects."""
        return symbol in self._defined

    def module_symbols(self) -> set[str]:
        """Return the symbols of the core that MicroPython's module, or the program without it, uses."""
        targets = {target for one in self.objects if _USER.search(one.path)
                   for section in one.sections.values() for target, _ in section.references}
        return {name for name in targets if name in self._defined
                and _CORE.search(self._defined[name][0].path)}


def _libraries(map_file: Path) -> list[Path]:
    """Return the archives that the linker took something from."""
    paths = {re.sub(r"\(.*", "", path) for _, _, path in sections(map_file) if path.endswith(".o)")}
    return [Path(path) for path in paths]


def _text(section: Section, offset: int) -> bytes:
    return section.data[offset : section.data.index(b"\0", offset) + 1]


@functools.cache
def _part(path: str, section: str) -> str:
    if section in _TABLES:
        return "registry"
    for part, pattern in (("kernels", _KERNELS), ("core", _CORE), ("user", _USER)):
        if pattern.search(path):
            return part
    return "library"


def tables_of(board: Board, variant: str = "run", firmware: Path | None = None) -> dict[str, list[Row]]:
    """Return rows [part, bytes, users] of a firmware, "firmware", and of a C project, "project".

    users: names of the operators that need these bytes, "core" if the core does; with " with " and the
    feature behind them in a build with one of FEATURES.

    make_wheel.py stores them as TABLE beside a firmware, whose objects are not in the wheel.
    """
    linked = LinkedObjects(board, variant, firmware)
    return {"firmware": _rows(linked, linked.module_symbols(), False),
            "project": _rows(linked, _PROJECT, True)}


def _rows(linked: LinkedObjects, core: Collection[str], project: bool) -> list[Row]:
    sums: Counter[tuple[str, tuple[str, ...]]] = Counter()
    symbols: dict[str, Collection[str]] = {
        name: [f"pt_{operator.symbol}"] for name, operator in supported_operators().items()
        if linked.has(f"pt_{operator.symbol}")}
    symbols["core"] = core
    reached = {}
    for name, needed in symbols.items():
        reached[name] = linked.reach(needed, (), project)
        for feature in (*FEATURES, *([_CHECKS] if project else [])):
            others = [f"pt_{other}" for symbol in needed
                      if (other := feature_kernels().get(feature, {}).get(symbol.removeprefix("pt_")))]
            more = linked.reach([*needed, *filter(linked.has, others)], [feature], project)
            more -= reached[name]
            reached |= {name + _WITH + feature: more} if more else {}
    users: dict[Piece, list[str]] = defaultdict(list)
    for name in sorted(reached):
        for piece in reached[name]:
            users[piece].append(name)
    for piece, names in users.items():
        sums[piece.part, tuple(names)] += piece.size
    return [[part, size, list(names)] for (part, names), size in sorted(sums.items())]


def _tables(board: Board, variant: str, firmware: Path | None) -> dict[str, list[Row]]:
    path = firmware or emulator.firmware_path(board, variant)
    stored = path.parent / TABLE
    if firmware is None and stored.exists():
        tables: dict[str, list[Row]] = json.loads(stored.read_text())
        return tables
    return _tables_of_built(board.name, variant, path, path.stat().st_mtime_ns)


@functools.lru_cache(maxsize=16)
def _tables_of_built(board: str, variant: str, path: Path, built: int) -> dict[str, list[Row]]:
    """Find the table of the firmware as it was built."""
    parts = [Path(__file__).read_bytes(), LIST.read_bytes(),
             board.encode(), variant.encode(), str(path.absolute()).encode(), str(built).encode()]
    tables: dict[str, list[Row]] = cache.remembered(
        "flash", parts, lambda: tables_of(load_board(board), variant, path))
    return tables


@dataclass(frozen=True)
class KernelFlash(Report):
    """The flash of an operator's kernel, in bytes.

    own: what no other of the operators needs. alone: what it would need if it were the only one.
    """

    own: int
    alone: int


@dataclass(frozen=True)
class OperatorsFlash(Report):
    """The flash of the core and of the kernels of some operators, in bytes.

    registry: the operators' numbers and names. kernels: own and shared. library: arithmetic of libgcc
    and memcpy that core and kernels need.
    """

    board: str
    core: int
    registry: int
    operators: dict[str, KernelFlash]
    shared: int
    library: int
    kernels: int
    core_and_kernels: int


def flash_of_operators(board: Board, names: list[str], variant: str = "run",
                       firmware: Path | None = None, features: Collection[str] = ()) -> OperatorsFlash:
    """Return the flash of the core and of the kernels of these operators, in a build with features."""
    selected = set(names)
    rows = [(part, size, selected.intersection(users), "core" in users)
            for part, size, users in _with_features(_tables(board, variant, firmware)["firmware"],
                                                    features)]

    def total(part: str, condition: Callable[[set[str], bool], object]) -> int:
        return sum(size for one, size, users, is_core in rows
                   if one == part and condition(users, is_core))

    def kernel_of(name: str) -> KernelFlash:
        return KernelFlash(total("kernels", lambda users, _: users == {name}),
                           total("kernels", lambda users, _: name in users))

    core = total("core", lambda users, is_core: users or is_core)
    registry = _registry_bytes(supported_operators(), names)
    library = total("library", lambda users, is_core: users or is_core)
    kernels = total("kernels", lambda users, _: users)
    return OperatorsFlash(
        board.name, core, registry, {name: kernel_of(name) for name in names},
        total("kernels", lambda users, _: len(users) > 1 or users == {"float64"}), library, kernels,
        core + registry + kernels + library)


def flash_of_project(board: Board, names: list[str], features: Collection[str],
                     is_static: bool) -> int:
    """Return the flash of library and kernels in a C project for compiled methods, in bytes.

    It is computed from the objects of a board's firmware: without reader, texts and, if the models are
    static, checks. main.c, start-up and the .ptm file come on top. Raises emulator.FirmwareMissing.
    """
    users = {*names, "core"}
    features = [*features, *([] if is_static else [_CHECKS])]
    rows = _with_features(_tables(board, "run", None)["project"], features)
    return (sum(size for part, size, needed in rows
                if part != "registry" and users.intersection(needed))
            + _registry_bytes(supported_operators(), names, False))


def _with_features(rows: list[Row], features: Collection[str]) -> Iterator[tuple[str, int, set[str]]]:
    """Return the rows of a table, their users without what stands behind " with "."""
    for part, size, users in rows:
        split = [user.partition(_WITH) for user in users]
        yield part, size, {user for user, _, feature in split if not feature or feature in features}


def flash_of_models(board: Board, models: list[bytes]) -> OperatorsFlash:
    """Return flash_of_operators of all operators that these programs need. Raises OperatorMissing."""
    programs = {f"model {i}": open_program(model) for i, model in enumerate(models)}
    return flash_of_operators(board, needed_operators(programs),
                              features=needed_features(programs))


def flash_rows(found: OperatorsFlash) -> list[list[Any]]:
    """Return the rows of a table: the parts, then all of them together."""
    return [["core", found.core],
            ["registry of operators", found.registry],
            *[[name, kernel.own] for name, kernel in found.operators.items()],
            ["shared by operators", found.shared],
            ["libgcc, memcpy", found.library],
            ["core and kernels", found.core_and_kernels]]


def _registry_bytes(supported: dict[str, Operator], names: Collection[str],
                    has_arguments: bool = True) -> int:
    """Count the bytes of the operators' tables, from the first to the last, and of their strings."""
    numbers = [supported[name].number for name in names] or [0]
    strings = {*names, *("\0".join([supported[name].signature, " ".join(supported[name].arguments)
                                    if has_arguments else ""]) for name in names)}
    return (_ENTRY_BYTES * (max(numbers) - min(numbers) + 1) + _INDEX_BYTES * len(numbers)
            + sum(-(-(len(text) + 1) // 4) * 4 for text in strings))
