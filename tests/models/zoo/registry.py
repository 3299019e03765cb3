"""Define fixtures of the zoo, and the table of all of them."""

import inspect
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import nn

NOT_CORE = {"_check_ir_validity": False}  # an operator is not one of PyTorch's core operators


class Function(nn.Module):
    """A module without parameters, whose forward is the given function."""

    def __init__(self, function: Callable) -> None:
        super().__init__()
        self._function = function

    def forward(self, *arguments):
        return self._function(*arguments)


class Data:
    """Seeded example values, the same on every machine, since NumPy guarantees its bit streams."""

    def __init__(self, name: str) -> None:
        self.seed = zlib.crc32(name.encode())
        self._generator = np.random.default_rng(self.seed)

    def uniform(self, sizes: tuple[int, ...], low: float, high: float) -> np.ndarray:
        """Return doubles in [low, high)."""
        return self._generator.uniform(low, high, sizes)

    def floats(self, *sizes: int, low: float = -1.0, high: float = 1.0) -> torch.Tensor:
        """Return float32 in [low, high)."""
        return _contiguous(self.uniform(sizes, low, high).astype(np.float32))

    def integers(self, *sizes: int, low: int = -9, high: int = 10, dtype=np.int64) -> torch.Tensor:
        """Return integers in [low, high)."""
        values = self._generator.integers(low, high, sizes, dtype=np.int64).astype(dtype)
        return _contiguous(values)

    def booleans(self, *sizes: int) -> torch.Tensor:
        return self.integers(*sizes, low=0, high=2).bool()


def _contiguous(array: np.ndarray) -> torch.Tensor:
    """Return a tensor with contiguous strides even without elements, where NumPy's strides are 0."""
    tensor = torch.from_numpy(array)
    return torch.empty(tensor.shape, dtype=tensor.dtype).copy_(tensor)


@dataclass(frozen=True)
class Model:
    """A model to export and run.

    module: one module, exported as the method "forward", or modules by method name.
    inputs: the example inputs; by method name if module is.
    dynamic_shapes: of torch.export.export, for the inputs of each method; `further` may then have
        other sizes.
    rewrite: changes the exporter's program (ExecuTorch's schema classes), which has no constants, into
        one that the exporter never writes.
    further: inputs of further executions, after the first and on the same loaded method.
    backend: arguments of ExecutorchBackendConfig, as a function since passes hold state.
    edge: arguments of EdgeCompileConfig.
    stride: expected outputs are stored as every stride-th element of the flattened output.
    recipe: inputs are not stored, only the seed, low and high that make them (see `store`).
    inline_constants: constants are in the program's tables instead of a segment.
    partitioner: makes the partitioner that assigns operators to a delegate, or a list of partitioners,
        each of which gets the operators that the one before it has left.
    executorch_fails: ExecuTorch rejects the program or differs from PyTorch; the expected
        outputs are PyTorch's.
    executorch_crashes: its Python runtime cannot run the program at all; the expected outputs are
        PyTorch's.
    cortex_m: the model is quantized to int8 for this core, for example "M4", in ExecuTorch's Cortex-M
        dialect, whose Python implementation computes the expected outputs.
    calibration: the float inputs for its quantization if `inputs` are integers, which the program
        accepts and returns unchanged (picotorch export --int8-io).
    torchscript: picotorch export makes the program from TorchScript.
    constant_methods: values by the names of methods that only return them; each is run once.
    shares_memory: the methods run in the same planned buffers, as they share mutable buffers.
    trained: the module keeps its parameters.
    gradients: the program is the exporter's joint graph, which returns the loss (the module's only
        output), then its gradients by the parameters, then the parameters.
    """

    module: nn.Module | dict[str, nn.Module]
    inputs: tuple | dict[str, tuple]
    dynamic_shapes: tuple | None = None
    rewrite: Callable | None = None
    further: tuple[tuple, ...] = ()
    backend: Callable[[], dict] = dict
    edge: dict = field(default_factory=dict)
    stride: int = 1
    recipe: bool = False
    inline_constants: bool = False
    partitioner: Callable | None = None
    executorch_fails: bool = False
    executorch_crashes: bool = False
    cortex_m: str | None = None
    calibration: tuple[tuple, ...] = ()
    torchscript: bool = False
    constant_methods: dict[str, object] = field(default_factory=dict)
    shares_memory: bool = False
    trained: bool = False
    gradients: bool = False

    def partitioners(self) -> list:
        """Return new partitioners, in the order of their use."""
        made = self.partitioner() if self.partitioner is not None else []
        return made if isinstance(made, list) else [made]

    @property
    def reference(self) -> str:
        """Return the runtime that computes the expected outputs."""
        if self.cortex_m:
            return "dialect"
        return "pytorch" if self.executorch_fails or self.executorch_crashes else "executorch"

    def methods(self) -> dict[str, tuple[nn.Module, tuple]]:
        """Return module and example inputs of each method."""
        if isinstance(self.module, dict):
            return {name: (module, self.inputs[name]) for name, module in self.module.items()}
        return {"forward": (self.module, self.inputs)}

    def runs(self) -> list[tuple[str, tuple]]:
        """Return the executions to store, in order: method and its inputs."""
        first = [(name, inputs) for name, (_, inputs) in self.methods().items()]
        constant = [(name, ()) for name in self.constant_methods]
        return first + [(first[0][0], inputs) for inputs in self.further] + constant


@dataclass(frozen=True)
class Fixture:
    """A named entry of the zoo. refused: its operators and backends that picotorch lacks."""

    name: str
    description: str
    build: Callable[[Data], Model] = field(repr=False)
    refused: tuple[str, ...] = ()

    def model(self) -> Model:
        """Build the model, with seeded parameters and statistics unless it is trained."""
        data = Data(self.name)
        torch.manual_seed(data.seed)
        model = self.build(data)
        for module, _ in model.methods().values():
            module.eval()
            if not model.trained:
                randomize(module, data)
        return model


FIXTURES: dict[str, Fixture] = {}


def fixture(build: Callable[[Data], Model] | None = None, *, refused: tuple[str, ...] = ()):
    """Register a function as a fixture, with its name and its docstring as name and description."""
    if build is None:
        return lambda function: fixture(function, refused=refused)
    name = build.__name__
    assert name not in FIXTURES, f"two fixtures are called {name}"
    FIXTURES[name] = Fixture(name, inspect.getdoc(build), build, refused)
    return build


_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.LayerNorm)


def randomize(module: nn.Module, data: Data) -> None:
    """Give every parameter and running statistic a seeded value.

    Weights are uniform with He's variance, 2 / fan_in; scales and variances of norms lie in
    [0.5, 1.5), biases and means in [-0.2, 0.2), so that no layer is the identity.
    """
    for child in module.modules():
        parameters = [*child.named_parameters(recurse=False)]
        for name, tensor in [*parameters, *child.named_buffers(recurse=False)]:
            if isinstance(child, _NORMS) and name in ("weight", "running_var"):
                low, high = 0.5, 1.5
            elif name in ("bias", "running_mean"):
                low, high = -0.2, 0.2
            elif isinstance(tensor, nn.Parameter):
                high = (6 / tensor[0].numel()) ** 0.5
                low = -high
            else:
                continue
            values = data.uniform(tuple(tensor.shape), low, high)
            with torch.no_grad():
                tensor.copy_(torch.from_numpy(values))
