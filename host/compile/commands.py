"""picotorch compile: images and C projects."""

from pathlib import Path

import click

from .. import options, show
from ..command import Choice, OutputFile, command
from ..files import check_output, read_files, write
from ..run import running
from . import c_project, compiling


@command("compile")
@options.model
@click.option("--board", type=Choice(running.board_names()[1:]), metavar="BOARD",
              help="Prepare weights for the core of this board.")
@click.option("--core", type=Choice(compiling.cores()), metavar="CORE",
              help="Prepare weights for this core: cortex-m0plus, cortex-m4, ...  [default: cortex-m4]")
@options.data
@click.option("-o", "--output", type=OutputFile(), metavar="OUT.PTM",
              help="The image to write.  [default: MODEL with .ptm]")
@click.option("--c", "folder", type=click.Path(file_okay=False, path_type=Path), metavar="FOLDER",
              help="Write a C project with the image instead: sources, Makefile, CMakeLists.txt.")
@click.option("--no-prepare", is_flag=True,
              help="Store no prepared weights: takes less flash, runs slower.")
@click.option("--int8-io", is_flag=True,
              help="Remove the operators that quantize inputs and dequantize outputs.")
@click.option("--keep-plan", is_flag=True, help="Keep the program's memory plan.")
@options.as_json
def compile_command(model, board, core, files, output, folder, no_prepare, int8_io, keep_plan,
                    as_json):
    """Compile MODEL ahead of time to an image, which runs from flash without a loader.

    An image holds the records that loading the program would write to the pool, the constants, and
    the weights in the form that is fastest on the core. Only data that changes is in RAM: for most
    models the method pool is empty. If ExecuTorch's exporter is installed, the memory is planned again.
    An image can replace a .pte file in picotorch run, parity, size and deploy.

    \b
    Examples:
      picotorch compile model.pte --board mps2-an386
      picotorch compile model.pte --core cortex-m0plus -o model.ptm
      picotorch run model.ptm --board mps2-an386
      picotorch compile model.pte --core cortex-m4 --c project
    """
    if folder and output:
        raise click.UsageError("Give --output or --c, not both.")
    if board and core:
        raise click.UsageError("Give --board or --core, not both.")
    if int8_io and keep_plan:
        raise click.UsageError("--int8-io changes the memory plan: leave out --keep-plan.")
    core = compiling.core_of(board) if board else core or "cortex-m4"
    data = running.read_program(model)
    if not folder:
        output = output or compiling.default_output(model)
        if output == model:
            raise click.UsageError(f"{model} is an image already: name its program, the .pte file.")
        check_output(output)
    image, entry = compiling.compile_file(data, str(model), read_files(files), core,
                                          not no_prepare, int8_io, keep_plan)
    if folder:
        c_project.write(image.data, folder, note=f"{Path(model).name}, for {core}")
    else:
        write(output, image.data)
    show.entry({"output": str(folder or output), **entry}, as_json, compiling.show_text)
