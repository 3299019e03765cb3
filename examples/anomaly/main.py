"""Detect unusual vibration of a motor with an accelerometer."""

import struct
from array import array

from picotorch import Module

RECORDING = "recording.bin"  # None reads the sensor
SAMPLES = 128


def recorded(path):
    """Yield the windows of a file of uint16."""
    with open(path, "rb") as file:
        data = file.read(2 * SAMPLES)
        while len(data) == 2 * SAMPLES:
            yield struct.unpack("<128H", data)
            data = file.read(2 * SAMPLES)


def accelerometer(rate=1000):
    """Yield windows of an analog accelerometer (for example an ADXL335) at GP26 of a Pico."""
    import time

    from machine import ADC

    adc = ADC(26)
    samples = [0] * SAMPLES
    while True:
        due = time.ticks_us()
        for i in range(SAMPLES):
            while time.ticks_diff(due, time.ticks_us()) > 0:
                pass
            samples[i] = adc.read_u16()
            due = time.ticks_add(due, 1000000 // rate)
        yield samples


module = Module("model.pte")
(threshold,) = module.execute("threshold", [])  # export.py has stored this threshold in the program
window = array("f", bytes(4 * SAMPLES))
for number, samples in enumerate(recorded(RECORDING) if RECORDING else accelerometer()):
    for i in range(SAMPLES):
        window[i] = samples[i]
    score = module.forward(window)[0]
    print("%3d  score %6.2f  %s" % (number, score, "FAULT" if score > threshold else "well"))
