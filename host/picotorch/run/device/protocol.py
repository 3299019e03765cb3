"""Talk to a board: messages and answers with checksums, and a name for each failure.

The board runs on_board/link.py. The host first sends this file as text, with a checksum that it
compares; later messages are calls of its functions. The board does not execute a message with a wrong
checksum, and the host sends it again. An answer that lacks a line is rejected.
"""

import ast
import base64
import functools
import os
import re
import stat
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from mpremote.transport import TransportError
from serial import SerialException

from picotorch import Error
from picotorch.errors import (
    ACCESS_FAILED,
    INTERNAL,
    INVALID_ARGUMENT,
    INVALID_STATE,
    MEMORY_ALLOCATION_FAILED,
    fail,
)

from ...host.request import ANSWER_TIMEOUT
from . import answers
from .raw_repl import NoAnswer, Transport, fault_of_address

_T = TypeVar("_T")
_Block = ast.Module | ast.ClassDef | ast.FunctionDef

NOTHING = answers.OneOf()
ON_BOARD = Path(__file__).resolve().parent / "on_board"
BLOCK = 1024  # bytes of data in a message
TRIES = 3  # tries to get the prompt of a busy board, and to send a message that arrives damaged

# The checksums of four bits
_CRC32_OF_BITS = [functools.reduce(lambda crc, _: crc >> 1 ^ (crc & 1) * 0xEDB88320, range(4), bits)
                  for bits in range(16)]
# The checksum of zlib.crc32, for a firmware whose binascii lacks it. MicroPython's small integers have
# 31 bits, so it is computed in halves.
_CRC32 = f"""\
def crc32(data, value=0, lows={tuple(crc & 0xFFFF for crc in _CRC32_OF_BITS)},
          highs={tuple(crc >> 16 for crc in _CRC32_OF_BITS)}):
    low, high = ~value & 0xFFFF, ~value >> 16 & 0xFFFF
    for byte in data:
        i = (low ^ byte) & 15
        low, high = low >> 4 ^ high << 12 & 0xF000 ^ lows[i], high >> 4 ^ highs[i]
        i = (low ^ byte >> 4) & 15
        low, high = low >> 4 ^ high << 12 & 0xF000 ^ lows[i], high >> 4 ^ highs[i]
    return (high ^ 0xFFFF) << 16 | low ^ 0xFFFF
"""
_ALL_BITS = 0xFFFFFFFF
_HAS_CRC32 = """\
try:
    from binascii import crc32
    print(True)
except ImportError:
    print(False)
"""
_PLUG = "plug it in again, and try again"
_DAMAGED = re.compile(r"^(Damaged|SyntaxError|IndentationError|NameError|UnicodeError)\b")
_RESTARTED = re.compile(rb"MicroPython v\d|soft reboot|>>> $")


_LARGEST_BLOCK = """\
import gc
gc.collect()
_a, _b = 0, gc.mem_free()
while _a < _b:
 gc.collect()
 _c = (_a + _b + 1) // 2
 try:
  bytearray(_c)
  _a = _c
 except MemoryError:
  _b = _c - 1
print(_a)
del _a, _b, _c
"""


