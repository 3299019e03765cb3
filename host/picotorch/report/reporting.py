"""Measure models and write their page: picotorch report."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from ..host import show
from ..host.files import about, write
from ..run import running
from ..run.run_request import RunRequest
from . import accuracy, page
from .accuracy import Beside
from .reading import NOTHING, Known, Model, Target, measure, of_export

__all__ = ["Known", "Target", "measure", "measure_all", "of_export", "write_page"]


def measure_all(models: Sequence[Path], request: RunRequest, target: Target,
            float_model: Path | None = None, samples: Path | None = None) -> list[Model]:
    """Measure models, and the float program behind them. request: of any model. Raises Error.

    samples: a file with samples of inputs, on which models are compared with the float program.
    """
    found = []
    reference = None if float_model is None else running.read_program(float_model)
    for path in [*models, *([] if float_model is None else [float_model])]:
        one = dataclasses.replace(request, model=path)
        is_float = path is float_model
        with about(path), show.progress(f"measuring {path}"):
            beside: Beside | None = None
            if samples is not None and not is_float:
                beside = accuracy.compare(running.read_program(path), reference, one.method_name,
                                          samples, one.data())
            found.append(measure(one, target, NOTHING._replace(beside=beside), is_float))
    return found


def write_page(path: Path, models: Sequence[Model]) -> None:
    """Write the page of measured models. Raises AccessFailed."""
    write(path, page.page(models))
