"""Test kernels and a model in the flash behind MicroPython's own RPI_PICO firmware: bytes, heap, and
the errors if they are missing, damaged or from another build."""

import json
import subprocess
import sys

import numpy as np
import pytest
from picotorch import Error
from picotorch.compile import ptm_writer
from picotorch.firmware import kernels_in_flash, native_module, rp2, selective, uf2
from picotorch.host.operators import common_operators
from picotorch.host.twin import open_program
from picotorch.run import pico
from support import on_pico, stock
from support.calling import assert_error
from support.fixture_store import FOLDER

pytestmark = pytest.mark.thorough

BOARD = "RPI_PICO"
ROOM = kernels_in_flash.BOARDS[BOARD]
FAMILY = rp2.BOARDS[BOARD].family
MODEL = FOLDER / "int8_ds_cnn" / "model.pte"
COMPILE = ["arm-none-eabi-gcc", "-mthumb", "-mcpu=cortex-m0plus", "-Os", "-ffunction-sections"]
FREE = 100 * 1024  # minimum of free heap while int8 ds_cnn is loaded, with all kernels


@pytest.fixture(scope="module")
def firmware(tmp_path_factory):
    return stock.pico_uf2(tmp_path_factory.mktemp("stock") / "firmware.uf2")


@pytest.fixture(scope="module")
def package(firmware, tmp_path_factory):
    """Build all kernels, and int8 ds_cnn."""
    folder = tmp_path_factory.mktemp("package")
    entry = kernels_in_flash.build(BOARD, {}, [("model", MODEL.read_bytes())], firmware, folder)
    left_out = {"aten::randint.low_out", "aten::_unique2.out", *(f"aten::{name}.out" for name in (
        "rand", "randn", "rand_like", "randn_like", "randint", "randperm", "_embedding_bag",
        "_embedding_bag_forward_only", "histc", "nonzero_static", "_upsample_bilinear2d_aa",
        "grid_sampler_2d"))}
    assert set(entry.operators) == common_operators() - left_out
    return folder


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    """Compile int8 ds_cnn to a .ptm file without packed weights."""
    path = tmp_path_factory.mktemp("image") / "model.ptm"
    path.write_bytes(ptm_writer.compile_ptm(MODEL.read_bytes()).data)
    return path


@pytest.fixture(scope="module")
def port(firmware, package):
    """Return the port of a Pico with the firmware and both UF2 files, after install.py."""
    with pico.emulated(firmware, package / "kernels.uf2", package / "models.uf2") as port:
        printed = on_pico.mpremote(port)("mount", package, "run", package / "install.py")
        assert "picotorch for armv6m is in /lib" in printed
        yield port


@pytest.fixture(scope="module")
def mpremote(port):
    """Return a function that runs mpremote with that Pico."""
    return on_pico.mpremote(port)


def run(mpremote, folder, name="model", path=MODEL):
    inputs = list(np.load(FOLDER / "int8_ds_cnn" / "inputs.npz").values())
    printed, result = on_pico.run(mpremote, f"__import__('picotorch_models').{name}", path, inputs,
                                  [folder, "/lib", ".frozen"])
    on_pico.assert_as_the_twin(printed, result)
    assert printed["allocated"] == ["0"]
    address = int(printed["model"][0])
    assert ROOM.start < address < ROOM.end and address % 16 == 0
    empty, free = int(printed["empty"][0]), int(printed["free"][0])
    print(f"{folder}: heap of {empty} B, {free} B free with the {name} of int8_ds_cnn loaded")
    return free


def said(mpremote, name, *before):
    """Return the text of the RuntimeError that an import raises."""
    code = f"try:\n import {name}\nexcept RuntimeError as error:\n print('said', error)"
    return mpremote(*before, "exec", code).rpartition("said ")[2].strip()


def test_all_kernels_run_from_flash_as_on_the_twin(mpremote):
    assert run(mpremote, "/lib") >= FREE


