#!/usr/bin/env python3
"""Build the site from docs/ into build/site, and check it. make site installs what it needs.

    make site
    .venv/bin/python tools/build_site.py

The build is strict: it fails for a link or an anchor that leads nowhere, and for Markdown that a page
shows as text. The search has to find the name of each error, command and option as a whole word.
"""

import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import click
from picotorch.cli.main import cli
from picotorch.schema import ERROR_NAMES

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ROOT / "build" / "site-packages"
SITE = ROOT / "build" / "site"
# Elements without Markdown's marks; elements that begin a text of their own
SKIPPED = {"code", "pre", "script", "style", "nav", "h1", "h2", "h3", "h4"}
BLOCKS = {"p", "li", "td", "th", "dd", "div", "details"}
# An item of a list; a row or the rule of a table; a heading; bold text, a link, code or a fence
MARKDOWN = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s|^\s*\||\|\s*$|\|\s*:?-{3}|^\s*#+ |\*\*|\]\(|`",
                      re.MULTILINE)


def names():
    """Return all names that a user may search for: errors, commands and their options."""
    found = set(ERROR_NAMES.values())
    with click.Context(cli, info_name="picotorch") as context:
        for name in cli.list_commands(context):
            command = cli.get_command(context, name)
            found |= {name, *(option for one in command.params if isinstance(one, click.Option)
                              if not one.hidden for option in one.opts)}
    return found


class Texts(HTMLParser):
    """Collect the texts of a page, block by block, without code and headings."""

    def __init__(self, page):
        super().__init__()
        self.skipped, self.blocks = 0, [""]
        self.feed(page.read_text())

    def handle_starttag(self, tag, attrs):
        self.skipped += tag in SKIPPED
        self.blocks += [""] * (tag in BLOCKS)

    def handle_endtag(self, tag):
        self.skipped -= tag in SKIPPED
        self.blocks += [""] * (tag in BLOCKS)

    def handle_data(self, data):
        if not self.skipped:
            self.blocks[-1] += data


def check_pages():
    """End the program if a page shows Markdown as text."""
    shown = [f"{page.relative_to(SITE)}: {text.strip()[:200]}" for page in sorted(SITE.rglob("*.html"))
             for text in Texts(page).blocks if MARKDOWN.search(text)]
    if shown:
        sys.exit("pages show Markdown as text:\n" + "\n".join(shown))


def check_search():
    """End the program if the search does not find a name as a whole word."""
    entries = json.loads((SITE / "search" / "search_index.json").read_text())["docs"]
    words = {word for one in entries
             for word in re.findall(r"--?[a-z][\w-]*|\w[\w-]*", f"{one['title']} {one['text']}")}
    if missing := sorted(names() - words):
        sys.exit("the search does not find: " + ", ".join(missing))


def main():
    environment = os.environ | {"PYTHONPATH": str(PACKAGES), "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run([sys.executable, "-m", "mkdocs", "build", "--strict",  # not with --quiet
                           "-f", ROOT / "tools" / "site" / "mkdocs.yml"], env=environment,
                          stderr=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit("\n".join(line for line in done.stderr.splitlines() if not line.startswith("INFO")))
    check_pages()
    check_search()
    print(f"{SITE.relative_to(ROOT)}/index.html: {len(list(SITE.rglob('*.html')))} pages")


if __name__ == "__main__":
    main()
