#!/usr/bin/env python3
"""Write the files of a board for the firmware build: linker script, C header, make variables.

Example: tools/board_config.py boards/mps2-an386 build/firmware/mps2-an386-run

writes board.ld, board.h and board.mk into the second folder. With --variant repl, heap and arenas are
those of the table [repl].
"""

import argparse
import sys
import tomllib
from fractions import Fraction
from pathlib import Path

ARENA_ALIGNMENT = 128
JOB_ALIGNMENT = 128
STACK_GUARD_SIZE = 1024
MPU_SMALLEST_REGION = 32
DRIVERS_DIR = Path(__file__).resolve().parents[1] / "port" / "firmware"
DRIVER_TABLES = ("uart", "counter", "protect", "clock")

# Without AT, a section behind .data has its load address in flash. A loader that writes the zeros of a
# segment there overwrites the code, or the bytes behind it.
LINKER_SCRIPT = """\
ENTRY(pt_reset)

MEMORY
{{
{memory_lines}
}}

SECTIONS
{{
    .text : ALIGN(4)
    {{
        KEEP(*(.vectors))
        *(.text*)
        . = ALIGN(4);
    }} > {code}

    .rodata : ALIGN(4)
    {{
        *(.rodata*)
        . = ALIGN(4);
    }} > {constants}

    .ARM.exidx : {{ *(.ARM.exidx*) }} > {code}

    .stack (NOLOAD) : ALIGN({guard_size})
    {{
        pt_stack_guard = .;
        . += {guard_size};
        pt_stack_limit = .;
        . += {stack_size:#x};
        pt_stack_top = .;
    }} > {data} AT > {data}

    .data : ALIGN(8)
    {{
        pt_data_start = .;
        *(.data*)
        . = ALIGN(4);
        pt_data_end = .;
    }} > {data} AT > {code}
    pt_data_load = LOADADDR(.data);

{arena_sections}

    .bss (NOLOAD) : ALIGN(8)
    {{
        pt_bss_start = .;
        *(.bss*)
        *(COMMON)
        . = ALIGN(4);
        pt_bss_end = .;
    }} > {data} AT > {data}

    pt_job_start = {job_start};
    pt_job_end = ORIGIN({job}) + LENGTH({job});
}}
"""

ARENA_SECTION = """\
    .arena_{name} (NOLOAD) : ALIGN({alignment})
    {{
        KEEP(*(.bss.arena_{name}))
    }} > {memory} AT > {memory}"""

HEADER = """\
#ifndef PT_BOARD_H
#define PT_BOARD_H

#define PT_BOARD_NAME "{name}"
#define PT_BOARD_CORE "{core}"
#define PT_BOARD_FPU {fpu}

#define PT_STACK_GUARD_LOG2_SIZE {guard_log2_size}
#define PT_HEAP_SIZE {heap_size:#x}u

extern unsigned char pt_job_start[], pt_job_end[]; /* of the linker */
#define PT_JOB_ADDRESS pt_job_start
#define PT_JOB_SIZE ((unsigned)(pt_job_end - pt_job_start))

#define PT_UART_ADDRESS {uart_address:#010x}u
#define PT_UART_RECEIVE_IRQ {uart_irq}u
#define PT_UART_CLOCK_HZ {uart_clock_hz}u

{stm32}#define PT_COUNTER_ADDRESS {counter_address:#010x}u
#define PT_COUNTER_PRESCALER {prescaler}u
/* This many instructions take this many ticks. */
#define PT_COUNTER_INSTRUCTIONS {instructions}u
#define PT_COUNTER_INSTRUCTIONS_TICKS {instructions_ticks}u

#define PT_SYSTICK_HZ {systick_hz}u
#define PT_SYSTICK_INSTRUCTIONS {systick_instructions}u
#define PT_SYSTICK_INSTRUCTIONS_TICKS {systick_ticks}u

#define PT_ARENA_ALIGNMENT {alignment}
#define PT_BOARD_ARENAS(X) {arenas}
#define PT_BOARD_READ_ONLY(X) {read_only}

#endif
"""

