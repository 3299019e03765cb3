"""Connect a computer and a board by a server of RFC 2217, or by a pseudoterminal."""

import contextlib
import os
import select
import socket
import threading
import tty
from types import SimpleNamespace

import serial
from serial.rfc2217 import PortManager

from .wire import Board


@contextlib.contextmanager
def rfc2217(board: Board):
    """Yield the address of a server in front of the board's port, for one client at a time. The server
    hangs up when the board does."""
    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=_accept, args=[listener, board.port], daemon=True).start()
    try:
        yield f"rfc2217://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.shutdown(socket.SHUT_RDWR)  # ends accept()
        listener.close()


def _accept(listener, address):
    with contextlib.suppress(OSError):
        while True:
            client, _ = listener.accept()
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with client, serial.serial_for_url(address) as port, contextlib.suppress(OSError):
                manager = PortManager(port, SimpleNamespace(write=client.sendall))
                _pass(client.fileno(), port, threading.Event(),
                      lambda data, manager=manager: b"".join(manager.filter(data)),
                      lambda data, manager=manager: b"".join(manager.escape(data)))


@contextlib.contextmanager
def pseudoterminal(board: Board):
    """Yield the path of a terminal that is the board's console. It disappears when the board hangs
    up."""
    ends = front, terminal = os.openpty()
    tty.setraw(terminal)
    stop = threading.Event()
    thread = threading.Thread(target=_serve, args=[ends, board.port, stop])
    thread.start()
    try:
        yield os.ttyname(terminal)
    finally:
        stop.set()
        thread.join()


def _serve(ends, address, stop):
    with serial.serial_for_url(address) as port, contextlib.suppress(OSError):
        _pass(ends[0], port, stop, bytes, bytes)
    for end in ends:
        os.close(end)


def _pass(client, port, stop, decode, encode):
    """Pass bytes on until one side hangs up."""
    port._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while not stop.is_set():
        for ready in select.select([client, port], [], [], 0.1)[0]:
            data = os.read(client if ready is client else port.fileno(), 4096)
            if not data:
                return
            if ready is client:
                port.write(decode(data))
            else:
                os.write(client, encode(data))