def test_commands_use_the_kernels_and_the_model_in_flash(call, port):
    """With --port, parity and profile send no model, and deploy copies neither module nor model."""
    status, out, error = call("parity", MODEL, "--port", port, "--json")
    assert (status, error) == (0, "")
    entry = json.loads(out)
    (board,) = entry["boards"]
    assert entry["agree"] and board["agree"]
    assert board["connected"]["model_at"] == "picotorch_models.model" and board["connected"]["in_place"]
    status, out, _ = call("profile", MODEL, "--port", port)
    assert status == 0 and "the model is picotorch_models.model, used in place" in out
    status, out, _ = call("deploy", MODEL, "--port", port, "--json")
    entry = json.loads(out)
    assert (status, entry["installed"], entry["lacked"]) == (0, [], [])
    assert (entry["path"], entry["copied"]) == ("picotorch_models.model", False)


def test_the_module_in_the_heap_uses_more_heap(call, mpremote, tmp_path):
    """The module has only the kernels of int8 ds_cnn."""
    status, _, _ = call("natmod", "--models", MODEL, "--arch", ROOM.arch, "--output", tmp_path)
    assert status == 0
    module = tmp_path / ROOM.arch / "_picotorch.mpy"
    mpremote("fs", "mkdir", ":/heap", "+", "fs", "cp", module, ":/heap/_picotorch.mpy")
    assert run(mpremote, "/heap") < FREE


def test_modules_for_its_ptm_file_use_less_heap(call, firmware, image, tmp_path):
    """The kernels are in flash, then in the heap as a fast module, then in the heap as a small
    module."""
    programs = {"image": open_program(image.read_bytes())}
    package = tmp_path / "package"
    kernels_in_flash.build(BOARD, programs, [("image", image.read_bytes())], firmware, package)
    with pico.emulated(firmware, package / "kernels.uf2", package / "models.uf2") as port:
        mpremote = on_pico.mpremote(port)
        mpremote("mount", package, "run", package / "install.py")
        free = [run(mpremote, "/lib", "image", image)]
        for options in (["--optimize", "speed"], []):
            status, _, _ = call("natmod", "--models", image, "--arch", ROOM.arch, "--output", tmp_path,
                                *options)
            assert status == 0
            mpremote("fs", "cp", tmp_path / ROOM.arch / "_picotorch.mpy", ":/_picotorch.mpy")
            free.append(run(mpremote, "/", "image", image))
    flash, fast, small = free
    assert flash > small > fast + 16 * 1024 and fast >= FREE


def test_kernels_of_another_build_are_rejected(call, firmware, mpremote, tmp_path):
    status, out, _ = call("natmod", "--flash", BOARD, "--models", MODEL, "--frozen-model", MODEL,
                          "--firmware", firmware, "--output", tmp_path, "--json")
    entry = json.loads(out)
    assert status == 0 and len(entry["operators"]) == 8 and entry["kernels"] < 100_000
    other = tmp_path / ROOM.arch
    assert "of another build: copy the kernels.uf2" in said(mpremote, "_picotorch", "mount", other)
    assert "no model in flash: copy models.uf2" in said(mpremote, "picotorch_models", "mount", tmp_path)


def test_install_rejects_a_file_system_where_the_kernels_are(mpremote, package):
    code = ("import install\ninstall.FLASH['file system'] -= 1\n"
            "try:\n install.install()\nexcept RuntimeError as error:\n print(error)")
    assert "takes 1408 KB of the flash, and kernels.uf2 would overwrite it" in mpremote(
        "mount", package, "exec", code)


def damaged(path, at, folder):
    """Write the UF2 file with one bit changed, as a valid UF2 file."""
    blocks = list(uf2.read(path.read_bytes()))
    data = bytearray(b"".join(block.data for block in blocks))
    data[at] ^= 0x10
    (folder / path.name).write_bytes(uf2.write({blocks[0].address: bytes(data)}, FAMILY))
    return folder / path.name


def test_a_damaged_file_is_rejected(firmware, package, tmp_path):
    files = [damaged(package / "kernels.uf2", 200_000, tmp_path),
             damaged(package / "models.uf2", 50_000, tmp_path)]
    with pico.emulated(firmware, *files) as port:
        mpremote = on_pico.mpremote(port)
        assert said(mpremote, "_picotorch", "mount", package / ROOM.arch).startswith(
            "the kernels in flash are damaged: copy kernels.uf2")
        assert said(mpremote, "picotorch_models", "mount", package).startswith(
            "the models in flash are damaged, or of another build: copy the models.uf2")


