"""Test picotorch repl: the place of the prompt, its end, and the message if it cannot start."""

import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from mpremote.transport_serial import SerialTransport
from picotorch.boards.boards import full_board_names, load_board
from picotorch.run import emulator, prompt
from support.calling import assert_error, assert_usage
from support.tiers import with_prompt

REPL = [str(Path(sys.executable).parent / "picotorch"), "repl"]
BOARD = load_board("mps2-an386")
FIXTURES = Path(__file__).parents[1] / "fixtures"


def test_a_file_is_typed_at_the_prompt_and_its_end_ends_the_board():
    typed = "print(6 * 7)\nfor i in range(2):\n    print('line', i)\n\n"
    done = subprocess.run(REPL, input=typed.encode(), capture_output=True, timeout=60)
    assert done.returncode == 0
    said = done.stdout.decode().replace("\r\n", "\n")
    assert ">>> print(6 * 7)\n42\n" in said and "\nline 0\nline 1\n" in said


@pytest.mark.parametrize("board", with_prompt(full_board_names()))
def test_typed_text_arrives_on_every_board_without_a_warning(board):
    done = subprocess.run([*REPL, "--board", board], input=b"print(6 * 7)\n", capture_output=True,
                          timeout=60)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"\r\n42\r\n" in done.stdout


def test_the_exit_status_is_the_boards():
    done = subprocess.run(REPL, input=b"import _board; _board.exit(5)\n", stdout=subprocess.DEVNULL,
                          timeout=60)
    assert done.returncode == 5


def typed(text, *arguments):
    """Type a text at the prompt, and return the board's lines without the echo of the input."""
    done = subprocess.run([*REPL, *map(str, arguments)], input=text.encode(), capture_output=True,
                          timeout=60)
    assert done.returncode == 0, done.stderr.decode()
    lines = done.stdout.decode().replace("\r\n", "\n").splitlines()
    return [line for line in lines[2:] if not line.startswith((">>>", "..."))]


def test_dir_of_the_package_allocates_heap_once():
    """MicroPython tries each name that the firmware has. The first call loads the parts."""
    text = """import gc, picotorch
def used():
    dir(picotorch); gc.collect(); return gc.mem_alloc()

before = gc.collect() or gc.mem_alloc()
first = used()
for i in range(20): last = used()

names = dir(picotorch)
print(first - before < 8192, last - first < 512, "Module" in names, "os" in names)
"""
    assert typed(text) == ["True True True False"]


def test_models_are_files_there():
    model = FIXTURES / "add_1" / "model.pte"
    text = """import io, json, os, time
from array import array
from picotorch import Module
print(os.listdir("/rom"), json.loads('{"a": [1]}'), io.StringIO("text").read(), time.ticks_ms() > 0)
print(Module("/rom/model.pte")(array("f", [3])).tolist())
"""
    assert typed(text, "--model", model) == ["['model.pte'] {'a': [1]} text True", "[6.0]"]


def test_models_need_names_of_their_own(call):
    paths = [FIXTURES / name / "model.pte" for name in ("add_1", "add_5")]
    assert_error(call("repl", "--model", paths[0], "--model", paths[1]), "InvalidArgument",
                 "model.pte: is the name of two files", "rename one")
    assert_usage(call("repl", "--model", paths[0], "--romfs", paths[1]), "not both")


def test_text_of_any_language_arrives():
    """Text can be inserted in a line: left moves the cursor before the last letter."""
    left = "\x1b[D"
    text = f"print('größe', len('日本'), '🔥')\nprint('ab'){left}{left}{left}é\n"
    assert typed(text) == ["größe 2 🔥", "aéb"]


@pytest.mark.parametrize("listen", ["pty", "tcp:0"])
def test_it_prints_what_to_type_and_ends_with_the_board_or_control_c(listen):
    with subprocess.Popen([*REPL, "--listen", listen], stdout=subprocess.PIPE, text=True,
                          preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler)
                          ) as process:
        assert process.stdout.readline().startswith("mps2-an386 listens.")
        (port,) = re.fullmatch(r"  mpremote connect (\S+)\n", process.stdout.readline()).groups()
        transport = SerialTransport(port)
        transport.enter_raw_repl()
        assert transport.eval("6 * 7") == 42
        if listen == "pty":
            transport.serial.write(b"import _board; _board.exit(7)\x04")
            assert process.wait(timeout=10) == 7
        else:
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=10) == 130


def test_no_emulator_is_left_when_the_command_is_terminated():
    with subprocess.Popen([*REPL, "--listen", "tcp:0"], stdout=subprocess.PIPE, text=True) as process:
        process.stdout.readline()
        (port,) = re.findall(r"localhost:(\d+)", process.stdout.readline())
        process.terminate()
        assert process.wait(timeout=10) == 130
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("localhost", int(port)), timeout=5)


def test_an_emulator_that_ends_after_its_first_answer_reports_the_reason():
    """The emulator's monitor may answer before the emulator finds the port in use."""
    command = "printf '(qemu) '; echo taken >&2; exit 1"
    with subprocess.Popen(["sh", "-c", command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as process:
        process.wait()
        with pytest.raises(emulator.EmulatorError, match="taken"):
            prompt._port(process)


def test_a_monitor_that_names_no_port_is_an_error():
    command = "printf '(qemu) '; read question; printf 'parallel0: filename=vc\\n(qemu) '"
    with subprocess.Popen(["sh", "-c", command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as process:
        with pytest.raises(emulator.EmulatorError, match="names no port .* parallel0: filename=vc"):
            prompt._port(process)


def test_a_port_in_use_is_an_error():
    with prompt.listening(BOARD, "tcp:0") as (port, _):
        taken = port.rsplit(":", 1)[1]
        done = subprocess.run([*REPL, "--listen", f"tcp:{taken}"], capture_output=True, text=True,
                              timeout=60)
    assert_error((done.returncode, done.stdout, done.stderr), "Internal", "Address already in use")


@pytest.mark.parametrize("listen", ["tcp", "tcp:65536", "tcp:0.0.0.0:1", "udp:1"])
def test_another_port_is_wrong_usage(call, listen):
    assert_usage(call("repl", "--listen", listen), f"'{listen}' is not pty or tcp:PORT")


def test_a_firmware_that_is_not_built_is_an_error_with_the_command(call, monkeypatch, tmp_path):
    monkeypatch.setattr(emulator, "FIRMWARE_DIR", tmp_path)
    assert_error(call("repl"), "NotFound", "make repl BOARD=mps2-an386")


def test_a_romfs_image_that_is_too_large_is_an_error_with_both_sizes(call, tmp_path):
    image = tmp_path / "image"
    image.write_bytes(bytes(BOARD.job.size + 1))
    assert_error(call("repl", "--romfs", image), "MemoryAllocationFailed",
                 f"{BOARD.job.size + 1}B of ROMFS image, {BOARD.job.size}B available")
