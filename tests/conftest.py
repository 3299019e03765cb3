"""Define fixtures that several files use, and set the marks of tests."""

import gc
import os
import tomllib

import pytest
from picotorch.boards.boards import BOARDS_DIR
from picotorch.cli import main as cli
from picotorch.export import pipeline
from picotorch.measure import timing
from picotorch.run.device import protocol

BOARDS = {path.parent.name: tomllib.loads(path.read_text()) for path in BOARDS_DIR.glob("*/board.toml")}
KERNEL_HELPERS = {"support.kernel_call", "support.board_call"}  # tests call kernels with these
BOARDS_OF_MAKE_TEST = {name for name, board in BOARDS.items() if board.get("in_make_test")}


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory):
    """Put the cache of picotorch into a folder of the tests, which all processes share: finding the
    sizes of one firmware takes 10 s."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder / "own_cache"))
        yield


@pytest.fixture(autouse=True)
def long_timeout(monkeypatch):
    """Emulated boards are slow on busy cores: the checksum of a module of 228 KB took more than the
    default of 10 s."""
    monkeypatch.setattr(protocol, "ANSWER_TIMEOUT", 60.0)


@pytest.fixture
def call(capsys):
    """Return the command line: call(arguments) -> (exit status, stdout, stderr)"""
    def run(*arguments):
        with pytest.raises(SystemExit) as ended:
            cli.main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return ended.value.code, captured.out, captured.err

    return run


@pytest.fixture(scope="module")
def torch():
    """Return torch, for tests that export."""
    pytest.importorskip("executorch", reason="executorch is not installed (picotorch[export])")
    return pytest.importorskip("torch", reason="torch is not installed (picotorch[export])")


@pytest.fixture
def no_board(monkeypatch):
    """Estimate the cycles of an export from sizes, and do without its float32 program."""
    monkeypatch.setattr(timing.fitting, "reference_board", lambda core: None)
    monkeypatch.setattr(pipeline, "_in_float", lambda *arguments: None)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers():
    """Use one process more than there are cores, since some tests wait for a missing answer. Return
    None if pytest-xdist's own variable states the number."""
    if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ:
        return None
    may_use = getattr(os, "sched_getaffinity", None)
    return (len(may_use(0)) if may_use else os.cpu_count() or 1) + 1


def pytest_ignore_collect(collection_path):
    """Skip files without tests of kernels if tests/run.py runs only these tests."""
    if os.environ.get("PICOTORCH_TESTS") == "kernels" and collection_path.suffix == ".py":
        text = collection_path.read_text()
        return True if not any(helper in text for helper in KERNEL_HELPERS) else None
    return None


def pytest_collection_modifyitems(items):
    """Mark tests that call kernels outside of programs, which tests/run.py runs with sanitizers. Mark
    tests of a board with `board`, and with `thorough` if make test builds no firmware for it."""
    for item in items:
        parameters = getattr(item, "callspec", None)
        names = _board_names(parameters.params.values() if parameters else ())
        if names:
            item.add_marker("board")
        if names - BOARDS_OF_MAKE_TEST:
            item.add_marker("thorough")
        helpers = {getattr(value, "__module__", None) for value in vars(item.module).values()}
        on_board = "board" in item.name or "board" in getattr(item, "fixturenames", ())
        if not on_board and helpers & KERNEL_HELPERS:
            item.add_marker("kernels")


def _board_names(values):
    """Return the names of the boards among the values of a test's parameters."""
    flat = [one for value in values for one in (value if isinstance(value, tuple) else (value,))]
    names = {one if isinstance(one, str) else getattr(one, "name", None) for one in flat}
    return {name for name in names if isinstance(name, str)} & BOARDS.keys()


def pytest_collection_finish():
    """Freeze the objects of all tests, since each run on the twin collects garbage."""
    gc.collect()
    gc.freeze()
