"""Observe and restore the state of an nn.Module: buffers, modes of layers, Python's attributes."""

import collections
import contextlib
import copy
import functools
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

if TYPE_CHECKING:
    from torch import Tensor, nn

_M = TypeVar("_M")

_ABSENT = object()
_ELSEWHERE = "something that is no attribute of the module"
_DEPTH = 8  # of objects in objects, that are compared


@contextlib.contextmanager
def unchanged(torch: ModuleType, module: Any) -> Iterator[None]:
    """Restore the buffers and training modes of a module after the block.

    An export is for inference and runs forward. Anything but an nn.Module is ignored.
    """
    layers = list(module.modules()) if isinstance(module, torch.nn.Module) else []
    modes = [(layer, layer.training) for layer in layers]
    buffers = [(layer, name, buffer, buffer.untyped_storage().clone()) for layer in layers
               for name, buffer in layer.named_buffers(recurse=False)]
    try:
        yield
    finally:
        for layer, mode in modes:
            layer.training = mode
        for layer, name, buffer, stored in buffers:  # elements of an expanded one share their bytes
            buffer.untyped_storage().copy_(stored)
            if isinstance(layer._buffers, dict):  # TorchScript has none: it changes them in place
                layer._buffers[name] = buffer


@contextlib.contextmanager
def assigned_in_place(torch: ModuleType, module: "nn.Module",
                      assigned: "Mapping[str, list[str]]") -> Iterator[None]:
    """Copy the assignments of layers to their buffers (self.h = h) into these buffers.

    assigned: as assigned_buffers returns it. In forward a copy stands for the buffer, so that a value
    which is the old state stays it. torch.export ignores assignments of layers, takes those of the
    module itself in the order of the buffers, and rejects the assignment of one buffer to another.
    """
    wrapped = [module.get_submodule(path) for path in assigned]

    def copied(layer: "nn.Module", _: str, value: "Tensor | None") -> "Tensor | None":
        """Return a copy of what forward assigns: torch.export rejects an input itself."""
        return value.clone() if value is not None and layer in wrapped else None

    hook = torch.nn.modules.module.register_module_buffer_registration_hook(copied)
    for layer, names in zip(wrapped, assigned.values(), strict=True):
        for name in names:
            if torch._debug_has_internal_overlap(layer._buffers[name]):  # an expanded one
                layer._buffers[name] = layer._buffers[name].contiguous()
        layer.forward = _in_place(layer, names, layer.forward)
    try:
        yield
    finally:
        hook.remove()
        for layer in wrapped:
            del layer.forward


