"""Writes the tables of docs/performance.md from what bench, bench_ops and cycles have measured.

    make performance        # measures all of it, then this

Between the comments <!-- name --> and <!-- end --> of the document each table is replaced.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tools")]

import benchmark_store  # noqa: E402

DOCUMENT = ROOT / "docs/performance.md"
BOARDS = {"mps2-an385-m0plus": "M0+", "mps2-an385": "M3", "mps2-an386": "M4F", "mps2-an500": "M7",
          "mps2-an505": "M33", "mps3-an547": "M55"}
FLOAT_MODELS = ["ds_cnn", "resnet8", "mobilenet_v1_025", "deep_autoencoder"]


def read(name):
    path = ROOT / "build" / f"{name}.json"
    if not path.exists():
        raise click.ClickException(f"there is no build/{path.name}: make performance measures it")
    return json.loads(path.read_text())


def grid(headings, rows, left=1):
    """A Markdown table; all columns but the first `left` to the right."""
    lines = [headings, ["---"] * left + ["---:"] * (len(headings) - left), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def number(value):
    return "–" if value is None else f"{value:,}"


def ratio(value):
    return "–" if value is None else f"{value:.3f}"


def core_of(entry):
    return BOARDS[entry["board"]]


def measured():
    """With what the figures were measured."""
    def first_line(*command):
        return subprocess.check_output(command, text=True, cwd=ROOT).splitlines()[0]

    return (f"Measured at commit {first_line('git', 'rev-parse', '--short=10', 'HEAD')} with "
            f"{first_line('arm-none-eabi-gcc', '--version')}, and "
            f"QEMU {first_line('qemu-system-arm', '--version').split()[3]}.")


def selected(entries, models):
    """Those of the models on the six cores, in the order of both."""
    places = {name: i for i, name in enumerate(models)}
    cores = list(BOARDS)
    return sorted((e for e in entries if e["fits"] and e["model"] in places and e["board"] in BOARDS),
                  key=lambda e: (places[e["model"]], cores.index(e["board"]), e["prepare"]))


def ratios(entries):
    """Model by core: without and with prepared constants."""
    found = {(e["model"], core_of(e), e["prepare"]): e.get("ratio", {}).get("execute") for e in entries}
    rows = []
    for model in benchmark_store.NAMES:
        row = [model]
        for core in BOARDS.values():
            modes = [found.get((model, core, mode)) for mode in ("none", "pool")]
            row.append(" / ".join(ratio(value) for value in modes if value is not None) or "–")
        rows.append(row)
    return grid(["instructions, ratio", *BOARDS.values()], rows)


def models(entries):
    rows = []
    for e in entries:
        against = e.get("ratio", {})
        rows.append([e["model"], core_of(e), e["prepare"], number(e["execute"]),
                     ratio(against.get("execute")), ratio(e.get("macs_per_instruction")),
                     number(e["pool"]), ratio(against.get("pool")), number(e["prepared"]),
                     number(e["planned"]), number(e["temp"]), number(e["stack_execute"]),
                     ratio(against.get("stack_execute")),
                     number(e["core_and_kernels"]), ratio(against.get("core_and_kernels"))])
    return grid(["model", "core", "prepare", "instructions", "ratio", "MACs an instruction", "pool",
                 "ratio", "prepared in it", "planned", "temp", "stack", "ratio", "flash", "ratio"],
                rows, left=3)


def loading(entries):
    """Model by core, for load without preparing: to verify and to load."""
    rows = {}
    for e in entries:
        if e["prepare"] == "none":
            rows.setdefault(e["model"], {})[core_of(e)] = number(e["verify"] + e["load"])
    return grid(["instructions to load", *BOARDS.values()],
                [[model, *(row.get(core, "–") for core in BOARDS.values())]
                 for model, row in rows.items()])


def one_of_operator(plain, prepared):
    """Ratio and share of the limit; both without and with prepared constants where they differ."""
    modes = [plain] if plain["instructions"] <= prepared["instructions"] else [plain, prepared]
    text = " / ".join(f"{e['ratio']:.2f}" for e in modes) if plain["ratio"] else "–"
    if plain["limit"] is None:
        return text
    return f"{text} ({' / '.join(format(e['limit'], '.0%') for e in modes)})"


def operators(entries, prepared, shapes):
    """Classes, or their shapes, by core."""
    rows = {}
    for e, other in zip(entries, prepared, strict=True):
        if (e["shape"] != "all, in five models") == shapes:
            row = rows.setdefault((e["class"], e["shape"]), {"calls": e["calls"], "macs": e["macs"]})
            row[core_of(e)] = one_of_operator(e, other)
    names = [["class", "shape"], ["class"]][not shapes]
    body = [[*key[: len(names)], row["calls"], number(row["macs"] or None),
             *(row.get(core, "–") for core in BOARDS.values())] for key, row in rows.items()]
    return grid([*names, "calls", "MACs", *BOARDS.values()], body, left=len(names))


def cycles(entries):
    order = list(BOARDS.values())
    entries = sorted(entries, key=lambda e: (benchmark_store.NAMES.index(e["model"]),
                                             order.index(core_of(e))))
    return grid(["model", "core", "instructions", "cycles", "least", "most", "cycles an instruction",
                 "cycles a MAC"],
                [[e["model"], core_of(e), number(e["instructions"]), number(e["cycles"]),
                  number(e["least"]), number(e["most"]), f"{e['cycles_per_instruction']:.2f}",
                  f"{e['cycles_per_mac']:.2f}"] for e in entries], left=2)


def replace(text, name, content):
    pattern = re.compile(f"(<!-- {name} -->\n).*?(<!-- end -->)", re.DOTALL)
    if not pattern.search(text):
        raise click.ClickException(f"{DOCUMENT.name} has no place for {name!r}")
    return pattern.sub(lambda match: f"{match[1]}\n{content}\n\n{match[2]}", text)


@click.command(help=__doc__)
def main():
    bench, plain, prepared = read("bench"), read("bench_ops"), read("bench_ops_pool")
    int8 = selected(bench, benchmark_store.NAMES)
    text = DOCUMENT.read_text()
    for name, content in [
        ("measured", measured()), ("ratios", ratios(int8)), ("int8 models", models(int8)),
        ("fp32 models", models(selected(bench, FLOAT_MODELS))),
        ("loading", loading(selected(bench, [*benchmark_store.NAMES, *FLOAT_MODELS]))),
        ("classes", operators(plain, prepared, False)),
        ("shapes", operators(plain, prepared, True)),
        ("cycles", cycles(read("cycles"))),
    ]:
        text = replace(text, name, content)
    DOCUMENT.write_text(text)
    click.echo(f"written to {DOCUMENT.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
