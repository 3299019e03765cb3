"""Where log lines go and what a clock says: to be replaced for a platform of one's own.

    from picotorch import platform
    platform.set_log(uart.write_line)
"""

try:
    import time
except ImportError:  # a firmware without a clock
    time = None

_sink = print
_clock = getattr(time, "ticks_us", None) or getattr(time, "monotonic_ns", None)


def set_log(sink):
    """sink(text) gets each log line; None for silence."""
    global _sink
    _sink = sink


def log(text):
    if _sink is not None:
        _sink(text)


def set_clock(clock):
    """clock() gives a count that grows, or 0 where there is none; its unit is the platform's."""
    global _clock
    _clock = clock


def clock():
    return _clock() if _clock is not None else 0
