"""Run fixtures on the twin and on boards, and compare the results."""

import functools

import numpy as np
from support import fixture_store
from support.fixture_jobs import job_of, script_of
from support.targets import HOST, run_script

FIXTURES = {fixture.name: fixture for fixture in fixture_store.load_all()}
COMPUTED_IN_PYTHON = ("delegate_two_backends",)
PARTS = {"complex32": "float16", "complex64": "float32", "complex128": "float64"}


def run_on(target, name):
    fixture = FIXTURES[name]
    return run_script(script_of("fixture.py", [fixture]), job_of(fixture), target)


@functools.cache
def on_host(name):
    return run_on(HOST, name)


def with_one_nan(fixture, result):
    """Return the files of a result, with one NaN in place of all NaNs of a float output.

    This is the only exception to equal bytes of kernels: the NaN of an operation such as inf - inf has
    its sign set on x86 and not on Arm. A backend that computes in Python has floats of 32 bits on a
    board and of 64 on the twin.
    """
    files = dict(result.files)
    for number, run in enumerate(fixture.runs):
        for i, signature in enumerate(fixture.methods[run.method]["outputs"]):
            path = f"out{number}_{i}"
            dtype = signature.get("dtype")  # a number or a list has no dtype
            dtype = PARTS.get(dtype, dtype)
            if path in files and dtype in ("float16", "float32", "float64"):
                values = np.frombuffer(files[path], dtype).copy()
                values[np.isnan(values)] = np.nan
                if fixture.name in COMPUTED_IN_PYTHON:
                    values = values.round(5) + 0
                files[path] = values.tobytes()
    return files


def without_stack(lines):
    return [line for line in lines if not line.startswith("stack ")]
