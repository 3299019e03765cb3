"""Bytes and clocks as people write them: 64K, 1M, 168MHz."""

import re

_BYTES = {"": 1, "k": 1 << 10, "m": 1 << 20}
_HERTZ = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}


def parse_bytes(text: str) -> int:
    """65536, 0x10000, 64K, 64KB, 64 KiB, 0.5M: K is 1024. Raises ValueError."""
    if re.fullmatch(r"0x[0-9a-f]{1,8}", text, re.IGNORECASE):
        return int(text, 16)
    return _parsed(text, r"(?:i?b)?", _BYTES, "is not a number of bytes, such as 65536, 64K or 1M")


def parse_clock(text: str) -> int:
    """Hertz of 168MHz, 168M, 32.768kHz. Raises ValueError."""
    return _parsed(text, r"(?:hz)?", _HERTZ, "is not a clock, such as 168MHz")


def _parsed(text, ending, units, complaint):
    letters = "".join(units)
    found = re.fullmatch(rf"([0-9]{{1,12}}(?:\.[0-9]{{1,9}})?) ?([{letters}]?){ending}", text.lower())
    number = float(found[1]) * units[found[2]] if found else 0.5
    if not number.is_integer():
        raise ValueError(f"{text!r} {complaint}")
    return int(number)
