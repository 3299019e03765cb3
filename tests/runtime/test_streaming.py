"""Run int8 models with state over 1,000 frames: outputs have the bytes of the program whose state is an
input and an output."""

import functools
from pathlib import Path

import numpy as np
import pytest
from picotorch.host.inputs import checked_inputs
from picotorch.host.twin import open_program, outputs, set_inputs
from picotorch.module import load_with_exact_memories
from picotorch.run.job import Job
from support.targets import FAULT_BOARDS, HOST, run_script

FOLDER = Path(__file__).parents[1] / "models" / "streams"
FRAMES = 1000


NAMES = ("causal_convolutions", "recurrent", "cached_attention")


def method_of(file):
    return load_with_exact_memories(open_program((FOLDER / file).read_bytes()), "forward")


def frames(name):
    """Return the frames of a stream: integers of the whole range, and 40 times the same frame."""
    shape = method_of(f"{name}.pte").method_meta().input_tensor_meta(0).sizes()
    values = np.random.default_rng(5).integers(-128, 128, size=(FRAMES, *shape)).astype(np.int8)
    values[200:240] = values[200]
    return values


@functools.cache
def stateless_outputs(name):
    """Return the bytes of the outputs of the program that takes and returns its states."""
    method = method_of(f"{name}_stateless.pte")
    meta = method.method_meta()
    with np.load(FOLDER / f"{name}.npz") as file:
        states = [file[key] for key in file.files]
    found = b""
    for frame in frames(name):
        set_inputs(method, meta, checked_inputs(meta, [frame, *states], quantize=True))
        method.execute()
        result, *states = outputs(method, meta)
        found += result.tobytes()
    return found


@pytest.mark.parametrize("name", NAMES)
def test_the_outputs_of_a_stream_vary(name):
    assert len(set(stateless_outputs(name))) > 100


@pytest.mark.parametrize("target", (HOST, *FAULT_BOARDS))
@pytest.mark.parametrize("name", NAMES)
def test_a_stream_equals_the_program_without_state(name, target):
    job = Job({"model": (FOLDER / f"{name}.pte").read_bytes(), "inputs": frames(name).tobytes()})
    assert run_script("streaming.py", job, target).files["outputs"] == stateless_outputs(name)
