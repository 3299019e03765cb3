"""Test picotorch library: the sources build as each platform builds them, and run examples/c/main.c."""

import json
import os
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from picotorch import Error
from picotorch.host.request import Request
from picotorch.host.twin import open_program
from picotorch.package import library
from picotorch.package.platforms import PLATFORMS
from picotorch.run import running
from support import fixture_store
from support.c_projects import sh
from support.platforms import C_FLAGS, EXAMPLE, SHIMS, sources

MODEL = "int8_ds_cnn"
PROGRAM = fixture_store.FOLDER / MODEL / "model.pte"
FLAT = [name for name, platform in PLATFORMS.items() if platform.flat]
MAIN = [EXAMPLE / name for name in ("main.c", "model.S", "target_host.c")]


def write(folder, platform, models=(MODEL,)):
    programs = {name: open_program(fixture_store.load(name).pte) for name in models}
    assert library.write(folder, PLATFORMS[platform], programs) == []


@pytest.fixture(scope="module")
def wanted():
    """Return what examples/c/main.c prints."""
    sound = (np.arange(490) % 16 - 8).astype(np.float32).reshape(1, 1, 49, 10)
    result = running.run(Request(fixture_store.load(MODEL).pte, MODEL, [sound]), running.HOST)
    return f"class {chr(ord('A') + int(result.outputs[0].argmax()))}\n"


def compiled(folder, platform, *options):
    root = folder / PLATFORMS[platform].root
    sh("gcc", *C_FLAGS, f"-I{root}", f'-DMODEL="{PROGRAM}"', *options, *sources(folder, platform),
       *MAIN, "-o", folder / "out")
    return folder / "out"


def test_one_include_path_and_no_flags_suffice(wanted, tmp_path):
    write(tmp_path, "cmsis-pack")
    assert sh(compiled(tmp_path, "cmsis-pack")) == wanted


def test_all_kernels_build_without_flags(wanted, tmp_path):
    write(tmp_path, "arduino", ())
    assert sh(compiled(tmp_path, "arduino", "-O0", "-w")) == wanted


def test_platforms_with_one_include_path_have_the_same_sources(tmp_path):
    found = []
    for platform in FLAT:
        write(tmp_path / platform, platform)
        found.append({path.relative_to(tmp_path / platform): path.read_bytes()
                      for path in sources(tmp_path / platform, platform)})
    assert len(found) > 2 and all(one == found[0] for one in found)


def test_a_cmake_project_includes_it(wanted, tmp_path):
    write(tmp_path / "library", "make")
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.14)\nproject(app C ASM)\n"
        "add_subdirectory(library/picotorch)\n"
        f"add_executable(app {' '.join(map(str, MAIN))})\n"
        f"target_compile_definitions(app PRIVATE MODEL=\"{PROGRAM}\")\n"
        "target_link_libraries(app picotorch::picotorch)\n")
    sh("cmake", "-S", tmp_path, "-B", tmp_path / "build")
    sh("cmake", "--build", tmp_path / "build", "-j2")
    assert sh(tmp_path / "build/app") == wanted


def test_an_application_of_zephyr_includes_it(wanted, tmp_path):
    write(tmp_path / "picotorch", "zephyr")
    (tmp_path / "prj.conf").write_text("CONFIG_PICOTORCH=y\n")
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.20)\n"
        "list(APPEND ZEPHYR_EXTRA_MODULES ${CMAKE_CURRENT_SOURCE_DIR}/picotorch)\n"
        "find_package(Zephyr REQUIRED)\nproject(app C ASM)\n"
        f"target_sources(app PRIVATE {' '.join(map(str, MAIN))})\n"
        f"target_compile_definitions(app PRIVATE MODEL=\"{PROGRAM}\")\n")
    sh("cmake", "-S", tmp_path, "-B", tmp_path / "build", f"-DZephyr_DIR={SHIMS}/zephyr")
    sh("cmake", "--build", tmp_path / "build", "-j2")
    assert sh(tmp_path / "build/app") == wanted


def test_an_application_of_esp_idf_includes_it(wanted, monkeypatch, tmp_path):
    write(tmp_path / "picotorch", "esp-idf")
    (tmp_path / "main").mkdir()
    (tmp_path / "main/start.c").write_text(
        "int main_of_example(void);\nvoid app_main(void);\n"
        "void app_main(void) { main_of_example(); }\n")
    (tmp_path / "main/CMakeLists.txt").write_text(
        f"enable_language(ASM)\nidf_component_register(SRCS start.c {' '.join(map(str, MAIN))})\n"
        "target_compile_definitions(${COMPONENT_LIB} PRIVATE main=main_of_example "
        f"MODEL=\"{PROGRAM}\")\n")
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.16)\nset(EXTRA_COMPONENT_DIRS picotorch)\n"
        "include($ENV{IDF_PATH}/tools/cmake/project.cmake)\nproject(app)\n")
    monkeypatch.setenv("IDF_PATH", str(SHIMS / "esp-idf"))
    sh("cmake", "-S", tmp_path, "-B", tmp_path / "build")
    sh("cmake", "--build", tmp_path / "build", "-j2")
    assert sh(tmp_path / "build/app.elf") == wanted


def test_a_pack_lists_all_its_files(tmp_path):
    write(tmp_path, "cmsis-pack")
    (path,) = tmp_path.glob("*.pdsc")
    files = ElementTree.parse(path).getroot().findall(".//file")
    assert all((tmp_path / file.get("name")).exists() for file in files)
    listed = {file.get("name") for file in files if file.get("category") == "source"}
    assert listed == {source.relative_to(tmp_path).as_posix()
                      for source in sources(tmp_path, "cmsis-pack")}


@pytest.mark.parametrize("platform", PLATFORMS)
def test_it_is_written_again_with_the_users_files(platform, tmp_path):
    write(tmp_path, platform)
    (tmp_path / "README.md").write_text("mine\n")
    write(tmp_path, platform)
    assert (tmp_path / "README.md").read_text() == "mine\n"
    assert not re.search(r"@[A-Z]+@", "".join(
        path.read_text() for path in tmp_path.rglob("*") if path.is_file()))


def test_the_command_reports_its_folder(call, tmp_path):
    status, text, error = call("library", PROGRAM, "--for", "platformio", "--json", "-o",
                               tmp_path / "out")
    assert (status, error) == (0, "") and json.loads(text) == {"output": str(tmp_path / "out")}
    assert os.path.getsize(tmp_path / "out/library.json") > 0


def test_a_folder_with_a_project_of_models_is_rejected(call, tmp_path):
    assert call("compile", PROGRAM, "--name", "kws", "--for", "arduino", "--c",
                tmp_path / "out")[0] == 0
    with pytest.raises(Error, match=r"has a project with models.*name another folder"):
        write(tmp_path / "out", "arduino")
    assert (tmp_path / "out/src/kws/kws.c").is_file()


def test_a_folder_with_other_files_is_rejected(tmp_path):
    (tmp_path / "mine.c").write_text("int x;\n")
    with pytest.raises(Error, match=r"has files that are not picotorch's.*name a new folder"):
        write(tmp_path, "arduino")
    assert os.listdir(tmp_path) == ["mine.c"]
