"""The option of a drawing's file."""

from ..host.drawing import check_png, is_png
from .command import OutputFile


class DrawingFile(OutputFile):
    """Take a file for a drawing. Raise NotFound for a PNG that nothing here can draw."""

    def __init__(self):
        super().__init__(".svg", ".png")

    def convert(self, value, param, ctx):
        path = super().convert(value, param, ctx)
        if is_png(path):
            check_png()
        return path
