"""Write the measured figures: the tables of docs/performance.md, the tables of sizes in
docs/c-projects.md, and the cycles per instruction with which `picotorch size` estimates time.

    make performance        # measures everything, then calls this program
    make bench; python tests/benchmark/performance.py --table "untuned models"

It replaces each table between the comments <!-- name --> and <!-- end --> of a document.
"""

import json
import math
import re
import statistics
import subprocess
import sys
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from benchmark.bench import ANCHOR, DENSE, SMALL, WEIGHTS  # noqa: E402
from benchmark.bench_untuned import slow_instructions  # noqa: E402
from picotorch.measure.cycles import OTHERS  # noqa: E402
from support import benchmark_store  # noqa: E402

DOCUMENT, PROJECTS = ROOT / "docs/performance.md", ROOT / "docs/c-projects.md"
FACTORS = ROOT / "host/picotorch/measure/cycles_per_instruction.json"
BOARDS = {"mps2-an385-m0plus": "M0+", "mps2-an385": "M3", "mps2-an386": "M4F", "mps2-an500": "M7",
          "mps2-an505": "M33", "mps3-an547": "M55"}
FLOAT_MODELS = ["ds_cnn", "resnet8", "mobilenet_v1_025", "deep_autoencoder"]


def read(name):
    path = ROOT / "build" / f"{name}.json"
    if not path.exists():
        raise click.ClickException(f"there is no build/{path.name}: make performance measures it")
    return json.loads(path.read_text())


