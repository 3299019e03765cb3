"""Define fixtures of models with a state: recurrent ones, and caches that grow from call to call."""

import torch
from executorch.exir.passes import MemoryPlanningPass
from executorch.exir.passes.init_mutable_pass import InitializedMutableBufferPass
from models.zoo.registry import Data, Model, fixture
from torch import nn


@fixture
def gru(data: Data) -> Model:
    """A GRU of two layers over a sequence; its state is an input and an output."""
    return Model(nn.GRU(3, 4, num_layers=2), (data.floats(3, 1, 3), data.floats(2, 1, 4)))


@fixture
def lstm(data: Data) -> Model:
    """An LSTM in both directions over a sequence, from a state of zeros."""
    return Model(nn.LSTM(3, 4, bidirectional=True), (data.floats(3, 1, 3),))


class StatefulGru(nn.Module):
    """Compute one step of a GRU in each call, and store the state."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(3, 4).requires_grad_(False)
        self.register_buffer("hidden", torch.zeros(1, 4))

    def forward(self, x):
        self.hidden.copy_(self.cell(x, self.hidden))
        return self.hidden + 0.0


@fixture
def gru_stateful(data: Data) -> Model:
    """A step of a GRU a call, whose state is a mutable buffer, over ten calls."""
    steps = tuple((data.floats(1, 3),) for _ in range(10))
    return Model(StatefulGru(), steps[0], further=steps[1:])


class StatefulLstm(nn.Module):
    """Compute one step of an LSTM in each call, and store both states, which start from ones."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(3, 4).requires_grad_(False)
        self.register_buffer("hidden", torch.ones(1, 4))
        self.register_buffer("memory", torch.ones(1, 4))

    def forward(self, x):
        hidden, memory = self.cell(x, (self.hidden, self.memory))
        self.hidden.copy_(hidden)
        self.memory.copy_(memory)
        return hidden


@fixture
def lstm_stateful(data: Data) -> Model:
    """A step of an LSTM a call, whose states are mutable buffers with initial values and names."""
    steps = tuple((data.floats(1, 3),) for _ in range(6))
    return Model(
        StatefulLstm(),
        steps[0],
        further=steps[1:],
        backend=lambda: {
            "passes": [InitializedMutableBufferPass(["hidden", "memory"])],
            "emit_mutable_buffer_names": True,
        },
    )


_HEADS, _STEPS, _WIDTH = 2, 8, 4


class CachedAttention(nn.Module):
    """Attend from one token in each call to all tokens before it, whose keys and values are stored."""

    def __init__(self, update) -> None:
        super().__init__()
        size = _HEADS * _WIDTH
        self.project = nn.Linear(size, 3 * size).requires_grad_(False)
        self.output = nn.Linear(size, size).requires_grad_(False)
        self.update = update
        self.register_buffer("keys", torch.zeros(1, _HEADS, _STEPS, _WIDTH))
        self.register_buffer("values", torch.zeros(1, _HEADS, _STEPS, _WIDTH))

    def forward(self, x, position):
        parts = self.project(x).view(3, 1, _HEADS, 1, _WIDTH)
        self.update(self.keys, position, parts[1])
        self.update(self.values, position, parts[2])
        scores = parts[0] @ self.keys.transpose(2, 3) / _WIDTH**0.5
        seen = torch.arange(_STEPS) <= position
        scores = torch.where(seen, scores, torch.full_like(scores, float("-inf")))
        mixed = torch.softmax(scores, -1) @ self.values
        return self.output(mixed.view(1, _HEADS * _WIDTH))


def _cached_attention(data: Data, update) -> Model:
    tokens = tuple(
        (data.floats(1, _HEADS * _WIDTH), torch.tensor([position])) for position in range(_STEPS)
    )
    return Model(CachedAttention(update), tokens[0], further=tokens[1:])


@fixture
def kv_cache(data: Data) -> Model:
    """Attention with a cache that is updated by copy_ at a position, which is an input."""

    def update(cache, position, new):
        at = (torch.arange(_STEPS) == position).view(1, 1, _STEPS, 1)
        cache.copy_(torch.where(at, new, cache))

    return _cached_attention(data, update)


@fixture
def kv_cache_indexed(data: Data) -> Model:
    """The same with a cache that is updated by index_put at the position."""

    def update(cache, position, new):
        cache[:, :, position] = new

    return _cached_attention(data, update)


class ShiftedCache(nn.Module):
    """Return the mean of the last four inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("last", torch.zeros(4, 3))

    def forward(self, x):
        older = torch.slice_scatter(self.last, self.last[1:], 0, 0, 3)
        self.last.copy_(torch.slice_scatter(older, x, 0, 3, 4))
        return self.last.mean(0)


@fixture
def shifted_cache(data: Data) -> Model:
    """A cache that is shifted and updated by slice_scatter."""
    steps = tuple((data.floats(1, 3),) for _ in range(6))
    return Model(ShiftedCache(), steps[0], further=steps[1:])


class Total(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(3))


class Add(nn.Module):
    def __init__(self, state: Total) -> None:
        super().__init__()
        self.state = state

    def forward(self, x):
        self.state.total.add_(x)
        return self.state.total * 1.0


class Double(Add):
    def forward(self, x):
        self.state.total.mul_(x)
        return self.state.total + 1.0


@fixture
def shared_buffer(data: Data) -> Model:
    """Two methods with one mutable buffer, in a planned buffer that they share."""
    state = Total()
    return Model(
        {"add": Add(state), "multiply": Double(state)},
        {"add": (data.floats(3),), "multiply": (data.floats(3),)},
        further=tuple((data.floats(3),) for _ in range(2)),
        backend=lambda: {"memory_planning_pass": MemoryPlanningPass(share_mutable_buffers=True)},
        shares_memory=True,
    )
