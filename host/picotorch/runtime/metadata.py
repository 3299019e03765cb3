"""Provide metadata as executorch.runtime does, over picotorch's own."""

from collections.abc import Callable

from picotorch import method_meta, tensor
from picotorch.host.values import TENSOR, kind_name

from .exceptions import WrongIndex, raises


class TensorInfo:
    """Describe an input, output or attribute."""

    def __init__(self, info: tensor.TensorInfo) -> None:
        self._info = info

    def sizes(self) -> tuple[int, ...]:
        """Return the sizes of the tensor."""
        return self._info.sizes()

    def dtype(self) -> int:
        """Return ExecuTorch's number of the scalar type."""
        return self._info.scalar_type()

    def is_memory_planned(self) -> bool:
        """Return True if the tensor is in planned memory."""
        return self._info.is_memory_planned()

    def nbytes(self) -> int:
        """Return the bytes of the tensor."""
        return self._info.nbytes()

    def __repr__(self) -> str:
        return (f"TensorInfo(sizes={list(self.sizes())}, dtype={self._info.dtype}, "
                f"is_memory_planned={self.is_memory_planned()}, nbytes={self.nbytes()})")


class MethodMeta:
    """Describe a method.

    An index that is out of range or not a tensor's raises InvalidArgument, an IndexError.
    """

    def __init__(self, meta: method_meta.MethodMeta) -> None:
        self._meta = meta

    def name(self) -> str:
        """Return the name of the method."""
        return self._meta.name()

    def num_inputs(self) -> int:
        """Return the number of inputs."""
        return self._meta.num_inputs()

    def num_outputs(self) -> int:
        """Return the number of outputs."""
        return self._meta.num_outputs()

    def num_attributes(self) -> int:
        """Return the number of parameters and buffers with a name."""
        return self._meta.num_attributes()

    @raises(WrongIndex)
    def input_tensor_meta(self, index: int) -> TensorInfo:
        """Return the TensorInfo of an input. Raises IndexError."""
        return TensorInfo(self._meta.input_tensor_meta(index))

    @raises(WrongIndex)
    def output_tensor_meta(self, index: int) -> TensorInfo:
        """Return the TensorInfo of an output. Raises IndexError."""
        return TensorInfo(self._meta.output_tensor_meta(index))

    @raises(WrongIndex)
    def input_quantization(self, index: int) -> tuple[float, int] | None:
        """Return (scale, zero point) of an input of quantized values, None for any other."""
        return self._meta.input_quantization(index)

    @raises(WrongIndex)
    def output_quantization(self, index: int) -> tuple[float, int] | None:
        """Return (scale, zero point) of an output of quantized values, None for any other."""
        return self._meta.output_quantization(index)

    @raises(WrongIndex)
    def attribute_tensor_meta(self, index: int) -> TensorInfo:
        """Return the TensorInfo of a parameter or buffer. Raises IndexError."""
        return TensorInfo(self._meta.attribute_tensor_meta(index))

    def __repr__(self) -> str:
        meta = self._meta
        inputs = [self._described(meta.input_tag(i), meta.input_tensor_meta, i)
                  for i in range(self.num_inputs())]
        outputs = [self._described(meta.output_tag(i), meta.output_tensor_meta, i)
                   for i in range(self.num_outputs())]
        return (f"MethodMeta(name={self.name()!r}, num_inputs={self.num_inputs()}, "
                f"input_tensor_meta={inputs}, num_outputs={self.num_outputs()}, "
                f"output_tensor_meta={outputs})")

    def _described(self, tag: int, tensor_meta: Callable[[int], tensor.TensorInfo], index: int) -> str:
        return repr(TensorInfo(tensor_meta(index))) if tag == TENSOR else kind_name(tag)
