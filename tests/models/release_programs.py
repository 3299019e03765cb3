#!/usr/bin/env python3
"""Export at least ten small programs with the release of ExecuTorch that is installed.

    python release_programs.py FOLDER

tests/models/export_releases.py calls it with the Python of each release. FOLDER gets a folder for each
program: model.pte or model.bpte, .ptd files, inputs.npz, expected.npz. The release's own runtime
computes the expected outputs. Its Python package has no Cortex-M kernels, so the dialect's Python
implementation computes the outputs of programs in the Cortex-M dialect.
"""

import enum
import importlib.machinery
import importlib.metadata
import inspect
import logging
import os
import sys
import tempfile
import types
import warnings
import zlib
from pathlib import Path

logging.disable(logging.WARNING)
warnings.filterwarnings("ignore")

import numpy as np  # noqa: E402
import torch  # noqa: E402
from executorch.exir import EdgeCompileConfig, ExecutorchBackendConfig, to_edge  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e  # noqa: E402

RELEASE = tuple(int(part) for part in importlib.metadata.version("executorch").split(".")[:2])
CALIBRATIONS = 4
KEPT_OPERATORS = ("linear.default", "hardsigmoid.default", "hardsigmoid_.default", "hardswish.default",
                  "hardswish_.default")
PROGRAMS = {}


class Function(nn.Module):
    """A function as a module."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


class Draw:
    """Seeded values of one program."""

    def __init__(self, name):
        self.random = np.random.default_rng(zlib.crc32(name.encode()))

    def floats(self, *sizes, low=-1.0, high=1.0):
        return torch.from_numpy(self.random.uniform(low, high, sizes).astype(np.float32))

    def image(self, *sizes):
        return self.floats(*sizes).to(memory_format=torch.channels_last)

    def fill(self, module):
        """Give every parameter and statistic a seeded value."""
        for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
            if tensor.dtype == torch.float32 and tensor.numel() > 0:
                fan_in = max(tensor[0].numel(), 2) if tensor.dim() > 1 else 60
                low, high = (0.5, 1.5) if "var" in name else (-((6 / fan_in) ** 0.5),
                                                               (6 / fan_in) ** 0.5)
                with torch.no_grad():
                    tensor.copy_(self.floats(*tensor.shape, low=low, high=high))
        return module.eval()


def program(build=None, *, since=(1, 0), until=(9, 9)):
    """Register a program of the releases from `since` to `until`."""
    if build is None:
        return lambda function: program(function, since=since, until=until)
    if since <= RELEASE <= until:
        PROGRAMS[build.__name__] = build
    return build


# ---- lowering


def stand_in_for_cmsis_nn():
    """Stand in for a package that PyPI lacks, from which 1.3 imports the kinds of cores."""
    if RELEASE != (1, 3):
        return
    module = types.ModuleType("cmsis_nn")
    module.__spec__ = importlib.machinery.ModuleSpec("cmsis_nn", None)
    module.Backend = enum.Enum("Backend", "SCALAR DSP MVE")
    sys.modules["cmsis_nn"] = module


def to_cortex_m(module, calibration, core="M55"):
    """Quantize to int8, and lower to the Cortex-M dialect as the release's own tests do."""
    stand_in_for_cmsis_nn()
    from executorch.backends.cortex_m.passes.cortex_m_pass_manager import CortexMPassManager
    from executorch.backends.cortex_m.quantizer.quantizer import CortexMQuantizer

    quantized = quantize(module, calibration, CortexMQuantizer())
    edge = to_edge(torch.export.export(quantized, calibration[0]), compile_config=dialect_config())
    options = {}
    if "target_config" in inspect.signature(CortexMPassManager.__init__).parameters:
        from executorch.backends.cortex_m.target_config import CortexM, CortexMTargetConfig

        options["target_config"] = CortexMTargetConfig(cpu=CortexM[core])
    manager = CortexMPassManager(edge.exported_program(), **options)
    edge._edge_programs["forward"] = manager.transform()
    return edge


def dialect_config():
    try:
        from executorch.backends.cortex_m.edge_compile_config import cortex_m_edge_compile_config

        return cortex_m_edge_compile_config()
    except ImportError:
        kept = [getattr(getattr(torch.ops.aten, name), overload)
                for name, overload in (operator.split(".") for operator in KEPT_OPERATORS)]
        return EdgeCompileConfig(preserve_ops=kept, _check_ir_validity=False)


