"""Test that the emulator starts no program for a board, although semihosting has a call to do so."""

import shutil
import subprocess
from pathlib import Path

import pytest
from picotorch.boards.boards import load_board
from picotorch.run import emulator
from support.targets import BOARDS

BOARD = load_board("mps2-an386")

# SYS_SYSTEM (0x12) with a command, then SYS_EXIT_EXTENDED (0x20) with status 9.
PROGRAM = """
    .syntax unified
    .thumb
    .section .vectors, "a"
    .word 0x20001000, start + 1
    .global start
    .text
start:
    movs r0, #0x12
    ldr r1, =system
    bkpt 0xab
    movs r0, #0x20
    ldr r1, =exit
    bkpt 0xab
    .align 2
system: .word command, {length}
exit: .word 0x20026, 9
command: .asciz "{command}"
"""


@pytest.fixture
def made(tmp_path):
    """Return the file that the host would create if it executed the board's command."""
    return tmp_path / "made"


@pytest.fixture
def firmware(tmp_path, made):
    """Build a program for the board that asks the host to call touch."""
    command = f"touch {made}"
    source = tmp_path / "system.S"
    source.write_text(PROGRAM.format(command=command, length=len(command)))
    program = tmp_path / "system.elf"
    subprocess.run(
        ["arm-none-eabi-gcc", "-mcpu=cortex-m3", "-mthumb", "-nostdlib", "-Wl,-Ttext=0x40",
         "-Wl,--section-start=.vectors=0", "-Wl,-estart", source, "-o", program], check=True)
    return program


@pytest.fixture
def without_sandbox(tmp_path, monkeypatch):
    """Install an emulator that was built without seccomp. It rejects the option, as QEMU does."""
    program = tmp_path / "bin" / BOARD.emulator.program
    program.parent.mkdir()
    program.write_text(
        '#!/bin/sh\ncase "$1" in -sandbox) echo "-sandbox support is not enabled" >&2; exit 1;; esac\n'
        f'exec {shutil.which(BOARD.emulator.program)} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    return program


@pytest.fixture
def confined():
    """Skip the test if the emulator of this machine has no sandbox."""
    asked = [BOARD.emulator.program, "-sandbox", "on", "-version"]
    if subprocess.run(asked, capture_output=True).returncode:
        pytest.skip("the emulator of this machine has no sandbox")


def test_a_board_starts_no_program(confined, firmware, made):
    with pytest.raises(emulator.EmulatorError, match="the emulator's sandbox denies"):
        emulator.run(BOARD, firmware, {})
    assert not made.exists()


def test_an_emulator_without_sandbox_is_used_and_reported(without_sandbox, firmware, made, capsys):
    assert emulator.run(BOARD, firmware, {}).status == 9
    assert made.exists()
    told = capsys.readouterr().err
    assert f"{without_sandbox} has no sandbox (-sandbox support is not enabled)" in told
    assert "run only models that you trust" in told


@pytest.mark.parametrize("board_name", BOARDS)
def test_each_board_is_in_the_sandbox(confined, board_name):
    command = emulator.emulator_command(load_board(board_name), Path("none.elf"))
    assert command[command.index("-sandbox") + 1] == emulator.SANDBOX
