"""Write the page of HTML. It is complete without scripts, which sort, filter and mark."""

import base64
import hashlib
import string
from collections.abc import Callable, Iterable, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import picotorch

from ..export.differences import decibels
from ..host import quoting
from ..host.request import Estimate
from ..inspect import memory_map
from ..measure import by_size
from ..measure.fitting import DEPLOYMENTS
from ..measure.report import Fit, OnBoard, OnChip, Total
from ..measure.showing import clock_text, fits_text, ms_text, total_text, verdict_text
from . import matching
from .markup import Content, Markup, markup, tag
from .reading import Layer, Model

_BARS = 20  # layers that have a bar of their own
_TALL = 32  # rows from which on a table scrolls by itself
_KINDS = {True: "fits", False: "fails", None: "unsure"}  # classes of verdicts
_SUFFIX = ".out"


# A verdict, the machines that it is about, and whether they have room
_Headline: TypeAlias = tuple[str, str, bool | None]


def page(models: Sequence[Model]) -> str:
    """Return the page of one model or several; the first is the one that others are compared with."""
    parts = {name: resources.files("picotorch.report").joinpath(f"page.{name}").read_text()
             for name in ("html", "css", "js")}
    digest = base64.b64encode(hashlib.sha256(parts["js"].encode()).digest()).decode()
    title = "picotorch report: " + ", ".join(dict.fromkeys(model.name for model in models))
    data = {"version": picotorch.__version__, **data_of(models)}
    return string.Template(parts["html"]).substitute(
        title=quoting.html(title), style=parts["css"], body=_body(models),
        data=quoting.html_script(data), script=parts["js"], script_hash=f"sha256-{digest}")


def _body(models: Sequence[Model]) -> Markup:
    names, labels = [f"model-{i}" for i in range(len(models))], _labels(models)
    links: list[tuple[str, str]] = [("beside", "Beside each other")] * (len(models) > 1)
    links += [(name, label if len(models) > 1 else "Layers")
              for name, label in zip(names, labels, strict=True)]
    has_more = len(models[0].size.chips) > len(models[0].requested)
    links += [("chips", "All chips")] * has_more + [("notes", "How the figures are found")]
    return markup(
        tag("header", tag("h1", ", ".join(model.name for model in models)),
            tag("p", f"picotorch {picotorch.__version__}, method {models[0].size.needs.method}",
                class_="dim"),
            tag("nav", [tag("a", text, href=f"#{name}") for name, text in links],
                aria_label="Parts of the page")),
        tag("main", [_verdict(model, label) for model, label in zip(models, labels, strict=True)],
            _targets(models, labels), _beside(models, labels) if len(models) > 1 else None,
            [_model(model, name, label if len(models) > 1 else "")
             for model, name, label in zip(models, names, labels, strict=True)],
            _all_chips(models, labels) if has_more else None, _notes(models)))


def _labels(models: Sequence[Model]) -> list[str]:
    """Return the ends of the paths that tell the models apart."""
    paths = [Path(model.name).parts for model in models]
    for count in range(1, max(map(len, paths))):
        ends = ["/".join(path[-count:]) for path in paths]
        if len(set(ends)) == len(ends):
            return ends
    return [model.name for model in models]


# ---- tables


class _Column(NamedTuple):
    """A column. kind: class of its cells, "n" for numbers, to the right. about: a tooltip."""

    title: Content
    kind: str = ""
    about: str | None = None


class _Cell(NamedTuple):
    """A cell. key: by which it is sorted, if not by its text."""

    content: Content
    key: float | str | None = None


def _number(count: int | None, text: str | None = None) -> _Cell:
    """Return the cell of a number, with separated thousands or another text; "" for None."""
    return _Cell("" if count is None else text or f"{count:,}", count)