class Link:
    """An open conversation.

    Every failure raises an Error that names the present step. Use it in `with`: at the end the board
    frees everything that was sent, and is at its usual prompt. timeout: seconds for the answer to a
    message.
    """

    def __init__(self, port: str, timeout: float | None = None) -> None:
        self.port = port
        self.name = f"board at {port}"
        self.log: list[str] = []  # the board's output without answers
        self._doing = "opening the port"
        self._timeout = timeout or ANSWER_TIMEOUT
        self._sent: set[str] = set()
        self._base64 = False
        self._transport = self._guarded(self._open)

    def _open(self) -> Transport:
        self._check_address()
        try:
            return Transport(self.port, self._timeout)
        except ValueError as error:  # the error of pyserial for an unsupported address
            raise fail(INVALID_ARGUMENT, str(error), self.name,
                       remedy="--help says what a port may be") from None

    def _check_address(self) -> None:
        """Raise InvalidArgument for a server's address that lacks host or port."""
        wrong = fault_of_address(self.port)
        if wrong:
            scheme = self.port.partition("://")[0]
            raise fail(INVALID_ARGUMENT, wrong, self.name,
                       remedy=f"write host and port: {scheme}://192.168.1.20:2217")

    def __enter__(self) -> "Link":
        try:
            self._guarded(self._begin)
        except BaseException:
            self._abandon()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        if kind is not None:
            self._abandon()
            return
        try:
            self.do("freeing the memory", "finish()")
            self._guarded(lambda: self._execute("del _pt\nimport gc\ngc.collect()\ndel gc"))
            self._guarded(self._transport.exit_raw_repl)
        finally:
            self._transport.close()

    def _abandon(self) -> None:
        """Stop the board's program and leave the board at a prompt, if it can be reached."""
        try:
            self._transport.serial.write(b"\r\x03\x03\r\x02")
        except (OSError, SerialException):
            pass
        self._transport.close()

    def _begin(self) -> None:
        """Get the prompt, with an empty heap, and send the board's part of the protocol."""
        self._doing = "waiting for the prompt"
        self._prompt()
        self._doing = "starting the transfer"
        source = stripped(ON_BOARD / "link.py")
        checksum = "" if self._execute(_HAS_CRC32).strip() == b"True" else _CRC32
        data = source.encode()
        answer = self._execute(f"{checksum}_pt = {{'crc32': crc32}}\n_s = {data!r}\n"
                               f"print(crc32(_s), crc32(_s, {_ALL_BITS}))").split()
        if answer != [b"%d" % zlib.crc32(data), b"%d" % zlib.crc32(data, _ALL_BITS)]:
            raise self._damaged(f"{answer!r:.60}")
        # collected first, so that the functions, which stay, do not split the heap
        self._execute("import gc\ngc.collect()\nexec(_s, _pt)\ndel _s, crc32, gc")
        self._base64 = self.ask(self._doing, "say(a2b_base64 is not None)", bool)

    def _prompt(self) -> None:
        for left in reversed(range(TRIES)):
            try:
                self._transport.enter_raw_repl(timeout_overall=self._timeout)
                return
            except TransportError:
                if not left:
                    raise

    def start_boot_loader(self) -> None:
        """End MicroPython and the conversation in the boot loader."""
        self._doing = "starting its boot loader"
        try:
            self._guarded(self._prompt)
            self._guarded(lambda: self._transport.exec_raw_no_follow(
                "import machine\nmachine.bootloader()"))
        finally:
            self._transport.close()

    # ---- messages

    def do(self, doing: str, source: str, space: str = "", timeout: float | None = None,
           each: object = NOTHING) -> list[Any]:
        """Execute a text on the board, and return the list of values of this shape that it reports.

        The shapes are those of answers.py. `doing` is for errors: "... while {doing}".
        """
        self._doing = doing
        data = source.encode()
        call = f"_pt['do']({zlib.crc32(data)}, {data!r}, {space!r})"
        return self._guarded(lambda: self._answer(call, timeout or self._timeout, each))

    def ask(self, doing: str, source: str, shape: object, space: str = "") -> Any:
        """Execute a text on the board, and return the only value that it reports, of this shape."""
        values = self.do(doing, source, space, each=shape)
        if len(values) != 1:
            raise self.refused(f"{len(values)} values")
        return values[0]

    def put(self, doing: str, data: bytes, tell: Callable[[int], None] | None = None,
            offset: int = 0) -> None:
        """Send bytes in blocks to the last target of store_with(), from an offset there on.

        tell: receives the number of bytes that are sent.
        """
        for start in range(0, len(data), BLOCK):
            block = bytes(data[start : start + BLOCK])
            self._doing = f"{doing} (byte {start:,} of {len(data):,})"
            position = offset + start
            text = base64.b64encode(block).decode() if self._base64 else block
            call = f"_pt['put']({zlib.crc32(block, position)}, {position}, {text!r})"
            self._guarded(functools.partial(self._answer, call, self._timeout))
            if tell is not None:
                tell(start + len(block))

    def send_module(self, path: Path) -> None:
        """Send a module in parts, so that the board need not have its whole text in memory."""
        name = path.stem
        if name in self._sent:
            return
        self.do(f"sending {path.name}", f"spaces[{name!r}] = {{}}")
        for text in _joined(statements(path)):
            self.do(f"sending {path.name}", text, name)
        self.do(f"sending {path.name}", f"publish({name!r})")
        self._sent.add(name)

    def remove_module(self, path: Path) -> None:
        """Remove a module that was sent, and free its memory."""
        self.do(f"removing {path.name}", f"remove({path.stem!r})")
        self._sent.discard(path.stem)

    def _execute(self, call: str, timeout: float | None = None) -> bytes:
        """Return the output of a text.

        Raises the error of its exception. Sends a text again if it arrived damaged.
        """
        text = ""
        for _ in range(TRIES):
            with self._transport.timeout(timeout or self._timeout):
                printed, raised = self._transport.exec_raw(call, timeout=None)
            if not raised:
                return bytes(printed)
            text = (raised.decode("utf-8", "backslashreplace").strip().splitlines() or [""])[-1]
            if not _DAMAGED.search(text):
                raise self._raised(text)
        raise self._damaged(text)

    def _answer(self, call: str, timeout: float, each: object = NOTHING) -> list[Any]:
        """Return the lines that say() wrote, checked."""
        values: list[Any] = []
        checksum = 0
        lines = self._execute(call, timeout).decode("utf-8", "backslashreplace").splitlines()
        end = lines.pop() if lines else ""
        for line in lines:
            if line.startswith("pt:"):
                checksum = zlib.crc32(line[3:].encode(), checksum)
                values.append(line[3:])
            elif line:
                self.log.append(line)
        if end != f"pt:={len(values)} {checksum:08x}":
            raise self._damaged(f"{end[-60:]!r}")
        for i, line in enumerate(values):
            try:
                values[i] = answers.read(line, each)
            except answers.NotAnAnswer:
                raise self.refused(line) from None
        return values

    # ---- errors

    def _guarded(self, step: Callable[[], _T]) -> _T:
        """Return the result of `step`; name the board and the step in its error."""
        try:
            return step()
        except Error:
            raise
        except NoAnswer as error:
            raise self._silent(error.received) from None
        except (struct.error, TransportError) as error:
            raise self._misunderstood(str(error)) from None
        except (OSError, SerialException) as error:
            raise fail(ACCESS_FAILED, f"the connection broke while {self._doing}: {error}",
                       self.name, remedy=_PLUG) from None

    def _silent(self, received: bytes) -> Error:
        if _RESTARTED.search(received):
            return fail(INVALID_STATE, f"it restarted while {self._doing}", self.name,
                        remedy="try again; if it happens again, check its power supply")
        if self._doing == "waiting for the prompt":
            return fail(ACCESS_FAILED, "no MicroPython prompt: " + _shown(received), self.name,
                        remedy="press its reset button, or raise --timeout; if it "
                               "has no MicroPython, flash it first")
        return fail(ACCESS_FAILED, f"no answer while {self._doing}", self.name,
                    remedy="try again, or raise --timeout")

    def _misunderstood(self, text: str) -> Error:
        if text.startswith("failed to access"):
            return self._not_opened()
        if "b''" in text or text.startswith("unpack"):
            return self._silent(b"")
        if _RESTARTED.search(text.encode()):
            return self._silent(text.encode())
        return self._damaged(text)

    def _not_opened(self) -> Error:
        if "://" in self.port:
            server = "no server of RFC 2217" if self.port.lower().startswith("rfc2217:") else "nothing"
            return fail(ACCESS_FAILED, f"{server} answers there", self.name,
                        remedy="start what listens there first")
        if not os.path.exists(self.port):
            return fail(ACCESS_FAILED, "there is no such port", self.name,
                        remedy="picotorch boards --connected lists the ports")
        if not os.access(self.port, os.R_OK | os.W_OK):
            return fail(ACCESS_FAILED, "you have no permission to open it", self.name,
                        remedy="on Debian: adduser $USER dialout, and log in again")
        if not _is_terminal(self.port):
            return fail(ACCESS_FAILED, "is not a serial port", self.name,
                        remedy="picotorch boards --connected lists the ports")
        return fail(ACCESS_FAILED, "is in use", self.name,
                    remedy="close the other program: Thonny, mpremote, a terminal")

    def _damaged(self, text: str) -> Error:
        return fail(ACCESS_FAILED, f"the answer is damaged while {self._doing}: {printable(text)}",
                    self.name, remedy="try again; if it happens again, try another cable")

    def refused(self, text: str) -> Error:
        """Return the error for an answer that arrived completely but is unusable."""
        return fail(ACCESS_FAILED, f"answered {printable(text)} while {self._doing}", self.name,
                    remedy="reset it, and try again; if it happens again, flash its firmware again")

    def _largest_block(self) -> int:
        """Return the bytes of the largest free block of the board's heap, -1 if it does not answer."""
        try:
            with self._transport.timeout(self._timeout):
                printed, raised = self._transport.exec_raw(_LARGEST_BLOCK, timeout=None)
            return int(printed) if not raised and re.fullmatch(rb"\s*\d{1,18}\s*", printed) else -1
        except (OSError, SerialException, TransportError):
            return -1

    def _raised(self, last: str) -> Error:
        """Return the error of an exception on the board; `last` is the last line of its traceback."""
        if last.startswith("MemoryError"):
            found = re.search(r"allocating (\d{1,18}) bytes", last)
            return fail(MEMORY_ALLOCATION_FAILED,
                        f"{self.name}: has not that much in one piece while {self._doing}", "heap",
                        requested=int(found[1]) if found else -1, available=self._largest_block(),
                        remedy="deploy the model to flash (picotorch deploy --romfs), or take a "
                               "smaller model or a board with more memory")
        if last.startswith("KeyboardInterrupt"):
            return fail(INVALID_STATE, f"was interrupted while {self._doing}", self.name,
                        remedy="close other programs that use the port, and try again")
        if last.startswith("OSError"):
            found = re.search(r"\b\d{1,5}\b", last)
            why = os.strerror(int(found[0])) if found else printable(last)
            return fail(ACCESS_FAILED, f"{why} while {self._doing}", self.name,
                        remedy="check its file system: is it full, does the folder exist?")
        return fail(INTERNAL, f"while {self._doing}: {printable(last)}", self.name,
                    remedy="try again; if it persists, please report it")


