"""Test picotorch.export.export with inputs of all dtypes and strides, and with results whose sizes
depend on data."""

import numpy as np
import picotorch.export
import pytest
from picotorch import Error
from picotorch.export import completing, pipeline

_ARRAYS = {
    "newaxis": lambda: np.zeros((8, 8), np.float32)[None, None],
    "broadcast": lambda: np.broadcast_to(np.float32(3), (1, 1, 8, 8)),
    "negative": lambda: np.arange(64, dtype=np.float32).reshape(1, 1, 8, 8)[:, :, ::-1, ::-1],
    "transposed": lambda: np.arange(64, dtype=np.float32).reshape(8, 8, 1, 1).T,
    "steps": lambda: np.arange(128, dtype=np.float32).reshape(1, 1, 8, 16)[..., ::2]}


@pytest.mark.parametrize("is_torch", [True, False])
@pytest.mark.parametrize("array", _ARRAYS.values(), ids=_ARRAYS)
def test_inputs_of_any_strides(torch, array, is_torch):
    """Strides may contain 0, or have values that torch does not support."""
    value = array()
    if is_torch and min(value.strides) >= 0:
        is_expanded = not value.flags.writeable
        value = torch.tensor(3.0).expand(1, 1, 8, 8) if is_expanded else torch.from_numpy(value)
    module = torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3), torch.nn.ReLU())
    report = picotorch.export.export(module, (value,), evaluate=[value, value]).report
    assert report.checked == "executed" and report.outputs[0].sqnr > 100


def test_one_tensor_for_two_arguments_is_two_inputs(torch):
    """h = c = zeros: the program read the first for both."""
    class Step(torch.nn.Module):
        def forward(self, h, c):
            return 2 * h + c

    state = torch.zeros(1, 4)
    report = picotorch.export.export(Step(), (state, state),
                                     evaluate=[(torch.rand(1, 4), torch.rand(1, 4))]).report
    assert report.outputs[0].sqnr > 100


@pytest.mark.parametrize("kept", ["parameter", "buffer", "constant"])
def test_weights_of_any_strides(torch, kept):
    weights = torch.from_numpy(np.arange(16, dtype=np.float32).reshape(4, 4)[None, None])

    class Kept(torch.nn.Module):
        def __init__(self):
            super().__init__()
            if kept == "parameter":
                self.weights = torch.nn.Parameter(weights)
            elif kept == "buffer":
                self.register_buffer("weights", weights)
            else:
                self.weights = weights

        def forward(self, x):
            return torch.nn.functional.conv2d(x, self.weights)

    report = picotorch.export.export(Kept(), torch.rand(1, 1, 8, 8)).report
    assert report.outputs[0].sqnr > 100


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16"])
def test_the_dtype_of_the_module_is_reported(torch, dtype):
    """The report has the dtype of the module, not always float32, and bfloat16 is accepted."""
    given = torch.rand(2, 6).to(getattr(torch, dtype))
    module = torch.nn.Linear(6, 2).to(given.dtype)
    report = picotorch.export.export(module, given, evaluate=[given, given]).report
    assert report.dtype == dtype and {layer.dtype for layer in report.layers} == {dtype}
    assert report.outputs[0].sqnr > 40
    with pytest.raises(Error, match=f"NotSupported.*has {dtype}; export module.float()"):
        picotorch.export.export(module, given, quantize=[given])


def test_several_dtypes_are_reported(torch):
    class Mixed(torch.nn.Module):
        def forward(self, x, y):
            return x.double() + 1, y * 2

    report = picotorch.export.export(Mixed(), (torch.rand(3), torch.rand(3).bfloat16())).report
    assert report.dtype == "bfloat16, float32, float64"


_SIZED_BY_DATA = {
    "nonzero": lambda torch, x: torch.nonzero(x > 0), "where": lambda torch, x: torch.where(x > 0)[1],
    "masked_select": lambda torch, x: torch.masked_select(x, x > 0) * 2,
    "index": lambda torch, x: x[x[:, 0] > 1], "unique": lambda torch, x: torch.unique(x),
    "linear": lambda torch, x: torch.nn.functional.linear(x.t()[x[0] > 0], torch.ones(3, 2)),
    "cat": lambda torch, x: torch.cat([x[x > 0], x[0]]), "sum": lambda torch, x: x[x > 0].sum()}


def _module(torch, function):
    class Module(torch.nn.Module):
        def forward(self, *arguments):
            return function(torch, *arguments)

    return Module()


