"""Synthesize words for the keyword-spotting model: two vowels, one gliding into the other.

    audio = spoken("ai", np.random.default_rng(7))      # float32, a second at 8 kHz, -1 to 1

They are not recordings: harmonics of a voice of 90 to 250 Hz are weighted by the vowels' first three
formants (Peterson and Barney 1952, a man's), with random pitch, timing, loudness, vocal tract and
noise.
"""

import numpy as np

RATE = 8000
FORMANTS = {"a": (730, 1090, 2440), "e": (530, 1840, 2480), "i": (270, 2290, 3010),
            "o": (570, 840, 2410), "u": (300, 870, 2240)}
WIDTHS, LOUDNESS = (90, 110, 170), (1, 0.6, 0.3)  # Hz and loudness of the formants
WORDS = ("ai", "ia", "au", "ue", "oi", "eo", "")  # the last word is only noise


def spoken(word, random):
    noise = random.normal(size=RATE) * random.uniform(0.002, 0.02)
    if not word:
        return (noise * random.uniform(1, 4)).astype("float32")
    length = int(random.uniform(0.45, 0.75) * RATE)
    start = random.integers(0, RATE - length)
    t = np.arange(length) / length
    pitch = random.uniform(90, 250) * (1 + random.uniform(-0.2, 0.2) * t)
    turn = random.uniform(0.35, 0.65)
    glide = 1 / (1 + np.exp(-(t - turn) / random.uniform(0.03, 0.08)))
    tract = random.uniform(0.92, 1.15)
    voice = np.zeros(length)
    phase = 2 * np.pi * np.cumsum(pitch) / RATE
    for k in range(1, int(RATE / 2 / pitch.max()) + 1):
        weight = sum(loud / (1 + ((k * pitch - tract * (first + (last - first) * glide)) / width) ** 2)
                     for first, last, width, loud in zip(FORMANTS[word[0]], FORMANTS[word[1]], WIDTHS,
                                                         LOUDNESS, strict=True))
        voice += weight * np.sin(k * phase + k)
    voice *= np.minimum(1, np.minimum(t, 1 - t) * 10)
    noise[start : start + length] += voice / np.abs(voice).max() * random.uniform(0.2, 0.9)
    return np.clip(noise, -1, 1).astype("float32")
