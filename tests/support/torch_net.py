"""Make a torch module of a function and the layers that it uses, and export modules to int8."""

import picotorch.export
import torch
from torch import nn

SAMPLES = 6


class Net(nn.Module):
    """A module with forward(layers, *inputs)."""

    def __init__(self, forward, *layers):
        super().__init__()
        self.layers, self.compute = nn.ModuleList(layers), forward

    def forward(self, *inputs):
        return self.compute(self.layers, *inputs)


def samples_of(module, given):
    """Prepare a module as if it were trained, and return samples.

    given: the sizes of its input, or a function that makes the inputs of a sample.
    """
    for one in module.modules():
        if isinstance(one, nn.modules.batchnorm._BatchNorm):
            one.running_var.uniform_(0.5, 2)
            one.running_mean.uniform_(-0.5, 0.5)
    module.eval()
    return [given() if callable(given) else (torch.randn(given),) for _ in range(SAMPLES)]


def exported_module(module, given):
    """Return the report of a module in int8. given: as for samples_of."""
    samples = samples_of(module, given)
    return picotorch.export.export(module, samples[0], quantize=samples).report
