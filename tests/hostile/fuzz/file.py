"""Fuzz files of any bytes: programs, compiled methods, .ptd files and bundled programs, distinguished
by their identifiers.

A .ptm file gets correct checksums. A program is loaded with the fixtures' .ptd files, and a .ptd file
with the fixtures' programs that need one. The test sets of a bundled program are executed too.
"""

import functools
import random
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TESTS), str(TESTS / "hostile"), str(TESTS / "runtime")]

import ptms  # noqa: E402
from mutator import Mutator  # noqa: E402
from picotorch import BufferDataLoader, FlatTensorDataMap, Program, register_backend  # noqa: E402
from picotorch.host.inputs import checked_inputs  # noqa: E402
from picotorch.host.request import ATOL, RTOL  # noqa: E402
from picotorch.host.twin import output, set_inputs  # noqa: E402
from picotorch.inspect.inspecting import inspect  # noqa: E402
from picotorch.run import bundled  # noqa: E402
from picotorch.run.verifying import verify  # noqa: E402
from support import exercise, fixture_store  # noqa: E402

MAX_LENGTH = 8192
SECONDS = 30
LARGEST_FIXTURE = 3072  # bytes of a program: a larger one takes longer
EXTERNAL = ("external_two_files", "external_state")  # their .ptd files have no key in common


@functools.cache
def external():
    """Return (program, .ptd files) of the fixtures with .ptd files."""
    fixtures = [fixture_store.load(name) for name in EXTERNAL]
    return [(fixture.pte, fixture.data) for fixture in fixtures]


@functools.cache
def set_up():
    names = {name for fixture in fixture_store.load_all() for name in fixture.backends}
    for name in sorted(names | {"Doubling"}):  # the backend of test_delegates
        register_backend(name, exercise.Curious())


def one_input(data):
    """Return the name of the first Error, or "ok"."""
    set_up()
    identifier = data[4:8]
    if identifier == b"FT01":
        return data_file(data)
    if identifier == b"BP08":
        return bundled_program(data)
    data = ptms.with_sums(data)
    files = [file for _, files in external() for file in files]
    outcomes = exercise.Outcomes()
    with outcomes.named():
        repr(inspect(data, "model"))
    outcomes.names.append(exercise.outcome(data, files))
    return worst(outcomes)


def worst(outcomes):
    """Return the first Error, or "ok"."""
    return next((name for name in outcomes.names if name != "ok"), "ok")


def data_file(data):
    outcomes = exercise.Outcomes()
    with outcomes.named():
        found = FlatTensorDataMap.load(BufferDataLoader(exercise.exactly(data)))
        for key in found.keys():
            repr(found.get_tensor_layout(key))
            bytes(found.get_data(key))
    for program, files in external() if not outcomes.names else ():
        outcomes.names.append(exercise.outcome(program, [data, *files[1:]], False))
    return worst(outcomes)


def bundled_program(data):
    outcomes = exercise.Outcomes()
    with outcomes.named():
        bundle = bundled.read(exercise.exactly(data))
        repr(inspect(data, "model"))
        for case in bundle.sets:
            [value.array() for value in (*case.inputs, *case.expected)
             if isinstance(value, bundled.BundledTensor)]
        program = Program.load(BufferDataLoader(exercise.exactly(bundle.program)))
        for case in bundle.sets[:8]:
            with outcomes.named():
                execute_case(program, case)
        outcomes.names.append(exercise.outcome(bundle.program))
    return worst(outcomes)


def execute_case(program, case):
    meta = program.method_meta(case.method)
    given = [value.array() if isinstance(value, bundled.BundledTensor) else value
             for value in case.inputs]
    inputs = checked_inputs(meta, given)
    method = exercise.make_method(meta)
    method.load(program, case.method)
    exercise.give_memories(method, meta)
    set_inputs(method, meta, inputs)
    method.execute()
    outputs = [output(method, meta, i) for i in range(meta.num_outputs())]
    repr(verify(case, outputs, RTOL, ATOL))


def seeds():
    """Yield programs, .ptm files and .ptd files of the fixtures, programs of tests that no exporter
    writes, and bundled programs."""
    from test_bad_programs import CASES
    from test_delegates import sections
    from test_hostile_programs import PROGRAMS

    for fixture in fixture_store.load_all():
        if len(fixture.pte) <= LARGEST_FIXTURE:
            yield fixture.pte
            yield from fixture.data
    yield from ptms.seeds(LARGEST_FIXTURE)
    yield from PROGRAMS.values()
    yield from (make() for make, _ in CASES.values())
    yield from sections().values()
    yield from (path.read_bytes() for path in sorted((TESTS / "models" / "bundled").iterdir()))


@functools.cache
def _mutator():
    return Mutator(seeds())


def mutate(data, max_size, seed, plain):
    rng = random.Random(seed)
    changed = ptms.mutated(data, rng) if data[:4] == ptms.MAGIC else data
    if changed != data and rng.random() < 0.9:
        return changed[:max_size]
    return _mutator().mutate(bytes(data), max_size, seed, plain)
