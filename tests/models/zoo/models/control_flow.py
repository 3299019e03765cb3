"""Branches and loops."""

import torch
from executorch.exir.schema import Chain, JumpFalseCall, Program
from models.zoo.registry import Data, Function, Model, fixture
from torch import nn
from torch._higher_order_ops import map as map_rows
from torch._higher_order_ops import scan
from torch.export import Dim

N = Dim("n", min=2, max=8)


def _flags(*flags: bool) -> tuple:
    return tuple(torch.tensor(flag) for flag in flags)


@fixture
def nested_conds(data: Data) -> Model:
    """torch.cond in both branches of another."""

    def forward(x, first, second):
        def yes(y):
            return torch.cond(second, lambda z: z + 1, lambda z: z * 2, (y,))

        def no(y):
            return torch.cond(second, torch.sin, torch.cos, (y,))

        return torch.cond(first, yes, no, (x,))

    cases = [(True, True), (True, False), (False, True), (False, False)]
    runs = tuple((data.floats(3), *_flags(*case)) for case in cases)
    return Model(Function(forward), runs[0], further=runs[1:])


@fixture
def conds_in_a_row(data: Data) -> Model:
    """Two times torch.cond, the second on what the first has made."""

    def forward(x, flag):
        y = torch.cond(flag, lambda y: y + 1, lambda y: y - 1, (x,))
        return torch.cond(y.sum() > 0, lambda z: z * 2, lambda z: -z, (y,))

    runs = tuple((data.floats(3), torch.tensor(flag)) for flag in (True, False, True))
    return Model(Function(forward), runs[0], further=runs[1:])


@fixture
def cond_on_a_size(data: Data) -> Model:
    """torch.cond on a condition about sizes, with branches of dynamic sizes."""

    def forward(x):
        return torch.cond(x.shape[0] > 4, lambda y: y.sin() + 1, lambda y: y.cos() * 2, (x,))

    return Model(
        Function(forward),
        (data.floats(3, 2),),
        dynamic_shapes=({0: N},),
        further=tuple((data.floats(n, 2),) for n in (8, 2, 5)),
    )


@fixture
def map_over_rows(data: Data) -> Model:
    """torch's map: a loop over the rows of a tensor."""

    def forward(x, y):
        return map_rows(lambda row, other: (row + other).relu(), x, y)

    runs = tuple((data.floats(4, 3), data.floats(3)) for _ in range(2))
    return Model(Function(forward), runs[0], further=runs[1:])


@fixture
def map_over_some_rows(data: Data) -> Model:
    """A loop over as many rows as there are; longer ones follow shorter ones."""

    def forward(x, y):
        return map_rows(lambda row, other: (row + other).relu(), x, y)

    return Model(
        Function(forward),
        (data.floats(8, 3), data.floats(3)),
        dynamic_shapes=({0: N}, {}),
        further=tuple((data.floats(n, 3), data.floats(3)) for n in (2, 5, 8)),
    )


def _cut_around_the_branch(program: Program) -> None:
    """Distribute the instructions over three chains. The second one has all jumps, which stay in it."""
    (plan,) = program.execution_plan
    (chain,) = plan.chains
    calls = chain.instructions
    jumps = [i for i, one in enumerate(calls) if isinstance(one.instr_args, JumpFalseCall)]
    start = jumps[0]
    end = max(calls[i].instr_args.destination_instruction for i in jumps)
    assert 0 < start < end < len(calls)
    for i in jumps:
        calls[i].instr_args.destination_instruction -= start
    plan.chains = [Chain(chain.inputs, chain.outputs, part, chain.stacktrace)
                   for part in (calls[:start], calls[start:end], calls[end:])]


@fixture
def several_chains(data: Data) -> Model:
    """Instructions in three chains; a branch fills the second, at whose end its jump ends."""

    def forward(x, flag):
        y = torch.cond(flag, lambda y: y.sin() + y, lambda y: y.cos() * y, (x + x,))
        return y.relu() - x

    runs = tuple((data.floats(3), torch.tensor(flag)) for flag in (True, False, True))
    return Model(Function(forward), runs[0], rewrite=_cut_around_the_branch, further=runs[1:])


class Cell(nn.Module):
    """A recurrent cell over the rows of a sequence."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(3, 4)
        self.outer = nn.Linear(4, 4)

    def forward(self, xs, start):
        def step(state, x):
            state = torch.tanh(self.inner(x) + self.outer(state))
            return state, state * 2.0

        return scan(step, start, xs)


@fixture
def scan_over_rows(data: Data) -> Model:
    """torch's scan: a recurrent cell over a sequence, with its last state and all outputs."""
    runs = tuple((data.floats(5, 1, 3), data.floats(1, 4)) for _ in range(2))
    return Model(Cell(), runs[0], further=runs[1:])
