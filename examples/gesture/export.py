"""Make model.pte and recording.bin. Needs torch and executorch (pip install 'picotorch[export]'):

    python export.py                    # half a minute
    python main.py > expected.txt       # on this computer's twin of the board

The data is synthetic: sums of sines, pulses, noise and gravity in place of a hand. For gestures of your
own, record them with the sensor and pass your windows to `train`.
"""

from pathlib import Path

import numpy as np
import torch
from executorch.exir import to_edge
from picotorch.runtime import Runtime
from torch import nn

FOLDER = Path(__file__).parent
LABELS = "rest", "shake", "circle", "flick"
SAMPLES, RATE = 100, 50  # two seconds
LSB_PER_G = 16384  # the unit of the recording, as of an MPU-6050


class Gestures(nn.Module):
    """Map 1x100x3, samples of x, y and z in g, to probabilities of the labels."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv1d(3, 12, 5, stride=2), nn.ReLU(),
            nn.Conv1d(12, 16, 5, stride=2), nn.ReLU(),
            nn.Conv1d(16, 16, 5, stride=2), nn.ReLU(),
            nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(16, len(LABELS)))  # fmt: skip

    def scores(self, x):
        return self.layers(x.transpose(1, 2))

    def forward(self, x):
        return torch.softmax(self.scores(x), 1)


def gesture(label, random):
    """Return two seconds of a gesture: 100x3, in g."""
    t = np.arange(SAMPLES) / RATE
    phase, size = random.uniform(0, 2 * np.pi), random.uniform(0.7, 1.3)
    moves = np.zeros((SAMPLES, 3))
    if label == "shake":
        moves[:, 0] = 1.2 * size * np.sin(2 * np.pi * random.uniform(3, 6) * t + phase)
    elif label == "circle":
        turn = 2 * np.pi * random.uniform(0.8, 1.6) * t + phase
        moves[:, 0], moves[:, 2] = 0.6 * size * np.cos(turn), 0.6 * size * np.sin(turn)
    elif label == "flick":
        up = random.uniform(0.3, 1.6)
        for at, sign in ((up, 1), (up + random.uniform(0.08, 0.15), -1)):
            moves[:, 2] += sign * 1.8 * size * np.exp(-(((t - at) / 0.05) ** 2))
    first = random.integers(-SAMPLES // 2, SAMPLES // 2)  # a window may begin too early or too late
    moves[: max(first, 0)] = moves[SAMPLES + min(first, 0) :] = 0
    tilt = random.normal(0, 0.15, 3) + [0, 0, 1]
    return moves + tilt / np.linalg.norm(tilt) + random.normal(0, 0.03, moves.shape)


def examples(count, random):
    """Return windows, and the numbers of their labels."""
    classes = random.integers(len(LABELS), size=count)
    windows = np.stack([gesture(LABELS[number], random) for number in classes])
    return torch.from_numpy(windows.astype(np.float32)), torch.from_numpy(classes)


def train(model, windows, classes):
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    for _ in range(200):
        chosen = torch.randint(len(windows), (64,))
        loss = nn.functional.cross_entropy(model.scores(windows[chosen]), classes[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def recording(random):
    """Return each gesture once, between rests: int16 of x, y and z, sample by sample."""
    order = ("rest", "shake", "rest", "circle", "rest", "flick")
    samples = np.concatenate([gesture(label, random) for label in order])
    return (samples * LSB_PER_G).round().clip(-32768, 32767).astype("<i2").tobytes()


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    random = np.random.default_rng(0)
    model = Gestures()
    train(model, *examples(2000, random))
    windows, classes = examples(500, random)
    model.eval()
    print(f"right: {(model(windows).argmax(1) == classes).float().mean():.1%} of 500 new windows")

    program = to_edge(torch.export.export(model, (windows[:1],))).to_executorch()
    (FOLDER / "model.pte").write_bytes(program.buffer)
    (FOLDER / "recording.bin").write_bytes(recording(random))
    method = Runtime.get().load_program(FOLDER / "model.pte").load_method("forward")
    outputs = np.concatenate([method.execute([window[None].numpy()])[0] for window in windows[:50]])
    difference = np.abs(outputs - model(windows[:50]).detach().numpy()).max()
    print(f"largest difference from PyTorch: {difference:.1e}")


if __name__ == "__main__":
    main()