def _in_place(layer: "nn.Module", names: list[str], forward: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(forward)
    def call(*arguments: Any, **keywords: Any) -> Any:
        buffers = {name: layer._buffers[name] for name in names}
        layer._buffers.update({name: buffer.clone() for name, buffer in buffers.items()})
        try:
            return forward(*arguments, **keywords)
        finally:
            for name, buffer in buffers.items():
                buffer.copy_(layer._buffers[name])
                layer._buffers[name] = buffer

    return call


def assigned_buffers(torch: ModuleType, module: "nn.Module",
                     run: "Callable[[nn.Module, tuple[Any, ...]], list[Any]]",
                     arguments: tuple[Any, ...]) -> dict[str, list[str]]:
    """Return {path of a layer: names of the buffers that its forward assigns}, from a run of a copy."""
    used = copy_of(module)
    before = {path: dict(layer.named_buffers(recurse=False)) for path, layer in used.named_modules()}
    with unchanged(torch, used), torch.random.fork_rng(devices=[]):
        run(used, tuple(one.clone() if isinstance(one, torch.Tensor) else one for one in arguments))
        found = {path: [name for name, buffer in before[path].items()
                        if layer._buffers[name] is not buffer]
                 for path, layer in used.named_modules() if path in before}
    return {path: names for path, names in found.items() if names}


def copy_of(module: _M) -> _M:
    """Return a copy of a module, whose attributes may change; the module itself without a copy."""
    try:
        return copy.deepcopy(module)
    except Exception:  # of a tensor that autograd computed, of a lock, of a file
        return module


def hidden_state(torch: ModuleType, module: "nn.Module",
                 run: "Callable[[nn.Module, tuple[Any, ...]], list[Any]]",
                 arguments: tuple[Any, ...]) -> list[str]:
    """Return the paths of attributes that forward changes and on which its outputs depend.

    An export would store their first values. If the outputs depend instead on a global of Python or an
    iterator, return a description of it. run(module, arguments) returns the outputs. It runs a copy of
    the module, three times, with the same random numbers.
    """
    used = copy_of(module)
    generator = torch.Generator().manual_seed(0)

    def outputs(inputs: tuple[Any, ...]) -> "list[Tensor]":
        with unchanged(torch, used), torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            # forward may change its inputs
            inputs = tuple(one.clone() if isinstance(one, torch.Tensor) else one for one in inputs)
            return [torch.as_tensor(one).clone() for one in run(used, inputs)
                    if isinstance(one, bool | int | float) or hasattr(one, "shape")]

    def noise(value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or not value.is_floating_point():
            return value
        return torch.randn(value.shape, generator=generator).to(value.dtype)

    first = outputs(arguments)
    if used is module:
        return []
    with contextlib.suppress(Exception):  # forward may reject some values
        outputs(tuple(map(noise, arguments)))
    last = outputs(arguments)
    if _are_equal(torch, last, first):
        return []
    layers, own = dict(module.named_modules()), vars(torch.nn.Module())
    found = [f"{path}.{name}".lstrip(".") for path, layer in used.named_modules() if path in layers
             for name, value in vars(layer).items() if name not in own
             and not _are_equal(torch, value, vars(layers[path]).get(name, _ABSENT))]
    return found if found or _are_near(torch, last, first) else [_ELSEWHERE]


def _are_near(torch: ModuleType, some: "list[Tensor]", others: "list[Tensor]") -> bool:
    """Return True for outputs that differ by rounding alone, as sums of threads do."""
    return len(some) == len(others) and all(
        one.shape == other.shape and one.dtype == other.dtype
        and torch.allclose(one, other, equal_nan=True)
        for one, other in zip(some, others, strict=True))


def _are_equal(torch: ModuleType, one: Any, other: Any, depth: int = _DEPTH) -> bool:
    """Compare two values of attributes, which may be of any type."""
    if depth == 0 or one is other or isinstance(one, torch.nn.Module):  # named_modules has its own
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, torch.Tensor):
        return _bytes_of(torch, one) == _bytes_of(torch, other)
    if isinstance(one, np.ndarray):
        return bool(one.shape == other.shape and one.tobytes() == other.tobytes())
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(
            _are_equal(torch, one[key], other[key], depth - 1) for key in one)
    if isinstance(one, list | tuple | collections.deque):
        return len(one) == len(other) and all(
            _are_equal(torch, *both, depth - 1) for both in zip(one, other, strict=True))
    if isinstance(one, bool | int | float | complex | str | bytes | set | frozenset):
        return repr(one) == repr(other) if isinstance(one, float | complex) else one == other
    return _are_equal(torch, getattr(one, "__dict__", None), getattr(other, "__dict__", None),
                      depth - 1)


def _bytes_of(torch: ModuleType, tensor: "Tensor") -> tuple[Any, ...] | None:
    """Return the bytes of a tensor, in any layout; b"" for one without numbers in memory."""
    if tensor.is_meta or tensor.is_quantized or isinstance(tensor, torch.nn.Parameter):
        return None
    tensor = tensor.detach()
    dense = tensor.to_dense() if tensor.layout != torch.strided else tensor
    return dense.dtype, dense.shape, dense.contiguous().flatten().view(torch.uint8).numpy().tobytes()
