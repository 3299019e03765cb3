"""The summary of picotorch compile: flash and RAM by part, time, slowest instructions, drawings."""

import json
import xml.etree.ElementTree

import pytest
from picotorch.errors import INTERNAL, fail
from picotorch.host.boards import chips
from picotorch.host.compile import summary
from picotorch.host.run import emulator
from picotorch.host.size import cycles
from support import fixture_store
from support.calling import assert_error, assert_usage
from support.flatbuffer_builder import bool_value
from support.programs import plan, program

BOARD = "mps2-an386"


def path(name):
    return fixture_store.load(name).path


@pytest.fixture
def compiled(call, tmp_path):
    """compiled(fixture, *options): (JSON of the model, path of the image)"""
    def run(name, *options):
        image = tmp_path / "model.ptm"
        status, out, error = call("compile", path(name), "--keep-plan", "-o", image, "--json", *options)
        assert (status, error) == (0, "")
        found = json.loads(out)
        (entry,) = found["models"]
        assert found == {"output": str(image), "core": entry["core"], "models": [entry]}
        return entry, image

    return run


def test_time_and_slowest_instructions_are_those_of_a_profile_of_the_image(call, compiled):
    entry, image = compiled("int8_ds_cnn", "--chip", "stm32f407")
    (method,) = entry["methods"]
    profile = json.loads(call("profile", image, "--board", BOARD, "--json")[1])
    assert method["time"]["instructions"] == profile["total"]
    ticks = sorted((row["ticks"] for row in profile["instructions"]), reverse=True)
    assert [row["ticks"] for row in method["slowest"]] == ticks[:5]
    usual = cycles.PREPARED["cortex-m4"][1]
    assert method["time"]["ms"] == pytest.approx(usual * profile["total"] / 168e3, abs=1e-3)


def project(call, folder, *options):
    """The JSON of the method, with the first of whose bytes of temp memory a C project was written."""
    status, out, error = call("compile", path("int8_resnet8"), "--keep-plan", "--c", folder, "--name",
                              "net", "--json", *options)
    assert (status, error) == (0, "")
    (method,) = json.loads(out)["models"][0]["methods"]
    assert f"NET_TEMP_BYTES = {method['after']['temp']}," in (folder / "net/net.h").read_text()
    return method


def test_a_project_has_the_temp_memory_with_which_it_is_fastest_if_there_is_room(call, tmp_path):
    fast = project(call, tmp_path / "fast")
    slow = project(call, tmp_path / "slow", "--least-temp")
    assert fast["after"]["temp"] == fast["temp_fastest"] > fast["temp_least"] == slow["after"]["temp"]
    times = [method["time"]["instructions"] for method in (fast, slow)]
    assert times[0] < 0.85 * times[1]
    assert fast["other_temp"]["temp"] == slow["after"]["temp"]
    assert fast["other_temp"]["instructions"] == pytest.approx(times[1], rel=0.01)
    assert slow["other_temp"]["instructions"] == pytest.approx(times[0], rel=0.01)


@pytest.mark.parametrize("chip, option", [("stm32f411", "temp_fastest"), ("nrf52832", "temp_least")])
def test_the_chip_decides(chip, option, call, tmp_path):
    method = project(call, tmp_path / "net", "--chip", chip)
    assert method["after"]["temp"] == method[option]


def test_where_more_temp_memory_gains_nothing_there_is_no_choice(call, compiled, tmp_path):
    for core in ("cortex-m3", "cortex-m55"):
        (method,) = compiled("int8_ds_cnn", "--core", core)[0]["methods"]
        assert method["temp_fastest"] == method["temp_least"] and method["other_temp"] is None
    assert_usage(call("compile", path("add_1"), "--least-temp"), "--least-temp is for --c.")


def test_flash_by_part(call, compiled):
    entry, image = compiled("int8_ds_cnn")
    assert entry["flash"]["constants"] > 5_000 and entry["flash"]["prepared"] > 30_000
    parts = sum(entry["flash"].values())
    assert parts <= entry["bytes"] == image.stat().st_size < parts + 8 * 100
    size = json.loads(call("size", image, "--board", BOARD, "--json")[1])
    kernels = size["boards"][0]["kernels"]
    assert entry["code"]["core"] == kernels["core"]
    assert sum(entry["code"].values()) == kernels["core_and_kernels"]


