"""Test the cache of results: a second picotorch size starts no board."""

import json
import threading

import pytest
from picotorch.host import cache
from picotorch.measure import cycles, flash
from picotorch.run import emulator
from support import fixture_store

MODEL = fixture_store.load("int8_ds_cnn").path


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "picotorch"


def never():
    raise AssertionError("it is known")


def test_a_value_is_found_once(folder):
    assert cache.remembered("run", [b"a", b"b"], lambda: {"x": [1, None]}) == {"x": [1, None]}
    assert cache.remembered("run", [b"a", b"b"], never) == {"x": [1, None]}
    assert len(list(folder.iterdir())) == 1


@pytest.mark.parametrize("what, parts", [
    ("run", [b"a", b"c"]), ("run", [b"ab"]), ("run", [b"a", b"b", b""]), ("flash", [b"a", b"b"]),
])
def test_other_parts_have_another_value(what, parts):
    cache.remembered("run", [b"a", b"b"], lambda: 1)
    assert cache.remembered(what, parts, lambda: 2) == 2


@pytest.mark.parametrize("damaged", [
    lambda content: b"", lambda content: content[:-1], lambda content: b"3", lambda content: b"\n3",
    lambda content: content[:-1] + b"3", lambda content: b"\xff" + content,
])
def test_a_damaged_file_is_made_again(folder, damaged):
    cache.remembered("run", [b"a"], lambda: 1)
    (file,) = folder.iterdir()
    file.write_bytes(damaged(file.read_bytes()))
    assert cache.remembered("run", [b"a"], lambda: 2) == 2
    assert cache.remembered("run", [b"a"], never) == 2


def test_nothing_is_not_kept():
    cache.remembered("run", [b"a"], lambda: None)
    assert cache.remembered("run", [b"a"], lambda: 2) == 2


def test_a_folder_that_cannot_be_made_is_done_without(folder):
    folder.write_text("a file")
    assert cache.remembered("run", [b"a"], lambda: 1) == 1
    assert cache.remembered("run", [b"a"], lambda: 2) == 2


def test_the_oldest_files_go(folder, monkeypatch):
    monkeypatch.setattr(cache, "MAX_FILES", 3)
    for i in range(6):
        cache.remembered("run", [bytes([i])], lambda i=i: i)
    assert len(list(folder.iterdir())) == 3
    assert cache.remembered("run", [b"\5"], never) == 5


@pytest.mark.thorough
def test_size_starts_boards_once(call, monkeypatch):
    flash._tables_of_built.cache_clear()
    first = call("size", MODEL, "--json")
    monkeypatch.setattr(emulator, "run", lambda *_, **__: never())
    monkeypatch.setattr(flash, "tables_of", lambda *_: never())
    flash._tables_of_built.cache_clear()
    assert call("size", MODEL, "--json") == first
    assert all(board["time"] for board in json.loads(first[1])["boards"] if board["built"])


def test_what_size_keeps_of_a_run_is_without_the_names_that_cycles_are_estimated_by(call, monkeypatch):
    first = call("size", MODEL, "--board", "mps2-an386", "--json")
    monkeypatch.setattr(emulator, "run", lambda *_, **__: never())
    monkeypatch.setattr(cycles, "operator_of", lambda *_: cycles.OTHERS)
    again = call("size", MODEL, "--board", "mps2-an386", "--json")
    before, after = (json.loads(out)["boards"][0]["time"] for _, out, _ in (first, again))
    assert before["instructions"] == after["instructions"]
    others = cycles.CYCLES_PER_INSTRUCTION["none"]["cortex-m4"][cycles.OTHERS][1]
    assert after["cycles"] == round(others * after["instructions"]) != before["cycles"]


def test_size_runs_boards_at_the_same_time(call, monkeypatch):
    meet, run, boards = threading.Barrier(2, timeout=60), emulator.run, []

    def together(board, *arguments, **options):
        boards.append(board.name)
        if len(boards) <= 2:
            meet.wait()
        return run(board, *arguments, **options)

    monkeypatch.setattr(emulator, "run", together)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    entry = json.loads(call("size", MODEL, "--json")[1])
    assert all(board["time"] for board in entry["boards"] if board["built"])
    assert len(boards) >= 2 and max(map(boards.count, boards)) <= 2 * 2  # two sizes of scratch memory
