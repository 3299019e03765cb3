"""Read the int8 models of the benchmark: programs that ExecuTorch exported for kinds of cores.

The programs for M3, M4 and M55 differ in the sizes of scratch tensors, those for M55 also in the
constants that linear layers add. Inputs and outputs are the same; the outputs are the dialect's own.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).resolve().parents[1] / "benchmark"
NAMES = ["int8_ds_cnn", "int8_resnet8", "int8_mobilenet_v1_025", "int8_deep_autoencoder",
         "int8_mv2_005_2"]
TARGETS = {"mps2-an385-m0plus": "m3", "mps2-an385": "m3", "mps3-an547": "m55"}  # m4 for all others


@dataclass(frozen=True)
class Model:
    name: str

    def pte(self, board: str) -> bytes:
        """Return the program for the board's core. If M3's and M4's are equal, only the latter is
        stored."""
        path = FOLDER / self.name / f"{TARGETS.get(board, 'm4')}.pte"
        return (path if path.exists() else path.with_name("m4.pte")).read_bytes()

    @cached_property
    def inputs(self) -> list[np.ndarray]:
        return self._arrays("inputs.npz", "in0")

    @cached_property
    def expected(self) -> list[np.ndarray]:
        return self._arrays("expected.npz", "out0")

    def _arrays(self, file, name):
        with np.load(FOLDER / self.name / file) as arrays:
            return [arrays[name]]


def load(name: str) -> Model:
    return Model(name)