def test_the_text_adds_up(call, tmp_path):
    out = call("compile", path("int8_ds_cnn"), "--keep-plan", "-o", tmp_path / "m.ptm")[1]
    flash = out.partition("\nFlash\npart ")[2].partition("\n")[2].partition("This core")[0]
    numbers = {name: int(size.replace(",", "")) for name, size in
               (line.split() for line in flash.splitlines())}
    image = numbers.pop("image")
    code = numbers.pop("kernels") + numbers.pop("core")
    assert numbers.pop("all") == image + code
    assert sum(numbers.values()) == image == (tmp_path / "m.ptm").stat().st_size
    for step in ("Loading, and storing", "Comparing the outputs", "Measuring on"):
        assert step in out
    assert "\nRAM\n" in out and "slowest" in out and "estimates" in out


def test_methods_without_instructions_are_left_out(call, compiled, tmp_path):
    entry, _ = compiled("int8_io_ds_cnn")
    constant = [method["method"] for method in entry["methods"] if method["constant"]]
    assert len(constant) == len(entry["methods"]) - 1 > 0
    out = call("compile", path("int8_io_ds_cnn"), "-o", tmp_path / "m.ptm")[1]
    assert out.count("\nRAM\n") == 1 and not any(name in out for name in constant)


def test_the_clock_is_that_of_the_board(compiled):
    (method,) = compiled("int8_ds_cnn", "--board", "netduinoplus2")[0]["methods"]
    assert method["time"]["ms"] == pytest.approx(method["time"]["cycles"] / 168e3, abs=1e-3)
    (method,) = compiled("int8_ds_cnn", "--core", "cortex-m4")[0]["methods"]
    assert method["time"]["ms"] is None and method["time"]["cycles"] > 0


def test_without_a_firmware_it_says_how_to_measure(call, compiled, monkeypatch, tmp_path):
    monkeypatch.setattr(emulator, "FIRMWARE_DIR", tmp_path)
    entry, image = compiled("int8_ds_cnn")
    assert image.exists() and entry["code"] is None and entry["methods"][0]["time"] is None
    assert f"make firmware BOARD={BOARD}" in entry["message"]
    out = call("compile", path("int8_ds_cnn"), "-o", tmp_path / "m.ptm")[1]
    assert out.count(f"make firmware BOARD={BOARD}") == 1


def test_a_run_that_fails_is_said_and_the_image_is_written(compiled, monkeypatch):
    def fails(*arguments):
        raise fail(INTERNAL, "the board is on fire", BOARD)

    monkeypatch.setattr(summary.profiling, "profile", fails)
    entry, image = compiled("int8_ds_cnn")
    assert image.exists() and "the board is on fire" in entry["message"]


@pytest.mark.parametrize("core", chips.CORES)
def test_each_core_can_be_named(core, call, tmp_path):
    status, _, error = call("compile", path("mlp"), "--core", core, "-o", tmp_path / "m.ptm")
    assert (status, error) == (0, "")


def test_target_options_exclude_each_other(call):
    for two in (["--board", BOARD, "--chip", "rp2040"], ["--chip", "rp2040", "--core", "cortex-m3"]):
        assert_usage(call("compile", path("add_1"), *two), "not both")


def test_drawings_of_before_and_after(call, compiled, tmp_path):
    drawing = tmp_path / "map.svg"
    compiled("int8_ds_cnn", "--memory-map", drawing)
    root = xml.etree.ElementTree.parse(drawing).getroot()
    first, second = root
    assert first.get("y") == "0" and second.get("y") == first.get("height")
    assert int(root.get("height")) == int(first.get("height")) + int(second.get("height"))
    text = drawing.read_text()
    assert "forward, before<" in text and "forward, in the image<" in text


def test_nothing_to_draw_is_an_error(call, tmp_path):
    model = tmp_path / "model.pte"
    model.write_bytes(program(plan([bool_value(True)], [], [], [], [0], [])))
    assert_error(call("compile", model, "--memory-map", tmp_path / "map.svg"), "InvalidArgument",
                 "no method has planned memory to draw")
