"""Programs whose sizes change from one execution to the next, within upper bounds."""

import torch
from executorch.exir.passes import MemoryPlanningPass
from models.zoo.registry import Data, Function, Model, fixture
from torch import nn
from torch.export import Dim

N = Dim("n", min=1, max=8)
M = Dim("m", min=2, max=6)
MORE = Dim("n", min=3, max=8), Dim("m", min=3, max=6)


@fixture
def dynamic_batch(data: Data) -> Model:
    """A perceptron for up to 8 rows."""
    return Model(
        nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 2), nn.Softmax(-1)),
        (data.floats(4, 3),),
        dynamic_shapes=({0: N},),
        further=tuple((data.floats(n, 3),) for n in (8, 1, 5, 8)),
    )


@fixture
def dynamic_two_dims(data: Data) -> Model:
    """Two dims that change independently: broadcasting, a concatenation, a reduction, a transpose."""

    def forward(x, y):
        total = torch.cat([x + y, x * y], 1)
        return total.sum(0), total.t().tanh(), (x - y).amax(1, keepdim=True)

    return Model(
        Function(forward),
        (data.floats(4, 3), data.floats(3)),
        dynamic_shapes=({0: N, 1: M}, {0: M}),
        further=tuple(
            (data.floats(n, m), data.floats(m)) for n, m in ((8, 6), (1, 2), (3, 5), (8, 6))
        ),
    )


@fixture
def dynamic_image(data: Data) -> Model:
    """Convolutions and pools over images of up to 12 by 8."""
    model = nn.Sequential(
        nn.Conv2d(2, 3, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(3, 4, 3, padding=1, groups=1, bias=False),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
    )
    height = 2 * Dim("half_height", min=2, max=6)
    width = 2 * Dim("half_width", min=2, max=4)
    return Model(
        model,
        (data.floats(1, 2, 6, 8),),
        dynamic_shapes=({2: height, 3: width},),
        further=tuple((data.floats(1, 2, h, w),) for h, w in ((12, 8), (4, 4), (8, 6))),
    )


@fixture
def symbolic_sizes(data: Data) -> Model:
    """Sizes that the method computes from sizes: of views, expands, slices, a range."""

    def forward(x):
        n, m = x.shape
        rows = torch.arange(n, dtype=torch.int64)
        return (
            x.reshape(n * m),
            x.unsqueeze(1).expand(n, 3, m) + 1.0,
            x[1:, : m - 1] * 2.0,
            rows * m,
            torch.full((n, 2 * m), 0.5),
            x.view(n, m, 1).repeat(1, 1, 2).view(n, 2 * m),
        )

    return Model(
        Function(forward),
        (data.floats(4, 3),),
        dynamic_shapes=(dict(enumerate(MORE)),),
        further=tuple((data.floats(n, m),) for n, m in ((8, 6), (3, 3), (7, 5))),
    )


@fixture
def symbolic_numbers(data: Data) -> Model:
    """Arithmetic with sizes, whose results are outputs and factors."""

    def forward(x):
        n, m = x.shape
        scaled = x * (n + 2 * m - 1)
        return scaled, n * m, n // 2, n % 3, -n, n - m

    return Model(
        Function(forward),
        (data.floats(4, 3),),
        dynamic_shapes=({0: N, 1: M},),
        further=tuple((data.floats(n, m),) for n, m in ((8, 6), (1, 2), (7, 5))),
    )


@fixture
def number_of_a_tensor(data: Data) -> Model:
    """item(): a number of a tensor's value."""
    return Model(
        Function(lambda x, count: x * count.item()),
        (data.floats(3), torch.tensor(3)),
        further=((data.floats(3), torch.tensor(-7)),),
    )


@fixture
def dynamic_unplanned_io(data: Data) -> Model:
    """Inputs and outputs of changing sizes in memory that the caller provides."""
    return Model(
        Function(lambda x: torch.relu(x * 2.0 + 1.0)),
        (data.floats(4, 3),),
        dynamic_shapes=({0: N},),
        further=tuple((data.floats(n, 3),) for n in (8, 1, 5)),
        backend=lambda: {
            "memory_planning_pass": MemoryPlanningPass(
                alloc_graph_input=False, alloc_graph_output=False
            )
        },
    )
