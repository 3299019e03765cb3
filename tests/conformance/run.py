#!/usr/bin/env python3
"""Export programs afresh with ExecuTorch and run them on the twin and on ExecuTorch's own runtime.

Operators are called with PyTorch's OpInfo samples, in each dtype; programs are the models of
tests/models/zoo. The program needs the `export` extra in the environment of picotorch; make conformance
sets one up.
"""

import argparse
import collections
import fnmatch
import itertools
import json
import logging
import os
import re
import signal
import sys
import time
import tomllib
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KNOWN = Path(__file__).resolve().parent / "known.toml"

sys.path.insert(0, str(ROOT / "tests"))
QUICK = 6
STEP = 10  # jobs between two lines of progress without a terminal
LONGEST = 500  # maximum characters of a line about a difference
_EXAMPLES = """examples:
  tests/conformance/run.py                      all of it
  tests/conformance/run.py --quick              each sixth operator and program
  tests/conformance/run.py --only 'conv2d*'     jobs of this name
"""


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=_EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true",
                        help=f"a fixed part: each {QUICK}th operator and program")
    parser.add_argument("--only", metavar="PATTERN", action="append", help="jobs of this name")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N",
                        help="processes (default: one for each core)")
    parser.add_argument("--json", type=Path, metavar="OUT.JSON",
                        default=ROOT / "build" / "conformance.json", help="where all results go")
    parser.add_argument("--list", action="store_true", help="the names of the jobs")
    return parser.parse_args()


def make_jobs(quick):
    from conformance.samples import SAMPLES, operators
    from conformance.workers import Job
    from models.zoo.models import FIXTURES

    jobs = [Job(operator.name, "operators", operator, SAMPLES) for operator in operators()]
    models = [Job(name, f"programs, {fixture.build.__module__.split('.')[-1]}")
              for name, fixture in FIXTURES.items() if _compared(fixture)]
    return jobs[::QUICK] + models[::QUICK] if quick else jobs + models


def _compared(fixture):
    """Return True if the installed ExecuTorch runtime can run a model of the zoo."""
    if fixture.refused or fixture.build.__module__.endswith((".cortex_m", ".mlperf_tiny")):
        return False
    model = fixture.model()
    return model.reference == "executorch" and model.partitioner is None and not model.inline_constants


def run(jobs, count, path):
    """Run the jobs with a progress bar. Return the results sorted by group and name, also after an
    interrupt. The file at path has the results so far."""
    from conformance.cases import FAILURES
    from conformance.workers import run_jobs
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn

    results, ended = [], itertools.count(1)
    console = Console()
    columns = ("{task.description}", BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, auto_refresh=False, console=console) as progress:
        task = progress.add_task("operators and programs", total=len(jobs))

        def done():
            progress.update(task, advance=1, refresh=True)
            number = next(ended)
            if number % STEP == 0:
                write(path, results)
            if not console.is_terminal and number % STEP == 0:
                wrong = sum(entry["status"] in FAILURES for entry in results)
                print(f"{number} of {len(jobs)} operators and programs; of {len(results)} results "
                      f"{wrong} do not agree", flush=True)

        try:
            run_jobs(jobs, count, results.append, done)
        except KeyboardInterrupt:
            print("interrupted")
    return sorted(results, key=lambda entry: (entry["group"], entry["name"]))


def write(path, results):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(results, indent=1) + "\n")


def mark_known_differences(results):
    """Mark the failures that known.toml explains. Return the explanations that no failure needs."""
    known = tomllib.loads(KNOWN.read_text()).get("known", [])
    used = set()
    for entry in results:
        for number, explanation in enumerate(known):
            if _explains(explanation, entry):
                entry["known"] = explanation["reason"]
                used.add(number)
    return [explanation for number, explanation in enumerate(known) if number not in used]


def _explains(explanation, entry):
    return (entry["status"] == explanation["status"]
            and any(fnmatch.fnmatch(entry["name"], name) for name in explanation["names"]))


def show(results, seconds):
    from conformance.cases import FAILURES
    from rich.console import Console
    from rich.table import Table

    console = Console()
    statuses = [status for status, _ in
                collections.Counter(entry["status"] for entry in results).most_common()]
    table = Table(title=f"{len(results)} programs and samples in {seconds:.0f} s")
    table.add_column("group")
    for status in statuses:
        table.add_column(status, justify="right")
    groups = collections.defaultdict(collections.Counter)
    for entry in results:
        groups[entry["group"]][entry["status"]] += 1
    for group, counts in sorted(groups.items()):
        table.add_row(group, *(str(counts[status] or "") for status in statuses))
    console.print(table)
    alike = collections.defaultdict(list)
    for entry in results:
        if entry["status"] in (*FAILURES, "as PyTorch", "aborted"):
            operator = entry["name"].rpartition(" ")[0] or entry["name"]
            alike[entry["status"], operator, re.sub(r"\d+", "", entry["message"])].append(entry)
    for entries in alike.values():
        _show_alike(entries)


def _show_alike(entries):
    """Print one line for all failures of one operator with the same reason."""
    entry = entries[0]
    more = f" (and {len(entries) - 1} like it)" if len(entries) > 1 else ""
    known = f" [known: {entry['known']}]" if "known" in entry else ""
    text = f"{entry['status']}: {entry['call'] or entry['name']}{more}: {entry['message']}"
    print((text if len(text) < LONGEST else text[:LONGEST] + " ...") + known)


def main():
    arguments = parse_arguments()
    logging.disable(logging.CRITICAL)
    warnings.filterwarnings("ignore")
    sys.setrecursionlimit(10_000)
    try:
        import torch
        from conformance.cases import FAILURES

        torch.set_num_threads(1)
        jobs = make_jobs(arguments.quick)
    except ImportError as error:
        print(f"conformance: {error}; make conformance installs what it needs", file=sys.stderr)
        return 2
    if arguments.only:
        jobs = [job for job in jobs
                if any(fnmatch.fnmatch(job.name, pattern) for pattern in arguments.only)]
        if not jobs:
            print("conformance: no job of this name; --list shows all", file=sys.stderr)
            return 2
    if arguments.list:
        print("\n".join(job.name for job in jobs))
        return 0
    start = time.monotonic()
    for ending in (signal.SIGINT, signal.SIGTERM):  # the workers end with this process
        signal.signal(ending, signal.default_int_handler)
    results = run(jobs, max(1, arguments.jobs), arguments.json)
    unneeded = mark_known_differences(results)
    show(results, time.monotonic() - start)
    write(arguments.json, results)
    wrong = [entry for entry in results if entry["status"] in FAILURES and "known" not in entry]
    if not (arguments.quick or arguments.only):
        for explanation in unneeded:
            print(f"known.toml: nothing needs {explanation['names']} any more")
    print(f"{len(results) - len(wrong)} of {len(results)} agree or are known; {len(wrong)} do not; "
          f"all in {arguments.json}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
