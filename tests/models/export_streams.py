"""Export int8 models with state to tests/models/streams, each with its state and without.

    build/conformance/bin/python tests/models/export_streams.py

Inputs and outputs are integers. NAME_stateless.pte is the same quantized program with the states as
further inputs and outputs; NAME.npz has their initial values. The weights are PyTorch's initial ones,
from a fixed seed.
"""

from pathlib import Path
from unittest import mock

import numpy as np
import torch
from picotorch.export import export, pipeline
from picotorch.export.result import Comparison
from torch import nn
from torch.nn import functional

FOLDER = Path(__file__).parent / "streams"
SAMPLES = 64


class CausalConvolutions(nn.Module):
    """Two dilated causal convolutions: a frame of 4 features -> 3 scores."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv1d(4, 8, 3, dilation=2), nn.Conv1d(8, 3, 3, dilation=4)
        self.register_buffer("past", torch.zeros(1, 4, 4))
        self.register_buffer("past_of_second", torch.zeros(1, 8, 8))

    def forward(self, x):
        y = torch.cat([self.past, x], 2)
        self.past.copy_(y[:, :, 1:])
        y = torch.cat([self.past_of_second, torch.relu(self.first(y))], 2)
        self.past_of_second.copy_(y[:, :, 1:])
        return self.second(y)


class Recurrent(nn.Module):
    """A GRU cell and a classifier: 8 features -> 4 scores."""

    def __init__(self):
        super().__init__()
        self.cell, self.scores = nn.GRUCell(8, 16), nn.Linear(16, 4)
        self.register_buffer("hidden", torch.zeros(1, 16))

    def forward(self, x):
        self.hidden = self.cell(x, self.hidden)
        return self.scores(self.hidden)


class CachedAttention(nn.Module):
    """Attention over the last 6 tokens: a token of 8 features -> 8 features."""

    def __init__(self):
        super().__init__()
        self.projection, self.out = nn.Linear(8, 24), nn.Linear(8, 8)
        self.register_buffer("keys", torch.zeros(1, 6, 8))
        self.register_buffer("values", torch.zeros(1, 6, 8))

    def forward(self, x):
        query, key, value = self.projection(x).chunk(3, -1)
        self.keys = torch.cat([self.keys[:, 1:], key[:, None]], 1)
        self.values = torch.cat([self.values[:, 1:], value[:, None]], 1)
        weights = functional.softmax(query[:, None] @ self.keys.transpose(1, 2) * 8**-0.5, -1)
        return self.out((weights @ self.values)[:, 0])


MODELS = {"causal_convolutions": (CausalConvolutions, (1, 4, 1)), "recurrent": (Recurrent, (1, 8)),
          "cached_attention": (CachedAttention, (1, 8))}


def export_stateless(*arguments, **options):
    """Export as picotorch.export.export does, with states as inputs and outputs: the program, and the
    initial values."""
    from picotorch.export.passes import states  # needs the operators that an export registers

    initial, into_inputs = [], states.into_inputs

    def recorded(graph):
        graph, kept = into_inputs(graph)
        initial[:] = [state.initial.numpy().copy() for state in kept]
        return graph, kept

    with (mock.patch.object(states, "into_inputs", recorded),
          mock.patch.object(states, "into_buffers", lambda program, kept: None),
          mock.patch.object(pipeline, "_compared", lambda *_: Comparison("not run"))):
        return export(*arguments, **options), initial


def main():
    for name, (make, shape) in MODELS.items():
        torch.manual_seed(0)
        module = make().eval()
        samples = np.random.default_rng(1).normal(size=(SAMPLES, *shape)).astype(np.float32)
        options = {"quantize": {"in0": samples}, "int8_io": True}
        export(module, torch.zeros(shape), **options).save(FOLDER / f"{name}.pte")
        stateless, initial = export_stateless(module, torch.zeros(shape), **options)
        stateless.save(FOLDER / f"{name}_stateless.pte")
        np.savez(FOLDER / f"{name}.npz", *initial)


if __name__ == "__main__":
    main()
