"""picotorch export."""

import functools
from pathlib import Path

import click
from picotorch.memory import LIMIT

from .. import options, show
from ..npz import read_npz
from ..run import bundled, running
from . import exporting, torchscript, torchscript_process


@click.command()
@options.model
@click.option("--int8-io", is_flag=True,
              help="Remove the operators that quantize inputs and dequantize outputs.")
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, metavar="OUT.PTE",
              help="The program to write.")
@click.option("--shape", "shapes", multiple=True, type=options.Shape(),
              help="For TorchScript: sizes of an input, and its dtype (float32 by default); once for "
              "each input.")
@click.option("--inputs", type=click.Path(path_type=Path), metavar="IN.NPZ",
              help="For TorchScript: example inputs, arrays in0, in1 ..., of 128 MB at most.")
@click.option("--unconfined", is_flag=True,
              help="For TorchScript: run its code with all your rights, if nothing can confine it.")
@options.as_json
def export(model, int8_io, output, shapes, inputs, unconfined, as_json):
    """Convert TorchScript to a program, or reduce a program's memory.

    TorchScript is a file that torch.jit.save wrote, from a traced or scripted module; the program takes
    inputs of the given shapes. In a program (.pte) values that no instruction names are dropped, and
    the memory is planned again. With --int8-io the inputs and outputs of a quantized program are
    the integers themselves; method_meta.input_quantization(i) and output_quantization(i) give their
    scale and zero point. Needs the packages torch and executorch (pip install -e '.[export]').

    TorchScript is code, and torch runs it, in a process that can read your files but change none of
    them (Linux 5.13 and newer, by Landlock). On other systems nothing confines it: export only files
    that you trust, with --unconfined.

    \b
    Examples:
      picotorch export model.pt --shape 1,3,224,224 -o model.pte
      picotorch export model.pte -o smaller.pte
      picotorch export model.pte --int8-io -o model_int8.pte
    """
    data = running.read_file(model)
    if torchscript.is_meant(data, model):
        if int8_io:
            raise click.UsageError("--int8-io is for a quantized program (.pte)")
        if shapes and inputs is not None:
            raise click.UsageError("give --shape or --inputs, not both")
        tell = None if as_json else functools.partial(click.echo, nl=False)
        given = list(shapes) if inputs is None else read_npz(inputs, [LIMIT])
        written, entry = torchscript_process.export_file(data, str(model), given, tell, unconfined)
    else:
        if shapes or inputs is not None or unconfined:
            raise click.UsageError("--shape, --inputs and --unconfined are for TorchScript")
        written, entry = exporting.export_file(bundled.program_of(data), str(model), int8_io)
    output.write_bytes(written)
    entry["output"] = str(output)
    text = torchscript.show_text if torchscript.is_meant(data, model) else exporting.show_text
    show.entry(entry, as_json, text)
