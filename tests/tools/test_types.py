"""Test that the check of types finds the misuse of picotorch's results in code without annotations."""

import json
from pathlib import Path

import pytest
from support.tool import load_tool

ROOT = Path(__file__).resolve().parents[2]
check_types = load_tool("check_types")

MISUSES = {
    "a key of a dataclass": "profile(request(), 'host')[0]['instructions']",
    "an attribute that a dataclass lacks":
        "[row.caller for row in profile(request(), 'host')[0].instructions]",
    "an argument that a function lacks": "profile(request(), 'host', names=[])",
    "a function that a module lacks": "profiling.profiles",
}
USES = """
from picotorch.host.request import Request
from picotorch.measure import profiling
from picotorch.measure.profiling import profile

def request():
    return Request(b"", "", [])

def test_use(numbers=(1, 2)):
    numbers.absent  # not of picotorch
    profile(request(), "host")[0].instructions[0].call
    """


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """Return the lines of the files with findings."""
    folder = tmp_path_factory.mktemp("types")
    for name, misuse in {"nothing": "pass", **MISUSES}.items():
        (folder / f"{name}.py").write_text(USES + misuse + "\n")
    options = check_types.PROJECTS[1].read_text().split("\n", 1)[1]
    project = folder / "pyrightconfig.json"
    project.write_text(json.dumps(json.loads(options) | {
        "include": ["."], "exclude": [], "extraPaths": [str(ROOT / "host")], "venvPath": str(ROOT)}))
    classes = check_types.typed_classes()
    return [(Path(one["file"]).stem, one["range"]["start"]["line"])
            for one in check_types.findings(project)
            if check_types.is_of_picotorch(one["message"], classes)]


def test_each_misuse_is_found_and_nothing_else(found):
    assert sorted(found) == sorted((name, USES.count("\n")) for name in MISUSES)
