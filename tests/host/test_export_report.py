"""Test that the report of an export compares each value with the matching value of PyTorch."""

import numpy as np
import pytest
from picotorch.cli import export as commands
from picotorch.export import pipeline, report
from picotorch.export.result import Float32
from picotorch.measure import advice, advising, by_size, timing
from support import fixture_store, html_page
from support.export_report import UNTIMED, checked, layer_difference, output_difference


def _scaled(parts):
    """Return the parts, each with a user of its own that distinguishes it."""
    return [part * (k + 2.0) for k, part in enumerate(parts)]


SEVERAL_OUTPUTS = {  # a function of (torch, x), x of sizes 2, 4, 4
    "aminmax": lambda torch, x: list(torch.aminmax(x, dim=1)),
    "broadcast_tensors": lambda torch, x: _scaled(torch.broadcast_tensors(x, x[:, :1])),
    "chunk": lambda torch, x: _scaled(x.chunk(2, 1)),
    "cummax": lambda torch, x: list(x.cummax(1)),
    "for": lambda torch, x: _scaled(list(x)),
    "hsplit": lambda torch, x: _scaled(torch.hsplit(x, 2)),
    "kthvalue": lambda torch, x: list(x.kthvalue(2, 1)),
    "max": lambda torch, x: list(x.max(1)),
    "max_pool2d": lambda torch, x: list(
        torch.nn.functional.max_pool2d(x, 2, return_indices=True)),
    "median": lambda torch, x: list(x.median(1)),
    "meshgrid": lambda torch, x: _scaled(torch.meshgrid(x[0, 0], x[0, 1], indexing="ij")),
    "min": lambda torch, x: list(x.min(1)),
    "mode": lambda torch, x: list(x.mode(1)),
    "nested": lambda torch, x: _scaled(
        [part for half in x.chunk(2, 1) for part in half.unbind(2)]),
    "qr": lambda torch, x: list(torch.linalg.qr(x[0])),
    "sort": lambda torch, x: list(x.sort(1)),
    "split": lambda torch, x: _scaled(x.split(2, 1)),
    "split into other sizes": lambda torch, x: _scaled(x.split([1, 3], 1)),
    "std_mean": lambda torch, x: list(torch.std_mean(x, 1)),
    "swapped": lambda torch, x: list(reversed(x.unbind(1))),
    "tensor_split": lambda torch, x: _scaled(torch.tensor_split(x, 3, 1)),
    "together": lambda torch, x: torch.cat(list(reversed(x.unbind(1))), -1),
    "topk": lambda torch, x: list(x.topk(2, 1)),
    "unbind": lambda torch, x: _scaled(x.unbind(1)),
    "unbind into users of two": lambda torch, x: x.unbind(1)[1] - x.unbind(1)[0],
    "var_mean": lambda torch, x: list(torch.var_mean(x, 1)),
}


def _exported(torch, function, sizes, **options):
    from picotorch.export import export

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first = torch.nn.Linear(sizes[-1], sizes[-1])

        def forward(self, x):
            return function(torch, self.first(x))

    torch.manual_seed(0)
    samples = torch.randn(16, *sizes)
    quantize = {"in0": samples.numpy()} if options.pop("is_int8", False) else None
    return export(Net().eval(), (samples[0],), quantize=quantize, **options)


@pytest.mark.parametrize("name", SEVERAL_OUTPUTS)
def test_each_output_of_an_operator_is_compared_with_its_own_value(torch, name):
    report = _exported(torch, SEVERAL_OUTPUTS[name], (2, 4, 4)).report
    layers = report.layers
    assert len(layers) > 1, "nothing is compared but the first layer"
    assert all(layer.sqnr is not None and layer.sqnr > 100 for layer in layers), layers
    assert len({layer.value for layer in layers}) == len(layers)


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
@pytest.mark.parametrize("fuse_rnn", [False, True])
def test_the_states_of_recurrent_layers_are_compared_with_states(torch, kind, fuse_rnn):
    layer = getattr(torch.nn, kind)(4, 4, batch_first=True, bidirectional=True)

    def function(torch, x):
        output, states = layer(x)
        return [output, *(states if kind == "LSTM" else [states])]

    layers = _exported(torch, function, (2, 4, 4), fuse_rnn=fuse_rnn).report.layers
    assert len(layers) > 2 and all(layer.sqnr > 100 for layer in layers), layers


