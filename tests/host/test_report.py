"""Test picotorch report: the parts of the page, their figures, hostile names, and the page in Chromium.
"""

import html
import itertools
import json
import math
import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from picotorch.boards.chips import load_chips
from picotorch.host import quoting
from picotorch.host.twin import open_program
from picotorch.inspect import memory_map
from picotorch.report import markup, page, reading
from picotorch.report.reading import Target
from picotorch.run.run_request import RunRequest
from support import fixture_store, html_page
from support.calling import assert_error, assert_usage
from support.programs import call as kernel_call
from support.programs import plan, program, tensor

BOARD = "mps2-an386"
CHIPS = ("stm32f407", "stm32f103")
DOCS = fixture_store.FOLDER.parents[1] / "docs"
NET, INT8 = DOCS / "net.pte", DOCS / "net_int8.pte"  # of one module
HOSTILE = ("</script><script>alert(1)</script>", "<img src=x onerror=alert(1)>", "a\" onload=\"b",
           "<!--", "'&amp;", "\u202eabc", "a\x01b", "]]>", "$data ${script}")


def path(name):
    return fixture_store.load(name).path


def written(call, tmp_path, *arguments):
    """The page of a call that succeeds, as a tree."""
    output = tmp_path / "report.html"
    status, out, error = call("report", *arguments, "-o", output)
    assert (status, error) == (0, "") and out.endswith(f"Wrote {output}\n")
    return html_page.read(output.read_text())


@pytest.fixture(scope="module", autouse=True)
def few_chips():
    """A short table of chips: to run a model on a board of each core takes a minute."""
    names = (*CHIPS, "nrf52840", "stm32l476")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(reading, "load_chips", lambda: {name: load_chips()[name] for name in names})
        yield


@pytest.fixture(scope="module")
def model():
    """int8 ds_cnn, measured once."""
    request = RunRequest(model=path("int8_ds_cnn"))
    return reading.measure(request, Target([load_chips()[name] for name in CHIPS]))


@pytest.fixture(scope="module")
def root(model):
    return html_page.read(page.page([model]))


def table_after(root, heading):
    """The first table behind a heading."""
    parts = list(walk(root))
    start = next(i for i, one in enumerate(parts) if one.name in ("h2", "h3") and one.text == heading)
    return html_page.table(next(one for one in parts[start:] if one.name == "table"))


def walk(element):
    for child in element.children:
        if not isinstance(child, str):
            yield child
            yield from walk(child)


# ---- the parts and their figures


def test_the_verdict_comes_first(root):
    sections = [one for one in root.one("main").children if not isinstance(one, str)]
    verdict = sections[0].one("h2").text
    assert verdict.endswith("model.pte: fits stm32f407; DOES NOT FIT stm32f103")
    figures = dict(zip((one.text for one in sections[0].all("dt")),
                       (one.text for one in sections[0].all("dd")), strict=True))
    assert figures["multiply-accumulates"] == "2,656,768100 % of them in int8"
    assert list(figures)[0] == "time on stm32f407"


def test_the_figures_are_those_of_size(call, root):
    entry = json.loads(call("size", path("int8_ds_cnn"), *chips(), "--json")[1])
    head, rows = html_page.table(root.one("main").one("table"))
    assert [row[0] for row in rows] == list(CHIPS)
    for row, chip in zip(rows, entry["chips"], strict=True):
        found = dict(zip(head, row, strict=True))
        for what, name in (("C", "c"), ("MP", "micropython")):
            for memory in ("RAM", "flash"):
                total = chip["deployments"][name][memory.lower()]
                # without firmware of this core, the bytes of some parts are unknown
                at_least = ">" if None in total["parts"].values() else ""
                assert found[f"{memory}, {what}"] == f"{at_least}{total['all']:,}"
        about, ms = re.fullmatch("(~?)(.*)", found["ms"]).groups()
        assert about == ("" if chip["time"]["counted"] else "~")
        assert float(ms.replace(",", "")) == pytest.approx(chip["time"]["ms"], rel=0.01)
        assert found["verdict"] == ("fits" if chip["fits"] else "DOES NOT FIT")
    of_page = html_page.data(root)["models"][0]["size"]["chips"]
    assert [one["deployments"] for one in of_page[:2]] == [
        one["deployments"] for one in entry["chips"]]


def chips():
    return [word for name in CHIPS for word in ("--chip", name)]


