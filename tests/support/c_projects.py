"""Build C projects, and compare what they print with the outputs of the twin."""

import os
import re
import subprocess

import numpy as np
from picotorch.compile.ptm_writer import compile_ptm
from picotorch.host.request import Request
from picotorch.host.tensors import numpy_dtype, to_stored
from picotorch.host.twin import open_program
from picotorch.package import c_project
from picotorch.run import running


def sh(*command, status=0):
    inherited = ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES")
    environment = {key: value for key, value in os.environ.items() if key not in inherited}
    done = subprocess.run(list(map(str, command)), env=environment, text=True, capture_output=True)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr  # the emulator prints the board's output to stderr


def ptm_of(fixture):
    return compile_ptm(fixture.pte, fixture.data).data


def first_inputs(fixture):
    """Return the inputs of each method's first run."""
    found = {}
    for run in fixture.runs:
        found.setdefault(run.method, run.inputs)
    return found


def model_of(fixture, name="model"):
    """Return the model of a fixture, with the inputs of its first runs."""
    return c_project.Model(name, ptm_of(fixture), first_inputs(fixture))


def printed(text):
    """Return the text that main.c prints for each output."""
    parts = re.split(r"(?m)^(\w+): ", text)
    return {name: words.strip() for name, words in zip(parts[1::2], parts[2::2], strict=True)}


def expected(ptm, fixture, prefix="model"):
    """Return the text that the twin's outputs have; for numbers, their values."""
    program, found = open_program(ptm), {}
    several = len([name for name in program.method_names if name in first_inputs(fixture)]) > 1
    for method, inputs in first_inputs(fixture).items():
        meta = program.method_meta(method)
        outputs = running.run(Request(ptm, fixture.name, inputs, method), running.HOST).outputs
        for i, value in enumerate(outputs):
            name = f"{prefix}_{method}_output_{i}" if several else f"{prefix}_output_{i}"
            found[name] = value if meta.output_tag(i) != 5 else words_of(
                value, meta.output_tensor_meta(i))
    return found


def words_of(value, info):
    """Return the elements in stored order; as raw bytes if main.c prints no numbers."""
    stored = np.frombuffer(bytes(to_stored(value, info.dim_order())), numpy_dtype(info))
    has_bits = info.dtype in ("Half", "BFloat16", "Double") or stored.dtype.kind == "c"
    return stored.view(f"V{stored.itemsize}") if has_bits else stored


def read(words, dtype):
    """Return what main.c printed as elements of a dtype: numbers, or bits."""
    if dtype.kind == "V":
        return np.frombuffer(b"".join(
            int(word, 16).to_bytes(dtype.itemsize, "little") for word in words), dtype)
    return np.array([float(word) if dtype.kind == "f" else int(word) for word in words], dtype)


def assert_same(text, wanted):
    got = printed(text)
    assert got.keys() == wanted.keys()
    for name, value in wanted.items():
        if np.ndim(value):
            found, is_nan = read(got[name].split(), value.dtype), value != value
            assert np.array_equal(found != found, is_nan), name  # NaN is printed without its payload
            assert found[~is_nan].tobytes() == value[~is_nan].tobytes(), name
        elif value.dtype.kind == "f":
            assert np.uint64(int(got[name], 16)).view(np.float64) == value, name
        else:
            assert int(got[name]) == int(value), name
