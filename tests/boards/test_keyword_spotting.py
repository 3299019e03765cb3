"""Test a model with its log-mel front end in the program, on a Cortex-M4F: the class of each word,
PyTorch's outputs, the twin's bytes, and the instructions of the front end."""

import numpy as np
import pytest
from picotorch.boards.boards import load_board
from picotorch.host import twin
from picotorch.host.request import Request
from picotorch.measure.profiling import profile
from picotorch.run import emulated
from support.fixture_store import load
from support.words import WORDS, spoken

BOARD = "mps2-an386"
FIXTURE = load("keyword_spotting")
FRONT_END = 2_700_000  # instructions, for a second of audio
FIRST_OF_NETWORK = "aten::convolution.out"


def request(inputs, **options):
    return Request(FIXTURE.pte, "keyword_spotting", inputs[0], pool_size=1 << 16, temp_size=1 << 16,
                   further=inputs[1:], **options)


@pytest.fixture(scope="module")
def results():
    inputs = [run.inputs for run in FIXTURE.runs]
    return emulated.run(request(inputs), load_board(BOARD)), twin.run(request(inputs))


def test_the_audio_of_the_fixture_is_of_these_words():
    assert len(FIXTURE.runs) == len(WORDS)
    for seed, (word, run) in enumerate(zip(WORDS, FIXTURE.runs, strict=True)):
        audio = spoken(word, np.random.default_rng(seed))
        np.testing.assert_allclose(run.inputs[0][0], audio, atol=1e-6)


def test_class_and_outputs_are_pytorchs_and_the_twins(results):
    board, host = ([result.outputs, *result.further] for result in results)
    assert len(board) == len(WORDS)
    for i, run in enumerate(FIXTURE.runs):
        ((given,), (same,), (expected,)) = board[i], host[i], run.expected
        assert given.tobytes() == same.tobytes()
        assert given.argmax() == expected.argmax() == i
        np.testing.assert_allclose(given, expected, atol=1e-4)


def test_unseen_words(results):
    """The rate of right answers is that of the training, with 40 examples of each class."""
    random = np.random.default_rng(3000)
    words = [i for i in range(len(WORDS)) for _ in range(20)]
    audio = [[spoken(WORDS[i], random)[None]] for i in words]
    result = twin.run(request(audio))
    given = [int(out.argmax()) for (out,) in [result.outputs, *result.further]]
    right = sum(a == b for a, b in zip(given, words, strict=True))
    assert right >= 0.9 * len(words)


def test_instructions_of_the_front_end():
    entry, _ = profile(request([FIXTURE.runs[0].inputs]), BOARD)
    taken = [row.ticks for row in entry.instructions]
    first = [row.call for row in entry.instructions].index(FIRST_OF_NETWORK)
    assert sum(taken[:first]) < FRONT_END