def _is_terminal(path: str) -> bool:
    """Return True if a port is a terminal.

    For some ports only the program that opened them can tell.
    """
    if not stat.S_ISCHR(os.stat(path).st_mode):
        return False
    try:
        file = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
    except OSError:
        return True
    try:
        return os.isatty(file)
    finally:
        os.close(file)


def printable(text: str) -> str:
    """Return the end of a text from a board, with escapes for characters that control a terminal."""
    text = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text[-201:])
    return text if len(text) < 200 else "..." + text[-200:]


def _shown(received: bytes) -> str:
    text = received[-60:].decode("utf-8", "backslashreplace").strip()
    return f"it printed {text!r}" if text else "it printed nothing"


# ---- what is sent


class _NoDocstrings(ast.NodeTransformer):
    """Remove docstrings; the parser drops comments."""

    def _body(self, node: _Block) -> _Block:
        self.generic_visit(node)
        first = node.body[0]
        if isinstance(first, ast.Expr) and isinstance(getattr(first.value, "value", None), str):
            node.body = node.body[1:] or [ast.Pass()]
        return node

    visit_Module = visit_ClassDef = visit_FunctionDef = _body


def statements(path: Path) -> list[str]:
    """Return the statements of a module for a board, each as short as possible."""
    tree = _NoDocstrings().visit(ast.parse(path.read_text(encoding="utf-8")))
    return [re.sub(r"(?m)^(?:    )+", lambda found: " " * (len(found[0]) // 4), ast.unparse(node))
            for node in tree.body]


def stripped(path: Path) -> str:
    """Return a module's text without docstrings and comments, and with short indents."""
    return "\n".join(statements(path))


def _joined(texts: Iterable[str]) -> Iterator[str]:
    """Join pieces up to the length of a block."""
    joined = ""
    for text in texts:
        if joined and len(joined) + len(text) > BLOCK:
            yield joined
            joined = ""
        joined += text + "\n"
    yield joined
