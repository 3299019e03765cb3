"""Make model.pte and recording.pgm. Needs torch, executorch (pip install 'picotorch[export]') and
scikit-learn:

    python export.py                    # half a minute
    python main.py > expected.txt       # on this computer's twin of the board

The data is real: scikit-learn's 1,797 handwritten digits (UCI, "Optical Recognition of Handwritten
Digits"). They have 8x8 pixels and are enlarged to 28x28 here, so they are smoother than MNIST's.
"""

from pathlib import Path

import numpy as np
import torch
from executorch.exir import to_edge
from picotorch.runtime import Runtime
from sklearn.datasets import load_digits
from torch import nn

FOLDER = Path(__file__).parent
SIZE = 28
TRAINED = 1500  # the other 297 images are for the test


class Digits(nn.Module):
    """Map 1x1x28x28 uint8, white on black, to probabilities of 0 to 9."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 6, 5, stride=2), nn.ReLU(),
            nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2),
            nn.Flatten(), nn.Linear(16 * 4 * 4, 10))  # fmt: skip

    def scores(self, x):
        return self.layers(x.to(torch.float32) / 255)

    def forward(self, x):
        return torch.softmax(self.scores(x), 1)


def digits():
    """Return images, 1,797x1x28x28 of uint8, and their digits."""
    images, labels = load_digits(return_X_y=True)
    small = torch.from_numpy(images.reshape(-1, 1, 8, 8).astype(np.float32)) / 16
    large = nn.functional.interpolate(small, (SIZE, SIZE), mode="bicubic").clamp(0, 1)
    return (large * 255).round().to(torch.uint8), torch.from_numpy(labels)


def train(model, images, labels):
    optimizer = torch.optim.Adam(model.parameters(), 0.003)
    for _ in range(800):
        chosen = torch.randint(len(images), (64,))
        loss = nn.functional.cross_entropy(model.scores(images[chosen]), labels[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    images, labels = digits()
    model = Digits()
    train(model, images[:TRAINED], labels[:TRAINED])
    new = images[TRAINED:]
    right = (model.eval()(new).argmax(1) == labels[TRAINED:]).float().mean()
    print(f"right: {right:.1%} of {len(new)} new images")

    program = to_edge(torch.export.export(model, (new[:1],))).to_executorch()
    (FOLDER / "model.pte").write_bytes(program.buffer)
    shown = [int((labels[TRAINED:] == digit).nonzero()[0]) for digit in range(10)]
    header = f"P5\n{SIZE} {SIZE * len(shown)}\n255\n".encode()
    (FOLDER / "recording.pgm").write_bytes(header + new[shown].numpy().tobytes())
    method = Runtime.get().load_program(FOLDER / "model.pte").load_method("forward")
    outputs = np.concatenate([method.execute([image[None].numpy()])[0] for image in new[:50]])
    difference = np.abs(outputs - model(new[:50]).detach().numpy()).max()
    print(f"largest difference from PyTorch: {difference:.1e}")


if __name__ == "__main__":
    main()
