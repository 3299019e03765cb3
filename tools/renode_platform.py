#!/usr/bin/env python3
"""Print a board's platform for the emulator Renode (.repl), from its board.toml.

The counter is a program that reads how many instructions the core has executed, since Renode's own
timers follow a coarser time: the firmware's counts are then those of the other emulator.

Example: tools/renode_platform.py boards/mps2-an386 > build/mps2-an386.repl
Example: tools/renode_platform.py boards/mps2-an386 --without external    to see a memory missed
"""

import argparse
import sys
import tomllib
from pathlib import Path

MEMORY = """\
{name}: Memory.MappedMemory @ sysbus {address:#010x}
    size: {size:#010x}
"""

CORE = """\
nvic: IRQControllers.NVIC @ sysbus 0xE000E000
    -> cpu@0
    priorityMask: 0xF0
    systickFrequency: {clock_hz}

cpu: CPU.CortexM @ sysbus
    cpuType: "{core}"
    nvic: nvic{trust_zone}
    PerformanceInMips: {mips}
"""

TRUST_ZONE = "\n    enableTrustZone: true"

UART = """\
{name}: UART.CMSDK_APB_UART @ sysbus {address:#010x}
    frequency: {clock_hz}
    RxInterrupt -> nvic@{receive_irq}
"""

# A register keeps what is written. {started} says which write restarts the counter, {value} what
# the registers of the count and of its wrap read as.
COUNTER = """\
counter: Python.PythonPeripheral @ sysbus {address:#010x}
    size: {size:#x}
    initable: true
    script: '''
if request.IsInit:
    registers = {{}}
    start = 0
else:
    executed = int(self.GetMachine()["sysbus.cpu"].ExecutedInstructions)
    offset = int(request.Offset)
    if request.IsWrite:
        registers[offset] = int(request.Value)
        if offset == {start_offset:#x}:
            start = executed
    else:
        ticks = (executed - start) * {instruction_ns} // {tick_ns}
        if offset == {count_offset:#x}:
            request.Value = {count} & 0xffffffff
        elif offset == {wrap_offset:#x}:
            request.Value = 1 if ticks > 0xffffffff else 0
        else:
            request.Value = registers.get(offset, 0)
'''
"""

# Offsets in the timers that port/firmware/counter_*.c use, and the direction of the count.
COUNTERS = {
    "cmsdk": {"size": 0x1000, "start_offset": 0x04, "count_offset": 0x04, "wrap_offset": 0x0C,
              "count": "(registers.get(4, 0) - ticks)"},
    "stm32": {"size": 0x400, "start_offset": 0x14, "count_offset": 0x24, "wrap_offset": 0x10,
              "count": "ticks"},
}
UART_NAME = "uart0"


class PlatformError(Exception):
    """A board that Renode cannot be told of; the message says why."""


def uart_name(board):
    """Return the name of the board's UART in Renode."""
    return board["renode"].get("uart", UART_NAME)


def memories(board):
    """Return the names of the board's memories, without those that show another one again."""
    return [name for name in board["memories"] if name not in board["renode"].get("aliases", ())]


def counter(board):
    """Return the entry of the counter."""
    entry = board["counter"]
    if entry["driver"] not in COUNTERS:
        raise PlatformError(f"there is no counter '{entry['driver']}' for Renode")
    return COUNTER.format(**COUNTERS[entry["driver"]], address=entry["address"],
                          instruction_ns=entry["instruction_ns"], tick_ns=entry["tick_ns"])


def platform(board, without=()):
    """Return the text of the .repl: what there is beside Renode's own platform, if the board has one.

    `without` names memories to leave out.
    """
    if "renode" not in board:
        raise PlatformError("board.toml has no [renode]")
    if "platform" in board["renode"]:
        return counter(board)
    clock_hz = board["uart"]["clock_hz"]
    entries = [MEMORY.format(name=name, **board["memories"][name])
               for name in memories(board) if name not in without]
    entries.append(CORE.format(
        core=board["renode"]["core"],
        trust_zone=TRUST_ZONE if board["renode"].get("trust_zone", False) else "",
        clock_hz=clock_hz,
        mips=clock_hz // 1_000_000,
    ))
    entries.append(counter(board))
    entries.append(UART.format(name=uart_name(board), **board["uart"]))
    return "\n".join(entries)


def load(folder):
    """Return the board.toml of a folder."""
    return tomllib.loads((Path(folder) / "board.toml").read_text())


def main():
    description, _, example = __doc__.partition("\n\nExample")
    parser = argparse.ArgumentParser(description=description, epilog=f"Example{example}",
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("board", type=Path, help="folder of the board, with board.toml")
    parser.add_argument("--without", action="append", default=[], help="memory to leave out")
    arguments = parser.parse_args()
    try:
        print(platform(load(arguments.board), arguments.without), end="")
    except (OSError, PlatformError, tomllib.TOMLDecodeError) as error:
        sys.exit(f"renode_platform: {arguments.board}: {error}")


if __name__ == "__main__":
    main()
