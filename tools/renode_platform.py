#!/usr/bin/env python3
"""Print a board's platform for the emulator Renode (.repl), from its board.toml.

The counter is a program that reads the number of executed instructions, because Renode's own timers
follow a coarser time. So the firmware's counts equal those on the other emulator.

Example: tools/renode_platform.py boards/mps2-an386 > build/mps2-an386.repl
Example: tools/renode_platform.py boards/mps2-an386 --without external    to test a missing memory
"""

import argparse
import sys
import tomllib
from pathlib import Path

MEMORY = """\
{name}: Memory.MappedMemory @ {ranges}
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

UARTS = {
    "cmsdk": """\
uart0: UART.CMSDK_APB_UART @ sysbus {address:#010x}
    frequency: {clock_hz}
    RxInterrupt -> nvic@{receive_irq}
""",
    "stm32": """\
uart0: UART.STM32_UART @ sysbus <{address:#010x}, +0x100>
    -> nvic@{receive_irq}
""",
}

# port/firmware/clock_stm32f4.c waits for these bits in RCC_CR and RCC_CFGR: an enabled oscillator is
# ready, and the core has the clock to which it was switched.
CLOCKS = """\
rcc: Python.PythonPeripheral @ sysbus {rcc:#010x}
    size: 0x400
    initable: true
    script: '''
if request.IsInit:
    registers = {{}}
elif request.IsWrite:
    registers[int(request.Offset)] = int(request.Value)
else:
    value = registers.get(int(request.Offset), 0)
    if request.Offset == 0x00:
        value |= (value & 0x01010001) << 1
    elif request.Offset == 0x08:
        value = value & ~0xc | (value & 3) << 2
    request.Value = value
'''
"""

# Registers that keep the written value.
REGISTERS = """\
{name}: Memory.ArrayMemory @ sysbus {address:#010x}
    size: 0x400
"""

# A register keeps a written value. {started} is the write that restarts the counter, {value} the values
# of the registers of the count and of its wrap.
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
UART_NAME = "uart0"  # in Renode, of every board


class PlatformError(Exception):
    """A board that cannot be described for Renode; the message has the reason."""


def memories(board):
    """Return the board's memories: {name: (size, addresses)}.

    An alias is not a memory of its own, but a second address of the memories that it shows.
    """
    entries = board["memories"] | board["renode"].get("memories", {})
    aliases = board["renode"].get("aliases", {})
    found = {name: (entry["size"], [entry["address"]]) for name, entry in entries.items()
             if name not in aliases}
    for alias, first in aliases.items():
        shown, start = entries[alias], entries[first]["address"]
        for _, addresses in found.values():
            if start <= addresses[0] < start + shown["size"]:
                addresses.append(addresses[0] - start + shown["address"])
    return found


def memory(name, size, addresses):
    """Return the entry of a memory."""
    ranges = [f"sysbus {address:#010x}" for address in addresses]
    return MEMORY.format(name=name, size=size,
                         ranges=ranges[0] if len(ranges) == 1 else f"{{ {'; '.join(ranges)} }}")


def _of_driver(board, table, supported):
    driver = board[table]["driver"]
    if driver not in supported:
        raise PlatformError(f"there is no {table} '{driver}' for Renode")
    return supported[driver]


def counter(board):
    """Return the entry of the counter."""
    entry = board["counter"]
    return COUNTER.format(**_of_driver(board, "counter", COUNTERS), address=entry["address"],
                          instruction_ns=entry["instruction_ns"], tick_ns=entry["tick_ns"])


def uart(board):
    """Return the entry of the UART."""
    return _of_driver(board, "uart", UARTS).format(**board["uart"])


def chip(board):
    """Return the entries of clocks, flash interface and pins, which the firmware sets up."""
    if "clock" not in board:
        return []
    return [_of_driver(board, "clock", {"stm32f4": CLOCKS}).format(**board["clock"]),
            REGISTERS.format(name="flash_interface", address=board["clock"]["flash"]),
            REGISTERS.format(name="gpio", address=board["uart"]["gpio"])]


def platform(board, without=()):
    """Return the text of the .repl. `without` names memories to leave out."""
    if "renode" not in board:
        raise PlatformError("board.toml has no [renode]")
    clock_hz = board["systick"]["clock_hz"]
    found_memories = memories(board)
    for name in without:
        if name not in found_memories:
            raise PlatformError(f"there is no memory '{name}': it has {', '.join(found_memories)}")
    entries = [memory(name, *found) for name, found in found_memories.items() if name not in without]
    entries.append(CORE.format(
        core=board["renode"]["core"],
        trust_zone=TRUST_ZONE if board["renode"].get("trust_zone", False) else "",
        clock_hz=clock_hz,
        mips=clock_hz // 1_000_000,
    ))
    return "\n".join([*entries, counter(board), uart(board), *chip(board)])


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
