"""Quantization to int8 and lowering to ExecuTorch's Cortex-M dialect."""

import torch
from executorch.backends.cortex_m.edge_compile_config import cortex_m_edge_compile_config
from executorch.backends.cortex_m.passes import CortexMPassManager
from executorch.backends.cortex_m.quantizer.quantizer import CortexMQuantizer
from executorch.backends.cortex_m.target_config import CortexM, CortexMTargetConfig
from executorch.exir import EdgeProgramManager, to_edge
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

from zoo.registry import Model


def lower(model: Model) -> EdgeProgramManager:
    """The model in the dialect, calibrated with its own inputs, for the core `model.cortex_m`."""
    quantized = _quantize(model)
    edge = to_edge(
        torch.export.export(quantized, model.inputs),
        compile_config=cortex_m_edge_compile_config(),
    )
    manager = CortexMPassManager(
        edge.exported_program(),
        target_config=CortexMTargetConfig(cpu=CortexM[model.cortex_m]),
    )
    edge._edge_programs["forward"] = manager.transform()
    return edge


def _quantize(model: Model) -> torch.nn.Module:
    graph = torch.export.export(model.module, model.inputs).module(check_guards=False)
    prepared = prepare_pt2e(graph, CortexMQuantizer())
    for _, inputs in model.runs():
        prepared(*inputs)
    return convert_pt2e(prepared)


def run(model: Model) -> list[list]:
    """The outputs of each run, computed by the dialect's Python implementation."""
    module = lower(model).exported_program().module()
    results = [module(*inputs) for _, inputs in model.runs()]
    return [list(one) if isinstance(one, (tuple, list)) else [one] for one in results]
