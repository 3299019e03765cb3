"""Identifiers of a C project: each is the only one of its name, also in upper case, as macros are."""

import itertools
import re
from collections.abc import Iterable


class Identifiers:
    """The identifiers that a project has so far."""

    def __init__(self, *taken: str) -> None:
        self._taken = {name.upper() for name in taken}

    def claim(self, name: str, *patterns: str) -> str:
        """Return a name with which no identifier of these patterns, such as "{}_open", is there
        already: `name`, or with a number behind it. From now on all of them are there."""
        names = itertools.chain([name], (f"{name}_{number}" for number in itertools.count(2)))
        found = next(found for found in names if not self._spelled(found, patterns) & self._taken)
        self._taken |= self._spelled(found, patterns)
        return found

    @staticmethod
    def _spelled(name: str, patterns: Iterable[str]) -> set[str]:
        return {pattern.format(name).upper() for pattern in patterns}


def spelled(text: str) -> str:
    """Return a text as a part of an identifier."""
    return re.sub(r"[^0-9A-Za-z_]", "_", text)