STM32_HEADER = """\
#define PT_CLOCK_RCC_ADDRESS {rcc:#010x}u
#define PT_CLOCK_FLASH_ADDRESS {flash:#010x}u
#define PT_CLOCK_RESET_HZ {reset_hz}u
#define PT_CLOCK_CRYSTAL_HZ {crystal_hz}u
#define PT_CLOCK_CORE_HZ {core_hz}u
#define PT_CLOCK_FLASH_WAIT_STATES {flash_wait_states}u

/* Bits of RCC_APB2ENR and RCC_APB1ENR, port (A is 0), pins and their alternate function. */
#define PT_UART_ENABLE {uart_enable}u
#define PT_UART_PORT {port}u
#define PT_UART_GPIO_ADDRESS {gpio:#010x}u
#define PT_UART_TX {tx}u
#define PT_UART_RX {rx}u
#define PT_UART_FUNCTION {function}u
#define PT_COUNTER_ENABLE {counter_enable}u

"""

MAKE_VARIABLES = """\
BOARD_CFLAGS = {cflags}
BOARD_FULL_FIRMWARE = {full_firmware}
BOARD_CLOCK = {clock}
BOARD_UART = {uart}
BOARD_COUNTER = {counter}
BOARD_PROTECT = {protect}
"""


class BoardError(Exception):
    """A board.toml with which no build is possible. The message names the entry."""


def of_variant(board, variant):
    """Return the board with the entries that its table of the variant replaces, if it has one."""
    return {**board, **board.get(variant, {})}


def check_memory(board, memory, user):
    """Raise BoardError unless the board has a memory of that name."""
    if memory not in board["memories"]:
        raise BoardError(f"{user} needs memory '{memory}', which [memories] does not have")


def drivers(table):
    """Return the names of the drivers for a table of board.toml. Each driver is a file TABLE_NAME.c."""
    return sorted(path.stem.removeprefix(f"{table}_") for path in DRIVERS_DIR.glob(f"{table}_*.c"))


def check_driver(board, table):
    """Raise BoardError unless the firmware has the driver."""
    driver, supported = board[table]["driver"], drivers(table)
    if driver not in supported:
        raise BoardError(f"[{table}] driver '{driver}': there is no port/firmware/{table}_{driver}.c; "
                         f"there are: {', '.join(supported)}")


def check(board):
    """Raise BoardError if the entries do not fit together."""
    if not isinstance(board.get("full_firmware", True), bool):
        raise BoardError("full_firmware is neither true nor false")
    for user, memory in board["place"].items():
        check_memory(board, memory, f"[place] {user}")
    for memory in board["protect"]["read_only"]:
        check_memory(board, memory, "[protect] read_only")
        if board["memories"][memory]["size"] % MPU_SMALLEST_REGION:
            raise BoardError(f"size of memory '{memory}' is no multiple of {MPU_SMALLEST_REGION}")
    for arena in board["arenas"]:
        check_memory(board, arena["memory"], f"arena '{arena['name']}'")
        if arena["size"] % ARENA_ALIGNMENT:
            raise BoardError(f"size of arena '{arena['name']}' is no multiple of {ARENA_ALIGNMENT}")
    for table in DRIVER_TABLES:
        if table in board or table != "clock":
            check_driver(board, table)


def mpu_regions(memory):
    """Return (address, size) of the regions that cover a memory, as the MPU requires them.

    The size of a region is a power of two and its address a multiple of it.
    """
    regions = []
    address, left = memory["address"], memory["size"]
    while left:
        size = 1 << (left.bit_length() - 1)
        while address % size:
            size //= 2
        regions.append((address, size))
        address, left = address + size, left - size
    return regions


def linker_script(board):
    """Return the GNU ld script that places code, data, stack and arenas."""
    memory_lines = "\n".join(
        f"    {name} : ORIGIN = {memory['address']:#010x}, LENGTH = {memory['size']:#x}"
        for name, memory in board["memories"].items()
    )
    arena_sections = "\n".join(
        ARENA_SECTION.format(alignment=ARENA_ALIGNMENT, **arena) for arena in board["arenas"]
    )
    return LINKER_SCRIPT.format(
        memory_lines=memory_lines,
        arena_sections=arena_sections,
        code=board["place"]["code"],
        constants=board["place"].get("constants", board["place"]["code"]),
        job=board["place"]["job"],
        job_start=job_start(board["place"]),
        data=board["place"]["data"],
        stack_size=board["stack"]["size"],
        guard_size=STACK_GUARD_SIZE,
    )


