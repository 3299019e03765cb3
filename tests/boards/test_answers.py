"""Send arbitrary answers of a connected board: the error names the board, in bounded time."""

import random
import time
import zlib

import pytest
from picotorch.run.device import answers, device_run, protocol
from support.calling import assert_error
from support.fixture_store import FOLDER
from support.tiers import SWEEP
from support.wire import Board

MODEL = FOLDER / "add_5" / "model.pte"
HOSTILE = {
    "deep": "(" * 5000,
    "deep and whole": "[" * 90 + "]" * 90,
    "minus signs": "-" * 10_000 + "1",
    "a chain": "1" + "-1" * 5000,
    "indexes": "[1]" * 3000,
    "large number": "9" * 5000,
    "large hexadecimal number": "0x" + "f" * 5000,
    "number of 64 bits": str(1 << 63),
    "negative": "-1",
    "float": "1e999",
    "complex": "1j",
    "NUL": "\0",
    "NUL in text": r"'\x00'",
    "surrogate": r"'\ud800'",
    "escape sequence": r"'\x1b[2J'",
    "bad escape": r"'\xZZ'",
    "long": "'" + "a" * 100_000 + "'",
    "empty": "",
    "code": "__import__('os').system('true')",
    "call": "1(2)",
    "set": "{1, 2}",
    "unhashable key": "{[]: 1}",
    "ellipsis": "...",
    "spaces": "  1",
    "None": "None",
    "text": "'text'",
    "bytes": "b'bytes'",
    "tuple": "(1, 2, 3)",
    "wrong types": "('a', 'b', 'c')",
    "empty tuple": "()",
    "dict": "{'machine': 1}",
    "true": "True",
    "a name and its size": "('report', 3)",
}
SHAPES = [int, str, bytes, bool, None, (int, int), [int], answers.OneOf(None, str), {"a": int},
          (str, int, answers.OneOf(None, str)), answers.OneOf((str, int), bytes)]


def conforms(value, shape):
    """Check the shape by a second implementation, independent of answers.py."""
    if isinstance(shape, answers.OneOf):
        return any(conforms(value, one) for one in shape.shapes)
    if isinstance(shape, (tuple, list)):
        of_items = shape if isinstance(shape, tuple) else shape * len(value or ())
        return isinstance(value, type(shape)) and len(value) == len(of_items) and all(
            map(conforms, value, of_items))
    if isinstance(shape, dict):
        return isinstance(value, dict) and set(value) == set(shape) and all(
            conforms(value[key], shape[key]) for key in shape)
    return value is None if shape is None else type(value) is shape


