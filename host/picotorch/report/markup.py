"""Write HTML and SVG. Text that is not Markup is escaped, wherever it comes from."""

from collections.abc import Iterable
from typing import TypeAlias

from ..host import quoting

_VOID = ("br", "col", "input", "meta")  # elements without content


class Markup(str):
    """Text that is HTML or SVG already."""

    __slots__ = ()


Content: TypeAlias = "Markup | str | int | None | Iterable[Content]"


def markup(*contents: Content) -> Markup:
    """Return contents as one Markup: text is escaped, None is empty, a list is its joined items."""
    return Markup("".join(map(_markup, contents)))


def _markup(content: Content) -> str:
    if content is None:
        return ""
    if isinstance(content, Markup):
        return content
    if isinstance(content, str | int):
        return quoting.html(str(content))
    return markup(*content)


def tag(name: str, *contents: Content, **attributes: str | float | bool | None) -> Markup:
    """Return an element.

    attributes: class_ is "class" and data_key "data-key". One that is None or False is left out, True
    has no value.
    """
    shown = []
    for key, value in attributes.items():
        key = key.rstrip("_").replace("_", "-")
        if value is True:
            shown.append(f" {key}")
        elif value is not None and value is not False:
            shown.append(f' {key}="{quoting.html_attribute(str(value))}"')
    start = f"<{name}{''.join(shown)}>"
    return Markup(start if name in _VOID else f"{start}{markup(*contents)}</{name}>")
