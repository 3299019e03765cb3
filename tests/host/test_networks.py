"""Test five networks, exported to int8 for three cores. A board has the bytes of the twin, and the
difference from PyTorch is the figure of picotorch export.

The programs are in programs/. With torch installed (make export-check), they are exported again.
"""

import importlib.util
import json

import numpy as np
import pytest
from picotorch.host import twin
from picotorch.host.request import Request
from picotorch.measure import profiling
from picotorch.run import running
from picotorch.run.parity import same_bits
from support import export_store

STATED = json.loads(export_store.STATED.read_text())
every_network = pytest.mark.parametrize("name", export_store.NAMES)
every_core = pytest.mark.parametrize("core", export_store.CORES)


def outputs(pte, name, board):
    """Return the outputs of all samples, one after the other, and the bytes of the pool."""
    first, *further = export_store.samples(name)
    result = running.run(Request(pte, name, first, further=further), board)
    running.check_result(result)
    return [result.outputs, *result.further], result


def check(pte, name, core, stated, wanted):
    on_board, board = outputs(pte, name, export_store.CORES[core])
    on_twin, host = outputs(pte, name, twin.BOARD)
    assert len(on_board) == len(on_twin) == export_store.SAMPLES
    for one, other in zip(on_board, on_twin, strict=True):
        assert all(map(same_bits, one, other))
    assert board.pool == host.pool
    assert (host.method_pool.used, [usage.used for usage in host.planned], host.temp.used) == (
        stated["method_pool"], stated["planned"], stated["temp"])
    assert len(pte) == stated["bytes"]
    for i, entry in enumerate(stated["outputs"]):
        found = np.concatenate([sample[i] for sample in on_board])
        largest = np.abs(found.astype(np.float64) - wanted[i]).max()
        assert largest == pytest.approx(entry["largest"], rel=1e-4)
        assert entry["sqnr"] > 25 and largest < 0.1 * entry["magnitude"]


@every_core
@every_network
def test_the_board_is_the_twin_and_as_near_to_pytorch_as_stated(name, core):
    check(export_store.program(name, core).read_bytes(), name, core, STATED[f"{name} {core}"],
          export_store.expected(name))


def test_a_first_convolution_with_one_channel_packs_whole_patches():
    """Packing only nine values takes two thirds of the instructions for a pixel with eight outputs."""
    pte = export_store.program("cnn", "cortex-m4").read_bytes()
    found, _ = profiling.profile(Request(pte, "cnn", export_store.samples("cnn")[0]), "mps2-an386")
    row = found.instructions[1]
    assert row.call == "cortex_m::quantized_depthwise_conv2d.out"
    assert row.ticks < 450 * 16 * 16


@pytest.mark.skipif(not importlib.util.find_spec("executorch"),
                    reason="executorch is not installed: make export-check installs it")
@every_core
@every_network
def test_exported_again(name, core, tmp_path):
    path = tmp_path / "model.pte"
    stated = export_store.export(name, core, path)
    check(path.read_bytes(), name, core, stated, export_store.compute(name))
