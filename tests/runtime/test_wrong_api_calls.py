"""Make wrong calls of the whole Python API. Each parameter of each public function gets values of wrong
types and ranges, and methods are called on objects that are not open or not loaded. A call works or
raises picotorch.Error, whose message names a subject and a remedy."""

import importlib
import inspect
import io
import signal
from pathlib import Path

import numpy as np
import picotorch
import pytest
from picotorch import runtime as host_runtime
from support import fixture_store
from test_values import values as program_of_values

SECONDS = 60  # for all wrong calls of one function, on a busy machine


class Anything:
    """An object of none of picotorch's types."""


def released():
    view = memoryview(bytearray(64))
    view.release()
    return view


WRONG = {
    "None": lambda: None,
    "zero": lambda: 0,
    "five": lambda: 5,
    "negative": lambda: -1,
    "huge": lambda: 2**70,
    "huge negative": lambda: -(2**70),
    "text": lambda: "nix.pte",
    "empty text": lambda: "",
    "surrogate": lambda: "\ud800",
    "bytes": lambda: b"nix",
    "nan": lambda: float("nan"),
    "float": lambda: 1.5,
    "list": lambda: [],
    "list of None": lambda: [None],
    "nested list": lambda: [[1], "a"],
    "tuple": lambda: (1, "a"),
    "dict": lambda: {"a": 1},
    "object": Anything,
    "class": lambda: Anything,
    "function": lambda: released,
    "released view": released,
    "array": lambda: np.zeros((2, 3)),
    "objects": lambda: np.zeros(3, object),
    "file": lambda: io.BytesIO(b"nix"),
    "path": lambda: Path("nix"),
    "complex": lambda: 1j,
}


# ---- valid objects, made for each call


def pte(name="two_methods"):
    return fixture_store.load(name).pte


def loader():
    return picotorch.BufferDataLoader(pte())


def program():
    return picotorch.Program.load(loader())


def manager():
    return picotorch.MemoryManager(
        picotorch.MemoryAllocator(bytearray(4096)),
        picotorch.HierarchicalAllocator([bytearray(8192) for _ in range(4)]),
        picotorch.MemoryAllocator(bytearray(1024), "temp memory"))


def method():
    return program().load_method("encode", manager())


def unloaded():
    found = method()
    found.unload()
    return found


def meta():
    return program().method_meta("encode")


def module(name="add_1"):
    return picotorch.Module(pte(name))


def ptd():
    return str(fixture_store.load("external_weights").data_paths[0])


def data_map():
    return picotorch.FlatTensorDataMap.load(picotorch.FileDataLoader(ptd()))


def merged():
    return picotorch.MergedDataMap.load([data_map()])


def named_data():
    return picotorch.Program.load(
        picotorch.BufferDataLoader(pte("delegate_named_data"))).get_named_data_map()


def tensor():
    return picotorch.from_blob(np.arange(6, dtype=np.float32), [2, 3])


def attributes():
    return module("lstm_stateful").load_method()


def tracer():
    found = picotorch.EventTracer(bytearray(picotorch.EventTracer.nbytes(meta())))
    program().load_method("encode", manager(), event_tracer=found)
    return found


def value_list():
    outputs = picotorch.Module(program_of_values()).load_method().get_outputs()
    return next(value for value in outputs if isinstance(value, picotorch.ValueList))


def host_program():
    return host_runtime.Runtime.get().load_program(fixture_store.load("two_methods").path,
                                                   enable_etdump=True)


def host_method():
    return host_program().load_method("encode")


X = np.zeros(8, np.float32)

INDEXED = ("input_tag", "input_tensor_meta", "input_value", "input_quantization", "output_tag",
           "output_tensor_meta", "output_value", "output_quantization", "is_output_dynamic",
           "memory_planned_buffer_size", "operator_name")

