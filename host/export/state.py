"""The state of an nn.Module: its buffers, and the modes of its layers."""

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
