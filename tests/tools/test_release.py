"""Test the parts of make release that need no compiler, and that all files name one version."""

import importlib.util
import os
import re
import zipfile
from pathlib import Path

import picotorch
import pytest
from support.tool import load_tool

REPOSITORY = Path(__file__).resolve().parents[2]
make_release = load_tool("make_release")
CHANGELOG = "# Changelog\n\n## 0.2.0 (2027-01-01)\n\n- New.\n\n## 0.1.0\n\n- First.\n"


def test_all_files_name_the_version():
    version = picotorch.__version__
    assert make_release.notes_of((REPOSITORY / "CHANGELOG.md").read_text(), version)
    cited = re.search(r"^version: (.*)", (REPOSITORY / "CITATION.cff").read_text(), re.MULTILINE)
    assert cited[1] == version


@pytest.mark.parametrize("version, text", [("0.2.0", "- New.\n"), ("0.1.0", "- First.\n")])
def test_notes_are_the_text_of_the_version(version, text):
    assert make_release.notes_of(CHANGELOG, version) == text


@pytest.mark.parametrize("version", ["0.2", "0.3.0", "0x1.0"])
def test_a_version_without_text_is_an_error(version):
    with pytest.raises(make_release.ReleaseFailed, match=re.escape(version)):
        make_release.notes_of(CHANGELOG, version)


def test_an_archive_depends_on_names_and_contents_only(tmp_path):
    archives = []
    for number, date in enumerate((0, 2_000_000_000)):
        folder = tmp_path / str(number) / "natmod"
        (folder / "armv6m").mkdir(parents=True)
        for name in ("install.py", "armv6m/package.json")[::1 - 2 * number]:
            (folder / name).write_text(name)
            (folder / name).chmod(0o600 + number)
            os.utime(folder / name, (date, date))
        archives.append(make_release.archive(folder, tmp_path / f"{number}.zip", folder.parent))
    assert archives[0].read_bytes() == archives[1].read_bytes()
    with zipfile.ZipFile(archives[0]) as found:
        assert found.namelist() == ["natmod/armv6m/package.json", "natmod/install.py"]
        assert found.read("natmod/install.py") == b"install.py"


@pytest.mark.parametrize("tag, accepted", [("manylinux_2_17_x86_64", True),
                                           ("manylinux_2_34_x86_64", False)])
def test_a_wheel_whose_tag_is_too_old_is_rejected(monkeypatch, tag, accepted):
    report = (f'\npicotorch.whl is consistent\nwith the following platform tag: "{tag}".\n\n'
              'The wheel references external versioned symbols in these\nshared libraries')
    monkeypatch.setattr(make_release, "run", lambda *command, **environment: report)
    wheel = Path("picotorch-0.1.0-cp311-abi3-manylinux_2_17_x86_64.whl")
    if accepted:
        make_release.check_tag(wheel)
    else:
        with pytest.raises(make_release.ReleaseFailed, match="manylinux_2_34"):
            make_release.check_tag(wheel)


@pytest.mark.parametrize("url, urls", [
    ("", {}),
    ("https://example.org/p/", {"Repository": "https://example.org/p",
                                "Issues": "https://example.org/p/issues"})])
def test_the_metadata_has_the_urls_of_the_repository(tmp_path, url, urls):
    spec = importlib.util.spec_from_file_location("hatch_build", REPOSITORY / "hatch_build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    (tmp_path / "pyproject.toml").write_text(f'[tool.picotorch]\nurl = "{url}"\n')
    metadata = {}
    module.CustomMetadataHook(str(tmp_path), {}).update(metadata)
    assert {key: metadata["urls"][key] for key in urls} == urls
    assert bool(metadata["urls"]) == bool(url)
