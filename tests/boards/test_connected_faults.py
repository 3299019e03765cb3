"""Break the connection to a board at each step: the error is named, and the next try works."""

import dataclasses
import zlib
from pathlib import Path

import pytest
from picotorch import Error
from picotorch.deploy import deploying, files, installing
from picotorch.errors import ACCESS_FAILED, INTERNAL, INVALID_STATE
from picotorch.firmware import native_module, selective
from picotorch.run import parity
from picotorch.run.device import device_run, protocol
from picotorch.run.run_request import RunRequest
from support.fixture_store import FOLDER
from support.tiers import SWEEP
from support.wire import Board, Fault

pytestmark = pytest.mark.thorough

MODEL = FOLDER / "add_5" / "model.pte"
ARMV7EMSP = 7


@pytest.fixture(scope="module")
def board():
    with Board() as board:
        yield board


@pytest.fixture(autouse=True)
def native_modules(tmp_path, monkeypatch):
    """Return a function that makes a folder like that of make natmod. Each call changes the content of
    all files, so that all of them are copied."""
    def renew():
        renew.count += 1
        for name in ("armv7emsp-fast/_picotorch.mpy", "picotorch/__init__.mpy", "picotorch/errors.mpy"):
            path = tmp_path / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(f"{renew.count:9} {name}".encode() * 80 + b"\4\0\0\0")

    renew.count = 0
    monkeypatch.setattr(installing, "BUILD", tmp_path)
    monkeypatch.setattr(selective, "SETUP", tmp_path / "none")  # as without the repository
    monkeypatch.setattr(installing, "facts_of", lambda conversation: {
        **device_run.facts_of(conversation), "mpy": native_module.MPY | ARMV7EMSP << 10})
    return renew


def run(board, native_modules):
    """Return the bytes of the outputs."""
    request, _ = parity.make_request(RunRequest(model=MODEL))
    request.timeout = protocol.ANSWER_TIMEOUT
    result = device_run.run(request, board.port)
    assert result.code == 0
    return [output.tobytes() for output in result.outputs]


def deploy(board, native_modules, to_romfs=False):
    """Deploy, and return the report without the free heap, which differs by some bytes."""
    done = deploying.deploy(MODEL.read_bytes(), MODEL, board.port, "/models", to_romfs, ["forward"],
                            lambda *told: None)
    return dataclasses.replace(done, heap_free=0)


def deploy_to_romfs(board, native_modules):
    return deploy(board, native_modules, True)


def install(board, native_modules):
    """Install the native module and the runtime."""
    native_modules()
    wanted = installing.Needs([], frozenset())
    with protocol.Link(board.port) as conversation:
        return installing.install(conversation, installing.Installed(), wanted, lambda *told: None)


# A stall lasts until the wait for an answer ends, so there are fewer stalls. make test-rest tries the
# first place, the last and some between.
PLACES = {run: {"cut": 15, "stall": 5, "garble": 15, "reset": 15},
          **{step: {"cut": 5, "stall": 2, "garble": 5, "reset": 5}
             for step in (deploy, deploy_to_romfs, install)}}
MAX_PLACES = 15 if SWEEP else 4


def test_there_are_50_places_of_a_run_and_of_a_deploy():
    of_run, *of_deploy = [sum(places.values()) for places in PLACES.values()]
    assert of_run >= 50 and sum(of_deploy) >= 50


def tried(places):
    """Return the numbers of the places that are tried, spread over all places."""
    some = min(places, MAX_PLACES)
    return sorted({round(i * (places - 1) / max(some - 1, 1)) for i in range(some)})


@pytest.mark.reliability
@pytest.mark.parametrize(("step", "kind"), [(step, kind) for step in PLACES for kind in PLACES[step]],
                         ids=lambda one: getattr(one, "__name__", one))
def test_a_fault_is_named_and_the_next_try_works(board, native_modules, monkeypatch, step, kind):
    wanted = step(board, native_modules)
    length = board.passed
    failed = 0
    places = PLACES[step][kind]
    for place in tried(places):
        fault = board.fault = Fault(kind, length * (2 * place + 1) // (2 * places))
        try:
            with monkeypatch.context() as patch:
                patch.setattr(protocol, "ANSWER_TIMEOUT", 2.5)  # seconds; for two busy cores
                assert step(board, native_modules) == wanted
            assert kind == "garble"  # the error is found, and the message sent again
        except Error as error:
            failed += 1
            assert error.code in (ACCESS_FAILED, INVALID_STATE, INTERNAL), error
            assert error.subject == f"board at {board.port}" and "while" in str(error), error
            assert error.remedy
        assert fault.happened
        board.fault = None
        assert step(board, native_modules) == wanted
    assert failed or kind == "garble"


def test_an_interruption_between_files_keeps_the_old_files(board, monkeypatch):
    """The model is copied already, but gets its name only after its data files."""
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
        with protocol.Link(board.port) as conversation:
            return [files.checksum(conversation, path) for path in paths]

    with protocol.Link(board.port) as conversation:
        files.do(conversation, "", "make_folder", "/mixed")
        files.copy_files(conversation, paths[0], {path: path.encode() for path in paths},
                         lambda *told: None)
    before = there()
    with monkeypatch.context() as patch, pytest.raises(Error) as raised:
        patch.setattr(protocol, "ANSWER_TIMEOUT", 2.5)
        deploy_new(cut)
    board.fault = None
    assert raised.value.code == ACCESS_FAILED and paths[1] in str(raised.value)
    assert there() == before
    deploy_new(lambda *told: None)
    assert there() == [(len(data), zlib.crc32(data)) for data in map(Path.read_bytes, new)]
