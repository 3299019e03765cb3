"""Boards of all architectures that MicroPython has native code for: a way that exists, or no way."""

import runpy

import pytest
from picotorch import Error
from picotorch.errors import NOT_FOUND, NOT_SUPPORTED
from picotorch.host.connected import attached, installing
from picotorch.host.firmware import native_module
from support import stock

NUMBERS = range(16)  # of the architecture in sys.implementation._mpy, of 4 bits
XTENSA = (9, 10)


def facts_of(number):
    return {"mpy": native_module.MPY | number << 10, "machine": "a board"}


@pytest.mark.parametrize("number", NUMBERS)
def test_a_board_without_a_module_gets_no_way_that_is_impossible(number):
    facts = facts_of(number)
    if native_module.arches_for(number):
        assert set(installing.arches_of(facts, "board")) <= set(native_module.ARCHES)
        return
    with pytest.raises(Error) as raised:
        installing.arches_of(facts, "board")
    text, fits = attached._state(installing.Installed(), facts)
    assert not fits
    if number:
        assert raised.value.code == NOT_SUPPORTED
        assert "not support" in raised.value.message and "not supported yet" in text
        assert "natmod" not in raised.value.message and "firmware" not in raised.value.message
        assert attached._supported(["a way"], facts) == []
        assert ("Xtensa" in raised.value.message) == (number in XTENSA)
    else:
        assert raised.value.code == NOT_FOUND and attached._supported(["a way"], facts) == ["a way"]


@pytest.mark.parametrize("number", NUMBERS)
def test_install_names_what_is_not_supported(tmp_path, number):
    folder = tmp_path / "armv7emsp"
    folder.mkdir()
    (folder / native_module.MODULE).write_bytes(stock.make_module("armv7emsp").read_bytes())
    text = native_module._of_install(tmp_path, ("armv7emsp",), {}, {}, "")["install.py"]
    path = tmp_path / "install.py"
    path.write_text(text)
    module_for = runpy.run_path(str(path))["module_for"]
    supported = native_module.arches_for(number)
    if "armv7emsp" in supported:
        assert module_for(facts_of(number)["mpy"])[0] == "armv7emsp"
        return
    with pytest.raises(RuntimeError) as raised:
        module_for(facts_of(number)["mpy"])
    assert ("picotorch natmod" in str(raised.value)) == bool(supported)
