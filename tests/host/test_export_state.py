"""Test picotorch.export.export of modules with state: buffers that forward updates."""

import collections
import types

import numpy as np
import picotorch.export
import pytest
from picotorch.export import module_state
from picotorch.export.differences import Stepper

_UPDATES = {  # updates of a buffer h of four elements
    "in place": "self.h.add_(1)", "anew": "self.h = self.h * 2 + 1",
    "a view": "self.h.view(-1)[1:].mul_(2)",
    "a slice": "self.h[:, 1:3] = x.to(self.h.dtype)[:, 1:3]",
    "by index": "self.h.index_copy_(1, torch.tensor([2]), x.to(self.h.dtype)[:, :1])"}


def _stateful(torch, initial, update="self.h.add_(1)", persistent=True, depth=0):
    class State(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("h", initial, persistent=persistent)

        def forward(self, x):
            exec(update, {"self": self, "x": x, "torch": torch})
            return self.h.to(torch.float32) + x

    module = State()
    for _ in range(depth):
        module = torch.nn.Sequential(module)
    return module


def _check_state(torch, module, x):
    """Check that the program begins with the module's own state, at first and after a reset."""
    exported = picotorch.export.export(module, x)
    assert exported.report.outputs[0].sqnr > 100
    stepper = Stepper(exported.buffer)
    wanted = [module(x).detach().numpy() for _ in range(3)]
    for _ in range(2):
        for want in wanted:
            np.testing.assert_array_equal(stepper.run([x.numpy()])[0], want)
        stepper.method.reset_state()
    return exported


@pytest.mark.parametrize("update", _UPDATES.values(), ids=_UPDATES)
@pytest.mark.parametrize("persistent, depth", [(True, 0), (False, 2)])
def test_a_program_starts_with_the_modules_state(torch, update, persistent, depth):
    """The state does not start with zeros."""
    initial = torch.tensor([[5.0, -1.0, 0.0, 2.0]])
    _check_state(torch, _stateful(torch, initial, update, persistent, depth), torch.rand(1, 4))


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16", "int64", "int32", "int16", "int8",
                                   "uint8"])
def test_the_initial_state_of_every_dtype(torch, dtype):
    initial = torch.tensor([[5, 1, 0, 2]]).to(getattr(torch, dtype))
    _check_state(torch, _stateful(torch, initial), torch.rand(1, 4))


@pytest.mark.parametrize("initial", [
    lambda torch: torch.full((1, 1), 3.0).expand(1, 4),
    lambda torch: torch.arange(8.0).reshape(4, 2)[:, :1].t(),
    lambda torch: torch.arange(16.0).reshape(1, 16)[:, 3:7],
    lambda torch: torch.tensor([-0.0] * 4)[None]],
    ids=["expanded", "transposed", "a slice", "negative zero"])
def test_the_initial_state_of_views(torch, initial):
    _check_state(torch, _stateful(torch, initial(torch), "self.h = self.h * 2"), torch.rand(1, 4))


def test_an_initial_state_of_zeros_needs_no_bytes(torch):
    sizes = [len(picotorch.export.export(_stateful(torch, initial), torch.rand(1, 1)).buffer)
             for initial in (torch.zeros(1, 1), torch.zeros(1, 4096), torch.ones(1, 4096))]
    assert sizes[1] < sizes[0] + 64 and sizes[2] >= sizes[0] + 4096 * 4


# {name: (a statement of forward about h, which is not a buffer; the value: forward returns x + value)}
_HIDDEN = {
    "state anew": ("self.h = self.h + x", "self.h"), "state in place": ("self.h.add_(x)", "self.h"),
    "counter": ("self.h += 1", "self.h"), "list": ("self.h[0] = self.h[0] + x", "self.h[0]"),
    "history": ("self.h.append(x)", "sum(self.h)"), "dict": ("self.h['a'] = self.h['a'] + x",
                                                             "self.h['a']"),
    "made at first": ("self.h = x if self.h is None else self.h * 0.5 + x", "self.h"),
    "a new number": ("self.h = getattr(self, 'h', 0) + 1", "self.h"),
    "factor": ("self.h *= 0.5", "self.h"), "text": ("self.h += 'a'", "len(self.h)"),
    "deque": ("self.h.append(self.h[-1] + x)", "self.h[-1]"),
    "array": ("self.h += 1", "torch.from_numpy(self.h.copy())"),
    "object": ("self.h.h = self.h.h + x", "self.h.h")}
