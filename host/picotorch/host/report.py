"""Define the report of a command: a frozen dataclass, and the JSON of its fields."""

import dataclasses
from pathlib import Path
from typing import Any


class Report:
    """The base of dataclasses that commands return. The names of the fields are the keys of JSON."""

    def to_json(self) -> dict[str, Any]:
        """Return the fields for json.dumps."""
        assert dataclasses.is_dataclass(self)
        return {field.name: _plain(getattr(self, field.name)) for field in dataclasses.fields(self)}


def _plain(value: Any) -> Any:
    if isinstance(value, Report):
        return value.to_json()
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, Path) else value
