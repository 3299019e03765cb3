"""Read a page of HTML into a tree of elements, and show it in Chromium."""

import html.parser
import json
import shutil
import subprocess
from pathlib import Path

VOID = {"br", "col", "input", "meta", "wbr"}
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))),
                None)
# Of Chromium itself, not of the page
_OF_THE_BROWSER = ("dbus", "gpu", "gcm", "vaapi", "ssl_", "viz", "mojo", "DEPRECATED_ENDPOINT")


class Element:
    """An element: name, attributes, children (elements and texts)."""

    def __init__(self, name, attributes):
        self.name, self.attributes, self.children = name, dict(attributes), []

    def all(self, name, **wanted):
        """Give the elements of a name below, with these attributes; class_ is one of the classes."""
        for child in self.children:
            if isinstance(child, Element):
                if child.name == name and child._has(wanted):
                    yield child
                yield from child.all(name, **wanted)

    def one(self, name, **wanted):
        return next(self.all(name, **wanted))

    def _has(self, wanted):
        classes = (self.attributes.get("class") or "").split()
        return all(value in classes if key == "class_" else self.attributes.get(key) == value
                   for key, value in wanted.items())

    @property
    def text(self):
        return "".join(one if isinstance(one, str) else one.text for one in self.children)


class _Reader(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.root = Element("", {})
        self.open = [self.root]

    def handle_starttag(self, tag, attrs):
        element = Element(tag, attrs)
        self.open[-1].children.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_endtag(self, tag):
        assert self.open[-1].name == tag, f"</{tag}> in <{self.open[-1].name}>"
        self.open.pop()

    def handle_data(self, data):
        self.open[-1].children.append(data)


def read(text):
    """Return the root of a page, whose elements all end where they may."""
    reader = _Reader()
    reader.feed(text)
    reader.close()
    assert reader.open == [reader.root]
    return reader.root


def table(element):
    """Return the head and the rows of a table, as texts."""
    head, *rows = [[cell.text for cell in row.children] for row in element.all("tr")]
    return head, rows


def data(root):
    """Return the JSON of a page."""
    return json.loads(root.one("script", id="data").text)


def chromium(path, *options, script="", width=1280, height=900):
    """Show a page in Chromium: return the document afterwards, and what the page wrote to the console.

    script: JavaScript that is executed behind the page, as a frame of it would.
    """
    shown = Path(path)
    if script:
        shown = shown.with_name("with_script.html")
        text = Path(path).read_text()
        policy = text.index("script-src 'sha256-")
        text = text[:policy] + "script-src 'unsafe-inline" + text[text.index("'\">", policy):]
        shown.write_text(text.replace("</body>", f"<script>{script}</script></body>"))
    done = subprocess.run(
        [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr",
         f"--window-size={width},{height}", *options, "--dump-dom", shown.as_uri()],
        capture_output=True, text=True, timeout=120, check=True)
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line or (
        "ERROR" in line and not any(word in line for word in _OF_THE_BROWSER))]
    return done.stdout, console
