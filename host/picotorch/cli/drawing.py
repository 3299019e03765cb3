"""Define the option of a drawing's file."""

from pathlib import Path
from typing import Any

import click

from ..host.drawing import check_png, is_png
from .command import OutputFile


class DrawingFile(OutputFile):
    """Accept a file for a drawing. Raises NotFound for a PNG without resvg."""

    def __init__(self) -> None:
        super().__init__(".svg", ".png")

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        path = super().convert(value, param, ctx)
        if is_png(path):
            check_png()
        return path
