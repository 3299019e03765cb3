"""Install the native module of package.json on stock MicroPython with mpremote mip install, and run
it."""

import functools
import http.server
import threading

import numpy as np
import pytest
from picotorch.run import pico
from support import fixture_store, on_pico, stock

pytestmark = pytest.mark.thorough

MODEL = fixture_store.FOLDER / "mlp" / "model.pte"


@pytest.fixture
def package(call, tmp_path):
    """Build the package for a model, small, with the runtime."""
    folder = tmp_path / "natmod"
    assert call("natmod", "--models", MODEL, "--optimize", "size", "--arch", "armv6m", "--output",
                folder)[0] == 0
    return folder


@pytest.fixture
def served(package):
    """Serve the folder on this computer, and return its address."""
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=package)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_a_module_from_mip_runs_as_the_twin(package, served, tmp_path):
    """mip installs the package from a web server, then from the folder itself."""
    inputs = list(np.load(MODEL.parent / "inputs.npz").values())
    with pico.emulated(stock.pico_uf2(tmp_path / "firmware.uf2")) as port:
        mpremote = on_pico.mpremote(port)
        mpremote("fs", "cp", MODEL, ":/model.pte")
        for source, folder in ((served, "/lib"), (package, "/other")):
            mpremote("mip", "install", "--target", folder, f"{source}/armv6m/package.json")
            installed = mpremote("fs", "ls", f":{folder}")
            assert "_picotorch.mpy" in installed and "picotorch/" in installed
            printed, result = on_pico.run(mpremote, "open('/model.pte', 'rb').read()", MODEL, inputs,
                                          [folder])
            on_pico.assert_as_the_twin(printed, result)