def _table(columns: Sequence[_Column], rows: Iterable[Sequence[_Cell]], *, caption: Content = None,
           sortable: bool = False, keys: Sequence[int] = (), foot: Sequence[_Cell] = (),
           label: str = "table", kind: str = "") -> Markup:
    """Return a table that scrolls across where it has no room. keys: the layers of the rows."""
    def cells(row: Sequence[_Cell]) -> list[Markup]:
        return [tag("td", cell.content, class_=column.kind or None, data_sort=cell.key)
                for column, cell in zip(columns, row, strict=True)]

    head = [tag("th", column.title, scope="col", title=column.about,
                class_=column.kind or None) for column in columns]
    body = [tag("tr", cells(row), data_layer=keys[i] if keys else None) for i, row in enumerate(rows)]
    frame = "scroll tall" if len(body) > _TALL else "scroll"
    return tag("div", tag(
        "table", tag("caption", caption) if caption else None, tag("thead", tag("tr", head)),
        tag("tbody", body), tag("tfoot", tag("tr", cells(foot))) if foot else None,
        class_=f"wide {'sortable' * sortable} {kind}".strip()),
        class_=frame, tabindex=0, role="region", aria_label=label)


def _bar(share: float, second: bool = False) -> Markup:
    return tag("span", class_="second" if second else None, style=f"--share:{_percent(share)}")


def _swatch(second: bool) -> Markup:
    return tag("span", class_="swatch second" if second else "swatch")


def _percent(share: float) -> str:
    return f"{100 * max(0.0, min(share, 1.0)):.2f}%"


def _bars(title: str, unit: str, rows: Sequence[tuple[Content, int]], total: int) -> Markup:
    """Return rows of (name, number) with bars: the largest is as long as there is room."""
    largest = max((count for _, count in rows), default=0) or 1
    columns = [_Column(title, "name"), _Column("", "bar"), _Column(unit, "n"), _Column("share", "n")]
    return _table(columns,
                  [[_Cell(name), _Cell(_bar(count / largest)), _number(count),
                    _Cell(f"{100 * count / total:.1f} %" if total else "")] for name, count in rows],
                  label=title, kind="bars")


# ---- the verdict


def _verdict(model: Model, label: str) -> Markup:
    targets = model.targets()
    fitting = [one for one in targets if one.fits]
    kind = "good" if len(fitting) == len(targets) else "bad"
    if kind == "bad" and (None in [one.fits for one in targets] or not model.requested and fitting):
        kind = "unknown" if not fitting else "good"
    headline = [[tag("span", f"{word} {names}", class_=_KINDS[fits]), "; "]
                for word, names, fits in _headline(model, targets)]
    return tag("section", tag("h2", label + ": ", headline[:-1], headline[-1][0]),
               tag("dl", [_figure(*figure) for figure in _figures(model)], class_="figures"),
               class_=f"verdict {kind}")


def _headline(model: Model, targets: Sequence[OnChip | OnBoard]) -> list[_Headline]:
    """Return the verdicts, with the chips and boards that they are about."""
    if not model.requested:
        count = sum(one.fits is True for one in targets)
        return [("fits", f"{count} of {len(targets)} chips", count > 0)]
    found: dict[str, list[OnChip | OnBoard]] = {}
    for one in targets:
        found.setdefault(_fits(one), []).append(one)
    return [(word, ", ".join(one.name for one in same), same[0].fits) for word, same in found.items()]


def _fits(one: OnChip | OnBoard) -> str:
    """Return the verdict as a table has it."""
    return fits_text(one) if isinstance(one, OnChip) else verdict_text(one.fits)


def _figure(name: str, text: str, more: str = "") -> Markup:
    return tag("div", tag("dt", name), tag("dd", text, tag("small", more) if more else None))


def _figures(model: Model) -> list[tuple[str, str, str]]:
    """Return (name, figure, explanation) of each figure at the top of the page."""
    found = []
    focus = model.focus()
    if focus is not None:
        deployment, words = _deployment(focus)
        found.append((f"time on {focus.name}", f"{ms_text(focus.time)} ms", _range(focus.time)))
        for name, total in (("RAM", deployment.ram), ("flash", deployment.flash)):
            of = "" if total.of is None else f", of {total.of:,}"
            found.append((f"{name}, {focus.name}", f"{total_text(total)} B", words + of))
    if model.macs:
        share = model.int8.macs / model.int8.all_macs if model.int8.all_macs else 0
        found.append(("multiply-accumulates", f"{model.macs:,}",
                      f"{100 * share:.0f} % of them in int8"))
    if model.cost is not None:
        where = (f"on {model.counted_on}" if model.counted_on else f"{model.core}, by sizes of tensors")
        found.append((model.unit, f"{'' if model.counted_on else '~'}{model.cost:,}", where))
    return [*found, *_accuracy_figures(model)]


