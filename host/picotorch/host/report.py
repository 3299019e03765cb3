"""Define the report of a command: a frozen dataclass, and the JSON of its fields."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

OPTIONAL = {"json": "optional"}  # metadata of a field that JSON has only if it is not None
MERGED = {"json": "merged"}  # metadata of a field whose own fields JSON has in its place
HIDDEN = {"json": "hidden"}  # metadata of a field that JSON does not have


def json_key(name: str) -> dict[str, str]:
    """Return the metadata of a field that has another name in JSON, such as a keyword of Python."""
    return {"key": name}


class Report:
    """The base of dataclasses that commands return. The names of the fields are the keys of JSON.

    A script that reads the JSON of a command reads a report as well: report["layers"][0]["sqnr"].
    """

    def to_json(self) -> dict[str, Any]:
        """Return the fields for json.dumps."""
        assert dataclasses.is_dataclass(self)
        found: dict[str, Any] = {}
        for field in dataclasses.fields(self):
            value, kind = getattr(self, field.name), field.metadata.get("json")
            if kind == "merged":
                found |= value.to_json() if value is not None else {}
            elif kind != "hidden" and (kind != "optional" or value is not None):
                found[field.metadata.get("key", field.name)] = plain(value)
        return found

    if not TYPE_CHECKING:  # code that is checked reads fields

        def __getitem__(self, key: str) -> Any:
            """Return a value of the JSON. Raises KeyError."""
            return self.to_json()[key]

        def get(self, key: str, default: Any = None) -> Any:
            """Return a value of the JSON, or the default."""
            return self.to_json().get(key, default)


@dataclasses.dataclass(frozen=True)
class WrittenFile(Report):
    """A file that a command wrote."""

    output: Path


@dataclasses.dataclass(frozen=True)
class TensorType(Report):
    """The type of a tensor."""

    dtype: str
    sizes: list[int]
    dim_order: list[int]

    @property
    def text(self) -> str:
        """Return the type for people: "Float [1, 3, 8, 8] dim order 0 2 3 1"."""
        text = f"{self.dtype} [{', '.join(map(str, self.sizes))}]"
        order = self.dim_order
        return text if order == sorted(order) else f"{text} dim order {' '.join(map(str, order))}"


@dataclasses.dataclass(frozen=True)
class SizedTensor(TensorType):
    """The type of a tensor and its bytes. dynamic: they are upper bounds, None if they are fixed."""

    nbytes: int
    dynamic: bool | None = dataclasses.field(default=None, metadata=OPTIONAL)

    @property
    def text(self) -> str:
        """Return the type for people, "Float up to [1, 3, 8, 8]" if it is dynamic."""
        text = super().text
        return text.replace(" [", " up to [", 1) if self.dynamic else text


def plain(value: Any) -> Any:
    """Return a value of a field for json.dumps."""
    if isinstance(value, Report):
        return value.to_json()
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return str(value) if isinstance(value, Path) else value
