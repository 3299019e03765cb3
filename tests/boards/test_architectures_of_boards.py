"""Test boards of all architectures of MicroPython's native code: picotorch names only remedies that
exist."""

import runpy
from contextlib import nullcontext

import pytest
from picotorch import Error
from picotorch.deploy import discovery, installing
from picotorch.errors import NOT_FOUND, NOT_SUPPORTED
from picotorch.firmware import native_module
from picotorch.run.device import serial_ports
from support import stock

NUMBERS = range(16)  # values of the 4-bit architecture in sys.implementation._mpy
XTENSA = (9, 10)


def facts_of(number):
    return {"mpy": native_module.MPY | number << 10, "machine": "a board"}


def attached_board(monkeypatch, facts):
    """Return the entry in picotorch boards --connected of a board without picotorch. Its architecture
    is looked up once."""
    asked = []
    architecture = installing.architecture
    monkeypatch.setattr(discovery, "Link", lambda *_: nullcontext())
    monkeypatch.setattr(discovery, "facts_of", lambda link: facts)
    monkeypatch.setattr(installing, "find", lambda link: installing.Installed())
    monkeypatch.setattr(discovery.installing, "arches_of", lambda *_: ())
    monkeypatch.setattr(discovery.installing, "architecture",
                        lambda found: asked.append(found) or architecture(found))
    entry = discovery._at_port(serial_ports.Port("/dev/ttyACM0", 0x2E8A, 5, None, "a board"))
    assert len(asked) == 1
    return entry


@pytest.mark.parametrize("number", NUMBERS)
def test_a_board_without_a_module_gets_no_impossible_remedy(number, monkeypatch):
    facts = facts_of(number)
    if native_module.arches_for(number):
        assert set(installing.arches_of(facts, "board")) <= set(native_module.ARCHES)
        return
    with pytest.raises(Error) as raised:
        installing.arches_of(facts, "board")
    entry = attached_board(monkeypatch, facts)
    text, commands = entry.has, entry.commands
    assert not any("deploy" in way or "run" in way for way in commands)
    if number:
        assert raised.value.code == NOT_SUPPORTED
        assert "not support" in raised.value.message and "not supported yet" in text
        assert "natmod" not in raised.value.message and "firmware" not in raised.value.message
        assert commands == []
        assert ("Xtensa" in raised.value.message) == (number in XTENSA)
    else:
        assert raised.value.code == NOT_FOUND
        assert len(commands) == 1 and "picotorch flash" in commands[0]


@pytest.mark.thorough
@pytest.mark.parametrize("number", NUMBERS)
def test_install_names_the_unsupported_architecture(tmp_path, number):
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