# {function: (maker of the object with the function, valid arguments)}
CALLS = {
    "picotorch.BufferDataLoader": (None, {"buffer": pte}),
    "picotorch.FileDataLoader": (None, {"path": ptd, "buffer": lambda: bytearray(1 << 16)}),
    "picotorch.MemoryAllocator": (None, {"buffer": lambda: bytearray(64)}),
    "picotorch.HierarchicalAllocator": (None, {"buffers": lambda: [bytearray(64)]}),
    "picotorch.MemoryManager": (None, {
        "method_allocator": lambda: picotorch.MemoryAllocator(bytearray(64)),
        "planned_memory": lambda: picotorch.HierarchicalAllocator([]),
        "temp_allocator": lambda: picotorch.MemoryAllocator(bytearray(64))}),
    "picotorch.EventTracer": (None, {"buffer": lambda: bytearray(640)}),
    "picotorch.EventTracer.nbytes": (None, {"meta": meta}),
    "picotorch.Method": (None, {"manager": manager, "max_outputs": lambda: 2,
                                "max_delegates": lambda: 0, "max_arguments": lambda: 0}),
    "picotorch.Module": (None, {"source": pte, "data_path": ptd, "pack_weights": lambda: False,
                                "share_memory_arenas": lambda: False}),
    "picotorch.Program.load": (None, {"loader": loader, "verification": lambda: picotorch.STRICT}),
    "picotorch.FlatTensorDataMap.load": (None, {
        "loader": lambda: picotorch.FileDataLoader(ptd()),
        "verification": lambda: picotorch.STRICT}),
    "picotorch.MergedDataMap.load": (None, {"data_maps": lambda: [data_map()]}),
    "picotorch.from_blob": (None, {"buffer": lambda: X, "sizes": lambda: [2, 4],
                                   "dtype": lambda: "Float", "dim_order": lambda: [0, 1]}),
    "picotorch.register_backend": (None, {"name": lambda: "Nix", "backend": picotorch.Backend}),
    "picotorch.unregister_backend": (None, {"name": lambda: "Nix"}),
    "MemoryAllocator.allocate": (lambda: picotorch.MemoryAllocator(bytearray(64)),
                                 {"size": lambda: 8, "alignment": lambda: 8}),
    "MemoryAllocator.reset": (lambda: picotorch.MemoryAllocator(bytearray(64)), {"used": lambda: 0}),
    "HierarchicalAllocator.size": (lambda: picotorch.HierarchicalAllocator([bytearray(8)]),
                                   {"index": lambda: 0}),
    "Program.get_method_name": (program, {"index": lambda: 0}),
    "Program.plan": (program, {"name": lambda: "encode"}),
    "Program.find_plan": (program, {"name": lambda: "encode"}),
    "Program.method_meta": (program, {"name": lambda: "encode"}),
    "Program.load_method": (program, {
        "name": lambda: "encode", "manager": manager, "pack_weights": lambda: False,
        "data_map": data_map,
        "event_tracer": lambda: picotorch.EventTracer(bytearray(640))}),
    "Program.get_named_data": (program, {"key": lambda: "a", "view": lambda: memoryview(bytearray(1))}),
    "NamedDataMap.get_key": (named_data, {"index": lambda: 0}),
    "NamedDataMap.get_data": (named_data, {"key": lambda: "a",
                                           "view": lambda: memoryview(bytearray(1))}),
    **{f"MethodMeta.{name}": (meta, {"index": lambda: 0}) for name in INDEXED},
    "MethodMeta.attribute_tensor_meta": (lambda: attributes().method_meta(), {"index": lambda: 0}),
    "MethodMeta.get_backend_name": (
        lambda: picotorch.Program.load(picotorch.BufferDataLoader(pte("delegate_demo"))).method_meta(),
        {"index": lambda: 0}),
    "MethodMeta.instruction_name": (meta, {"index": lambda: 0, "argument": lambda: 0}),
    "Method.load": (unloaded, {
        "program": program, "name": lambda: "encode", "pack_weights": lambda: False,
        "data_map": data_map, "event_tracer": lambda: picotorch.EventTracer(bytearray(640))}),
    "Method.set_input": (method, {"value": lambda: X, "index": lambda: 0}),
    "Method.set_inputs": (method, {"values": lambda: [X]}),
    "Method.set_output_data_ptr": (lambda: module("unplanned_io").load_method(),
                                   {"buffer": lambda: bytearray(4096), "index": lambda: 0}),
    "Method.get_output": (method, {"index": lambda: 0}),
    "Method.get_outputs": (method, {"into": lambda: [None]}),
    "Method.get_attribute": (attributes, {"name": lambda: "h"}),
    "Method.set_attribute_data_ptr": (lambda: module("unplanned_state").load_method(),
                                      {"buffer": lambda: bytearray(4096), "name": lambda: "h"}),
    "Module.load_method": (module, {"name": lambda: "forward"}),
    "Module.execute": (module, {"name": lambda: "forward", "inputs": lambda: [X[:1]]}),
    "Module.forward": (module, {"*inputs": lambda: X[:1]}),
    "Tensor.__getitem__": (tensor, {"i": lambda: 0}),
    "Tensor.__setitem__": (tensor, {"i": lambda: 0, "value": lambda: 1.0}),
    "Tensor.size": (tensor, {"dim": lambda: 0}),
    "Tensor.resize": (tensor, {"sizes": lambda: [3, 2]}),
    "Tensor.number": (tensor, {"i": lambda: 0}),
    "ValueList.__getitem__": (value_list, {"i": lambda: 0}),
    "EventTracer.calls": (tracer, {"instruction": lambda: 0}),
    "EventTracer.ticks": (tracer, {"instruction": lambda: 0}),
    "FlatTensorDataMap.get_key": (data_map, {"index": lambda: 0}),
    "FlatTensorDataMap.get_tensor_layout": (data_map, {"key": lambda: "a"}),
    "FlatTensorDataMap.get_data": (data_map, {"key": lambda: "a",
                                              "view": lambda: memoryview(bytearray(1))}),
    "MergedDataMap.get_key": (merged, {"index": lambda: 0}),
    "MergedDataMap.get_tensor_layout": (merged, {"key": lambda: "a"}),
    "MergedDataMap.get_data": (merged, {"key": lambda: "a",
                                        "view": lambda: memoryview(bytearray(1))}),

    "runtime.load_program": (host_runtime.Runtime.get, {
        "data": pte, "verification": lambda: host_runtime.Verification.Minimal,
        "enable_etdump": lambda: False, "debug_buffer_size": lambda: 0, "data_path": ptd,
        "threads": lambda: 1}),
    "runtime.Program.load_method": (host_program, {"name": lambda: "encode"}),
    "runtime.Program.metadata": (host_program, {"method_name": lambda: "encode"}),
    "runtime.Program.write_etdump_result_to_file": (host_program, {
        "etdump_path": lambda: "events", "debug_buffer_path": lambda: "outputs"}),
    "runtime.Method.execute": (host_method, {"inputs": lambda: [X], "torch": lambda: None}),
    **{f"runtime.MethodMeta.{name}": (lambda: host_method().metadata, {"index": lambda: 0})
       for name in ("input_tensor_meta", "output_tensor_meta", "input_quantization",
                    "output_quantization", "attribute_tensor_meta")},
    "runtime.BackendRegistry.is_available": (
        lambda: host_runtime.Runtime.get().backend_registry, {"backend_name": lambda: "Nix"}),
}

