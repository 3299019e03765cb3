"""Test tools/get_rp2.py: the libraries of MicroPython's port rp2, and the trees that it accepts."""

import pytest
from support.tool import load_tool


@pytest.fixture
def tool():
    """Load the tool as a module."""
    return load_tool("get_rp2")


def test_a_library_with_other_bytes_is_rejected(tool, tmp_path):
    library = tool.LIBRARIES[0]
    (tmp_path / library.file).write_bytes(b"other")
    with pytest.raises(tool.GetError, match=f"{library.file} has another SHA-256"):
        tool.download(library, tmp_path, {})


def test_a_library_that_no_mirror_has_is_named(tool, tmp_path, monkeypatch):
    monkeypatch.setattr(tool, "run", lambda *arguments: None)
    with pytest.raises(tool.GetError, match="was not downloaded"):
        tool.download(tool.LIBRARIES[1], tmp_path, {})


def test_a_missing_mirror_is_reported(tool, tmp_path, monkeypatch):
    monkeypatch.setattr(tool, "debian_mirrors", list)
    with pytest.raises(tool.GetError, match="names no Debian mirror"):
        tool.download_all(tmp_path)


def test_a_tree_without_submodules_is_left_alone(tool, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(tool.get_micropython, "check_tree", lambda tree: None)
    monkeypatch.setenv(tool.DIR_VARIABLE, str(tmp_path))
    for library in tool.LIBRARIES[1:]:
        (tmp_path / "lib" / library.name / "src").mkdir(parents=True)
    (tmp_path / "lib" / tool.LIBRARIES[0].name).mkdir()
    assert tool.named_tree() is None
    assert f"lacks the submodules {tool.LIBRARIES[0].name}" in capsys.readouterr().err
    (tmp_path / "lib" / tool.LIBRARIES[0].name / "src").mkdir()
    assert tool.named_tree() == tmp_path.resolve()
