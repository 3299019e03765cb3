#!/usr/bin/env python3
"""Write the table of docs/boards.md with the boards on which users have run picotorch.

    .venv/bin/python tools/hardware.py           # from the reports in docs/hardware
    .venv/bin/python tools/hardware.py --check   # status 1 if the table differs

docs/hardware/README.md describes a report.
"""

import json
import re
import sys
from datetime import datetime
from pathlib import Path

import click
from picotorch.host import quoting

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "boards.md"
REPORTS = ROOT / "docs" / "hardware"
PLACE = re.compile(r"(<!-- hardware -->\n).*?(<!-- end -->)", re.DOTALL)
TEXTS = ("name", "by", "picotorch", "date")
MODEL = "model int8_ds_cnn"
EMULATED = re.compile(r"mps[23]-|qemu|lm3s6965evb|netduinoplus2")
NONE = "No report was sent in yet, of any board.\n"
HEAD = ("| board | MicroPython | picotorch | `selftest` | int8 ds_cnn, executed once | "
        "run on hardware by |\n"
        "|---|---|---|---|---:|---|\n")


def is_passed(verdicts: list[bool | None]) -> bool:
    """Return True if a step passed and none failed. None is an omitted step."""
    return True in verdicts and False not in verdicts


def read(path: Path) -> dict:
    """Return a report. Raises ClickException for a file that is not a report."""
    try:
        report = json.loads(path.read_text())
        found = all(isinstance(report[name], str) and report[name] for name in TEXTS)
        day = datetime.fromisoformat(report["date"]).date().isoformat()
        steps = [(step["step"], step["passed"]) for step in report["steps"]]
        whole = found and bool(steps) and report["passed"] == is_passed([passed for _, passed in steps])
        facts = report["board"]["machine"], report["board"]["version"]
    except (ValueError, KeyError, TypeError) as error:
        raise click.ClickException(f"{path}: is not a report: {error!r}") from None
    if not whole or path.name != f"{report['name']}-{day}.json":
        raise click.ClickException(f"{path}: is not a report as docs/hardware/README.md says")
    if EMULATED.search(f"{facts[0]} {report['name']}"):
        raise click.ClickException(f"{path}: is of an emulated board")
    return report


def row(report: dict) -> str:
    steps = report["steps"]
    verdicts = [step["passed"] for step in steps]
    left_out = verdicts.count(None)
    result = f"{verdicts.count(True)} of {len(steps)} passed" + (
        f", {left_out} left out" if left_out else "")
    took = next((step.get("milliseconds") or {} for step in steps if step["step"] == MODEL), {})
    time = f"{took['execute']:,} ms" if took.get("execute") is not None else "not run"
    facts = report["board"]
    version = re.search(r"MicroPython (\S+)", facts["version"])
    cells = (f"{report['name']} ({facts['machine']})", version[1] if version else facts["version"],
             report["picotorch"], result, time, f"{report['by']} on {report['date'][:10]}")
    return "| " + " | ".join(quoting.html(cell).replace("|", "/") for cell in cells) + " |\n"


def table(folder: Path) -> str:
    reports = [read(path) for path in sorted(folder.glob("*.json"))]
    return HEAD + "".join(map(row, reports)) if reports else NONE


@click.command(help=__doc__)
@click.option("--check", "only_check", is_flag=True, help="Write nothing; compare.")
def main(only_check):
    text = PAGE.read_text()
    written = PLACE.sub(lambda found: found[1] + table(REPORTS) + found[2], text)
    if only_check:
        sys.exit(written != text)
    PAGE.write_text(written)


if __name__ == "__main__":
    main()
