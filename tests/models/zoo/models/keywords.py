"""Define a keyword-spotting model from audio to class: log-mel of a short-time Fourier transform,
then a small depthwise separable network. Its weights are trained on synthetic words, see
train_keywords.py."""

import math
from pathlib import Path

import numpy as np
import torch
from models.zoo.registry import NOT_CORE, Data, Model, fixture
from support.words import RATE, WORDS, spoken
from torch import nn

WEIGHTS = Path(__file__).resolve().parents[2] / "keywords.npz"
POINTS, HOP, BANDS = 256, 160, 32


def mel_matrix() -> torch.Tensor:
    """Return triangles of equal width in mel (HTK's), from 60 Hz to half the rate: (BANDS, POINTS / 2 +
    1)."""
    mel = np.linspace(*(2595 * math.log10(1 + hz / 700) for hz in (60, RATE / 2)), BANDS + 2)
    hz = 700 * (10 ** (mel / 2595) - 1)
    at = np.arange(POINTS // 2 + 1) * RATE / POINTS
    rising = (at - hz[:-2, None]) / (hz[1:-1] - hz[:-2])[:, None]
    falling = (hz[2:, None] - at) / (hz[2:] - hz[1:-1])[:, None]
    return torch.from_numpy(np.clip(np.minimum(rising, falling), 0, None).astype("float32"))


class FrontEnd(nn.Module):
    """Map a second of audio, (1, 8000), to log-mel, (1, 1, 32, 49)."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("window", torch.hann_window(POINTS))
        self.register_buffer("mel", mel_matrix())

    def forward(self, audio):
        spectrum = torch.stft(audio, POINTS, HOP, window=self.window, center=False,
                              return_complex=True)
        parts = torch.view_as_real(spectrum)
        power = (parts * parts).sum(-1)
        return (torch.log(self.mel @ power + 1e-4) / 4).unsqueeze(1)


def separable(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(inputs, inputs, 3, padding=1, groups=inputs), nn.ReLU(),
                         nn.Conv2d(inputs, outputs, 1), nn.ReLU())


class KeywordSpotting(nn.Module):
    """Map audio, (1, 8000), to a number for each class, by default of WORDS."""

    def __init__(self, classes: int = len(WORDS)) -> None:
        super().__init__()
        self.front_end = FrontEnd()
        self.network = nn.Sequential(nn.Conv2d(1, 16, 3, stride=2, padding=1), nn.ReLU(),
                                     separable(16, 24), separable(24, 32), nn.AvgPool2d((16, 5)),
                                     nn.Flatten(), nn.Linear(160, classes))

    def forward(self, audio):
        return self.network(self.front_end(audio))


def trained_model() -> KeywordSpotting:
    model = KeywordSpotting()
    with np.load(WEIGHTS) as weights:
        model.network.load_state_dict({name: torch.from_numpy(weights[name]) for name in weights.files})
    return model


def _audio(word: str, seed: int) -> torch.Tensor:
    return torch.from_numpy(spoken(word, np.random.default_rng(seed)))[None]


@fixture
def keyword_spotting(data: Data) -> Model:
    """Keyword spotting on a second of audio, with its log-mel front end, in float32."""
    first, *others = ((_audio(word, seed),) for seed, word in enumerate(WORDS))
    return Model(trained_model(), first, further=tuple(others), edge=NOT_CORE, trained=True)
