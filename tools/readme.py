#!/usr/bin/env python3
"""Write the figures of README.md, from the tables of docs/performance.md and docs/reliability.md.

It is called in two ways:

    .venv/bin/python tools/readme.py           # make performance and make reliability call it
    .venv/bin/python tools/readme.py --check   # status 1 if README.md has other figures
"""

import re
import sys
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
PLACE = re.compile(r"(<!-- figures -->\n).*?(<!-- end -->)", re.DOTALL)


def rows(page: str, first: str) -> list[dict[str, str]]:
    """Return the rows of the first table of a page whose first column is called `first`."""
    found = []
    for line in (ROOT / "docs" / page).read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and cells[0] == first:
            found.append(cells)
        elif line.startswith("|") and found:
            found.append(cells)
        elif found:
            break
    if not found:
        raise click.ClickException(f"docs/{page} has no table with the column {first!r}")
    return [dict(zip(unique(found[0]), row, strict=True)) for row in found[2:]]


def unique(headings: list[str]) -> list[str]:
    """Return unique headings. A ratio belongs to the column before it: "pool ratio"."""
    return [f"{headings[i - 1]} ratio" if name == "ratio" else name for i, name in enumerate(headings)]


def between(values: list[float]) -> str:
    return f"{min(values):.2f} to {max(values):.2f}"


def figures() -> str:
    ratios = [float(cell.split(" / ")[0]) for row in rows("performance.md", "instructions, ratio")
              for name, cell in row.items() if name.startswith("M") and cell != "–"]
    pools, flash = (
        [float(row[f"{name} ratio"]) for row in rows("performance.md", "model")
         if row["weights"] == "none" and row[f"{name} ratio"] != "–"] for name in ("pool", "flash"))
    malformed = next(row["figures"] for row in rows("reliability.md", "what")
                     if row["what"].startswith("malformed files"))
    files, crashed, hung = (re.search(pattern, malformed)[1] for pattern in
                            (r"([\d,]+) files", r"(\d+) crashed", r"(\d+) hung"))
    theirs, ours = (next(row for row in rows("reliability.md", "verification")
                         if row["verification"].startswith(name))
                    for name in ("InternalConsistency", "picotorch"))
    return "\n".join([
        "| measured | picotorch |",
        "| --- | --- |",
        f"| [instructions of one inference](docs/performance.md), five int8 models, M0+ to M55 | "
        f"{between(ratios)} times those of ExecuTorch with CMSIS-NN |",
        f"| [method pool](docs/performance.md#models) of these models | {between(pools)} times "
        "ExecuTorch's, and known to the byte before flashing |",
        f"| [flash](docs/performance.md#models) of core and kernels | {between(flash)} times "
        "ExecuTorch's, loader and verification included |",
        f"| [malformed files](docs/reliability.md) | {files} tried, {crashed} crashed, {hung} hung. "
        f"picotorch rejects all {ours['refused']} files of another sample; ExecuTorch's runtime with "
        f"its strict verification crashes on {theirs['crashed']} of them |",
    ])


@click.command(help=__doc__)
@click.option("--check", is_flag=True, help="Write nothing; compare.")
def main(check):
    old = README.read_text()
    new = PLACE.sub(lambda found: f"{found[1]}{figures()}\n{found[2]}", old)
    if not check:
        README.write_text(new)
    elif new != old:
        sys.exit("README.md has other figures than docs/: .venv/bin/python tools/readme.py writes them")


if __name__ == "__main__":
    main()