# Functions with arguments that only picotorch or backends call. tests/on_board/delegates.py tests the
# calls of backends.
INTERNAL = {
    "BackendAllocator", "BackendExecutionContext", "BackendInitContext", "CompileSpec",
    "CompileSpecs", "Arguments", "Backend", "Delegate", "Delegates", "FreeableBuffer", "explain",
    "attach", "check_size", "DataMap", "TensorInfo", "TensorLayout", "ValueList", "MethodMeta",
    "NamedDataMap", "FlatTensorDataMap", "MergedDataMap", "Program", "Tensor", "Error",
    # _picotorch calls these, see its contract.py
    "on_error", "on_request", "point_to", "as_input", "as_inputs",
}


def called(name):
    """Return the function and its valid arguments."""
    make, arguments = CALLS[name]
    *path, last = name.split(".")
    target = picotorch if make is None else make()
    for part in path[1:] if make is None else ():
        target = getattr(target, part)
    return getattr(target, last), {key: value() for key, value in arguments.items()}


def call(function, arguments):
    positional = [arguments.pop(name) for name in list(arguments) if name.startswith("*")]
    return function(*positional, **arguments)


def refused(function, arguments):
    """Return the Error of a call, or None for a call that works or ends a sequence."""
    try:
        call(function, arguments)
    except picotorch.Error as error:
        return error
    except IndexError:
        assert function.__name__ in ("__getitem__", "__setitem__")
    finally:
        for name in picotorch.registered_backend_names():
            picotorch.unregister_backend(name)
    return None


def check(error):
    """Check that the message of an Error names its subject and a remedy."""
    assert error.subject and error.remedy, str(error)
    assert str(error).endswith(error.remedy)


@pytest.fixture(autouse=True)
def alarm(tmp_path, monkeypatch):
    """End a call that hangs. Written files go to a folder of the test."""
    monkeypatch.chdir(tmp_path)
    signal.alarm(SECONDS)
    yield
    signal.alarm(0)


@pytest.mark.parametrize("name", CALLS)
def test_wrong_arguments_have_their_error(name):
    """Each parameter gets each wrong value, while the others stay valid."""
    for parameter in CALLS[name][1]:
        for make in WRONG.values():
            function, arguments = called(name)
            arguments[parameter] = make()
            error = refused(function, arguments)
            if error is not None:
                check(error)


def test_there_are_enough_wrong_calls():
    number = len(WRONG) * sum(len(arguments) for _, arguments in CALLS.values())
    assert number > 2500


REFUSED = ["None", "five", "text", "object", "list of None"]  # all of these functions reject them