def to_first_dialect(module, calibration):
    """Lower to the dialect of 1.0, which has additions and conversions."""
    from executorch.backends.cortex_m.passes.quantized_op_fusion_pass import QuantizedOpFusionPass
    from executorch.backends.cortex_m.passes.replace_quant_nodes_pass import ReplaceQuantNodesPass
    from executorch.backends.cortex_m.test.test_helpers_passes_utils import AddQuantizer

    quantized = quantize(module, calibration, AddQuantizer())
    edge = to_edge(torch.export.export(quantized, calibration[0]),
                   compile_config=EdgeCompileConfig(_check_ir_validity=False))
    return edge.transform([QuantizedOpFusionPass(), ReplaceQuantNodesPass()])


def quantize(module, calibration, quantizer):
    exported = torch.export.export(module, calibration[0])
    guarded = "check_guards" in inspect.signature(exported.module).parameters
    graph = exported.module(check_guards=False) if guarded else exported.module()
    prepared = prepare_pt2e(graph, quantizer)
    for inputs in calibration:
        prepared(*inputs)
    return convert_pt2e(prepared)


def xnnpack_quantizer():
    from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
        XNNPACKQuantizer,
        get_symmetric_quantization_config,
    )

    return XNNPACKQuantizer().set_global(get_symmetric_quantization_config())


# ---- writing


def write_arrays(path, prefix, values):
    np.savez(path, **{f"{prefix}{i}": value.detach().contiguous().numpy()
                      for i, value in enumerate(values)})


def write_int8(folder, edge, inputs):
    """Write a program in the dialect, and the outputs of the dialect's Python implementation."""
    outputs = edge.exported_program().module()(*inputs)
    outputs = outputs if isinstance(outputs, (tuple, list)) else [outputs]
    (folder / "model.pte").write_bytes(edge.to_executorch().buffer)
    write_arrays(folder / "inputs.npz", "in", inputs)
    write_arrays(folder / "expected.npz", "out", outputs)


def write_portable(folder, edge, runs, backend=None):
    """Write a program of portable kernels with its .ptd files, and its runtime's outputs."""
    executorch = edge.to_executorch(ExecutorchBackendConfig(**(backend or {})))
    (folder / "model.pte").write_bytes(executorch.buffer)
    executorch.write_tensor_data_to_file(str(folder))
    for number, (inputs, outputs) in enumerate(zip(runs, execute(folder, runs), strict=True)):
        suffix = f"_{number}" if number else ""
        write_arrays(folder / f"inputs{suffix}.npz", "in", inputs)
        write_arrays(folder / f"expected{suffix}.npz", "out", outputs)


def execute(folder, runs):
    """Return the outputs of each run of one loaded method, by ExecuTorch's runtime."""
    from executorch.extension.pybindings import portable_lib
    from executorch.kernels import quantized  # noqa: F401

    data = sorted(folder.glob("*.ptd"))
    if not data:
        loaded = portable_lib._load_for_executorch(str(folder / "model.pte"))
    else:
        loaded = portable_lib._load_for_executorch(str(folder / "model.pte"), str(data[0]))
    return [[value.clone() for value in loaded.run_method("forward", inputs)] for inputs in runs]


# ---- programs in int8


def write_dialect(folder, draw, module, make_inputs, core="M55"):
    calibration = [make_inputs() for _ in range(CALIBRATIONS)]
    write_int8(folder, to_cortex_m(draw.fill(module), calibration, core), calibration[0])


@program(since=(1, 1))
def int8_convolutions(folder, draw):
    """Convolutions of 3x3, grouped, depthwise, with pooling, a linear layer."""
    module = nn.Sequential(
        nn.Conv2d(3, 6, 3, stride=2, padding=1), nn.ReLU(),
        nn.Conv2d(6, 6, 3, padding=1, groups=6), nn.ReLU6(), nn.Conv2d(6, 8, 1),
        nn.AvgPool2d((4, 6), count_include_pad=False), nn.Flatten(), nn.Linear(8, 5),
    ).to(memory_format=torch.channels_last)
    write_dialect(folder, draw, module, lambda: (draw.image(1, 3, 8, 12),))