@pytest.mark.parametrize("line", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("shape", SHAPES, ids=range(len(SHAPES)))
def test_a_line_is_of_the_shape_or_no_answer(line, shape):
    started = time.process_time()
    try:
        assert conforms(answers.read(line, shape), shape)
    except answers.NotAnAnswer:
        pass
    assert time.process_time() - started < 1


def test_random_lines_are_of_the_shape_or_no_answer():
    r = random.Random(1)
    tokens = ["(", ")", "[", "]", "{", "}", ",", ":", "1", "-", "0", "'a'", "b'\\xff'", "None", "True",
              " ", "'", '"', "\\", "\n", "\0", "é", "\udc80", "lambda", "*", "1_0", "1.", "e",
              "'\\N{BEL}'"]
    for _ in range(20_000):
        line = "".join(r.choices(tokens, k=r.randrange(12)))
        for shape in r.choices(SHAPES, k=2):
            try:
                assert conforms(answers.read(line, shape), shape)
            except answers.NotAnAnswer:
                pass


@pytest.mark.parametrize("size", [0, 1, 2, 3, 512, 1023])
def test_the_checksum_of_a_firmware_without_it_is_zlibs(size):
    board = {}
    exec(protocol._CRC32, board)
    data = random.Random(size).randbytes(size)
    for value in (0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF):
        assert board["crc32"](data, value) == zlib.crc32(data, value)
    assert board["crc32"](data) == zlib.crc32(data)


@pytest.mark.parametrize("value, shape", [
    (0, int), ((1 << 63) - 1, int), ("a 'quoted' \"é\"", str), (b"\x00'\"\\\xff", bytes), (True, bool),
    (None, answers.OneOf(None, int)), (("a", 5), answers.OneOf((str, int), bytes)),
    (("/lib/m.mpy", False, list(range(400)), None),
     (answers.OneOf(None, str), bool, [int], answers.OneOf(None, bytes))), ({"a": 1}, {"a": int}),
])
def test_an_answer_is_read(value, shape):
    assert answers.read(repr(value), shape) == value


# ---- commands on a board with replaced answers


@pytest.fixture(scope="module")
def board():
    with Board() as board:
        yield board


@pytest.fixture
def replace_answer(monkeypatch):
    """Return replace_answer(i, line): line replaces the i-th answer that has a value, with right
    checksums."""
    def replace(i, line):
        execute, replace.seen = protocol.Link._execute, 0

        def other(self, *arguments):
            printed = execute(self, *arguments)
            if b"pt:" in printed and b"pt:=0 " not in printed:
                replace.seen += 1
                if replace.seen == i:
                    data = line.encode("utf-8", "backslashreplace")
                    said = data.decode().splitlines() or [""]
                    checksum = zlib.crc32("".join(said).encode())
                    return b"".join(b"pt:%s\n" % one.encode() for one in said) + (
                        b"pt:=%d %08x\n" % (len(said), checksum))
            return printed

        monkeypatch.setattr(protocol.Link, "_execute", other)

    return replace


KINDS = ["deep", "minus signs", "large number", "surrogate", "long", "float", "empty tuple",
         "a name and its size"]
# Replaced answers of a command: make test-rest replaces the first ones, and every third of the others
ANSWERS = [i for i in range(1, 14) if SWEEP or i <= 4 or i % 3 == 0]


@pytest.mark.thorough
@pytest.mark.reliability
@pytest.mark.parametrize("command", ["run", "parity", "profile", "deploy", "size", "selftest"])
def test_a_command_names_the_board(call, board, replace_answer, monkeypatch, tmp_path, command):
    """The answers are replaced by each kind of hostile line in turn."""
    model = [] if command == "selftest" else [MODEL]
    report = ["--report", tmp_path / "report.json"] if command == "selftest" else []
    monkeypatch.setattr("picotorch.deploy.selftest.MODELS", ("add_5",))
    for i in ANSWERS:
        with monkeypatch.context() as patch:
            patch.setattr(protocol.Link, "_execute", protocol.Link._execute)  # the context restores it
            replace_answer(i, HOSTILE[KINDS[i % len(KINDS)]])
            started = time.monotonic()
            failed = call(command, *model, "--port", board.port, *report)
        if replace_answer.seen < i:
            break
        assert time.monotonic() - started < 60
        assert "bug in picotorch" not in failed[2]
        if failed[0] == 0 or (command == "selftest" and failed[0] == 1 and not failed[2]):
            continue  # the shape was right, or a step failed
        last = failed[2].splitlines(keepends=True)[-1]  # the lines before it are the copied files
        assert_error((*failed[:2], last), "AccessFailed", f"board at {board.port}", "answered ")
    assert i > 3


REPORTS = [b"code", b"code=" + b"9" * 5000, b"code=0x" + b"f" * 5000, b"\xff\xfe",
           b"code=0\npool_used=1", b"code=0\nexecuted=1", b"code=0\nexecuted=9999999999", b"load=x",
           b"us_load=1",
           b"heap_free=1e9", b"code=0\noutput0=" + b"(" * 5000, b"", b"=" * 100]


@pytest.mark.thorough
@pytest.mark.parametrize("report", REPORTS, ids=lambda one: repr(one[:30]))
def test_a_report_that_cannot_be_read(call, board, monkeypatch, report):
    def files(said):
        return {"report": report}

    monkeypatch.setattr(device_run, "_files", files)
    failed = call("run", MODEL, "--port", board.port)
    if failed[0]:
        assert "bug in picotorch" not in failed[2]
        assert_error(failed, "AccessFailed", f"board at {board.port}", "answered with a report")


@pytest.mark.parametrize("said", [[b"bytes first"], [], [("report", 5), b"1234"],
                                  [("report", 5), b"123456"], [("pool", 1), b"1"],
                                  [("report", 1 << 62)]])
def test_files_that_are_not_whole(said):
    with pytest.raises(ValueError):
        device_run._files(said)


@pytest.mark.parametrize("last", ["MemoryError: memory allocation failed, allocating " + "9" * 5000
                                  + " bytes", "OSError: " + "9" * 5000, "OSError: 99999999999999",
                                  "OSError: \x1b[2J", "ValueError: \0\x1b]0;\ud800", "MemoryError", ""])
def test_an_exception_of_a_board_is_shown_without_control_characters(board, last):
    with protocol.Link(board.port) as conversation:
        message = str(conversation._raised(last))
    assert message.isprintable() and len(message) < 700
