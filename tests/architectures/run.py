#!/usr/bin/env python3
"""Export architectures of transformers and timm and run them on the twin, in ExecuTorch's runtime, and
some on an emulated board.

This program needs both packages and the `export` extra; `make architectures` sets up an environment. An
architecture agrees if the outputs of both runtimes differ by at most 1e-5 of the largest output, and if
the outputs of the board equal the twin's to the bit.
"""

import argparse
import fnmatch
import json
import logging
import os
import sys
import time
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

sys.path.insert(0, str(ROOT / "tests"))
_EXAMPLES = """examples:
  tests/architectures/run.py                         all of them
  tests/architectures/run.py --only 'timm: *vit*'    those of this name
  tests/architectures/run.py --large --jobs 1        those in full size, one after the other
"""
AGREES = ("same",)
SECONDS = 1200.0  # maximum for one architecture


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=_EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="PATTERN", action="append", help="those of this name")
    parser.add_argument("--large", action="store_true",
                        help="those in full size, of which each takes minutes and some GB of memory")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N",
                        help="processes (default: one for each core)")
    parser.add_argument("--json", type=Path, metavar="OUT.JSON",
                        default=ROOT / "build" / "architectures.json", help="where the results go")
    parser.add_argument("--list", action="store_true", help="the names")
    return parser.parse_args()


def show(number, of, entry):
    difference = f"{entry['difference']:.1e}" if "difference" in entry else ""
    size = f"{entry['bytes'] / 1000:,.0f} kB" if "bytes" in entry else ""
    text = f"{number:>3} of {of}  {entry['name']:<36} {size:>10} {difference:>8}  {entry['status']}"
    text += "".join(f", {board} to the bit" for board in entry.get("boards", ())
                    if entry["status"] in AGREES)
    print(f"{text}{': ' * bool(entry['message'])}{entry['message'][:300]}", flush=True)


def main():
    arguments = parse_arguments()
    logging.disable(logging.CRITICAL)
    warnings.filterwarnings("ignore")
    try:
        import torch
        from architectures.agreement import ARCHITECTURES, examine, export
        from architectures.large import ARCHITECTURES as LARGE
        from conformance.workers import Job, run_jobs
    except ImportError as error:
        print(f"architectures: {error}; make architectures installs what it needs", file=sys.stderr)
        return 2
    torch.set_num_threads(1)
    names = [name for name in (LARGE if arguments.large else ARCHITECTURES)
             if any(fnmatch.fnmatch(name, pattern) for pattern in arguments.only or ["*"])]
    if arguments.list or not names:
        print("\n".join(names) or "architectures: none of this name; --list shows all")
        return 0 if names else 2
    start, results = time.monotonic(), []
    if arguments.jobs > 1:
        export(names[0])  # one export first, so that the processes share the look-ups of the exporter

    def take(entry):
        results.append(entry)
        show(len(results), len(names), entry)
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps(results, indent=1) + "\n")

    jobs = [Job(name, name.partition(":")[0], run=examine) for name in names]
    run_jobs(jobs, max(1, arguments.jobs), take, lambda: None, SECONDS)
    agree = [entry for entry in results if entry["status"] in AGREES]
    on_board = [entry for entry in agree if entry["boards"]]
    print(f"{len(agree)} of {len(names)} architectures agree, {len(on_board)} of them on a board, in "
          f"{time.monotonic() - start:.0f} s; all in {arguments.json}")
    return 0 if len(agree) == len(names) else 1


if __name__ == "__main__":
    sys.exit(main())
