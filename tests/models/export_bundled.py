#!/usr/bin/env python3
"""Write the bundled programs of the tests, tests/models/bundled/*.bpte, with ExecuTorch's devtools.

Needs the `export` extra. Prints the result of ExecuTorch's own runtime for each test set.
"""

import logging
import warnings
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "bundled"


def quieten_imports() -> None:
    """Drop logs and warnings that torch and torchao print on import, about parts that are not used
    here."""
    logging.disable(logging.WARNING)
    warnings.filterwarnings("ignore")


quieten_imports()

import torch  # noqa: E402
from executorch.devtools import BundledProgram  # noqa: E402
from executorch.devtools.bundled_program.config import MethodTestCase, MethodTestSuite  # noqa: E402
from executorch.devtools.bundled_program.serialize import (  # noqa: E402
    serialize_from_bundled_program_to_flatbuffer as serialize,
)
from executorch.exir import to_edge  # noqa: E402
from executorch.extension.pybindings.portable_lib import (  # noqa: E402
    _load_bundled_program_from_buffer as load,
)
from torch import nn  # noqa: E402


class Classify(nn.Module):
    """A module whose outputs are floats and bools."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 3, 3)

    def forward(self, x):
        y = torch.relu(self.conv(x))
        return y, y > 0.5


class Scale(nn.Module):
    """A module with numbers among the inputs, and integers among the outputs."""

    def forward(self, x, count: int, factor: float, negate: bool):
        y = x * count
        return (-y if negate else y), x.to(torch.float32) * factor


def case(module, *inputs):
    outputs = module(*inputs)
    return MethodTestCase(inputs=inputs,
                          expected_outputs=outputs if isinstance(outputs, tuple) else (outputs,))


def programs():
    """Return {name: bundled program}."""
    generator = torch.Generator().manual_seed(4)
    torch.manual_seed(4)
    classify, scale = Classify().eval(), Scale().eval()
    images = [torch.rand(1, 2, 5, 4, generator=generator) for _ in range(3)]
    integers = torch.tensor([[1, -2, 3]], dtype=torch.int32)
    numbers = (integers, 3, 0.5, True)
    program = to_edge({"forward": torch.export.export(classify, (images[0],)),
                       "scale": torch.export.export(scale, numbers)}).to_executorch()
    suites = [MethodTestSuite("forward", [case(classify, image) for image in images]),
              MethodTestSuite("scale", [case(scale, *numbers)])]
    wrong = case(classify, images[1])
    wrong.expected_outputs[0] = wrong.expected_outputs[0].clone()
    wrong.expected_outputs[0][0, 1, 2, 1] += 0.25
    mixed = [case(classify, images[0]), wrong, MethodTestCase(inputs=(images[2],)),
             case(classify, images[2])]
    return {"passing": BundledProgram(program, suites),
            "failing": BundledProgram(program, [MethodTestSuite("forward", mixed)])}


def verdict(loaded, method, index):
    try:
        loaded.verify_result_with_bundled_expected_output(method, index)
        return "PASS"
    except RuntimeError as error:
        return f"FAIL: {error}"


def main():
    FOLDER.mkdir(exist_ok=True)
    for name, bundle in programs().items():
        data = serialize(bundle)
        (FOLDER / f"{name}.bpte").write_bytes(data)
        print(f"{name}.bpte: {len(data)} bytes")
        loaded = load(data)
        for suite in bundle.method_test_suites:
            for index in range(len(suite.test_cases)):
                print(f"  {suite.method_name} {index}: {verdict(loaded, suite.method_name, index)}")


if __name__ == "__main__":
    main()
