"""Take samples of the operators that picotorch has kernels for from PyTorch's OpInfo database."""

import random
import zlib
from dataclasses import dataclass

import torch
from picotorch.host.operators import built_operators
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import SampleInput
from torch.utils._pytree import tree_flatten, tree_unflatten

# The number of samples of an operator, by dtype
SAMPLES = {torch.float32: 6, torch.int64: 3, torch.int32: 2, torch.int16: 1, torch.int8: 1,
           torch.uint8: 2, torch.bool: 2, torch.float64: 2, torch.float16: 2, torch.bfloat16: 2,
           torch.complex64: 2}
LARGEST = 20_000  # elements of a tensor

# OpInfos that lead to kernels of other names
_ALSO = (
    "baddbmm", "broadcast_to", "chunk", "einsum", "matmul", "mv", "inner", "index_put", "index_add",
    "index_copy", "scatter", "scatter_add", "softmax", "log_softmax", "std", "sum_to_size", "tile",
    "hstack", "vstack", "movedim", "unflatten", "flatten", "reshape", "ravel", "square", "frac",
    "count_nonzero", "native_batch_norm", "cumprod", "logsumexp", "triu", "zeros_like", "ones_like",
    "nn.functional.adaptive_avg_pool2d", "nn.functional.adaptive_avg_pool3d",
    "nn.functional.adaptive_max_pool2d", "nn.functional.adaptive_max_pool3d",
    "nn.functional.avg_pool1d", "nn.functional.avg_pool2d", "nn.functional.avg_pool3d",
    "nn.functional.batch_norm", "nn.functional.celu", "nn.functional.conv1d", "nn.functional.conv2d",
    "nn.functional.conv3d", "nn.functional.conv_transpose1d", "nn.functional.conv_transpose2d",
    "nn.functional.conv_transpose3d",
    "nn.functional.elu", "nn.functional.embedding", "nn.functional.gelu", "nn.functional.glu",
    "nn.functional.group_norm", "nn.functional.hardsigmoid", "nn.functional.hardswish",
    "nn.functional.hardtanh", "nn.functional.instance_norm", "nn.functional.interpolate",
    "nn.functional.layer_norm", "nn.functional.leaky_relu", "nn.functional.linear",
    "nn.functional.logsigmoid", "nn.functional.max_pool1d", "nn.functional.max_pool2d",
    "nn.functional.max_pool3d",
    "nn.functional.mish", "nn.functional.mse_loss", "nn.functional.normalize", "nn.functional.pad",
    "nn.functional.pixel_shuffle", "nn.functional.prelu", "nn.functional.relu6",
    "nn.functional.rms_norm", "nn.functional.scaled_dot_product_attention", "nn.functional.selu",
    "nn.functional.silu", "nn.functional.softmin", "nn.functional.softplus",
    "nn.functional.upsample_bilinear", "nn.functional.upsample_nearest",
    "fft.fft", "fft.fft2", "fft.fftn", "fft.hfft", "fft.ifft", "fft.ifft2", "fft.ihfft", "fft.irfft",
    "fft.irfft2", "fft.rfft", "fft.rfft2", "istft", "stft",
)
# Operators without defined values, or with random values
_NOT = ("empty", "empty_strided", "empty_permuted", "bernoulli", "normal", "multinomial",
        "rand_like", "randn", "randn_like", "randint", "randint_like")
_NOT_NAMESPACES = ("_refs", "linalg", "masked.", "fft", "special", "sparse", "torch.ops")


@dataclass(frozen=True)
class Operator:
    """An OpInfo, by its index in op_db."""

    name: str
    index: int

    def samples(self, counts):
        """Return up to counts[dtype] samples in each dtype that the operator supports, always the same
        ones."""
        return [sample for dtype, count in counts.items() if dtype in op_db[self.index].dtypes
                for sample in [*self._samples(dtype, count), *self._ties(dtype)]]

    def _ties(self, dtype):
        """Yield topk of rows with few different elements. PyTorch's samples have no equal elements."""
        rows = [] if self.name != "topk" else [(20, 7), (130, 2), (130, 3), (500, 400)]
        for n, k in rows:
            data = torch.arange(3 * n).mul(7919).remainder(1009).remainder(4).reshape(3, n).to(dtype)
            for largest in (True, False):
                input_ = SampleInput(data, args=(k, -1, largest))
                yield Sample(f"{self.name} {str(dtype)[6:]} {k} of {n}, {largest}", dtype,
                             op_db[self.index].op, input_)

    def _samples(self, dtype, count):
        """Return samples spread over PyTorch's samples."""
        info = op_db[self.index]
        seed = zlib.crc32(self.name.encode())
        torch.manual_seed(seed)
        random.seed(seed)
        found = []
        for number, sample in enumerate(info.sample_inputs("cpu", dtype)):
            candidate = Sample(f"{self.name} {str(dtype)[6:]} {number}", dtype, info.op, sample)
            if candidate.usable():
                found.append(candidate)
            if len(found) == 100:
                break
        step = max(1, len(found) / count)
        chosen = [found[int(i * step)] for i in range(count) if int(i * step) < len(found)]
        return [sample for sample in chosen if sample.expected() is not None]


