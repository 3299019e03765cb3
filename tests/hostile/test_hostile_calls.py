"""Call operators with arguments that no exporter would write, on the twin with the compiler's
sanitizers. Findings of earlier runs have named tests."""

import itertools
import time

import numpy as np
import pytest
from support import hostile_runs
from support.example_calls import EXAMPLES
from support.hostile_calls import KINDS, Draw, HostileCall, boundary_call
from support.kernel_call import KernelError, Tensor, call
from support.polls import Polls
from support.tiers import SWEEP

pytestmark = pytest.mark.thorough

PARTS, CALLS = 4, 3000 if SWEEP else 1000  # calls in each part
BOUNDARY_CALLS = 3000


@pytest.mark.reliability
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("kind", KINDS)
def test_random_calls_are_rejected_or_run(kind, part):
    """A call writes only its outputs, and no call takes long. `make hostile-calls` tries more calls."""
    outcomes = hostile_runs.outcomes("hostile_calls.py", "operators", "calls", part, CALLS, kind)
    assert outcomes["ok"] > CALLS // 8 and sum(outcomes.values()) == CALLS


def test_calls_at_the_boundary_are_of_every_operator():
    calls = [boundary_call(seed) for seed in range(BOUNDARY_CALLS)]
    assert {one.operator for one in calls} == set(EXAMPLES)
    for one in calls:
        assert {size for tensor in one._all_tensors() for size in tensor.sizes} <= {0, 1}


def changed(operator, change):
    """Return the outcome of an example call after change(arguments)."""
    one = HostileCall(Draw(b""), (operator, EXAMPLES[operator]))
    change(one.arguments)
    return one.run()


# ---- scratch tensors: memory that a kernel writes, although they are no outputs

SCRATCH = {f"cortex_m::quantized_{name}.out": place for name, place in (
    ("conv2d", 12), ("conv2d_nhwc", 12), ("depthwise_conv2d", 13), ("depthwise_conv2d_nhwc", 13))}


@pytest.mark.parametrize("operator", SCRATCH)
def test_scratch_is_no_constant(operator):
    def make_constant(arguments):
        arguments[SCRATCH[operator]].constant = True

    assert changed(operator, make_constant) == "InvalidProgram"


@pytest.mark.parametrize("other", [0, 1, 2, -1], ids=["input", "weights", "bias", "output"])
@pytest.mark.parametrize("operator", SCRATCH)
def test_scratch_lies_over_no_other_tensor(operator, other):
    """The last bytes of the scratch tensor are the first of another tensor."""
    def lay_over(arguments):
        scratch = arguments[SCRATCH[operator]]
        scratch.sizes = [64]
        arguments[other].shares, arguments[other].shift = scratch, scratch.nbytes() - 4

    assert changed(operator, lay_over) == "InvalidProgram"


def test_scratch_may_be_empty():
    def share(arguments):
        arguments[12].sizes, arguments[12].shares = [0], arguments[13]

    assert changed("cortex_m::quantized_conv2d.out", share) == "ok"


# ---- outputs over inputs


def test_topk_that_overwrites_its_input_stays_in_bounds():
    x = np.array([[5.0, 4.0, 3.0, 2.0, 1.0, 0.0, 7.0, 6.0]], np.float32).repeat(2, 0)
    values, indices = np.zeros((2, 8), np.float32), Tensor(np.zeros((2, 8), np.int64))
    x = Tensor(x, alias=indices, scratch=True)
    _, found = call("aten::topk.values", x, 8, 1, True, True, values, indices)
    assert found.min() >= 0 and found.max() < 8


@pytest.mark.parametrize("bits", ["byte", "4bit", "2bit"])
def test_an_embedding_does_not_write_over_its_indices(bits):
    def lay_over(arguments):
        arguments[5].shares, arguments[6].data = arguments[6], arguments[5].data

    name = f"quantized_decomposed::embedding_{bits}.out"
    assert changed(name, lay_over) == "InvalidProgram"


def test_an_output_for_two_parts_is_rejected_before_it_is_written():
    def repeat_the_last(arguments):
        outputs = arguments[3]
        outputs[1].bound = 16
        arguments[3] = [outputs[1], outputs[1]]
        arguments[1] = [1, 2]

    assert changed("aten::split_with_sizes_copy.out", repeat_the_last) == "InvalidArgument"


# ---- tensors without elements have no data


@pytest.mark.parametrize(("operator", "arguments"), [
    ("aten::zeros.out", [[0, 2], np.zeros((0, 2), np.float32)]),
    ("aten::embedding.out", [np.zeros((3, 0), np.float32), np.array([1, 2]), -1, False, False,
                             np.zeros((2, 0), np.float32)]),
    ("aten::view_copy.out", [np.zeros((0, 2), np.float32), [2, 0], np.zeros((2, 0), np.float32)]),
])
def test_nothing_is_copied(operator, arguments):
    assert HostileCall(Draw(b""), (operator, arguments)).run() == "ok"


# ---- the work of a call is bounded by the memories of its tensors

MANY = 1 << 26  # beside a size of 0


def check_takes_little_time(operator, change):
    start = time.process_time()
    assert changed(operator, change) == "ok"
    assert time.process_time() - start < 0.1