def job_start(section):
    """Return the linker's expression for the job's start: behind the code if they share a memory."""
    if section["job"] != section["code"]:
        return f"ORIGIN({section['job']})"
    return f"ALIGN(LOADADDR(.data) + SIZEOF(.data), {JOB_ALIGNMENT})"


def stm32_header(board):
    """Return the part of board.h for the drivers of the STM32F4."""
    uart = board["uart"]
    return STM32_HEADER.format(
        **board["clock"],
        uart_enable=uart["enable"],
        port=ord(uart["port"]) - ord("A"),
        gpio=uart["gpio"],
        tx=uart["tx"],
        rx=uart["rx"],
        function=uart["function"],
        counter_enable=board["counter"]["enable"],
    )


def header(name, board):
    """Return board.h: addresses and sizes as macros."""
    counter = board["counter"]
    instructions_a_tick = Fraction(counter["tick_ns"]) / counter["instruction_ns"]
    systick_hz = board["systick"]["clock_hz"]
    instructions_a_systick = Fraction(10**9, systick_hz * counter["instruction_ns"])
    return HEADER.format(
        name=name,
        core=board["core"],
        fpu=int(board["fpu"]),
        guard_log2_size=STACK_GUARD_SIZE.bit_length() - 1,
        heap_size=board["heap"]["size"],
        uart_address=board["uart"]["address"],
        uart_irq=board["uart"]["receive_irq"],
        uart_clock_hz=board["uart"]["clock_hz"],
        stm32=stm32_header(board) if "clock" in board else "",
        counter_address=counter["address"],
        prescaler=counter.get("prescaler", 1),
        instructions=instructions_a_tick.numerator,
        instructions_ticks=instructions_a_tick.denominator,
        systick_hz=systick_hz,
        systick_instructions=instructions_a_systick.numerator,
        systick_ticks=instructions_a_systick.denominator,
        alignment=ARENA_ALIGNMENT,
        arenas=" ".join(
            f"X({arena['name']}, {arena['size']:#x}, {arena['memory']})" for arena in board["arenas"]
        ),
        read_only=" ".join(
            f"X({address:#010x}, {size.bit_length() - 1})"
            for memory in board["protect"]["read_only"]
            for address, size in mpu_regions(board["memories"][memory])
        ),
    )


def make_variables(board):
    """Return board.mk."""
    return MAKE_VARIABLES.format(
        cflags=" ".join(["-mthumb", *board["cflags"]]),
        full_firmware="yes" if board.get("full_firmware", True) else "",
        clock=board.get("clock", {}).get("driver", ""),
        uart=board["uart"]["driver"],
        counter=board["counter"]["driver"],
        protect=board["protect"]["driver"],
    )


def write_if_changed(path, text):
    """Write text. A file with the same text keeps its time stamp."""
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def main():
    description, _, example = __doc__.partition("\n\nExample")
    parser = argparse.ArgumentParser(description=description, epilog="Example" + example)
    parser.add_argument("board", type=Path, help="folder of the board, with board.toml")
    parser.add_argument("output", type=Path, help="folder to write to")
    parser.add_argument("--variant", default="run", help="run (default) or repl")
    arguments = parser.parse_args()
    toml = arguments.board / "board.toml"
    try:
        board = of_variant(tomllib.loads(toml.read_text()), arguments.variant)
        check(board)
        arguments.output.mkdir(parents=True, exist_ok=True)
        write_if_changed(arguments.output / "board.ld", linker_script(board))
        write_if_changed(arguments.output / "board.h", header(arguments.board.name, board))
    except OSError as error:
        sys.exit(f"board_config: {error}")
    except (BoardError, tomllib.TOMLDecodeError) as error:
        sys.exit(f"board_config: {toml}: {error}")
    except KeyError as error:
        sys.exit(f"board_config: {toml}: the entry {error} is missing")
    (arguments.output / "board.mk").write_text(make_variables(board))


if __name__ == "__main__":
    main()
