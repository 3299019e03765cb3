"""Define picotorch parity."""

import sys
from pathlib import Path

import click

from ..host import show
from ..host.request import PORT
from ..run import parity, running
from . import options
from .command import InputFile, command


@command("parity")
@options.model
@options.method
@options.boards(running.board_names(), "The board; repeat it for more. host: the twin alone, beside "
                f"expected outputs.  [default: {running.DEFAULT_BOARD}, without --port]")
@options.port
@options.firmware
@options.bare
@options.data
@options.inputs
@click.option("--expected", type=InputFile(), metavar="OUT.NPZ",
              help="Expected outputs: arrays out0, out1 ..., as run --outputs writes them.")
@click.option("--rtol", type=options.Bounded(min=0), metavar="R",
              help="Expected floats may differ by R * the largest of their output.  [default: "
              f"{parity.BOUND:g}, more for float16 and bfloat16]")
@options.quantize
@options.pack_weights
@options.threads
@options.as_json
def parity_command(model: Path, method: str, boards: tuple[str, ...], port: str | None,
                   timeout: float | None, firmware: Path | None, bare: bool, files: tuple[Path, ...],
                   inputs: Path | None, sizes: options.Sizes, seed: int,
                   expected: Path | None, rtol: float | None, quantize: bool, pack_weights: bool,
                   threads: int, as_json: bool) -> None:
    """Compare the outputs and the method pool of a board with the twin's, to the bit.

    With --expected the command compares the outputs with these too. Without --inputs it takes
    inputs.npz beside MODEL if it exists, and then expected.npz beside MODEL. It prints which files it
    took. Exit status 1 if anything differs.

    \b
    Examples:
      picotorch parity model.pte --board mps2-an386 --board mps2-an385
      picotorch parity model.pte --port auto
      picotorch parity model.pte --board host --inputs in.npz --expected out.npz --rtol 1e-4
    """
    requested = [*boards, *([] if port is None else [PORT + port])] or [running.DEFAULT_BOARD]
    options.check_run(firmware, bare, requested[0], False, inputs, sizes)
    options.check_timeout(timeout, port)
    if (firmware is not None or bare) and requested[0].startswith(PORT):
        raise click.UsageError("--firmware and --bare are for an emulated board: give --board")
    if firmware is not None and len(requested) > 1:
        raise click.UsageError("--firmware is for one board: give --board once")
    data = running.read_program(model)
    request, reference = parity.make_request(data, model, method, inputs, seed, pack_weights, quantize,
                                             running.read_data(list(files)), dict(sizes), expected,
                                             rtol)
    compared = [name for name in requested if name != running.HOST]
    if reference.outputs is None and (not compared or rtol is not None):
        option = "--rtol" if compared else "--board host"
        raise click.UsageError(f"{option} is for expected outputs: give --expected")
    request.firmware, request.bare, request.timeout = firmware, bare, timeout
    request.threads = threads
    tell = (lambda found: None) if as_json else parity.show_progress
    found = parity.compare(request, compared, reference, tell)
    show.report(found, as_json, parity.show_verdict)
    sys.exit(0 if found.agree else 1)
