"""Replace files on a board: every step is interrupted or rejected, on both kinds of file systems."""

import errno
import functools
import io
import itertools
import sys
from types import SimpleNamespace

import pytest
from picotorch.firmware import native_module
from picotorch.run.device import protocol

pytestmark = pytest.mark.thorough

REPLACING = (protocol.ON_BOARD / "replacing.py").read_text()
STEPS = 40  # more steps than any replacement has
SETS = {  # paths, the main one first or last, and the paths that existed before
    "one": (["m.pte"], ["m.pte"]),
    "one that is new": (["m.pte"], []),
    "model and data": (["m.pte", "a.ptd", "b.ptd"], ["m.pte", "a.ptd", "b.ptd"]),
    "data that is new": (["m.pte", "a.ptd", "b.ptd"], ["m.pte", "b.ptd"]),
    "a library": (["lib/p/a.mpy", "lib/m.mpy"], ["lib/p/a.mpy", "lib/m.mpy"]),
}


class Cut(BaseException):
    """The board has lost its power."""


class Disk:
    """A file system. `replaces` is true if a rename replaces a file, as on littlefs, false as on
    FAT."""

    def __init__(self, replaces, files=()):
        self.replaces = replaces
        self.files = dict(files)
        self.steps = 0
        self.fault = None  # (step, exception raised there)

    def _step(self):
        self.steps += 1
        if self.fault and self.steps == self.fault[0]:
            raise self.fault[1]

    def stat(self, path):
        if path not in self.files:
            raise OSError(errno.ENOENT)

    def mkdir(self, path):
        pass

    def statvfs(self, path):
        return (512, 512, 1 << 20, 1 << 20)

    def rename(self, old, new):
        self.stat(old)
        self._step()
        if new in self.files and not self.replaces:
            raise OSError(errno.EEXIST)
        self.files[new] = self.files.pop(old)

    def remove(self, path):
        self.stat(path)
        self._step()
        del self.files[path]

    def open(self, path, mode="r"):
        if "w" not in mode:
            self.stat(path)
            data = self.files[path]
            return io.BytesIO(data) if "b" in mode else io.StringIO(data.decode())
        self._step()
        self.files[path] = b""
        return _Written(self, path)


class _Written(io.RawIOBase):
    """A file of which the disk has the written part."""

    def __init__(self, disk, path):
        self._disk, self._path = disk, path

    def write(self, data):
        self._disk._step()
        self._disk.files[self._path] += data.encode() if isinstance(data, str) else bytes(data)


def module_on(disk, source=REPLACING):
    """Load the program of a board with this disk, as after a start, and return its names."""
    names = {"open": disk.open, "__name__": "module"}
    exec(_compiled(source), names)
    names["os"] = disk
    return SimpleNamespace(**names)


@functools.cache
def _compiled(source):
    return compile(source, "module", "exec")


def main_of(paths):
    return paths[-1] if paths[0].startswith("lib") else paths[0]


def deploy(disk, paths, content):
    """Deploy as host/picotorch/deploy/files.py does: recover, copy, replace."""
    board = module_on(disk)
    board.recover(main_of(paths), paths)
    for path in paths:
        disk.open(path + ".part", "wb").write(f"{content} {path}")
    board.replace_all(main_of(paths), paths)


def whole(disk, paths, had):
    """Return the set that is on the disk: "old", "new", or None for a mixture."""
    for content, its in (("old", had), ("new", paths)):
        if all(disk.files.get(path) == f"{content} {path}".encode() for path in its):
            return content
    return None


def fresh(replaces, paths, had):
    return Disk(replaces, {path: f"old {path}".encode() for path in had})