# The position of `dim` in operators that may name any of several equal elements, each once
_DIMS = {"kthvalue": 2, "sort": 1}


class Sample:
    """A call of an operator. Its tensors are inputs of the program, all other arguments are
    constants."""

    def __init__(self, name, dtype, function, sample):
        self.name = name
        self.dtype = dtype
        self.group = f"operators, {str(dtype)[6:]}"
        self.function = function
        leaves, self.spec = tree_flatten(([sample.input, *sample.args], sample.kwargs))
        self.leaves = [leaf.detach() if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
        self.places = [i for i, leaf in enumerate(self.leaves) if isinstance(leaf, torch.Tensor)]

    @property
    def inputs(self):
        return [self.leaves[i].clone(memory_format=torch.contiguous_format) for i in self.places]

    def usable(self):
        tensors = [self.leaves[i] for i in self.places]
        return bool(tensors) and all(
            tensor.numel() <= LARGEST and tensor.layout == torch.strided for tensor in tensors)

    def call(self, tensors):
        """Return the outputs, a flat list of tensors."""
        leaves = list(self.leaves)
        for i, tensor in zip(self.places, tensors, strict=True):
            leaves[i] = tensor
        args, kwargs = tree_unflatten(leaves, self.spec)
        return tree_flatten(self.function(*args, **kwargs))[0]

    def expected(self):
        """Return PyTorch's outputs, or None if PyTorch rejects the call or not all outputs are
        tensors."""
        try:
            with torch.no_grad(), torch.backends.mkldnn.flags(enabled=False):
                outputs = self.call(self.inputs)
        except Exception:
            return None
        tensors = all(isinstance(output, torch.Tensor) for output in outputs)
        return [output.detach().clone() for output in outputs] if outputs and tensors else None

    def comparable(self, outputs):
        """Return outputs that can be compared. PyTorch does not define which of several equal elements
        the indices of kthvalue and sort name, so these elements replace the indices."""
        place = _DIMS.get(self.name.split(" ")[0])
        arguments, named = tree_unflatten(self.leaves, self.spec)
        if place is None or outputs is None or named.get("stable"):
            return outputs
        data, dim = arguments[0], [*arguments, named.get("dim", -1)][place]
        values, indices = outputs
        places = indices if values.dim() == data.dim() else indices.unsqueeze(dim)
        if ((places < 0) | (places >= (data.shape or [1])[dim])).any():
            return outputs
        lanes = places.movedim(dim, -1) if places.dim() else places[None]
        if any(len(lane.unique()) < len(lane) for lane in lanes.reshape(-1, max(lanes.shape[-1], 1))):
            return outputs
        return [values, data.gather(dim, places).reshape(values.shape)]

    def __str__(self):
        args, kwargs = tree_unflatten([_text(leaf) for leaf in self.leaves], self.spec)
        named = [f"{name}={value}" for name, value in kwargs.items()]
        return f"{self.name}({', '.join([*map(str, args), *named])})".replace("'", "")


def _text(leaf):
    if not isinstance(leaf, torch.Tensor):
        return repr(leaf)
    return f"{str(leaf.dtype)[6:]}{list(leaf.shape)}"


class Together(torch.nn.Module):
    """Several samples as one program, with the inputs of all samples in order, and all outputs."""

    def __init__(self, samples):
        super().__init__()
        self.samples = samples

    def forward(self, *tensors):
        outputs, at = [], 0
        for sample in self.samples:
            count = len(sample.places)
            outputs += sample.call(tensors[at : at + count])
            at += count
        return tuple(outputs)


def operators():
    """Return the Operators, in op_db's order."""
    kernels = {name.split("::")[1].split(".")[0] for name in _kernels()}
    kernels = {name.strip("_").removesuffix("_copy") for name in kernels} | set(_ALSO)
    found = []
    for index, info in enumerate(op_db):
        known = info.name in kernels or info.name.split(".")[-1].strip("_") in kernels
        elsewhere = info.name.startswith(_NOT_NAMESPACES) and info.name not in _ALSO
        if known and info.name not in _NOT and not elsewhere:
            name = f"{info.name}.{info.variant_test_name}".rstrip(".")
            found.append(Operator(name.replace("nn.functional.", ""), index))
    return found


def _kernels():
    return [name for name in built_operators() if name.startswith("aten::")]
