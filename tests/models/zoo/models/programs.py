"""Define fixtures of the variants of programs: methods, memory planning, constants, state."""

import torch
from executorch.exir.passes import MemoryPlanningPass
from executorch.exir.passes.init_mutable_pass import InitializedMutableBufferPass
from models.zoo.registry import Data, Function, Model, fixture
from torch import nn


def _affine(x):
    return torch.relu(x * 2.0 + 1.0)


class Counter(nn.Module):
    """Add the input to a buffer, and return the sum so far."""

    def __init__(self, start: float) -> None:
        super().__init__()
        self.register_buffer("total", torch.full((2,), start))

    def forward(self, x):
        self.total.add_(x)
        return self.total + 0.5


@fixture
def two_methods(data: Data) -> Model:
    """Two methods, neither called forward, that share a weight."""
    weight = nn.Linear(3, 3, bias=False)
    weight.requires_grad_(False)
    return Model(
        {"encode": nn.Sequential(weight, nn.ReLU()), "decode": nn.Sequential(nn.Sigmoid(), weight)},
        {"encode": (data.floats(1, 3),), "decode": (data.floats(2, 3),)},
    )


@fixture
def unplanned_io(data: Data) -> Model:
    """Inputs and outputs are not planned: the caller provides their memory."""
    return Model(
        Function(_affine),
        (data.floats(2, 3),),
        backend=lambda: {
            "memory_planning_pass": MemoryPlanningPass(
                alloc_graph_input=False, alloc_graph_output=False
            )
        },
    )


@fixture
def unplanned_input(data: Data) -> Model:
    """The input is not planned, the output is."""
    return Model(
        Function(_affine),
        (data.floats(2, 3),),
        backend=lambda: {"memory_planning_pass": MemoryPlanningPass(alloc_graph_input=False)},
    )


@fixture
def view_copies(data: Data) -> Model:
    """Views kept as aten::view_copy."""
    return Model(
        Function(lambda x: (x + x).view(3, 2).neg()),
        (data.floats(2, 3),),
        backend=lambda: {"remove_view_copy": False},
    )


@fixture
def wide_alignment(data: Data) -> Model:
    """Segments aligned to 4096 bytes, constants to 64."""
    return Model(
        nn.Linear(3, 2),
        (data.floats(1, 3),),
        backend=lambda: {"segment_alignment": 4096, "constant_tensor_alignment": 64},
    )


@fixture
def inline_constants(data: Data) -> Model:
    """Constants in the program's tables, as older exporters wrote them: no segment, no header."""
    return Model(nn.Linear(3, 2), (data.floats(1, 3),), inline_constants=True)


@fixture
def counter(data: Data) -> Model:
    """A mutable buffer that starts from zero and is kept from one execution to the next."""
    values = tuple((data.floats(2),) for _ in range(3))
    return Model(Counter(0.0), values[0], further=values[1:])


@fixture
def counter_initialized(data: Data) -> Model:
    """A mutable buffer with an initial value in the program."""
    values = tuple((data.floats(2),) for _ in range(3))
    return Model(
        Counter(10.0),
        values[0],
        further=values[1:],
        backend=lambda: {"passes": [InitializedMutableBufferPass(["total"])]},
    )


@fixture
def scalar_inputs(data: Data) -> Model:
    """An int, a float and a bool beside the tensor; the program is specialised for them."""
    return Model(
        Function(lambda x, count, factor, negate: x * count * (-factor if negate else factor)),
        (data.floats(3), 3, 0.5, True),
    )


@fixture
def number_outputs(data: Data) -> Model:
    """An int, a float and a bool as outputs beside the tensor."""
    return Model(Function(lambda x: (x + 1.0, 3, 0.5, True)), (data.floats(3),))


@fixture
def other_outputs(data: Data) -> Model:
    """None, a negative int, a float that is no float32, and False beside the tensor."""
    return Model(Function(lambda x: (x + 1.0, None, -(2**29), 0.1, False)), (data.floats(3),))


@fixture
def none_input(data: Data) -> Model:
    """None beside the tensor."""
    return Model(Function(lambda x, bias: x * 2.0 if bias is None else x + bias),
                 (data.floats(3), None))


@fixture
def constant_methods(data: Data) -> Model:
    """Methods that only return values: a number; numbers, a string and a tensor."""
    return Model(
        Function(lambda x: x + 1.0),
        (data.floats(3),),
        constant_methods={
            "vocabulary": 32000,
            "mixed": [1, 2.5, False, "text", data.floats(2, 2)],
        },
    )


@fixture
def mutated_inputs(data: Data) -> Model:
    """Two inputs of three that are changed in place: two extra outputs, before the others."""

    def change(x, y, z):
        z.mul_(2.0)
        x.add_(y)
        return x + z, y

    return Model(Function(change), (data.floats(3), data.floats(3), data.floats(3)))


@fixture
def mutated_input(data: Data) -> Model:
    """The method changes its input in place; the exporter makes that an extra output."""
    return Model(Function(lambda x, y: x.add_(y) * 2.0), (data.floats(3), data.floats(3)))


@fixture
def same_output_twice(data: Data) -> Model:
    """One tensor as two outputs, and an input that is an output."""

    def repeat(x):
        y = x + x
        return y, y, x

    return Model(Function(repeat), (data.floats(3),))


@fixture
def constant_output(data: Data) -> Model:
    """An output that is a constant of the program."""
    constant = data.floats(3)
    return Model(Function(lambda x: (x + constant, constant)), (data.floats(3),))


@fixture
def no_inputs(data: Data) -> Model:
    """A method without inputs."""
    constant = data.floats(3)
    return Model(Function(lambda: constant * 2), ())


@fixture
def control_flow(data: Data) -> Model:
    """torch.cond: a jump over the branch not taken."""
    return Model(
        Function(
            lambda x, flag: torch.cond(flag, lambda y: y.sin() + 1, lambda y: y.cos() * 2, (x,))
        ),
        (data.floats(3), torch.tensor(True)),
        further=((data.floats(3), torch.tensor(False)),),
    )
