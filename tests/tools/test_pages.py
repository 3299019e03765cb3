"""Compare README.md and docs/ with the code: figures, code blocks, shown output, links, named tests."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from picotorch.cli import main as cli
from picotorch.host.operators import supported_operators
from picotorch.run import running
from support import fixture_store, shown_code
from support.tool import load_tool

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = ROOT / "docs"
README = ROOT / "README.md"
PAGES = [*ROOT.glob("*.md"), *DOCUMENTS.glob("*.md"), *ROOT.glob("boards/*.md"),
         *ROOT.glob("examples/*/README.md")]
SHOWN_BY = re.compile(r"\[(\w+)\]\(\.\./(\S+?)\)")
PATH = re.compile(r"(?:boards|docs|examples|host|kernels|port|schema|tests|tools)/[\w./-]+$")
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")


def tool(name, *arguments):
    done = subprocess.run([sys.executable, ROOT / "tools" / name, *arguments], cwd=ROOT, text=True,
                          capture_output=True)
    assert done.returncode == 0, done.stdout + done.stderr


# ---- README.md


def test_readme_is_short():
    assert len(README.read_text().splitlines()) <= 120


def test_the_figures_of_readme_equal_the_documents():
    tool("readme.py", "--check")


@pytest.mark.parametrize("block", range(len(shown_code.code(README, "python"))))
def test_the_python_of_readme_runs(block, tmp_path):
    fixture = fixture_store.load("ds_cnn")
    run = fixture.runs[0]
    y = shown_code.run_python(shown_code.code(README, "python")[block], sys.executable, tmp_path,
                              fixture.pte, run.inputs[0])
    assert np.allclose(y, run.expected[0].ravel(), rtol=1e-4, atol=1e-5)


def test_the_c_of_readme_calls_a_project(tmp_path):
    shown_code.compile_with_project(README, DOCUMENTS / "net_int8.pte", sys.executable, tmp_path)


def test_the_c_of_the_pages_compiles(tmp_path):
    shown_code.compile_c(DOCUMENTS / "c.md", ROOT / "kernels" / "include", tmp_path)


# ---- all pages


@pytest.mark.parametrize("page", [pytest.param(page, id=str(page.relative_to(ROOT)))
                                  for page in PAGES])
def test_links_lead_somewhere(page):
    for path, anchor in LINK.findall(page.read_text()):
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), path
        if anchor:
            headings = re.findall(r"^#+ (.*)", target.read_text(), re.MULTILINE)
            anchors = [re.sub(r"[^\w -]", "", line.lower()).replace(" ", "-") for line in headings]
            assert anchor in anchors, f"{path}#{anchor}"


@pytest.mark.parametrize("page", [pytest.param(page, id=str(page.relative_to(ROOT)))
                                  for page in PAGES])
def test_paths_of_the_repository_exist(page):
    words = [word for span in re.findall(r"`([^`\n]+)`", page.read_text()) for word in span.split()]
    for path in filter(PATH.match, words):
        assert (ROOT / path).exists(), path


@pytest.mark.thorough
@pytest.mark.parametrize("page", [page.name for page in sorted(DOCUMENTS.glob("*.md"))
                                  if "```console" in page.read_text()])
def test_pages_show_the_output_of_commands(page):
    tool("pages.py", "--check", DOCUMENTS / page)


def test_a_figure_may_not_differ(tmp_path):
    pages = load_tool("pages")
    assert pages.is_same("stack  1,000", "stack 1,000 ")
    for shown, printed in (("stack 1,000", "stack 1,001"), ("about 5.08 ms", "about 5.09 ms"),
                           ("Measuring ... 4.2 s", "Measuring ... N.N s")):
        assert not pages.is_same(shown, printed)


def test_the_seconds_of_a_step_are_masked(tmp_path):
    pages = load_tool("pages")
    environment = pages.Environment(Path(sys.executable), tmp_path)
    assert environment.run("echo 'Measuring ... 4.2 s'; echo 'it takes 4.2 s'") == [
        "Measuring ... N.N s", "it takes 4.2 s"]
    assert environment.run("echo 'Reading ... 12 of 20, 2 s left ... 19 ... 4.2 s'") == [
        "Reading ... N.N s"]
    for page in DOCUMENTS.glob("*.md"):
        assert not re.search(r" \.\.\. \d+\.\d s$", page.read_text(), re.MULTILINE), page.name


def test_numbers_of_operators_and_boards_in_prose_are_exact():
    """A page writes "has kernels for N operators", "has kernels of N" or "all N"."""
    count = len(supported_operators())
    for page in (README, DOCUMENTS / "features.md", DOCUMENTS / "natmod.md"):
        text = page.read_text()
        found = re.findall(r"(?:has kernels (?:for|of)|all|of \d+ of) (\d+) operators", text)
        assert found and set(found) == {str(count)}, page.name
    words = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
    assert f"QEMU, {words[len(running.board_names()) - 2]} boards" in README.read_text()


def test_every_command_is_in_the_list():
    page = (DOCUMENTS / "command-line.md").read_text()
    for name in cli.cli.list_commands(None):
        assert re.search(rf"^\| `{name}\b", page, re.MULTILINE), name


# ---- names in the column "shown by" of features.md and trust.md


def rows(page):
    """Return the rows of the tables whose last column is headed "shown by"."""
    shown = False
    for line in (DOCUMENTS / page).read_text().splitlines():
        if not line.startswith("|"):
            shown = False
        elif line.endswith("| shown by |"):
            shown = True
        elif shown and re.match(r"\| [^-|]", line):
            yield line


ROWS = [(page, row) for page in ("features.md", "trust.md") for row in rows(page)]


def is_defined(name, path):
    text = path.read_text()
    return (re.search(rf"^ *(def|class) {name}\b", text, re.MULTILINE) if path.suffix == ".py"
            else re.search(rf"^[^ /#].*\b{name}\(", text, re.MULTILINE)) or path.stem == name


def test_there_are_rows():
    assert len(ROWS) > 55


@pytest.mark.parametrize("row", [pytest.param(row, id=f"{page}: {row.split('|')[1].strip()[:40]}")
                                 for page, row in ROWS])
def test_a_row_names_existing_files(row):
    assert SHOWN_BY.findall(row.rpartition("|")[0].rpartition("|")[2])
    for name, path in SHOWN_BY.findall(row):
        target = ROOT / path
        if target.is_dir():
            assert (target / "model.pte").is_file()
        else:
            assert is_defined(name, target), f"{name} is not in {path}"