@pytest.mark.parametrize("name", ["unbind", "split", "aminmax", "std_mean", "topk", "swapped"])
def test_int8_stays_near_to_plain_fake_quantization(torch, name):
    layers = _exported(torch, SEVERAL_OUTPUTS[name], (2, 4, 4), is_int8=True).report.layers
    assert len(layers) > 1
    for layer in layers:
        assert layer.sqnr > 30 and abs(layer.sqnr - layer.fake_sqnr) < 1, layer


def test_float32_has_no_fake_quantization(torch):
    layers = _exported(torch, SEVERAL_OUTPUTS["split"], (2, 4, 4)).report.layers
    assert {layer.fake_sqnr for layer in layers} == {None}
    assert np.isfinite([layer.sqnr for layer in layers]).all()


@pytest.mark.parametrize("sqnr, fake_sqnr, words", [
    (1.7, 30.1, ["softmax (1.7 dB instead of 30.1 dB)"]), (20.0, 24.0, ["20.0 dB instead of 24.0 dB"]),
    (8.9, 9.0, ["below 10 dB", "softmax (8.9 dB)"]), (None, 30.0, ["below 10 dB", "softmax (-)"]),
    (22.0, 24.0, []), (50.0, 60.0, []), (35.0, None, [])])
def test_an_inner_layer_that_is_poor_is_a_warning(sqnr, fake_sqnr, words):
    layers = [layer_difference(sqnr, fake_sqnr), layer_difference(36.0, 36.1, "linear")]
    found = report.layer_warnings(layers, lambda below, poor: {})
    assert len(found) == bool(words)
    texts = [report.warning(one) for one in found]
    assert all(word in texts[0] for word in words) and "linear" not in "".join(texts)


@pytest.mark.parametrize("sqnrs, verdict", [
    ([14.9, 40.0], "unusable"), ([None], "unusable"), ([19.0, 40.0], "rough"), ([25.0], "good"),
    ([], "unknown")])
def test_the_verdict_is_that_of_the_worst_output(sqnrs, verdict):
    assert report.verdict([output_difference(sqnr) for sqnr in sqnrs]) == verdict


def test_an_unusable_program_is_written_but_no_success(call, monkeypatch, tmp_path):
    program = fixture_store.load("add_1").pte
    built = pipeline.Built(program, checked(warnings=["a warning"], verdict="unusable",
                                            outputs=[output_difference(1.0)]))
    monkeypatch.setattr(commands, "_export_function", lambda *arguments: built)
    monkeypatch.setattr(commands.completing.timing, "estimated", lambda program, core: UNTIMED)
    path = tmp_path / "o.pte"
    for options, status in ((), 3), (["--json"], 3), (["--accept-unusable"], 0):
        result = call("export", "net.py:model", "-o", path, *options)
        assert result[0] == status and path.read_bytes() == program, result
        assert "a warning" in result[1]


@pytest.mark.parametrize("equal, verdict", [(0.79, "unusable"), (0.81, "good"), (1.0, "good")])
def test_integers_are_judged_by_how_many_are_equal(equal, verdict):
    """The number of another class may differ by any amount."""
    assert report.verdict([output_difference(3.0, equal)]) == verdict


def _times(cycles):
    return timing.Timing("cortex-m4", 100_000_000, cycles, cycles, cycles and cycles / 1e5)


@pytest.mark.parametrize("size, cycles, words", [
    (10, 1000, []), (30, 1000, ["larger than in float32: 30 B instead of 20 B"]),
    (10, 3000, ["slower than in float32: about 0.03 ms instead of 0.02 ms"]), (10, None, []),
    (30, 3000, ["larger", "slower"])])
