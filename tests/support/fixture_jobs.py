"""Make the jobs of tests/on_board/loaded.py: a fixture's program, data files and runs as sections."""

from picotorch import BufferDataLoader, Program
from picotorch.host.tensors import to_stored
from picotorch.run.job import Job
from picotorch.schema import KERNEL_TYPES_TENSOR
from support.fixture_store import UNLOCKED
from support.targets import aligned


def constant(value):
    """Write a number, string or None as the script reads it."""
    if value is None:
        return "none:"
    if value.dtype.kind == "U":
        return f"str:{value}"
    kind = {"b": "bool", "i": "int", "f": "float"}[value.dtype.kind]
    return f"{kind}:{value.astype(int) if kind == 'bool' else value}"


def metas(fixture):
    """Return the MethodMeta of each method by name."""
    program = Program.load(BufferDataLoader(aligned(fixture.pte)))
    return {name: program.method_meta(name) for name in fixture.methods}


def script_of(script, fixtures):
    """Return the script, joined behind the scripts that it needs for these fixtures."""
    backends = "backends.py+" if any(fixture.backends for fixture in fixtures) else ""
    return f"{backends}loaded.py+{script}"


def add_fixture(job, fixture, prefix=""):
    """Add the sections of a fixture to a job, with a prefix of their names."""
    job.add(f"{prefix}model", fixture.pte)
    for i, data in enumerate(fixture.data):
        job.add(f"{prefix}data{i}", data)
    settings = {"methods": ",".join(fixture.methods), "unlocked": UNLOCKED.get(fixture.name, "")}
    if fixture.entry.get("shares_memory"):
        settings["shares_memory"] = 1
    signatures = metas(fixture)
    for number, run in enumerate(fixture.runs):
        settings[f"run{number}"] = run.method
        meta = signatures[run.method]
        for i, value in enumerate(run.inputs):
            if meta.input_tag(i) == KERNEL_TYPES_TENSOR:
                info = meta.input_tensor_meta(i)
                job.add(f"{prefix}in{number}_{i}", to_stored(value, info.dim_order()))
                if info.is_dynamic():
                    settings[f"sizes{number}_{i}"] = ",".join(map(str, value.shape))
            else:
                settings[f"input{number}_{i}"] = constant(value)
    job.add_settings(f"{prefix}settings", settings)


def job_of(fixture):
    """Return the job of one fixture."""
    job = Job()
    add_fixture(job, fixture)
    return job
