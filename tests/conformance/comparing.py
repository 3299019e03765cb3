"""Compare two lists of outputs: equal within the resolution of the dtype, or the first difference."""

import torch

# Tolerances relative to an element, and to the largest element
RELATIVE = {torch.float64: 1e-10, torch.float32: 2e-5, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}
OF_LARGEST = {torch.float64: 1e-11, torch.float32: 2e-6, torch.float16: 1e-3, torch.bfloat16: 8e-3}


def difference(one: list, other: list) -> str:
    """Return "" for equal outputs, else the place and the size of the difference."""
    if len(one) != len(other):
        return f"{len(one)} outputs and {len(other)}"
    for i, (a, b) in enumerate(zip(one, other, strict=True)):
        found = _difference(a, b)
        if found:
            return f"output {i}: {found}"
    return ""


def _difference(a, b):
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return difference(list(a), list(b))
    if not (isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor)):
        return "" if a == b or (a != a and b != b) else f"{a!r} and {b!r}"
    if (a.dtype, a.shape) != (b.dtype, b.shape):
        return f"{_kind(a)} and {_kind(b)}"
    if a.is_complex():
        a, b = torch.view_as_real(a), torch.view_as_real(b)
    if not a.is_floating_point():
        return _where(a, b, a != b)
    wide, other = a.double(), b.double()
    finite = wide.isfinite() & other.isfinite()
    largest = float(other[finite].abs().max()) if finite.any() else 0.0
    allowed = RELATIVE[a.dtype] * other.abs() + OF_LARGEST[a.dtype] * largest
    close = (wide - other).abs() <= allowed
    same = (wide == other) | (wide.isnan() & other.isnan())
    return _where(a, b, ~(same | (close & finite)))


def _kind(tensor):
    return f"{str(tensor.dtype)[6:]}{list(tensor.shape)}"


def _where(a, b, differs):
    count = int(differs.sum())
    if not count:
        return ""
    first = tuple(int(i) for i in differs.nonzero()[0])
    return (f"{a[first].item()!r} and {b[first].item()!r} at {list(first)}; {count} of {a.numel()} "
            "elements")
