"""Test the firmware's REPL with the real mpremote: each command that uses the board."""

import hashlib
import itertools
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from mpremote.romfs import VfsRomWriter
from mpremote.transport_serial import SerialTransport
from picotorch.boards.boards import load_board
from picotorch.run import prompt
from picotorch.runtime import Runtime
from support import fixture_store
from support.tiers import with_prompt

REPOSITORY = Path(__file__).resolve().parents[2]

# Boards of each kind of console and memory. SMALL has 32 KB for files and cannot write its ROMFS.
LARGE, SMALL = ["mps2-an386", "mps3-an547"], "netduinoplus2"
BOARDS = [*LARGE, SMALL]
END = "import _board; _board.exit(0)"


class Remote:
    """A board, and calls of mpremote with commands for it."""

    def __init__(self, board, romfs=None):
        self.board, self.romfs = load_board(board), romfs

    def __enter__(self):
        self._listening = prompt.listening(self.board, "tcp:0", self.romfs)
        self.port, self.process = self._listening.__enter__()
        self._wait_for_prompt()
        return self

    def _wait_for_prompt(self):
        """Repeat the input: an emulator may drop bytes until the board has set up its UART."""
        said = b""
        while not said.endswith(b">>> "):
            transport = SerialTransport(self.port)
            transport.serial.write(b"\r")
            said = transport.read_until(1, b">>> ", timeout=0.5)
            transport.close()

    def __exit__(self, *raised):
        return self._listening.__exit__(*raised)

    def start(self, *commands):
        """Start mpremote. commands: lists of words, joined by mpremote's +."""
        words = [str(word) for command in commands for word in (*command, "+")]
        return subprocess.Popen([sys.executable, "-m", "mpremote", "connect", self.port, *words],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def fails(self, *commands):
        process = self.start(*commands)
        output, errors = process.communicate(timeout=60)
        return process.returncode, output + errors

    def __call__(self, *commands):
        status, output = self.fails(*commands)
        assert status == 0, output
        return output


@pytest.fixture(params=with_prompt(BOARDS))
def remote(request):
    with Remote(request.param) as remote:
        yield remote


@pytest.fixture
def large():
    with Remote(LARGE[0]) as remote:
        yield remote


@pytest.fixture
def small():
    with Remote(SMALL) as remote:
        yield remote


def test_exec_eval_run_and_soft_reset(remote, tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import sys\nprint('ran', n + 1)\nsys.exit()\n")
    said = remote(["exec", "n = 41"], ["eval", "n"], ["run", script], ["eval", "'n' in globals()"],
                  ["exec", "kept = 1"], ["soft-reset"], ["eval", "'kept' in globals()"])
    assert said == "41\nran 42\nFalse\nFalse\n"
    remote(["exec", "kept = 2"])
    assert remote(["resume"], ["eval", "kept"]) == "2\n"
    assert remote(["eval", "'kept' in globals()"]) == "False\n"


def test_files_are_copied_both_ways_and_survive_resets(remote, tmp_path):
    """The file has every byte, and is larger than the console's buffer."""
    sent = bytes(range(256)) * 5 + b"end"
    (tmp_path / "sent").write_bytes(sent)
    said = remote(["mkdir", ":lib"], ["cp", tmp_path / "sent", ":lib/sent"], ["soft-reset"],
                  ["cp", ":lib/sent", tmp_path / "back"], ["ls", "lib"],
                  ["exec", "import machine; print(machine.mem8[0] >= 0)"])
    assert (tmp_path / "back").read_bytes() == sent
    assert f"{len(sent)} sent" in said and said.endswith("True\n")
    remote(["reset"])
    said = remote(["sha256sum", "lib/sent"], ["rm", "lib/sent"], ["ls", "lib"], ["df"])
    assert hashlib.sha256(sent).hexdigest() in said
    assert " sent\n" not in said
    status, said = remote.fails(["cat", "lib/sent"])
    assert status == 1 and "No such file" in said


@pytest.mark.thorough
def test_a_file_without_room_is_rejected_and_the_others_stay(small, tmp_path):
    (tmp_path / "large").write_bytes(bytes(6000))
    fill = "with open('fits', 'w') as file: file.write('x' * 27000)"
    status, said = small.fails(["exec", fill], ["cp", tmp_path / "large", ":large"])
    assert status == 1 and "No space left on device" in said
    assert small(["cat", "fits"]) == "x" * 27000


def test_boot_and_main_run_as_on_other_boards(large, tmp_path):
    """boot.py always runs, main.py unless a client waits in the raw REPL. An exception in one of them
    ends only that one."""
    (tmp_path / "boot.py").write_text("booted = 1\n1 / 0\n")
    (tmp_path / "main.py").write_text("print('ma' + 'in')\n")
    large(["cp", tmp_path / "boot.py", tmp_path / "main.py", ":"])
    assert large(["eval", "booted"]) == "1\n"
    transport = SerialTransport(large.port)
    transport.serial.write(b"\r\x02\x04")
    said = transport.read_until(1, b"main\r\n")
    transport.close()
    assert b"ZeroDivisionError" in said


def test_mount_runs_files_of_the_host(remote, tmp_path):
    (tmp_path / "hello.py").write_text("data = open('data.bin', 'rb')\n"
                                       "data.seek(3)\nprint(sum(data.read()))\n"
                                       "with open('/remote/out.txt', 'w') as out: out.write('done')\n")
    (tmp_path / "data.bin").write_bytes(bytes(range(256)) * 8)
    said = remote(["mount", tmp_path, "exec", "import hello"])
    assert said.endswith(f"\n{sum(range(256)) * 8 - 3}\n")
    assert (tmp_path / "out.txt").read_text() == "done"


@pytest.mark.parametrize("cut", ["interrupted", "killed"])
def test_a_program_of_a_client_that_has_gone_is_interrupted(large, tmp_path, cut):
    endless = tmp_path / "endless.py"
    endless.write_text("print('go' + 'ing')\nwhile True:\n    pass\n")
    client = large.start(["run", endless])
    assert client.stdout.readline() == "going\n"
    client.send_signal(signal.SIGINT if cut == "interrupted" else signal.SIGKILL)
    client.communicate(timeout=10)
    assert large(["eval", "6 * 7"]) == "42\n"


@pytest.mark.thorough
def test_a_client_that_goes_in_the_middle_of_a_transfer_leaves_a_usable_board(small):
    """The client leaves at each step of raw paste mode."""
    paste = b"\x05A\x01"
    for typed in (paste, paste + b"print(1", paste + b"#" * 900, b"print(1\x04", b"x" * 2000):
        transport = SerialTransport(small.port)
        transport.enter_raw_repl(soft_reset=False)
        transport.serial.write(typed)
        transport.close()
        assert small(["eval", "6 * 7"]) == "42\n"


def test_bytes_on_stdin_arrive_all_whatever_they_are(remote):
    """The bytes arrive faster than the script reads them, and include ctrl-C and ctrl-D."""
    sent = bytes(range(256)) * 64
    script = (f"import sys, micropython, hashlib\nmicropython.kbd_intr(-1)\nsum = hashlib.sha256()\n"
              f"block = bytearray(512)\nsys.stdout.write('?')\nfor _ in range({len(sent) // 512}):\n"
              "  sys.stdin.buffer.readinto(block)\n  sum.update(block)\nmicropython.kbd_intr(3)\n"
              "print(sum.digest().hex())\n")
    transport = SerialTransport(remote.port)
    transport.enter_raw_repl()
    transport.exec_raw_no_follow(script)
    assert transport.serial.read(1) == b"?"
    transport.serial.write(sent)
    said, failed = transport.follow(timeout=20)
    transport.exit_raw_repl()
    transport.close()
    assert (failed, said.decode().strip()) == (b"", hashlib.sha256(sent).hexdigest())


def test_pyboard_talks_to_it_too(tmp_path):
    """pyboard is MicroPython's older tool; it connects to a pseudoterminal."""
    tree = Path(os.environ.get("MICROPYTHON_DIR") or REPOSITORY / "build" / "micropython")
    (tmp_path / "file").write_bytes(b"0123456789")
    with prompt.listening(load_board(LARGE[0]), "pty") as (port, _):
        pyboard = [sys.executable, tree / "tools" / "pyboard.py", "--device", port]
        subprocess.run([*pyboard, "-f", "cp", tmp_path / "file", ":file"], check=True, timeout=60)
        said = subprocess.check_output([*pyboard, "-c", "print(open('file').read())"], timeout=60)
    assert said.split() == [b"0123456789"]


# -- models

INT8 = fixture_store.load("int8_ds_cnn")
EXECUTION = """\
import array, gc
from picotorch import Module
with open('/x', 'rb') as file:
    x = array.array('f', file.read())
gc.collect()
before = gc.mem_alloc()
module = Module('{path}')
print(gc.mem_alloc() - before)
print(bytes(module.forward(x).data).hex())
"""


def execute(remote, path, tmp_path, *first):
    """Return the bytes of heap that the model at a path uses, and its output for the fixture's first
    inputs."""
    run = INT8.runs[0]
    (tmp_path / "x").write_bytes(run.inputs[0].tobytes())
    (tmp_path / "execution.py").write_text(EXECUTION.format(path=path))
    said = remote(*first, ["cp", tmp_path / "x", ":/x"], ["run", tmp_path / "execution.py"])
    heap, output = said.splitlines()[-2:]
    return int(heap), np.frombuffer(bytes.fromhex(output), np.float32)


def romfs_image(model, alignment=16, beside=0):
    """Return a ROMFS image as mpremote writes it. The model starts `beside` bytes behind a multiple of
    `alignment`. Other files surround it, because an image has an even size."""
    for before, behind in itertools.product(range(alignment), range(2)):
        writer = VfsRomWriter()
        writer.mkfile("before", bytes(before))
        writer.mkfile("model.pte", model)
        writer.mkfile("behind", bytes(behind))
        image = writer.finalise()
        if image.index(model) % alignment == beside:
            return image


def same_as_twin(output):
    twin = Runtime.get().load_program(INT8.path).load_method("forward")
    return output.tobytes() == twin.execute(INT8.runs[0].inputs)[0].tobytes()


@pytest.mark.thorough
def test_a_copied_model_runs_as_the_twin(large, tmp_path):
    heap, output = execute(large, "/model.pte", tmp_path, ["cp", INT8.path, ":/model.pte"])
    assert heap > len(INT8.pte)
    assert same_as_twin(output)


@pytest.mark.thorough
@pytest.mark.parametrize("board", LARGE)
def test_a_model_in_a_deployed_romfs_is_used_in_place(board, tmp_path):
    image = romfs_image(INT8.pte)
    (tmp_path / "models.romfs").write_bytes(image)
    with Remote(board) as remote:
        assert "Not a valid ROMFS" in remote(["romfs", "query"])
        said = remote(["romfs", "deploy", tmp_path / "models.romfs"], ["soft-reset"],
                      ["romfs", "query"])
        assert "ROMFS image size: " in said
        heap, output = execute(remote, "/rom/model.pte", tmp_path)
        assert heap < 2000
        assert same_as_twin(output)


@pytest.mark.thorough
def test_the_small_board_starts_with_a_romfs_and_cannot_write_it(tmp_path):
    image = romfs_image(INT8.pte)
    (tmp_path / "models.romfs").write_bytes(image)
    with Remote(SMALL, tmp_path / "models.romfs") as remote:
        heap, output = execute(remote, "/rom/model.pte", tmp_path)
        assert heap < 2000
        assert same_as_twin(output)
        status, said = remote.fails(["romfs", "deploy", tmp_path / "models.romfs"])
        assert status == 1 and "ROMFS cannot be written on this board" in said
        assert f"{len(INT8.pte)} model.pte\n" in remote(["ls", "/rom"])


@pytest.mark.thorough
def test_a_misaligned_model_in_romfs_is_rejected_by_name(tmp_path):
    (tmp_path / "models.romfs").write_bytes(romfs_image(INT8.pte, beside=4))
    with Remote(SMALL, tmp_path / "models.romfs") as remote:
        status, said = remote.fails(["exec", "from picotorch import Module; Module('/rom/model.pte')"])
    assert status == 1
    assert "does not start at a multiple of 8 bytes; align it" in said
