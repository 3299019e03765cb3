"""Test that the report of an int8 export names the cause of a poor inner layer, and a remedy that
helps.

The tests need torch and executorch (make export-check).
"""

import re

import picotorch.export
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (picotorch[export])")
pytest.importorskip("executorch", reason="executorch is not installed (picotorch[export])")

from picotorch.export import completing, pipeline, report  # noqa: E402
from support.export_report import UNTIMED, layer_difference  # noqa: E402
from support.torch_net import Net  # noqa: E402
from torch import nn  # noqa: E402

SIZE = 16
MASK = torch.zeros(SIZE, dtype=torch.bool)
MASK[SIZE // 2:] = True


torch.manual_seed(0)  # for the modules and samples below


def linear(outputs=SIZE, inputs=SIZE):
    return nn.Linear(inputs, outputs)


def unlike_rows():
    layer = linear()
    with torch.no_grad():
        layer.weight[0] *= 500
    return layer


def samples(factor=1.0):
    return torch.randn(16, 8, SIZE) * factor


def outlier():
    x = samples()
    x[..., 3] *= 2000
    return x


def where(constant):
    return Net(lambda layers, x: layers[1](torch.where(MASK, constant, layers[0](x))[..., :8]),
               linear(), linear(inputs=8))


def filled(constant):
    return Net(lambda layers, x: layers[0](x.masked_fill(MASK, constant)[..., :8]), linear(inputs=8))


def added(constant):
    mask = torch.zeros(SIZE).masked_fill(MASK, constant)
    return Net(lambda layers, x: layers[1]((layers[0](x) + mask)[..., :8]), linear(), linear(inputs=8))


def joined(constant):
    column = torch.full((1, 8, 1), constant)
    return Net(lambda layers, x: layers[1](torch.cat([layers[0](x), column], -1)[..., :SIZE]),
               linear(), linear())


def chosen(constant):
    return Net(lambda layers, x: layers[1](
        torch.maximum(layers[0](x), torch.full((SIZE,), constant))), linear(), linear())


MASKS = {f"{form.__name__} {constant:g}": lambda form=form, constant=constant: form(constant)
         for form in (where, filled, added, joined, chosen) for constant in (-1000.0, -9999.0, -3e38)}

OTHERS = {  # module, samples, words of the warning
    "softmax of many": (
        Net(lambda layers, x: layers[0](x).softmax(-1) @ layers[1](x.mT).mT, linear(2000),
            linear(2000, 8)), samples(0.1), "int8 gives softmax the step 1/256"),
    "cat of unlike ranges": (
        Net(lambda layers, x: layers[1](torch.cat([layers[0](x), layers[0](x) * 3000], -1)[..., :SIZE]),
            linear(), linear()), samples(), "linear has the scale of mul"),
    "stack of unlike ranges": (
        Net(lambda layers, x: layers[1](torch.stack([layers[0](x), x * 900], 1)[:, 0]),
            linear(), linear()), samples(), "layers.0 has the scale of"),
    "a channel of the input": (
        Net(lambda layers, x: layers[0](x[..., 4:]), linear(inputs=12)), outlier(),
        " is far wider than the others: 3 of dim 2"),
    "weights": (
        Net(lambda layers, x: layers[1](layers[0](x)[..., 1:]), unlike_rows(), linear(inputs=15)),
        samples(), "the weights of layers.0 have one scale, and channels of unlike ranges: 0 up to"),
    "a coarse step": (
        Net(lambda layers, x: layers[1]((layers[0](x) * 100).sin()), linear(), linear()), samples(),
        "wide range"),
    "a small difference": (
        Net(lambda layers, x: layers[1](layers[0](x).sinh()[..., :2] * 0 + layers[0](x * 1e-3)[..., :2]
                                        - layers[0](x * 0)[..., :2]), linear(),
            linear(inputs=2)), samples(),
        "--keep-float linear_2 --keep-float slice_3"),  # both operands
}


@pytest.fixture(autouse=True)
def nothing_is_measured(monkeypatch):
    """Measure nothing: warnings on layers need no emulated board and no float32 program."""
    monkeypatch.setattr(pipeline, "_in_float", lambda *arguments: None)
    monkeypatch.setattr(completing.timing, "estimated", lambda program, core: UNTIMED)


def report_of(module, x, **options):
    torch.manual_seed(0)
    return picotorch.export.export(module.eval(), (x[:1],), quantize={"in0": x.numpy()},
                                   **options).report


def of_layers(entry):
    return [text for text in entry.warnings if text.startswith("layers ")]


def check_remedy(module, x, warnings):
    kept = [name for text in warnings for name in re.findall(r"--keep-float (\S+?)(?:,|$| )", text)]
    assert kept, warnings
    after = report_of(module, x, keep_float=dict.fromkeys(kept))
    poor = [layer for layer in after.layers if layer.sqnr is None or layer.sqnr < 10]
    assert not poor and not of_layers(after), (warnings, kept, poor)


@pytest.mark.parametrize("name", MASKS)
def test_a_mask_is_the_cause_and_no_samples_help(name):
    torch.manual_seed(0)
    module, x = MASKS[name](), samples()
    warnings = of_layers(report_of(module, x))
    for text in warnings:
        assert "mask or constants of about -" in text and "samples" not in text, text
    if warnings:
        check_remedy(module, x, warnings)


def test_masks_are_found_to_be_causes():
    """This shows that the test before can find a cause."""
    assert any(of_layers(report_of(form(), samples())) for form in MASKS.values())


@pytest.mark.parametrize("name", OTHERS)
def test_the_cause_is_named_and_the_remedy_helps(name):
    module, x, words = OTHERS[name]
    warnings = of_layers(report_of(module, x))
    assert warnings and all(words in text and "samples" not in text for text in warnings), warnings
    check_remedy(module, x, warnings)


@pytest.mark.parametrize("count, is_same, words", [
    (16, False, "calibrate with samples that"), (4, False, "calibrate with more samples"),
    (16, True, "calibrate with more samples")])
def test_calibration_that_did_not_reach_the_values(count, is_same, words):
    torch.manual_seed(0)
    x = samples()
    quiet = (x[:1].expand(count, -1, -1) if is_same else x[:count]) * 0.01
    entry = picotorch.export.export(
        nn.Sequential(linear(), linear()).eval(), (x[:1],), quantize={"in0": quiet.numpy()},
        evaluate={"in0": x.numpy()}).report
    (text,) = of_layers(entry)
    assert "calibration reached only -0.0" in text and words in text and "--keep-float" not in text


def test_an_undetermined_cause_is_reported():
    (one,) = report.layer_warnings([layer_difference(1.0, 1.0, "a")], lambda below, poor: {})
    assert report.warning(one).endswith(
        "a (1.0 dB): the cause was not determined; export it without --quantize")
