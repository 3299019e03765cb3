"""Define picotorch library, which writes the C library for the build system of a project."""

from pathlib import Path

import click

from ..host import show
from ..host.files import about
from ..host.report import WrittenFile
from ..host.twin import open_program
from ..package import library as writing
from ..package.platforms import MAKE, NAMES, named
from ..run import running
from . import options
from .command import Choice, InputFile, command


@command()
@click.argument("models", nargs=-1, type=InputFile(), metavar="[MODEL]...")
@click.option("-o", "--output", "folder", required=True,
              type=click.Path(file_okay=False, path_type=Path), metavar="FOLDER",
              help="The folder to write.")
@click.option("--for", "platform", type=Choice(NAMES), default=MAKE.name,
              show_default=True, metavar="PLATFORM",
              help="The build system or environment: " + ", ".join(NAMES) + ".")
@options.as_json
def library(models: tuple[Path, ...], folder: Path, platform: str, as_json: bool) -> None:
    """Write the C library for a build system, without a model.

    The folder has all sources, or with MODEL... only the kernels that these .pte files need, and the
    manifest that the platform expects. The library loads .pte and .ptm files from memory. For a model
    that is known when the firmware is compiled, picotorch compile --c needs less flash and RAM.

    \b
    Examples:
      picotorch library --for arduino -o picotorch
      picotorch library kws.pte faces.pte --for zephyr -o picotorch
    """
    programs = {}
    for model in models:
        with about(model):
            programs[model.name] = open_program(running.read_program(model))
    kept = writing.write(folder, named(platform), programs)
    show.report(WrittenFile(folder), as_json, lambda found: show.wrote(folder))
    if not as_json:
        for path in kept:
            show.line(f"{folder}/{path} has your changes and was kept: merge {path}.new into it, and "
                      "remove that file")
