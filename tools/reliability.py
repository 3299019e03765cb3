"""Print the counts of the reliability tests and write them into docs/reliability.md.

    make reliability        # runs the tests, then this

The tests write their numbers to build/reliability (tests/support/figures.py). The exit status is 1 if a
subject is missing, or if something crashed, hung or had a wrong result.
"""

import json
import re
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "reliability.md"
FOLDER = ROOT / "build" / "reliability"
FAULTS = ("crashed", "hung", "wrong")  # counts that have to be 0


@dataclass(frozen=True)
class Row:
    """A line of the table: `text` is formatted with the numbers of the subject."""

    subject: str
    what: str
    text: str
    command: str


def tests(*names):
    """Return the command that runs these files of tests."""
    paths = [path.relative_to(ROOT) for name in names for path in ROOT.glob(f"tests/*/{name}.py")]
    return f'make test-all PYTEST="{" ".join(map(str, paths))}"'


ROWS = (
    Row("damage", "damaged files: each byte of header and tables changed; files cut near each 64th "
        "byte",
        "{files:,} files of {parts} kinds and fixtures: {refused_total:,} refused by name, "
        "{accepted:,} changes without effect, {crashed} crashed, {wrong} ended otherwise or "
        "hung", tests("test_damage")),
    Row("malformed", "malformed files: real fixtures with one thing changed",
        "{files:,} files of {kinds_kinds} kinds: {refused_total:,} refused by name, "
        "{accepted_by_contract} accepted as by ExecuTorch and run, {crashed} crashed, {hung} hung, "
        "{wrong} ended otherwise; none took more than {largest_seconds:.1f} s of a core, with "
        "sanitizers", tests("test_malformed")),
    Row("malformed_on_boards", "the same on boards, some files of each kind",
        "{files:,} files on {parts} boards, with the twin's text: {refused_total:,} refused by name, "
        "{accepted_by_contract} accepted, {crashed} crashed, {wrong} ended otherwise, {hung} took more "
        "than 8 million instructions and 1,000 for each byte (endless loops: than 2,000 million)",
        tests("test_malformed")),
    Row("fuzz", "fuzzing of files, operators, programs and the library, guided by coverage",
        "{hours:.1f} hours of processes, {executions:,} executions, findings: {fixed}, fixed; of "
        "{inputs:,} inputs kept {crashed} crash, {wrong} end otherwise", "make fuzz MINUTES=60"),
    Row("sanitized_library", "fixtures, malformed files and the fuzzers' inputs in the C library "
        "alone, 64 and 32 bits, with sanitizers",
        "{inputs:,} inputs, {executions:,} executions at each width, 0 crashed, {different} with other "
        "errors, records or outputs at 32 bits", tests("test_sanitizers_32")),
    Row("operators", "all operators, called with random hostile arguments",
        "{calls:,} calls: {run:,} run, {refused_total:,} refused by name, {crashed} crashed, {wrong} "
        "wrote outside their outputs; none took more than {largest_seconds:.2f} s of a core, with "
        "sanitizers", tests("test_hostile_calls")),
    Row("assembled", "programs made of such calls",
        "{programs:,} programs: {run:,} run, {refused_total:,} refused by name, {crashed} crashed, "
        "{wrong} ended otherwise", tests("test_hostile_assemblies")),
    Row("memory", "every fixture, every size of every memory, on the twin",
        "{pool:,} sizes of the pool, {packed:,} with packed weights, {temp:,} of temp memory, "
        "{planned:,} of planned buffers, {tracer:,} of tracers, too small; {unfit:,} memories "
        "misaligned, read-only or missing; {values:,} inputs and outputs of another length: all "
        "refused by name; {again:,} times the same objects ran again right after; {wrong} wrong",
        "make reliability"),
    Row("memory_boards", "the same on boards, at the sizes where the outcome changes",
        "{outcomes:,} outcomes in {parts} boots, with the twin's lines; {wrong} boots ended otherwise",
        "make reliability"),
    Row("memory_beside", "a method with state, while later loads fail",
        "{sizes:,} sizes of the pool, {runs} runs, {wrong} changed the method",
        tests("test_memory_failures")),
    Row("faults", "every call in every state, faults of kernels and backends",
        "{calls:,} calls, {refused:,} of them refused by name, each as the table in faults.md states",
        tests("test_faults")),
    Row("interrupts", "ctrl-C at every place",
        "{interrupts:,} interrupted calls; after each all objects were usable",
        tests("test_interrupts")),
    Row("long_run", "a model with state, loads, failures and unloads in between",
        "{inferences:,} inferences, {events_total:,} events of {events_kinds} kinds: same bytes on "
        "twin and board, no growth of heap and pool", tests("test_long_run")),
    Row("stack", "stack on boards",
        "{models:,} fixtures on boards: at most {largest_load:,} bytes to load and {largest_execute:,} "
        "to execute, at most {largest_share} % of what size states; {deep_calls:,} calls from the "
        "deepest levels of recursion, each works or is refused",
        tests("test_stack", "test_fixture_runs")),
    Row("kernels", "kernels against numpy, random arguments",
        "{operators} operators, {random_calls:,} random calls, {kernel_runs:,} runs "
        "({runs_with_sanitizers:,} with sanitizers and poisoned guard bytes), {board_calls:,} calls on "
        "boards, {wrong} wrong", tests("test_oracles")),
    Row("supply", "supply",
        "{hashes:,} stored hashes of downloads, {packages} packages pinned, {refused} changed "
        "files refused; {identical} builds of wheel and firmware identical in other folders; "
        "{commands_watched} commands without network",
        tests("test_get_micropython", "test_requirements", "test_reproducible", "test_no_network")),
)