def test_flash_without_kernels_is_rejected(firmware, package):
    with pico.emulated(firmware) as port:
        text = said(on_pico.mpremote(port), "_picotorch", "mount", package / ROOM.arch)
    assert text == "no kernels in flash: copy kernels.uf2 to the board's boot drive"


def test_each_file_has_sectors_of_its_own(firmware, package):
    sectors = set()
    for path in (firmware, package / "kernels.uf2", package / "models.uf2"):
        blocks = list(uf2.read(path.read_bytes()))
        own = {block.address // kernels_in_flash.SECTOR for block in blocks}
        assert {block.family for block in blocks} == {FAMILY} and not own & sectors
        sectors |= own
    assert max(sectors) < ROOM.end // kernels_in_flash.SECTOR


def test_a_firmware_that_reaches_to_the_kernels_is_rejected():
    room = ROOM.start - rp2.FLASH
    kernels_in_flash.check_firmware(uf2.write({rp2.FLASH: bytes(room)}, FAMILY), BOARD)
    with pytest.raises(Error, match=f"firmware: {room + 256}B requested, {room}B available"):
        kernels_in_flash.check_firmware(uf2.write({rp2.FLASH: bytes(room + 1)}, FAMILY), BOARD)
    with pytest.raises(Error, match="InvalidArgument"):
        kernels_in_flash.check_firmware(uf2.write({rp2.FLASH: bytes(256)}, FAMILY + 1), BOARD)


def test_contents_that_do_not_fit_are_rejected(tmp_path):
    large = (FOLDER / "resnet8" / "model.pte").read_bytes()
    for programs, remedy in (({}, "name the models with --models"),
                             ({"model": open_program(large)}, "flash a firmware with them inside")):
        with pytest.raises(Error, match=r"RPI_PICO: \d+B requested, 294912B available: too large.*; "
                                        + remedy):
            kernels_in_flash.build(BOARD, programs, [("model", large)], None, tmp_path)
    assert not list(tmp_path.glob("*.uf2"))


@pytest.mark.parametrize("name", ["install.py", "kernels.uf2", "models.uf2", "picotorch_models.py"])
def test_files_of_others_are_not_replaced(call, monkeypatch, tmp_path, name):
    """Without a model, these files are not deleted either. Files of an earlier call are replaced or
    deleted."""
    for get in ("_make", "_prebuilt"):
        monkeypatch.setattr(kernels_in_flash, get, lambda *_: (set(), bytes(8), bytes(8)))
    arguments = ("natmod", "--flash", BOARD, "--output", tmp_path)
    assert call(*arguments, "--frozen-model", MODEL)[0] == 0
    path = tmp_path / name
    written = path.read_bytes()
    of_pico_2 = uf2.write({ROOM.start: bytes(8)}, rp2.BOARDS["RPI_PICO2"].family)
    firmware = uf2.write({rp2.FLASH: bytes(8)}, FAMILY)
    for data in (b"", b"of the user", of_pico_2, firmware):
        path.write_bytes(data)
        assert_error(call(*arguments), "InvalidArgument", f"{path}: is not a file that", "--output")
        assert path.read_bytes() == data
    path.write_bytes(written)
    assert call(*arguments)[0] == 0
    assert path.exists() == (name in ("install.py", "kernels.uf2"))


def test_an_install_py_of_others_is_not_replaced(call, tmp_path):
    (tmp_path / "install.py").write_text("print()\n")
    assert_error(call("natmod", "--models", MODEL, "--output", tmp_path), "InvalidArgument",
                 "install.py: is not a file that picotorch natmod wrote")
    assert [path.name for path in tmp_path.iterdir()] == ["install.py"]


def test_an_install_py_of_an_earlier_version_is_replaced(tmp_path):
    _, _, text = native_module.installer().partition("\n")
    (tmp_path / "install.py").write_text(f'"""The words of another version.\n{text}')
    native_module.check_package(tmp_path)


# ---- where a wheel is installed, which contains the kernels


@pytest.fixture
def wheel(package, tmp_path, monkeypatch):
    """Simulate an installed wheel: no sources, but the files that make wheel includes."""
    prebuilt = tmp_path / "build"
    for name in ("kernels.uf2", f"{ROOM.arch}/_picotorch.mpy"):
        (prebuilt / BOARD / name).parent.mkdir(parents=True, exist_ok=True)
        (prebuilt / BOARD / name).write_bytes((package / name).read_bytes())
    (prebuilt / "picotorch").symlink_to(package / "picotorch")
    monkeypatch.setattr(selective, "SETUP", tmp_path / "none")
    monkeypatch.setattr(native_module, "BUILD", prebuilt)


def test_a_wheel_makes_the_files_that_a_checkout_makes(package, wheel, tmp_path):
    folder = tmp_path / "package"
    entry = kernels_in_flash.build(BOARD, {"model.pte": open_program(MODEL.read_bytes())},
                                   [("model", MODEL.read_bytes())], None, folder)
    made, expected = ({path.relative_to(root): path.read_bytes() for path in root.rglob("*.*")}
                      for root in (folder, package))
    assert made == expected
    assert set(entry.operators) == kernels_in_flash.operators_in_flash()


@pytest.mark.parametrize(("name", "code", "said"), [
    ("embedding_bag", "OperatorMissing", "have no kernels for aten::_embedding_bag.out;"),
    ("fft2", "OperatorMissing", "complex arithmetic"),
    ("resnet8", "MemoryAllocationFailed", "too large for the free flash"),
])
def test_a_wheel_rejects_a_model_for_which_it_has_no_kernels_or_no_room(wheel, call, tmp_path, name,
                                                                       code, said):
    status, _, stderr = call("natmod", "--flash", BOARD, "--output", tmp_path / "package",
                             "--frozen-model", FOLDER / name / "model.pte")
    assert status == 1 and stderr.startswith(code) and said in stderr
    assert "picotorch firmware --board RPI_PICO --models" in stderr
    assert not (tmp_path / "package").exists()


def test_a_wheel_without_the_kernels_reports_it(wheel, call, monkeypatch, tmp_path):
    monkeypatch.setattr(native_module, "BUILD", tmp_path)
    status, _, stderr = call("natmod", "--flash", BOARD, "--output", tmp_path / "package",
                             "--frozen-model", MODEL)
    assert status == 1 and "the sources of the native module are not installed" in stderr


def test_options_that_go_with_flash(call):
    assert call("natmod", "--frozen-model", MODEL)[0] == 2
    assert call("natmod", "--flash", BOARD, "--arch", "armv7m")[0] == 2
    twice = ("--frozen-model", MODEL, "--frozen-model", MODEL)
    status, _, stderr = call("natmod", "--flash", BOARD, *twice)
    assert status == 1 and "two models are called model" in stderr


def test_kernels_that_call_the_module_are_rejected(tmp_path):
    """MicroPython knows the address of the module only when it loads it."""
    natmod = stock.REPOSITORY / "port" / "natmod"
    objects = []
    for name, code in (
            ("build/natmod/a/kernels/a", "int lent(void); int kernel(void) { return lent() + 1; }"),
            ("module", "int kernel(void), pt_flash_wanted[4] = {1}; int lent(void) { return 1; }"
                       "__attribute__((section(\".text.mpy_init\"))) int mpy_init(void) {"
                       " return kernel() + 1; }")):
        objects.append(tmp_path / f"{name}.o")
        objects[-1].parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([*COMPILE, "-x", "c", "-", "-c", "-o", objects[-1]], input=code, text=True,
                       check=True)
    subprocess.run([*COMPILE, "-nostdlib", "-static", "-Wl,-T,flash/kernels.ld", "-Wl,--emit-relocs",
                    f"-Wl,--defsym=PT_FLASH={ROOM.start}", "-o", tmp_path / "a.elf", *objects],
                   cwd=natmod, check=True)
    (tmp_path / "names.h").write_text("")
    done = subprocess.run([sys.executable, stock.REPOSITORY / "tools" / "link_mpy.py", "--arch",
                           ROOM.arch, "--names", tmp_path / "names.h", "--flash", tmp_path / "kernels",
                           tmp_path / "a.elf", tmp_path / "a.mpy"], capture_output=True, text=True)
    assert done.returncode == 1 and "the image needs lent at 0x1005801" in done.stderr
