"""Test tools/get_micropython.py: the trees that it accepts, their check, and its reader of apt's
configuration."""

import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from support import figures
from support.tool import load_tool

REPOSITORY = Path(__file__).resolve().parents[2]
TOOL = REPOSITORY / "tools" / "get_micropython.py"
TREE = Path(os.environ.get("MICROPYTHON_DIR") or REPOSITORY / "build" / "micropython")


@pytest.fixture
def tool():
    """Load the tool as a module."""
    return load_tool("get_micropython")


def make_tree(tool, folder, version=(1, 25, 0)):
    for name in tool.NEEDED_FILES:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    parts = zip(("MAJOR", "MINOR", "MICRO"), version, strict=True)
    lines = [f"#define MICROPY_VERSION_{part} {number}\n" for part, number in parts]
    (folder / "py" / "mpconfig.h").write_text("".join(lines))
    return folder


def run_tool(tree):
    return subprocess.run(
        [sys.executable, TOOL],
        env={**os.environ, "MICROPYTHON_DIR": str(tree)},
        capture_output=True,
        text=True,
    )


def test_a_named_tree_is_used_in_place(tool, tmp_path):
    done = run_tool(make_tree(tool, tmp_path))
    assert (done.returncode, done.stdout) == (0, f"{tmp_path}\n")


def test_another_version_is_rejected(tool, tmp_path):
    done = run_tool(make_tree(tool, tmp_path, (1, 26, 1)))
    assert done.returncode == 1
    assert f"{tmp_path} is MicroPython 1.26.1, wanted is 1.25.0" in done.stderr


def test_a_tree_that_lacks_files_is_rejected(tool, tmp_path):
    (make_tree(tool, tmp_path) / "lib" / "libm" / "math.c").unlink()
    done = run_tool(tmp_path)
    assert done.returncode == 1
    assert f"{tmp_path} lacks lib/libm/math.c" in done.stderr


def test_a_folder_without_micropython_is_rejected(tmp_path):
    done = run_tool(tmp_path)
    assert done.returncode == 1
    assert f"{tmp_path} is no MicroPython tree" in done.stderr


@pytest.fixture
def released(tool, tmp_path):
    """Copy all files of the tree whose hashes are stored."""
    for name in tool.stored_hashes():
        copy = tmp_path / "released" / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(TREE / name, copy)
    return tmp_path / "released"


