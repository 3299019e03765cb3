"""Test that the stubs beside the runtime's modules have each public name of the modules, and no other,
with its parameters and defaults."""

import ast
import importlib
import inspect
from pathlib import Path

import picotorch
import pytest

pytestmark = pytest.mark.check

FOLDER = Path(picotorch.__file__).parent
CONSTANTS = {"schema"}  # numbers and tables of names, which editors read directly
MODULES = sorted(path.stem for path in FOLDER.glob("*.py")
                 if path.stem not in {"__init__", "__main__"} | CONSTANTS)
OF_TYPES = {"_Array", "_OnComputers"}  # classes that only stubs have
SPECIAL = {"__init__", "__call__", "__len__", "__getitem__", "__setitem__"}


def is_public(name):
    return not name.startswith("_") or name in SPECIAL


def parameters(function):
    """List a function's parameters in the notation of a stub, without types."""
    given = function.args
    defaults = [None] * (len(given.args) - len(given.defaults)) + given.defaults
    named = [argument.arg + ("" if default is None else f"={ast.unparse(default)}")
             for argument, default in zip(given.args, defaults, strict=True)]
    return named + ([f"*{given.vararg.arg}"] if given.vararg else [])


def kind(function):
    """Return "property", "staticmethod", or ""."""
    return "".join(ast.unparse(decorator) for decorator in function.decorator_list)


def stub_names(body):
    """Return {name: the stub's declaration}."""
    names = {}
    for node in body:
        if isinstance(node, ast.FunctionDef):
            names[node.name] = (kind(node), parameters(node))
        elif isinstance(node, ast.AnnAssign):
            names[node.target.id] = "value"
        elif isinstance(node, ast.Assign) and is_public(node.targets[0].id):
            names[node.targets[0].id] = "value"
        elif isinstance(node, ast.ClassDef) and node.name not in OF_TYPES:
            bases = [base for base in map(ast.unparse, node.bases) if base not in OF_TYPES]
            names[node.name] = (bases, stub_names(node.body))
    return names


def attributes(tree):
    """Return the public attributes of self that the methods of a class set."""
    return {node.attr: "value" for node in ast.walk(tree)
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
            and ast.unparse(node.value) == "self" and is_public(node.attr)}


def source_names(body):
    names = {}
    for node in body:
        if isinstance(node, ast.FunctionDef) and is_public(node.name):
            names[node.name] = (kind(node), parameters(node))
        elif isinstance(node, ast.Assign):
            targets = [one for target in node.targets for one in ast.walk(target)]
            names |= {one.id: "value" for one in targets
                      if isinstance(one, ast.Name) and is_public(one.id)}
        elif isinstance(node, ast.ClassDef):
            names[node.name] = (list(map(ast.unparse, node.bases)),
                                attributes(node) | source_names(node.body))
    return names


def tree_of(name, suffix):
    return ast.parse((FOLDER / f"{name}{suffix}").read_text())


def test_each_module_has_a_stub():
    assert sorted(path.stem for path in FOLDER.glob("*.pyi")) == sorted(["__init__", *MODULES])
    assert (FOLDER / "py.typed").exists()


@pytest.mark.parametrize("name", MODULES)
def test_a_stub_matches_its_module(name):
    stub = stub_names(tree_of(name, ".pyi").body)
    assert stub == source_names(tree_of(name, ".py").body)


@pytest.mark.parametrize("name", MODULES)
def test_it_is_there(name):
    """Each name of a stub exists in its module, with the same arguments."""
    module = importlib.import_module(f"picotorch.{name}")
    classes = {node.name: node for node in ast.walk(tree_of(name, ".pyi"))
               if isinstance(node, ast.ClassDef)}
    for node in classes.values():
        if node.name not in OF_TYPES:
            of_computers = [base for base in map(ast.unparse, node.bases) if base == "_OnComputers"]
            for function in sum([classes[base].body for base in of_computers], node.body):
                if isinstance(function, ast.FunctionDef) and kind(function) != "property":
                    check(getattr(getattr(module, node.name), function.name), function)
    for function in tree_of(name, ".pyi").body:
        if isinstance(function, ast.FunctionDef):
            check(getattr(module, function.name), function)


def check(function, stub):
    found = [("*" if one.kind is one.VAR_POSITIONAL else "") + one.name
             for one in inspect.signature(function).parameters.values()]
    assert found == [parameter.split("=")[0] for parameter in parameters(stub)]


@pytest.mark.parametrize("name", MODULES)
def test_all_has_a_type(name):
    for node in ast.walk(tree_of(name, ".pyi")):
        if isinstance(node, ast.FunctionDef):
            typed = [one.annotation for one in node.args.args if one.arg != "self"]
            assert None not in [node.returns, *typed], node.name


def test_the_package_has_the_names_that_it_gives():
    """Each is imported `name as name`, which marks it as exported."""
    given = {}
    for node in tree_of("__init__", ".pyi").body:
        if isinstance(node, ast.ImportFrom):
            given |= {one.name: node.module for one in node.names if one.name == one.asname}
    own = {name for _, names in picotorch.PARTS for name in names}
    for node in tree_of("__init__", ".py").body:
        if isinstance(node, ast.ImportFrom) and node.module:
            own |= {one.name for one in node.names}
    assert set(given) == own - {"part"}
    for name, module in given.items():
        found = getattr(picotorch, name)
        assert found is getattr(importlib.import_module(f"picotorch.{module}"), name)
