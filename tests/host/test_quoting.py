"""Test names of users, and texts of models, that another interpreter reads. None is executed, and the
command uses the named file or rejects its name."""

import ast
import json
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from types import SimpleNamespace

import pytest
from picotorch import Error
from picotorch.compile.ptm_writer import compile_ptm
from picotorch.deploy import flash_tools
from picotorch.firmware import kernels_in_flash, ports
from picotorch.host import quoting, romfs
from picotorch.host.twin import open_program
from picotorch.inspect import memory_map
from picotorch.package import c_project
from picotorch.run import prompt
from picotorch.run.device import device_run
from support import fixture_store, flash_tools_double

MODEL = fixture_store.load("add_5").path
NAMES = [
    "plain", "two words", " space first", "fw} [exec touch PWNED] {", "[exec touch PWNED]", "{", "}",
    "a{b}c", "$(touch PWNED)", "$HOME", "${HOME}", "`touch PWNED`", "a;touch PWNED", "a|b", "a&b",
    "a>b", "a\ntouch PWNED\n", "a\tb", "a\rb", "#a", "a#b", "a%b", "%{x}", "a\\", "a\\nb",
    "a'b", 'a"b', "a*b",
    "*", "?", "??", "a??", "a=b", "a:b", "a,b", "a@0x0", "@a", "~", "~root",
    "-a", "--help", "größe", "图", "\u202eabc", "a\x1b[31mb", "a\x01b", "<b>&amp;",
    "]]>", "a\udcffb", "%s%n", "%COMSPEC%", "!x", "a^b", "(a)", "'; import os; os.abort() #",
]  # fmt: skip
TOOLS = {"picotool": ("RPI_PICO", ".elf"), "openocd": ("STM32F4DISC", ".elf"),
         "pyocd": ("PYBV11", ".hex"), "dfu-util": ("PYBV11", ".dfu"),
         "st-flash": ("NUCLEO_F767ZI", ".bin"), "teensy_loader_cli": ("TEENSY41", ".hex")}
LANGUAGES = {"tcl": quoting.tcl, "make": quoting.make, "robot": quoting.robot}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return the working folder. No name may create a file PWNED there."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    yield tmp_path / "here"
    assert not list(tmp_path.rglob("PWNED"))


# ---- programs that flash


@pytest.fixture
def tool(tmp_path, monkeypatch):
    """Install a tool that records its arguments. Return a function that returns them, or None if the
    tool did not start."""
    flash_tools_double.hide(tmp_path, monkeypatch)
    return lambda name: flash_tools_double.install(tmp_path, name)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("program", TOOLS)
def test_the_file_named_is_flashed_or_rejected(call, folder, tool, program, name):
    board, suffix = TOOLS[program]
    file = Path(name + suffix)
    file.write_bytes(b"firmware")
    arguments = tool(program)
    status, _, error = call("flash", "--board", board, "--with", program, "--", file)
    words = arguments()
    if status:
        assert words is None and error.startswith("InvalidArgument (0x12): ")
        assert "".join(c if c.isprintable() else "?" for c in str(file).split()[0]) in error
        return
    if program == "openocd":
        before, word, *after = words[-1].split(" ")
        assert (before, after) == ("program", ["verify", "reset", "exit"])
        assert not set(word) & set(' \t\n[]{}$"\\;#')
        words = [*words[:-1], word]
    (used,) = [word for word in words if word.endswith(str(file))]
    assert not used.startswith(("-", "~")) and Path(used).samefile(file)


@pytest.mark.parametrize("name", NAMES)
def test_a_dry_run_prints_words_of_a_shell(call, folder, tool, name):
    file = Path(name + ".bin")
    file.write_bytes(b"firmware")
    status, out, _ = call("flash", "--board", "PYBV11", "--with", "st-flash", "--dry-run", "--", file)
    text = out.partition("\nst-flash is not installed")[0]
    assert status == 0 and Path(words_of(text)[3]).samefile(file)


# ---- commands that people copy to a shell


def words_of(text):
    """Return the words into which a shell splits a command, up to &&."""
    read = subprocess.run(["/bin/bash", "-c", f"show() {{ printf '%s\\0' \"$@\"; }}; show {text}"],
                          capture_output=True, check=False).stdout
    return read.decode("utf-8", "surrogateescape").split("\0")[:-1]


