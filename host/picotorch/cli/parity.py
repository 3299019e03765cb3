"""Define picotorch parity."""

import dataclasses
import sys
from pathlib import Path

import click

from ..host import show
from ..run import parity, running
from ..run.run_request import RunRequest
from . import options
from .command import InputFile, command


@command("parity")
@options.model
@options.method
@options.boards(running.board_names(), "The board; repeat it for more. host: only the twin, against "
                f"expected outputs.  [default: {running.DEFAULT_BOARD}, without --port]")
@options.port
@options.firmware
@options.bare
@options.data
@options.inputs
@click.option("--expected", type=InputFile(), metavar="OUT.NPZ",
              help="Expected outputs: arrays out0, out1 ..., as run --outputs writes them.")
@click.option("--rtol", type=options.Bounded(min=0), metavar="R",
              help="Floats may differ by R * the largest expected one of their output.  [default: "
              f"{parity.BOUND:g}, more for float16 and bfloat16]")
@options.quantize
@options.pack_weights
@options.threads
@options.as_json
@options.run_request
def parity_command(request: RunRequest, boards: tuple[str, ...], expected: Path | None,
                   rtol: float | None, as_json: bool) -> None:
    """Compare the outputs and the method pool of a board with the twin's, to the bit.

    With --expected it also compares the outputs with expected ones. Without --inputs it uses inputs.npz
    beside MODEL if that exists, and then also expected.npz beside MODEL. It prints which files it used.
    The exit status is 1 if anything differs.

    \b
    Examples:
      picotorch parity model.pte --board mps2-an386 --board mps2-an385
      picotorch parity model.pte --port auto
      picotorch parity model.pte --board host --inputs in.npz --expected out.npz --rtol 1e-4
    """
    ports = [] if request.port is None else [request.target]
    requested = [*boards, *ports] or [running.DEFAULT_BOARD]
    options.check_run(dataclasses.replace(request, board=requested[0], quantize=False))
    if (request.firmware is not None or request.bare) and requested[0] in ports:
        raise click.UsageError("--firmware and --bare are for an emulated board: give --board")
    if request.firmware is not None and len(requested) > 1:
        raise click.UsageError("--firmware is for one board: give --board once")
    one, reference = parity.make_request(request, expected, rtol)
    compared = [name for name in requested if name != running.HOST]
    if reference.outputs is None and (not compared or rtol is not None):
        option = "--rtol" if compared else "--board host"
        raise click.UsageError(f"{option} is for expected outputs: give --expected")
    tell = (lambda found: None) if as_json else parity.show_progress
    found = parity.compare(one, compared, reference, tell)
    show.report(found, as_json, parity.show_verdict)
    sys.exit(0 if found.agree else 1)
