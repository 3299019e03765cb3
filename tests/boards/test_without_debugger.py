"""Test firmware without semihosting, as on a real board without a debugger. No HardFault hangs, and a
line on the UART reports the end of the run."""

import subprocess
import threading

import pytest
from picotorch.boards.boards import load_board
from picotorch.firmware import mpy
from picotorch.run import emulator
from picotorch.run.job import Job
from support.targets import BOARDS

FAULTS = ["undefined", "address"]


def lines_until(board_name, script, last, tmp_path, timeout=30):
    """Return the lines on the UART up to one that contains `last`. The board never ends by itself."""
    board = load_board(board_name)
    job = tmp_path / "job"
    job.write_bytes(Job({"script": mpy.compile_script(script)}).to_bytes())
    command = emulator.emulator_command(board, emulator.firmware_path(board), job)
    at = command.index("-semihosting-config")
    del command[at:at + 2]
    lines = []
    with subprocess.Popen(command, cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          text=True) as process:
        timer = threading.Timer(timeout, process.kill)
        timer.start()
        for line in process.stdout:
            lines.append(line.strip())
            if last in line:
                break
        timer.cancel()
        process.kill()
    return lines


@pytest.mark.parametrize("board", BOARDS)
def test_a_run_ends_with_a_line_on_the_uart(board, tmp_path):
    script = "import _board\nprint('here')\n_board.exit(0)\n"
    lines = lines_until(board, script, "debugger", tmp_path)
    assert lines[0] == "here"
    assert lines[-1] == "picotorch: the run ended well; no debugger takes its status and files"


def test_a_file_that_no_board_receives_is_an_error(tmp_path):
    script = "import _board\n_board.write_file('x', b'x')\n"
    lines = lines_until("netduinoplus2", script, "debugger", tmp_path)
    assert "OSError: 5" in lines
    assert lines[-1] == "picotorch: the run failed; no debugger takes its status and files"


@pytest.mark.parametrize("board", ["mps2-an385-m0plus", "mps2-an505", "netduinoplus2"])
@pytest.mark.parametrize("kind", FAULTS)
def test_a_fault_prints_its_registers_and_stops(board, kind, tmp_path):
    lines = lines_until(board, f"import _board\n_board.fault('{kind}')\n", "debugger", tmp_path)
    assert any(line.startswith("picotorch: fault: ") for line in lines)
    assert any(line.startswith("r0  ") for line in lines)
    assert lines[-1].startswith("picotorch: the run failed")