@pytest.mark.parametrize("name", NAMES)
def test_a_command_to_copy_has_the_file_as_one_word(call, folder, name):
    assert words_of(quoting.shell("x", quoting.operand(name)))[1:] == [quoting.operand(name)]
    (line,) = [line for line in call("examples", "--", "gesture", name)[1].splitlines()
               if line.startswith("Without a board: ")]
    command = line.removeprefix("Without a board: ").partition(" && python main.py")[0]
    word, path = words_of(command)
    assert word == "cd" and Path(path).samefile(name) and not path.startswith(("-", "~"))


def test_no_command_to_copy_has_a_name_without_quotes():
    """The test searches the source for an f-string with a path behind the name of a program."""
    program = re.compile(r"(\bcd|-C|picotorch \w+|=) ?\{(entry|path|folder|model|output|tree)\b")
    for path in Path(quoting.__file__).parent.rglob("*.py"):
        for line in re.findall(r"show\.line\(.*", path.read_text()):
            assert not program.search(line), f"{path}: {line}"


# ---- terminals


def echoed_names(path):
    """Return the values without a number format in f-strings of click.echo()."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("click.echo", "click.secho"):
            for value in ast.walk(node):
                if isinstance(value, ast.FormattedValue) and value.format_spec is None:
                    yield ast.unparse(value.value)


def test_no_name_is_printed_but_by_show():
    """The test searches the source. show replaces characters that a terminal would execute. cli.py
    prints errors, which are printable already."""
    host = Path(quoting.__file__).parent
    found = {str(path.relative_to(host)): names for path in sorted(host.rglob("*.py"))
             if path.name not in ("show.py", "cli.py") and (names := list(echoed_names(path)))}
    assert found == {}


@pytest.mark.parametrize("name", NAMES)
def test_a_terminal_obeys_no_name_of_a_file_on_a_board(folder, capsys, name):
    Path(name).write_bytes(MODEL.read_bytes())
    try:
        with prompt.models_ptm([Path(name)]):
            pass
    except Error as error:
        assert "its name is not UTF-8" in error.message and "\udcff" in name
    assert capsys.readouterr().err.removesuffix("\n").isprintable()


# ---- make, Renode, QEMU


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_plain_or_rejected(language, name):
    plain = not set(name) - set("-+._@") - set(filter(str.isalnum, name))
    if plain:
        assert Path(LANGUAGES[language](name)) == Path(name)
    else:
        with pytest.raises(Error, match="InvalidArgument .*its name has "):
            LANGUAGES[language](name)


def test_make_does_not_start_in_a_tree_that_it_would_misread(folder, monkeypatch):
    monkeypatch.setattr(ports, "_run", lambda *_: pytest.fail("make was started"))
    for name in ("a b", "$(shell touch PWNED)", "a:b", "a#b", "a%b"):
        monkeypatch.setattr(ports, "tree_of", lambda board, name=name: folder / name)
        with pytest.raises(Error, match="InvalidArgument .*make reads it"):
            ports.build("PYBV11", {})


def test_the_emulator_reads_the_job_of_a_run(call, tmp_path, monkeypatch):
    for name in ("a,addr=0", "two words", "$(touch PWNED)"):
        (tmp_path / name).mkdir()
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path / name))
        assert call("run", MODEL, "--board", "mps2-an386")[0] == 0


# ---- Python on a board


@pytest.mark.parametrize("name", NAMES)
def test_a_board_reads_names_as_literals(name):
    try:
        text = device_run.call("find", name, 1)
    except Error as error:
        assert "its name is not UTF-8" in error.message and "\udcff" in name
        return
    tree = ast.parse(text, mode="eval").body
    assert [ast.literal_eval(argument) for argument in tree.args] == [name, 1]
    assert text.isprintable()  # no control character reaches the prompt


@pytest.mark.parametrize("name", NAMES)
def test_an_image_of_files_has_them_by_their_names(name):
    try:
        assert romfs.read(romfs.build({name: b"data"})) == {name: b"data"}
    except Error as error:
        assert "its name is not UTF-8" in error.message and "\udcff" in name


@pytest.mark.parametrize("name", ["'; raise SystemExit(7) #", "{script}", "größe", "a\x03b"])
def test_a_script_runs_by_its_name(call, folder, name):
    script = Path(name + ".py")
    script.write_text("print('it ran')\n")
    status, out, _ = call("run", "--board", "mps2-an386", "--", script)
    assert (status, out.strip()) == (0, "it ran")


def test_models_in_flash_may_have_names_that_their_module_uses(tmp_path, monkeypatch):
    """The test executes the module with the names of models, with stand-ins for a board's functions."""
    data = MODEL.read_bytes()
    found = ["crc32", "bytearray_at", "_at", "memoryview", "RuntimeError", "a"]
    laid_out = kernels_in_flash._lay_out([(name, data) for name in found], 0x10000000)
    kernels_in_flash._write_models(laid_out, 0, tmp_path)
    flash = {address: bytearray(data) for _, address, data in laid_out}
    uctypes = SimpleNamespace(bytearray_at=lambda address, size: flash[address])
    monkeypatch.setitem(sys.modules, "uctypes", uctypes)
    space = {}
    exec((tmp_path / kernels_in_flash.NAMES).read_text(), space)
    assert [bytes(space[name]) for name in found] == [data] * len(found)


