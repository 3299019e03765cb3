"""Print picotorch size, in tables of at most 80 columns."""

from collections.abc import Sequence
from typing import Any

import click

from ..host import show
from ..host.request import Estimate
from ..inspect.description import partitioners
from ..run.report import show_unused_packing
from . import by_size
from .fitting import DEPLOYMENTS
from .flash import flash_rows
from .report import Needs, OnBoard, OnChip, Size, TempSize, TempSizes, Total


def show_text(size: Size) -> None:
    need = size.needs
    show.line(f"{need.model}, method {need.method}")
    show.heading("Needs, the same on every board")
    _table(["memory", "bytes>"], [
        ["method pool", need.method_pool],
        *([["  packed in it", need.packed]] if need.packed else []),
        *[[f"planned buffer {i}", count] for i, count in enumerate(need.planned)],
        ["temp memory, minimum", need.min_temp],
        *([["  default", need.temp]] if need.temp > need.min_temp else []),
        *([["unplanned inputs and outputs", need.unplanned]] if need.unplanned else []),
        ["program (flash)", need.program_bytes],
        ["  constants in it", need.constant_bytes],
        *[[f"  delegate {i}, {delegate.backend}", delegate.nbytes]
          for i, delegate in enumerate(need.delegates)],
        *[[f"data file {i} (flash)", count] for i, count in enumerate(need.data_bytes)]])
    missing = sorted({delegate.backend for delegate in need.delegates
                      if not delegate.registered})
    if missing:
        show.line(f"Not registered here, and not counted: {', '.join(missing)}.")
        show.line(f"Export without {partitioners(missing)}, or with picotorch export;")
        show.line("register a backend of your own with --backend.")
    if size.chips:
        _show_chips(size.chips)
    if size.boards:
        _show_boards(need, size.boards)
    entries: list[OnChip | OnBoard] = [*size.chips, *size.boards]
    _show_temp(need, entries)
    show_unused_packing(need.packed, {entry.core for entry in entries})


def _show_temp(need: Needs, entries: Sequence[OnChip | OnBoard]) -> None:
    """Print what kernels gain by more temp memory."""
    used = need.temp
    gaining = [entry for entry in entries if entry.temp.preferred.bytes > used]
    if len(entries) == 1:
        _show_sizes(entries[0].temp)
    elif gaining:
        show.heading("Temp memory: default and preferred size")
        _table(["", *["bytes>", "instructions>", "ms>"] * 2], [
            [entry.name, *_speed(entry.temp.used), *_speed(entry.temp.preferred)]
            for entry in gaining])
    if gaining:
        click.echo("RAM and ms above assume the preferred temp memory if it fits.")
        smaller = [entry.name for entry in gaining if entry.temp.selected == used]
        if smaller:
            show.line("With the default size, since the preferred size does not fit: "
                      f"{', '.join(smaller)}")
    elif entries:
        few = "minimum" if used == need.min_temp else "default"
        show.line(f"More temp memory than the {few} saves no time.")
    minimum = [entry.name for entry in entries if entry.temp.selected < used]
    if minimum:
        show.line("With the minimum size, since the default size does not fit: "
                  f"{', '.join(minimum)}")


def _show_sizes(temp: TempSizes) -> None:
    """Print how fast one board or chip is with each size."""
    sizes: dict[int, tuple[str, TempSize]] = {}
    for word, one in (("minimum", temp.min), ("default", temp.used), ("preferred", temp.preferred)):
        sizes.setdefault(one.bytes, (word, one))
    if len(sizes) > 1:
        show.heading("Temp memory: minimum, default and preferred size")
        _table(["", "bytes>", "instructions>", "ms>"], [
            [word, *_speed(one)] for word, one in sizes.values()])


def _speed(choice: TempSize) -> list[Any]:
    time = choice.time
    count = "-" if time is None else f"{_about(time)}{time.instructions:,}"
    return [choice.bytes, count, ms_text(time)]


def _about(time: Estimate) -> str:
    """Return a mark for figures that no board counted."""
    return "" if time.counted else "~"


def _table(columns: list[str], rows: list[list[Any]]) -> None:
    """Print a table with separated thousands."""
    show.table(columns, [[f"{cell:,}" if isinstance(cell, int) else cell for cell in row]
                         for row in rows])


# ---- chips


def _show_chips(chips: list[OnChip]) -> None:
    show.heading("Chips: bytes needed in C, and with MicroPython (MP)")
    columns = [f"{what}, {name}>" for what in ("RAM", "flash") for name in ("C", "MP")]
    show.table(["chip", *columns, "ms>", ""], [
        [chip.chip,
         *[total_text(fit) for what in ("ram", "flash") for name in DEPLOYMENTS
           for fit in [getattr(chip.deployments[name], what)]],
         ms_text(chip.time), fits_text(chip)] for chip in chips])
    for chip in chips:
        for name, words in DEPLOYMENTS.items():
            if chip.deployments[name].lacks:
                show.line(f"{chip.chip} {words}: {chip.deployments[name].lacks}")
    _show_notes(chips)
    if len(chips) == 1:
        _show_parts(chips[0])


def clock_text(hertz: int | None) -> str:
    """Return a clock: "168 MHz"."""
    return "no clock" if hertz is None else f"{hertz / 1e6:g} MHz"


def total_text(memory: Total) -> str:
    """Return the sum, with ">" if a part is unknown."""
    return f"{'>' if None in memory.parts.values() else ''}{memory.all:,}"


def ms_text(time: Estimate | None) -> str:
    """Return milliseconds, with a "~" if no board counted; "-" if they are unknown."""
    if time is None or time.ms is None:
        return "-"
    return _about(time) + (f"{time.ms:,.0f}" if time.ms >= 100 else f"{time.ms:.3g}")


