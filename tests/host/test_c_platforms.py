"""Test C projects for Arduino, PlatformIO, Zephyr, ESP-IDF and CMSIS-Packs.

Each is built as its platform builds it: with its include paths and flags, by its CMake files. Where the
platform itself cannot be installed, platforms/ has the few functions of it that projects call.
"""

import configparser
import json
import re
import shutil
from xml.etree import ElementTree

import pytest
from picotorch.boards.boards import load_board
from picotorch.package import c_project
from picotorch.package.platforms import PLATFORMS
from support import fixture_store
from support.c_projects import assert_same, expected, model_of, sh
from support.platforms import C_FLAGS, EXAMPLE, SHIMS, sources

MODELS = ["int8_ds_cnn", "mlp"]  # int8 and float32
FLAT = [name for name, platform in PLATFORMS.items() if platform.flat]
BOARDS = ["mps2-an386", "mps2-an385-m0plus"]
CXX_FLAGS = ["-std=gnu++11", "-Os", "-fno-exceptions", "-fno-rtti", "-Wall", "-Wextra", "-Werror"]
ARDUINO_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_ .-]{0,62}")


def write(folder, platform, fixtures=MODELS[:1]):
    """Write a project, and return the text that its outputs have."""
    found, wanted = [], {}
    for name in fixtures:
        fixture = fixture_store.load(name)
        found.append(model_of(fixture, name if len(fixtures) > 1 else "model"))
        wanted |= expected(found[-1].ptm, fixture, found[-1].name)
    c_project.write(found, folder, PLATFORMS[platform])
    return wanted


def sketch(folder, project, platform, main, *options):
    """Link a sketch with its library as the Arduino core does, and return the program."""
    objects = []
    for source in [*sources(project, platform), main.parent / "main.c"]:
        objects.append(folder / f"{len(objects)}.o")
        sh("gcc", *C_FLAGS, f"-I{project}/src", "-c", source, "-o", objects[-1])
    sh("g++", *CXX_FLAGS, f"-I{project}/src", f"-I{SHIMS}/arduino", f"-I{main.parent}", *options, main,
       "-x", "none", SHIMS / "arduino/main.cpp", *objects, "-o", folder / "out")
    return folder / "out"


def outputs_of(program):
    """Return what a sketch prints before its time."""
    text, time, _ = sh(program).partition(" us,")
    assert time
    return text


def test_platforms_with_one_include_path_have_the_same_sources(tmp_path):
    found = []
    for platform in FLAT:
        write(tmp_path / platform, platform, MODELS)
        found.append({path.relative_to(tmp_path / platform): path.read_bytes()
                      for path in sources(tmp_path / platform, platform)})
    assert len(found) > 2 and all(one == found[0] for one in found)


def test_one_include_path_and_no_flags_suffice(tmp_path):
    project = tmp_path / "project"
    wanted = write(project, "cmsis-pack", MODELS)
    sh("gcc", *C_FLAGS, f"-I{project}/src", *sources(project, "cmsis-pack"),
       project / "template/main.c", EXAMPLE / "target_host.c", "-o", tmp_path / "out")
    assert_same(sh(tmp_path / "out"), wanted)


@pytest.mark.parametrize("board", BOARDS)
def test_boards_have_the_bytes_of_the_twin(board, tmp_path):
    """No flag is passed that a platform could lack, such as -ffp-contract=off."""
    project, known, platform = tmp_path / "project", load_board(board), "cmsis-pack"
    wanted = write(project, platform, MODELS)
    flash, ram = known.flash_of_project(), known.data
    places = {"FLASH": flash.address, "FLASH_BYTES": flash.size, "RAM": ram.address,
              "RAM_BYTES": ram.size}
    sh("arm-none-eabi-gcc", *known.cflags, "-mthumb", *C_FLAGS, f"-I{project}/src",
       *sources(project, platform), project / "template/main.c", EXAMPLE / "target_mps2.c",
       "-nostartfiles", "-T", EXAMPLE / "mps2.ld", "-Wl,--gc-sections",
       *(f"-Wl,--defsym={name}={value:#x}" for name, value in places.items()), "-o", tmp_path / "out")
    assert_same(sh("qemu-system-arm", "-M", known.emulator.machine, "-nographic", "-semihosting",
                   "-kernel", tmp_path / "out"), wanted)


def test_an_arduino_sketch_prints_the_outputs(tmp_path):
    project = tmp_path / "project"
    wanted = write(project, "arduino")
    main = project / "examples/model/model.ino"
    program = sketch(tmp_path, project, "arduino", main, "-include", "Arduino.h", "-x", "c++")
    assert_same(outputs_of(program), wanted)


