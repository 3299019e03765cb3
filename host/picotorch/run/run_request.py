"""Define the request of the commands that run a model: run, parity, profile and size."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from ..host.inputs import SEED, request_inputs
from ..host.request import PORT, Request
from ..host.twin import open_program
from . import running

Sizes: TypeAlias = tuple[tuple[int, tuple[int, ...]], ...]  # the sizes of inputs, by their index


@dataclass(frozen=True, kw_only=True)
class RunRequest:
    """A method of a model file, its inputs, and the board and memories of its run.

    method: None for the default of the command. board: the twin or an emulated board. port: of a
    connected board. files: data files (.ptd). inputs: a file, None for random inputs. planned: pairs of
    a planned buffer and its bytes. Request documents the other fields.
    """

    model: Path
    method: str | None = "forward"
    board: str = running.HOST
    port: str | None = None
    timeout: float | None = None
    firmware: Path | None = None
    bare: bool = False
    files: tuple[Path, ...] = ()
    inputs: Path | None = None
    sizes: Sizes = ()
    seed: int = SEED
    quantize: bool = False
    pool_size: int | None = None
    planned: tuple[tuple[int, int], ...] = ()
    temp_size: int | None = None
    pack_weights: bool = False
    threads: int = 1

    @property
    def method_name(self) -> str:
        """Return the name of the method, by default forward."""
        return self.method or "forward"

    @property
    def target(self) -> str:
        """Return the board for running.run: the connected one if there is a port."""
        return self.board if self.port is None else PORT + self.port

    def data(self) -> list[bytes]:
        """Return the bytes of the data files. Raises Error."""
        return running.read_data(list(self.files))

    def with_inputs(self) -> Request:
        """Read the files, and return the request with the inputs of the file or random ones."""
        model = running.read_program(self.model)
        meta = open_program(model).method_meta(self.method_name)
        return self.with_values(model, request_inputs(meta, self.inputs, self.seed, self.quantize,
                                                      dict(self.sizes)))

    def with_values(self, model: bytes, values: list[Any]) -> Request:
        """Return the request for the bytes of a program, with inputs."""
        return Request(model, str(self.model), values, self.method_name, self.pool_size,
                       dict(self.planned), self.temp_size, self.pack_weights, firmware=self.firmware,
                       bare=self.bare, data=self.data(), timeout=self.timeout, threads=self.threads)
