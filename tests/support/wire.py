"""Connect to an emulated board with MicroPython's prompt behind a TCP port, by a wire that can fail."""

import contextlib
import os
import signal
import socket
import subprocess
import threading
from dataclasses import dataclass
from pathlib import Path

from picotorch.boards.boards import load_board
from picotorch.run import emulator

BOARD = "mps2-an386"
TIMEOUT = 60  # seconds to start


@dataclass
class Fault:
    """A fault after a number of bytes on the wire of one connection, both directions counted.

    cut: the connection ends. stall: no further byte passes. garble: one byte changes. reset: the board
    starts again, as if its button was pressed.
    """

    kind: str
    at: int
    happened: bool = False


class Board:
    """A board that is on and at its prompt from `with` on. `port` is a value for --port."""

    def __init__(self, name: str = BOARD, firmware: Path | None = None):
        """Start the board. firmware: with the prompt; None for the board's own, which has all
        kernels."""
        self._command = emulator.emulator_command(
            load_board(name), firmware or emulator.firmware_path(load_board(name), "repl"))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = f"socket://127.0.0.1:{self._listener.getsockname()[1]}"
        self.fault = None
        self.passed = 0  # bytes of the last connection
        self._client = None
        self._lock = threading.Lock()
        self._at_prompt = threading.Event()

    def __enter__(self):
        self._start()
        assert self._at_prompt.wait(TIMEOUT), "the board has no prompt"  # the board drops earlier input
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *error):
        self._listener.close()
        self._stop()

    def restart(self):
        """Start the board again: the contents of RAM are lost."""
        self._stop()
        self._start()

    def _start(self):
        self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        threading.Thread(target=self._from_board, args=[self._process], daemon=True).start()

    def _stop(self):
        self._process.kill()
        self._process.wait()

    def _serve(self):
        """Serve one client after the other."""
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._client, self.passed = client, 0
                with contextlib.suppress(OSError):
                    self._to_board(client)
                self._hang_up()

    def _hang_up(self):
        client, self._client = self._client, None
        if client is not None:
            with contextlib.suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)
            client.close()

    def _to_board(self, client):
        while data := client.recv(4096):
            with contextlib.suppress(BrokenPipeError):
                os.write(self._process.stdin.fileno(), self._pass(data))

    def _from_board(self, process):
        printed = b""
        while data := os.read(process.stdout.fileno(), 4096):
            if not self._at_prompt.is_set():
                printed += data
                if printed.endswith(b">>> "):
                    process.send_signal(signal.SIGIO)  # QEMU may have slept since the UART was off
                    self._at_prompt.set()
            data = self._pass(data)
            with contextlib.suppress(OSError, AttributeError):
                self._client.sendall(data)

    def _pass(self, data):
        """Send bytes over the wire, and return the bytes that arrive."""
        with self._lock:
            before, self.passed = self.passed, self.passed + len(data)
            fault = self.fault
            if fault is None or self.passed <= fault.at or (
                    fault.happened and fault.kind != "stall"):
                return data
            fault.happened = True
            position = max(0, fault.at - before)
        if fault.kind == "garble":
            return data[:position] + bytes([data[position] ^ 0x15]) + data[position + 1 :]
        if fault.kind == "cut":
            self._hang_up()
        if fault.kind == "reset":
            self.restart()
        return data[:position]
