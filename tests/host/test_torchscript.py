"""Test picotorch export model.pt. Most tests need torch and executorch, and are skipped without
them."""

import json
import subprocess
import sys
import zipfile

import numpy as np
import pytest
from picotorch.export import sandbox as confined_module
from picotorch.export import torchscript
from support import fixture_store
from support.calling import assert_error, assert_usage


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch", reason="torch is not installed (picotorch[export])")


@pytest.fixture(scope="module")
def modules(torch):
    """Return the module tests/support/torchscript_modules.py."""
    pytest.importorskip("executorch",
                        reason="executorch is not installed (picotorch[export])")
    from support import torchscript_modules

    return torchscript_modules


@pytest.fixture
def script(torch, modules, tmp_path):
    """Return script("Name"), which returns the path of a scripted module."""
    def save(name):
        torch.manual_seed(0)
        path = tmp_path / f"{name}.pt"
        torch.jit.script(getattr(modules, name)().eval()).save(path)
        return path
    return save


# ---- without torch


@pytest.mark.parametrize("text, shape, dtype", [
    ("1,3,8,8", (1, 3, 8, 8), "float32"), ("4:int64", (4,), "int64"), ("", (), "float32"),
    (":bool", (), "bool"), ("0,2", (0, 2), "float32")])
def test_shapes(text, shape, dtype):
    array = torchscript.parse_shape(text)
    assert (array.shape, array.dtype.name) == (shape, dtype)


@pytest.mark.parametrize("text", ["1x2", "1,", "-1", "a", "1:float", "1:", "99999999,99999999", "1;2"])
def test_shapes_that_are_none(call, tmp_path, text):
    assert_usage(call("export", tmp_path / "m.pt", "--shape", text, "-o", tmp_path / "o.pte"))


def archive(path, *members):
    with zipfile.ZipFile(path, "w") as file:
        for member in members:
            file.writestr(member, "x")
    return path


def test_files_that_are_no_torchscript(call, tmp_path):
    def refused(path, *words):
        result = call("export", path, "--shape", "4", "-o", tmp_path / "o.pte")
        assert_error(result, "InvalidProgram", "(0x23)", "torch.jit.trace", *words)
        assert not (tmp_path / "o.pte").exists()

    refused(archive(tmp_path / "a.pth", "a/data.pkl", "a/version"), "torch.save", "weights and no code")
    refused(archive(tmp_path / "c.zip", "readme"), "neither a .pte, a .pt2 nor a TorchScript file")
    (tmp_path / "d.pt").write_bytes(b"\x80\x02pickle")
    refused(tmp_path / "d.pt", "torch.save")
    (tmp_path / "e.pt").write_bytes(b"")
    refused(tmp_path / "e.pt", "neither")


def test_usage(call, tmp_path):
    model = fixture_store.load("add_1").path
    out = tmp_path / "o.pte"
    assert_usage(call("export", model, "--shape", "4", "-o", out), "TorchScript")
    assert_usage(call("export", model, "--unconfined", "-o", out), "TorchScript")
    path = archive(tmp_path / "m.pt", "m/constants.pkl", "m/code/m.py")
    assert_usage(call("export", path, "--int8-io", "-o", out), "--int8-io")
    assert_usage(call("export", path, "--shape", "4", "--inputs", "in.npz", "-o", out), "not both")


