"""Add the repository's other pages to the pages of docs/, and point links to them.

A page outside docs/, such as CONTRIBUTING.md, becomes project/CONTRIBUTING.md of the site. README.md
becomes index.md. Any other file that a page links to is copied to source/. The pages in reference/ are
written from the help of the commands, from picotorch.h, and from docstrings.
"""

import inspect
import posixpath
import re
import tomllib
from pathlib import Path

import click
import picotorch
from mkdocs.structure.files import File
from picotorch.cli import main as cli

ROOT = Path(__file__).resolve().parents[2]
HEADER = ROOT / "kernels" / "include" / "picotorch" / "picotorch.h"
LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\((?!https?:)([^)#\s]*)(#[^)\s]+)?\)")
IMAGE = re.compile(r"(!\[[^\]]*\])\(docs/([^)\s]+)\)")
FENCE = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)
ITEM = re.compile(r"(?:[-*+]|\d+[.)]) +")
PYTHON = ("Program", "BufferDataLoader", "FileDataLoader", "MethodMeta", "MemoryAllocator",
          "HierarchicalAllocator", "MemoryManager", "Method", "Module", "Tensor", "TensorInfo",
          "ValueList", "from_blob", "FlatTensorDataMap", "MergedDataMap", "TensorLayout", "Backend",
          "register_backend", "registered_backend_names", "unregister_backend", "EventTracer", "Error")


# ---- places: files of the repository and of the site


def page_of(path):
    """Return the page or file of the site that shows a file of the repository; None for none."""
    if path == "README.md":
        return "index.md"
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    full = ROOT / path
    if full.is_dir():
        return page_of(f"{path}/README.md") if (full / "README.md").exists() else None
    return f"project/{path}" if path.endswith(".md") else f"source/{path}"


def path_of(page):
    """Return the file of the repository that a page shows."""
    if page == "index.md":
        return "README.md"
    return page.removeprefix("project/") if page.startswith("project/") else f"docs/{page}"


def target(path, link):
    """Return the file of the repository to which a link of another one leads."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), link)) if link else path


def linked(path):
    """Return the files of the repository to which a page links."""
    return {target(path, link) for _, link, _ in LINK.findall((ROOT / path).read_text())}


def title(path):
    """Return the first heading of a page."""
    return re.search(r"^# (.*)", (ROOT / path).read_text(), re.MULTILINE)[1].partition(":")[0]


def relink(markdown, path, page):
    """Return a page of the repository with links to the pages of the site."""
    def one(found):
        text, link, anchor = found.groups()
        place = page_of(target(path, link))
        if place is None:
            return text
        if text.endswith(".md") and link.endswith(text):
            text = title(target(path, link))
        relative = posixpath.relpath(place, posixpath.dirname(page) or ".") if link else ""
        return f"[{text}]({relative}{anchor or ''})"

    parts = FENCE.split(markdown)  # a code block is left as it is
    return IMAGE.sub(r"\1(\2)", "".join(part if part.startswith("```") else LINK.sub(one, part)
                                        for part in parts))


# ---- from GitHub's Markdown to that of Python-Markdown


def indented(markdown):
    """Indent the blocks of list items by 4 spaces a level, and put empty lines above lists and tables.

    GitHub accepts blocks indented as far as the text of their item, an item directly below a block, and
    lists and tables directly below a paragraph.
    """
    lines, items, fence = [], [], False  # items: the column of their text, and their first line
    for line in markdown.splitlines():
        rest = line.lstrip()
        before = None  # the item that ends above
        while rest and not fence and items and len(line) - len(rest) < items[-1][0]:
            before = items.pop()
        column = items[-1][0] if items else 0
        text = line[column:]
        item = None if fence else ITEM.match(text)
        above = lines[-1] if lines else ""
        if above and not fence and (
                before and "" in lines[before[1]:] or
                not items and not before and (item and above[0] != "#" or
                                              text.startswith("|") and above[0] not in "|<")):
            lines.append("")
        if item:
            items.append((column + item.end(), len(lines)))
        lines.append(" " * 4 * (len(items) - bool(item)) + text if rest else "")
        fence ^= rest.startswith("```")
    return "\n".join(lines).replace("<details><summary>", '<details markdown="1">\n<summary>')


# ---- pages that are written here


def commands_page():
    """Return a page with the help of each command."""
    lines = ["# Commands", "", "The help of each command, as `picotorch COMMAND --help` prints it.", ""]
    group = cli.cli
    with click.Context(group, info_name="picotorch", terminal_width=100) as context:
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            inner = click.Context(command, info_name=name, parent=context, terminal_width=100)
            lines += [f"## {name}", "", "```text", command.get_help(inner), "```", ""]
    return "\n".join(lines)


def c_page():
    """Return a page with the comments and declarations of picotorch.h, section by section."""
    text = HEADER.read_text()
    manual, _, rest = text.partition("#ifndef PICOTORCH_H")
    manual = "\n".join(line.removeprefix("//").removeprefix(" ") for line in manual.splitlines())
    lines = ["# C API", "", "All of `#include <picotorch/picotorch.h>`.", "", manual, ""]
    for section in rest.split("// ---- ")[1:]:
        title, _, body = section.partition("\n")
        body = re.split(r"#ifdef __cplusplus|#endif", body)[0].strip()
        lines += [f"## {title[:1].upper()}{title[1:]}", "", "```c", body, "```", ""]
    return "\n".join(lines)


def python_page():
    """Return a page that mkdocstrings fills with the docstrings of the classes and functions."""
    lines = ["# Python API", "", "All of `import picotorch`, on boards and on computers.", ""]
    for name in PYTHON:
        lines.append(f"::: picotorch.{name}\n")
        if (getattr(picotorch, name).__doc__ or "").startswith("Made by"):  # not by its constructor
            lines.append("    options:\n      merge_init_into_class: false\n")
    return "\n".join(lines)


WRITTEN = {"reference/commands.md": commands_page, "reference/c.md": c_page,
           "reference/python.md": python_page}


# ---- what mkdocs calls


def on_config(config):
    """Link the site to the repository, if pyproject.toml has its URL."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    config.repo_url = project["tool"]["picotorch"]["url"] or None
    return config


def on_files(files, config):
    """Add the pages and files that the pages of docs/ link to, and the written pages."""
    files.append(File.generated(config, "assets/site.css",
                                content=Path(__file__).with_name("site.css").read_text()))
    for page, write in WRITTEN.items():
        files.append(File.generated(config, page, content=inspect.cleandoc(write())))
    wanted = ["README.md", *(f"docs/{one.src_uri}" for one in files.documentation_pages()
                             if one.src_uri not in WRITTEN)]
    seen = set(wanted)
    while wanted:
        path = wanted.pop()
        if path.endswith(".md"):
            if not path.startswith("docs/"):
                files.append(File.generated(config, page_of(path), content=(ROOT / path).read_text()))
            more = {one if (ROOT / one).is_file() else f"{one}/README.md" for one in linked(path)}
            more = {one for one in more - seen if (ROOT / one).is_file()}
            seen |= more
            wanted += more
        elif not path.startswith("docs/"):
            files.append(File.generated(config, page_of(path), abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown, page, **_):
    """Point the links of a page to pages of the site, and indent its lists."""
    name = page.file.src_uri
    return markdown if name in WRITTEN else indented(relink(markdown, path_of(name), name))
