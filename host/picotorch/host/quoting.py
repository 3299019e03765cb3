"""Quote texts of users, files and models for the languages of other programs.

There is a function for each language. A name that a language would read as code is rejected, with an
error about this name.
"""

import html as html_module
import math
import os
import re
import shlex
from pathlib import Path

from picotorch.errors import INVALID_ARGUMENT, fail

from . import show

_PLAIN = re.compile(r"[\w./+@-]+")  # what all of these languages read as itself


def operand(path: Path | str) -> str:
    """Return a file's name as an argument that no program reads as an option or as a home folder."""
    text = str(path)
    return f"./{text}" if text.startswith(("-", "~")) else text


def shell(*words: Path | str) -> str:
    """Return words as a command for a POSIX shell, for people to copy.

    A word that a terminal cannot show as it is stands in $'...', which is in POSIX since 2024, and in
    bash and zsh.
    """
    return " ".join(shlex.quote(word) if word.isprintable() else _dollar_quoted(word)
                    for word in map(str, words))


def _dollar_quoted(word: str) -> str:
    return "$'" + "".join(chr(byte) if 32 <= byte < 127 and byte not in b"'\\" else f"\\{byte:03o}"
                          for byte in os.fsencode(word)) + "'"


def tcl(path: Path | str) -> str:
    """Return a file's name as a word of Tcl for OpenOCD's `program`.

    `program` evaluates its argument a second time, so that no quoting is right in all versions.
    Raises InvalidArgument for a name with characters that Tcl reads.
    """
    return _plain(path, "OpenOCD reads it as Tcl")


def make(path: Path | str) -> str:
    """Return a path as a word of make, which has no quoting.

    Raises InvalidArgument for a path with characters that make or its shell reads.
    """
    return _plain(path, "make reads it as several words or as a variable")


def robot(path: Path | str) -> str:
    """Return a path as a variable's value for Robot Framework and Renode's monitor.

    Raises InvalidArgument for a path with characters that either reads.
    """
    return _plain(path, "Renode's monitor reads it as several words or as a variable")


def _plain(path: Path | str, reason: str) -> str:
    text = operand(path)
    if not _PLAIN.fullmatch(text):
        found = next(c for c in text if not _PLAIN.fullmatch(c))
        raise fail(INVALID_ARGUMENT, f"its name has {found!r}: {reason}", show.printable(text),
                   remedy="give it a name of letters, digits, '_', '-' and '.'")
    return text


def qemu(path: Path | str) -> str:
    """Return a value in a list of QEMU's options, where commas separate."""
    return str(path).replace(",", ",,")


def python(value: object) -> str:
    """Return a value as a literal of Python, for a board too. Raises what utf8() raises."""
    return repr(utf8(value) if isinstance(value, str) else value)


def utf8(name: str) -> str:
    """Return a file's name as it is.

    Raises InvalidArgument for one that is not UTF-8, which a board's file system cannot have.
    """
    try:
        name.encode()
    except UnicodeEncodeError:
        raise fail(INVALID_ARGUMENT, "its name is not UTF-8", show.printable(name),
                   remedy="rename it") from None
    return name


def html(text: str) -> str:
    """Return a line of text as the text of an element of HTML or SVG. XML has no control characters."""
    return html_module.escape(show.printable(text), quote=False)


def html_attribute(text: str) -> str:
    """Return a line of text as the value of an attribute of HTML or SVG, between double quotes."""
    return html_module.escape(show.printable(text))


def html_script(value: object) -> str:
    """Return a value as JSON in a script element of HTML.

    No text in it ends the element or begins a comment. Infinities and NaN are strings.
    """
    text = show.json_text(value)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def c_comment(text: str) -> str:
    """Return a text as a part of a comment in C, of one line.

    Backslashes and trigraphs would continue the comment in the next line, and "*/" would end it.
    """
    return show.printable(text).replace("\\", "?").replace("??", "? ").replace("*/", "* /")


def c_string(data: bytes) -> str:
    """Return bytes as a string literal of C, without trigraphs."""
    text = "".join(f"\\{byte:03o}" if byte in b'"\\?' or not 32 <= byte < 127 else chr(byte)
                   for byte in data)
    return f'"{text}"'


def c_number(number: int | float, suffix: str = "") -> str:
    """Return a number of 64 bits as a constant expression of C, in parentheses if negative.

    suffix: of a literal, "f" for float. Infinities and NaN are macros of math.h.
    """
    if not isinstance(number, float):
        number = int(number)
        if number == -(1 << 63):
            return f"({number + 1}LL - 1)"
        text = str(abs(number)) + ("LL" if abs(number) >= 1 << 31 else "")
        return f"(-{text})" if number < 0 else text
    if math.isnan(number):
        return "NAN"
    text = "INFINITY" if math.isinf(number) else repr(abs(number)) + suffix
    return f"(-{text})" if math.copysign(1, number) < 0 else text
