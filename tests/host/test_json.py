"""Test --json of all commands: it prints one object, which includes the error that the command prints
otherwise."""

import json
from typing import Any

import pytest
from picotorch.measure import advising
from support import fixture_store

MODEL = fixture_store.load("add_1").path

RESULTS = [["run", MODEL], ["parity", MODEL], ["profile", MODEL], ["inspect", MODEL], ["advise", MODEL],
           ["size", MODEL, "--chip", "rp2040"], ["boards"], ["boards", "--chips"],
           ["boards", "--connected"], ["examples"]]
FAILURES = [["run", MODEL, "--pool-size", "16"], ["run", "missing.pte", "--pool-size", "16"],
            ["run", MODEL, "--port", "/dev/missing"], ["parity", MODEL, "--port", "/dev/missing"],
            ["run", MODEL, "--method", "other"], ["inspect", "missing.pte"]]


def title(arguments):
    return " ".join(getattr(argument, "name", argument) for argument in arguments)


@pytest.mark.parametrize("arguments", RESULTS, ids=title)
def test_a_result_is_one_object(call, arguments):
    status, out, error = call(*arguments, "--json")
    assert (status, error, out.count("\n")) == (0, "", 1)
    assert isinstance(json.loads(out), dict)


@pytest.mark.parametrize("arguments", FAILURES, ids=title)
def test_an_error_has_the_text_that_is_printed(call, arguments):
    status, text, error = call(*arguments)
    assert status == 1 and error.count("\n") == 1
    assert "inputs are random" not in text
    status, out, nothing = call(*arguments, "--json")
    told = json.loads(out)["error"]
    assert (status, nothing) == (1, "")
    assert error == f"{told['name']} (0x{told['code']:02X}): {told['message']}\n"


def test_parity_has_the_fields_of_run(call):
    options = ["--inputs", MODEL.parent / "inputs.npz", "--json"]
    run = json.loads(call("run", MODEL, *options)[1])
    parity = json.loads(call("parity", MODEL, *options)[1])
    (board,) = parity["boards"]
    assert parity["agree"] is True and board["agree"] is True
    assert run.keys() - parity.keys() == run.keys() - board.keys() == {"seed"}
    assert run["outputs"] == parity["outputs"] == board["outputs"]


def test_a_list_of_operators_is_named(call, tmp_path):
    output = tmp_path / "operators.def"
    status, out, _ = call("firmware", "--models", MODEL, "--operators", output, "--json")
    assert (status, json.loads(out)) == (0, {"output": str(output)})


def test_a_result_is_read_by_the_keys_of_its_json():
    """A script subscripts what a function returns as it does the JSON of the command."""
    found: Any = advising.advise(fixture_store.load("int8_ds_cnn").pte, "", "forward")
    keys = found.to_json()
    assert keys and all(found[key] == value == found.get(key) for key, value in keys.items())
    assert found.get("nix") is None and found.get("nix", 1) == 1
    with pytest.raises(KeyError, match="nix"):
        found["nix"]
