"""Test that host/_picotorch/contract.py has each name that a binding reads of picotorch's objects, and
each name that picotorch reads of a binding. Test that CPython's binding works without picotorch, numpy
and torch."""

import ast
import inspect
import re
import struct
import subprocess
import sys
from pathlib import Path

import _picotorch
import picotorch
import pytest
from _picotorch import contract

pytestmark = pytest.mark.check

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "host" / "picotorch"
MODEL = ROOT / "tests" / "fixtures" / "add_5" / "model.pte"
C_FILES = sorted((ROOT / "port" / "module").glob("*.c"))
MODULE = (ROOT / "port" / "module" / "modpicotorch.c").read_text()
PROTOCOLS = [each for each in vars(contract).values()
             if inspect.isclass(each) and each.__module__ == contract.__name__]
ENTRIES = re.compile(r"(?:PT_(?:[0-3]|VAR)\(\w+, |TYPE\(|CONSTANT\()(\w+)[,)]")


def names_of(protocol):
    return {name for base in protocol.__mro__ if base.__module__ == contract.__name__
            for name in {**vars(base), **base.__dict__.get("__annotations__", {})}
            if not name.startswith("_")}


NAMES = set().union(*map(names_of, PROTOCOLS))


def entries(text, table):
    """Return the names in a table of functions of the C module."""
    body = re.search(rf"{table}\[\] = \{{(.*?)\n?}};", text, re.S)[1]
    return set(ENTRIES.findall(body))


# ---- names that MicroPython's binding reads


def test_c_reads_names_of_the_contract():
    """The names are attributes and methods of Python's objects, whatever function reads them."""
    reads = r"(?:mp_load_attr|mp_load_method|mp_store_attr|attribute_at|has)\([^;]*?MP_QSTR_(\w+)"
    found = {name for path in C_FILES for name in re.findall(reads, path.read_text())}
    assert found and found <= NAMES, found - NAMES


def test_all_names_of_c_are_accounted_for():
    """The binding's C code has no other name of Python: each is read, or an entry of a table."""
    known = NAMES | contract.BOTH | contract.MICROPYTHON | {"", "__name__", "_picotorch"}
    for path in C_FILES:
        assert set(re.findall(r"MP_QSTR_(\w*)", path.read_text())) <= known, path.name


# ---- names of both bindings


def test_the_modules_have_the_names_of_the_contract():
    assert entries(MODULE, "globals_table") == contract.BOTH | contract.MICROPYTHON
    own = {name for name, value in vars(_picotorch).items()
           if not name.startswith("_") and not inspect.ismodule(value)
           and getattr(value, "__module__", "_picotorch") == "_picotorch"}
    own -= {"ffi", "lib", "handle_signals", "ask", "TYPE_CHECKING"}
    assert own == contract.BOTH | contract.CPYTHON


@pytest.mark.parametrize("kind, file, table", [
    ("Program", "program.c", "program_locals_table"), ("Data", "program.c", "data_locals_table"),
    ("Method", "method.c", "method_locals_table")])
def test_the_classes_have_the_same_functions(kind, file, table):
    found = entries((ROOT / "port" / "module" / file).read_text(), table)
    cls = getattr(_picotorch, kind)
    made = cls(*(object(), 0, 0, 0)[: 4 if kind == "Method" else 1])
    own = {name for name in {*dir(cls), *vars(made)} if not name.startswith("_")}
    assert own == found | contract.CPYTHON_FUNCTIONS[kind]


def test_the_fields_of_a_tensor():
    body = re.search(r"pt_tensor_tuple\(.*?items\[\] = \{(.*?)\n    \};",
                     (ROOT / "port" / "module" / "objects.c").read_text(), re.S)[1]
    assert len(re.findall(r"(?m)^        \w", body)) == len(contract.TENSOR_FIELDS)
    program = picotorch.Program.load(picotorch.BufferDataLoader(MODEL.read_bytes()))
    found = program.library.tensor(0, _picotorch.INPUTS, 0)
    assert dict(zip(contract.TENSOR_FIELDS, found, strict=True))["sizes"] == (5,)


# ---- names of picotorch, and names that it reads


