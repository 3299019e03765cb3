"""Call the C API as no binding of Python calls it: each misuse has its error."""

import subprocess
from pathlib import Path

import pytest
from _picotorch_c import ffi, lib
from picotorch.errors import library_error
from picotorch.schema import ERROR_NAMES, SUBJECTS
from support.flatbuffer_builder import bool_value
from support.programs import call, plan, program, relu_plan, tensor

pytestmark = pytest.mark.check

INTERNAL, INVALID_ARGUMENT, FAILED, NOT_FOUND = 0x01, 0x12, 0x21, 0x20


def span(buffer, size=None):
    return {"data": buffer, "size": ffi.sizeof(buffer) if size is None else size}


class Library:
    """A program of one method with its memories; `load` loads the method."""

    def __init__(self, data):
        self.error = ffi.new("pt_error *")
        self.file = ffi.new("uint64_t[]", -(-len(data) // 8))
        ffi.memmove(self.file, data, len(data))
        self.program, self.plan = ffi.new("pt_program *"), ffi.new("pt_method_meta *")
        assert not lib.pt_program_open(self.program, self.file, len(data), lib.PT_VERIFY_STRICT,
                                       self.error)
        assert not lib.pt_method_meta_find(self.plan, self.program, b"forward", 7, self.error)
        self.method = ffi.new("pt_method *")
        self.pool, self.planned = ffi.new("uint64_t[]", 64), ffi.new("uint64_t[]", 8)
        self.spans = ffi.new("pt_span[]", [span(self.planned)])
        self.memories = ffi.new("pt_memories *", {"pool": span(self.pool), "planned": self.spans,
                                                  "n_planned": 1})
        self.options = ffi.new("pt_options *")

    def load(self, plan=None):
        """Load the method. Return the error's code, which pt_error also has."""
        code = lib.pt_load(self.method, plan or self.plan, self.memories, self.options,
                           self.error)
        assert code == 0 or code == self.error.code
        return code

    def what(self):
        return ffi.string(self.error.what).decode()


@pytest.fixture
def relu():
    return Library(program(relu_plan()))


@pytest.mark.parametrize("used", (513, 2**32 - 1, 2**32 - 8, 2**32 - 10))
def test_more_of_a_pool_is_used_than_it_has(relu, used):
    relu.memories.pool_used = used
    assert relu.load() == FAILED and relu.error.available == 0
    relu.memories.pool_used = 0
    assert relu.load() == 0


def test_all_of_a_pool_is_used(relu):
    relu.memories.pool_used = 512
    assert relu.load() == FAILED


def test_memory_without_an_address(relu):
    relu.memories.pool.data = ffi.NULL
    assert relu.load() == INVALID_ARGUMENT and "no address" in relu.what()
    relu.memories.pool.data = relu.pool
    assert relu.load() == 0
    assert lib.pt_set_input(relu.method, 0, ffi.NULL, 16, relu.error) == INVALID_ARGUMENT


def test_a_method_is_loaded_again_with_its_own_plan(relu):
    assert relu.load() == 0
    lib.pt_unload(relu.method)
    assert relu.load(ffi.addressof(relu.method, "meta")) == 0
    x = ffi.new("float[4]", [-1, 2, -3, 4])
    assert lib.pt_set_input(relu.method, 0, x, 16, relu.error) == 0
    assert lib.pt_execute(relu.method, relu.error) == 0
    view = ffi.new("pt_value_view *")
    assert lib.pt_output(relu.method, 0, view, relu.error) == 0
    assert list(ffi.cast("float *", view.tensor.data)[0:4]) == [0, 2, 0, 4]


def test_events_need_a_clock(relu):
    events = ffi.new("uint64_t[]", 64)
    relu.options.events = span(events)
    assert relu.load() == INVALID_ARGUMENT and "clock" in relu.what()


def test_an_item_behind_the_end_of_a_list():
    values = [*relu_plan()["values"], {"val": ("TensorList", {"items": [0, 1]})}, bool_value(True),
              {"val": ("BoolList", {"items": [True]})}]
    library = Library(program(relu_plan() | {"values": values}))
    assert library.load() == 0
    view, item = ffi.new("pt_value_view *"), ffi.new("pt_evalue *")
    for value, length in ((2, 2), (4, 1)):
        assert not lib.pt_method_meta_evalue(library.plan, lib.PT_VALUES, value, ffi.NULL, item,
                                             library.error)
        for i, code in [(i, 0) for i in range(length)] + [(length, INVALID_ARGUMENT),
                                                          (2**32 - 1, INVALID_ARGUMENT)]:
            assert lib.pt_list_view(library.method, item, i, view, library.error) == code


def test_a_tensor_without_a_dim_order_has_that_of_the_program():
    values = [tensor([2, 2], 0, shape_dynamism=1), tensor([2, 2], 16, shape_dynamism=1)]
    library = Library(program(plan(values, [call(0, 0, 1, 1)], ["aten::relu.out"], [0], [1], [32])))
    assert library.load() == 0
    x, sizes = ffi.new("float[2]"), ffi.new("int32_t[]", [1, 2])
    given = ffi.new("pt_input_buffer *", {"data": span(x), "has_shape": True, "dtype": 6, "rank": 2,
                                   "sizes": sizes})
    assert lib.pt_give_input(library.method, 0, given, library.error) == 0
    assert lib.pt_execute(library.method, library.error) == 0


def test_an_output_rejects_a_tensor_of_another_dtype():
    library = Library(program(plan([tensor([4], 0), tensor([4])], [call(0, 0, 1, 1)],
                                   ["aten::relu.out"], [0], [1], [16])))
    assert library.load() == 0
    x, sizes = ffi.new("uint64_t[]", 8), ffi.new("int32_t[]", [4])
    given = ffi.new("pt_input_buffer *", {"data": span(x), "typecode": b"B", "has_shape": True,
                                          "dtype": 0, "rank": 1, "sizes": sizes})
    assert lib.pt_set_output(library.method, 0, given, library.error) == INVALID_ARGUMENT
    assert "dtype" in library.what()
    given.dtype = 6
    assert lib.pt_set_output(library.method, 0, given, library.error) == 0


@pytest.mark.parametrize("code, told", ((0x30, 0x30), (0x120, INTERNAL), (-1, INTERNAL)))
def test_a_code_of_a_delegate_that_is_none_is_internal(code, told):
    delegates = [{"id": "Other", "processed": {"location": 0, "index": 0}}]
    values = relu_plan() | {"delegates": delegates}
    library = Library(program(values, backend_delegate_data=[{"data": [1]}]))
    callback = ffi.callback("int(pt_method *, uint32_t, pt_error *)", lambda m, i, error: code)
    library.options.delegates = ffi.new("pt_delegates *", {"max_delegates": 1, "find": callback})
    assert library.load() == told == library.error.code


# ---- the text of an error

ROOT = Path(__file__).resolve().parents[2]
NO_BYTES = 2**32 - 1


def text_of(size=200, what=None, **fields):
    """Return the text and its whole length."""
    kept = ffi.NULL if what is None else ffi.new("char[]", what.encode())
    error = ffi.new("pt_error *", {"requested": NO_BYTES, "available": NO_BYTES, "index": -1,
                                   "argument": -1, "what": kept, **fields})
    text = ffi.new("char[]", b"x" * size)
    length = lib.pt_error_text(error, text if size else ffi.NULL, size)
    return ffi.string(text).decode() if size else "", length


@pytest.mark.parametrize("subject", range(len(SUBJECTS)))
def test_an_error_has_the_text_of_python(subject):
    """Python adds remedies by the code, and details that it reads from the program."""
    what = "a cause; a remedy"
    for code in ERROR_NAMES:
        for index in -1, 0, 2**31 - 1:
            for numbers in (NO_BYTES, NO_BYTES), (0, 1), (2**32 - 2, NO_BYTES):
                if subject == lib.PT_SUBJECT_INSTRUCTION and numbers[0] > 0:
                    continue  # the numbers count arguments: both or none
                requested, available = (-1 if number == NO_BYTES else number for number in numbers)
                error = library_error(code, subject, index, -1, requested, available, what, None)
                assert text_of(code=code, subject=subject, index=index, requested=numbers[0],
                               available=numbers[1], what=what)[0] == str(error)


def test_an_error_of_a_kernel_names_the_argument():
    text, _ = text_of(code=INVALID_ARGUMENT, subject=lib.PT_SUBJECT_KERNEL, index=3, argument=1)
    assert text == "InvalidArgument (0x12): instruction 3: argument 1"


@pytest.mark.parametrize("fields", [{"code": 0xFF}, {"code": 1, "subject": 255}])
def test_an_unknown_error_has_a_text(fields):
    assert text_of(**fields)[0].endswith("): ")


@pytest.mark.parametrize("size", [0, 1, 2, 30, 38, 39, 40, 41])
def test_a_text_that_is_longer_is_cut(size):
    fields = {"code": INVALID_ARGUMENT, "subject": lib.PT_SUBJECT_INPUT, "what": "is wrong"}
    whole, length = text_of(**fields)
    assert length == len(whole) == 39
    assert text_of(size, **fields) == (whole[:max(size - 1, 0)], length)


def test_the_example_of_the_header_compiles(tmp_path):
    comment = (ROOT / "kernels/include/picotorch/picotorch.h").read_text().split("#ifndef")[0]
    lines = [line[6:] for line in comment.splitlines() if line.startswith("//     ")]
    source = tmp_path / "example.c"
    source.write_text("#include <picotorch/picotorch.h>\n"
                      "enum { POOL = 64, PLANNED = 64, TEMP = 64, INPUTS = 4 };\n"
                      + "\n".join(lines) + "\n")
    subprocess.run(["gcc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-c", "-I",
                    ROOT / "kernels/include", source, "-o", tmp_path / "example.o"], check=True)
