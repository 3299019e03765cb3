"""Make model.pte and recording.bin. Needs torch and executorch (pip install 'picotorch[export]'):

    python export.py                    # ten seconds
    python main.py > expected.txt       # on this computer's twin of the board

The data is synthetic: a motor's rotation with harmonics and noise, and three faults that are not part
of the training. For a machine of your own, record it in good condition and pass your windows to
`train`.
"""

from pathlib import Path

import numpy as np
import torch
from executorch.exir import to_edge
from picotorch.runtime import Runtime
from torch import nn

FOLDER = Path(__file__).parent
SAMPLES, RATE = 128, 1000
BANDS = 32  # bands of 7.8 Hz each
FAULTS = "bearing", "imbalance", "looseness"
FULL_SCALE = 65536  # the full scale of machine.ADC.read_u16


class Anomaly(nn.Module):
    """Map 1x128 samples of the ADC to 1: the mean square of the error of an autoencoder of the
    spectrum."""

    def __init__(self):
        super().__init__()
        angles = 2 * np.pi * np.outer(np.arange(SAMPLES), np.arange(1, BANDS + 1)) / SAMPLES
        window = np.hanning(SAMPLES)[:, None]
        waves = np.concatenate([window * np.cos(angles), window * np.sin(angles)], 1)
        self.register_buffer("waves", torch.from_numpy(waves.astype(np.float32)))
        self.register_buffer("mean", torch.zeros(BANDS))
        self.register_buffer("deviation", torch.ones(BANDS))
        self.layers = nn.Sequential(nn.Linear(BANDS, 16), nn.ReLU(), nn.Linear(16, 4),
                                    nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, BANDS))  # fmt: skip

    def spectrum(self, x):
        x = x / FULL_SCALE
        parts = (x - x.mean(1, keepdim=True)) @ self.waves
        power = parts[:, :BANDS] ** 2 + parts[:, BANDS:] ** 2
        return torch.log(power + 0.03)  # weaker components are noise

    def forward(self, x):
        bands = (self.spectrum(x) - self.mean) / self.deviation
        return ((self.layers(bands) - bands) ** 2).mean(1)


def vibration(random, count=1, fault=None):
    """Return count x 128 samples of an accelerometer at an ADC."""
    t = np.arange(count * SAMPLES) / RATE
    turn = 2 * np.pi * (random.uniform(24, 27) * t) + random.uniform(0, 6)
    sizes = 4.0 if fault == "imbalance" else 1.0, 0.4, 0.2, 0.15
    signal = sum(size * random.uniform(0.8, 1.2) * np.sin(k * turn + random.uniform(0, 6))
                 for k, size in enumerate(sizes, 1))
    if fault == "bearing":
        signal += 1.5 * np.maximum(np.sin(4.6 * turn), 0) ** 8 * np.sin(2 * np.pi * 210 * t)
    elif fault == "looseness":
        signal += 0.5 * np.sin(turn / 2) + 0.4 * np.sin(1.5 * turn)
    signal += random.normal(0, 0.1, len(t))
    counts = (FULL_SCALE / 2 + 0.1 * FULL_SCALE * signal).round().clip(0, FULL_SCALE - 1)
    return counts.reshape(count, SAMPLES).astype(np.float32)


def windows(random, count, fault=None):
    return torch.from_numpy(np.concatenate([vibration(random, 1, fault) for _ in range(count)]))


def train(model, well):
    spectrum = model.spectrum(well)
    model.mean.copy_(spectrum.mean(0))
    model.deviation.copy_(spectrum.std(0))
    optimizer = torch.optim.Adam(model.parameters(), 0.003)
    for _ in range(1500):
        loss = model(well[torch.randint(len(well), (128,))]).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def recording(random):
    """Return 12 windows of a machine in good condition, then 4 of each fault, as uint16."""
    parts = [vibration(random, 12), *(vibration(random, 4, fault) for fault in FAULTS)]
    return np.concatenate(parts).astype("<u2").tobytes()


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    random = np.random.default_rng(0)
    model = Anomaly()
    train(model, windows(random, 3000))
    well = windows(random, 1000)
    threshold = 1.1 * model(well).max().item()
    print(f"threshold {threshold:.2f}")
    for fault in FAULTS:
        found = (model(windows(random, 300, fault)) > threshold).float().mean()
        print(f"{fault}: found in {found:.0%} of 300 windows")

    program = to_edge(torch.export.export(model.eval(), (well[:1],)),
                      constant_methods={"threshold": threshold}).to_executorch()
    (FOLDER / "model.pte").write_bytes(program.buffer)
    (FOLDER / "recording.bin").write_bytes(recording(random))
    method = Runtime.get().load_program(FOLDER / "model.pte").load_method("forward")
    scores = np.concatenate([method.execute([window[None].numpy()])[0] for window in well[:50]])
    difference = np.abs(scores - model(well[:50]).detach().numpy()).max()
    print(f"largest difference from PyTorch: {difference:.1e}")


if __name__ == "__main__":
    main()
