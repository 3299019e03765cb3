"""Read recordings of a human voice: the names of loudspeakers in Debian's package alsa-utils.

    audio = spoken("Front_Left")      # float32, (8000,), a second at 8 kHz, -1 to 1

They are not part of this repository: `make recordings` installs the package.
"""

import wave
from pathlib import Path

import numpy as np

FOLDER = Path("/usr/share/sounds/alsa")
NAMES = ("Front_Center", "Front_Left", "Front_Right", "Rear_Center", "Rear_Left", "Rear_Right",
         "Side_Left", "Side_Right", "Noise")  # the last one has no voice
RATE, TAPS = 8000, 193  # Hz, and of the filter from 48 kHz


def are_installed():
    return all((FOLDER / f"{name}.wav").is_file() for name in NAMES)


def recorded(name):
    """Return the whole recording at 8 kHz, float32."""
    with wave.open(str(FOLDER / f"{name}.wav")) as file:
        step, rest = divmod(file.getframerate(), RATE)
        assert (rest, file.getnchannels(), file.getsampwidth()) == (0, 1, 2)
        samples = np.frombuffer(file.readframes(file.getnframes()), "<i2") / 32768
    t = np.arange(TAPS) - TAPS // 2
    low_pass = np.sinc(0.9 * t / step) * np.hamming(TAPS)
    return np.convolve(samples, low_pass / low_pass.sum(), "same")[::step].astype("float32")


def loudest_second(audio):
    """Return the index of the first sample of the second with the most energy; 0 for less than a
    second."""
    energy = np.concatenate([[0], np.cumsum(audio.astype("float64") ** 2)])
    return int(np.argmax(energy[RATE:] - energy[:-RATE])) if len(audio) > RATE else 0


def second(audio, start):
    """Return a second from sample `start`, with zeros before and after the recording."""
    start = int(start)
    padded = np.pad(audio, (max(0, -start), max(0, start + RATE - len(audio))))
    return padded[max(0, start) :][:RATE]


def spoken(name):
    audio = recorded(name)
    return second(audio, loudest_second(audio))