@program(since=(1, 1))
def int8_elementwise(folder, draw):
    """add, with and without an activation, and mul, minimum and maximum."""

    def combine(x, y):
        return torch.relu(x + y), x * y, torch.minimum(x, y) + torch.maximum(x, y)

    write_dialect(folder, draw, Function(combine), lambda: (draw.floats(3, 7), draw.floats(3, 7)))


class Attend(nn.Module):
    """Attention before a linear layer."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(6, 5)

    def forward(self, query, key, value):
        if RELEASE < (1, 2):  # whose dialect has no quantized_batch_matmul
            return self.linear(torch.softmax(query * key, -1).permute(0, 2, 1).permute(0, 2, 1) + value)
        weights = torch.softmax(torch.bmm(query, key.transpose(1, 2)), -1)
        return self.linear(torch.bmm(weights, value))


@program(since=(1, 1))
def int8_attention(folder, draw):
    """A linear layer, softmax and a transposition; with products of matrices where there are any."""
    write_dialect(folder, draw, Attend(), lambda: tuple(draw.floats(2, 4, 6) for _ in range(3)), "M4")


@program(since=(1, 1), until=(1, 1))
def int8_hardswish(folder, draw):
    """hardswish between linear layers."""
    module = nn.Sequential(nn.Linear(7, 6), nn.Hardswish(), nn.Linear(6, 4))
    write_dialect(folder, draw, module, lambda: (draw.floats(3, 7),))


@program(since=(1, 2))
def int8_transposed_convolution(folder, draw):
    """A transposed convolution and max pooling."""
    module = nn.Sequential(
        nn.Conv2d(2, 4, 3, padding=1), nn.ReLU(),
        nn.ConvTranspose2d(4, 3, 3, stride=2, padding=1), nn.MaxPool2d(3))
    write_dialect(folder, draw, module.to(memory_format=torch.channels_last),
                  lambda: (draw.image(1, 2, 5, 5),))


class Padded(nn.Module):
    """Padding before a convolution, and average pooling with padding."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 4, 3)

    def forward(self, x):
        y = self.conv(functional.pad(x, (1, 2, 0, 1)))
        return functional.avg_pool2d(y, 3, stride=2, padding=1, count_include_pad=False)


@program(since=(1, 1))
def int8_pad(folder, draw):
    """Padding, and average pooling over a border. ExecuTorch 1.2 does not run its own program."""
    write_dialect(folder, draw, Padded().to(memory_format=torch.channels_last),
                  lambda: (draw.image(1, 2, 5, 6),))


class PaddedRows(nn.Module):
    """Padding before a linear layer."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(7, 3)

    def forward(self, x):
        return self.linear(functional.pad(x, (1, 2, 1, 0)))


@program(since=(1, 2), until=(1, 2))
def int8_padded_rows(folder, draw):
    """Padding of rows."""
    write_dialect(folder, draw, PaddedRows(), lambda: (draw.floats(3, 4),))


@program(since=(1, 4))
def int8_activation(folder, draw):
    """sigmoid by a table."""
    write_dialect(folder, draw, nn.Sigmoid(), lambda: (draw.floats(3, 9, low=-6, high=6),))


@program(until=(1, 0))
def int8_add(folder, draw):
    """Two additions in the dialect of 1.0, which scales sums wrongly."""
    calibration = [(draw.floats(3, 7), draw.floats(3, 7)) for _ in range(CALIBRATIONS)]
    write_int8(folder, to_first_dialect(Function(lambda x, y: x + y + x), calibration), calibration[0])


# ---- programs of portable kernels


@program
def float_convolutions(folder, draw):
    """Convolutions with batch norm, max and average pooling, log_softmax."""
    module = nn.Sequential(
        nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(4, 4, 3, groups=4), nn.Hardtanh(0.0, 6.0), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(4, 3), nn.LogSoftmax(1))
    write_float(folder, draw.fill(module), [(draw.floats(1, 2, 8, 9),)])


class Block(nn.Module):
    """A block of a transformer over embedded tokens."""

    def __init__(self):
        super().__init__()
        self.embedding, self.norm = nn.Embedding(11, 8), nn.LayerNorm(8)
        self.attention, self.up, self.down = nn.Linear(8, 24), nn.Linear(8, 12), nn.Linear(12, 8)

    def forward(self, tokens):
        x = self.embedding(tokens)
        query, key, value = self.attention(self.norm(x)).split(8, -1)
        x = x + functional.scaled_dot_product_attention(query, key, value)
        return x + self.down(functional.gelu(self.up(self.norm(x))))


@program
def float_transformer(folder, draw):
    """Embedding, layer norm, attention, gelu."""
    tokens = torch.from_numpy(draw.random.integers(0, 11, (1, 5)))
    write_float(folder, draw.fill(Block()), [(tokens,)])


class Weights(nn.Module):
    """Layers whose weights are in a data file, and a sum that the program keeps."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(5, 4)
        self.register_buffer("total", torch.zeros(1, 4))

    def forward(self, x):
        self.total.add_(torch.tanh(self.linear(x)))
        return self.total + 1


