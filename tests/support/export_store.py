"""Read the programs of the five networks that picotorch export made, with its report of them.

    build/conformance/bin/python tests/support/export_store.py     # exports them again
"""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np

TESTS = Path(__file__).resolve().parents[1]
FOLDER = TESTS / "models" / "export"
SIZES = {  # sizes of a sample's arrays, by network
    "cnn": [(1, 16, 16)], "mlp": [(196,)], "gru_step": [(16,), (32,)], "transformer": [(8, 32)],
    "depthwise": [(3, 24, 24)],
}  # fmt: skip
NAMES = list(SIZES)
CORES = {"cortex-m0plus": "mps2-an385-m0plus", "cortex-m4": "mps2-an386", "cortex-m55": "mps3-an547"}
SAMPLES = 12
STATED = FOLDER / "programs" / "stated.json"


def calibration(name: str) -> Path:
    return FOLDER / "calibration" / f"{name}.npz"


def program(name: str, core: str) -> Path:
    return FOLDER / "programs" / f"{name}_{core}.pte"


def samples(name: str) -> list[list[np.ndarray]]:
    """Return the arguments of forward of each sample."""
    with np.load(calibration(name)) as arrays:
        columns = [arrays[key].astype(np.float32) for key in sorted(arrays)]
    return [[column[i : i + 1] for column in columns] for i in range(SAMPLES)]


def expected(name: str) -> list[np.ndarray]:
    """Return PyTorch's outputs, each of all samples."""
    with np.load(FOLDER / "programs" / f"{name}.npz") as arrays:
        return [arrays[key] for key in sorted(arrays)]


def export(name: str, core: str, path: Path) -> dict:
    """Export a network to int8 in one command, and return the command's JSON."""
    done = subprocess.run(
        [sys.executable, "-m", "picotorch", "export", f"{FOLDER / 'networks.py'}:{name}", "--quantize",
         calibration(name), "--core", core, "-o", path, "--json"], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout)


def compute(name: str) -> list[np.ndarray]:
    """Return the outputs of expected(), computed by PyTorch."""
    import torch
    from models.export import networks

    module, _ = getattr(networks, name)()
    with torch.no_grad():
        outputs = [module(*map(torch.from_numpy, sample)) for sample in samples(name)]
    outputs = [one if isinstance(one, tuple) else (one,) for one in outputs]
    return [torch.cat(column).numpy() for column in zip(*outputs, strict=True)]


def _write():
    stated, random = {}, np.random.default_rng(0)
    for name, sizes in SIZES.items():
        np.savez_compressed(calibration(name), **{
            f"in{i}": random.uniform(-1, 1, (SAMPLES, *size)).astype(np.float16)
            for i, size in enumerate(sizes)})
        np.savez_compressed(FOLDER / "programs" / f"{name}.npz",
                            **{f"out{i}": array for i, array in enumerate(compute(name))})
        for core in CORES:
            report = export(name, core, program(name, core))
            stated[f"{name} {core}"] = {key: report[key] for key in (
                "bytes_before", "bytes", "method_pool", "planned", "temp", "outputs")}
            print(name, core, stated[f"{name} {core}"], flush=True)
    STATED.write_text(json.dumps(stated, indent=1) + "\n")


if __name__ == "__main__":
    sys.path.insert(0, str(TESTS))
    _write()
