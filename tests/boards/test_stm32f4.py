"""Test clocks, pins and baud rate of the STM32F405, on a simulation of registers that no emulator
has."""

import subprocess
import sys
from pathlib import Path

import pytest
from picotorch.boards.boards import BOARDS_DIR

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).resolve().parents[2]
MHZ = 1_000_000


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Return model(state), which runs the drivers in a state of the chip and returns its registers by
    name."""
    folder = tmp_path_factory.mktemp("stm32f4")
    tool = ROOT / "tools" / "board_config.py"
    subprocess.run([sys.executable, tool, BOARDS_DIR / "netduinoplus2", folder], check=True)
    program = folder / "model"
    subprocess.run(
        ["gcc", "-std=gnu99", "-Wall", "-Werror", "-Wno-int-to-pointer-cast", "-DPT_REPL=0",
         f"-I{folder}", f"-I{ROOT / 'port' / 'firmware'}", Path(__file__).with_name("stm32f4_model.c"),
         "-o", program], check=True)

    def run(state):
        done = subprocess.run([program, state], capture_output=True, text=True, timeout=10)
        assert done.returncode == 0, done.stdout
        return {name: int(value) for name, value in (word.split("=") for word in done.stdout.split())}

    return run


def core_hz(registers):
    """Compute the core's clock by RM0090, 7.3.2: 25 MHz / M * N / P, or 16 MHz without the PLL."""
    if registers["CFGR"] & 3 != 2:
        return 16 * MHZ
    pll = registers["PLLCFGR"]
    return 25 * MHZ // (pll & 63) * (pll >> 6 & 511) // (2 * (pll >> 16 & 3) + 2)


def bus_hz(registers, shift):
    """Compute the clock of APB1 (shift 10) or APB2 (shift 13)."""
    prescaler = registers["CFGR"] >> shift & 7
    return core_hz(registers) // (2 << (prescaler & 3) if prescaler & 4 else 1)


@pytest.mark.parametrize("state", ["reset", "boot loader"])
def test_the_core_gets_168_mhz_and_its_buses_no_more_than_they_may(model, state):
    registers = model(state)
    assert core_hz(registers) == 168 * MHZ
    assert bus_hz(registers, 10) == 42 * MHZ
    assert bus_hz(registers, 13) == 84 * MHZ
    assert registers["ACR"] & 7 == 5


def test_a_crystal_that_does_not_start_leaves_the_clock_of_the_reset(model):
    registers = model("no crystal")
    assert core_hz(registers) == 16 * MHZ
    assert bus_hz(registers, 13) == 16 * MHZ


@pytest.mark.parametrize("state", ["reset", "boot loader", "no crystal"])
def test_the_uart_has_its_baud_rate_and_pins_whatever_the_clock(model, state):
    registers = model(state)
    assert abs(bus_hz(registers, 13) / registers["BRR"] / 115200 - 1) < 0.01
    assert registers["CR1"] == 1 << 13 | 1 << 3  # the UART is enabled, and transmits
    assert registers["AHB1ENR"] & 2 and registers["APB2ENR"] & 1 << 4
    assert registers["MODER"] == 2 << 12 | 2 << 14  # PB6 and PB7
    assert registers["AFRL"] == 7 << 24 | 7 << 28
    assert registers["PUPDR"] == 1 << 12 | 1 << 14


def test_an_emulator_without_the_registers_does_not_hang(model):
    assert core_hz(model("no registers")) == 16 * MHZ
