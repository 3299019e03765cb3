"""Limit mpremote's serial transport: every read ends, and none pauses between bytes."""

import contextlib
import io
import socket
import time
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

from mpremote.transport import TransportError
from mpremote.transport_serial import SerialTransport
from serial import SerialException

MAX_BYTES = 1 << 26  # bytes of an answer: outputs as large as a board's memory
_SERVERS = ("socket", "rfc2217")  # schemes of addresses with host and port


def fault_of_address(port: str) -> str | None:
    """Describe the fault in the address of a server, or return None.

    None is also the result for another kind of address.
    """
    scheme, separator, _ = port.partition("://")
    if not separator or scheme.lower() not in _SERVERS:
        return None
    try:
        parts = urlsplit(port)
        return None if parts.hostname and parts.port else (
            "no port is named" if parts.hostname else "no host is named")
    except ValueError as error:  # letters, a number beyond 65,535, half of a bracket
        return str(error)


class NoAnswer(TransportError):  # type: ignore[misc]
    """No byte came in the waiting time. received: the bytes before."""

    def __init__(self, received: bytes) -> None:
        super().__init__("no answer")
        self.received = received


class Transport(SerialTransport):  # type: ignore[misc]
    """Send to a board and receive its answers. timeout: seconds to wait for an answer."""

    def __init__(self, device: str, timeout: float) -> None:
        super().__init__(device, timeout=timeout)
        if device.lower().startswith("rfc2217:"):  # writes to such a device have a limit of their own
            self._read, self.serial.read = self.serial.read, self._read_or_raise
        else:
            self.serial.write_timeout = timeout
        connection = getattr(self.serial, "_socket", None)
        if connection is not None:  # small messages must not wait for further ones
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    @contextlib.contextmanager
    def timeout(self, seconds: float) -> Iterator[None]:
        """Use another timeout inside the block."""
        before = self.serial.timeout
        self._wait_for(seconds)
        try:
            yield
        finally:
            self._wait_for(before)

    def _wait_for(self, seconds: float) -> None:
        """Set the timeout if it changes, since each time RFC 2217 negotiates all settings again."""
        if seconds != self.serial.timeout:
            self.serial.timeout = seconds

    def _read_or_raise(self, size: int = 1) -> bytes:
        """Read from a port of RFC 2217.

        Such a port returns nothing at once if its server has hung up.
        """
        end = time.monotonic() + self.serial.timeout
        data: bytes = self._read(size)
        if not data and time.monotonic() < end:
            raise SerialException("the server hung up")
        return data

    def read_until(self, min_num_bytes: int, ending: bytes, timeout: float | None = None,
                   data_consumer: Callable[[bytes], None] | None = None,
                   timeout_overall: float | None = None) -> bytes:
        """Read up to `ending`.

        Raises NoAnswer after timeout_overall, by default the port's, even if a board sends other bytes
        without end. mpremote's other limits are for the prompt.
        """
        received = bytearray()
        end = time.monotonic() + (timeout_overall or self.serial.timeout)
        while not received.endswith(ending):
            byte = self.serial.read(1)
            if not byte or time.monotonic() > end or len(received) >= MAX_BYTES:
                raise NoAnswer(bytes(received))
            received += byte
        return bytes(received)

    def enter_raw_repl(self, soft_reset: bool = True, timeout_overall: float = 10) -> None:
        """Enter the raw REPL as mpremote does. mpremote prints unexpected output."""
        with contextlib.redirect_stdout(io.StringIO()):
            super().enter_raw_repl(soft_reset, timeout_overall)

    def close(self) -> None:
        """Close the port, even if it is already unusable."""
        with contextlib.suppress(OSError, TransportError):
            super().close()