_FIRST = {"factor": lambda torch: 1.0, "text": lambda torch: "a",
          "deque": lambda torch: collections.deque([torch.zeros(1, 4)], maxlen=2),
          "array": lambda torch: np.zeros((1, 4), np.float32),
          "object": lambda torch: types.SimpleNamespace(h=torch.zeros(1, 4)),
          "counter": lambda torch: 0, "list": lambda torch: [torch.zeros(1, 4)],
          "history": lambda torch: [torch.zeros(1, 4)], "dict": lambda torch: {"a": torch.zeros(1, 4)},
          "made at first": lambda torch: None}


def _hiding(torch, first, update, value, is_inner, attribute="h"):
    class Hiding(torch.nn.Module):
        def __init__(self):
            super().__init__()
            if "getattr" not in update:
                setattr(self, attribute, first)

        def forward(self, x):
            exec(update, {"self": self, "x": x, "torch": torch})
            return x + eval(value, {"self": self, "torch": torch, "x": x})

    return torch.nn.Sequential(Hiding()) if is_inner else Hiding()


@pytest.mark.parametrize("is_inner", [False, True])
@pytest.mark.parametrize("name", _HIDDEN)
@pytest.mark.parametrize("example", ["rand", "zeros"])
@pytest.mark.parametrize("attribute", ["h", "_h"])
def test_state_that_is_no_buffer_is_rejected_by_name(torch, attribute, name, is_inner, example):
    """Otherwise the program would begin each run with its first value."""
    first = _FIRST.get(name, lambda torch: torch.full((1, 4), 2.0))(torch)
    texts = [text.replace("self.h", f"self.{attribute}").replace("'h'", f"'{attribute}'")
             for text in _HIDDEN[name]]
    module = _hiding(torch, first, *texts, is_inner, attribute)
    before = repr(first)
    with pytest.raises(picotorch.Error,
                       match=rf"(0\.)?{attribute}, and its outputs depend.*register_buffer"):
        picotorch.export.export(module, getattr(torch, example)(1, 4))
    assert repr(first) == before


@pytest.mark.parametrize("attribute", ["h", "_h"])
def test_a_tensor_that_forward_creates_is_not_a_state(torch, attribute):
    """forward makes a mask once. The module stays usable after the export."""
    update = f"if self.{attribute} is None: self.{attribute} = torch.arange(4.0)"
    module = _hiding(torch, None, update, f"self.{attribute}", False, attribute)
    report = picotorch.export.export(module, torch.rand(1, 4)).report
    assert report.outputs[0].sqnr > 100
    assert module(torch.ones(1, 4)).tolist() == [[1, 2, 3, 4]]


@pytest.mark.parametrize("make", [
    lambda torch: torch.empty(3, device="meta"), lambda torch: torch.eye(3).to_sparse(),
    lambda torch: torch.eye(3).to_sparse_csr(), lambda torch: torch.ones(1).expand(4),
    lambda torch: torch.ones(2, requires_grad=True) * 2, lambda torch: open(__file__),
], ids=["meta", "sparse", "csr", "expanded", "of autograd", "a file"])
@pytest.mark.parametrize("update", ["pass", "self.h = self.h"])
def test_attributes_of_any_kind_hinder_no_export(torch, make, update):
    module = _hiding(torch, make(torch), update, "x", False)
    assert picotorch.export.export(module, torch.rand(1, 4)).report.outputs[0].sqnr > 100


@pytest.mark.parametrize("update, value", [
    ("self.h = x * 2", "x"), ("self.h = x * 2", "self.h"), ("self.h = 2", "self.h"),
    ("self.h = self.h + 1", "x"), ("self.last = x", "self.last")])