def fits_text(chip: OnChip) -> str:
    """Return "fits", "in C only", "not known" or "DOES NOT FIT"."""
    fitting = [words for name, words in DEPLOYMENTS.items() if chip.deployments[name].fits]
    if fitting:
        return "fits" if len(fitting) == len(DEPLOYMENTS) else f"{fitting[0]} only"
    return verdict_text(chip.fits)


def verdict_text(fits: bool | None) -> str:
    return {True: "fits", None: "not known", False: "DOES NOT FIT"}[fits]


def _show_parts(chip: OnChip) -> None:
    core = chip.core.replace("cortex-m", "Cortex-M").replace("plus", "+")
    about = [core, clock_text(chip.clock_hz)]
    source = f" ({chip.source})" if chip.source else ""
    show.heading(f"{chip.title}: {', '.join(about)}{source}")
    _show_time(chip.time, chip.measured_on)
    deployments = chip.deployments.values()
    for name, totals in (("RAM", [one.ram for one in deployments]),
                         ("flash", [one.flash for one in deployments])):
        parts = list(dict.fromkeys(part for one in totals for part in one.parts))
        click.echo()
        _table([name, *[words + ">" for words in DEPLOYMENTS.values()]], [
            *[[part, *[_count_or_dash(one.parts.get(part)) for one in totals]]
              for part in parts],
            ["all", *[total_text(one) for one in totals]],
            ["the chip has", *[_count_or_dash(one.of) for one in totals]]])


def _show_time(time: Estimate | None, board: str | None) -> None:
    if time:
        ms = "" if time.ms is None else f", {time.min_ms:.3g} to {time.max_ms:.3g} ms"
        counted = f"counted on {board}" if time.counted else "by the sizes of the tensors"
        show.line(f"{_about(time)}{time.instructions:,} instructions, {counted}; about "
                  f"{time.cycles:,} cycles{ms}")


def _count_or_dash(count: int | None) -> int | str:
    return "-" if count is None else count


# ---- boards


def _show_boards(need: Needs, boards: list[OnBoard]) -> None:
    show.heading("Boards: bytes with MicroPython and the kernels of this method")
    show.table(["board", "clock>", "RAM>", "flash>", "ms>", ""], [
        [entry.board, clock_text(entry.clock_hz),
         *[total_text(one) for fit in [entry.deployments["micropython"]]
           for one in (fit.ram, fit.flash)],
         ms_text(entry.time), verdict_text(entry.fits)] for entry in boards])
    for entry in boards:
        lacks = [f"{name} needs {memory.needed:,} B of {memory.size:,}"
                 for name, memory in entry.memories.items()
                 if memory.size is not None and memory.needed > memory.size]
        if lacks:
            show.line(f"{entry.board}: {'; '.join(lacks)}")
    _show_notes(boards)
    if len(boards) == 1:
        _show_board(need, boards[0])
    else:
        click.echo("With a single --board the command lists the parts.")


def _show_notes(entries: Sequence[OnChip | OnBoard]) -> None:
    """Print how the times were obtained, and a line for each reason why one is missing."""
    counted = {entry.time.counted for entry in entries if entry.time}
    if True in counted:
        click.echo("ms: an estimate from counted instructions, without wait states of flash.")
    if False in counted:
        click.echo("~: an estimate from the sizes of the tensors, without wait states of flash.\n"
                   f"Half of the tests' networks are within a factor of {by_size.HALF:g}, nine in ten\n"
                   f"within {by_size.FACTOR:g}.")
    reasons: dict[str, list[OnChip | OnBoard]] = {}
    for entry in entries:
        if entry.message:
            reasons.setdefault(_reason(entry), []).append(entry)
    for reason, found in reasons.items():
        text = found[0].message if len(found) == 1 else reason
        show.line(f"{', '.join(entry.name for entry in found)}: {text}")


def _reason(entry: OnChip | OnBoard) -> str:
    """Return the message without the entry's name, to print it once for several entries."""
    if isinstance(entry, OnChip):
        return entry.message.replace(f" {entry.measured_on}:", "")
    if not entry.built:
        return "not measured, no firmware is built; picotorch boards shows how"
    return entry.message.replace(f" {entry.board}:", "")


def _show_board(need: Needs, entry: OnBoard) -> None:
    _show_time(entry.time, entry.board)
    show.heading(f"Memories of {entry.board}")
    _table(["memory", "needed>", "available>"], [
        [name, memory.needed, "not known" if memory.size is None else memory.size]
        for name, memory in entry.memories.items()])
    if entry.stack_bound is not None:
        stack = entry.stack or {}
        show.heading("Stack: measured in one run, and the maximum that execute can use")
        _table(["load>", "execute>", "maximum>", "available>"], [
            [*[stack.get(phase, "-") for phase in ("load", "execute")], entry.stack_bound,
             entry.stack_size]])
        click.echo(f"Load and execute fail at once if less than {need.stack_free:,} bytes are free.")
        if need.delegates:
            click.echo("The maximum does not include the backends of delegates.")
    if entry.kernels is not None:
        show.heading("Flash of core and kernels, for this method alone")
        rows = flash_rows(entry.kernels)
        if entry.firmware_flash is not None:
            rows.append(["whole firmware", entry.firmware_flash])
        _table(["", "bytes>"], rows)
        click.echo("An operator's bytes are the bytes that no other operator of the method needs.\n"
                   "The whole firmware includes MicroPython, the runtime and all kernels of its\n"
                   "build; picotorch firmware builds one with these kernels only.")
