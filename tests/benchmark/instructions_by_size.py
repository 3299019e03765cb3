#!/usr/bin/env python3
"""Measure the instructions of operators by the sizes of their tensors, on a board of each kind of core.

    .venv/bin/python tests/benchmark/instructions_by_size.py

It writes instructions_by_size.json of host/picotorch/measure. The models are those of
docs/performance.md and the fixtures. Each model runs with the preferred and with the default size of
scratch memory. The program takes ten minutes.
"""

import itertools
import json
import re
import sys
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from picotorch import Error  # noqa: E402
from picotorch.boards.boards import load_board  # noqa: E402
from picotorch.host.instructions import KERNEL_CALL, read_instructions  # noqa: E402
from picotorch.host.request import Request  # noqa: E402
from picotorch.host.twin import open_program  # noqa: E402
from picotorch.host.values import Values  # noqa: E402
from picotorch.measure import (  # noqa: E402
    by_size,
    cycles,
    profiling,  # noqa: E402
)
from support import benchmark_store, fixture_store  # noqa: E402

BOARDS = ("mps2-an385-m0plus", "mps2-an385", "mps2-an386", "mps3-an547")
PATH = ROOT / "host" / "picotorch" / "measure" / "instructions_by_size.json"
MAX_CALLS = 20  # a call with MACs has at most this many times the instructions of a minimal call
NETWORK = 4  # number of operators of a network
FEW = 4  # calls of different sizes; operators with fewer calls share one fit


def requests(board):
    """Yield (name, request) of each model."""
    for name in benchmark_store.NAMES:
        model = benchmark_store.load(name)
        yield f"benchmark/{name}", Request(model.pte(board), name, model.inputs)
    for fixture in fixture_store.load_all():
        if not fixture.refused and not fixture.backends:
            run = fixture.runs[0]
            yield fixture.name, Request(fixture.pte, fixture.name, run.inputs, run.method,
                                        data=fixture.data)


def measured(board, name, request):
    """Return [(has less temp, rows)]. A row has (operator, dtype, features, instructions) of a call."""
    core = load_board(board).core
    found = []
    try:
        meta = open_program(request.model).method_meta(request.method)
        values, preferred = Values(meta.program, meta.plan), cycles.preferred_by(request, core)
        used = cycles.used_by(request)
        calls = {one.index: by_size.features_of(one, values)
                 for one in read_instructions(meta, values) if one.kind == KERNEL_CALL}
        for temp in sorted({used, preferred}, reverse=True):
            profile, _ = profiling.profile(request, board, temp)
            rows = [(*calls[row.index], row.ticks) for row in profile.instructions
                    if row.index in calls and row.calls == 1]
            found.append((temp < preferred, rows))
    except Error as error:
        print(f"{board}: {name}: {error}", file=sys.stderr)
    return found


def fitted(rows, call):
    """Return instructions for each of FEATURES. rows: (features, instructions). call: the instructions
    of a minimal call, used if there are too few rows to find them."""
    x, y = (np.array(one, float) for one in zip(*rows, strict=True))
    x, ones = x / y[:, None], np.ones(len(y))
    wanted = [0, 1, 2, 3] if x[:, 3].any() else [0, 1]
    if len(np.unique(x, axis=0)) < FEW:
        work = x[:, 3 if x[:, 3].any() else 1]
        rest = ones - call * x[:, 0]
        unit = max(0.0, float(np.median(rest[work > 0] / work[work > 0]))) if (work > 0).any() else 0.0
        found = [call, 0, 0, 0]
        found[3 if x[:, 3].any() else 1] = unit
        return found
    best = None
    for count in range(1, len(wanted) + 1):
        for columns in itertools.combinations(wanted, count):
            solution, *_ = np.linalg.lstsq(x[:, columns], ones, rcond=None)
            error = np.abs(x[:, columns] @ solution - ones).sum()
            is_sane = (solution >= 0).all() and (
                columns[0] or len(wanted) == 2 or solution[0] <= MAX_CALLS * call)
            if is_sane and (best is None or error < best[0]):
                best = error, dict(zip(columns, map(float, solution), strict=True))
    return [best[1].get(i, 0) for i in range(4)]