def test_the_layers_are_those_of_profile(call, root, model):
    entry = json.loads(call("profile", path("int8_ds_cnn"), "--board", BOARD, "--json")[1])
    head, (*rows, foot) = table_after(root, "Layers")
    for row, layer in zip(rows, entry["instructions"], strict=True):
        found = dict(zip(head, row, strict=True))
        assert found["#"] == str(layer["index"]) and found["operator"] == layer["call"][:-4]
        assert found["input * weights -> output"] == layer["shapes"]
        assert found["cycles"] == f"{layer['cycles']:,}"
        assert found["share"] == f"{100 * layer['share']:.1f} %"
        assert found["MACs"].strip() == (f"{layer['macs']:,}" if layer["macs"] else "")
    assert f"{entry['macs']:,}" in foot and f"{entry['cycles']:,}" in foot
    assert html_page.data(root)["models"][0]["profile"]["instructions"] == entry["instructions"]
    head, rows = table_after(root, "Where the cycles go")
    assert [(row[0], row[2]) for row in rows] == [
        (one["call"][:-4], f"{one['cycles']:,}") for one in entry["operators"]]


def test_ram_and_flash_of_layers_are_those_of_the_program(call, model):
    entry = json.loads(call("inspect", path("int8_ds_cnn"), "--json")[1])["methods"][0]
    assert max(layer.ram for layer in model.layers) == entry["planned_buffers"][0]
    used = {name for one in entry["instructions"] for name in one["arguments"]}
    constants = {one["offset"]: one["nbytes"] for one in entry["tensors"]
                 if one["memory"] == "constant" and f"%{one['value']}" in used}
    assert sum(layer.flash for layer in model.layers) == sum(constants.values())
    assert [layer.dtype for layer in model.layers][:2] == ["int8", "int8"]
    assert model.layers[-1].dtype == "float32"


def test_advice_stands_at_its_layers(call, root, model):
    entry = json.loads(call("advise", path("int8_ds_cnn"), "--json")[1])
    assert [one["what"] for one in entry["advice"]] == [one.what for one in model.advice]
    for k, one in enumerate(entry["advice"], 1):
        assert {layer.index for layer in model.layers if k in layer.advice} == set(one["instructions"])
        item = root.one("li", id=f"model-0-advice-{k}")
        assert one["remedy"][1:] in item.text and next(root.all("a", href=f"#model-0-advice-{k}"))


def test_parts_add_up(root, model):
    focus = model.focus()
    assert focus.name == "stm32f407"
    for name, total in (("RAM", focus.deployments["c"].ram), ("flash", focus.deployments["c"].flash)):
        tables = [html_page.table(one) for one in root.all("table", class_="bars")]
        head, (*rows, foot) = next(one for one in tables if one[0][0] == f"{name}, stm32f407")
        counts = [int(row[2].replace(",", "")) for row in rows if row[2]]
        assert sum(counts) == total.all and foot[2] == f"{total.all:,}"


def test_all_chips_are_there(root):
    names = set(reading.load_chips())
    head, rows = html_page.table(root.one("section", id="chips").one("table"))
    assert {row[0] for row in rows} == names and {"ms", "verdict"} <= set(head)


@pytest.mark.thorough
def test_without_a_chip_the_verdict_counts_all(call, tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "load_chips", load_chips)
    root = written(call, tmp_path, path("add_1"))
    count = len(load_chips())
    assert root.one("main").one("h2").text.endswith(f"model.pte: fits {count} of {count} chips")


def test_the_page_refers_to_nothing_outside(root):
    for element in walk(root):
        assert element.name not in ("link", "img", "iframe", "object", "base")
        for key in ("src", "href", "action", "xlink:href"):
            assert element.attributes.get(key, "#").startswith("#")
        assert not any(key.startswith("on") for key in element.attributes)
    for anchor in root.all("a"):
        target = anchor.attributes["href"].removeprefix("#")
        assert any(one.attributes.get("id") == target for one in walk(root)), target


# ---- several models, and accuracy


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    file = tmp_path_factory.mktemp("samples") / "samples.npz"
    generator = np.random.default_rng(0)
    np.savez(file, in0=generator.uniform(0, 1, (8, 1, 1, 28, 28)).astype(np.float32),
             labels=generator.integers(0, 10, 8))
    return file


