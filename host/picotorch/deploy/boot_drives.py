"""Find the drives that boot loaders show."""

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Drive:
    """The drive that a board in its boot loader shows. info: the text of its INFO_UF2.TXT."""

    path: Path
    model: str
    board_id: str


def boot_drives() -> list[Drive]:
    """Return the drives that are mounted."""
    return [drive for root in _roots() for folder in _folders(root)
            if (drive := _drive(folder)) is not None]


def _roots() -> list[Path]:
    """Return the folders in which systems mount drives, or those of PICOTORCH_DRIVES."""
    named = os.environ.get("PICOTORCH_DRIVES")
    if named is not None:
        return [Path(one) for one in named.split(os.pathsep) if one]
    user = os.environ.get("USER", "root")
    if os.name == "nt":
        return [Path(f"{letter}:/") for letter in "DEFGHIJKLMNOPQRSTUVWXYZ"]
    return [Path("/media") / user, Path("/run/media") / user, Path("/Volumes"), Path("/mnt")]


def _folders(root: Path) -> list[Path]:
    try:
        return [root, *sorted(path for path in root.iterdir() if path.is_dir())]
    except OSError:
        return []


def _drive(folder: Path) -> Drive | None:
    try:
        text = (folder / "INFO_UF2.TXT").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    entries = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    return Drive(folder, entries.get("Model", "").strip(), entries.get("Board-ID", "").strip())
