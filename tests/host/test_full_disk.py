"""Test a write that fails, as on a full disk: one sentence names the file, and no part of a file is
left."""

import ast
import contextlib
import resource
from pathlib import Path

import pytest
from picotorch import Error
from picotorch.cli import export as export_commands
from picotorch.cli import main as cli
from picotorch.cli.command import OutputFile
from picotorch.deploy import selftest
from picotorch.firmware import kernels_in_flash, rp2, selective
from picotorch.host import cache, files
from support import fixture_store
from support.calling import assert_error

PACKAGE = Path(files.__file__).parents[1]
MODEL = fixture_store.load("add_1").path
WRITERS = {  # by the options with files to write; {} is the folder
    "run --outputs": ["run", MODEL, "--outputs", "{}/out.npz"],
    "profile --memory-map": ["profile", MODEL, "--memory-map", "{}/out.svg"],
    "profile --etdump": ["profile", MODEL, "--etdump", "{}/out.etdp"],
    "profile --debug-buffer": ["profile", MODEL, "--etdump", "{}/out.etdp", "--debug-buffer",
                               "{}/out.bin"],
    "compile --output": ["compile", MODEL, "-o", "{}/out.ptm"],
    "compile --memory-map": ["compile", MODEL, "-o", "{}/out.ptm", "--memory-map", "{}/out.svg"],
    "size --report": ["size", MODEL, "--chip", "rp2040", "--report", "{}/out.html"],
    "profile --report": ["profile", MODEL, "--report", "{}/out.html"],
    "compile --report": ["compile", MODEL, "-o", "{}/out.ptm", "--report", "{}/out.html"],
    "export --report": ["export", "{}/net.py:model", "--output", "{}/out.pte", "--report",
                        "{}/out.html"],
    "compile --c": ["compile", MODEL, "--c", "{}/project"],
    "firmware --operators": ["firmware", "--models", MODEL, "--operators", "{}/operators.def"],
    "firmware --output": ["firmware", "--models", MODEL, "--board", "RPI_PICO", "--output",
                          "{}/fw.uf2"],
    "natmod --output": ["natmod", "--flash", "RPI_PICO", "--frozen-model", MODEL, "--output", "{}/n"],
    "examples": ["examples", "gesture", "{}/example"],
    "examples in a new folder": ["examples", "gesture", "{}/new/example"],
    "repl --model": ["repl", "--model", MODEL],
    "run --board": ["run", MODEL, "--board", "mps2-an386"],
    "export --output": ["export", "{}/net.py:model", "--output", "{}/out.pte"],
    "report --output": ["report", MODEL, "--chip", "rp2040", "-o", "{}/report.html"],
    "selftest --report": ["selftest", "--port", "auto", "--report", "{}/report.json"],
}
# Files that may write without files.py: a boot loader's drive, a log that make continues, a lock
OWN = {"host/files.py": 2, "deploy/flash_tools.py": 1, "firmware/ports.py": 1,
       "firmware/selective.py": 2, "export/sandboxed_export.py": 2}  # its messages, /dev/null


@contextlib.contextmanager
def full(maximum):
    """Limit the size of every file to `maximum` bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (maximum, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return a folder; temporary files are in another one. Builds, exports and tests are replaced by
    doubles that already have results."""
    for name in ("folder", "temporary"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    monkeypatch.setattr(selective, "has_sources", lambda: False)
    monkeypatch.setattr(rp2, "_prebuilt", lambda board: bytes(1000))
    monkeypatch.setattr(kernels_in_flash, "_prebuilt",
                        lambda *_: (["aten::add.out"], bytes(1000), bytes(1000)))
    monkeypatch.setattr(export_commands, "_export_function",
                        lambda *_: export_commands.pipeline.Built(bytes(1000), {}))
    steps = [selftest.Step("a step", True, "")] * 99
    tested = selftest.Tested("", "", "", {"machine": "a board", "version": ""}, steps, True)
    monkeypatch.setattr(selftest, "selftest", lambda *_: tested)
    return tmp_path / "folder"


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if not path.is_dir()}


@pytest.mark.parametrize("maximum", [0, 64])
@pytest.mark.parametrize("name", WRITERS)
def test_a_full_disk_leaves_no_part_of_a_file(call, folder, tmp_path, name, maximum):
    command = [str(word).format(folder) for word in WRITERS[name]]
    with full(maximum):
        result = call(*command)
    assert_error(result, "AccessFailed", "File too large; raise the limit")
    named = folder if str(folder) in str(command) else tmp_path / "temporary"
    assert str(named) in result[2] and "[(" not in result[2] and "/." not in result[2]
    assert not list((tmp_path / "temporary").iterdir()) and not contents(folder)
    if name.startswith(("compile", "examples")):  # with room again
        assert call(*command)[0] == 0


@pytest.mark.parametrize("name", ["run --outputs", "compile --output", "firmware --operators"])
def test_an_older_file_stays(call, folder, name):
    command = [str(word).format(folder) for word in WRITERS[name]]
    Path(command[-1]).write_bytes(b"older")
    with full(1):
        assert call(*command)[0] == 1
    assert contents(folder) == {Path(command[-1]): b"older"}


def test_a_value_that_cannot_be_kept_is_found(folder, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    with full(4):
        assert cache.remembered("size", [b"part"], lambda: 12345) == 12345
    assert not contents(folder)
    assert cache.remembered("size", [b"part"], lambda: 12345) == 12345
    assert len(contents(folder)) == 1


def test_a_new_folder_is_whole_or_not_there(tmp_path):
    for error in (KeyboardInterrupt, OSError(28, "No space left on device")):
        with pytest.raises((Error, KeyboardInterrupt)), files.making(tmp_path / "new") as part:
            (part / "file").write_text("")
            raise error
        assert not list(tmp_path.iterdir())
    with files.making(tmp_path / "new") as part:
        (part / "file").write_text("")
    (tmp_path / "usual").mkdir()
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "usual").stat().st_mode
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["file"]
    with pytest.raises(Error, match="File exists"), files.making(tmp_path / "new"):
        pass
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new", "usual"]


def test_each_option_that_is_a_file_to_be_written_is_tried():
    found = {f"{name} --{parameter.opts[-1].lstrip('-')}" for name in cli.cli.list_commands(None)
             for parameter in cli.cli.get_command(None, name).params
             if isinstance(parameter.type, OutputFile)}
    assert found <= set(WRITERS)


def writes(tree):
    """Count the calls outside of host/files.py that open a file for writing, or copy one."""
    count = 0
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            modes = [word.value for word in node.args + [key.value for key in node.keywords]
                     if isinstance(word, ast.Constant) and isinstance(word.value, str)]
            count += name in ("write_text", "write_bytes", "copyfile", "copy2", "copytree", "tofile",
                              "mkstemp", "NamedTemporaryFile")
            count += name in ("open", "fdopen") and any(set(mode) <= set("rwaxbt+") and set(mode) & set(
                "wax+") for mode in modes)
    return count


def test_no_module_writes_by_itself():
    found = {path.relative_to(PACKAGE).as_posix(): writes(ast.parse(path.read_text()))
             for path in PACKAGE.rglob("*.py") if path.parent.name != "on_board"}
    assert {path: count for path, count in found.items() if count} == OWN