def test_the_properties_of_an_arduino_library_are_what_its_tools_accept(tmp_path):
    write(tmp_path / "project", "arduino", MODELS)
    parser = configparser.ConfigParser(delimiters="=", interpolation=None)
    parser.read_string("[library]\n" + (tmp_path / "project/library.properties").read_text())
    found = dict(parser["library"])
    assert found.keys() >= {"name", "version", "author", "maintainer", "sentence", "paragraph",
                            "category", "url", "architectures"}
    assert all(found.values()) and re.fullmatch(r"\d+\.\d+\.\d+", found["version"])
    assert ARDUINO_NAME.fullmatch(found["name"]) and not found["name"].lower().startswith("arduino")
    assert (tmp_path / "project/src" / found["includes"]).is_file()


def test_a_sketch_of_platformio_prints_the_outputs(tmp_path):
    project = tmp_path / "project"
    wanted = write(project, "platformio")
    library = json.loads((project / "library.json").read_text())
    assert library["build"] == {"srcDir": "src", "includeDir": "src"}
    assert (project / "src" / library["headers"]).is_file()
    main = project / "examples/model/src/main.cpp"
    assert_same(outputs_of(sketch(tmp_path, project, "platformio", main)), wanted)


@pytest.mark.parametrize("fixtures", [MODELS[:1], MODELS])
def test_an_application_of_zephyr_prints_the_outputs(fixtures, tmp_path):
    wanted = write(tmp_path / "project", "zephyr", fixtures)
    sh("cmake", "-S", tmp_path / "project/sample", "-B", tmp_path / "build",
       f"-DZephyr_DIR={SHIMS}/zephyr")
    sh("cmake", "--build", tmp_path / "build", "-j2")
    assert_same(sh(tmp_path / "build/app"), wanted)


def test_a_module_of_zephyr_is_linked_only_on_request(tmp_path):
    write(tmp_path / "project", "zephyr")
    sample = tmp_path / "project/sample"
    (sample / "prj.conf").write_text("CONFIG_MAIN_STACK_SIZE=8192\n")
    (sample / "src/main.c").write_text("int main(void) { return 0; }\n")
    sh("cmake", "-S", sample, "-B", tmp_path / "build", f"-DZephyr_DIR={SHIMS}/zephyr")
    sh("cmake", "--build", tmp_path / "build", "-j2")
    assert not list((tmp_path / "build").rglob("*.a"))


@pytest.mark.parametrize("fixtures", [MODELS[:1], MODELS])
def test_an_application_of_esp_idf_prints_the_outputs(fixtures, monkeypatch, tmp_path):
    wanted = write(tmp_path / "project", "esp-idf", fixtures)
    (example,) = (tmp_path / "project/examples").iterdir()
    monkeypatch.setenv("IDF_PATH", str(SHIMS / "esp-idf"))
    sh("cmake", "-S", example, "-B", tmp_path / "build")
    sh("cmake", "--build", tmp_path / "build", "-j2")
    (program,) = (tmp_path / "build").glob("*.elf")
    assert_same(sh(program), wanted)


def test_a_pack_lists_all_its_files(tmp_path):
    project = tmp_path / "project"
    write(project, "cmsis-pack")
    (path,) = project.glob("*.pdsc")
    package = ElementTree.parse(path).getroot()
    names = [package.findtext(tag) for tag in ("vendor", "name")]
    assert path.name == f"{'.'.join(names)}.pdsc"
    files = package.findall(".//file")
    assert all((project / file.get("name")).exists() for file in files)
    listed = {file.get("name") for file in files if file.get("category") == "source"}
    assert listed == {source.relative_to(project).as_posix()
                      for source in project.rglob("*.c")}


@pytest.mark.parametrize("platform", PLATFORMS)
def test_a_project_is_written_again_with_the_users_files(platform, tmp_path):
    project = tmp_path / "project"
    write(project, platform)
    readme = project / "README.md"
    readme.write_text("mine\n")
    stale = next((project / PLATFORMS[platform].library).rglob("*.c"))
    stale.write_text("stale\n")
    write(project, platform)
    assert readme.read_text() == "mine\n" and stale.read_text() != "stale\n"
    assert not list(project.rglob("*@*"))


@pytest.mark.parametrize("platform", [name for name in PLATFORMS if name != "make"])
def test_a_folder_for_another_platform_is_rejected_or_replaced(platform, tmp_path):
    """No file of the first platform stays, or nothing is written."""
    write(tmp_path / "project", "make")
    before = sorted(tmp_path.rglob("*"))
    try:
        write(tmp_path / "project", platform)
    except c_project.Error:
        assert sorted(tmp_path.rglob("*")) == before
    else:
        assert not (tmp_path / "project/Makefile").exists()