def _accuracy_figures(model: Model) -> list[tuple[str, str, str]]:
    beside, found = model.beside, []
    if beside is None:
        return []
    samples = f"{beside.samples:,} samples"
    if beside.accuracy is not None:
        other = beside.accuracy.reference
        found.append(("accuracy", f"{100 * beside.accuracy.program:.1f} %", samples + (
            "" if other is None else f"; {beside.reference}: {100 * other:.1f} %")))
    for one in beside.outputs[:3]:
        name = "SQNR" if len(beside.outputs) == 1 else f"SQNR of output {one.output}"
        text = decibels(one.sqnr) if one.equal is None else f"{100 * one.equal:.1f} % equal"
        found.append((name, text, f"beside {beside.reference}; {samples}"))
    return found


def _deployment(one: OnChip | OnBoard) -> tuple[Fit, str]:
    """Return the deployment that is shown first, and words for it."""
    name = next(iter(DEPLOYMENTS)) if isinstance(one, OnChip) else "micropython"
    return one.deployments[name], DEPLOYMENTS[name]


def _range(time: Estimate | None) -> str:
    if time is None or time.min_ms is None or time.max_ms is None:
        return ""
    return f"{time.min_ms:.3g} to {time.max_ms:.3g} ms"


def _targets(models: Sequence[Model], labels: Sequence[str]) -> Markup | None:
    """Return the requested chips and boards."""
    if not models[0].requested:
        return None
    names = [one.name for one in models[0].targets()]
    lacks = [tag("p", f"{label}, {one.name} {DEPLOYMENTS[name]}: {fit.lacks}", class_="note")
             for model, label in zip(models, labels, strict=True) for one in model.targets()
             for name, fit in one.deployments.items() if fit.lacks]
    return markup(_chip_table(models, labels, names, False), lacks)


def _chip_table(models: Sequence[Model], labels: Sequence[str], names: Sequence[str],
                sortable: bool) -> Markup:
    """Return a row for each chip or board of these names; columns for each model."""
    columns = [_Column("chip", "name"), _Column("core"), _Column("clock", "n"),
               _Column("RAM", "n", "bytes that the chip has"), _Column("flash", "n")]
    several = len(models) > 1
    for i, model in enumerate(models):
        prefix = f"{i + 1}: " if several else ""
        for name, words in DEPLOYMENTS.items():
            if several and name != "c":
                continue
            short = "" if several else ", C" if name == "c" else ", MP"
            columns += [_Column(f"{prefix}{what}{short}", "n",
                                f"{model.name}: bytes of {what} needed {words}")
                        for what in ("RAM", "flash")]
        columns += [_Column(f"{prefix}ms", "n", model.name),
                    _Column(f"{prefix}verdict", "", model.name)]
    rows = []
    for name in names:
        found = [_named(model, name) for model in models]
        first = next(one for one in found if one is not None)
        row = [_chip_cell(first), _Cell(first.core.removeprefix("cortex-")),
               _Cell(clock_text(first.clock_hz), first.clock_hz),
               *[_number(getattr(_deployment(first)[0], what).of) for what in ("ram", "flash")]]
        for one in found:
            row += _chip_cells(one, several)
        rows.append(row)
    key = [tag("p", "; ".join(f"{i}: {label}" for i, label in enumerate(labels, 1)),
               class_="note")] if several else None
    return markup(_table(columns, rows, sortable=sortable, label="chips and boards"), key)