def test_without_the_extra(call, tmp_path, monkeypatch):
    (tmp_path / "torch.py").write_text("raise ImportError('none here')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    path = archive(tmp_path / "m.pt", "m/constants.pkl", "m/code/m.py")
    result = call("export", path, "--shape", "4", "-o", tmp_path / "o.pte")
    assert_error(result, "NotFound", "torch and executorch cannot be imported",
                 "pip install 'picotorch[export]'")


# ---- in the sandbox, with modules that stand for torch, its converter, and the lowering

TORCH = """
import os, types

def answer(text):
    for file in range(3, 10):
        try:
            os.write(file, text.encode() + b"\\n")
        except OSError:
            pass

class Module:
    forward = types.SimpleNamespace(schema=types.SimpleNamespace(arguments=[
        None, types.SimpleNamespace(type="Tensor", name="x", has_default_value=lambda: False)]))

    def eval(self):
        return self

    def modules(self):
        return ()

    def __call__(self, x):
        return Tensor(x.array + 1)

class Tensor:
    def __init__(self, array):
        self.array = array

    def detach(self):
        return self

    resolve_conj = resolve_neg = detach

    @property
    def dtype(self):
        return self.array.dtype

    def reshape(self, sizes):
        return Tensor(self.array.reshape(sizes))

    def numpy(self):
        return self.array

class jit:
    @staticmethod
    def load(file, map_location):
        {what_the_file_does}
        return Module()

nn = types.SimpleNamespace(Module=Module)
from_numpy = Tensor
no_grad = __import__("contextlib").nullcontext
"""
CONVERTER = """
import types

class TS2EPConverter:
    def __init__(self, module, inputs):
        pass

    def convert(self):
        return types.SimpleNamespace(
            graph=types.SimpleNamespace(find_nodes=lambda op: (), nodes=()),
            graph_signature=types.SimpleNamespace(user_inputs=(), inputs_to_parameters={}))

_tree_map_with_path = None
"""
LOWERING = """
import os, sys, types

class Lowering(types.ModuleType):
    def lower_float(self, exported, fuse_rnn):
        with open(os.environ["TMPDIR"] + "/as_flatc_does", "w"):
            program = open({model!r}, "rb").read()
        return types.SimpleNamespace(program=program, emitted=None, parts={{}}, reference=None,
                                     fake_quantized=None)

    @property
    def torch(self):
        import torch
        return torch

sys.modules["picotorch.export.lower_float"] = Lowering("lower_float")
exporting = sys.modules["picotorch.export.replan"] = types.ModuleType("replan")
exporting.replan = lambda emitted, program, name, int8_io: (program, {{}})
"""


@pytest.fixture
def exported(tmp_path, monkeypatch):
    """Return the words of a command that exports a file, which executes code when it is loaded. The
    program is add_1."""
    def words(what_the_file_does, *options):
        for name, text in {
            "torch/__init__.py": TORCH.replace("{what_the_file_does}", what_the_file_does),
            "torch/_export/__init__.py": "", "torch/_export/converter.py": CONVERTER,
            "sitecustomize.py": LOWERING.format(model=str(fixture_store.load("add_1").path)),
        }.items():
            (tmp_path / "modules" / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "modules" / name).write_text(text)
        monkeypatch.setenv("PYTHONPATH", str(tmp_path / "modules"))
        path = archive(tmp_path / "m.pt", "m/constants.pkl", "m/code/m.py")
        return ["export", path, "--shape", "1", "-o", tmp_path / "o.pte", "--accept-unusable", *options]
    return words


@pytest.fixture
def export(call, exported):
    """Return a function that exports such a file."""
    return lambda *arguments: call(*exported(*arguments))


@pytest.fixture
def confined():
    if not confined_module.version():
        pytest.skip("this computer has no Landlock")


def test_a_torchscript_file_that_only_computes_is_exported(confined, export, tmp_path):
    status, out, error = export("print('printed', flush=True)")
    assert status == 0 and (error == "") == (not confined_module.gaps())
    assert "reading TorchScript ... " in out and "printed" not in out
    assert "outputs differ from PyTorch's by up to" in out
    assert (tmp_path / "o.pte").read_bytes() == fixture_store.load("add_1").pte


def test_a_file_that_writes_is_rejected(confined, export, tmp_path):
    made = tmp_path / "made"
    result = export(f"open({str(made)!r}, 'w')")
    assert_error(result, "InvalidProgram", "torch.jit.load: [Errno 13] Permission denied")
    assert not made.exists() and not (tmp_path / "o.pte").exists()


def test_unconfined_it_writes(export, tmp_path):
    assert export(f"open({str(tmp_path / 'made')!r}, 'w')", "--unconfined")[0] == 0
    assert (tmp_path / "made").exists()


@pytest.mark.parametrize("answer", [
    "", "not JSON", "[]", '{"program": 1, "entry": {}}', '{"error": "x", "message": 1}'])
def test_an_invalid_answer_is_an_error(confined, export, answer):
    """The file writes to the channel for the process's answer, and ends the process."""
    result = export(f"answer({answer!r}); os._exit(0)")
    assert_error(result, "Internal", "the process that exports it ended without a result")


def test_its_messages_have_no_control_characters(confined, export):
    text = json.dumps({"tell": "\33[2Jcleared"})
    status, out, _ = export(f"answer({text!r})")
    assert status == 0 and "?[2Jcleared" in out and "\33" not in out


def test_where_nothing_confines_it_only_the_option_helps(export, monkeypatch, tmp_path):
    monkeypatch.setattr(confined_module, "version", lambda: 0)
    assert_error(export("pass"), "NotSupported", "nothing on this computer keeps the code",
                 "there is no Landlock", "with --unconfined")
    assert not (tmp_path / "o.pte").exists()
    assert export("pass", "--unconfined")[0] == 0


# Starts a command on a kernel without the features in argv[1]: their system calls fail.
WITHOUT = """
import ctypes, errno, os, struct, sys
from picotorch.export import sandbox as c

def fails(number, error):
    return [(c._EQUAL, 0, 1, number), (c._RETURN, 0, 0, c._ERROR | error)]

column, _ = c._machine()
found = [(c._LOAD, 0, 0, c._NUMBER)]
if "Landlock" in sys.argv[1]:
    found += fails(c._CREATE_RULESET, errno.ENOSYS)
if "seccomp" in sys.argv[1]:
    prctl = (157, 167)[column]
    found += [*fails((317, 277)[column], errno.ENOSYS), (c._EQUAL, 0, 4, prctl),
              (c._LOAD, 0, 0, c._ARGUMENTS), *fails(c._SECCOMP, errno.EINVAL),
              (c._RETURN, 0, 0, c._ALLOW)]
found.append((c._RETURN, 0, 0, c._ALLOW))
code = b"".join(struct.pack("=HBBI", *one) for one in found)
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(c._NO_NEW_PRIVILEGES, *map(ctypes.c_ulong, (1, 0, 0, 0))) == 0
program = c._Program(len(found), code)
assert libc.prctl(c._SECCOMP, ctypes.c_ulong(c._FILTER), ctypes.byref(program)) == 0
os.execv(sys.argv[2], sys.argv[2:])
"""
NO_FILTER = "Its code can still reach Unix sockets by path, UDP and netlink"


@pytest.mark.thorough
@pytest.mark.skipif(not confined_module.version() or not confined_module.denied(),
                    reason="this computer has no Landlock, or no seccomp")
@pytest.mark.parametrize(("missing", "runs", "texts"), [
    ("neither", True, []),
    ("seccomp", True, ["Landlock alone confines", "there is no seccomp filter", NO_FILTER]),
    ("Landlock", False, ["there is no Landlock (Linux 5.13)", "a seccomp filter alone"]),
    ("Landlock seccomp", False, ["there is neither Landlock (Linux 5.13) nor a seccomp filter"]),
])
def test_the_reason_of_a_kernel_is_printed(exported, tmp_path, missing, runs, texts):
    def call(what_the_file_does, *options):
        words = ["-m", "picotorch", *map(str, exported(what_the_file_does, *options))]
        done = subprocess.run([sys.executable, "-c", WITHOUT, missing, sys.executable, *words],
                              capture_output=True, text=True, cwd=tmp_path)
        return done.returncode, done.stdout, done.stderr

    made = tmp_path / "made"
    status, _, error = call("pass")
    assert (status == 0) == runs == (tmp_path / "o.pte").exists()
    assert all(text in error for text in texts) and "Internal" not in error
    status, _, error = call(f"open({str(made)!r}, 'w')")
    assert status == 1 and not made.exists()
    assert ("[Errno 13] Permission denied" in error) == runs
    assert "NotSupported" in error or runs
    assert call("pass", "--unconfined")[0] == 0


def test_a_confinement_that_fails_is_named(confined, export, monkeypatch, tmp_path):
    """The kernel supports it, but denies it to this process."""
    monkeypatch.setattr(confined_module, "command", lambda folder, words: [
        sys.executable, "-c", "import sys; sys.exit('confined: [Errno 1] no new privileges')"])
    assert_error(export("pass"), "NotSupported", "no new privileges", "with --unconfined")
    assert not (tmp_path / "o.pte").exists()


def test_a_scripted_if_is_a_jump():
    """The fixture torchscript_branch, which also runs on the boards, is exported from TorchScript."""
    fixture = fixture_store.load("torchscript_branch")
    from picotorch.inspect.inspecting import inspect

    calls = [one.call for one in inspect(fixture.pte, "").methods[0].instructions]
    assert "jump if false" in calls
    signs = [run.inputs[0].sum() > 0 for run in fixture.runs]
    assert True in signs and False in signs


# ---- with torch


def test_traced_resnet18(call, torch, modules, tmp_path):
    torch.manual_seed(0)
    module = modules.ResNet18().eval()
    images = torch.rand(1, 3, 32, 32)
    torch.jit.trace(module, images).save(tmp_path / "resnet18.pt")
    np.savez(tmp_path / "in.npz", in0=images.numpy())
    status, out, error = call("export", tmp_path / "resnet18.pt", "--inputs", tmp_path / "in.npz",
                              "-o", tmp_path / "resnet18.pte")
    assert (status, error) == (0, ""), error
    for step in ("reading TorchScript ... ", "lowering with ExecuTorch ... ", "planned buffer 0  "):
        assert step in out
    assert call("run", tmp_path / "resnet18.pte", "--inputs", tmp_path / "in.npz",
                "--outputs", tmp_path / "out.npz", "--temp-size", 1 << 24)[0] == 0
    with torch.no_grad():
        wanted = module(images).numpy()
    with np.load(tmp_path / "out.npz") as outputs:
        difference = np.abs(outputs["out0"][0, :5] - wanted[0, :5]).max()
    assert difference <= 1e-5 * np.abs(wanted).max()


def test_the_program_has_the_shapes_of_the_example(call, script, tmp_path):
    out = tmp_path / "o.pte"
    status, text, _ = call("export", script("Numbers"), "--shape", "2,3:int32", "--shape", ":int64",
                           "--shape", "2,3", "-o", out, "--json")
    entry = json.loads(text)
    assert status == 0 and entry["missing_operators"] == [] and entry["checked"] == "executed"
    method = json.loads(call("inspect", out, "--json")[1])["methods"][0]
    assert [(value["type"], value.get("dtype"), value.get("sizes")) for value in method["inputs"]] == [
        ("Tensor", "Int", [2, 3]), ("Int", None, None), ("Tensor", "Float", [2, 3])]


@pytest.mark.parametrize("name, words", {
    "MyModule": ["the branches of an if in line", "(if input.sum() > 0)", "of rank 1 and 2",
                 "a program (.pte) states the rank", "export each branch as a module of its own"],
    "DifferentDtypes": ["the branches of an if", "of dtype torch.bool and torch.float32"],
    "While": ["a loop whose number of rounds its values decide", "while x.sum() < 10.0"],
    "Print": ["a print in line", "remove it"],
}.items())
def test_calls_that_a_program_cannot_contain(call, script, tmp_path, name, words):
    result = call("export", script(name), "--shape", "4", "-o", tmp_path / "o.pte")
    assert_error(result, "NotSupported", "(0x10)", *words)
    assert not (tmp_path / "o.pte").exists()


def test_branches_may_differ_in_sizes(call, script, tmp_path):
    """The output then has dynamic sizes, with the larger one as the bound."""
    out = tmp_path / "o.pte"
    assert call("export", script("DifferentSizes"), "--shape", "4", "-o", out)[0] == 0
    method = json.loads(call("inspect", out, "--json")[1])["methods"][0]
    assert method["outputs"][0]["sizes"] == [8]


def test_shapes_that_are_missing_or_wrong(call, script, tmp_path):
    path, out = script("MyModule"), tmp_path / "o.pte"
    assert_error(call("export", path, "-o", out), "InvalidArgument",
                 "forward(Tensor input) takes 1 example inputs, 0 given", "--shape 1,3,224,224")
    assert_error(call("export", path, "--shape", "5,7", "-o", out), "InvalidArgument",
                 "forward fails with these inputs")


def test_a_damaged_file(call, modules, tmp_path):
    path = archive(tmp_path / "m.pt", "m/constants.pkl", "m/code/m.py", "m/data.pkl", "m/version")
    result = call("export", path, "--shape", "4", "-o", tmp_path / "o.pte")
    assert_error(result, "InvalidProgram", "torch.jit.load")


@pytest.mark.parametrize("method", ["trace", "script"])
def test_convolutions_become_int8(call, torch, modules, tmp_path, method):
    """TorchScript has one operator for all convolutions, which the quantizer does not support."""
    nn = torch.nn
    torch.manual_seed(0)
    module = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 3)).eval()
    example = torch.rand(1, 1, 8, 8)
    script = torch.jit.trace(module, example) if method == "trace" else torch.jit.script(module)
    script.save(tmp_path / "m.pt")
    np.savez(tmp_path / "in.npz", in0=np.random.default_rng(0).random((8, 1, 8, 8), np.float32))
    status, text, _ = call("export", tmp_path / "m.pt", "--shape", "1,1,8,8", "--quantize",
                           tmp_path / "in.npz", "-o", tmp_path / "o.pte", "--json")
    entry = json.loads(text)
    assert status == 0
    assert [(layer["operator"], layer["dtype"]) for layer in entry["layers"]] == [
        ("cortex_m::quantized_conv2d.out", "int8"),
        ("cortex_m::quantized_linear.out", "int8")]
    assert entry["outputs"][0]["sqnr"] > 25