def flip_a_bit(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


@pytest.mark.reliability
def test_a_changed_bit_of_any_file_that_a_build_reads_is_seen(tool, released):
    tool.check_content(released)
    files = [name for name in tool.stored_hashes() if (released / name).stat().st_size]
    for name in files:
        flip_a_bit(released / name)
    assert tool.changed_files(released) == files
    figures.record("supply", "micropython", hashes=len(tool.stored_hashes()), refused=len(files))


@pytest.fixture
def cached(tool, released, tmp_path, monkeypatch):
    """Return the tool's own tree, downloaded by an earlier call."""
    monkeypatch.delenv("MICROPYTHON_DIR", raising=False)
    monkeypatch.setattr(tool, "BUILD", tmp_path)
    monkeypatch.setattr(sys, "argv", ["get_micropython.py"])
    return released.rename(tmp_path / "micropython")


def test_the_cached_tree_is_checked_each_time(tool, cached, tmp_path, capsys):
    """The tool's own tree was changed after it was unpacked."""
    tool.main()
    assert capsys.readouterr().out == f"{tmp_path}/micropython\n"
    flip_a_bit(tmp_path / "micropython/py/gc.c")
    (tmp_path / "micropython/py/vm.c").unlink()
    with pytest.raises(SystemExit, match="py/gc.c and 1 more changed; remove .* to fetch it again"):
        tool.main()


def test_a_file_that_is_not_in_the_release_is_rejected(tool, cached):
    """make prefers a GNUmakefile to the Makefile, and Python a module beside the script."""
    for name in ("mpy-cross/GNUmakefile", "py/re.py", "ports/unix/x.c"):
        (cached / name).parent.mkdir(parents=True, exist_ok=True)
        (cached / name).touch()
        with pytest.raises(SystemExit, match=f"{name} added; remove .* to fetch it again"):
            tool.main()
        (cached / name).unlink()
    tool.main()


def test_links_are_rejected_wherever_they_lead(tool, cached, tmp_path):
    """A link to the same bytes is rejected, too, since these could change later."""
    (cached / "py/gc.c").rename(tmp_path / "gc.c")
    (cached / "py/gc.c").symlink_to(tmp_path / "gc.c")
    (cached / "shared").rename(tmp_path / "shared")
    (cached / "shared").symlink_to(tmp_path / "shared")
    (cached / "extmod/nowhere").symlink_to("nothing")
    assert tool.changed_files(cached) == []
    assert tool.added_files(cached) == ["extmod/nowhere", "py/gc.c", "shared"]
    with pytest.raises(SystemExit, match="extmod/nowhere and 2 more added"):
        tool.main()


def test_bytecode_of_the_tools_is_removed(tool, cached):
    """Python would run the bytecode in place of a tool with the right hash."""
    (cached / "py/__pycache__").mkdir()
    (cached / "py/__pycache__/makeqstrdata.cpython-311.pyc").touch()
    tool.main()
    assert not (cached / "py/__pycache__").exists()


def test_only_files_with_a_hash_are_extracted(tool, released, tmp_path):
    (released / "mpy-cross/GNUmakefile").touch()
    (released / "py/link.c").symlink_to("gc.c")
    with tarfile.open(tmp_path / "orig.tar.xz", "w") as archive:
        archive.add(released, "micropython-1.25.0")
    tool.unpack(tmp_path / "orig.tar.xz", tmp_path / "tree")
    tool.check_content(tmp_path / "tree")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["orig.tar.xz", "released", "tree"]


@pytest.fixture
def repository(tool, released, tmp_path, monkeypatch):
    """Make a repository from which git fetches the tree, with the release's commit. The tool uses its
    names."""
    def git(*arguments):
        author = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        return subprocess.check_output(["git", "-C", released, *author, *arguments], text=True).strip()

    (released / "mpy-cross/GNUmakefile").touch()
    git("init", "--quiet")
    git("add", ".")
    git("commit", "--quiet", "-m", "Release.")
    monkeypatch.setattr(tool, "GIT_URL", released.as_uri())
    monkeypatch.setattr(tool, "GIT_COMMIT", git("rev-parse", "HEAD"))
    return git


def test_git_gets_the_commit_wherever_the_tag_leads(tool, repository, released, tmp_path):
    flip_a_bit(released / "py/gc.c")
    repository("commit", "--quiet", "-a", "-m", "Another.")
    repository("tag", tool.GIT_TAG)
    tool.get_from_git(tmp_path / "tree")
    tool.check_content(tmp_path / "tree")
    assert not (tmp_path / "tree" / ".git").exists()


def test_git_rejects_where_the_commit_is_not(tool, repository, tmp_path, monkeypatch):
    monkeypatch.setattr(tool, "GIT_COMMIT", "0" * 40)
    with pytest.raises(tool.GetError, match="'git .* fetch .* failed"):
        tool.get_from_git(tmp_path / "tree")
    assert not (tmp_path / "tree").exists()


def test_files_from_git_are_checked_too(tool, released, tmp_path, monkeypatch):
    def clone_another(tree, lists):
        shutil.copytree(released, tree)
        flip_a_bit(tree / "extmod/vfs.h")

    monkeypatch.setattr(tool, "get_from_git", clone_another)
    monkeypatch.setattr(tool.shutil, "which", lambda name: None)
    with pytest.raises(tool.GetError, match="is not v1.25.0 as released: extmod/vfs.h changed"):
        tool.get(tmp_path / "tree")
    assert not (tmp_path / "tree").exists()


def test_the_tree_of_the_ports_has_all_of_the_other(tool, monkeypatch, capsys):
    monkeypatch.delenv("MICROPYTHON_DIR", raising=False)
    monkeypatch.setattr(sys, "argv", ["get_micropython.py", "--ports"])
    tool.main()
    tree = REPOSITORY / "build" / "micropython-ports"
    assert capsys.readouterr().out == f"{tree}\n"
    for name in (*tool.NEEDED_FILES, "ports/unix/Makefile", "ports/qemu/Makefile", "ports/rp2/main.c"):
        assert (tree / name).is_file()
    assert "ports/unix/main.c" in tool.added_files(tree)


def test_a_named_tree_may_differ_and_this_is_reported(released):
    assert run_tool(released).stderr == ""
    flip_a_bit(released / "py/gc.c")
    done = run_tool(released)
    assert done.returncode == 0
    assert f"{released} differs from v1.25.0 as released in 1 files: used as it is" in done.stderr


def test_one_line_sources_are_read(tool):
    text = """
# deb http://old.example/debian bookworm main
deb http://mirror.example/debian bookworm main contrib  # comment
deb-src [arch=amd64 signed-by=/key.gpg] http://signed.example/debian bookworm-updates main
"""
    assert list(tool.parse_list(text)) == [
        tool.Source("http://mirror.example/debian", "bookworm", ("main", "contrib")),
        tool.Source(
            "http://signed.example/debian", "bookworm-updates", ("main",), ("signed-by=/key.gpg",)
        ),
    ]


def test_deb822_sources_are_read(tool):
    text = """\
Types: deb
# a comment between the fields
URIs: http://a.example/debian http://b.example/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By: /key.gpg

Enabled: no
Types: deb
URIs: http://off.example/debian
Suites: bookworm
Components: main

Types: deb
URIs: http://inline.example/debian
Suites: sid
Components: main
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 -----END PGP PUBLIC KEY BLOCK-----
"""
    signed = ("signed-by=/key.gpg",)
    assert list(tool.parse_deb822(text)) == [
        tool.Source("http://a.example/debian", "bookworm", ("main",), signed),
        tool.Source("http://a.example/debian", "bookworm-updates", ("main",), signed),
        tool.Source("http://b.example/debian", "bookworm", ("main",), signed),
        tool.Source("http://b.example/debian", "bookworm-updates", ("main",), signed),
        tool.Source("http://inline.example/debian", "sid", ("main",)),
    ]


def test_a_download_with_other_bytes_is_rejected_and_removed(tool, tmp_path):
    for name in tool.SHA256:
        (tmp_path / name).write_bytes(b"other")
    with pytest.raises(tool.GetError, match="another SHA-256"):
        tool.check_package(tmp_path)
    assert not (tmp_path / tool.ORIG_TARBALL).exists()


def test_a_machine_without_download_tools_gets_a_remedy(tool, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(tool.GetError, match="Install git, or set MICROPYTHON_DIR") as error:
        tool.get(tmp_path / "tree")
    assert "this machine has no apt-get" in str(error.value)
    assert "git is not installed" in str(error.value)
