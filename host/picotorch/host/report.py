"""Define the report of a command: a frozen dataclass, and the JSON of its fields."""

import dataclasses
from pathlib import Path
from typing import Any

OPTIONAL = {"json": "optional"}  # metadata of a field that JSON has only if it is not None
MERGED = {"json": "merged"}  # metadata of a field whose own fields JSON has in its place
HIDDEN = {"json": "hidden"}  # metadata of a field that JSON does not have


class Report:
    """The base of dataclasses that commands return. The names of the fields are the keys of JSON."""

    def to_json(self) -> dict[str, Any]:
        """Return the fields for json.dumps."""
        assert dataclasses.is_dataclass(self)
        found: dict[str, Any] = {}
        for field in dataclasses.fields(self):
            value, kind = getattr(self, field.name), field.metadata.get("json")
            if kind == "merged":
                found |= value.to_json()
            elif kind != "hidden" and (kind != "optional" or value is not None):
                found[field.name] = plain(value)
        return found


def plain(value: Any) -> Any:
    """Return a value of a field for json.dumps."""
    if isinstance(value, Report):
        return value.to_json()
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return str(value) if isinstance(value, Path) else value