def test_int8_that_is_larger_or_slower_is_a_warning(size, cycles, words):
    found = report.comparisons(size, _times(cycles), Float32(20, _times(2000)))
    assert len(found) == len(words)
    assert all(word in text for word, text in zip(words, found, strict=True))


def _stance(remedy):
    """Return the choice that a remedy recommends, from its words alone."""
    gives_up = "without --quantize" in remedy
    return ("float32" if remedy == "export it without --quantize" else "" if gives_up else
            "int8" if any(word in remedy for word in ("--keep-float", "int8")) else "")


def check_agreement(remedies):
    assert {"int8", "float32"} - set(map(_stance, remedies)), remedies


def _warnings_of_layers():
    """Yield a warning for each remedy of a poor layer."""
    for kept in ((), ("a",), tuple("abcdefg")):
        for remedy in ("", "use a constant nearer to these"):
            if kept or remedy:
                yield report.layer_warnings([layer_difference(1.0, 1.0)], lambda below, poor, kept=kept,
                                            remedy=remedy: {"softmax": ("why", kept, remedy)})[0]
    yield report.layer_warnings([layer_difference(1.0, 1.0)], lambda below, poor: {})[0]


def _findings():
    """Yield every finding of a report, with the text of the remedy that the programs print."""
    yield from _warnings_of_layers()
    yield from (advising._no_gain("int8 is slower", share) for share in (0.0, 1.0))
    for fixture in fixture_store.load_all():
        if fixture.methods == ["forward"] or "forward" in fixture.methods:
            method = advising._read(advising.open_program(fixture.pte).method_meta("forward"))
            for rule in (advising._unrolled, advising._float_layers, advising._conversions,
                         advising._float_io, advising._slow_first_layer):
                yield from rule(method)


def test_no_two_findings_contradict_each_other():
    found = list({one.remedy: one for one in _findings()}.values())
    stances = {_stance(one.remedy) for one in found}
    assert stances == {"int8", "float32", ""} and len(found) > 12
    for one in found:
        assert one.stance == _stance(one.remedy) or "int8" in (one.stance, _stance(one.remedy))
        for other in found:
            check_agreement([left.remedy for left in advice.agreed([one, other])])


def test_the_advice_on_a_program_does_not_contradict_itself():
    count = 0
    for fixture in fixture_store.load_all():
        for name in fixture.methods:
            remedies = [one.remedy for one in advising.advise(fixture.pte, "", name).advice]
            check_agreement(remedies)
            count += any(map(_stance, remedies))
    assert count > 5


def _kept_nets(torch):
    from support.torch_net import Net

    linear = torch.nn.Linear
    return {
        "sin": (Net(lambda layers, x: layers[1](torch.sin(layers[0](x))), linear(16, 16),
                    linear(16, 4)), ["sin"]),
        "norm": (torch.nn.Sequential(linear(16, 16), torch.nn.LayerNorm(16), linear(16, 4)), ["1"]),
        "linear": (torch.nn.Sequential(linear(16, 16), torch.nn.ReLU(), linear(16, 16),
                                       torch.nn.ReLU(), linear(16, 4)), ["2"]),
        "all": (torch.nn.Sequential(linear(16, 16), torch.nn.Sigmoid(), linear(16, 4)),
                ["0", "1", "2"]),
    }


@pytest.mark.parametrize("name", ["sin", "norm", "linear", "all"])
@pytest.mark.parametrize("int8_io", [False, True])
def test_nothing_is_advised_against_what_keep_float_requested(torch, name, int8_io):
    from picotorch.export import export

    torch.manual_seed(0)
    module, kept = _kept_nets(torch)[name]
    x = torch.randn(8, 16)
    if int8_io and name == "all":
        pytest.skip("it has no int8 ends")
    entry = export(module.eval(), (x[:1],), quantize={"in0": x.numpy()}, keep_float=kept,
                   int8_io=int8_io).report
    assert entry.advice == []
    assert not any("replace the layers" in text for text in entry.warnings), entry.warnings


