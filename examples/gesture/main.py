"""Distinguish a shake, a circle and a flick with an accelerometer."""

import struct
from array import array

from picotorch import Module

RECORDING = "recording.bin"  # None reads the sensor
LABELS = "rest", "shake", "circle", "flick"
WINDOW = 3 * 100  # numbers: x, y, z of 100 samples
HOP = 3 * 25  # new numbers in each window
LSB_PER_G = 16384


def recorded(path):
    """Yield the samples of a file, six bytes each."""
    with open(path, "rb") as file:
        data = file.read(6)
        while len(data) == 6:
            yield struct.unpack("<3h", data)
            data = file.read(6)


def mpu6050(rate=50):
    """Yield samples of an MPU-6050 at GP4 (SDA) and GP5 (SCL) of a Pico."""
    import time

    from machine import I2C, Pin

    i2c = I2C(0, sda=Pin(4), scl=Pin(5))
    i2c.writeto_mem(0x68, 0x6B, b"\0")  # wakes the sensor, whose range is then 2 g
    due = time.ticks_ms()
    while True:
        yield struct.unpack(">3h", i2c.readfrom_mem(0x68, 0x3B, 6))
        due = time.ticks_add(due, 1000 // rate)
        time.sleep_ms(max(0, time.ticks_diff(due, time.ticks_ms())))


module = Module("model.pte")
window = array("f", bytes(4 * WINDOW))
seen = 0
for sample in recorded(RECORDING) if RECORDING else mpu6050():
    at = WINDOW - HOP + seen % HOP
    for axis in range(3):
        window[at + axis] = sample[axis] / LSB_PER_G
    seen += 3
    if seen % HOP:
        continue
    if seen >= WINDOW:
        chances = module.forward(window)
        best = max(range(len(LABELS)), key=lambda i: chances[i])
        print("%4.1f s  %-6s %3d %%" % (seen / 150, LABELS[best], 100 * chances[best]))
    window[: WINDOW - HOP] = window[HOP:]
