"""Test int8 programs of modules with state: buffers that forward updates."""

import copy
import functools

import numpy as np
import picotorch.export
import pytest
from picotorch.export import differences
from picotorch.host.instructions import read_instructions
from picotorch.host.twin import open_program
from picotorch.host.values import Values

STEPS = 40


def _module(torch, layers, buffers, forward, **plain):
    """Return a module with these layers and buffers. forward(self, x) is a function."""
    class Stateful(torch.nn.Module):
        def __init__(self):
            super().__init__()
            for name, layer in layers.items():
                self.add_module(name, layer)
            for name, value in buffers.items():
                self.register_buffer(name, value)
            for name, value in plain.items():
                setattr(self, name, value)

    Stateful.forward = forward
    return Stateful().eval()


def _sequence(torch):
    def forward(self, x):
        y = torch.cat([self.h, x], 2)
        self.h = y[:, :, -2:]
        return torch.relu(self.c(y))

    return _module(torch, {"c": torch.nn.Conv1d(4, 6, 3)}, {"h": torch.zeros(1, 4, 2)}, forward), (4, 1)


def _image(torch):
    def forward(self, x):
        y = torch.cat([self.h, x], 2)
        self.h = y[:, :, -2:]
        return torch.relu(self.c(y))

    layer = torch.nn.Conv2d(4, 4, 3, padding=(0, 1))
    return _module(torch, {"c": layer}, {"h": torch.zeros(1, 4, 2, 8)}, forward), (4, 1, 8)


def _dilated(torch):
    def forward(self, x):
        y = torch.cat([self.h, x], 2)
        self.h.copy_(y[:, :, 1:])
        y = torch.relu(self.c(y))
        y = torch.cat([self.g, y], 2)
        self.g.copy_(y[:, :, 1:])
        return self.d(y)

    layers = {"c": torch.nn.Conv1d(3, 4, 3, dilation=2), "d": torch.nn.Conv1d(4, 2, 3, dilation=4)}
    return _module(torch, layers, {"h": torch.zeros(1, 3, 4), "g": torch.zeros(1, 4, 8)},
                   forward), (3, 1)


def _gru(torch):
    def forward(self, x):
        self.h = self.g(x, self.h)
        return self.o(self.h)

    layers = {"g": torch.nn.GRUCell(8, 16), "o": torch.nn.Linear(16, 4)}
    return _module(torch, layers, {"h": torch.zeros(1, 16)}, forward), (8,)


def _lstm(torch):
    def forward(self, x):
        self.h, self.k = self.g(x, (self.h, self.k))
        return self.h

    layers = {"g": torch.nn.LSTMCell(8, 12)}
    return _module(torch, layers, {"h": torch.zeros(1, 12), "k": torch.zeros(1, 12)}, forward), (8,)


def _leaky(torch):
    def forward(self, x):
        self.h.mul_(0.75).add_(self.o(x))
        return torch.tanh(self.h)

    return _module(torch, {"o": torch.nn.Linear(8, 4)}, {"h": torch.full((1, 4), 0.5)}, forward), (8,)


def _delay_line(torch):
    def forward(self, x):
        self.h[:, :-1] = self.h[:, 1:].clone()
        self.h[:, -1:] = x
        return self.o(self.h)

    return _module(torch, {"o": torch.nn.Linear(6, 3)}, {"h": torch.zeros(1, 6)}, forward), (1,)


def _counter(torch):
    def forward(self, x):
        self.n += 1
        self.h = self.h + 0.1
        return self.o(x) + self.h, self.n % 3

    buffers = {"n": torch.zeros(1, dtype=torch.int64), "h": torch.zeros(1, 4)}
    return _module(torch, {"o": torch.nn.Linear(8, 4)}, buffers, forward), (8,)


def _cache(torch):
    def forward(self, x):
        key, value, query = self.p(x).chunk(3, -1)
        self.k = torch.cat([self.k[:, 1:], key[:, None]], 1)
        self.v = torch.cat([self.v[:, 1:], value[:, None]], 1)
        weights = torch.softmax(query[:, None] @ self.k.transpose(1, 2) * 0.35, -1)
        return (weights @ self.v)[:, 0]

    return _module(torch, {"p": torch.nn.Linear(8, 24)},
                   {"k": torch.zeros(1, 5, 8), "v": torch.zeros(1, 5, 8)}, forward), (8,)


