"""Between numpy arrays, with the sizes PyTorch gives, and tensors stored in a program's dim order."""

import numpy as np

# numpy dtypes by ScalarType; types that numpy has not are seen as bytes
DTYPES = {0: "uint8", 1: "int8", 2: "int16", 3: "int32", 4: "int64", 5: "float16", 6: "float32",
          7: "float64", 11: "bool", 27: "uint16", 28: "uint32", 29: "uint64"}


def numpy_dtype(info):
    """The numpy dtype of a TensorInfo's elements."""
    return np.dtype(DTYPES.get(info.scalar_type(), "uint8"))


def to_stored(array, dim_order):
    """The bytes of an array in a dim order."""
    array = np.asarray(array)
    return np.ascontiguousarray(array.transpose(dim_order)).tobytes()


def from_stored(data, info, sizes=None):
    """The array of a tensor's bytes, which a TensorInfo describes; `sizes` are those of a dynamic one
    if they are not the most that they may be. Copies."""
    sizes = info.sizes() if sizes is None else sizes
    sizes = [sizes[dim] for dim in info.dim_order()]
    stored = np.frombuffer(bytes(data), numpy_dtype(info)).reshape(sizes)
    return stored.transpose(np.argsort(info.dim_order())).copy() if sizes else stored.copy()