def _chip_cell(one: OnChip | OnBoard) -> _Cell:
    title = one.title if isinstance(one, OnChip) else "emulated board"
    return _Cell(tag("span", one.name, title=title), one.name)


def _named(model: Model, name: str) -> OnChip | OnBoard | None:
    every: list[OnChip | OnBoard] = [*model.size.chips, *model.size.boards]
    return next((one for one in every if one.name == name), None)


def _chip_cells(one: OnChip | OnBoard | None, several: bool) -> list[_Cell]:
    deployments = list(DEPLOYMENTS)[:1 if several else None]
    if one is None:
        return [_Cell("")] * (2 * len(deployments) + 2)
    cells = [_total(getattr(one.deployments[name], what)) for name in deployments
             for what in ("ram", "flash")]
    text = _fits(one)
    kind = _KINDS[one.fits]
    title = "; ".join(filter(None, (fit.lacks for fit in one.deployments.values())))
    return [*cells, _Cell(tag("span", ms_text(one.time), title=_range(one.time) or one.message or None),
                          one.time.ms if one.time else None),
            _Cell(tag("span", text, class_=kind, title=title or None), text)]


def _total(total: Total) -> _Cell:
    return _Cell(total_text(total), total.all)


# ---- models beside each other


def _beside(models: Sequence[Model], labels: Sequence[str]) -> Markup:
    rows = []
    for name, of in _METRICS:
        values = [of(model) for model in models]
        if any(value is not None for value in values):
            rows.append([_Cell(name), *[_metric(value, values[0], i, None, "%" not in name)
                                        for i, value in enumerate(values)]])
    names = dict.fromkeys(one.name for model in models for one in _compared(model))
    for name in names:
        found = [_named(model, name) for model in models]
        times = [one.time.ms if one and one.time else None for one in found]
        rows.append([_Cell(f"ms on {name}"), *[
            _metric(time, times[0], i, ms_text(one.time if one else None))
            for i, (one, time) in enumerate(zip(found, times, strict=True))]])
        rows.append([_Cell(f"verdict on {name}"), *[
            _Cell(_fits(one) if one else "") for one in found]])
    rows += [[_Cell(name), *[_Cell(text) for text in texts]] for name, texts in _accuracies(models)]
    first, *others = models
    return tag(
        "section", tag("h2", "Beside each other"),
        _table([_Column(""), *[_Column(label, "n") for label in labels]], rows,
               label="models beside each other"),
        tag("p", "× is the ratio to the first model.", class_="note"),
        [_layers_beside(first, other, (labels[0], label))
         for other, label in zip(others, labels[1:], strict=True)], id="beside")


_METRICS: list[tuple[str, Callable[[Model], int | None]]] = [
    ("program, bytes of flash", lambda model: model.size.needs.program_bytes),
    ("constants in it", lambda model: model.size.needs.constant_bytes),
    ("planned memory, bytes", lambda model: sum(model.size.needs.planned)),
    ("method pool, bytes", lambda model: model.size.needs.method_pool),
    ("temp memory, bytes", lambda model: model.size.needs.temp),
    ("layers", lambda model: len(model.layers)),
    ("multiply-accumulates", lambda model: model.macs),
    ("of them in int8, %", lambda model: round(100 * model.int8.macs / model.int8.all_macs)
     if model.int8.all_macs else None),
    ("cycles", lambda model: model.cost if model.unit == "cycles" else None),
]


def _compared(model: Model) -> list[OnChip | OnBoard]:
    focus = model.focus()
    return model.targets() if model.requested else [focus] if focus else []


def _metric(value: float | None, first: float | None, column: int, text: str | None = None,
            has_ratio: bool = True) -> _Cell:
    if value is None:
        return _Cell(text or "")
    text = text or f"{value:,}"
    if column and first and value and has_ratio:
        return _Cell(markup(text, " ", tag("span", f"×{value / first:.3g}", class_="dim")), value)
    return _Cell(text, value)


def _accuracies(models: Sequence[Model]) -> list[tuple[str, list[str]]]:
    figures = [_accuracy_figures(model) for model in models]
    names = list(dict.fromkeys(name for found in figures for name, _, _ in found))
    return [(name, [next((text for own, text, _ in found if own == name), "") for found in figures])
            for name in names]


