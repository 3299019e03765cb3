"""Test the writer of ROMFS. test_connected.py reads its output with MicroPython's VfsRom."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from picotorch.host import romfs

pytestmark = pytest.mark.thorough

NAMES = st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=200)


@settings(deadline=None)
@given(st.dictionaries(NAMES, st.recursive(st.binary(max_size=400), lambda files: st.dictionaries(
    NAMES, files, max_size=4), max_leaves=8), max_size=8))
def test_a_written_romfs_can_be_read(files):
    image = romfs.build(files)
    assert romfs.read(image) == romfs.read(image + b"\xff" * 100) == files
    assert romfs.size_of(image[:32]) == len(image) and len(image) % 2 == 0


def test_data_begin_at_multiples_of_16():
    files = {f"{i}.pte": bytes([i + 1]) * (1000 + i) for i in range(40)}
    image = romfs.build(files)
    for data in files.values():
        assert image.index(data) % romfs.ALIGNMENT == 0


def test_mpremotes_images_are_read(tmp_path):
    from mpremote.romfs import make_romfs

    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "a.pte").write_bytes(b"a" * 300)
    (tmp_path / "main.py").write_bytes(b"print(1)")
    image = make_romfs(str(tmp_path), mpy_cross=False)
    assert romfs.read(image) == {"models": {"a.pte": b"a" * 300}, "main.py": b"print(1)"}


def test_no_image_and_half_an_image():
    image = romfs.build({"a": bytes(100), "b": {"c": bytes(10)}})
    with pytest.raises(ValueError, match="no ROMFS"):
        romfs.read(bytes(100))
    for size in range(3, len(image)):
        with pytest.raises(ValueError, match="not whole"):
            romfs.read(image[:size])
    assert romfs.size_of(b"\xff" * 32) == romfs.size_of(image[:3]) == 0