def merged(parts):
    """Return the numbers of all parts of a subject as one dict; `parts` counts them."""
    found = {"parts": len(parts)}
    for numbers in parts:
        for key, value in numbers.items():
            if isinstance(value, dict):
                found[key] = Counter(found.get(key, {})) + Counter(value)
            elif key.startswith("largest_"):
                found[key] = max(found.get(key, value), value)
            else:
                found[key] = found.get(key, 0) + value
    for key in [key for key, value in found.items() if isinstance(value, dict)]:
        found[f"{key}_total"] = sum(found[key].values())
        found[f"{key}_kinds"] = len(found[key])
    return found


def read(subject):
    parts = [json.loads(path.read_text()) for path in sorted((FOLDER / subject).glob("*.json"))]
    if not parts:
        raise click.ClickException(f"nothing of {subject} is in build/reliability: "
                                   "make reliability measures all")
    return merged(parts)


def show(lines):
    table = Table("what", "figures", "command")
    for line in lines:
        table.add_row(*line)
    Console(width=max(Console().width, 120)).print(table)


def write(lines):
    rows = [f"| {what} | {text} | `{command}` |" for what, text, command in lines]
    table = "\n".join(["| what | figures | command |", "| --- | --- | --- |", *rows])
    changed = re.sub(r"(<!-- figures -->\n).*?(<!-- end -->)",
                     lambda found: f"{found[1]}{table}\n{found[2]}", DOCUMENT.read_text(),
                     flags=re.DOTALL)
    DOCUMENT.write_text(changed)


@click.command(help=__doc__)
@click.option("--check", is_flag=True, help="Print only; leave the document as it is.")
def main(check):
    lines, faults = [], []
    for row in ROWS:
        numbers = read(row.subject)
        lines.append((row.what, row.text.format(**numbers), row.command))
        faults += [f"{row.what}: {numbers[key]} {key}" for key in FAULTS if numbers.get(key)]
    show(lines)
    if not check:
        write(lines)
    sys.exit("\n".join(faults) or 0)


if __name__ == "__main__":
    main()
