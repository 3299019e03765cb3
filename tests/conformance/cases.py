"""Do one job in a worker: export programs, run them on both runtimes, compare.

A job returns results: dicts of name, group, status, message and call. Statuses:

    same            both runtimes have the same outputs
    as PyTorch      the outputs differ, and picotorch has PyTorch's
    only picotorch  ExecuTorch rejects the program, and picotorch has PyTorch's outputs
    both refuse     both reject the program
    no kernel       picotorch lacks an operator that ExecuTorch has
    refused         picotorch rejects a program that ExecuTorch runs
    differs         the outputs differ, and picotorch's are not PyTorch's
    not exported    ExecuTorch's exporter rejects the model
    aborted         ExecuTorch's runtime ended the process (the parent notes it)
    crashed         the twin ended the process
"""

import functools
import re

import torch
from conformance.comparing import difference
from conformance.runtimes import run_executorch, run_picotorch
from conformance.samples import Together
from executorch.exir import EdgeCompileConfig, to_edge
from picotorch import Error
from torch._export import utils

# Computing these operators takes half the time of an export, and the result is always the same
utils._collect_all_valid_cia_ops_for_namespace = functools.cache(
    utils._collect_all_valid_cia_ops_for_namespace)

FAILURES = ("refused", "differs", "crashed")
EXECUTORCH, TWIN = "ExecuTorch", "picotorch"


def result(name, group, status, message="", call=""):
    return {"name": name, "group": group, "status": status, "message": message, "call": call}


class Bench:
    """Both runtimes. Before each run, stage(text) reports it, so that the parent can name the runtime
    of a crash. log() returns the last line that ExecuTorch logged."""

    def __init__(self, stage, log):
        self.stage, self.log = stage, log

    def outputs(self, pte, runs, data=None):
        """Return (outputs, error) of ExecuTorch and of picotorch. The outputs are None if the runtime
        rejected the program."""
        self.stage(EXECUTORCH)
        theirs = self._guarded(lambda: run_executorch(pte, runs, data))
        self.stage(TWIN)
        ours = self._guarded(lambda: run_picotorch(pte, runs, data))
        self.stage("")
        return theirs, ours

    def _guarded(self, run):
        self.log()
        try:
            return run(), ""
        except Error as error:
            return None, str(error)
        except Exception as error:
            return None, self.log() or f"{type(error).__name__}: {error}"


# ---- operators


def run_operator(operator, counts, bench, alone=False, skip=()):
    """Yield the results of an operator's samples. All samples are one program if that works, else there
    is a program for each dtype, else for each sample. `alone` selects a program for each sample."""
    samples = [sample for sample in operator.samples(counts) if sample.name not in skip]
    for those in ([sample for sample in samples if not sample.dtype.is_complex],
                  [sample for sample in samples if sample.dtype.is_complex]):
        yield from _run_samples(those, bench, alone)  # complex ones apart: ExecuTorch rejects most


def _run_samples(samples, bench, alone):
    found = None if alone or len(samples) < 2 else _run_together(samples, bench)
    if found is not None:
        yield from found
        return
    dtypes = list(dict.fromkeys(sample.dtype for sample in samples))
    for dtype in dtypes:
        those = [sample for sample in samples if sample.dtype == dtype]
        if alone or len(dtypes) == 1:
            yield from _run_one_by_one(those, bench)
        else:
            yield from _run_samples(those, bench, False)


def _run_one_by_one(samples, bench):
    """Yield the results of samples of one dtype. If the first two fail alike, the others get the same
    result without a run."""
    results = []
    for sample in samples:
        if len(results) >= 2 and _alike(results):
            entry = results[0] | {"name": sample.name, "call": str(sample)}
        else:
            bench.stage(sample.name)
            entry = _run_alone(sample, bench)
        results.append(entry)
        yield entry


def _alike(results):
    ends = {(entry["status"], re.sub(r"\d+", "", entry["message"])) for entry in results}
    return len(ends) == 1 and results[0]["status"] in ("refused", "no kernel", "both refuse",
                                                       "not exported")


def _export(samples):
    inputs = tuple(tensor for sample in samples for tensor in sample.inputs)
    with torch.no_grad():
        exported = torch.export.export(Together(samples).eval(), inputs, strict=False)
    config = EdgeCompileConfig(_check_ir_validity=False)
    program = to_edge(exported, compile_config=config).to_executorch()
    return bytes(program.buffer), [("forward", list(inputs))]


def _run_together(samples, bench):
    """Return the results, or None if the exporter or a runtime rejected the program."""
    try:
        pte, runs = _export(samples)
    except Exception:
        return None
    (theirs, _), (ours, _) = bench.outputs(pte, runs)
    if theirs is None or ours is None:
        return None
    results, at = [], 0
    for sample in samples:
        expected = sample.expected()
        part = slice(at, at + len(expected))
        at += len(expected)
        results.append(_judged_sample(sample, (theirs[0][part], ""), (ours[0][part], ""), expected))
    return results


def _run_alone(sample, bench):
    try:
        pte, runs = _export([sample])
    except Exception as error:
        return result(sample.name, sample.group, "not exported", _first_line(error), str(sample))
    theirs, ours = bench.outputs(pte, runs)
    return _judged_sample(sample, _first_run(theirs), _first_run(ours), sample.expected())


def _judged_sample(sample, theirs, ours, expected):
    theirs, ours = ((sample.comparable(outputs), error) for outputs, error in (theirs, ours))
    return _judged(sample.name, sample.group, str(sample), theirs, ours, sample.comparable(expected))


def _first_run(outcome):
    outputs, why_not = outcome
    return (None if outputs is None else outputs[0]), why_not


def _judged(name, group, call, theirs, ours, expected):
    (their_outputs, their_error), (our_outputs, our_error) = theirs, ours
    if our_outputs is None:
        status = "no kernel" if "OperatorMissing" in our_error else "refused"
        if their_outputs is None:
            status = "both refuse"
        return result(name, group, status, f"{our_error} | {their_error}".rstrip(" |"), call)
    from_pytorch = difference(our_outputs, expected)
    if their_outputs is None:
        status = "differs" if from_pytorch else "only picotorch"
        return result(name, group, status, from_pytorch or their_error, call)
    from_executorch = difference(our_outputs, their_outputs)
    if not from_executorch:
        return result(name, group, "same", "", call)
    if not from_pytorch:
        return result(name, group, "as PyTorch", from_executorch, call)
    judged = "ExecuTorch is as PyTorch" if not difference(their_outputs, expected) else \
        f"PyTorch: {from_pytorch}"
    return result(name, group, "differs", f"{from_executorch} ({judged})", call)


def _first_line(error):
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else ''}"[:300]


# ---- the models of the zoo


def run_model(name, group, bench):
    """Return the result of one model of the zoo."""
    from models.zoo import exporter
    from models.zoo.models import FIXTURES

    model = FIXTURES[name].model()
    try:
        pte, data = exporter.export(model)
    except Exception as error:
        return result(name, group, "not exported", _first_line(error))
    theirs, ours = bench.outputs(pte, model.runs(), exporter.merge_data(data) if data else None)
    return _judged(name, group, "", _all_runs(theirs), _all_runs(ours), _expected(model))


def _all_runs(outcome):
    outputs, why_not = outcome
    return (None if outputs is None else [value for run in outputs for value in run]), why_not


def _expected(model):
    from models.zoo import reference

    try:
        return [value for run in reference.run_eager(model) for value in run]
    except Exception:
        return []