@pytest.mark.parametrize("value", REFUSED)
@pytest.mark.parametrize("name", [
    "picotorch.Program.load", "picotorch.FlatTensorDataMap.load", "picotorch.MergedDataMap.load",
    "picotorch.BufferDataLoader", "picotorch.MemoryAllocator", "picotorch.Method",
    "Method.load", "Method.set_input", "Method.set_inputs", "Program.load_method",
    "runtime.Method.execute", "Method.get_attribute"])
def test_the_first_argument_is_rejected(name, value):
    function, arguments = called(name)
    arguments[next(iter(arguments))] = WRONG[value]()
    assert refused(function, arguments) is not None


@pytest.mark.parametrize("name, parameter, value, message", [
    ("picotorch.Program.load", "loader", "model.pte",
     "InvalidType (0x13): loader: has the wrong type; give FileDataLoader(path) or "
     "BufferDataLoader(buffer)"),
    ("Program.method_meta", "name", 5, "InvalidType (0x13): argument: has the wrong type; give a str"),
    ("picotorch.Method", "manager", None,
     "InvalidType (0x13): manager: has the wrong type; give an object of type MemoryManager"),
    ("MethodMeta.input_tag", "index", "0",
     "InvalidType (0x13): argument: has the wrong type; give an int"),
    ("Method.load", "data_map", "weights.ptd",
     "InvalidType (0x13): data_map: has the wrong type; give a FlatTensorDataMap or MergedDataMap"),
    ("picotorch.FileDataLoader", "path", 5,
     "InvalidType (0x13): path: has the wrong type; give an object of type str"),
])
def test_messages(name, parameter, value, message):
    function, arguments = called(name)
    arguments[parameter] = value
    assert str(refused(function, arguments)) == message


# ---- objects that are not open or not loaded


def never_loaded():
    return picotorch.Method(manager())


OBJECTS = {
    "a method that was unloaded": unloaded,
    "a method that was never loaded": never_loaded,
    "a program that is not open": lambda: picotorch.Program(loader()),
    "a data file that is not open": lambda: picotorch.FlatTensorDataMap(
        picotorch.FileDataLoader(ptd())),
    "the meta data of a program that is not open": lambda: picotorch.MethodMeta(
        picotorch.Program(loader()), 0),
    "named data of a program that is not open": lambda: picotorch.Program(
        loader()).get_named_data_map(),
}
ARGUMENTS = {"index": 0, "name": "encode", "manager": manager, "program": program, "value": X,
             "values": [X], "buffer": bytearray(64), "key": "a"}


def public(target):
    """Return the methods and properties of an object that users call."""
    return [name for name in dir(target) if not name.startswith("_") and name not in INTERNAL]


@pytest.mark.parametrize("name", OBJECTS)
def test_an_object_that_is_not_ready_has_its_error(name):
    for attribute in public(OBJECTS[name]()):
        target = OBJECTS[name]()
        try:
            function = getattr(target, attribute)
            if callable(function):
                named = inspect.signature(function).parameters.values()
                given = [ARGUMENTS.get(one.name) for one in named if one.default is one.empty]
                function(*[one() if callable(one) else one for one in given])
            repr(target)
        except picotorch.Error as error:
            check(error)


def test_a_list_of_an_unloaded_method_has_its_error():
    made = picotorch.Module(program_of_values()).load_method()
    values = next(value for value in made.get_outputs() if isinstance(value, picotorch.ValueList))
    made.unload()
    for call_it in (lambda: values[0], lambda: list(values), lambda: repr(values)):
        with pytest.raises(picotorch.Error) as caught:
            call_it()
        check(caught.value)


# ---- no function is forgotten


def functions_of(module):
    """Yield (function, its parameters) of a module and its classes."""
    for name, value in vars(module).items():
        if name.startswith("_") or getattr(value, "__module__", None) != module.__name__:
            continue
        if not inspect.isclass(value):
            yield name, value
            continue
        yield name, value
        for method_name, function in vars(value).items():
            if not method_name.startswith("_") or method_name in ("__getitem__", "__setitem__"):
                yield f"{name}.{method_name}", getattr(function, "__func__", function)


def names_with_parameters(module):
    for name, function in functions_of(module):
        if callable(function) and not set(name.split(".")) & INTERNAL - {"Program", "Tensor"}:
            parameters = set(inspect.signature(function).parameters) - {"self"}
            if parameters and name not in ("Program", "Tensor"):
                yield name


@pytest.mark.parametrize("module", ["data", "files", "memory", "method", "method_meta", "module",
                                    "program", "tensor", "tracer"])
def test_each_function_is_called(module):
    known = {name.removeprefix("picotorch.") for name in CALLS}
    internal = {"alone", "buffer_size", "bytes_at", "load_with_exact_memories", "new_kept"}
    found = set(names_with_parameters(importlib.import_module(f"picotorch.{module}")))
    assert found - known - internal == set()