def _probabilities(torch):
    """Return a model whose state has the fixed scale of softmax."""
    def forward(self, x):
        self.h = torch.softmax(self.o(x) + self.h, -1)
        return self.h * 2

    return _module(torch, {"o": torch.nn.Linear(8, 4)}, {"h": torch.zeros(1, 4)}, forward), (8,)


def _inner(torch):
    inner, shape = _gru(torch)
    return torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), inner).eval(), shape


def _updated_by(update):
    """Return a model that updates a part, a view or all of its state in place, and has another
    buffer."""
    def make(torch):
        def forward(self, x):
            exec(update, {"h": self.h, "x": x})
            return self.o(torch.tanh(self.h) + (x + self.constant).relu_())

        return _module(torch, {"o": torch.nn.Linear(4, 4)},
                       {"h": torch.zeros(1, 4), "constant": torch.ones(1, 4)}, forward), (4,)

    return make


_all, _part, _view = map(_updated_by, ["h.mul_(0.5).add_(x)", "h[:, 1:].copy_(x[:, 1:])",
                                       "h.view(-1).mul_(0.5).add_(x[0])"])


def _unused_before(torch):
    """Return a model whose state is written before it is read."""
    def forward(self, x):
        self.h = torch.relu(self.o(x))
        return self.o(self.h.repeat(1, 2))

    return _module(torch, {"o": torch.nn.Linear(8, 4)}, {"h": torch.zeros(1, 4)}, forward), (8,)


IN_INT8 = [_sequence, _image, _dilated, _gru, _lstm, _leaky, _delay_line, _cache, _inner]
MODELS = [*IN_INT8, _counter, _probabilities, _unused_before, _all, _part, _view]


def _samples(shape, count=STEPS):
    return np.random.default_rng(1).normal(size=(count, *shape)).astype(np.float32)


@functools.cache
def _exported(torch, make):
    torch.manual_seed(0)
    module, shape = make(torch)
    return module, picotorch.export.export(module, (torch.zeros(1, *shape),),
                                           quantize={"in0": _samples(shape)}), shape


@pytest.mark.parametrize("make", MODELS)
def test_a_state_in_int8_follows_pytorch(torch, make):
    module, exported, shape = _exported(torch, make)
    module = copy.deepcopy(module)
    stepper = differences.Stepper(exported.buffer)
    found = differences.Difference()
    for sample in _samples(shape):
        with torch.no_grad():
            expected = module(torch.from_numpy(sample[None]))
        expected = expected if isinstance(expected, tuple) else (expected,)
        for want, have in zip(expected, stepper.run([sample[None]]), strict=True):
            if want.is_floating_point():
                found.add(want.numpy(), have)
            else:
                np.testing.assert_array_equal(want.numpy(), have)
    assert found.sqnr > 20
    assert exported.verdict == "good"


@pytest.mark.parametrize("make", MODELS)
def test_a_state_in_int8_equals_the_state_as_an_input(torch, make):
    """The outputs are equal to the bit, over all steps, and again after a reset."""
    from models.export_streams import export_stateless

    module, exported, shape = _exported(torch, make)
    stateless, initial = export_stateless(module, (torch.zeros(1, *shape),),
                                          quantize={"in0": _samples(shape)})
    with_state, without = (differences.Stepper(one.buffer) for one in (exported, stateless))
    for _ in range(2):
        values = list(initial)
        for sample in _samples(shape):
            outputs = without.run([sample[None], *values])
            values = outputs[-len(initial):]
            for want, have in zip(outputs[:-len(initial)], with_state.run([sample[None]]), strict=True):
                np.testing.assert_array_equal(want, have)
        with_state.method.reset_state()


@pytest.mark.parametrize("make", IN_INT8)
def test_a_quantized_state_takes_a_byte_an_element(torch, make):
    exported = _exported(torch, make)[1]
    meta = open_program(exported.buffer).method_meta("forward")
    values = Values(meta.program, meta.plan)
    copies = [one for one in read_instructions(meta, values) if one.call == "aten::copy_"]
    assert copies
    for one in copies:
        info = values.tensor(one.outputs[0])
        assert info.nbytes() == np.prod(info.sizes())