@pytest.mark.parametrize("replaces", [True, False], ids=["littlefs", "FAT"])
@pytest.mark.parametrize("paths, had", SETS.values(), ids=SETS)
def test_a_cut_at_any_step_leaves_one_whole_set(replaces, paths, had):
    """Two deploys are cut, at any pair of steps. Then recover() finds a complete set, and a third
    deploy ends."""
    ends = 0
    for first, second in itertools.product(range(1, STEPS), (1, 2, 3, 5, 8, 13, STEPS)):
        disk = fresh(replaces, paths, had)
        for step in (first, second):
            disk.steps, disk.fault = 0, (step, Cut())
            try:
                deploy(disk, paths, "new")
            except Cut:
                pass
            else:
                ends += 1
        disk.fault = None
        if len(paths) == 1 and replaces and had:
            assert whole(disk, paths, had)  # under its name, at any time
        module_on(disk).recover(main_of(paths), paths)
        assert whole(disk, paths, had), (first, second, disk.files)
        deploy(disk, paths, "new")
        assert disk.files == {path: f"new {path}".encode() for path in paths}
    assert ends


@pytest.mark.parametrize("replaces", [True, False], ids=["littlefs", "FAT"])
@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EEXIST,
                                  errno.ENOENT, errno.EBUSY])
@pytest.mark.parametrize("paths, had", SETS.values(), ids=SETS)
def test_a_step_that_is_rejected_leaves_one_whole_set(replaces, code, paths, had):
    refused = 0
    for step in range(1, STEPS):
        disk = fresh(replaces, paths, had)
        disk.fault = step, OSError(code)
        try:
            deploy(disk, paths, "new")
        except OSError as error:
            refused += 1
            assert error.args[0] == code
            assert whole(disk, paths, had) or disk.files.keys() & {main_of(paths) + ".undo"}
        disk.fault = None
        module_on(disk).recover(main_of(paths), paths)
        assert whole(disk, paths, had), (step, disk.files)
        deploy(disk, paths, "new")
        assert disk.files == {path: f"new {path}".encode() for path in paths}
    assert refused


def test_a_list_that_was_not_written_to_its_end_moves_nothing():
    for text in (b"", b"m.pt", b"m.pte\na.pt", b"\xff\xfe"):
        disk = Disk(False, {"m.pte": b"old m.pte", "m.pt.old": b"mine", "a.pt.old": b"mine",
                            "m.pte.undo": text})
        module_on(disk).recover("m.pte", ["m.pte"])
        assert disk.files["m.pt.old"] == disk.files["a.pt.old"] == b"mine"
        assert whole(disk, ["m.pte"], ["m.pte"]) == "old"


@pytest.mark.parametrize("replaces", [True, False], ids=["littlefs", "FAT"])
@pytest.mark.parametrize("fault", [Cut(), OSError(errno.EIO)], ids=["cut", "refused"])
def test_install_leaves_one_whole_set(monkeypatch, replaces, fault):
    """The test runs install.py of a package of native modules, which runs on the board alone."""
    monkeypatch.setattr(sys.implementation, "_mpy", native_module.MPY | 7 << 10, raising=False)
    names = ["picotorch/__init__.mpy", "picotorch/errors.mpy"]
    paths = ["/lib/_picotorch.mpy", *(f"/lib/{name}" for name in names)]
    sources = {"./arch/_picotorch.mpy": paths[0], **{f"./{name}": f"/lib/{name}" for name in names}}
    failed = 0
    for step in range(1, STEPS):
        disk = fresh(replaces, paths, paths)
        disk.files |= {source: f"new {path}".encode() for source, path in sources.items()}
        install = module_on(disk, native_module.installer()).install
        install.__globals__.update(
            gc=SimpleNamespace(collect=lambda: None, mem_free=lambda: 0), MPY=native_module.MPY,
            MODULES={7: ["arch", 1, 0]}, NUMBERS=(7,), RUNTIME=dict.fromkeys(names, 1))
        disk.fault = step, fault
        try:
            install(target="/lib")
        except (Cut, OSError):
            failed += 1
        disk.fault = None
        module_on(disk).recover(paths[0], paths)
        assert whole(disk, paths, paths), (step, disk.files)
        install(target="/lib")
        assert whole(disk, paths, paths) == "new"
        assert set(disk.files) == {*paths, *sources}
    assert failed > len(paths)
