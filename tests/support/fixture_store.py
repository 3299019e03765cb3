"""Read the committed fixtures: programs of ExecuTorch's exporter, inputs, expected outputs.

tests/models/export_zoo.py writes them; tests/models/zoo/store.py describes the format. Programs of
several releases of ExecuTorch are beside them, written by tests/models/export_releases.py.
"""

import json
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import numpy as np
from picotorch.host.tensors import as_numbers, from_bfloat16

FOLDER = Path(__file__).resolve().parents[1] / "fixtures"
RELEASES = Path(__file__).resolve().parents[1] / "models" / "releases"

# Fixtures that the runtime does not support, and the begin of the NotSupported message.
NOT_SUPPORTED = {}

# Fixtures whose backend, in Python, needs a heap: to load, to run.
UNLOCKED = {
    "delegate_demo": "load run",
    "delegate_executor": "load",
    "delegate_in_branches": "load run",
    "delegate_inline": "load run",
    "delegate_nested": "load run",
    "delegate_two_backends": "load run",
}


# Relative to the largest output; a few units in the last place of float16 and bfloat16
TOLERANCE = 1e-5
TOLERANCES = {"float16": 2**-8, "bfloat16": 2**-5}


@dataclass(frozen=True)
class Run:
    """One execution. Runs of a fixture follow one another on the same loaded methods.

    Arrays hold logical values in row-major order; a number or string is an array without dims.
    """

    folder: Path
    entry: dict

    @property
    def method(self) -> str:
        return self.entry["method"]

    @cached_property
    def inputs(self) -> list[np.ndarray]:
        if "recipe" not in self.entry:
            return _read_npz(self.folder / self.entry["inputs"], "in")
        recipe = self.entry["recipe"]
        generator = np.random.default_rng(recipe["seed"])
        values = generator.uniform(recipe["low"], recipe["high"], recipe["sizes"])
        return [values.astype(np.float32)]

    @cached_property
    def expected(self) -> list[np.ndarray]:
        """Return ExecuTorch's outputs, in the form of `sampled` if stride is not 1."""
        return _read_npz(self.folder / self.entry["expected"], "out")

    def sampled(self, output: np.ndarray) -> np.ndarray:
        """Return the stored elements of an output: all, or every stride-th."""
        stride = self.entry["stride"]
        return output if stride == 1 else output.reshape(-1)[::stride]


@dataclass(frozen=True)
class Fixture:
    """One fixture; `entry` is its object in fixtures.json, or in the index of another folder."""

    entry: dict
    folder: Path = FOLDER

    @property
    def name(self) -> str:
        return self.entry["name"]

    @property
    def refused(self) -> list[str]:
        """Return the operators and backends for which load rejects the program; empty if it runs."""
        return self.entry["refused"]

    @property
    def backends(self) -> list[str]:
        """Return the backends that its methods need and the tests define."""
        names = {name for method in self.entry["methods"] for name in method["backends"]}
        return sorted(names - set(self.refused))

    @property
    def path(self) -> Path:
        return self.folder / self.name / "model.pte"

    @cached_property
    def pte(self) -> bytes:
        return self.path.read_bytes()

    @property
    def data_paths(self) -> list[Path]:
        """Return the .ptd files with the program's external tensors."""
        return [self.folder / self.name / name for name in self.entry.get("data", ())]

    @cached_property
    def data(self) -> list[bytes]:
        return [path.read_bytes() for path in self.data_paths]

    @property
    def methods(self) -> dict[str, dict]:
        return {method["name"]: method for method in self.entry["methods"]}

    @cached_property
    def runs(self) -> list[Run]:
        return [Run(self.folder / self.name, entry) for entry in self.entry["runs"]]


@cache
def _entries() -> dict[str, dict]:
    """Return the objects of fixtures.json by name. Reading the file takes as long as many a test."""
    index = json.loads((FOLDER / "fixtures.json").read_text())
    return {entry["name"]: entry for entry in index["fixtures"]}


def load_all() -> list[Fixture]:
    """Return all fixtures, sorted by name."""
    return [Fixture(entry) for entry in _entries().values()]


def load_releases() -> list[Fixture]:
    """Return the programs of all releases of ExecuTorch, sorted by name: "1.1.0/int8_pad"."""
    index = json.loads((RELEASES / "index.json").read_text())
    return [Fixture(entry, RELEASES) for entry in index["fixtures"]]


def load(name: str) -> Fixture:
    """Return the fixture of that name. Raises KeyError."""
    return Fixture(_entries()[name])


def stored_dtype(name: str) -> np.dtype:
    """Return the dtype of the arrays of a tensor's dtype. For a dtype that numpy lacks, the arrays hold
    bits."""
    bits = {"bfloat16": "uint16", "float8_e5m2": "uint8", "float8_e4m3fn": "uint8"}
    return np.dtype(bits.get(name, name))


def _read_npz(path: Path, prefix: str) -> list[np.ndarray]:
    with np.load(path, allow_pickle=False) as archive:
        arrays = [archive[f"{prefix}{index}"] for index in range(len(archive.files))]
        return [None if array.dtype.kind == "V" else array for array in arrays]


def assert_close(actual, expected, dtype):
    """Assert that two outputs are close; those of bfloat16 are arrays of their bits."""
    if expected is None:
        assert actual is None or actual.dtype == object
        return
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
    if dtype == "bfloat16":
        actual, expected = from_bfloat16(actual), from_bfloat16(expected)
    if expected.dtype.kind == "c":
        actual, expected = as_numbers(actual, None), as_numbers(expected, None)
    if expected.dtype.kind != "f":
        assert (actual == expected).all()
        return
    finite = np.isfinite(expected)
    assert np.array_equal(actual[~finite], expected[~finite], equal_nan=True)
    if finite.any():
        largest = np.abs(expected[finite], dtype=np.float64).max()
        difference = np.abs(actual[finite].astype(np.float64) - expected[finite]).max()
        bound = TOLERANCES.get(dtype, TOLERANCE) * largest
        assert difference <= bound, f"{difference:g} of {largest:g}"
