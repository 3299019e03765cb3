"""Test tools/requirements: each package that make installs has a version and hashes, which pip
checks."""

import hashlib
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from support import figures

REPOSITORY = Path(__file__).resolve().parents[2]
FOLDER = REPOSITORY / "tools" / "requirements"
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())


def locked(*names):
    """Return [(requirement, hashes)] of the files of these names."""
    text = "".join((FOLDER / f"{name}.txt").read_text() for name in names).replace("\\\n", "")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return [(Requirement(re.sub(r"\s--hash=\S+", "", line)), re.findall(r"--hash=(\S+)", line))
            for line in lines]


@pytest.mark.reliability
@pytest.mark.parametrize("name", ["tools", "export", "torch", "torch_cpu", "architectures", "site",
                                  "release"])
def test_each_package_has_one_version_and_hashes(name):
    entries = locked(name)
    for requirement, hashes in entries:
        assert [specifier.operator for specifier in requirement.specifier] == ["=="], requirement
        assert hashes
        assert all(re.fullmatch("sha256:[0-9a-f]{64}", digest) for digest in hashes), requirement
    figures.record("supply", name, packages=len(entries),
                   hashes=sum(len(hashes) for _, hashes in entries))


@pytest.mark.parametrize("names, wanted", [
    (["tools"], PROJECT["build-system"]["requires"]),
    (["tools"], PROJECT["project"]["dependencies"]),
    (["tools"], PROJECT["project"]["optional-dependencies"]["test"]),
    (["tools", "export", "torch"], PROJECT["project"]["optional-dependencies"]["export"]),
    (["architectures"], PROJECT["project"]["optional-dependencies"]["architectures"]),
    (["site"], PROJECT["project"]["optional-dependencies"]["site"]),
    (["release"], PROJECT["project"]["optional-dependencies"]["release"]),
])
def test_the_requirements_of_the_project_are_locked(names, wanted):
    found = {}
    for requirement, _ in locked(*names):
        found.setdefault(requirement.name, []).append(next(iter(requirement.specifier)).version)
    for requirement in map(Requirement, wanted):
        versions = found[requirement.name.replace("_", "-")]
        assert all(requirement.specifier.contains(version) for version in versions), requirement


def test_the_makefile_installs_nothing_else():
    text = (REPOSITORY / "Makefile").read_text()
    installs = re.findall(r"^\t.*(?:pip install|CONFORMANCE_PIP\)).*$", text, flags=re.MULTILINE)
    assert len(installs) == 7
    assert all(re.search(r"--require-hashes -r| -e \.$", line) for line in installs)


def make_wheel(folder):
    path = folder / "single-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("single.py", "value = 1\n")
        wheel.writestr("single-1.0.dist-info/METADATA",
                       "Metadata-Version: 2.1\nName: single\nVersion: 1.0\n")
        wheel.writestr("single-1.0.dist-info/WHEEL",
                       "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr("single-1.0.dist-info/RECORD", "")
    return path


@pytest.mark.reliability
def test_a_package_of_which_a_bit_changed_is_rejected(tmp_path):
    """pip rejects it, called as the set-up calls it."""
    wheel = make_wheel(tmp_path)
    requirements = tmp_path / "requirements.txt"
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    requirements.write_text(f"single==1.0 \\\n    --hash=sha256:{digest}\n")

    def install(target):
        command = [sys.executable, "-m", "pip", "install", "--no-deps", "--require-hashes"]
        command += ["--no-index", "--find-links", tmp_path, "--target", tmp_path / target]
        return subprocess.run([*command, "-r", requirements], capture_output=True, text=True)

    assert install("unchanged").returncode == 0
    data = bytearray(wheel.read_bytes())
    data[data.index(b"value = 1") + 8] ^= 1
    wheel.write_bytes(data)
    refused = install("changed")
    assert refused.returncode != 0
    assert "DO NOT MATCH THE HASHES" in refused.stderr
    assert not (tmp_path / "changed" / "single.py").exists()
    figures.record("supply", "pip", refused=1)
