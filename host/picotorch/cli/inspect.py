"""Define picotorch inspect."""

from pathlib import Path

import click

from ..host import show
from ..host.files import read_file
from ..inspect import inspecting
from . import options
from .command import command


@command()
@options.model
@click.option("--method", default=None, metavar="M", help="Show only this method.")
@options.as_json
def inspect(model: Path, method: str | None, as_json: bool) -> None:
    """List the contents of MODEL: methods, signature, operators, memory plan, instructions.

    \b
    Example:
      picotorch inspect model.pte
    """
    found = inspecting.inspect(read_file(model), str(model), method)
    show.report(found, as_json, inspecting.show_text)
