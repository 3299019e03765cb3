"""An error is freed with the last reference to it, without the garbage collector.

Its traceback refers to the frames of the caller. In a cycle with one of them it would keep their models
and buffers, and CPython 3.11 crashes when it collects a view of a frame that another view refers to.
"""

import ast
import gc
import weakref
from pathlib import Path

import numpy as np
import pytest
from picotorch import (
    Backend,
    BufferDataLoader,
    Error,
    HierarchicalAllocator,
    MemoryAllocator,
    MemoryManager,
    Method,
    Module,
    Program,
    register_backend,
    unregister_backend,
)
from picotorch.runtime import Runtime
from support.programs import delegate_call, plan, program, relu_plan, tensor
from support.targets import aligned

pytestmark = pytest.mark.check

RELU = program(relu_plan())


def method(pool=1 << 12, planned=32):
    manager = MemoryManager(MemoryAllocator(aligned(pool)), HierarchicalAllocator([aligned(planned)]))
    return Method(manager)


def opened(data=RELU):
    return Program.load(BufferDataLoader(aligned(data)))


def loaded():
    found = method()
    found.load(opened())
    return found


class Raising(Backend):
    def __init__(self, where, error):
        self.where, self.error = where, error

    def init(self, context, processed, compile_specs):
        if self.where == "init":
            raise self.error()

    def execute(self, context, handle, args):
        if self.where == "execute":
            raise self.error()

    def destroy(self, handle):
        if self.where == "destroy":
            raise self.error()


def backend_raises(where, error):
    """Return a call that raises what a backend raises in init, execute or destroy."""
    def fails():
        delegate = {"id": "Raising", "processed": {"location": 0, "index": 0}, "compile_specs": []}
        made = plan([tensor([1], 0), tensor([1], 16)], [delegate_call(0, 0, 1)], [], [0], [1], [32],
                    delegates=[delegate])
        register_backend("Raising", Raising(where, error))
        try:
            found = method()
            found.load(opened(program(made, backend_delegate_data=[{"data": [0]}])))
            found.set_input(np.ones(1, np.float32), 0)
            found.execute()
            found.unload()
        finally:
            unregister_backend("Raising")

    return fails


FAILURES = {
    "the program is cut": lambda: opened(RELU[:64]),
    "the pool is small": lambda: method(pool=64).load(opened()),
    "the planned buffer is small": lambda: method(planned=8).load(opened()),
    "no method": lambda: method().load(opened(), "backward"),
    "not loaded": lambda: method().execute(),
    "no input": lambda: loaded().execute(),
    "a small input": lambda: loaded().set_input(np.ones(3, np.float32), 0),
    "an input of another dtype": lambda: loaded().set_input(np.ones(4, np.int8), 0),
    "an index": lambda: loaded().get_output(7),
    "loaded twice": lambda: (lambda one: (one.load(opened()), one.load(opened())))(method()),
    "a file": lambda: Module("/nowhere.pte"),
    "a module": lambda: Module(RELU).forward(np.ones(3, np.float32)),
    "the runtime": lambda: Runtime.get().load_program(RELU).load_method("forward").execute([]),
    **{f"a backend raises in {where}: {error.__name__}": backend_raises(where, error)
       for where in ("init", "execute", "destroy") for error in (ValueError, MemoryError, Error)},
}


@pytest.mark.parametrize("name", FAILURES)
def test_an_error_is_freed_without_the_collector(name):
    gc.collect()
    gc.disable()
    try:
        try:
            FAILURES[name]()
            pytest.fail("the call succeeded")
        except Exception as error:
            freed = weakref.ref(error)
        assert freed() is None, gc.get_referrers(freed())
    finally:
        gc.enable()


def raised_from_variables(function):
    """Yield each `raise name`, or `raise name.error`, of a local variable that the function assigns and
    that no `finally` around the statement clears."""
    def walk(node, cleared):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
                continue
            if isinstance(child, ast.Try):
                names = {one.id for last in child.finalbody for one in ast.walk(last)
                         if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store | ast.Del)}
                yield from walk(child, cleared | names)
                continue
            if isinstance(child, ast.Raise) and child.exc is not None:
                raised = child.exc
                while isinstance(raised, ast.Attribute):
                    raised = raised.value
                if isinstance(raised, ast.Name) and raised.id in assigned - cleared:
                    yield child
            yield from walk(child, cleared)

    assigned = {node.id for node in ast.walk(function)
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    yield from walk(function, set())


HOST = Path(__file__).parents[2] / "host"


def test_no_function_raises_an_error_that_its_frame_keeps():
    found = [f"{path.relative_to(HOST)}:{statement.lineno}: {ast.unparse(statement)}"
             for path in sorted(HOST.rglob("*.py")) for node in ast.walk(ast.parse(path.read_text()))
             if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
             for statement in raised_from_variables(node)]
    assert found == []


@pytest.mark.parametrize("lines, count", [
    (["error = make()", "raise error"], 1),
    (["one = make()", "raise one.error from None"], 1),
    (["raise make()"], 0),
    (["error = make()", "try:", "    raise error", "finally:", "    error = None"], 0),
    (["error = make()", "try:", "    raise error", "finally:", "    del error"], 0),
    (["try:", "    make()", "except ValueError as error:", "    raise error.cause"], 0),
])
def test_the_search_for_kept_errors(lines, count):
    text = "\n    ".join(["def function():", *lines])
    assert len(list(raised_from_variables(ast.parse(text).body[0]))) == count
