"""What breaks on the way to a board: at each place a named error, and the next try works."""

import zlib
from pathlib import Path

import pytest
from picotorch import Error
from picotorch.errors import ACCESS_FAILED, INTERNAL, INVALID_STATE
from picotorch.host.connected import deploying, files, link, session
from picotorch.host.run import parity
from support.fixture_store import FOLDER
from support.wire import Board, Fault

MODEL = FOLDER / "add_5" / "model.pte"
PLACES = 7  # of each kind of fault, in a run and in a deploy: 56 together
KINDS = ("cut", "stall", "garble", "reset")


@pytest.fixture(scope="module")
def board():
    with Board() as board:
        yield board


def run(board):
    """The outputs' bytes."""
    request, _ = parity.make_request(MODEL.read_bytes(), MODEL, "forward", None, 0)
    request.patience = link.PATIENCE
    result = session.run(request, board.port)
    assert result.code == 0
    return [output.tobytes() for output in result.outputs]


def deploy(board):
    """What was done. How much of the heap is free is not always the same to the byte."""
    done = deploying.deploy(MODEL.read_bytes(), MODEL, board.port, "/models", False, ["forward"],
                            lambda *told: None)
    return {**done, "heap_free": None}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("step", [run, deploy], ids=["run", "deploy"])
def test_a_fault_is_named_and_the_next_try_works(board, monkeypatch, step, kind):
    wanted = step(board)
    length = board.passed
    failed = 0
    for place in range(PLACES):
        fault = board.fault = Fault(kind, length * (2 * place + 1) // (2 * PLACES))
        try:
            with monkeypatch.context() as patch:
                patch.setattr(link, "PATIENCE", 2.5)  # seconds; for two busy cores
                assert step(board) == wanted
            assert kind == "garble"  # which is found, and the message sent again
        except Error as error:
            failed += 1
            assert error.code in (ACCESS_FAILED, INVALID_STATE, INTERNAL), error
            assert error.subject == f"board at {board.port}" and "while" in str(error), error
            assert error.remedy
        assert fault.happened
        board.fault = None
        assert step(board) == wanted
    assert failed or kind == "garble"


def test_a_cut_between_files_leaves_those_that_were_there(board, monkeypatch):
    """The model is copied already, but has its name only when its data files are there, too."""
    folder = FOLDER / "external_two_files"
    new = [folder / "model.pte", *sorted(folder.glob("*.ptd"))]
    paths = [f"/mixed/{file.name}" for file in new]

    def deploy_new(tell):
        data = [(file, file.read_bytes()) for file in new[1:]]
        deploying.deploy(new[0].read_bytes(), new[0], board.port, "/mixed", False, None, tell, data)

    def cut(path, sent, size):
        if path == paths[1]:
            board.fault = Fault("cut", board.passed)

    def there():
        with link.Link(board.port) as conversation:
            return [files.do(conversation, "", "checksum", path) for path in paths]

    with link.Link(board.port) as conversation:
        files.do(conversation, "", "make_folder", "/mixed")
        files.copy_files(conversation, {path: path.encode() for path in paths}, lambda *told: None)
    before = there()
    with monkeypatch.context() as patch, pytest.raises(Error) as raised:
        patch.setattr(link, "PATIENCE", 2.5)
        deploy_new(cut)
    board.fault = None
    assert raised.value.code == ACCESS_FAILED and paths[1] in str(raised.value)
    assert there() == before
    deploy_new(lambda *told: None)
    assert there() == [(len(data), zlib.crc32(data)) for data in map(Path.read_bytes, new)]
