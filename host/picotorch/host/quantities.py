"""Parse bytes, clocks and times as people write them: 64K, 1M, 168MHz, 500ms.

An unrealistic number most likely lacks its unit, and is rejected with the correct spelling.
"""

import re

_BYTES = {"": 1, "k": 1 << 10, "m": 1 << 20}
_HERTZ = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}
_SECONDS = {"": 1.0, "s": 1.0, "ms": 1e-3, "min": 60.0, "h": 3600.0}
_MIN_MEMORY = 1 << 10  # bytes of RAM or flash of any core
_CLOCKS = 10**3, 10**10  # hertz of any core, at least and at most
_LONGEST = 86_400  # seconds
_NUMBER = r"[0-9]{1,12}(?:\.[0-9]{1,9})?"


def parse_bytes(text: str) -> int:
    """Parse bytes: 65536, 0x10000, 64K, 64KB, 64 KiB, 0.5M. K is 1024. Raises ValueError."""
    if re.fullmatch(r"0x[0-9a-f]{1,8}", text, re.IGNORECASE):
        return int(text, 16)
    return _parsed(text, _NUMBER, r"(?:i?b)?", _BYTES,
                   "is not a number of bytes, such as 65536, 64K or 1M")


def parse_memory(text: str) -> int:
    """Return the bytes of a chip's RAM or flash.

    Raises ValueError, also for fewer than any chip has.
    """
    count = parse_bytes(text)
    if 0 < count < _MIN_MEMORY:
        raise ValueError(f"{text!r} is {count} bytes, which no chip has: write {count}K or {count}M")
    return count


def parse_clock(text: str) -> int:
    """Parse 168MHz, 168M, 168e6 or 32.768kHz to Hertz. Raises ValueError if unrealistic."""
    hertz = _parsed(text, rf"{_NUMBER}(?:e[0-9]{{1,2}})?", r"(?:hz)?", _HERTZ,
                    "is not a clock, such as 168MHz")
    minimum, maximum = _CLOCKS
    if hertz < minimum:
        raise ValueError(f"{text!r} is {hertz} Hz, and no core is that slow: write {hertz or 168}MHz")
    if hertz > maximum:
        raise ValueError(f"{text!r} is {hertz // 10**9} GHz, and no core is that fast: write it in "
                         "MHz, such as 168MHz")
    return hertz


def parse_seconds(text: str) -> float:
    """Parse 5, 5s, 500ms or 2min to seconds. Raises ValueError, also for 0 and more than a day."""
    found = re.fullmatch(rf"({_NUMBER}|\.[0-9]{{1,9}}) ?(|s|ms|min|h)", text.lower())
    if not found:
        raise ValueError(f"{text!r} is not a time, such as 5, 500ms or 2min")
    seconds = float(found[1]) * _SECONDS[found[2]]
    if not 0 < seconds <= _LONGEST:
        raise ValueError(f"{text!r} is {seconds:g} seconds: write more than 0, and at most 24h")
    return seconds


def _parsed(text: str, number: str, ending: str, units: dict[str, int], complaint: str) -> int:
    letters = "".join(units)
    found = re.fullmatch(rf"({number}) ?([{letters}]?){ending}", text.lower())
    amount = float(found[1]) * units[found[2]] if found else 0.5
    if not amount.is_integer():
        raise ValueError(f"{text!r} {complaint}")
    return int(amount)
