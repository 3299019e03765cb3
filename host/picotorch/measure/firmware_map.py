"""Read the flash of a firmware from its linker map."""

import re
from collections.abc import Iterator
from pathlib import Path

_SECTION = re.compile(r"^ (\.(?:text|rodata|isr_vector|vectors)[^\s]*|COMMON|\*fill\*)?\s+"
                      r"0x([0-9a-f]+)\s+0x([0-9a-f]+)(?:\s+(\S+))?$")


def sections(map_file: Path) -> Iterator[tuple[str, int, str]]:
    """Return (section, bytes, object) of each input section of the firmware in flash."""
    text = map_file.read_text().split("Linker script and memory map", 1)[1]
    text = re.sub(r"\n (\.\S+)\n\s+0x", r"\n \1 0x", text)
    for line in text.splitlines():
        match = _SECTION.match(line)
        if match and match[1] and match[1].startswith(".") and match[4] and int(match[2], 16):
            yield match[1], int(match[3], 16), match[4]


def linked_objects(map_file: Path, folder: Path) -> list[str]:
    """Return the linked objects in a folder, by their paths in there.

    The folder may have been moved since; objects that an older build left there are not included.
    """
    start = re.escape(f"/{folder.name}/")
    return re.findall(rf"^LOAD .*{start}(\S+\.o)$", map_file.read_text(), re.MULTILINE)