def test_int8_stands_beside_float(call, tmp_path, samples):
    root = written(call, tmp_path, INT8, "--float", NET, "--samples", samples, "--chip", "stm32f407")
    head, rows = table_after(root, "Beside each other")
    assert head == ["", "net_int8.pte", "net.pte"]
    found = {row[0]: row[1:] for row in rows}
    sizes = [file.stat().st_size for file in (INT8, NET)]
    assert found["program, bytes of flash"] == [
        f"{sizes[0]:,}", f"{sizes[1]:,} ×{sizes[1] / sizes[0]:.3g}"]
    assert found["of them in int8, %"] == ["100", "0"]
    model = html_page.data(root)["models"][0]
    (output,) = model["beside"]["outputs"]
    assert found["SQNR"][0] == f"{output['sqnr']:.1f} dB" and output["sqnr"] > 40
    assert found["accuracy"][0] == f"{100 * model['beside']['accuracy']['program']:.1f} %"
    head, rows = table_after(root, "Layers")
    sqnrs = {row[head.index("operator")]: row[head.index("SQNR")] for row in rows[:-1]}
    assert sqnrs["cortex_m::quantize_per_tensor"] == ""
    for operator in ("conv2d", "avg_pool2d", "linear"):
        assert float(sqnrs[f"cortex_m::quantized_{operator}"].removesuffix(" dB")) > 35


def test_layers_that_compute_the_same_stand_beside_each_other(call, tmp_path):
    root = written(call, tmp_path, INT8, NET)
    (_, rows), models = (html_page.table(root.one("details").one("table")),
                         html_page.data(root)["models"])
    assert ["1", "quantized_conv2d", "0-1", "convolution, relu"] == [
        rows[1][0], rows[1][1], rows[1][3], rows[1][4]]
    for column, model in ((2, models[0]), (5, models[1])):
        costs = [int(row[column].replace(",", "")) for row in rows if row[column]]
        assert sum(costs) == sum(layer["cost"] for layer in model["layers"])


def test_samples_need_something_to_compare(call, tmp_path):
    file = tmp_path / "samples.npz"
    np.savez(file, in0=np.zeros((4, 1, 1, 28, 28), np.float32))
    output = ("-o", tmp_path / "report.html")
    assert_error(call("report", INT8, "--samples", file, *output), "InvalidArgument", "labels",
                 "--float")
    np.savez(file, in0=np.zeros((4, 3), np.float32))
    assert_error(call("report", INT8, "--float", NET, "--samples", file, *output), "InvalidArgument",
                 str(file))
    assert not (tmp_path / "report.html").exists()


# ---- --report of other commands


def page_of(call, tmp_path, *arguments):
    output = tmp_path / "report.html"
    status, out, error = call(*arguments, "--report", output)
    assert (status, error) == (0, "") and out.endswith(f"Wrote {output}\n")
    return html_page.read(output.read_text())


def test_size_writes_a_page_of_the_same_figures(call, tmp_path):
    root = page_of(call, tmp_path, "size", path("int8_ds_cnn"), *chips())
    shown = json.loads(call("size", path("int8_ds_cnn"), *chips(), "--json")[1])
    assert html_page.data(root)["models"][0]["size"] == shown
    assert not list(root.all("section", id="chips"))  # no more than the table above
    root = page_of(call, tmp_path, "size", path("add_1"), "--board", BOARD)
    assert root.one("main").one("h2").text == "model.pte: fits mps2-an386"


@pytest.mark.parametrize("board, unit", [(BOARD, "cycles"), ("host", "ns")])
def test_profile_writes_a_page_of_its_run(call, tmp_path, board, unit):
    root = page_of(call, tmp_path, "profile", path("add_1"), "--board", board)
    found = html_page.data(root)["models"][0]
    assert (found["profile"]["board"], found["unit"]) == (board, unit)
    assert unit in table_after(root, "Layers")[0]


def test_compile_writes_a_page_with_both_files(call, tmp_path):
    ptm = tmp_path / "model.ptm"
    root = page_of(call, tmp_path, "compile", path("int8_ds_cnn"), "-o", ptm, "--chip", "stm32f407")
    found = {row[0]: row[1:] for row in table_after(root, "Beside each other")[1]}
    assert found["multiply-accumulates"] == ["2,656,768", "2,656,768 ×1"]
    assert found["method pool, bytes"] == ["2,588", "0"]
    assert_usage(call("compile", path("add_1"), "--c", tmp_path / "c", "--report",
                      tmp_path / "report.html"), "--report")


# ---- models that do not run


