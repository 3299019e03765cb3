"""Weights and initial values in .ptd files beside the program."""

import torch
from executorch.exir.pass_base import ExportPass, PassResult
from executorch.exir.passes.init_mutable_pass import InitializedMutableBufferPass
from models.zoo.models.programs import Counter
from models.zoo.registry import Data, Model, fixture
from torch import nn


class _Tag(ExportPass):
    """A tag function that puts placeholders into a tag's data file by the end of their names."""

    def __init__(self, end: str, tag: str) -> None:
        super().__init__()
        self._end, self._tag = end, tag

    def call(self, graph_module: torch.fx.GraphModule) -> PassResult:
        for node in graph_module.graph.nodes:
            if node.op == "placeholder" and node.name.endswith(self._end):
                node.meta["constant_tag"] = self._tag
        return PassResult(graph_module, True)


def _two_layers() -> nn.Module:
    return nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))


@fixture
def external_weights(data: Data) -> Model:
    """All weights are in one data file, those of a convolution channels last."""
    return Model(
        nn.Sequential(nn.Conv2d(2, 3, 2).to(memory_format=torch.channels_last), nn.ReLU()),
        (data.floats(1, 2, 3, 3).to(memory_format=torch.channels_last),),
        backend=lambda: {"external_constants": True},
    )


@fixture
def external_two_files(data: Data) -> Model:
    """A tag function puts each layer's weights into a data file of its own."""
    return Model(
        _two_layers(),
        (data.floats(2, 3),),
        backend=lambda: {
            "external_constants": lambda node: "first" if "_0_" in node.name else "second"
        },
    )


@fixture
def external_some(data: Data) -> Model:
    """A tag function leaves some weights in the program; segments are aligned to 16 bytes."""
    return Model(
        _two_layers(),
        (data.floats(2, 3),),
        backend=lambda: {
            "external_constants": lambda node: "first" if "_0_" in node.name else None,
            "segment_alignment": 16,
        },
    )


@fixture
def external_two_methods(data: Data) -> Model:
    """Two methods that share an external weight."""
    weight = nn.Linear(3, 3, bias=False)
    weight.requires_grad_(False)
    return Model(
        {"encode": nn.Sequential(weight, nn.ReLU()), "decode": nn.Sequential(weight, nn.Sigmoid())},
        {"encode": (data.floats(1, 3),), "decode": (data.floats(2, 3),)},
        backend=lambda: {"external_constants": True},
    )


@fixture
def external_state(data: Data) -> Model:
    """A mutable buffer whose initial value is in a data file."""
    values = tuple((data.floats(2),) for _ in range(3))
    return Model(
        Counter(10.0),
        values[0],
        further=values[1:],
        backend=lambda: {
            "passes": [InitializedMutableBufferPass(["total"]), _Tag("total", "state")],
            "emit_mutable_buffer_names": True,
        },
    )
