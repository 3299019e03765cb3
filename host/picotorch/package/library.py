"""Write the library for a platform, without a model: picotorch library."""

import re
from collections.abc import Mapping
from pathlib import Path

from picotorch import Program, __version__
from picotorch.errors import ACCESS_FAILED, fail

from ..firmware.selective import operator_file
from ..host import quoting
from ..host.operators import needed_features, needed_operators
from . import c_files, c_sources
from .license import license_text
from .platforms import LIBRARIES, Platform, replace_words

MARK = "Written by picotorch library"


def write(folder: Path, platform: Platform, programs: Mapping[str, Program]) -> list[str]:
    """Write the library with the kernels that programs need, or with all if there are none.

    programs: by the names of their files. Returns the changed files that were kept, see
    c_files.write_files. Raises AccessFailed, and OperatorMissing.
    """
    files = {platform.path_of(path): platform.text_of(path, text)
             for path, text in _sources(dict(programs), platform).items()}
    sources = sorted(path for path in files if path.endswith(".c"))
    words = {"MARK": MARK, "VERSION": __version__, "PACKFILES": c_files.pack_lines(sources),
             "KERNELS": _kernels(list(programs))}
    own = replace_words(platform.templates(LIBRARIES) | {"LICENSE": license_text()}, words)
    others = c_files.written_files(folder, platform.library) - own.keys()
    if any(not path.startswith(f"{platform.library}/") and Path(path).suffix in (".c", ".h")
           for path in others):
        raise fail(ACCESS_FAILED, "has a project with models, which would be removed", str(folder),
                   remedy="name another folder")
    return c_files.write_files(folder, platform.library, files | own, own.keys())


def _kernels(names: list[str]) -> str:
    """Return the words for the kernels in a README."""
    listed = " and ".join(re.sub(r"\s+", " ", quoting.html(name)) for name in names)
    return f"the kernels that {listed} need{'' if len(names) > 1 else 's'}" if names else "all kernels"


def _sources(programs: dict[str, Program], platform: Platform) -> dict[str, str]:
    """Return the texts of files by their paths in kernels/."""
    builds = [] if platform.flat else ["kernels.mk", "CMakeLists.txt"]
    if not programs:
        paths = c_sources.all_files()
        return {path: (c_sources.KERNELS / path).read_text() for path in [*paths, *builds]}
    operators, features = needed_operators(programs), needed_features(programs)
    paths = c_sources.needed_files(operators, features, runs_programs=True)
    files = {path: (c_sources.KERNELS / path).read_text() for path in [*paths, *builds]}
    return files | {"core/registry/operators.def": operator_file(operators, features)}