def test_a_model_that_no_board_can_run_has_a_page(call, tmp_path):
    root = written(call, tmp_path, path("delegated"), "--chip", "stm32f407")
    head, rows = table_after(root, "Layers")
    assert rows[0][head.index("~cycles")] == ""
    assert "backend" in root.one("section", class_="model").text


def test_a_method_without_planned_memory_has_a_page(call, tmp_path):
    root = written(call, tmp_path, path("no_inputs"), "--chip", "rp2040")
    assert root.one("section", class_="model")


# ---- names


def hostile(name):
    """relu of x, of a state with this name."""
    info = {"extra_tensor_info": {"fully_qualified_name": name + ".weight"}}
    return program(plan([tensor([4], 0, **info), tensor([4], 16)], [kernel_call(0, 0, 1, 1)],
                        ["aten::relu.out"], [0], [1], [32]))


@pytest.mark.parametrize("name", HOSTILE)
def test_names_stay_text(call, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    model = tmp_path / (name.replace("/", "|") + ".pte")
    model.write_bytes(hostile(name))
    root = written(call, tmp_path, model.name if model.name[0] != "-" else f"./{model.name}",
                   "--chip", "rp2040")
    scripts = list(root.all("script"))
    assert len(scripts) == 2 and {one.attributes.get("type") for one in scripts} == {
        "application/json", None}
    assert not list(root.all("img"))
    shown = "".join(c if c.isprintable() else "?" for c in name)
    head, rows = table_after(root, "Layers")
    assert rows[0][head.index("module")] == shown
    assert any(shown in one.text for one in root.one("svg").all("title"))
    assert root.one("h1").text == "".join(c if c.isprintable() else "?" for c in model.name)


@pytest.mark.parametrize("name", HOSTILE)
def test_elements_escape_text_and_attributes(name):
    made = html_page.read(markup.tag("p", name, [name], title=name, data_key=None, hidden=True))
    (element,) = made.children
    shown = "".join(c if c.isprintable() else "?" for c in name)
    assert element.text == 2 * shown and element.attributes == {"title": shown, "hidden": None}
    text = quoting.html_script({name: [name, math.inf]})
    assert not re.search(r"[<>&]", text) and json.loads(text) == {name: [name, "inf"]}
    assert html.unescape(quoting.html_attribute(name)) == shown


# ---- the memory map


def long_model(layers, name="stage{}.blocks.{}.attention.projection"):
    """relu, again and again, with names of modules; two buffers of which each is used in turn."""
    values = [tensor([16, 16], (i % 2) * 1024, extra_tensor_info={
        "fully_qualified_name": name.format(i // 9, i) + ".weight"}) for i in range(layers + 1)]
    calls = [kernel_call(0, i, i + 1, i + 1) for i in range(layers)]
    return program(plan(values, calls, ["aten::relu.out"], [0], [layers], [2048]))


def corners(element):
    """The corners of a text of the drawing, as wide as the widest of its fonts makes it."""
    x, y = float(element.get("x")), float(element.get("y"))
    width = len(element.text) * memory_map._CHARACTER * 0.99
    left = {"end": x - width, "middle": x - width / 2}.get(element.get("text-anchor"), x)
    points = [(left, y - 9), (left + width, y - 9), (left + width, y + 2), (left, y + 2)]
    turn = re.match(r"rotate\((-?[\d.]+) ([\d.]+) ([\d.]+)\)", element.get("transform") or "")
    if not turn:
        return points
    angle, cx, cy = math.radians(float(turn[1])), float(turn[2]), float(turn[3])
    return [(cx + (px - cx) * math.cos(angle) - (py - cy) * math.sin(angle),
             cy + (px - cx) * math.sin(angle) + (py - cy) * math.cos(angle)) for px, py in points]


def overlap(one, other):
    """Return True if two convex shapes overlap: no side of either separates them."""
    for shape in (one, other):
        for (ax, ay), (bx, by) in zip(shape, shape[1:] + shape[:1], strict=True):
            normal = (ay - by, bx - ax)
            spans = [sorted(px * normal[0] + py * normal[1] for px, py in points)
                     for points in (one, other)]
            if spans[0][-1] <= spans[1][0] or spans[1][-1] <= spans[0][0]:
                return False
    return True


@pytest.mark.parametrize("layers", [1, 8, 60, 90, 200, 1200])
def test_labels_of_the_memory_map_do_not_overlap(layers):
    meta = open_program(long_model(layers)).method_meta("forward")
    names = {i: f"stage{i // 9}.blocks.{i}.attention.projection" for i in range(layers)}
    for drawing in (memory_map.for_page(meta, names), memory_map.draw(meta, "model.pte")):
        texts = [one for one in ElementTree.fromstring(drawing).iter() if one.tag.endswith("text")]
        shapes = [corners(one) for one in texts if one.text]
        assert len(shapes) > 8
        for (i, one), (k, other) in itertools.combinations(enumerate(shapes), 2):
            assert not overlap(one, other), (texts[i].text, texts[k].text)


def test_a_page_of_200_layers_has_each_in_the_map_and_the_table(tmp_path):
    (tmp_path / "long.pte").write_bytes(long_model(200))
    found = reading.measure(RunRequest(model=tmp_path / "long.pte"), Target([load_chips()["rp2040"]]))
    root = html_page.read(page.page([found]))
    assert len(list(root.all("tr"))) > 200
    titles = [one.text for one in root.one("svg").all("title")]
    for i in range(199):
        assert any(f"from {i} stage" in title for title in titles)


# ---- in a browser


needs_chromium = pytest.mark.skipif(html_page.CHROMIUM is None, reason="chromium is not installed")
PAGES = {"int8": ("int8_ds_cnn",), "two": ("int8_ds_cnn", "ds_cnn"), "float": ("resnet8",),
         "attention": ("int8_attention",), "lstm": ("lstm",)}
WIDTH = """
document.title = JSON.stringify([document.documentElement.scrollWidth, innerWidth,
  [...document.querySelectorAll("main *")].filter((one) => !one.closest(".scroll")
    && one.getBoundingClientRect().right > innerWidth + 1).map((one) => one.outerHTML.slice(0, 80))]);
"""
SORT = """
const table = document.querySelector("tr[data-layer]").closest("table");
const column = [...table.tHead.rows[0].cells].findIndex((one) => one.textContent === "cycles");
const keys = () => [...table.tBodies[0].rows].map((one) => Number(one.cells[column].dataset.sort));
const button = table.tHead.rows[0].cells[column].querySelector("button");
const result = [];
button.focus();
result.push(document.activeElement === button);
for (let i = 0; i < 2; i++) { button.click(); result.push(keys(), button.parentNode.ariaSort); }
const input = document.querySelector("section.model input");
input.value = "depthwise"; input.dispatchEvent(new Event("input"));
result.push([...table.tBodies[0].rows].filter((one) => !one.hidden).length);
table.tBodies[0].rows[0].cells[0].querySelector("button").click();
result.push(document.querySelectorAll(".memory-map .marked").length > 0);
document.title = JSON.stringify(result);
"""


def title_of(text):
    return json.loads(html.unescape(re.search(r"<title>(.*?)</title>", text, re.DOTALL)[1]))


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Write a page once: pages(name) -> its path."""
    folder, made = tmp_path_factory.mktemp("pages"), {}

    def page_of(name):
        if name not in made:
            models = [reading.measure(RunRequest(model=path(one)),
                                      Target([load_chips()["stm32f407"]])) for one in PAGES[name]]
            made[name] = folder / f"{name}.html"
            made[name].write_text(page.page(models))
        return made[name]

    return page_of


@needs_chromium
@pytest.mark.thorough
@pytest.mark.parametrize("name", PAGES)
def test_the_console_has_no_error(pages, name):
    shown, console = html_page.chromium(pages(name))
    assert console == [] and "<main>" in shown and 'aria-sort="none"' in shown


@needs_chromium
def test_a_table_sorts_filters_and_marks(pages):
    shown, console = html_page.chromium(pages("int8"), script=SORT)
    focused, down, first, up, second, rows, is_marked = title_of(shown)
    assert console == [] and focused and rows == 5 and is_marked
    assert (first, second) == ("descending", "ascending")
    assert down == sorted(down, reverse=True) and up == sorted(up)


@needs_chromium
@pytest.mark.thorough
@pytest.mark.parametrize("name", PAGES)
def test_only_tables_and_drawings_scroll_across(pages, name):
    """Headless Chromium has no window of 400 pixels; a frame in it has."""
    frame = pages(name).with_name("frame.html")
    html_page.chromium(pages(name), script=WIDTH)  # writes with_script.html
    frame.write_text("<iframe src='with_script.html' width=400 height=900></iframe><script>"
                     "onload = () => { document.title = frames[0].document.title; };</script>")
    shown, _ = html_page.chromium(frame, "--allow-file-access-from-files")
    width, available, outside = title_of(shown)
    assert available == 400 and width <= available and outside == []
