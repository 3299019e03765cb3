#!/usr/bin/env python3
"""Build the site from docs/ into build/site, and check it. make site installs what it needs.

    make site
    .venv/bin/python tools/build_site.py

The build is strict: a link or an anchor that leads nowhere ends it. The search has to find the name of
each error, each command and each option.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import click
from picotorch.cli.main import cli
from picotorch.schema import ERROR_NAMES

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ROOT / "build" / "site-packages"
SITE = ROOT / "build" / "site"


def names():
    """Return all names that a user may search for: errors, commands and their options."""
    found = set(ERROR_NAMES.values())
    with click.Context(cli, info_name="picotorch") as context:
        for name in cli.list_commands(context):
            command = cli.get_command(context, name)
            found |= {name, *(option for one in command.params if isinstance(one, click.Option)
                              if not one.hidden for option in one.opts)}
    return found


def main():
    environment = os.environ | {"PYTHONPATH": str(PACKAGES), "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run([sys.executable, "-m", "mkdocs", "build", "--strict",  # not with --quiet
                           "-f", ROOT / "tools" / "site" / "mkdocs.yml"], env=environment,
                          stderr=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit("\n".join(line for line in done.stderr.splitlines() if not line.startswith("INFO")))
    entries = json.loads((SITE / "search" / "search_index.json").read_text())["docs"]
    text = " ".join(f"{one['title']} {one['text']}" for one in entries)
    if missing := sorted(name for name in names() if name not in text):
        sys.exit("the search does not find: " + ", ".join(missing))
    print(f"{SITE.relative_to(ROOT)}/index.html: {len(list(SITE.rglob('*.html')))} pages")


if __name__ == "__main__":
    main()
