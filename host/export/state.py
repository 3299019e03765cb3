"""The state of an nn.Module: its buffers, and the modes of its layers."""

import contextlib


@contextlib.contextmanager
def unchanged(torch, module):
    """Leave a module with the buffers that it has, and its layers in training, or not, as they are: an
    export is for inference, and runs forward. Anything but an nn.Module is ignored."""
    layers = list(module.modules()) if isinstance(module, torch.nn.Module) else []
    modes = [(layer, layer.training) for layer in layers]
    buffers = [(layer, name, buffer, buffer.detach().clone()) for layer in layers
               for name, buffer in layer.named_buffers(recurse=False)]
    try:
        yield
    finally:
        for layer, mode in modes:
            layer.training = mode
        for layer, name, buffer, value in buffers:
            with torch.no_grad():
                buffer.copy_(value)
            if isinstance(layer._buffers, dict):  # TorchScript has none: it changes them in place
                layer._buffers[name] = buffer
