"""Compare the outputs of an architecture on the twin, in ExecuTorch's runtime, and on a board."""

import importlib.util
from pathlib import Path

import torch

if not importlib.util.find_spec("timm") or not importlib.util.find_spec("transformers"):
    raise ImportError("timm and transformers are not installed")


def _declare_operators_of_torchvision():
    """Declare the operators that torchvision expects in its library. A PyTorch without CUDA cannot load
    the library, and timm imports torchvision for transforms of images."""
    found = importlib.util.find_spec("torchvision")
    try:
        torch.ops.load_library(str(Path(found.origin).parent / "_C.so"))
    except OSError:
        for name in ("nms", "qnms"):
            torch.library.define(f"torchvision::{name}",
                                 "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")


_declare_operators_of_torchvision()

from architectures import from_timm, from_transformers, large  # noqa: E402
from conformance.cases import Bench, result  # noqa: E402
from executorch.exir import EdgeCompileConfig, to_edge  # noqa: E402
from picotorch.host.request import Request  # noqa: E402
from picotorch.host.twin import open_program  # noqa: E402
from picotorch.host.values import TENSOR  # noqa: E402
from picotorch.run import parity  # noqa: E402

BOARD = "mps2-an386"  # 16 MB of external RAM, of which 15 MB hold planned memory
BOUND = 1e-5  # the maximum difference relative to the largest magnitude of an output
SEED = 0

ARCHITECTURES = {f"{package}: {name}": build
                 for package, table in (("transformers", from_transformers.ARCHITECTURES),
                                        ("timm", from_timm.ARCHITECTURES))
                 for name, build in table.items()}
# Programs that fit the 3 MB which the board has for a program.
ON_BOARD = ("transformers: bert", "transformers: albert", "transformers: gpt2", "transformers: llama",
            "transformers: t5", "transformers: swin", "transformers: wav2vec2", "timm: convmixer",
            "timm: efficientnet", "timm: mixer", "timm: resnet", "timm: vit")


def export(name):
    """Export the architecture `name`. Return the .pte file, with portable operators, and the inputs."""
    torch.manual_seed(SEED)
    model, inputs = (ARCHITECTURES | large.ARCHITECTURES)[name]()
    with torch.no_grad():
        for parameter in model.parameters():  # initial zeros would make all outputs zero
            parameter += 0.02 * torch.randn_like(parameter)
        exported = torch.export.export(model.eval(), (), kwargs=inputs, strict=False)
    program = to_edge(exported, compile_config=EdgeCompileConfig(_check_ir_validity=False))
    return bytes(program.to_executorch().buffer), list(inputs.values())


def compare(pte, inputs, expected, boards=()):
    """Compare the twin and boards as picotorch parity does. Raises picotorch.Error."""
    meta = open_program(pte).method_meta("forward")
    types = [meta.output_tensor_meta(i).scalar_type() if meta.output_tag(i) == TENSOR else None
             for i in range(meta.num_outputs())]
    arrays = [value.numpy() if isinstance(value, torch.Tensor) else value for value in inputs]
    reference = parity.Reference("random", types, outputs=[value.numpy() for value in expected],
                                 rtol=BOUND)
    return parity.compare(Request(pte, "model", arrays, temp_size=None), list(boards), reference)


def examine(name: str, group: str, bench: Bench) -> dict:
    """Return the result of one architecture, in the format of conformance.cases."""
    pte, inputs = export(name)
    entry = {"bytes": len(pte)}
    (theirs, their_error), (ours, our_error) = bench.outputs(pte, [("forward", inputs)])
    if theirs is None or ours is None:
        missing = "OperatorMissing" in our_error
        status = "both refuse" if ours is theirs else "only picotorch" if ours else \
            "no kernel" if missing else "refused"
        return result(name, group, status, f"{our_error} | {their_error}".strip(" |")) | entry
    if not any(value.unique().numel() > 1 for value in theirs[0]):
        return result(name, group, "differs", "all elements of the outputs are equal") | entry
    boards = [BOARD] if name in ON_BOARD else []
    found = compare(pte, inputs, theirs[0], boards)
    entry |= {"difference": found.reference.difference, "boards": boards}
    if found.agree:
        return result(name, group, "same") | entry
    differing = [board.result.board for board in found.boards if not board.agree]
    return result(name, group, "differs", " and ".join(
        [f"by {entry['difference']:.2g} of the largest output"] * (not differing) +
        [f"{board} from the twin" for board in differing])) | entry
