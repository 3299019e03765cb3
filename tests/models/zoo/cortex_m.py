"""Quantize models to int8, and lower them to ExecuTorch's Cortex-M dialect."""

import torch
from executorch.backends.cortex_m.edge_compile_config import cortex_m_edge_compile_config
from executorch.backends.cortex_m.passes import CortexMPassManager
from executorch.backends.cortex_m.quantizer.quantizer import CortexMQuantizer
from executorch.backends.cortex_m.target_config import CortexM, CortexMTargetConfig
from executorch.exir import EdgeProgramManager, to_edge
from executorch.exir.passes.quantize_io_pass import QuantizeInputs, QuantizeOutputs
from models.zoo.registry import Model
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e


def lower(model: Model, quantized_ends: bool = False) -> EdgeProgramManager:
    """Return the model in the dialect, for the core `model.cortex_m`.

    quantized_ends: with integers for inputs and outputs, by ExecuTorch's own passes.
    """
    edge = to_edge(
        torch.export.export(_quantize(model), _calibration(model)[0]),
        compile_config=cortex_m_edge_compile_config(),
    )
    if quantized_ends:
        signature = edge.exported_program().graph_signature
        edge = edge.transform([
            QuantizeInputs(edge, list(range(len(signature.user_inputs)))),
            QuantizeOutputs(edge, list(range(len(signature.user_outputs)))),
        ])  # fmt: skip
    manager = CortexMPassManager(
        edge.exported_program(),
        target_config=CortexMTargetConfig(cpu=CortexM[model.cortex_m]),
    )
    edge._edge_programs["forward"] = manager.transform()
    return edge


def _quantize(model: Model) -> torch.nn.Module:
    calibration = _calibration(model)
    graph = torch.export.export(model.module, calibration[0]).module(check_guards=False)
    prepared = prepare_pt2e(graph, CortexMQuantizer())
    for inputs in calibration:
        prepared(*inputs)
    return convert_pt2e(prepared)


def _calibration(model: Model) -> list[tuple]:
    """Return the float inputs for the calibration, which are the model's own unless it has others."""
    return list(model.calibration) or [inputs for _, inputs in model.runs()]


def run(model: Model) -> list[list]:
    """Return the outputs of each run, computed by the dialect's Python implementation."""
    module = lower(model, bool(model.calibration)).exported_program().module()
    results = [module(*inputs) for _, inputs in model.runs()]
    return [list(one) if isinstance(one, (tuple, list)) else [one] for one in results]