def _layers_beside(first: Model, other: Model, labels: tuple[str, str]) -> Markup:
    """Return the layers of two models. Layers that compute the same are in one row."""
    groups = matching.groups(*(matching.program(model.meta) for model in (first, other)))
    rows = []
    for own, others in groups:
        ours, theirs = ([model.layers[i] for i in indexes]
                        for model, indexes in ((first, own), (other, others)))
        costs = [sum(layer.cost or 0 for layer in layers) for layers in (ours, theirs)]
        ratio = costs[1] / costs[0] if all(costs) and first.unit == other.unit else None
        rows.append([_group_number(ours), _group(ours), _number(costs[0] if ours else None),
                     _group_number(theirs), _group(theirs), _number(costs[1] if theirs else None),
                     _Cell("" if ratio is None else f"×{ratio:.3g}", ratio)])
    table = _table(
        [_Column("#", "n"), _Column(labels[0], "name"), _Column(first.unit, "n"), _Column("#", "n"),
         _Column(labels[1], "name"), _Column(other.unit, "n"),
         _Column("ratio", "n")],
        rows, sortable=True, label="layers beside each other")
    return tag("details", tag("summary", f"Layer by layer: {' and '.join(labels)}"), table,
               open=len(rows) <= 40)


def _group_number(layers: Sequence[Layer]) -> _Cell:
    if not layers:
        return _Cell("")
    first, last = layers[0].index, layers[-1].index
    return _Cell(str(first) if first == last else f"{first}-{last}", first)


def _group(layers: Sequence[Layer]) -> _Cell:
    names: dict[str, int] = {}
    for layer in layers:
        name = _operator(layer.operator).rpartition("::")[2]
        names[name] = names.get(name, 0) + 1
    return _Cell(", ".join(name if count == 1 else f"{count} {name}" for name, count in names.items()))


# ---- one model


def _model(model: Model, name: str, label: str) -> Markup:
    return tag("section", tag("h2", label or "Layers, time and memory"),
               _advice(model, name), _layers(model, name), _bars_of(model), _memory(model),
               _parts(model), class_="model", id=name)


def _advice(model: Model, name: str) -> Markup:
    items = [tag("li", tag("b", one.what[:1].upper() + one.what[1:]),
                 f": {one.bytes:,} B. " if one.bytes else ". ",
                 one.remedy[:1].upper() + one.remedy[1:] + ".", id=f"{name}-advice-{i}")
             for i, one in enumerate(model.advice, 1)]
    content = tag("ol", items, class_="advice") if items else tag("p", "No advice.", class_="dim")
    return markup(tag("h3", "What to change"), content)


def _operator(name: str) -> str:
    return name.removesuffix(_SUFFIX)


def _breakable(name: str) -> Markup:
    """Return the name of an operator, which may break behind its namespace."""
    namespace, colons, rest = _operator(name).rpartition("::")
    return markup(namespace + colons, Markup("<wbr>"), rest)


