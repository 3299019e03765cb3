"""Test a human voice on a Cortex-M4F: the inputs are recordings, and the class of each word is
PyTorch's.

The program of the model includes its log-mel front end; tests/models/train_recordings.py made it. The
recordings come from Debian's package alsa-utils (make recordings).
"""

from pathlib import Path

import numpy as np
import pytest
from picotorch.boards.boards import load_board
from picotorch.host import twin
from picotorch.host.request import Request
from picotorch.run import emulated
from support import recordings

FOLDER = Path(__file__).with_name("recorded_words")
pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(not recordings.are_installed(),
                       reason="no recordings: make recordings installs them"),
]


def results(runs, audio):
    """Return the outputs for each second of audio."""
    first, *further = [[one[None].astype("float32")] for one in audio]
    request = Request((FOLDER / "model.pte").read_bytes(), "recorded_words", first, further=further,
                      pool_size=1 << 16, temp_size=1 << 16)
    result = runs(request)
    assert result.code == 0, result.message
    return np.concatenate([output for (output,) in [result.outputs, *result.further]])


def test_each_recording_has_its_class_and_pytorchs_outputs():
    audio = [recordings.spoken(name) for name in recordings.NAMES]
    board = results(lambda request: emulated.run(request, load_board("mps2-an386")), audio)
    assert board.tobytes() == results(twin.run, audio).tobytes()
    assert list(board.argmax(1)) == list(range(len(recordings.NAMES)))
    with np.load(FOLDER / "expected.npz") as expected:
        np.testing.assert_allclose(board, expected["outputs"], atol=1e-3, rtol=1e-4)


def test_softer_earlier_and_noisy_recordings_have_the_same_class():
    random = np.random.default_rng(0)
    audio = []
    for name in recordings.NAMES:
        whole = recordings.recorded(name)
        start = recordings.loudest_second(whole)
        audio += [0.5 * recordings.second(whole, start), recordings.second(whole, start - 400),
                  recordings.second(whole, start) + random.normal(size=recordings.RATE) * 0.003]
    classes = results(twin.run, audio).argmax(1)
    assert (classes == np.repeat(np.arange(len(recordings.NAMES)), 3)).mean() > 0.9