@pytest.mark.parametrize("function", _SIZED_BY_DATA.values(), ids=_SIZED_BY_DATA)
def test_sizes_that_depend_on_the_data(torch, function):
    """torch.export alone fails with "Could not guard on data-dependent expression"."""
    x = torch.tensor([[1.0, -2, 3, 0, 1], [2, 2, -1, -1, 5]])
    report = picotorch.export.export(_module(torch, function), x).report
    assert report.checked == "executed" and report.outputs[0].largest == 0


def test_sizes_without_a_bound(torch):
    with pytest.raises(Error, match="depends on data and has no bound; .*torch._check"):
        picotorch.export.export(_module(torch, lambda torch, x: torch.bincount(x)), torch.arange(4))


@pytest.mark.parametrize("change", ["x.add_(1)", "x[0] = 2", "x.view(-1).mul_(2)",
                                    "x.chunk(2)[0].add_(1)"])
def test_inputs_that_forward_changes(torch, change):
    """The error names the changed input instead of other sizes."""
    def forward(torch, x):
        exec(change, {"x": x})
        return x * 2

    with pytest.raises(Error, match="NotSupported.*changes its input .* in place; .*clone()"):
        picotorch.export.export(_module(torch, forward), torch.rand(4))


def test_the_wrong_range_of_a_dynamic_size(torch):
    module = torch.nn.Sequential(torch.nn.Conv1d(3, 4, 3, padding=1, stride=2))
    sizes = ({2: torch.export.Dim("t", min=1, max=16)},)
    with pytest.raises(Error, match="Not all values of t .* satisfy the generated guard.*; raise min"):
        picotorch.export.export(module, torch.rand(1, 3, 8), dynamic_shapes=sizes)


def test_warnings_of_samples_are_reported(torch):
    images = np.random.default_rng(0).integers(0, 256, (8, 6), np.uint8)
    module = torch.nn.Linear(6, 2)
    for options in ({"quantize": {"in0": images}}, {"evaluate": {"in0": images}}):
        report = picotorch.export.export(module, torch.rand(1, 6), **options).report
        found = [one for one in report.warnings if one.startswith("samples: ")]
        assert len(found) == 1 and "raw pixels" in found[0]
    assert picotorch.export.export(module, torch.rand(1, 6)).report.warnings == []


def _named(torch, kind, name):
    """Return a module with a part of this kind and name, among other parts."""
    class Part(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = torch.nn.Linear(4, 4), torch.nn.Linear(4, 2)
            if kind == "module":
                self.add_module(name, torch.nn.Linear(4, 4))
            elif kind == "parameter":
                self.register_parameter(name, torch.nn.Parameter(torch.rand(4)))
            else:
                self.register_buffer(name, torch.rand(4))

        def forward(self, x):
            part, y = getattr(self, name), self.first(x)
            return self.last(part(y) if kind == "module" else y * part)

    torch.manual_seed(0)
    return torch.nn.Sequential(Part()).eval()


KINDS = ("module", "parameter", "buffer")


@pytest.mark.parametrize("quantize", [None, {"in0": np.ones((4, 2, 4), np.float32)}])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [
    "a\nb", "\n", "a\r", "a\tb", "a\0b", "a\x7f", "a\u2028b", "\ud800", 'a"b', "a\\b", "a\\", "class",
    "None", "\u00aa"])
def test_a_name_that_code_cannot_contain_is_rejected(torch, name, kind, quantize):
    """Code that torch generates would have a SyntaxError with such a name, or use another part's
    weights."""
    with pytest.raises(Error) as caught:
        picotorch.export.export(_named(torch, kind, name), torch.ones(2, 4), quantize=quantize)
    text = str(caught.value)
    assert text.startswith("NotSupported") and repr(f"0.{name}") in text and "rename" in text


@pytest.mark.parametrize("kind, is_int8", [("module", True), ("parameter", False), ("buffer", True)])
@pytest.mark.parametrize("name", ["a b", "a-b", "0", "a'b", "a/b", "\u00fc", "a(b)", "match"])
def test_other_names_are_exported(torch, monkeypatch, name, kind, is_int8):
    monkeypatch.setattr(completing.timing, "estimated", lambda program, core: None)
    monkeypatch.setattr(pipeline, "_in_float", lambda *arguments: None)
    x = torch.randn(8, 2, 4)
    report = picotorch.export.export(_named(torch, kind, name), x[0],
                                     quantize={"in0": x.numpy()} if is_int8 else None).report
    assert report.outputs[0].sqnr > (25 if is_int8 else 100)