def _layers(model: Model, name: str) -> Markup:
    has_modules = any(layer.module for layer in model.layers)
    has_sqnr = bool(model.beside and model.beside.layer_samples)
    has_advice = any(layer.advice for layer in model.layers)
    about = "" if model.counted_on else "~"
    largest = max((layer.share for layer in model.layers), default=0) or 1
    columns = [
        _Column("#", "n", "number of the instruction"),
        *[_Column("module", "path")] * has_modules, _Column("operator", "name"),
        _Column("input * weights -> output", "shapes"), _Column("dtype"),
        _Column("MACs", "n", "multiply-accumulates"), _Column(about + model.unit, "n"),
        _Column("share", "n"),
        _Column("RAM", "n", "bytes of planned memory that are in use while the layer runs"),
        _Column("flash", "n", "bytes of its constants, counted at the first layer that has them"),
        *[_Column("SQNR", "n", "dB beside the float values")] * has_sqnr,
        *[_Column("advice", "", "numbers in the list above")] * has_advice]
    rows = []
    for layer in model.layers:
        share = markup(f"{100 * layer.share:.1f} %", tag(
            "span", class_="share", style=f"--share:{_percent(layer.share / largest)}"))
        rows.append([
            _number(layer.index), *[_Cell(layer.module)] * has_modules,
            _Cell(_breakable(layer.operator), layer.operator), _Cell(layer.shapes), _Cell(layer.dtype),
            _number(layer.macs, "" if layer.macs else " "), _number(layer.cost),
            _Cell(share if layer.cost is not None else "", layer.share), _number(layer.ram),
            _number(layer.flash),
            *[_Cell("" if layer.sqnr is None else decibels(layer.sqnr), layer.sqnr)] * has_sqnr,
            *[_Cell([[tag("a", k, href=f"#{name}-advice-{k}", title=model.advice[k - 1].what), " "]
                     for k in layer.advice])] * has_advice])
    total = model.cost
    foot = [_Cell(""), *[_Cell("")] * has_modules, _Cell(f"{len(rows)} layers"), _Cell(""), _Cell(""),
            _number(model.macs), _number(total), _Cell(""),
            _number(max((layer.ram for layer in model.layers), default=0)),
            _number(sum(layer.flash for layer in model.layers)), *[_Cell("")] * (has_sqnr + has_advice)]
    note = f"The {model.unit} are " + (
        f"counted on {model.counted_on}." if model.counted_on
        else f"estimated from the sizes of the tensors, for {model.core}: {model.message}.")
    return markup(tag("h3", "Layers"), tag("p", note, class_="note"),
                  _table(columns, rows, sortable=True, keys=[layer.index for layer in model.layers],
                         foot=foot, label="layers"))


def _bars_of(model: Model) -> Markup | None:
    if model.cost is None:
        return None
    total = sum(layer.cost or 0 for layer in model.layers)
    operators: dict[str, int] = {}
    for layer in model.layers:
        operators[layer.operator] = operators.get(layer.operator, 0) + (layer.cost or 0)
    by_cost = sorted(model.layers, key=lambda layer: -(layer.cost or 0))
    layers: list[tuple[Content, int]] = [
        (f"{layer.index} {layer.module or _operator(layer.operator)}", layer.cost or 0)
        for layer in by_cost[:_BARS]]
    if by_cost[_BARS:]:
        layers.append((f"{len(by_cost) - _BARS} other layers",
                       sum(layer.cost or 0 for layer in by_cost[_BARS:])))
    unit = model.unit
    named: list[tuple[Content, int]] = [(_operator(name), cost) for name, cost in sorted(
        operators.items(), key=lambda one: -one[1])]
    return markup(tag("h3", f"Where the {unit} go"),
                  tag("div", tag("div", _bars("operator", unit, named, total)),
                      tag("div", _bars("layer", unit, layers, total)), class_="pair"))


def _memory(model: Model) -> Markup:
    names = {layer.index: layer.module for layer in model.layers if layer.module}
    drawing = memory_map.for_page(model.meta, names)
    content: Content = (tag("div", Markup(drawing), class_="scroll", tabindex=0, role="region",
                            aria_label="planned memory over time")
                        if drawing else tag("p", "The method has no planned memory.", class_="dim"))
    return markup(tag("h3", "Planned memory over time"), content)