def test_other_layers_in_float_are_advised_on(torch):
    from picotorch.export import export
    from support.torch_net import Net

    torch.manual_seed(0)
    module = Net(lambda layers, x: layers[2](torch.exp(layers[1](torch.sin(layers[0](x))))),
                 *(torch.nn.Linear(64, 64) for _ in range(3)))
    x = torch.randn(8, 64)
    (one,) = [one for one in export(module.eval(), (x[:1],), quantize={"in0": x.numpy()},
                                    keep_float=["sin"]).report.advice if "leaves" in one.what]
    assert "aten::exp" in one.what and len(one.instructions) == 1


@pytest.mark.parametrize("name", ["causal convolutions", "a perceptron", "functions in float"])
def test_the_report_does_not_contradict_itself(torch, name):
    from picotorch.export import export

    torch.manual_seed(0)
    module, samples = (NO_GAINS | GAINS)[name](torch)
    entry = export(module.eval(), (samples[:1],), quantize={"in0": samples.numpy()}).report
    check_agreement([text.rpartition("; ")[2] for text in entry.warnings]
                    + [one.remedy for one in entry.advice])


def test_the_report_compares_int8_with_float32(torch, capsys):
    from picotorch.export import export

    torch.manual_seed(0)
    samples = torch.randn(4, 1, 1, 640)
    exported = export(torch.nn.Conv1d(1, 16, 256, 128, bias=False).eval(), (samples[0],),
                      quantize={"in0": samples[:, 0].numpy()})
    other = exported.report.float32
    assert other.bytes > len(exported.buffer)
    exported.show()
    text = capsys.readouterr().out
    assert " layers and 100 % of the multiply-accumulates run in int8; " in text
    assert f"instead of {other.time.instructions:,} in float32" in text
    is_slower = exported.report.time.cycles > other.time.cycles
    assert ("slower than in float32" in text) == is_slower


def _causal(torch):
    """Return convolutions over a sequence, each padded on the left, with an addition around it."""
    from support.torch_net import Net

    layers = [torch.nn.Conv1d(8, 8, 3, dilation=2**i) for i in range(3)]

    def forward(layers, x):
        for i, layer in enumerate(layers):
            x = x + layer(torch.nn.functional.pad(x, (2 * 2**i, 0))).relu()
        return x

    return Net(forward, *layers), torch.randn(8, 8, 64)


def _exponentials(torch):
    from support.torch_net import Net

    return Net(lambda layers, x: layers[1](torch.exp(layers[0](x))), torch.nn.Linear(16, 16),
               torch.nn.Linear(16, 4)), torch.randn(8, 16)


def _norms(torch):
    layers = [layer for _ in range(3) for layer in (torch.nn.Linear(8, 8), torch.nn.LayerNorm(8))]
    return torch.nn.Sequential(*layers, torch.nn.Linear(8, 4)), torch.randn(8, 32, 8)


NO_GAINS = {  # (module, samples), of torch
    "a group norm": lambda torch: (torch.nn.Sequential(
        torch.nn.Conv1d(2, 8, 3), torch.nn.GroupNorm(2, 8), torch.nn.ReLU(),
        torch.nn.Conv1d(8, 8, 3)), torch.randn(8, 2, 32)),
    "causal convolutions": _causal,
    "a tiny network": lambda torch: (torch.nn.Sequential(
        torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2)), torch.randn(8, 4)),
    "functions in float": _exponentials,
}
GAINS = {
    "a learned transform": lambda torch: (torch.nn.Conv1d(1, 64, 16, 8), torch.randn(8, 1, 640)),
    "a long learned transform": lambda torch: (torch.nn.Conv1d(1, 258, 256, 128, bias=False),
                                               torch.randn(8, 1, 640)),
    "layer norms": _norms,
    "a network of images": lambda torch: (torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Conv2d(8, 16, 3), torch.nn.Flatten(),
        torch.nn.Linear(16 * 196, 10)), torch.randn(8, 3, 18, 18)),
    "a perceptron": lambda torch: (torch.nn.Sequential(
        torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 64)), torch.randn(8, 64)),
}