def test_picotorch_keeps_the_contract():
    kept = picotorch.tensor.new_kept(None)
    for protocol, each in ((contract.Owner, picotorch.Program),
                           (contract.Owner, picotorch.FlatTensorDataMap),
                           (contract.ConvertingOwner, empty_method()),
                           (contract.Tensor, kept.tensor), (contract.ValueList, kept.list)):
        assert not {name for name in names_of(protocol) if not hasattr(each, name)}, each


def empty_method(**arguments):
    pool = picotorch.MemoryAllocator(bytearray(64))
    return picotorch.Method(picotorch.MemoryManager(pool), **arguments)


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")),
                         ids=lambda path: str(path.relative_to(PACKAGE)))
def test_picotorch_reads_no_other_name(path):
    """The module's names are in the contract. The objects that it makes are in variables called
    `library`, and have public names."""
    tree = ast.parse(path.read_text())
    allowed = contract.BOTH | contract.MICROPYTHON | contract.CPYTHON | {"__file__"}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "_picotorch":
            assert {name.name for name in node.names} <= allowed
        if isinstance(node, ast.Attribute):
            of = ast.unparse(node.value)
            assert of != "_picotorch" or node.attr in allowed, node.attr
            assert not (of.split(".")[-1] in ("library", "_library") and node.attr.startswith("_")
                        and not node.attr.startswith("__")), node.attr


# ---- the binding alone

ALONE = """
import sys

class Nothing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("picotorch", "numpy", "torch"):
            raise ImportError("not here: " + name)

sys.meta_path.insert(0, Nothing())
import _picotorch
import _picotorch.contract

class Failed(Exception):
    pass

class Owner:
    texts = []
    def on_error(self, *fields):
        raise Failed(fields)

class Tensor:
    buffer = None
    def __init__(self):
        self.data = self.sizes_view = self.dim_order_view = memoryview(b"")
        self.dtype_number = 0

class MethodOwner(Owner):
    def __init__(self):
        self.kept = [_picotorch.Kept(Tensor(), None)]
    def on_request(self, what, index):
        return 1

def failed(function, *arguments):
    try:
        function(*arguments)
    except Failed as error:
        return error.args[0]

program = _picotorch.Program(Owner())
assert failed(program.num_methods)[-1] == "is not open; make it by load"
assert failed(program.open, bytearray(100), 1)[0] == 0x23
program = _picotorch.Program(Owner())
program.open(open(sys.argv[1], "rb").read(), 1)
plan = program.find("forward")
planned = [bytearray(program.buffer_size(plan, i))
           for i in range(program.count(plan, _picotorch.PLANNED_BUFFERS))]
owner = MethodOwner()
method = _picotorch.Method(owner, 0, 0, len(planned))
assert failed(method.execute)[-1]
method.load(program, plan, bytearray(4096), 4096, 0, planned, None, None, False, None)
assert failed(method.set_input, object(), 0)[0] == 0x12
for i in range(method.count(_picotorch.INPUTS)):
    info = program.tensor(plan, _picotorch.INPUTS, i)
    method.set_input(bytearray(info[3]), i)
method.execute()
print(bytes(method.get_output(0).data).hex(), list(owner.kept[0].tensor.sizes_view))
"""


def test_the_binding_works_alone():
    """Without importing picotorch, numpy or torch, the test opens, loads and executes a program. The
    owner makes the errors."""
    found = subprocess.run([sys.executable, "-c", ALONE, MODEL], capture_output=True, text=True)
    assert (found.stderr, found.returncode) == ("", 0)
    assert found.stdout == f"{struct.pack('<5f', *5 * [3.0]).hex()} [5]\n"


def test_import_picotorch_imports_no_numpy():
    command = "import sys, picotorch; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", command]).returncode == 0


def test_another_threads_call_leaves_the_error_of_a_backend():
    """A call that is rejected while another thread executes raises its own error, and leaves the error
    of that thread."""
    method = empty_method(max_delegates=1)
    kept = method._delegates._error = picotorch.errors.fail(1, "of the backend", "delegate", 0)
    with pytest.raises(picotorch.Error, match="InvalidState"):
        method.on_error(picotorch.errors.INVALID_STATE, 2, -1, -1, -1, -1, "is in use")
    assert method._delegates.take_error() is kept
