"""Choose identifiers of a C project that are unique, also in upper case, as macros are."""

import itertools
import re
from collections.abc import Iterable


class Identifiers:
    """The identifiers that a project has so far."""

    def __init__(self, *reserved: str) -> None:
        self._reserved = {name.upper() for name in reserved}

    def claim(self, name: str, *patterns: str) -> str:
        """Return a name with which no identifier of these patterns, such as "{}_open", exists yet.

        The name is `name`, or `name` with a number behind it. From then on all of these identifiers
        exist.
        """
        names = itertools.chain([name], (f"{name}_{number}" for number in itertools.count(2)))
        found = next(found for found in names if not self._spelled(found, patterns) & self._reserved)
        self._reserved |= self._spelled(found, patterns)
        return found

    @staticmethod
    def _spelled(name: str, patterns: Iterable[str]) -> set[str]:
        return {pattern.format(name).upper() for pattern in patterns}


def spelled(text: str) -> str:
    """Return a text spelled as a part of an identifier."""
    return re.sub(r"[^0-9A-Za-z_]", "_", text)