def test_attributes_without_influence_are_no_state(torch, update, value):
    first = torch.zeros(1, 4)
    module = _hiding(torch, first, update, value, False)
    report = picotorch.export.export(module, torch.rand(1, 4)).report
    assert report.outputs[0].sqnr > 100


def test_outputs_of_chance_are_no_state(torch):
    module = _hiding(torch, torch.zeros(1, 4), "self.h = x", "torch.randn_like(x)", False)
    found = module_state.hidden_state(torch, module, lambda used, given: [used(*given)],
                                      (torch.rand(1, 4),))
    assert found == []


class _Slots:
    __slots__ = ("h",)


def _in_slots(torch):
    held = _Slots()
    held.h = torch.zeros(1, 4)

    def update(x):
        held.h = held.h * 0.5 + x
        return held.h

    return held, update


def _in_a_closure(torch):
    held = [torch.zeros(1, 4)]

    def update(x):
        held[0] = held[0] * 0.5 + x
        return held[0]

    return None, update


def _in_an_iterator(torch):
    held = iter(range(1, 1000))
    return held, lambda x: x * next(held)


def _in_numpy(torch):
    return None, lambda x: x * float(np.random.rand())  # noqa: NPY002


@pytest.mark.parametrize("make", [_in_slots, _in_a_closure, _in_an_iterator, _in_numpy])
def test_state_that_is_no_attribute_is_rejected(torch, make):
    """Otherwise the program would keep the first value, or the export would end with an error of
    torch."""
    class Keeping(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.held, self.update = make(torch)

        def forward(self, x):
            return self.update(x)

    with pytest.raises(picotorch.Error, match="no attribute of the module, and its outputs depend"):
        picotorch.export.export(Keeping(), torch.rand(1, 4))


# Statements of forward about buffers h and g of four elements, and its result
_CHAINS = {
    "one after the other": "y = self.o(x) + self.g / 2 + self.h; self.g = self.h; self.h = x",
    "exchanged": "y = self.o(x) + self.g / 2 + self.h; self.g, self.h = self.h, self.g",
    "copied": "y = self.o(x) + self.g / 2 + self.h; self.g.copy_(self.h); self.h.copy_(x)",
    "a view": "y = self.o(x) + self.g; self.g = self.h.view(2, 2).view(1, 4); self.h = x * 2",
    "the old one is returned": "y = self.o(x), self.h; self.h = x + 1",
    "a view of the old one is returned": "y = self.o(x), self.h.view(2, 2); self.h = x + 1",
    "changed in place, then assigned": "y = self.o(self.h); self.h.add_(x); self.h = self.h * 0.5",
}


@pytest.mark.parametrize("quantized", [False, True])
@pytest.mark.parametrize("is_inner", [False, True])
@pytest.mark.parametrize("name", _CHAINS)
def test_states_that_depend_on_each_other_have_the_values_before_the_run(torch, name, is_inner,
                                                                         quantized):
    """ExecuTorch's exporter would write one state, and read it for the next."""
    class Chain(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.o = torch.nn.Linear(4, 4)
            self.register_buffer("h", torch.tensor([[0.5, -0.25, 1.0, 2.0]]))
            self.register_buffer("g", torch.zeros(1, 4))

        def forward(self, x):
            found = {"self": self, "x": x}
            exec(_CHAINS[name], found)
            return found["y"]

    torch.manual_seed(0)
    module = torch.nn.Sequential(Chain()).eval() if is_inner else Chain().eval()
    samples = np.random.default_rng(0).normal(size=(12, 4)).astype(np.float32)
    options = {"quantize": {"in0": samples}} if quantized else {}
    stepper = Stepper(picotorch.export.export(module, torch.zeros(1, 4), **options).buffer)
    tolerance = 0.15 if quantized else 1e-5
    for sample in samples:
        with torch.no_grad():
            expected = module(torch.from_numpy(sample[None]))
        for want, have in zip(expected if isinstance(expected, tuple) else (expected,),
                              stepper.run([sample[None]]), strict=True):
            np.testing.assert_allclose(have, want.numpy(), atol=tolerance)
