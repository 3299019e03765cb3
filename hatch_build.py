"""Compile the extension, and add the sources of the commands and the project's URLs to the wheel.

hatchling calls the classes below.

The sources are files of boards/, examples/, kernels/, port/ and tests/fixtures/ (see
host/picotorch/host/sources.py). PICOTORCH_PREBUILT in the environment names a folder of firmware and
native modules for the wheel, laid out as build/ is; tools/make_wheel.py fills one.
"""

import importlib.util
import os
import sysconfig
import tomllib
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

ROOT = Path(__file__).resolve().parent

SOURCES = {  # folder: patterns of its files
    "boards": ("*/board.toml", "chips.toml", "flashing.toml"),
    "examples": ("*/*.py", "*/*.md", "*/expected.txt", "*/model.pte", "*/recording.*", "c/target*",
                 "c/mps2.ld"),
    "kernels": ("kernels.mk", "CMakeLists.txt", "**/*.c", "**/*.h", "**/*.inc", "**/*.def"),
    "port/firmware/frozen": ("*.py",),
    "port/natmod": ("*.py",),
    "port/upstream": ("boards.toml", "rp2/*/mpconfigboard.h"),
    "tests/fixtures": (  # of selftest
        "add_5/*", "constant_methods/model.pte", "control_flow/*", "dynamic_batch/*", "gru_stateful/*",
        "int8_ds_cnn/*", "int8_elementwise/*", "lstm/*", "mlp/*"),
}
WITHOUT = {"examples/c/README.md"}


class CustomBuildHook(BuildHookInterface):
    """The hook of hatchling."""

    def initialize(self, version, build_data):
        """Compile the extension: beside its package for an editable install, else for the wheel."""
        if self.target_name != "wheel":
            return
        build = _build_of_extension()
        os.umask(0o022)
        os.environ.pop("SOURCE_DATE_EPOCH", None)  # hatchling's own date: equal sources, equal bytes
        if version == "editable":
            build.build(ROOT / "host", ROOT / "build" / "extension")
            return
        built = build.build(ROOT / "build" / "wheel", ROOT / "build" / "extension")
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["tag"] = f"cp311-abi3-{platform}"
        build_data["pure_python"] = False
        build_data["force_include"] |= {str(built): built.name, **_sources(), **_prebuilt()}


class CustomMetadataHook(MetadataHookInterface):
    """The hook of hatchling for the project's metadata."""

    def update(self, metadata):
        """Add the URLs, if [tool.picotorch] of pyproject.toml has the repository's."""
        project = tomllib.loads((Path(self.root) / "pyproject.toml").read_text())
        url = project["tool"]["picotorch"]["url"].rstrip("/")
        metadata["urls"] = {} if not url else {
            "Repository": url, "Issues": f"{url}/issues",
            "Documentation": f"{url}/tree/main/docs", "Changelog": f"{url}/blob/main/CHANGELOG.md"}


def _build_of_extension():
    spec = importlib.util.spec_from_file_location("build", ROOT / "host" / "_picotorch" / "build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _sources():
    """Map files of this checkout to their places in the wheel."""
    paths = {path for folder, patterns in SOURCES.items() for pattern in patterns
             for path in (ROOT / folder).glob(pattern) if path.is_file()}
    names = sorted(str(path.relative_to(ROOT)) for path in paths)
    return {str(ROOT / name): f"picotorch/sources/{name}" for name in names if name not in WITHOUT}


def _prebuilt():
    folder = os.environ.get("PICOTORCH_PREBUILT")
    return {folder: "picotorch/sources/build"} if folder else {}
