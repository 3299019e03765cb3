#!/usr/bin/env python3
"""Train the keyword-spotting model of the zoo on synthetic words, and write tests/models/keywords.npz.

Needs the `export` extra. The weights may differ on another kind of CPU.
"""

import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import torch
from models.zoo.models.keywords import WEIGHTS, KeywordSpotting
from support.words import WORDS, spoken

EACH, EPOCHS = 200, 40  # words of a class, and epochs of the training


def samples(front_end: torch.nn.Module, seed: int, each: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return log-mel and classes of `each` words of each class."""
    random = np.random.default_rng(seed)
    audio = np.stack([spoken(word, random) for word in WORDS for _ in range(each)])
    return front_end(torch.from_numpy(audio)), torch.arange(len(WORDS)).repeat_interleave(each)


def train(model: KeywordSpotting, samples: Callable, each: int, epochs: int) -> None:
    """Train the network on samples(front end, seed, each), and print how many of 40 unseen samples of
    each class it classifies correctly."""
    x, classes = samples(model.front_end, 1000, each)
    unseen, wanted = samples(model.front_end, 2000, 40)
    optimizer = torch.optim.Adam(model.network.parameters(), 3e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 6e-3, epochs * (len(x) // 32))
    for _ in range(epochs):
        for some in torch.randperm(len(x))[: len(x) // 32 * 32].split(32):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model.network(x[some]), classes[some]).backward()
            optimizer.step()
            schedule.step()
    with torch.no_grad():
        right = (model.network(unseen).argmax(1) == wanted).float().mean().item()
    print(f"{right:.1%} of {len(unseen)} samples that it has not seen are right")


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = KeywordSpotting()
    train(model, samples, EACH, EPOCHS)
    np.savez(WEIGHTS, **{name: value.numpy() for name, value in model.network.state_dict().items()})


if __name__ == "__main__":
    main()