@pytest.mark.parametrize(("operator", "sizes"), [
    ("avg_pool2d_nhwc", {0: [1, MANY, 2, 0]}), ("max_pool2d_nhwc", {0: [1, MANY, 2, 0]}),
    ("depthwise_conv2d_nhwc", {0: [MANY, 0, 1, 1], 1: [1, 1, 1, 1], 2: [1], 9: [1], 10: [1]}),
    ("linear", {0: [MANY, 0], 1: [0, 0]}),
    ("batch_matmul", {0: [MANY, 0, 3], 2: [MANY, 0, 3]}),
])
def test_no_time_is_spent_on_no_elements(operator, sizes):
    def empty(arguments):
        for place, of_tensor in sizes.items():
            arguments[place].sizes = of_tensor
            arguments[place].bound = 0 if 0 in of_tensor else None
        if operator == "linear":
            arguments[2] = None  # a bias of four outputs
        arguments[-1].bound = 64

    check_takes_little_time(f"cortex_m::quantized_{operator}.out", empty)


def lanes_of_nothing(arguments):
    for place in (0, -1):
        arguments[place].sizes, arguments[place].order = [1 << 27, 1, 0], [0, 1, 2]
    arguments[1] = 1


def transposed_without_channels(arguments):
    """The kernel has no element, but also the size that the padding removes."""
    arguments[0].sizes, arguments[1].sizes = [1, 0, 8, 8], [0, 3, (1 << 24) + 1, 1]
    arguments[-1].sizes = [1, 3, 8, 8]
    arguments[3:7] = [1], [1 << 23, 0], [1], True


@pytest.mark.parametrize(("operator", "change"), [
    ("cortex_m::softmax.out", lanes_of_nothing),
    ("aten::convolution.out", transposed_without_channels),
])
def test_no_time_is_spent_on_sizes_beside_0(operator, change):
    check_takes_little_time(operator, change)


@pytest.mark.parametrize("dilation", [1, 1 << 24])
@pytest.mark.parametrize("operator", ["conv2d_nhwc", "depthwise_conv2d_nhwc"])
def test_unused_steps_may_be_huge(operator, dilation):
    """There is one window, so no product of steps and sizes is needed. Sanitizers would report its
    overflow."""
    def stride(arguments):
        sizes = (arguments[0].sizes, arguments[-1].sizes)
        sizes[0][1:3] = sizes[1][1:3] = [1, 1]
        arguments[1].sizes[1:3] = [1, 1]
        arguments[3], arguments[5] = [1 << 27, 1 << 27], [dilation, dilation]

    assert changed(f"cortex_m::quantized_{operator}.out", stride) == "ok"


@pytest.mark.parametrize("operator", ["topk.values", "kthvalue.values", "mode.values"])
def test_the_indices_of_a_long_dim_are_counted(operator):
    """The bytes of the indices do not fit uint32."""
    def lengthen(arguments):
        many, dim = 1 << 29, 1 if operator == "mode.values" else 2
        arguments[0].sizes = [many, 0, 1]
        arguments[1:dim + 1] = [many, 0][-dim:]
        for output in arguments[-2:]:
            output.sizes = [many, 0, 1] if operator == "topk.values" else [0, 1]

    assert changed(f"aten::{operator}", lengthen) == "NotSupported"


@pytest.mark.parametrize("operator", ["aten::index_put_", "aten::index_put.out"])
def test_places_of_indices_are_counted(operator):
    """The output would have 5 ** 10 places, although each tensor has at most 5 elements."""
    rank = 10
    x = Tensor(np.zeros((1,) * rank, np.float32), scratch=True)
    indices = [np.zeros([5 if i == k else 1 for k in range(rank)], np.int64) for i in range(rank)]
    out = [np.zeros((1,) * rank, np.float32)] if operator.endswith("out") else []
    with pytest.raises(KernelError, match="NotSupported in check: .*too many elements"):
        call(operator, x, indices, np.ones(1, np.float32), False, *out)


def test_places_of_a_mask_are_counted():
    """The output would have 1,000 x 1,000 places, although each tensor has 1,000 bytes."""
    column, row = np.zeros((1000, 1), np.int8), np.zeros((1, 1000), bool)
    with pytest.raises(KernelError, match="NotSupported"):
        call("aten::masked_select.out", column, row, np.zeros(0, np.int8))


MAX_POLLS = 64  # each follows 1 << 16 steps, far more than an example needs
HUGE = 1 << 20, 1 << 24  # the first size fits next to all other sizes of an example


def huge_calls(operator):
    """Yield calls whose tensors have a size of 0 and a huge size. The huge size replaces one of their
    sizes, or precedes them like a batch."""
    example = HostileCall(Draw(b""), (operator, EXAMPLES[operator]))
    sizes = sorted({size for tensor in example._all_tensors() for size in tensor.sizes})
    for many, empty in itertools.product(HUGE, sizes):
        for huge in (*(size for size in sizes if size != empty), None):
            one = HostileCall(Draw(b""), (operator, EXAMPLES[operator]))
            tensors = one._all_tensors()
            one._rename(tensors, empty, 0)
            if huge is not None:
                one._rename(tensors, huge, many)
            for tensor in tensors:
                if huge is None:
                    tensor.sizes = [many, *tensor.sizes]
                    tensor.order = list(range(len(tensor.sizes)))
                if tensor in one._outputs() and tensor.sizes:
                    tensor.bound = 64
                one._make_fair(tensor)
            yield one


@pytest.mark.parametrize("operator", EXAMPLES)
def test_no_work_grows_with_a_size_that_no_memory_bounds(operator):
    for one in huge_calls(operator):
        polls = Polls(MAX_POLLS)  # the last one ends the call
        one.run(polls.callback)
        assert polls.count < MAX_POLLS and one.cpu_seconds < 0.5, one
