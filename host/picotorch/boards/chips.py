"""Read boards/chips.toml into dataclasses."""

import functools
import re
import tomllib
from dataclasses import dataclass, field
from typing import Any

import click

from ..host import show
from ..host.quantities import parse_bytes, parse_clock
from ..host.report import Report, json_key
from .boards import BOARDS_DIR

CORES = ("cortex-m0plus", "cortex-m3", "cortex-m4", "cortex-m7", "cortex-m33", "cortex-m55")


def core_of(text: str) -> str | None:
    """Return the core of CORES for a name such as m4, M0+ or Cortex-M4F, or None."""
    found = re.fullmatch(r"(?:arm)?(?:cortex)?m(0|3|4|7|33|55)(\+|p|plus)?(f?)",
                         re.sub(r"[\s_-]", "", str(text).lower()))
    if found is None or bool(found[2]) != (found[1] == "0") or found[3] and found[1] in ("0", "3"):
        return None
    return f"cortex-m{found[1]}{'plus' * bool(found[2])}"


@dataclass(frozen=True)
class Chip(Report):
    """A chip of the table, or one described by options. Sizes in bytes; None if unknown.

    ram: the regions for data. on: the name of a board with the chip. source: the data sheets. checked:
    the sources with which the figures were compared.
    """

    name: str = field(metadata=json_key("chip"))
    title: str
    core: str
    clock_hz: int | None
    flash: int | None
    ram: dict[str, int] | None
    on: str = ""
    source: str = ""
    checked: str = ""


@functools.cache
def load_chips() -> dict[str, Chip]:
    """Return the chips by name, in the order of the file: by core, then by name."""
    toml = tomllib.loads((BOARDS_DIR / "chips.toml").read_text())
    return {name: _from_toml(name, entry) for name, entry in toml.items()}


def _from_toml(name: str, entry: dict[str, Any]) -> Chip:
    return Chip(name, entry["title"], entry["core"], parse_clock(entry["clock"]),
                parse_bytes(entry["flash"]),
                {region: parse_bytes(size) for region, size in entry["ram"].items()},
                entry["on"], entry["source"], entry["checked"])


@dataclass(frozen=True)
class Chips(Report):
    """All chips of the table."""

    chips: list[Chip]


def chips() -> Chips:
    """Return the chips."""
    return Chips(list(load_chips().values()))


def show_text(found: Chips) -> None:
    show.table(["chip", "core", "clock>", "flash>", "RAM>", "on"], [
        [chip.name, chip.core.removeprefix("cortex-"), f"{(chip.clock_hz or 0) / 1e6:g} MHz",
         _kib(chip.flash or 0), _kib(sum((chip.ram or {}).values())), chip.on]
        for chip in found.chips])
    click.echo("\n--json adds the data sheets, and what the figures were compared with.")


def _kib(count: int) -> str:
    return f"{count // 1024} K"