@pytest.mark.parametrize("platform, name", [
    ("arduino", "examples"), ("arduino", "src"), ("zephyr", "sample"), ("zephyr", "zephyr"),
    ("zephyr", "app")])
def test_a_model_has_the_name_of_a_folder_of_the_platform(platform, name, tmp_path):
    model = model_of(fixture_store.load("mlp"), name)
    c_project.write([model], tmp_path / "project", PLATFORMS[platform])
    if platform == "zephyr":
        sh("cmake", "-S", tmp_path / "project/sample", "-B", tmp_path / "build",
           f"-DZephyr_DIR={SHIMS}/zephyr")
        sh("cmake", "--build", tmp_path / "build", "-j2")
        assert sh(tmp_path / "build/app").startswith(f"{name}_output_0: ")


@pytest.mark.parametrize("platform", PLATFORMS)
def test_names_of_files_are_no_text_of_another_language(platform, tmp_path):
    """The name of a model's file stands in comments and pages only."""
    name = 'a"b<c>\\n*/\n$(touch x) ${y}; `z`'
    fixture = fixture_store.load("mlp")
    model = model_of(fixture)
    model.note = name
    c_project.write([model], tmp_path / "project", PLATFORMS[platform])
    for path in (tmp_path / "project").rglob("*"):
        if path.is_file() and path.suffix not in (".md", ".c", ".h"):
            assert "touch x" not in path.read_text(), path


@pytest.mark.parametrize("core, board, is_right", [
    ("cortex-m4", "mps2-an386", True), ("cortex-m4", "mps2-an385-m0plus", False),
    ("cortex-m4", "mps3-an547", False), ("cortex-m0plus", "mps2-an385", False)])
def test_weights_packed_for_another_core_are_an_error_of_the_compiler(core, board, is_right, call,
                                                                      tmp_path):
    model = fixture_store.load("int8_io_ds_cnn").path
    assert call("compile", model, "--core", core, "--optimize", "speed", "--name", "model", "--c",
                tmp_path / "out", "--for", "arduino")[0] == 0
    text = sh("arm-none-eabi-gcc", *load_board(board).cflags, "-mthumb", *C_FLAGS, "-fsyntax-only",
              f"-I{tmp_path}/out/src", tmp_path / "out/src/model/model.c", status=0 if is_right else 1)
    assert is_right or f"the weights are packed for {core}: compile for it" in text


def test_a_project_without_a_core_has_no_packed_weights(call, tmp_path):
    model = fixture_store.load("int8_io_ds_cnn").path
    assert call("compile", model, "--c", tmp_path / "out", "--for", "arduino")[0] == 0
    assert "are packed for" not in (tmp_path / "out/src/picotorch/config.h").read_text()
    assert "runs on any core" in (tmp_path / "out/README.md").read_text().replace("\n", " ")
    status, _, error = call("compile", model, "--optimize", "speed", "--c", tmp_path / "two", "--for",
                            "arduino")
    assert status == 2 and "packs weights for one core" in error
    status, _, error = call("compile", model, "--core", "cortex-m4", "--c", tmp_path / "two", "--for",
                            "esp-idf")
    assert status == 2 and "leave out --board, --chip and --core" in error


@pytest.mark.parametrize("flags", [["-ffast-math"], ["-O0"], ["-O3", "-ffp-contract=fast"]])
def test_flags_of_a_users_project_change_no_byte(flags, tmp_path):
    project = tmp_path / "project"
    wanted = write(project, "cmsis-pack", ["attention", "layer_norm"])
    sh("gcc", *C_FLAGS, *flags, f"-I{project}/src", *sources(project, "cmsis-pack"),
       project / "template/main.c", EXAMPLE / "target_host.c", "-o", tmp_path / "out")
    assert_same(sh(tmp_path / "out"), wanted)


def test_the_command_writes_a_project_for_a_platform(call, tmp_path):
    model = tmp_path / "mlp.pte"
    model.write_bytes(fixture_store.load("mlp").pte)
    status, _, error = call("compile", model, "--c", tmp_path / "out", "--for", "arduino")
    assert (status, error) == (0, "") and (tmp_path / "out/library.properties").is_file()
    status, _, error = call("compile", model, "--for", "arduino")
    assert status == 2 and "--for is for --c" in error
    shutil.rmtree(tmp_path / "out")
    assert call("compile", model, "--c", tmp_path / "out", "--for", "cmake")[0] == 0
    assert (tmp_path / "out/CMakeLists.txt").is_file()