@program
def float_external(folder, draw):
    """Weights in a .ptd file, and state."""
    module = draw.fill(Weights())
    with torch.no_grad():
        module.total.zero_()
    write_float(folder, module, [(draw.floats(1, 5),), (draw.floats(1, 5),)],
                {"external_constants": True})


def write_float(folder, module, runs, backend=None):
    write_portable(folder, to_edge(torch.export.export(module, runs[0])), runs, backend)


@program
def quantized_portable(folder, draw):
    """Quantized statically by ExecuTorch's quantizer for XNNPACK, in portable and quantized kernels."""
    module = draw.fill(nn.Sequential(nn.Conv2d(2, 3, 3), nn.ReLU(), nn.Flatten(), nn.Linear(24, 4)))
    calibration = [(draw.floats(1, 2, 4, 6),) for _ in range(CALIBRATIONS)]
    quantized = quantize(module, calibration, xnnpack_quantizer())
    edge = to_edge(torch.export.export(quantized, calibration[0]),
                   compile_config=EdgeCompileConfig(_check_ir_validity=False))
    write_portable(folder, edge, calibration[:1])


class Scale(nn.Module):
    """A size that changes, an output of bools."""

    def forward(self, x):
        return x.cumsum(0) * 0.5, x.sum(1) > 0


@program
def bundled(folder, draw):
    """A bundled program of two methods with two test sets each; one has an input of dynamic size."""
    from executorch.devtools import BundledProgram
    from executorch.devtools.bundled_program.config import MethodTestCase, MethodTestSuite
    from executorch.devtools.bundled_program.serialize import (
        serialize_from_bundled_program_to_flatbuffer as serialize,
    )

    module, scale = draw.fill(nn.Sequential(nn.Linear(4, 6), nn.Sigmoid(), nn.Linear(6, 2))), Scale()
    inputs = {"forward": [(draw.floats(2, 4),) for _ in range(2)],
              "scale": [(draw.floats(rows, 3),) for rows in (4, 2)]}
    rows = torch.export.Dim("rows", min=2, max=4)
    exported = {"forward": torch.export.export(module, inputs["forward"][0]),
                "scale": torch.export.export(scale, inputs["scale"][0],
                                             dynamic_shapes=({0: rows},))}
    program = to_edge(exported).to_executorch()
    modules = {"forward": module, "scale": scale}
    outputs = {}
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary) / "model.pte"
        path.write_bytes(program.buffer)
        from executorch.extension.pybindings import portable_lib

        loaded = portable_lib._load_for_executorch(str(path))
        for name in modules:
            outputs[name] = [[value.clone() for value in loaded.run_method(name, one)]
                             for one in inputs[name]]
    suites = [MethodTestSuite(name, [MethodTestCase(inputs=one, expected_outputs=tuple(wanted))
                                     for one, wanted in zip(inputs[name], outputs[name], strict=True)])
              for name in modules]
    (folder / "model.bpte").write_bytes(serialize(BundledProgram(program, suites)))


def main():
    torch.set_num_threads(1)
    flatc = Path(sys.executable).parent  # the compiler of schemas of the older releases
    os.environ["PATH"] = f"{flatc}{os.pathsep}{os.environ['PATH']}"
    root = Path(sys.argv[1])
    for name in sys.argv[2:] or PROGRAMS:
        folder = root / name
        folder.mkdir(parents=True, exist_ok=True)
        with torch.no_grad():
            PROGRAMS[name](folder, Draw(name))
        print(name, *(f"{path.name}: {path.stat().st_size} bytes" for path in sorted(folder.iterdir())
                      if path.suffix != ".npz"), flush=True)


if __name__ == "__main__":
    main()
