"""Store a fixture: .npz files with fixed timestamps, and its entry in fixtures.json.

Arrays hold logical values in row-major order; a tensor with another dim order is
`array.transpose(dim_order)` in memory. An input stored as a recipe is
`numpy.random.default_rng(seed).uniform(low, high, sizes).astype(float32)`.
"""

import hashlib
import io
import zipfile
from pathlib import Path

import numpy as np
import torch
from models.zoo import exporter, reference
from models.zoo.registry import Data, Fixture, Model

_BITS = {
    torch.bfloat16: torch.uint16,
    torch.bits16: torch.uint16,
    torch.float8_e5m2: torch.uint8,
    torch.float8_e4m3fn: torch.uint8,
}
_TIMESTAMP = (1980, 1, 1, 0, 0, 0)


def write_fixture(fixture: Fixture, folder: Path) -> dict:
    """Export, run and write one fixture into folder/<name>, and return its description."""
    model = fixture.model()
    target = folder / fixture.name
    target.mkdir(parents=True, exist_ok=True)
    pte, data = exporter.export(model)
    runs = _write_runs(fixture, model, pte, exporter.merge_data(data) if data else None, target)
    if model.inline_constants:
        pte = exporter.inline_constants(pte)
    (target / "model.pte").write_bytes(pte)
    for name, file in data.items():
        (target / name).write_bytes(file)
    program = exporter.read_program(pte)
    return {
        "name": fixture.name,
        "description": fixture.description,
        "pte_bytes": len(pte),
        "sha256": hashlib.sha256(pte).hexdigest(),
        "refused": list(fixture.refused),
        **({"data": list(data)} if data else {}),
        **({"shares_memory": True} if model.shares_memory else {}),
        "reference": model.reference,
        "methods": exporter.describe_methods(program, list(model.constant_methods)),
        "runs": runs,
    }


def _write_runs(fixture: Fixture, model: Model, pte: bytes, data: bytes | None,
                target: Path) -> list[dict]:
    runs = []
    results = zip(model.runs(), reference.run(model, pte, data), strict=True)
    for number, ((method, inputs), outputs) in enumerate(results):
        suffix = f"_{number}" if number else ""
        run = {"method": method, "expected": f"expected{suffix}.npz", "stride": model.stride}
        sampled = [_sampled(value, model.stride) for value in outputs]
        write_arrays(target / run["expected"], "out", sampled)
        if model.recipe:
            run["recipe"] = _recipe(fixture.name, inputs)
        else:
            run["inputs"] = f"inputs{suffix}.npz"
            write_arrays(target / run["inputs"], "in", [_array(value) for value in inputs])
        runs.append(run)
    return runs


def _recipe(name: str, inputs: tuple) -> dict:
    """Return the recipe of a model's only input, verified: drawn first, with the default bounds."""
    (value,) = inputs
    recipe = {"seed": Data(name).seed, "low": -1.0, "high": 1.0, "sizes": list(value.shape)}
    assert torch.equal(value, Data(name).floats(*value.shape)), f"{name}: draw the input first"
    return recipe


def _array(value) -> np.ndarray:
    """Return the value as an array in row-major order: a number or string as an array without dims,
    None as one without a type.

    A dtype that numpy lacks (bfloat16 ...) becomes an array of its bits, uint16 or uint8.
    """
    if value is None:
        return np.empty(0, "V1")
    if isinstance(value, torch.Tensor):
        value = value.contiguous()
        if value.dtype in _BITS:
            return value.view(_BITS[value.dtype]).numpy()
        return value.numpy()
    return np.asarray(value)


def _sampled(value, stride: int) -> np.ndarray:
    array = _array(value)
    return array if stride == 1 else array.reshape(-1)[::stride]


def write_arrays(path: Path, prefix: str, arrays: list[np.ndarray]) -> None:
    """Write a file like numpy.savez, but with the same bytes every time."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for index, array in enumerate(arrays):
            member = io.BytesIO()
            np.save(member, array, allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{prefix}{index}.npy", _TIMESTAMP), member.getvalue())
