"""picotorch boards --connected: what is attached, and which way fits."""

import shutil

from .. import show
from . import drives, flash_tools, serial_ports


def attached() -> dict:
    """Serial ports, boot loaders' drives and the tools that are installed, as plain data."""
    return {
        "ports": [{"port": port.device, "board": port.board, "serial_number": port.serial_number,
                   "ways": _ways_by_port(port)} for port in serial_ports.serial_ports()],
        "drives": [{"path": str(drive.path), "model": drive.model, "board_id": drive.board_id,
                    "boards": (names := flash_tools.boards_with_drive(drive)),
                    "ways": [f"picotorch flash FIRMWARE.uf2 --board {name}" for name in names]}
                   for drive in drives.boot_drives()],
        "tools": [name for name in flash_tools.TOOLS if shutil.which(name)],
    }


def _ways_by_port(port):
    if serial_ports.is_probe(port):
        return ["picotorch flash FIRMWARE --board NAME --with openocd"]
    return [f"picotorch {command} MODEL --port {port.device}" for command in ("deploy", "run")]


def show_text(entry: dict) -> None:
    found = [[one["port"], one["board"] or "unknown", one["ways"]] for one in entry["ports"]]
    found += [[one["path"], one["model"] or one["board_id"], one["ways"]] for one in entry["drives"]]
    if not found:
        show.line("Nothing is attached that is known: plug a board in, with a cable that carries data.")
    else:
        show.table(["where", "what", "way"], [
            [where if not i else "", what if not i else "", way]
            for where, what, ways in found for i, way in enumerate(ways or [""])])
    show.line("Tools to flash with: " + (", ".join(entry["tools"]) or "none is installed"))
