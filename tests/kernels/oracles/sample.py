"""Define samples of oracles: arguments of an operator, and its results by numpy.

    @oracle("aten::neg.out")
    def neg(draw, operator):
        x = draw.values(draw.shape(), draw.pick("int8", "float32"))
        return Sample([draw.tensor(x)], -x)

An oracle draws only arguments that the operator accepts, from hypothesis or a seed.
"""

import dataclasses

import numpy as np
from hypothesis import strategies
from support.kernel_call import Tensor, Variable, call
from support.pytorch_dtypes import values

ORACLES = {}


def oracle(*operators):
    """Register a function (Draw, operator) -> Sample for these operators."""
    def enter(function):
        for operator in operators:
            assert operator not in ORACLES, operator
            ORACLES[operator] = function
        return function

    return enter


@dataclasses.dataclass
class Sample:
    """Arguments and expected results of a call. `expected`: an array for each output, in a list if
    there are several, in a nested list for a list output; a number for a variable. `order`: the dim
    order of the outputs, which follow the arguments. `in_place`: the first argument is the output."""

    arguments: list
    expected: object
    rtol: float = 0
    atol: float = 0
    order: object = "any"
    in_place: bool = False

    def __post_init__(self):
        if isinstance(self.expected, np.generic):
            self.expected = np.asarray(self.expected)
        elif isinstance(self.expected, list):
            self.expected = [np.asarray(one) if isinstance(one, np.generic) else one
                             for one in self.expected]

    def check(self, operator, draw):
        """Call the operator, and assert that its results are the expected ones."""
        outputs = [] if self.in_place else self.outputs(draw)
        given = call(operator, *self.arguments, *outputs)
        only_list = isinstance(self.expected, list) and len(self.expected) == 1
        pairs = [(given, self.expected[0] if only_list else self.expected)]
        while pairs:
            one, wanted = pairs.pop()
            if isinstance(wanted, list):
                pairs += zip(one, wanted, strict=True)
            elif not isinstance(wanted, np.ndarray):
                assert type(one) is type(wanted)
                assert one == wanted or (one != one and wanted != wanted), (one, wanted)
            elif wanted.dtype.kind == "c":
                pairs += [(one.real, wanted.real), (one.imag, wanted.imag)]
            elif self.rtol or self.atol:
                np.testing.assert_allclose(one, wanted, self.rtol, self.atol)
            else:
                np.testing.assert_array_equal(one, wanted)

    def outputs(self, draw):
        wanted = self.expected
        several = isinstance(wanted, list) and len(wanted) > 0
        return [self.output(one, draw) for one in (wanted if several else [wanted])]

    def output(self, wanted, draw):
        if isinstance(wanted, list):
            return [self.output(one, draw) for one in wanted]
        if not isinstance(wanted, np.ndarray):
            return Variable()
        array = np.full(wanted.shape, 77, wanted.dtype)
        if self.order == "any":
            return draw.tensor(array)
        return Tensor(array, None if self.order == "contiguous" else self.order)


class Draw:
    """Random choices, from a seed. Small ranks and sizes are more likely."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)

    def int(self, low, high):
        return int(self.random.integers(low, high, endpoint=True))

    def pick(self, *choices):
        return choices[self.int(0, len(choices) - 1)]

    def chance(self):
        return self.pick(False, True)

    def shuffled(self, items):
        return [items[i] for i in self.random.permutation(len(items))]

    def some(self, items):
        """Select some of the items, in any order."""
        return [item for item in self.shuffled(items) if self.chance()]

    def shape(self, minimum=0, maximum=5, smallest=0):
        """Draw sizes, mostly of few dims. Sizes are smaller if there are many dims."""
        rank = max(minimum, min(self.pick(0, 1, 2, 2, 3, 3, 4, maximum), maximum))
        return tuple(self.int(smallest, 7 if rank < 3 else 4) for _ in range(rank))

    def dim(self, rank):
        """Draw a dim, counted from either end; 0 or -1 without dims."""
        return self.int(-max(rank, 1), max(rank, 1) - 1)

    def order(self, rank):
        if rank < 2 or self.chance():
            return tuple(range(rank))
        if rank == 4 and self.chance():
            return 0, 2, 3, 1
        return tuple(self.shuffled(range(rank)))

    def values(self, shape, dtype):
        """Draw elements of the dtype, including special ones."""
        return values(self.random, tuple(shape), dtype)

    def small(self, shape, dtype):
        """Draw small numbers with few different values, without special ones. Unsigned ones are not
        below 0."""
        low = 0 if np.dtype(dtype).kind in "ub" else -4
        return np.asarray(self.random.integers(low, 5, tuple(shape))).astype(dtype)

    def normal(self, shape, dtype="float32"):
        return np.asarray(self.random.normal(size=tuple(shape))).astype(dtype)

    def tensor(self, array, order=None):
        """Make a tensor in any dim order, or in `order`, at any address that the loader may use."""
        shifts = [shift for shift in (0, 4, 8, 12) if shift % array.dtype.itemsize == 0] or [0]
        order = self.order(array.ndim) if order is None else order
        return Tensor(np.asarray(array, order="C"), order, shift=self.pick(*shifts))

    def contiguous(self, array):
        return self.tensor(array, tuple(range(array.ndim)))

    def narrowed(self, shape):
        """Draw a shape that broadcasts to the given one."""
        kept = [1 if self.int(0, 3) == 0 else n for n in shape]
        return tuple(kept[self.pick(0, 0, self.int(0, len(kept))) :])


class HypothesisDraw(Draw):
    """Choices by hypothesis, except elements, so that it finds the simplest failure."""

    def __init__(self, data):
        self._draw = data.draw
        super().__init__(self.int(0, 2**32 - 1))

    def int(self, low, high):
        return self._draw(strategies.integers(low, high))

    def pick(self, *choices):
        return self._draw(strategies.sampled_from(choices))

    def shuffled(self, items):
        return self._draw(strategies.permutations(list(items)))
