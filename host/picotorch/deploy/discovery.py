"""List the connected devices, and how to deploy to each: picotorch boards --connected."""

import shutil
from typing import Any

import picotorch
from picotorch import Error

from ..firmware import native_module
from ..host import show
from ..run.device import serial_ports
from ..run.device.device_run import facts_of
from ..run.device.protocol import Link
from . import boot_drives, flash_tools, installing

_TIMEOUT = 1.0  # seconds for an answer: a silent board must not delay the list


def attached() -> dict[str, Any]:
    """List serial ports, boot loaders' drives and installed tools, as plain data.

    Each board is queried for its picotorch.
    """
    return {
        "ports": [{"port": port.device, "board": port.board, "serial_number": port.serial_number,
                   **_at_port(port)} for port in serial_ports.serial_ports()],
        "drives": [{"path": str(drive.path), "model": drive.model, "board_id": drive.board_id,
                    "boards": (names := flash_tools.boards_with_drive(drive)),
                    "commands": [f"picotorch flash FIRMWARE.uf2 --board {name}" for name in names]}
                   for drive in boot_drives.boot_drives()],
        "tools": [name for name in flash_tools.TOOLS if shutil.which(name)],
    }


def _at_port(port: serial_ports.Port) -> dict[str, Any]:
    """Describe the device at a port: its picotorch in words, and the commands that work for it.

    Only boards are queried, since another device might misread the request.
    """
    if serial_ports.is_probe(port):
        return {"machine": None, "has": None,
                "commands": ["picotorch flash FIRMWARE --board NAME --with openocd"]}
    deploy, run = (f"picotorch {command} MODEL --port {port.device}" for command in ("deploy", "run"))
    if port.board is None:
        return {"machine": None, "has": None, "commands": [deploy, run]}
    try:
        with Link(port.device, _TIMEOUT) as link:
            found = installing.find(link)
            facts = facts_of(link)
    except Error as error:
        return {"machine": None, "has": error.message, "commands": [deploy, run]}
    unsupported = native_module.unsupported(installing.architecture(facts))
    has, fits = _state(found, facts, unsupported)
    if fits:
        commands = [deploy, run] if found.version == picotorch.__version__ else [deploy]
    elif unsupported is None:
        commands = [f"picotorch flash MODEL --board NAME --port {port.device}"]
    else:
        commands = []
    return {"machine": facts["machine"], "has": has, "commands": commands}


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
            else "no picotorch: needs a firmware with it"), fits


def show_text(entry: dict[str, Any]) -> None:
    found = [[one["port"], one["machine"] or one["board"] or "unknown", one["has"] or "",
              one["commands"]] for one in entry["ports"]]
    found += [[one["path"], one["model"] or one["board_id"], "", one["commands"]]
              for one in entry["drives"]]
    if not found:
        show.line("Nothing is attached that is known: plug a board in, with a cable that carries data.")
    else:
        show.table(["where", "what", "has", "command"], [
            [*(one if not i else ["", "", ""]), command]
            for *one, commands in found for i, command in enumerate(commands or [""])])
    show.line("Tools to flash with: " + (", ".join(entry["tools"]) or "none is installed"))
