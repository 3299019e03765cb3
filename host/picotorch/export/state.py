"""The state of an nn.Module: its buffers, the modes of its layers, and attributes of Python."""

import contextlib


@contextlib.contextmanager
def unchanged(torch, module):
    """Leave a module with the buffers that it has, and its layers in training, or not, as they are: an
    export is for inference, and runs forward. Anything but an nn.Module is ignored."""
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
def assigned_in_place(module):
    """Copy what the layers of a module assign to their buffers (self.h = h) into these buffers.
    torch.export does so for the module itself; of its layers, it ignores such assignments."""
    hooks = []
    for layer in list(module.modules())[1:]:
        names = [name for name, _ in layer.named_buffers(recurse=False)]
        if names:
            before = {}

            def keep(layer, _, before=before, names=names):
                before.update({name: layer._buffers[name] for name in names})

            def put_back(layer, _, outputs, before=before):
                for name, buffer in before.items():
                    if layer._buffers[name] is not buffer:
                        buffer.copy_(layer._buffers[name])
                        layer._buffers[name] = buffer
                before.clear()

            hooks += [layer.register_forward_pre_hook(keep), layer.register_forward_hook(put_back)]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


class Attributes:
    """The attributes of a module and its layers that are tensors, numbers or None, or lists, tuples and
    dicts of these, with copies of what they hold. Buffers, parameters and layers are none of them."""

    def __init__(self, torch, module):
        self.torch = torch
        self.kept = {}  # by path: (layer, name, value, copy of the value)
        self.layers = dict(module.named_modules())
        for path, layer in self.layers.items():
            for name, value in vars(layer).items():
                if not name.startswith("_") or self._has_tensors(value):
                    self._keep(path, layer, name, value)

    def changed(self):
        """Return the paths of attributes that hold other values than at first, or are new."""
        found = [path for path, (layer, name, _, copied) in self.kept.items()
                 if name not in vars(layer) or not self._are_equal(vars(layer)[name], copied)]
        return found + [path for path, _, _ in self._new()]

    def put_back(self):
        """Give all attributes the values that they had."""
        for _, layer, name in list(self._new()):
            delattr(layer, name)
        for layer, name, value, copied in self.kept.values():
            if name not in vars(layer) or vars(layer)[name] is not value or (
                    not self._are_equal(value, copied)):
                setattr(layer, name, self._restored(value, copied))

    def _new(self):
        return ((f"{path}.{name}".lstrip("."), layer, name) for path, layer in self.layers.items()
                for name, value in vars(layer).items() if self._has_tensors(value)
                and f"{path}.{name}".lstrip(".") not in self.kept)

    def _keep(self, path, layer, name, value):
        with contextlib.suppress(TypeError):
            self.kept[f"{path}.{name}".lstrip(".")] = (layer, name, value, self._copy(value))

    def _has_tensors(self, value):
        if isinstance(value, self.torch.nn.Parameter):
            return False
        return isinstance(value, self.torch.Tensor) or isinstance(value, list | tuple) and any(
            map(self._has_tensors, value))

    def _copy(self, value):
        """Raises TypeError for what no attribute of this kind holds."""
        if value is None or isinstance(value, bool | int | float):
            return value
        if isinstance(value, self.torch.Tensor):
            return value.detach().clone()
        if type(value) in (list, tuple):
            return type(value)(map(self._copy, value))
        if type(value) is dict:
            return {key: self._copy(one) for key, one in value.items()}
        raise TypeError

    def _are_equal(self, value, copied):
        if type(copied) in (list, tuple):
            return type(value) is type(copied) and len(value) == len(copied) and all(
                map(self._are_equal, value, copied))
        if type(copied) is dict:
            return type(value) is dict and value.keys() == copied.keys() and all(
                self._are_equal(value[key], copied[key]) for key in copied)
        if isinstance(copied, self.torch.Tensor):
            return isinstance(value, self.torch.Tensor) and (
                value.dtype == copied.dtype and value.shape == copied.shape
                and bool(((value == copied) | (value != value) & (copied != copied)).all()))
        return type(value) is type(copied) and (value == copied or value != value)

    def _restored(self, value, copied):
        """Return a value with what it held; tensors and lists stay the same objects."""
        if isinstance(value, self.torch.Tensor) and value.shape == copied.shape:
            with self.torch.no_grad():
                return value.copy_(copied)
        if type(value) is list:
            value[:] = copied
            return value
        if type(value) is dict:
            value.clear()
            value.update(copied)
            return value
        return copied


def hidden_state(torch, module, run, arguments):
    """Return the paths of attributes that forward changes and that its outputs depend on: of these an
    export would keep the first value. run(arguments) gives the outputs; the module stays as it is."""
    attributes = Attributes(torch, module)

    def outputs(given):
        with unchanged(torch, module), torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)  # outputs of chance are not taken for outputs of state
            return [torch.as_tensor(one).clone() for one in run(given)
                    if isinstance(one, bool | int | float) or hasattr(one, "shape")]

    def noise(given):
        if not isinstance(given, torch.Tensor) or not given.is_floating_point():
            return given
        return torch.randn(given.shape, generator=generator).to(given.dtype)

    generator = torch.Generator().manual_seed(0)
    try:
        first = outputs(arguments)
        with contextlib.suppress(Exception):  # forward may not take any values
            outputs(tuple(map(noise, arguments)))
        if not attributes.changed():
            return []
        return [] if attributes._are_equal(outputs(arguments), first) else attributes.changed()
    finally:
        attributes.put_back()