# ---- C, Markdown, SVG, JSON


def compiled(folder, *sources, run=False):
    """Compile C sources in strict C99."""
    command = ["gcc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", f"-I{folder}",
               f"-I{folder}/picotorch/include"]
    command += ["-o", str(folder / "a.out")] if run else ["-fsyntax-only"]
    done = subprocess.run([*command, *map(str, sources)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return subprocess.run([folder / "a.out"], capture_output=True).stdout if run else b""


@pytest.mark.thorough
def test_a_c_project_of_any_name_compiles(tmp_path):
    """Each name is used in the note, which is printed in comments, and as the name of the file, from
    which the default name follows."""
    image = compile_ptm(MODEL.read_bytes()).data
    folder = tmp_path / "project"
    for name in [*NAMES, "int", "1", "_", "main", "pt", "string", "größe ??/"]:
        c_project.write([c_project.Model("kws", image, note=name + "*/")], folder)
        compiled(folder, folder / "kws/kws.c", folder / "main.c")
        page = (folder / "README.md").read_text().split("\n")[0]
        assert "<" not in page and page.startswith("# ") and page.endswith(", in C")
        c_project.check_names([c_project.name_of(Path(name + ".pte"))])


def test_a_string_of_c_has_its_bytes(tmp_path):
    texts = [bytes(range(256)), b"??/??'??(", b'"\\', b"%s\n", b"12\0003", b"*/"]
    calls = [f"    fwrite({quoting.c_string(text)}, 1, {len(text)}, stdout);" for text in texts]
    (tmp_path / "text.c").write_text("\n".join(
        ["#include <stdio.h>", "int main(void) {", *calls, "    return 0;", "}", ""]))
    assert compiled(tmp_path, tmp_path / "text.c", run=True) == b"".join(texts)


@pytest.mark.parametrize("name", NAMES)
def test_a_comment_of_c_ends_where_it_ends(tmp_path, name):
    text = quoting.c_comment(name + "*/??/")
    (tmp_path / "text.c").write_text(f"// {text}\nint one;\n/* {text} */\nint two;\nint one, two;\n"
                                     "int *use[] = {&one, &two};\n")
    compiled(tmp_path, tmp_path / "text.c")


@pytest.mark.parametrize("name", NAMES)
def test_a_drawing_shows_the_name(name):
    meta = open_program(MODEL.read_bytes()).method_meta("forward")
    drawn = ElementTree.fromstring(memory_map.draw(meta, name))
    title = drawn.find(".//{*}text[@class='title']")
    wanted = "".join(c if c.isprintable() or c == "\n" else "?" for c in name)
    assert title.text == wanted and not len(title)


def test_the_command_line_accepts_any_name(call, folder):
    """The JSON has the exact name of the file, and the command writes no other file."""
    for name in NAMES:
        model = Path(name + ".pte")
        shutil.copy(MODEL, model)
        status, out, _ = call("run", "--json", "--outputs", "out.npz", "--", model)
        assert status == 0 and json.loads(out)["model"] == str(model)
        assert sorted(path.name for path in folder.iterdir()) == sorted([model.name, "out.npz"])
        model.unlink()


def test_flash_builds_and_flashes_the_model_named(call, folder, tool, monkeypatch):
    for name in NAMES:
        model = Path(name + ".pte")
        shutil.copy(MODEL, model)
        arguments, built = tool("dfu-util"), folder / "firmware.dfu"
        built.write_bytes(b"")

        def build(board, programs, frozen, model=model, built=built):
            assert list(programs) == [str(model)] and frozen == [("model", MODEL.read_bytes())]
            return flash_tools.ports.PortFirmware(board, "stm32", list(programs), [], [], {},
                                                  [str(built)], 0, None)

        monkeypatch.setattr(flash_tools.ports, "build", build)
        assert call("flash", "--board", "PYBV11", "--", model)[0] == 0
        assert arguments()[-1] == str(built)
