"""Interrupt the native module on stock MicroPython: ctrl-C ends a run as it does in firmware."""

import time

import pytest
from mpremote.transport_serial import SerialTransport
from picotorch.firmware import native_module
from picotorch.host.operators import needed_operators
from picotorch.host.twin import open_program
from picotorch.run import pico
from support import fixture_store, on_pico, stock
from support.long_runs import FLOAT, endless_loop, long_instruction
from support.tiers import SWEEP

pytestmark = pytest.mark.thorough

SCRIPT = stock.REPOSITORY / "tests" / "boards" / "ports" / "interrupted.py"
WANTED = [line for name in ("loop", "long")
          for line in [f"running {name}", "KeyboardInterrupt, loaded True"] * 2 + ["the same True"]]


def models(size):
    """Return the models. size: of the plane of `long`."""
    return {"loop": endless_loop(), "long": long_instruction(size, FLOAT),
            "short": fixture_store.load("add_5").pte}


def files(arch, small, programs):
    """Return the module, the runtime and the models, by their paths on the board."""
    programs = {name: open_program(data) for name, data in programs.items()}
    module = native_module.link(arch, needed_operators(programs),
                                native_module.kind_for(programs, small))
    runtime = (native_module.BUILD / "picotorch").glob("*.mpy")
    return {"_picotorch.mpy": module.read_bytes(),
            **{f"picotorch/{path.name}": path.read_bytes() for path in sorted(runtime)}}


def python_of(programs):
    return "".join(f"{name} = memoryview({bytes(data)!r})\n" for name, data in programs.items())


@pytest.mark.reliability
@pytest.mark.parametrize("small", [False, True] if SWEEP else [True],
                         ids=["fast", "small"] if SWEEP else ["small"])
def test_ctrl_c_on_a_pico(small, tmp_path):
    """ctrl-C comes over USB, which the board reads only where the module polls."""
    programs = models(60)
    with pico.emulated(stock.pico_uf2(tmp_path / "firmware.uf2")) as port:
        mpremote = on_pico.mpremote(port)
        (tmp_path / "board" / "picotorch").mkdir(parents=True)
        for name, data in files("armv6m", small, programs).items():
            (tmp_path / "board" / name).write_bytes(data)
        (tmp_path / "board" / "picotorch_models.py").write_text(python_of(programs))
        mpremote("fs", "cp", "-r", *(tmp_path / "board").iterdir(), ":/")
        board = SerialTransport(port, wait=0)
        try:
            board.enter_raw_repl()
            board.exec_raw_no_follow(SCRIPT.read_bytes())
            for line in WANTED:
                said = board.read_until(1, b"\n", timeout=60)
                assert said.decode().strip() == line, board.read_until(1, b"\x04", timeout=10)
                if line.startswith("running"):
                    time.sleep(0.3)
                    board.serial.write(b"\x03")
            assert board.follow(10) == (b"", b"")
        finally:
            board.close()
