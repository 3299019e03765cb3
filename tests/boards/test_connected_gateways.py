"""Run commands on a board whose port is a server of RFC 2217 or a pseudoterminal."""

import json
from pathlib import Path

import pytest
from support import gateways
from support.calling import assert_error
from support.wire import Board, Fault

pytestmark = pytest.mark.thorough

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
MODEL = FIXTURES / "int8_ds_cnn" / "model.pte"
SMALL = FIXTURES / "add_5" / "model.pte"
GONE = {"rfc2217": "no server of RFC 2217 answers there", "pseudoterminal": "there is no such port"}


@pytest.fixture(scope="module")
def board():
    with Board() as board:
        yield board


@pytest.mark.parametrize("kind", GONE)
def test_commands_at_a_gateway(call, board, kind):
    with getattr(gateways, kind)(board) as port:
        status, out, err = call("run", SMALL, "--port", port, "--json")
        assert (status, err) == (0, "") and json.loads(out)["heap_bytes_allocated"] == 0
        status, out, err = call("parity", MODEL, "--port", port, "--json")
        (compared,) = json.loads(out)["boards"]
        assert (status, err, compared["agree"]) == (0, "", True)
        assert (compared["differing_outputs"], compared["first_differing_pool_byte"]) == ([], None)
    assert_error(call("run", SMALL, "--port", port), "AccessFailed", f"board at {port}", GONE[kind])


@pytest.mark.parametrize("kind", GONE)
def test_a_gateway_that_goes_in_the_middle(call, board, kind):
    with getattr(gateways, kind)(board) as port:
        assert call("run", SMALL, "--port", port)[0] == 0
        board.fault = Fault("cut", board.passed // 2)
        assert_error(call("run", SMALL, "--port", port), "AccessFailed", f"board at {port}",
                     "the connection broke while", "plug it in again")
        board.fault = None
    with getattr(gateways, kind)(board) as port:
        assert call("run", SMALL, "--port", port)[0] == 0


def test_a_server_of_another_protocol(call, board):
    port = board.port.replace("socket:", "rfc2217:")
    assert_error(call("run", SMALL, "--port", port), "AccessFailed", port, GONE["rfc2217"])
