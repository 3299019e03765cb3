"""Test the user's files: a written file is whole or missing, and no FIFO blocks a command."""

import os
import signal
import stat

import numpy as np
import pytest
from picotorch import Error
from picotorch.host import files
from picotorch.run import running
from support import fixture_store
from support.calling import assert_error, assert_usage

pytestmark = pytest.mark.check

MODEL = fixture_store.load("add_5").path


def entries(folder):
    return sorted(path.name for path in folder.iterdir())


# ---- writing


def test_an_error_while_a_file_is_written_leaves_the_old_one(tmp_path):
    path = tmp_path / "out"
    path.write_bytes(b"old")
    with pytest.raises(ZeroDivisionError), files.writing(path) as file:
        file.write(b"half of the")
        raise ZeroDivisionError
    assert path.read_bytes() == b"old" and entries(tmp_path) == ["out"]
    files.write(path, b"new")
    assert path.read_bytes() == b"new" and entries(tmp_path) == ["out"]


def test_a_new_file_has_the_rights_of_any_new_file(tmp_path):
    (tmp_path / "usual").touch()
    files.write(tmp_path / "written", b"")
    (tmp_path / "program").touch()
    (tmp_path / "program").chmod(0o755)
    files.write(tmp_path / "program", b"")
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("usual", "written", "program")]
    assert modes == [modes[0], modes[0], 0o755]


def test_a_symbolic_link_stays_one(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "target")
    files.write(tmp_path / "link", b"data")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "target").read_bytes() == b"data"


@pytest.mark.parametrize("command", [
    ["run", MODEL, "--outputs", "{}/out.npz"],
    ["profile", MODEL, "--memory-map", "{}/out.svg"],
    ["profile", MODEL, "--etdump", "{}/out.etdp"],
    ["compile", MODEL, "--output", "{}/out.ptm"],
    ["export", MODEL, "--output", "{}/out.pte"],
])
def test_an_output_that_cannot_be_written_is_rejected_before_the_work(call, monkeypatch, tmp_path,
                                                                     command):
    def work(*_):
        raise AssertionError("the work started")

    monkeypatch.setattr(running, "run", work)
    monkeypatch.setattr(running, "read_program", work)
    command = [str(word).format(tmp_path / "missing") for word in command]
    assert_error(call(*command), "AccessFailed", str(tmp_path / "missing"), "check the path")
    assert not entries(tmp_path)


@pytest.mark.parametrize("command, option, name", [
    (["run"], "--outputs", "model.npz"),
    (["compile"], "--output", "model.pte"),
    (["export"], "--output", "model.pte"),
    (["profile"], "--etdump", "model.pte"),
])
def test_an_output_is_not_an_input(call, tmp_path, command, option, name):
    """The rejection includes other names of the same file."""
    model = tmp_path / name
    model.write_bytes(MODEL.read_bytes())
    (tmp_path / "folder").mkdir()
    os.link(model, tmp_path / "folder" / name)
    for output in (model, tmp_path / "folder" / ".." / name, tmp_path / "folder" / name):
        assert_usage(call(*command, model, option, output), option, "MODEL", "are the same file")
    assert model.read_bytes() == MODEL.read_bytes()


def test_inputs_are_not_written_over(call, tmp_path):
    np.savez(tmp_path / "in.npz", in0=np.zeros(5, np.float32))
    before = (tmp_path / "in.npz").read_bytes()
    assert_usage(call("run", MODEL, "--inputs", tmp_path / "in.npz", "--outputs", tmp_path / "in.npz"),
                 "--outputs", "--inputs")
    assert (tmp_path / "in.npz").read_bytes() == before


def test_two_outputs_are_two_files(call, tmp_path):
    out = tmp_path / "out.svg"
    assert_usage(call("profile", MODEL, "--memory-map", out, "--etdump", out), "same file")


def test_the_kind_of_an_output_is_that_of_its_name(call, tmp_path):
    assert_usage(call("profile", MODEL, "--memory-map", tmp_path / "map.gif"), "--memory-map",
                 "map.gif", ".svg or .png")
    assert_usage(call("run", MODEL, "--outputs", tmp_path / "out.csv"), "--outputs", ".npz")


@pytest.mark.parametrize("output", ["/dev/null", "/dev/full"])
def test_devices_are_not_replaced(call, tmp_path, output):
    (tmp_path / "out.npz").symlink_to(output)
    mode = os.stat(output).st_mode
    status, _, error = call("run", MODEL, "--outputs", tmp_path / "out.npz")
    assert status == 1 and "out.npz: is a" in error
    assert os.stat(output).st_mode == mode


# ---- reading


@pytest.fixture
def fifo(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    return tmp_path / "fifo"


@pytest.fixture
def hurry():
    """End a call that waits. It would wait for a FIFO's writer for ever."""
    def end(*_):
        raise AssertionError("it waits")

    signal.signal(signal.SIGALRM, end)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)


@pytest.mark.parametrize("command", [
    ["run", "{}"], ["inspect", "{}"], ["size", "{}"], ["parity", "{}"], ["profile", "{}"],
    ["compile", "{}"], ["export", "{}", "-o", "{}.pte"], ["firmware", "--models", "{}"],
    ["natmod", "--models", "{}"], ["deploy", "{}", "--port", "socket://localhost:9"],
    ["run", str(MODEL), "--inputs", "{}"], ["run", str(MODEL), "--data", "{}"],
    ["run", str(MODEL), "--firmware", "{}", "--board", "mps2-an386"],
    ["flash", "{}", "--board", "RPI_PICO"], ["flash", "{}.pte", "--board", "RPI_PICO"],
    ["repl", "--romfs", "{}"], ["repl", "--board", "RPI_PICO", "--listen", "tcp:0", "--firmware", "{}"],
])
def test_a_fifo_is_rejected(call, fifo, hurry, command):
    os.mkfifo(f"{fifo}.pte")
    words = [word.format(fifo) for word in command]
    if "-o" in words:
        words[-1] = str(fifo.parent / "out.pte")
    assert_error(call(*words), "NotSupported", "is a FIFO, not a file; copy")


def test_a_file_that_cannot_be_read(tmp_path):
    for path, words in ((tmp_path / "nix", "No such file"), (tmp_path, "directory"), ("a\0b", "null")):
        with pytest.raises(Error, match=words):
            files.read_file(path)
