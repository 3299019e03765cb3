"""List the connected devices, and how to deploy to each: picotorch boards --connected."""

import shutil
from dataclasses import dataclass
from typing import Any

import picotorch
from picotorch import Error

from ..firmware import native_module
from ..host import show
from ..host.report import Report
from ..run.device import serial_ports
from ..run.device.device_run import facts_of
from ..run.device.protocol import Link
from . import boot_drives, flash_tools, installing

_TIMEOUT = 1.0  # seconds for an answer: a silent board must not delay the list


@dataclass(frozen=True)
class PortDevice(Report):
    """The device at a serial port.

    machine: the board's name in its firmware, None if it was not asked. has: its picotorch, in words.
    """

    port: str
    board: str | None
    serial_number: str | None
    machine: str | None
    has: str | None
    commands: list[str]


@dataclass(frozen=True)
class DriveDevice(Report):
    """The drive of a boot loader, and the boards that may have it."""

    path: str
    model: str
    board_id: str
    boards: list[str]
    commands: list[str]


@dataclass(frozen=True)
class Attached(Report):
    """The connected devices, and the installed tools that flash boards."""

    ports: list[PortDevice]
    drives: list[DriveDevice]
    tools: list[str]


def attached() -> Attached:
    """List serial ports, boot loaders' drives and installed tools.

    Each board is queried for its picotorch.
    """
    return Attached([_at_port(port) for port in serial_ports.serial_ports()],
                    [_at_drive(drive) for drive in boot_drives.boot_drives()],
                    [name for name in flash_tools.TOOLS if shutil.which(name)])


def _at_drive(drive: boot_drives.Drive) -> DriveDevice:
    names = flash_tools.boards_with_drive(drive)
    return DriveDevice(str(drive.path), drive.model, drive.board_id, names,
                       [f"picotorch flash FIRMWARE.uf2 --board {name}" for name in names])


def _at_port(port: serial_ports.Port) -> PortDevice:
    """Describe the device at a port: its picotorch in words, and the commands that work for it.

    Only boards are queried, since another device might misread the request.
    """
    def device(machine: str | None, has: str | None, commands: list[str]) -> PortDevice:
        return PortDevice(port.device, port.board, port.serial_number, machine, has, commands)

    if serial_ports.is_probe(port):
        return device(None, None, ["picotorch flash FIRMWARE --board NAME --with openocd"])
    deploy, run = (f"picotorch {command} MODEL --port {port.device}" for command in ("deploy", "run"))
    if port.board is None:
        return device(None, None, [deploy, run])
    try:
        with Link(port.device, _TIMEOUT) as link:
            found = installing.find(link)
            facts = facts_of(link)
    except Error as error:
        return device(None, error.message, [deploy, run])
    unsupported = native_module.unsupported(installing.architecture(facts))
    has, fits = _state(found, facts, unsupported)
    if fits:
        commands = [deploy, run] if found.version == picotorch.__version__ else [deploy]
    elif unsupported is None:
        commands = [f"picotorch flash MODEL --board NAME --port {port.device}"]
    else:
        commands = []
    return device(facts["machine"], has, commands)


def _state(found: installing.Installed, facts: dict[str, Any],
           unsupported: str | None) -> tuple[str, bool]:
    """Describe the picotorch of a board, and whether deploy needs to copy it, and can.

    unsupported: the name of the board's architecture if picotorch builds nothing for it.
    """
    if found.version is not None:
        kind = ("firmware" if found.path is None else "kernels in flash" if found.flash
                else "native module")
        return (f"{kind} with picotorch {found.version}",
                kind == "native module" or found.version == picotorch.__version__)
    try:
        fits = bool(installing.arches_of(facts, ""))
    except Error:
        fits = False
    if unsupported is not None:
        return f"no picotorch: {unsupported} is not supported yet", False
    return ("no picotorch: deploy copies a native module" if fits
            else "no picotorch: flash a firmware with it"), fits


def show_text(found: Attached) -> None:
    rows = [[one.port, one.machine or one.board or "unknown", one.has or "", one.commands]
            for one in found.ports]
    rows += [[one.path, one.model or one.board_id, "", one.commands] for one in found.drives]
    if not rows:
        show.line("No known board found: plug one in, with a cable that carries data.")
    else:
        show.table(["where", "what", "has", "command"], [
            [*(one if not i else ["", "", ""]), command]
            for *one, commands in rows for i, command in enumerate(commands or [""])])
    show.line("Installed tools that flash boards: " + (", ".join(found.tools) or "none"))