@pytest.mark.parametrize("name", [*NO_GAINS, *GAINS])
def test_advise_finds_what_the_export_measures(torch, name):
    """advise has only the int8 program, and compares it with an estimate of the float32 program."""
    from picotorch.export import export

    torch.manual_seed(0)
    module, samples = (NO_GAINS | GAINS)[name](torch)
    exported = export(module.eval(), (samples[:1],), quantize={"in0": samples.numpy()})
    time, other = exported.report.time, exported.report.float32.time
    found = [one.what for one in advising.advise(exported.buffer, "", "forward").advice]
    is_slower = any(what.startswith(f"int8 is slower than float32, about {time.cycles:,} cycles "
                                    f"({time.instructions:,} instructions) instead of about ")
                    for what in found)
    assert is_slower == (time.cycles > other.cycles) == (name in NO_GAINS), (found, time, other)
    is_larger = len(exported.buffer) > exported.report.float32.bytes
    assert any("int8 is larger" in what for what in found) == is_larger


CAUSAL = [(3, 8), (5, 16), (4, 32)]


@pytest.mark.parametrize("count, channels", CAUSAL)
def test_the_bytes_in_float32_of_a_network_over_sequences_are_estimated(torch, count, channels):
    """The estimate excludes the copies that int8 needs for the layout of images."""
    from picotorch.export import export
    from support.torch_net import Net

    torch.manual_seed(0)
    layers = [torch.nn.Conv1d(channels if i else 2, channels, 3, dilation=2**i) for i in range(count)]

    def forward(layers, x):
        for i, layer in enumerate(layers):
            y = layer(torch.nn.functional.pad(x, (2 * 2**i, 0))).relu()
            x = x + y if i else y
        return x[..., -1]

    x = torch.randn(8, 2, 64)
    exported = export(Net(forward, *layers), (x[:1],), quantize={"in0": x.numpy()})
    meta = advising.open_program(exported.buffer).method_meta("forward")
    rows = by_size.by_instruction(meta, "cortex-m4")
    size = advising._bytes_in_float(exported.buffer, advising._read(meta),
                                    sum(bool(row[3]) for row in rows) / len(rows))
    assert size == pytest.approx(exported.report.float32.bytes, rel=0.1)

# ---- the page of --report


NET_PY = """
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.features = torch.nn.Sequential(torch.nn.Conv2d(1, 8, 3), torch.nn.ReLU())
        self.classifier = torch.nn.Linear(800, 4)

    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))


def model():
    torch.manual_seed(0)
    return Net().eval(), (torch.rand(1, 1, 12, 12),)
"""


def test_the_page_has_modules_and_their_sqnr(torch, call, tmp_path):
    (tmp_path / "net.py").write_text(NET_PY)
    np.savez(tmp_path / "samples.npz", in0=np.random.default_rng(0).uniform(
        -1, 1, (16, 1, 1, 12, 12)).astype(np.float32))
    output = tmp_path / "report.html"
    status, out, error = call("export", f"{tmp_path}/net.py:model", "-o", tmp_path / "net.pte",
                              "--quantize", tmp_path / "samples.npz", "--report", output)
    assert (status, error) == (0, "") and out.endswith(f"Wrote {output}\n")
    root = html_page.read(output.read_text())
    head, rows = next(one for table in root.all("table")
                      if "module" in (one := html_page.table(table))[0])
    modules = {row[head.index("module")]: row[head.index("SQNR")] for row in rows}
    assert {"features.0", "classifier"} <= modules.keys()
    assert all(float(modules[name].removesuffix(" dB")) > 20 for name in ("features.0", "classifier"))
    assert "beside PyTorch" in root.one("main").text
