"""Define picotorch profile."""


from pathlib import Path

import click

from ..host import show
from ..host.drawing import write_drawing
from ..host.files import write
from ..host.twin import open_program
from ..inspect import memory_map as memory_map_module
from ..measure import etdump, intermediate, profiling
from ..run import running
from ..run.run_request import RunRequest
from . import options
from .command import Choice, OutputFile, command
from .drawing import DrawingFile


@command("profile")
@options.model
@options.method
@click.option("--board", type=Choice(running.board_names()), default=running.HOST,
              show_default=True, metavar="BOARD", help="host (the twin) or an emulated board.")
@options.port
@options.firmware
@options.bare
@options.inputs
@options.quantize
@options.pack_weights
@options.threads
@options.data
@options.backend
@click.option("--sort", type=Choice(profiling.SORTED), default=profiling.SORTED[0],
              show_default=True, help="Sort the rows by the program's order, or by share, the largest "
              "first.")
@click.option("--memory-map", type=DrawingFile(), metavar="OUT.SVG|PNG",
              help="Draw the planned memory over the instructions, as SVG or PNG.")
@click.option("--etdump", "etdump_path", type=OutputFile(), metavar="OUT.ETDP",
              help="Write an ETDump for the Inspector of executorch.devtools.")
@click.option("--debug-buffer", type=OutputFile(), metavar="OUT.BIN",
              help="With --etdump: write what each instruction computes, for the Inspector.")
@options.report
@options.as_json
@options.run_request
def profile_command(request: RunRequest, sort: str, memory_map: Path | None, etdump_path: Path | None,
                    debug_buffer: Path | None, page: Path | None, as_json: bool) -> None:
    """Measure each instruction of MODEL: machine instructions on an emulated board, time on the twin,
    processor cycles or time on a connected board.

    \b
    Examples:
      picotorch profile model.pte --board mps2-an386
      picotorch profile model.pte --port auto
      picotorch profile model.pte --memory-map memory.svg
    """  # noqa: D205 -- click prints it
    options.check_run(request)
    options.check_threads(request)
    if debug_buffer is not None and etdump_path is None:
        raise click.UsageError("--debug-buffer needs --etdump: the ETDump says where each value is")
    if request.port is not None and request.board != running.HOST:
        raise click.UsageError("give --board or --port, not both")
    one = request.with_inputs()
    if memory_map is not None:
        meta = open_program(one.model).method_meta(one.method)
        write_drawing(memory_map, memory_map_module.draw(meta, f"{request.model.name}, {one.method}"))
    found, executions = profiling.profile(one, request.target)
    if debug_buffer is not None:
        executions, computed = intermediate.with_values(executions, one)
        write(debug_buffer, computed)
    if etdump_path is not None:
        write(etdump_path, etdump.to_bytes(executions))
    if page is not None:
        from ..report import reporting

        target = reporting.Target((), () if request.board == running.HOST else (request.board,))
        reporting.write_page(page, [reporting.measure(request, target,
                                                      reporting.Known(profile=found))])
    show.report(found, as_json, lambda found: profiling.show_text(found, sort))
    for path in (memory_map, etdump_path, debug_buffer, page):
        if path is not None and not as_json:
            show.wrote(path)
