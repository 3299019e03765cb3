#!/usr/bin/env python3
"""Train the keyword-spotting model of the zoo on a human voice, and write tests/boards/recorded_words.

The classes are the recordings of support/recordings.py. The training data are the recordings faster and
slower, earlier and later, louder and softer, with noise. Writes model.pte, and expected.npz: PyTorch's
outputs for each unchanged recording. Needs the `export` extra, and `make recordings`. The weights may
differ on another kind of CPU.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import torch
from executorch.exir import EdgeCompileConfig, to_edge
from models.train_keywords import train
from models.zoo.models.keywords import KeywordSpotting
from models.zoo.registry import NOT_CORE
from support.recordings import NAMES, RATE, loudest_second, recorded, second, spoken

FOLDER = Path(__file__).resolve().parents[1] / "boards/recorded_words"
EACH, EPOCHS = 150, 30  # samples of a recording, and epochs of the training


def changed(audio: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Return a second of the recording, changed as another take of it might be."""
    speed = random.uniform(0.88, 1.13)
    at = np.arange(0, len(audio) - 1, speed)
    audio = np.interp(at, np.arange(len(audio)), audio)
    start = loudest_second(audio) + random.integers(-RATE // 10, RATE // 10)
    audio = second(audio, start) * random.uniform(0.3, 1.5)
    return np.clip(audio + random.normal(size=RATE) * random.uniform(0.0005, 0.01), -1, 1)


def samples(front_end: torch.nn.Module, seed: int, each: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return log-mel and classes of `each` changed takes of each recording."""
    random = np.random.default_rng(seed)
    takes = [changed(recorded(name), random) for name in NAMES for _ in range(each)]
    return (front_end(torch.from_numpy(np.stack(takes).astype("float32"))),
            torch.arange(len(NAMES)).repeat_interleave(each))


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = KeywordSpotting(len(NAMES))
    train(model, samples, EACH, EPOCHS)
    model.eval()
    audio = torch.from_numpy(np.stack([spoken(name) for name in NAMES]))
    program = torch.export.export(model, (audio[:1],), strict=True)
    edge = to_edge(program, compile_config=EdgeCompileConfig(**NOT_CORE))
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / "model.pte").write_bytes(edge.to_executorch().buffer)
    with torch.no_grad():
        outputs = np.concatenate([model(one[None]).numpy() for one in audio])
    np.savez(FOLDER / "expected.npz", outputs=outputs)
    print(f"written to {FOLDER}")


if __name__ == "__main__":
    main()