def call_of(models):
    """Return the instructions of a minimal call. models: the rows of each model."""
    return float(np.percentile([row[3] for one in models for row in one], 5))


def table(models, call):
    """Return factors by name, see by_size and fitted."""
    rows = [row for one in models for row in one]
    by_name = defaultdict(list)
    for operator, dtype, features, count in rows:
        for name in {f"{operator}, {dtype}", operator, f"{by_size.OTHERS}, {dtype}", by_size.OTHERS}:
            if count:
                by_name[name].append((features, count))
    found = {name: [float(f"{one:.3g}") for one in fitted(some, call)]
             for name, some in by_name.items()}
    return {name: factors for name, factors in sorted(found.items())
            if ", " not in name or factors != found[name.rpartition(", ")[0]]}


def expected(found, rows):
    """Return the instructions of a model by a table."""
    total = 0
    for operator, dtype, features, _ in rows:
        names = (f"{operator}, {dtype}", operator, f"{by_size.OTHERS}, {dtype}", by_size.OTHERS)
        total += np.dot(found[next(name for name in names if name in found)], features)
    return total


def errors_without(models, call):
    """Return the errors of networks by a table of the other models, as logarithms of factors. A network
    has NETWORK operators, and the other models have each of them."""
    used_by = defaultdict(set)
    for name, rows in models.items():
        for row in rows:
            used_by[row[0]].add(name)
    found = {}
    for name, rows in models.items():
        counted = sum(row[3] for row in rows)
        operators = {row[0] for row in rows}
        if len(operators) >= NETWORK and all(len(used_by[one]) > 1 for one in operators):
            others = table([one for other, one in models.items() if other != name], call)
            found[name] = float(np.log(expected(others, rows) / counted))
    return found


def measured_models(board):
    """Return {name: [(has less temp, rows)]} of all models on a board, see measured."""
    wanted = list(requests(board))
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda one: measured(board, *one), wanted))
    return dict(zip([name for name, _ in wanted], results, strict=True))


def write(results):
    """Write the tables, and print their errors. results: measured_models by core."""
    tables, errors = {"usual": {}, "less": {}}, {}
    for core, found in results.items():
        models = {less: {name: rows for name, one in found.items() for is_less, rows in one
                         if is_less == less} for less in (False, True)}
        call = call_of(models[False].values())
        # Operators that no model has keep their factors
        tables["usual"][core] = json.loads(PATH.read_text())["usual"][core] | table(
            models[False].values(), call)
        # All other cores have the same loops with any size of scratch memory
        with_macs = [[row for row in rows if row[2][3]] for rows in models[True].values()]
        tables["less"][core] = {name: factors for name, factors in table(with_macs, call).items()
                                if not name.startswith(by_size.OTHERS)}
        errors |= {f"{core} {name}": error
                   for name, error in errors_without(models[False], call).items()}
    sizes = sorted(abs(error) for error in errors.values())
    tables["half"], tables["factor"] = (round(float(np.exp(np.percentile(sizes, part))), 2)
                                        for part in (50, 90))
    text = json.dumps(tables, indent=1, sort_keys=True)
    PATH.write_text(re.sub(r"\[[^\]]*\]", lambda found: re.sub(r"\s+", " ", found[0]), text) + "\n")
    for name, error in sorted(errors.items(), key=lambda one: abs(one[1])):
        print(f"{np.exp(error):6.2f}  {name}")
    print(f"half within a factor of {tables['half']}, nine in ten within {tables['factor']}")


def main():
    write({load_board(board).core: measured_models(board) for board in BOARDS})


if __name__ == "__main__":
    main()
