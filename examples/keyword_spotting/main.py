"""Recognize "yes" and "no" from a microphone, in int8."""

from array import array

from picotorch import Module

RECORDING = "recording.wav"  # None reads the microphone
LABELS = "silence", "yes", "no", "other"
RATE = 8000
HOP = RATE // 2  # classify the last second every half second


def recorded(path):
    """Yield half seconds of a WAV file of 8 bits, in one array."""
    half = array("b", bytes(HOP))
    data = bytearray(HOP)
    with open(path, "rb") as file:
        file.read(44)
        while file.readinto(data) == HOP:
            for i in range(HOP):
                half[i] = data[i] - 128
            yield half


def microphone(gain=16):
    """Yield half seconds of an I2S microphone (INMP441) at GP16 (SCK), GP17 (WS) and GP18 (SD) of a
    Pico."""
    from machine import I2S, Pin

    i2s = I2S(0, sck=Pin(16), ws=Pin(17), sd=Pin(18), mode=I2S.RX, bits=16, format=I2S.MONO,
              rate=RATE, ibuf=2 * RATE)
    half = array("b", bytes(HOP))
    samples = array("h", bytes(2 * HOP))
    while True:
        i2s.readinto(samples)
        for i in range(HOP):
            half[i] = max(-128, min(127, samples[i] * gain >> 8))
        yield half


module = Module("model.pte")
window = array("b", bytes(RATE))
halves = 0
for half in recorded(RECORDING) if RECORDING else microphone():
    for i in range(HOP):
        window[i] = window[HOP + i]
        window[HOP + i] = half[i]
    halves += 1
    scores = module.forward(window)
    print("%4.1f s  %s" % (halves / 2, LABELS[max(range(len(LABELS)), key=lambda i: scores[i])]))
