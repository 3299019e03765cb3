#!/usr/bin/env python3
"""Run the malformed files of the tests in ExecuTorch's own runtime and in picotorch's, and count the
outcomes.

Each file is loaded and run with each verification, in processes that may crash. Files of fixtures that
this ExecuTorch cannot run unchanged, because it lacks an operator or a backend, are left out. The
program needs the environment of make conformance:

    build/conformance/bin/python tests/conformance/malformed_executorch.py

--page selects one file in twenty of the groups whose files picotorch rejects, and writes the table of
docs/reliability.md.
"""

import argparse
import collections
import contextlib
import importlib
import json
import multiprocessing
import os
import re
import signal
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
SECONDS = 30  # for one file; an endless loop runs 10,000,000 instructions
LARGEST = 1 << 27  # maximum bytes of an input
VERIFICATIONS = ("InternalConsistency", "Minimal", "picotorch")
OUTCOMES = ("refused", "accepted", "crashed", "hung")
CONTRACT = "contract"
PAGE = ROOT / "docs" / "reliability.md"
PAGE_EVERY, PAGE_GROUPS = 20, ("tables", "references", "fields", "calls")
# Minimal is omitted: the outcome of a file depends on the memory behind it, and differs between runs
PAGE_ROWS = {"InternalConsistency": "InternalConsistency, the strict one",
             "picotorch": "picotorch, strict"}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--group", action="append", help="files of these groups only")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="each Nth file only")
    parser.add_argument("--json", type=Path, default=ROOT / "build" / "malformed_executorch.json",
                        metavar="OUT.JSON", help="where the outcome of each file goes")
    parser.add_argument("--page", action="store_true", help="write the table of docs/reliability.md")
    arguments = parser.parse_args()
    if arguments.page:
        arguments.every, arguments.group = PAGE_EVERY, PAGE_GROUPS
    return arguments


def chosen(groups, every):
    """Select the files without bundled programs, which this runtime does not load."""
    from support import malformed

    malformed.load_kinds()
    found = [file for kind, entry in malformed.KINDS.items() if entry.group != "bundled"
             and (not groups or entry.group in groups) for file in malformed.files(kind)]
    found = found[::every]
    sources = sorted({source_of(file) for file in found} - {malformed.EXAMPLE})
    wholes = [malformed.File("whole", name, malformed.fixture(name).pte,
                             tuple(malformed.fixture(name).data), ()) for name in sources]
    outcomes = run(wholes, "InternalConsistency")
    known = {file.label for file, outcome in zip(wholes, outcomes, strict=True)
             if outcome == "accepted"}
    return [file for file in found if source_of(file) in known]


def source_of(file):
    return file.label.split(":")[0]


# ---- in separate processes


def attempt(file, verification):
    """Load and run a file. Raise an exception if the runtime rejects it."""
    package = "picotorch" if verification == "picotorch" else "executorch"
    runtime = importlib.import_module(f"{package}.runtime")
    strict = {} if package == "picotorch" else {
        "verification": getattr(runtime.Verification, verification)}

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.pte"
        path.write_bytes(file.data)
        data_path = Path(folder) / "model.ptd" if file.files else None
        if len(file.files) > 1:
            raise ValueError("takes one .ptd file")
        if data_path:
            data_path.write_bytes(file.files[0])
        program = runtime.Runtime.get().load_program(path, data_path=data_path, **strict)
        for name in sorted(program.method_names):
            method = program.load_method(name)
            meta = method.metadata
            method.execute([zeros(meta, i) for i in range(meta.num_inputs())])


def zeros(meta, i):
    import torch

    info = meta.input_tensor_meta(i)
    if not 0 <= info.nbytes() <= LARGEST:
        raise ValueError("an input of no possible size")
    return torch.zeros(list(info.sizes()), dtype=dtypes()[info.dtype()])


def dtypes():
    """Return the dtypes by ExecuTorch's number."""
    import torch

    return {0: torch.uint8, 1: torch.int8, 2: torch.int16, 3: torch.int32, 4: torch.int64,
            5: torch.float16, 6: torch.float32, 7: torch.float64, 11: torch.bool, 15: torch.bfloat16}


def work(connection, files, verification):
    """Send for each file in turn whether the runtime accepts it."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    for file in files:
        signal.alarm(SECONDS)
        try:
            attempt(file, verification)
        except Exception:
            connection.send("refused")
        else:
            connection.send("accepted")
    os._exit(0)


def run(files, verification):
    """Return the outcome of each file. If a process crashes, its last file is tried again in a new
    process, because earlier files may have caused the crash."""
    outcomes = []
    alone = False
    while len(outcomes) < len(files):
        rest = files[len(outcomes) :][: 1 if alone else None]
        found, end = one_process(rest, verification)
        outcomes += found
        if len(found) == len(rest):
            alone = False
        elif len(rest) == 1 or not found:
            outcomes.append("hung" if end == signal.SIGALRM else "crashed")
            alone = False
        else:
            alone = True
    return outcomes


def one_process(files, verification):
    """Return (the outcomes before the process ended, the signal that ended it)."""
    context = multiprocessing.get_context("fork")
    receiving, sending = context.Pipe(duplex=False)
    process = context.Process(target=work, args=(sending, files, verification))
    process.start()
    sending.close()
    outcomes = []
    with contextlib.suppress(EOFError):
        while True:
            outcomes.append(receiving.recv())
    process.join()
    return outcomes, -process.exitcode


# ---- results


def show(results):
    counts = collections.Counter((entry["group"], entry["verification"], entry["outcome"])
                                 for entry in results)
    print(f"{'group':12} {'verification':20}", *(f"{outcome:>9}" for outcome in OUTCOMES))
    for group, verification in sorted({key[:2] for key in counts}):
        numbers = (counts[group, verification, outcome] for outcome in OUTCOMES)
        print(f"{group:12} {verification:20}", *(f"{number:9}" for number in numbers))
    for verification in VERIFICATIONS:
        numbers = totals(results, verification)
        print(f"{'all bad ones':12} {verification:20}", *(f"{number:9}" for number in numbers))


def totals(results, verification):
    """Count each outcome of the files that a runtime should reject."""
    return [sum(entry["group"] != CONTRACT and entry["verification"] == verification
                and entry["outcome"] == outcome for entry in results) for outcome in OUTCOMES]


def write_page(results):
    lines = [f"| verification | files | {' | '.join(OUTCOMES)} |", "| --- |" + " ---: |" * 5]
    for verification, words in PAGE_ROWS.items():
        numbers = totals(results, verification)
        lines.append(f"| {words} | {sum(numbers)} | {' | '.join(map(str, numbers))} |")
    table = "\n".join(["", *lines, ""])
    place = re.compile(r"(<!-- compared -->).*?(<!-- end -->)", re.DOTALL)
    PAGE.write_text(place.sub(lambda found: found[1] + table + found[2], PAGE.read_text()))


def main():
    arguments = parse_arguments()
    import torch
    from executorch.runtime import Runtime
    from support import malformed

    torch.set_num_threads(1)
    Runtime.get()
    files = chosen(arguments.group, arguments.every)
    results = []
    for verification in VERIFICATIONS:
        for file, outcome in zip(files, run(files, verification), strict=True):
            results.append({"kind": file.kind, "group": malformed.KINDS[file.kind].group,
                            "file": file.label, "verification": verification, "outcome": outcome})
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    arguments.json.write_text(json.dumps(results, indent=1) + "\n")
    print(f"{len(files)} files; each outcome is in {arguments.json}")
    show(results)
    if arguments.page:
        write_page(results)


if __name__ == "__main__":
    main()
