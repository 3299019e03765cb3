"""Find boards: serial ports with the USB ids of boards that run MicroPython."""

from dataclasses import dataclass

from serial.tools import list_ports

from picotorch.errors import INVALID_ARGUMENT, NOT_FOUND, fail

AUTO = "auto"

# Vendors of boards and of the USB bridges on them; a product of 0 means all of them
_KNOWN = {
    (0x2E8A, 0x0005): "MicroPython on RP2040 or RP2350",
    (0x2E8A, 0x000C): "Raspberry Pi Debug Probe",
    (0x2E8A, 0): "Raspberry Pi",
    (0xF055, 0x9800): "MicroPython (pyboard or another STM32 board)",
    (0xF055, 0): "MicroPython",
    (0x239A, 0): "Adafruit board",
    (0x1FC9, 0): "NXP board (Teensy, MIMXRT)",
    (0x16C0, 0): "Teensy",
    (0x0483, 0x374B): "ST-Link of a Nucleo or Discovery board",
    (0x0483, 0x374E): "ST-Link of a Nucleo or Discovery board",
    (0x0483, 0): "STM32 board",
    (0x1366, 0): "J-Link of a Nordic board",
    (0x0D28, 0): "DAPLink (micro:bit and others)",
    (0x2341, 0): "Arduino board",
    (0x303A, 0): "Espressif board",
    (0x10C4, 0): "CP210x bridge",
    (0x1A86, 0): "CH340 bridge",
    (0x0403, 0): "FTDI bridge",
}
# The serial ports of these are consoles of debugged boards, or unused
_PROBES = {(0x2E8A, 0x000C)}


@dataclass(frozen=True)
class Port:
    """A serial port. board: the board of its USB ids, or None."""

    device: str
    vendor: int | None
    product: int | None
    serial_number: str | None
    board: str | None


def serial_ports() -> list[Port]:
    """Return the ports with USB ids, boards first."""
    found = [Port(port.device, port.vid, port.pid, port.serial_number, board_of(port.vid, port.pid))
             for port in list_ports.comports() if port.vid is not None]
    return sorted(found, key=lambda port: (port.board is None, port.device))


def board_of(vendor: int | None, product: int | None) -> str | None:
    """Return the board of USB ids, or None."""
    return _KNOWN.get((vendor or 0, product or 0)) or _KNOWN.get((vendor or 0, 0))


def is_probe(port: Port) -> bool:
    """Return True for the port of a debug probe."""
    return (port.vendor, port.product) in _PROBES


def resolve(port: str) -> str:
    """Return the device or address of a port in a user's notation.

    Raises NotFound if `auto` finds none, InvalidArgument if it finds several.
    """
    if port != AUTO:
        return port
    boards = [one for one in serial_ports() if one.board and not is_probe(one)]
    if not boards:
        raise fail(NOT_FOUND, "none is attached", "board",
                   remedy="plug it in with a cable that carries data, or name its port with --port")
    if len(boards) > 1:
        raise fail(INVALID_ARGUMENT, "several are attached: " + ", ".join(
            f"{one.device} ({one.board})" for one in boards), "board", remedy="name one with --port")
    return boards[0].device
