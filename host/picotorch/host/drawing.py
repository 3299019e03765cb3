"""Write drawings to files: SVG, and PNG by resvg."""

from pathlib import Path
from typing import Any

from picotorch.errors import NOT_FOUND, NOT_SUPPORTED, fail

from .files import write

FONTS = ("system-ui, 'Segoe UI', Helvetica, Arial, 'DejaVu Sans', 'Liberation Sans', 'Noto Sans', "
         "sans-serif")
_SCALE = 2  # pixels of a PNG for one of the SVG


def write_drawing(path: Path, svg: str) -> None:
    """Write a drawing in the format of the file's suffix."""
    write(path, _png(svg) if is_png(path) else svg)


def is_png(path: Path) -> bool:
    """Return True for the name of a PNG file."""
    return path.suffix.lower() == ".png"


def check_png() -> None:
    """Raise NotFound where resvg or its fonts are missing."""
    try:
        import resvg_py  # noqa: F401
    except ImportError:
        raise fail(NOT_FOUND, "resvg-py, which draws PNG, is not installed", "drawing",
                   remedy="pip install 'picotorch[png]', or give a name that ends in .svg") from None
    blank, word = (_render(f'<svg xmlns="http://www.w3.org/2000/svg" width="80" height="20">'
                           f'<text y="15" font-family="{FONTS}">{text}</text></svg>')
                   for text in ("", "word"))
    if blank == word:  # resvg leaves out text for which it has no font
        raise fail(NOT_FOUND, "none of the fonts of drawings is installed", "drawing",
                   remedy=f"install one of {FONTS}, or give a name that ends in .svg")


def _render(svg: str, **how: Any) -> bytes:
    import resvg_py

    return resvg_py.svg_to_bytes(svg_string=svg, **how)


def _png(svg: str) -> bytes:
    try:
        return _render(svg, zoom=_SCALE)
    except ValueError as error:
        raise fail(NOT_SUPPORTED, f"cannot be drawn as PNG ({error})", "drawing",
                   remedy="give a name that ends in .svg") from error
