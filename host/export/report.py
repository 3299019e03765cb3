"""What an export tells of its program, for people."""

import click

from .. import show

_WORST = 12  # layers that are shown by default


def show_text(entry: dict) -> None:
    show.line(f"{entry['model']}: {show.size(entry['bytes_before'])}; {entry['output']}: "
              f"{show.size(entry['bytes'])}, {_compared(entry['bytes'], entry['bytes_before'])}")
    _show_memory(entry)
    if entry["missing_operators"]:
        show.line("without a kernel here: " + ", ".join(entry["missing_operators"]))
    if entry["checked"] != "executed":
        show.line(f"On the twin: {entry['checked']}")
        return
    _show_layers(entry)
    _show_outputs(entry)


def _compared(now, before):
    if now >= before:
        return "not smaller"
    return f"{100 * now / before:.0f} %"


def _show_memory(entry):
    rows = [["method pool", entry["method_pool"]],
            *[[f"planned buffer {i}", size] for i, size in enumerate(entry["planned"])],
            ["temp memory", entry["temp"]]]
    show.heading("RAM, the same on every board")
    show.table(["memory", "bytes>"], [[name, f"{size:,}"] for name, size in rows if size is not None])
    if entry["method_pool"] is not None:
        click.echo(f"together {sum(size for _, size in rows):,} B, without the stack and the firmware")


def _show_layers(entry):
    layers = entry["layers"]
    if not layers:
        return
    show.heading(f"Difference from PyTorch by layer, {entry['layer_samples']} samples")
    show.table(["layer", "operator", "type", "SQNR>", "largest>", "of values up to>"], [
        [_label(layer, layers), layer["operator"].removesuffix(".out"), layer["dtype"],
         _decibels(layer["sqnr"]), f"{layer['largest']:.3g}", f"{layer['magnitude']:.3g}"]
        for layer in layers])


def _label(layer, layers):
    """The module's path; of one module with several, with the value."""
    same = [other for other in layers if other["layer"] == layer["layer"]]
    return layer["layer"] if len(same) == 1 else f"{layer['layer']} {layer['value']}"


def _decibels(sqnr):
    return "-" if sqnr is None else "same" if sqnr >= 300 else f"{sqnr:.1f} dB"


def _show_outputs(entry):
    count = entry["samples"]
    where = "with the example inputs" if count == 1 else f"with {count} samples"
    for output in entry["outputs"]:
        name = f"output {output['output']}" if len(entry["outputs"]) > 1 else "outputs"
        verb = "differs" if len(entry["outputs"]) > 1 else "differ"
        show.line(f"On the twin, {where}: {name} {verb} from PyTorch's by up to "
                  f"{output['largest']:.3g}, of values up to {output['magnitude']:.3g} "
                  f"(SQNR {_decibels(output['sqnr'])})")
    if not entry["outputs"]:
        show.line(f"On the twin, {where}: executed")
    if entry["accuracy"]:
        pytorch, program = entry["accuracy"]["pytorch"], entry["accuracy"]["program"]
        show.line(f"Accuracy on {count} samples: PyTorch {pytorch:.1%}, program {program:.1%}")
