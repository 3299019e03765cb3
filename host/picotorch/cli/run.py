"""Define picotorch run: a program on the twin, on an emulated board or on a connected one."""

import functools
import sys
from pathlib import Path
from typing import NoReturn

import click

from picotorch import Error

from ..boards.boards import load_board
from ..host import show
from ..host.files import read_file
from ..host.npz import write_npz
from ..host.request import ATOL, POOL_SIZE, RTOL, RUN_TIMEOUT, TEMP_SIZE
from ..measure.beside import run_beside
from ..run import bundled, running
from ..run.report import Run, show_result
from ..run.run_request import RunRequest
from . import options
from .command import Choice, InputFile, OutputFile, command


@command()
@options.model
@click.option("--method", default=None, metavar="M", help="The method of the program.  [default: "
              "forward; for a .bpte all methods with test sets]")
@click.option("--board", type=Choice(running.board_names()), default=running.HOST,
              show_default=True, metavar="BOARD", help="host (the twin) or an emulated board.")
@options.port
@options.firmware
@options.bare
@options.data
@options.backend
@options.inputs
@options.quantize
@click.option("--outputs", type=OutputFile(".npz"), metavar="OUT.NPZ",
              help="Write the outputs to this file: arrays out0, out1 ...")
@options.size("--pool-size", POOL_SIZE, "Bytes of the method pool.")
@click.option("--planned-size", "planned", type=options.PlannedSize(), multiple=True,
              help="N bytes for planned buffer I, counted from 0.  [default: what the method needs]")
@options.size("--temp-size", TEMP_SIZE, "Bytes of the temp memory, the kernels' scratch memory.")
@options.pack_weights
@options.threads
@click.option("--model", "with_script", multiple=True, type=InputFile(), metavar="FILE",
              help="For a script (.py): a model or another file that it opens; repeat it for more.")
@click.option("--rtol", type=options.Bounded(min=0), default=RTOL, show_default=True,
              metavar="R", help="For a .bpte: floats may differ by A + R * |output|.")
@click.option("--atol", type=options.Bounded(min=0), default=ATOL, show_default=True,
              metavar="A", help="See --rtol.")
@options.as_json
@options.run_request
def run(request: RunRequest, outputs: Path | None, with_script: tuple[Path, ...], rtol: float,
        atol: float, as_json: bool) -> None:
    """Execute a method of MODEL once, and print its outputs and what it needed.

    With --port the method runs on a connected board with MicroPython and picotorch. If its firmware has
    a frozen model with MODEL's content, this is used in place. Otherwise, if its file system has a file
    with MODEL's name and content, this is used, in place if it is in ROMFS (picotorch deploy --romfs
    puts it there); otherwise MODEL is sent. If --board is given too, the instructions of this emulated
    board are also shown: choose one with the same core.

    Of a bundled program (.bpte) every test set is executed and compared with its expected outputs, for
    all methods unless --method names one. The exit status is 1 if one differs.

    A script (.py) is run by MicroPython on the emulated board, with the files of --model in its working
    folder /rom. Its output appears as it comes, and its exit status is the exit status of the command.
    --timeout limits its time.

    \b
    Examples:
      picotorch run model.pte
      picotorch run model.pte --board mps2-an386 --inputs in.npz --outputs out.npz
      picotorch run model.pte --board mps2-an386 --bare
      picotorch run model.pte --port auto
      picotorch run model.pte --threads 4
      picotorch run model.pte --data weights.ptd
      picotorch run model.pte --backend my_module:MyBackend
      picotorch run model.pte --planned-size 0=1024 --json
      picotorch run model.bpte --board mps2-an386 --rtol 1e-3
      picotorch run main.py --board mps2-an386 --model model.pte
    """
    if request.model.suffix == ".py":
        _run_script(request, with_script, as_json)
    if with_script:
        raise click.UsageError("--model is for a script: picotorch run main.py --model model.pte")
    options.check_run(request)
    options.check_threads(request)
    if request.inputs is None and running.is_bundled(request.model):
        options.refuse({"outputs"}, "of a bundled program needs --inputs")
        options.refuse({"seed", "sizes"}, "is for random inputs: a bundled program has its own inputs")
        _run_bundled(request, rtol, atol, as_json)
    options.refuse({"rtol", "atol"}, "is for a bundled program (.bpte) without --inputs")
    try:
        result = run_beside(request.with_inputs(), request.target,
                            None if request.port is None else request.board)
        if result.code == 0 and outputs is not None:
            write_npz(outputs, result.outputs)
    except Error as error:
        result = running.failed(str(request.model), request.method_name, request.target, error)
    seed = request.seed if request.inputs is None else None
    if as_json:
        found = Run(result, seed)
        running.check_result(result, found)
        show.as_json(found.to_json())
        return
    if seed is not None and not result.code:
        show.line(f"The inputs are random (seed {seed}); give your own with --inputs.")
    show_result(result)
    running.check_result(result)
    if outputs is not None:
        show.wrote(outputs)


_OF_SCRIPTS = {"model", "board", "firmware", "with_script", "timeout", "as_json"}


def _run_script(request: RunRequest, names: tuple[Path, ...], as_json: bool) -> NoReturn:
    """Run a script, and exit."""
    from ..run import emulator, script

    options.refuse_others(_OF_SCRIPTS, "a script (.py)")
    path, board = request.model, request.board
    if board == running.HOST:
        raise click.UsageError(f"a script runs on an emulated board: give --board "
                               f"{running.DEFAULT_BOARD}")
    named = {file.name: read_file(file) for file in (path, *names)}
    if len(named) <= len(names):
        raise click.UsageError("two of the files have the same name: rename one")
    with running.named_errors(board, f"make repl BOARD={board} in picotorch's repository"):
        found = load_board(board)
        if not found.full_firmware:
            raise click.UsageError(f"--board: {board} has no room for a prompt, which a script needs")
        firmware = request.firmware or emulator.firmware_path(found, "repl")
        emulator.check_firmware(found, firmware)
        tell = (lambda text: None) if as_json else functools.partial(click.echo, nl=False)
        ended = script.run(found, firmware, path.name, named, request.timeout or RUN_TIMEOUT, tell)
    if as_json:
        show.as_json({"script": str(path), "board": board, "exit_status": ended.status,
                      "output": ended.output})
    sys.exit(ended.status)


def _run_bundled(request: RunRequest, rtol: float, atol: float, as_json: bool) -> NoReturn:
    """Run the test sets, and exit."""
    from ..run import bundled_tests

    bundle = bundled.read(read_file(request.model))
    tested = bundled_tests.run(bundle, request.method, request.target, rtol, atol,
                               request.with_values(bytes(bundle.program), []))
    if not as_json:
        bundled_tests.show_text(tested)
    for one in tested.methods:
        running.check_result(one.result, tested)
    if as_json:
        show.as_json(tested.to_json())
    sys.exit(0 if tested.passed else 1)