def grid(headings, rows, left=1):
    """Return a Markdown table; all columns but the first `left` are aligned to the right."""
    lines = [headings, ["---"] * left + ["---:"] * (len(headings) - left), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def number(value):
    return "–" if value is None else f"{value:,}"


def ratio(value):
    return "–" if value is None else f"{value:.3f}"


def core_of(entry):
    return BOARDS[entry["board"]]


def measured():
    """Return a sentence with the commit and the versions of compiler and emulator."""
    def first_line(*command):
        return subprocess.check_output(command, text=True, cwd=ROOT).splitlines()[0]

    return (f"Measured at commit {first_line('git', 'rev-parse', '--short=10', 'HEAD')} with "
            f"{first_line('arm-none-eabi-gcc', '--version')}, and "
            f"QEMU {first_line('qemu-system-arm', '--version').split()[3]}.")


def selected(entries, models):
    """Select the entries of the models on the six cores, in the order of both."""
    places = {name: i for i, name in enumerate(models)}
    cores = list(BOARDS)
    return sorted((e for e in entries
                   if e.get("fits", True) and e["model"] in places and e["board"] in BOARDS),
                  key=lambda e: (places[e["model"]], cores.index(e["board"]), e.get("weights")))


def ratios(entries):
    """Return a table of models by core, without and with packed weights."""
    found = {(e["model"], core_of(e), e["weights"]): e.get("ratio", {}).get("execute") for e in entries}
    rows = []
    for model in benchmark_store.NAMES:
        row = [model]
        for core in BOARDS.values():
            modes = [found.get((model, core, mode)) for mode in ("none", "pool")]
            row.append(" / ".join(ratio(value) for value in modes if value is not None) or "–")
        rows.append(row)
    return grid(["instructions, ratio", *BOARDS.values()], rows)


def models(entries, estimates):
    """Return a table of the estimates that cycles.py made."""
    cycles = {(e["model"], e["board"], e["weights"]): e["cycles"] for e in estimates}
    rows = []
    for e in entries:
        against = e.get("ratio", {})
        rows.append([e["model"], core_of(e), e["weights"], number(e["execute"]),
                     number(cycles.get((e["model"], e["board"], e["weights"]))),
                     ratio(against.get("execute")), ratio(e.get("macs_per_instruction")),
                     number(e["pool"]), ratio(against.get("pool")), number(e["packed"]),
                     number(e["planned"]), number(e["temp"]), number(e["stack_execute"]),
                     ratio(against.get("stack_execute")),
                     number(e["core_and_kernels"]), ratio(against.get("core_and_kernels"))])
    return grid(["model", "core", "weights", "instructions", "about cycles", "ratio",
                 "MACs an instruction", "pool", "ratio", "packed in it", "planned", "temp", "stack",
                 "ratio", "flash", "ratio"], rows, left=3)


def loading(entries):
    """Return a table of models by core, for load without packing: to verify and to load."""
    rows = {}
    for e in entries:
        if e["weights"] == "none":
            rows.setdefault(e["model"], {})[core_of(e)] = number(e["verify"] + e["load"])
    return grid(["instructions to load", *BOARDS.values()],
                [[model, *(row.get(core, "–") for core in BOARDS.values())]
                 for model, row in rows.items()])


def small_models(entries):
    """Return a table of models by core: pt_execute() in C / Method.execute() from Python (ExecuTorch's
    in C)."""
    rows = {}
    for e in entries:
        anchor = f" ({number(e['anchor']['execute'])})" if "anchor" in e else ""
        rows.setdefault(e["model"], {})[core_of(e)] = \
            f"{number(e['execute_in_c'])} / {number(e['execute'])}{anchor}"
    return grid(["instructions", *BOARDS.values()],
                [[model, *(row.get(core, "–") for core in BOARDS.values())]
                 for model, row in rows.items()])


def untuned_models(entries):
    """Return a table of the programs by core: instructions in C, and the ratio of both modes."""
    rows = {}
    for e in entries:
        name, _, core = e["program"].rpartition(".")
        modes = [ratio(e["ratio"][mode]) for mode in WEIGHTS]
        rows.setdefault(name, {})[core] = [number(e["execute"]["none"]), " / ".join(modes)
                                           if e["anchor"] else "–"]
    cores = {"cortex-m4": "M4F", "cortex-m55": "M55"}
    return grid(["program", *(text for core in cores.values() for text in (core, "ratio"))],
                [[name, *(cell for core in cores for cell in row.get(core, ["–", "–"]))]
                 for name, row in rows.items()])


def untuned_instructions(entries):
    """Return a table of the instructions of the programs that take more than the reference."""
    return grid(["program", "call", "sizes", "instructions", "ratio"],
                [[name, f"`{row['call']}`", row["shapes"], number(row["count"]), ratio(row["ratio"])]
                 for name, row in slow_instructions(entries)], left=3)


def ptm_instructions(entries, bench):
    """Return the table of instructions to open, by level of verification, and to execute, with the
    instructions of the program with packed weights."""
    packed = {(e["model"], e["board"]): e["execute"] for e in bench}  # "pool" follows "none"
    rows = []
    for e in entries:
        against = e.get("ratio", {})
        rows.append([e["model"], core_of(e), number(e["open"]["trusted"]), number(e["open"]["walk"]),
                     ratio(against.get("load")), number(e["open"]["strict"]), number(e["execute"]),
                     ratio(against.get("execute")),
                     f"{e['execute'] / packed[e['model'], e['board']]:.4f}"])
    return grid(["model", "core", "to open: trusted", "walk", "ratio", "strict", "instructions",
                 "ratio", "of packed"], rows, left=2)


def ptm_bytes(entries):
    """Return the table of flash and RAM of C projects of compiled methods."""
    rows = []
    for e in entries:
        against = e.get("ratio", {})
        rows.append([e["model"], core_of(e), number(e["ptm"]), ratio(e["ptm_to_data"]),
                     number(e["flash"]), ratio(against.get("flash")), number(e["planned"]),
                     number(e["temp"]), number(e["besides"]), ratio(against.get("besides")),
                     number(e["stack"]), number(e["ram"]), ratio(against.get("ram")),
                     number(e["temp_fastest"]), number(e["ram_fastest"]),
                     f"{e['execute'] / e['min_execute']:.3f}"])
    return grid(["model", "core", ".ptm file", "of its data", "flash", "ratio", "planned", "temp",
                 "besides", "ratio", "stack", "RAM", "ratio", "fastest temp", "RAM with it",
                 "instructions with it"], rows, left=2)


def one_of_operator(plain, packed):
    """Return ratio and share of the limit. Both are without and with packed weights if these differ."""
    modes = [plain] if plain["instructions"] <= packed["instructions"] else [plain, packed]
    text = " / ".join(f"{e['ratio']:.2f}" for e in modes) if plain["ratio"] else "–"
    if plain["limit"] is None:
        return text
    return f"{text} ({' / '.join(format(e['limit'], '.0%') for e in modes)})"


def operators(entries, packed, shapes):
    """Return a table of the classes, or of their shapes, by core."""
    rows = {}
    for e, other in zip(entries, packed, strict=True):
        if (e["shape"] != "all, in five models") == shapes:
            row = rows.setdefault((e["class"], e["shape"]), {"calls": e["calls"], "macs": e["macs"]})
            row[core_of(e)] = one_of_operator(e, other)
    names = [["class", "shape"], ["class"]][not shapes]
    body = [[*key[: len(names)], row["calls"], number(row["macs"] or None),
             *(row.get(core, "–") for core in BOARDS.values())] for key, row in rows.items()]
    return grid([*names, "calls", "MACs", *BOARDS.values()], body, left=len(names))


def cycles(all_entries):
    entries = selected((e for e in all_entries if e["weights"] == "none"),
                       [*benchmark_store.NAMES, *FLOAT_MODELS])
    found = operator_factors(all_entries)["none"]
    return grid(["model", "core", "instructions", "cycles", "least", "most", "cycles an instruction",
                 "cycles a MAC", "by operators"],
                [[e["model"], core_of(e), number(e["instructions"]), number(e["cycles"]),
                  number(e["least"]), number(e["most"]), f"{e['cycles_per_instruction']:.2f}",
                  "–" if e["cycles_per_mac"] is None else f"{e['cycles_per_mac']:.2f}",
                  f"{100 * error_of_factors(e, found[e['core']]):+.1f} %"] for e in entries], left=2)


def error_of_factors(e, operators):
    """Return the relative error of the cycles that the usual factors of the operators give."""
    sums = (count * operators[name][1] for name, (count, _) in e["operators"].items())
    return sum(sums) / e["cycles"] - 1


def dense(entries):
    """Return a table of the models that were also traced with data without zeros."""
    found = {(e["model"], e["board"]): e for e in entries if e["weights"] == "none"}
    rows = []
    for (name, board), e in found.items():
        model, is_dense, _ = name.partition(DENSE)
        if is_dense:
            anchor = ANCHOR[model][board]["execute"]
            rows.append([model, core_of(e), *(cell for one in (found[model, board], e) for cell in (
                number(one["execute"]), ratio(one["execute"] / anchor), number(one["cycles"])))])
    return grid(["model", "core", *["instructions", "ratio", "about cycles"],
                 *["without zeros: instructions", "ratio", "about cycles"]], rows, left=2)


def operator_factors(entries):
    """Return [minimum of a model, mean of all instructions, maximum of a model] by mode, core and
    operator, to 0.01. Modes other than "none" have only factors that differ, for the same models, from
    "none", or with packed constants from "pool". OTHERS has the quartiles of the operators."""
    counts = {}
    for e in entries:
        for operator, pair in e["operators"].items():
            pairs = counts.setdefault((e["core"], operator), {}).setdefault(e["mode"], {})
            pairs[e["model"]] = pair
    found = {"none": {}}
    for (core, operator), modes in sorted(counts.items()):
        plain = modes["none"]
        packed = plain | modes.get("pool", {})
        for name, pairs in modes.items():
            one, known = factors(pairs.values()), packed if name.startswith("pool,") else plain
            if pairs is plain or one != factors([known[model] for model in pairs]):
                found.setdefault(name, {}).setdefault(core, {})[operator] = one
    for operators in found["none"].values():
        quartiles = statistics.quantiles([usual for _, usual, _ in operators.values()])
        operators[OTHERS] = [round(one, 2) for one in quartiles]
    return found


def factors(pairs):
    each = [spent / instructions for instructions, spent in pairs]
    mean = sum(spent for _, spent in pairs) / sum(instructions for instructions, _ in pairs)
    return [math.floor(100 * min(each)) / 100, round(mean, 2), math.ceil(100 * max(each)) / 100]


def as_text(found):
    """Return JSON, a line for each operator."""
    text = json.dumps(found, indent=1)
    return re.sub(r"\[\s+(\S+)\s+(\S+)\s+(\S+)\s+\]", r"[\1 \2 \3]", text) + "\n"


def forms(entries):
    """Return a table of models by the variants that a firmware lacks."""
    rows, whole = [], None
    for e in entries:
        whole = e if not e["without"] else whole  # the first entry of a model
        rows.append([e["model"], ", ".join(e["without"]) or "–", number(whole["flash"] - e["flash"]),
                     number(e["instructions"]), number(e["cycles"]),
                     ratio(e["cycles"] / whole["cycles"])])
    return grid(["model", "without", "flash saved", "instructions", "about cycles", "ratio"], rows,
                left=2)


def twin_speed(found):
    """Return a table of models by kind of vectors, and name the processor."""
    kinds = list(found["entries"][0]["ms"])
    rows = [[e["model"], *(f"{e['ms'][kind]:.3f}" for kind in kinds),
             *(f"{e['ratio'][kind]:.1f}" for kind in kinds[1:])] for e in found["entries"]]
    return (f"Measured on {found['processor']}.\n\n"
            + grid(["model", *(f"{kind}, ms" for kind in kinds),
                    *(f"{kind}, times as fast" for kind in kinds[1:])], rows))


def twin_threads(found):
    return grid(["threads", "ms", "times as fast"],
                [[e["threads"], f"{e['ms']:.1f}", f"{e['ratio']:.2f}"] for e in found["threads"]])


def project_builds(found):
    return grid(["bytes of flash", "with packed weights", "without"],
                [[name if name == "as it is" else f"`{name}`", number(build["packed"]),
                  number(build["plain"])] for name, build in found["builds"].items()])


def project_switches(found):
    uses = {"PT_NO_CHECKS": "a project's own .ptm files; not with `CHECKS=1`",
            "PT_NO_TEXTS": "errors as numbers; not with `TEXTS=1`",
            "PT_NO_DYNAMIC": "models that only call kernels, and whose sizes do not change"}
    rows = [[f"`{name}`", uses[name], number(size)] for name, size in found["switches"].items()]
    return grid(["switch", "for", "bytes"], rows, left=2)


def replace(text, name, content):
    pattern = re.compile(f"(<!-- {name} -->\n).*?(<!-- end -->)", re.DOTALL)
    if not pattern.search(text):
        raise click.ClickException(f"no document has a place for {name!r}")
    return pattern.sub(lambda match: f"{match[1]}\n{content}\n\n{match[2]}", text)


def write(document, contents):
    text = document.read_text()
    for name, content in contents:
        text = replace(text, name, content)
    document.write_text(text)
    click.echo(f"written to {document.relative_to(ROOT)}")


def estimates():
    return [e for e in read("cycles") if not e["has_less_temp"]]


def int8():
    return selected(read("bench"), benchmark_store.NAMES)


def ptms():
    return selected(read("bench_ptm"), benchmark_store.NAMES)


# What makes the content of each place of a document, by its name.
PLACES = {
    DOCUMENT: {
        "measured": measured,
        "ratios": lambda: ratios(int8()),
        "int8 models": lambda: models(int8(), estimates()),
        "dense": lambda: dense(estimates()),
        "fp32 models": lambda: models(selected(read("bench"), FLOAT_MODELS), estimates()),
        "small models": lambda: small_models(
            e for e in selected(read("bench"), SMALL) if e["weights"] == "none"),
        "untuned models": lambda: untuned_models(read("bench_untuned")),
        "untuned instructions": lambda: untuned_instructions(read("bench_untuned")),
        "ptm instructions": lambda: ptm_instructions(ptms(), int8()),
        "ptm bytes": lambda: ptm_bytes(ptms()),
        "loading": lambda: loading(selected(read("bench"), [*benchmark_store.NAMES, *FLOAT_MODELS])),
        "classes": lambda: operators(read("bench_ops"), read("bench_ops_pool"), False),
        "shapes": lambda: operators(read("bench_ops"), read("bench_ops_pool"), True),
        "cycles": lambda: cycles(estimates()),
        "forms": lambda: forms(read("bench_forms")),
        "twin": lambda: twin_speed(read("twin_speed")),
        "threads": lambda: twin_threads(read("twin_speed")),
    },
    PROJECTS: {
        "project builds": lambda: project_builds(read("bench_c_project")),
        "project switches": lambda: project_switches(read("bench_c_project")),
    },
}


@click.command(help=__doc__)
@click.option("--table", "names", multiple=True, metavar="NAME",
              type=click.Choice([name for places in PLACES.values() for name in places]),
              help="a place of a document; default: all, and the cycles per instruction")
def main(names):
    for document, places in PLACES.items():
        contents = [(name, make()) for name, make in places.items() if not names or name in names]
        if contents:
            write(document, contents)
    if not names:
        FACTORS.write_text(as_text(operator_factors(read("cycles"))))
        click.echo(f"written to {FACTORS.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
