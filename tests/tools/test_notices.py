"""Test that the wheel has the notices of all third parties whose code its binaries contain."""

import re
import subprocess
from pathlib import Path

import pytest
from picotorch.boards.boards import load_board
from picotorch.firmware import rp2
from picotorch.run import emulator, running
from support.tool import load_tool

ROOT = Path(__file__).resolve().parents[2]
notices = load_tool("notices")
FIRMWARE = {"ours": emulator.firmware_path(load_board(running.DEFAULT_BOARD)),
            **{board: rp2.BUILD / board / "firmware.elf" for board in rp2.BOARDS}}
# Names in the debug information of Debian's packages
COMPILERS = {"newlib": re.compile(r"/newlib/"), "libgcc": re.compile(r"/libgcc/|/gcc-arm-none-eabi")}
TREE = re.compile(rf"(?:/build/(?:micropython|rp2/tree)|{'|'.join(map(str, notices.trees()))})/(.*)")
OURS = re.compile(r"(?:^\.|/)/?(?:kernels|port|build/firmware|build/rp2/\w+)/")
# A part of each licence
LICENCES = {
    "micropython": "Permission is hereby granted, free of charge",
    "libm": "Developed at SunPro",
    "newlib": "The Regents of the University of California",
    "libgcc": "GCC RUNTIME LIBRARY EXCEPTION",
    "pico-sdk": "Redistributions in binary form must reproduce",
    "cmsis": "Apache License",
    "tinyusb": "Ha Thach (tinyusb.org)",
    "mbedtls": "Apache License",
    "littlefs": "Redistributions in binary form must reproduce",
    "oofatfs": "FatFs module is an open source software",
    "re1.5": "Redistributions in binary form must reproduce",
    "uzlib": "This notice may not be removed or altered",
    "crypto-algorithms": "released into the public domain",
}
HOLDERS = {"micropython": "Damien P. George", "littlefs": "The littlefs authors", "re1.5": "Russ Cox",
           "oofatfs": "ChaN", "uzlib": "Joergen Ibsen", "pico-sdk": "Raspberry Pi",
           "cmsis": "Arm Limited", "mbedtls": "The Mbed TLS Contributors", "libm": "Sun Microsystems"}


def compiled(firmware):
    """Return the sources of a firmware from its debug information, each with its folder."""
    printed = subprocess.check_output(["arm-none-eabi-readelf", "--debug-dump=info", "--dwarf-depth=1",
                                       firmware], text=True, stderr=subprocess.DEVNULL)
    for unit in printed.split("DW_TAG_compile_unit")[1:]:
        found = dict(re.findall(r"DW_AT_(name|comp_dir)\s*:.*?([^\s:]+)\n", unit))
        name, folder = found["name"], found["comp_dir"]
        yield name if name.startswith(("/", "./")) else f"{folder}/{name}"


def component_of(source):
    """Return the component to which a source belongs, "picotorch", or None."""
    for name, pattern in COMPILERS.items():
        if pattern.search(source):
            return name
    in_tree = TREE.search(source)
    if in_tree:
        folders = ((f"{folder}/", component.name) for component in notices.COMPONENTS
                   for folder in component.folders)
        return next((name for folder, name in folders if in_tree[1].startswith(folder)), None)
    return "picotorch" if OURS.search(source) else None


@pytest.mark.thorough
@pytest.mark.parametrize("name", FIRMWARE)
def test_each_source_of_a_firmware_has_a_notice(name):
    found = {source: component_of(source) for source in compiled(FIRMWARE[name])}
    assert [source for source, component in found.items() if component is None] == []
    expected = {"picotorch", "micropython", "libm", "libgcc"}
    if name != "ours":
        expected |= {"newlib", "pico-sdk", "tinyusb", "mbedtls", "littlefs", "oofatfs"}
    assert expected <= set(found.values())


@pytest.mark.thorough
def test_each_component_has_its_licence_and_its_holders(tmp_path):
    notices.write(tmp_path / "licenses", with_rp2=True)
    texts = {path.stem: path.read_text() for path in (tmp_path / "licenses").iterdir()}
    assert texts.keys() == LICENCES.keys() == {component.name for component in notices.COMPONENTS}
    for name, words in LICENCES.items():
        assert words in texts[name], name
    for name, words in HOLDERS.items():
        assert words in texts[name], name


def test_without_the_firmware_of_a_pico_there_are_the_notices_of_ours(tmp_path):
    notices.write(tmp_path / "licenses", with_rp2=False)
    assert {path.stem for path in (tmp_path / "licenses").iterdir()} == {
        "micropython", "libm", "newlib", "libgcc"}


def test_the_holders_under_the_same_words_come_together(tmp_path):
    words = " *\n * All may use this.\n */\n"
    (tmp_path / "a.c").write_text("/*\n * Copyright (c) 2001 A\n" + words + "int a; /* a count */\n")
    (tmp_path / "b.h").write_text("/*\n * Copyright (c) 2002 B\n" + words)
    (tmp_path / "c.c").write_text("// Copyright 2003 C.\n// Only I may.\n\nint c;\n")
    assert notices.comments(sorted(tmp_path.iterdir())) == [
        "Copyright (c) 2001 A\nCopyright (c) 2002 B\n\nAll may use this.",
        "Copyright 2003 C.\n\nOnly I may."]


def test_the_licence_of_the_newest_compiler_is_used(tmp_path):
    (libgcc,) = (component for component in notices.COMPONENTS if component.name == "libgcc")
    for version in ("9", "12", "10"):
        (tmp_path / f"gcc-{version}-base").mkdir()
        (tmp_path / f"gcc-{version}-base" / "copyright").write_text(f"of {version}")
    assert notices.notice(libgcc, tmp_path, packages=tmp_path) == "of 12\n"


def test_a_licence_that_is_missing_ends_the_build(tmp_path):
    (newlib,) = (component for component in notices.COMPONENTS if component.name == "newlib")
    with pytest.raises(notices.NoticeMissing, match="of newlib is missing: .*libnewlib-arm-none-eabi"):
        notices.notice(newlib, tmp_path, packages=tmp_path)
    (uzlib,) = (component for component in notices.COMPONENTS if component.name == "uzlib")
    with pytest.raises(notices.NoticeMissing, match="no notice of uzlib"):
        notices.notice(uzlib, tmp_path)
