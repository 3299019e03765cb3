"""The instruction counter from Python.

Bind both functions to local names and enclose the region:

    start, stop = _board.count_start, _board.count_stop
    start()
    ...
    stop(buffer, 0)  # u32, little-endian, at byte 0

After calibrate() an empty region that is written so counts 0.
"""

import struct

import _board


def calibrate():
    """Count an empty region; later results exclude this count."""
    start, stop = _board.count_start, _board.count_stop
    counted = bytearray(4)
    _board.count_overhead(0)
    start()
    stop(counted, 0)
    _board.count_overhead(struct.unpack("<I", counted)[0])