def _parts(model: Model) -> Markup:
    """Return RAM and flash by part, of the chip that is shown first."""
    focus = model.focus()
    needs = model.size.needs
    kernels = model.kernels()
    tables = []
    if focus is not None:
        for name, what in (("RAM", "ram"), ("flash", "flash")):
            totals = {words: getattr(focus.deployments[key], what)
                      for key, words in DEPLOYMENTS.items()}
            rows = _part_rows(totals)
            columns = [_Column(f"{name}, {focus.name}", "name"), _Column("", "bar"),
                       *[_Column([_swatch(k > 0), words], "n") for k, words in enumerate(totals)]]
            foot = [_Cell("all"), _Cell(""), *[_total(total) for total in totals.values()]]
            tables.append(tag("div", _table(columns, rows, foot=foot, label=f"{name} by part",
                                            kind="bars")))
    used = sum(layer.flash for layer in model.layers)
    program: list[tuple[Content, int]] = [
        ("constants of layers", used),
        ("constants that no layer uses", max(needs.constant_bytes - used, 0)),
        ("instructions, values, tables", needs.program_bytes - needs.constant_bytes
         - sum(delegate_bytes(model))),
        *[(f"delegate {i}", size) for i, size in enumerate(delegate_bytes(model))],
        *[(f"data file {i}", size) for i, size in enumerate(needs.data_bytes)]]
    tables.append(tag("div", _bars("program", "bytes", program,
                                   needs.program_bytes + sum(needs.data_bytes))))
    if kernels:
        named: list[tuple[Content, int]] = [(_operator(name), size) for name, size in kernels]
        tables.append(tag("div", _bars("core and kernels", "bytes", named,
                                       sum(size for _, size in kernels))))
    return markup(tag("h3", "Flash and RAM by part"), tag("div", tables, class_="pair"))


def delegate_bytes(model: Model) -> list[int]:
    """Return the bytes of each delegate in the program."""
    return [one.nbytes for one in model.size.needs.delegates]


def _part_rows(totals: dict[str, Total]) -> list[list[_Cell]]:
    largest = max((size or 0 for total in totals.values() for size in total.parts.values()),
                  default=0) or 1
    names = dict.fromkeys(part for total in totals.values() for part in total.parts)
    return [[_Cell(part), _Cell([_bar((total.parts.get(part) or 0) / largest, k > 0)
                                 for k, total in enumerate(totals.values())]),
             *[_Cell("not known", 0) if part in total.parts and total.parts[part] is None
               else _number(total.parts.get(part)) for total in totals.values()]] for part in names]


# ---- all chips, notes


def _all_chips(models: Sequence[Model], labels: Sequence[str]) -> Markup:
    names = [chip.name for chip in models[0].size.chips]
    fits = sum(chip.fits is True for chip in models[0].size.chips)
    return tag("section", tag("h2", "All chips"),
               tag("p", f"{labels[0]} fits {fits} of {len(names)} chips."),
               _chip_table(models, labels, names, True), id="chips")


def _notes(models: Sequence[Model]) -> Markup:
    texts = ["Bytes of RAM and flash are exact, without your own code. RAM includes the stack.",
             "ms: an estimate from instructions that an emulated board of the core counts, without "
             "wait states of flash. A tooltip has the range."]
    times = [one.time for model in models for one in model.size.chips if one.time]
    if not all(time.counted for time in times):
        texts.append("~: an estimate from the sizes of the tensors. Half of the tests' networks are "
                     f"within a factor of {by_size.HALF:g}, nine in ten within {by_size.FACTOR:g}.")
    compared = next((model.beside for model in models if model.beside), None)
    if compared is not None and compared.layer_samples:
        texts.append(f"SQNR of a layer: on {compared.layer_samples} samples, as the twin runs the "
                     f"program, beside the value of the same layer of {compared.reference}. It is "
                     "blank where no layer matches. Between two int8 layers a program has no scale: "
                     "beside a float program the scale that fits best is used.")
    texts.append("The program itself opens in Netron (netron.app).")
    return tag("section", tag("h2", "How the figures are found"),
               [tag("p", text, class_="note") for text in texts], id="notes")


def summary(models: Sequence[Model]) -> list[str]:
    """Return the verdict as lines for a terminal."""
    lines = []
    for model in models:
        headline = [f"{word} {names}" for word, names, _ in _headline(model, model.targets())]
        figures = [f"{name} {text}" for name, text, _ in _figures(model)]
        lines.append(f"{model.name}: {'; '.join(headline)}; {', '.join(figures)}")
    return lines


def data_of(models: Sequence[Model]) -> dict[str, Any]:
    """Return the data of the page."""
    return {"models": [model.to_json() for model in models]}
