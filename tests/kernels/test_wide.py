"""Test the variants of convolutions of conv_variants.h on the cores that have them. Every byte equals
the twin's, which computes with plain loops, for any size of scratch memory."""

import numpy as np
import pytest
from _picotorch import PREFERRING_CORES
from picotorch.boards.boards import load_board
from picotorch.compile import ptm_writer
from picotorch.firmware import selective
from picotorch.host import operators
from picotorch.host.optimize import LEVELS
from picotorch.host.request import Request
from picotorch.host.twin import open_program, preferred_temp
from picotorch.measure.cycles import RunConditions, factors
from picotorch.module import load_with_exact_memories
from picotorch.run import running
from picotorch.run.parity import same_bits
from support import benchmark_store
from support.board_call import Case, assert_same, call_on_board
from support.kernel_call import Tensor, channels_last

M4 = "mps2-an386"
BOARDS = (M4, "mps2-an500", "mps2-an505")
INT32_MAX = (1 << 31) - 1


def constant(values, dtype=np.int32):
    return Tensor(np.asarray(values).astype(dtype), constant=True)


def convolution(x, w, bias, multipliers, shifts, offset=-7, stride=(1, 1), padding=(1, 1),
                limits=(-128, 127), out_offset=-3, **options):
    """Return a call with x (N, C, H, W) and w (outputs, rows, columns, C)."""
    sizes = [(x.shape[2 + i] + 2 * padding[i] - w.shape[1 + i]) // stride[i] + 1 for i in (0, 1)]
    n = len(w)
    return Case("cortex_m::quantized_conv2d.out", channels_last(x), constant(w, np.int8),
                None if bias is None else constant(np.broadcast_to(bias, n)), list(stride),
                list(padding), [1, 1], offset, out_offset,
                constant(np.broadcast_to(multipliers, n)), constant(np.broadcast_to(shifts, n)),
                *limits, Tensor(np.zeros(0, np.uint8), scratch=True),
                channels_last(np.zeros((len(x), n, *sizes), np.int8)), **options)


class Draw:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def int8(self, *sizes):
        return self.rng.integers(-128, 128, sizes).astype(np.int8)

    def case(self, size, channels, outputs, kernel=(3, 3), offset=-7, batch=1, bias=True, **options):
        depth = kernel[0] * kernel[1] * channels
        shift = -int(np.ceil(np.log2(depth) / 2)) - 5
        return convolution(
            self.int8(batch, channels, *size), self.int8(outputs, *kernel, channels),
            self.rng.integers(-9999, 9999, outputs) if bias else None,
            self.rng.integers(1 << 30, INT32_MAX, outputs),
            self.rng.integers(shift - 1, shift + 2, outputs), offset, **options)


def shapes():
    """Yield heights, widths and channels around the ends of blocks, bands and pairs."""
    d = Draw(1)
    for width in range(1, 15):
        for channels in (4, 12, 32, 64):
            padding = tuple(map(int, d.rng.integers(0, 3, 2)))
            size = int(d.rng.integers(max(1, 3 - 2 * padding[0]), 12)), max(width, 3 - 2 * padding[1])
            yield d.case(size, channels, int(d.rng.integers(1, 9)), padding=padding,
                         offset=int(d.rng.choice([-127, 0, 5, 128])))
    for kernel in ((1, 3), (2, 3), (4, 3), (5, 3)):
        for stride in (1, 2, 3):
            yield d.case((9, 10), 8, 5, kernel, stride=(stride, 1), padding=(kernel[0] // 2, 1))
    for kernel, stride, padding in (((3, 3), (1, 2), (1, 1)), ((3, 4), (1, 1), (1, 1)),
                                    ((3, 3), (1, 1), (0, 6)), ((3, 3), (5, 1), (4, 2))):
        yield d.case((7, 9), 16, 4, kernel, stride=stride, padding=padding)
    yield d.case((6, 9), 8, 6, batch=3, limits=(-90, 80))
    yield d.case((6, 9), 8, 7, bias=False, limits=(-128, 100))
    yield d.case((40, 30), 16, 6)
    yield d.case((5, 5), 6, 4)


def neighbours():
    """Yield calls with various columns and strides: rows of words and of bytes, and remainders of
    four."""
    d = Draw(7)
    for channels in (1, 2, 3, 4, 5, 7, 8, 20):
        for kernel in ((3, 3), (2, 2), (1, 5), (10, 4), (4, 1), (3, 6)):
            for stride in ((1, 1), (2, 2), (1, 3), (3, 1)):
                padding = tuple(int(d.rng.integers(0, k)) for k in kernel)
                size = tuple(int(d.rng.integers(6, 13)) for _ in kernel)
                yield d.case((max(size[0], kernel[0]), size[1]), channels, int(d.rng.integers(1, 8)),
                             kernel, int(d.rng.choice([-127, 0, 5, 128])), stride=stride,
                             padding=padding, bias=bool(d.rng.integers(0, 4)),
                             limits=(-100, 90) if channels == 5 else (-128, 127))
    yield d.case((50, 41), 3, 9, stride=(2, 2), batch=2)
    yield d.case((7, 2), 4, 4)
    yield d.case((9, 3), 16, 5, stride=(2, 2))


def pixels():
    """Yield 1x1 calls: depths and numbers of pixels around the ends of steps, pairs and bands."""
    d = Draw(8)
    for channels in (4, 8, 12, 28, 32, 36, 64, 100, 256):
        for size in ((1, 2), (5, 5), (7, 1), (8, 6), (9, 13), (16, 16), (23, 11)):
            stride = tuple(map(int, d.rng.integers(1, 4, 2))) if channels < 64 else (1, 1)
            yield d.case(size, channels, int(d.rng.integers(2, 10)), (1, 1),
                         int(d.rng.choice([-127, 0, 5, 128])), stride=stride, padding=(0, 0),
                         bias=bool(d.rng.integers(0, 4)), limits=(-100, 90) if channels == 12 else
                         (-128, 127))
    yield d.case((40, 41), 16, 7, (1, 1), padding=(0, 0), batch=2)
    yield d.case((13, 9), 32, 1, (1, 1), padding=(0, 0))
    yield d.case((13, 9), 30, 4, (1, 1), padding=(0, 0))
    yield d.case((13, 9), 32, 4, (1, 1), padding=(1, 2))


@pytest.mark.parametrize("board", BOARDS)
@pytest.mark.parametrize("pack_weights", [False, True])
@pytest.mark.parametrize("shapes", [shapes, neighbours, pixels])
def test_shapes(shapes, board, pack_weights):
    cases = list(shapes())
    if pack_weights:
        cases = [Case(case.operator, *case.arguments, pack_weights=True) for case in cases]
    assert_same(board, cases)


def extremes():
    d = Draw(2)
    for value in (-128, 127):
        for offset in (-127, 128):
            for weights in ((-128, -128, -128), (127, 127, 127), (-128, 127, -128), (127, -128, 127)):
                w = np.empty((4, 3, 3, 64), np.int8)
                w[:] = np.array(weights)[:, None]
                w[1] = d.int8(3, 3, 64)
                x = np.full((1, 64, 5, 6), value, np.int8)
                x[..., ::2] = -1 - value
                for right in (1, 12, 20):
                    yield convolution(x, w, [1 << 28, -(1 << 28), 0, 77], INT32_MAX, -right, offset)


def boundaries():
    """Yield sums next to those at which outputs change, of both signs."""
    d = Draw(3)
    n = 300
    x = d.int8(1, 4, 4, 4)
    for right in (*range(1, 21), 22, 30, 31):
        for out_offset in (-128, 0, 127):
            multipliers = d.rng.integers(1 << 30, INT32_MAX, n)
            multipliers[:5] = (1, 1 << 16, 1 << 30, INT32_MAX, 0x40008000)
            bias = np.round((d.rng.integers(-300, 300, n) + 0.5) * 2.0 ** (31 + right) / multipliers)
            bias = (bias + d.rng.integers(-2, 3, n)).clip(-(1 << 29), (1 << 29) - 1)
            yield convolution(x, np.zeros((n, 1, 3, 4), np.int8), bias, multipliers, -right,
                              padding=(0, 1), out_offset=out_offset)


def other_parameters():
    """Yield multipliers, shifts and biases that the variant does not support."""
    d = Draw(4)
    x, w = d.int8(1, 8, 6, 6), d.int8(4, 3, 3, 8)
    for multiplier, shift, bias in ((1 << 30, 0, 5), (1 << 30, 3, 5), (1 << 30, -25, 5),
                                    (-5, -8, 5), (1 << 30, -10, (1 << 31) - 1)):
        yield convolution(x, w, [bias, 1, 2, 3], [1 << 30, multiplier, 1 << 30, 1 << 30],
                          [-8, shift, -8, -8])


def strided(cases):
    """Return cases with a stride of two columns, which other loops compute."""
    def all_of_them():
        for case in cases():
            arguments = list(case.arguments)
            x, w, out = arguments[0].array, arguments[1].array, arguments[-1].array
            padding = arguments[4]
            width = (x.shape[3] + 2 * padding[1] - w.shape[2]) // 2 + 1
            arguments[3] = [1, 2]
            arguments[-1] = channels_last(np.zeros((*out.shape[:3], width), np.int8))
            yield Case(case.operator, *arguments)

    all_of_them.__name__ = f"strided_{cases.__name__}"
    return all_of_them


def of_pixels(cases):
    """Return 1x1 cases with the same weights and values, on several pixels."""
    def all_of_them():
        for case in cases():
            arguments = list(case.arguments)
            w = arguments[1].array.reshape(len(arguments[1].array), 1, 1, -1)
            x = np.resize(arguments[0].array, (1, w.shape[3], 32, 9))
            arguments[0], arguments[1] = channels_last(x), constant(w, np.int8)
            arguments[4], arguments[-1] = [0, 0], channels_last(np.zeros((1, len(w), 32, 9), np.int8))
            yield Case(case.operator, *arguments)

    all_of_them.__name__ = f"pixels_{cases.__name__}"
    return all_of_them


VALUES = [extremes, boundaries, other_parameters]


@pytest.mark.parametrize("board", BOARDS)
@pytest.mark.parametrize("cases", [*VALUES, *map(strided, VALUES), *map(of_pixels, VALUES)])
def test_values(board, cases):
    for pack_weights in (False, True):
        assert_same(board, [Case(case.operator, *case.arguments, pack_weights=pack_weights)
                            for case in cases()])


@pytest.mark.parametrize("options, kind", [
    ({"channels": 32}, " 3 wide"), ({"channels": 16, "stride": (2, 2)}, ""),
    ({"channels": 3, "stride": (2, 2)}, " odd channels"),
    ({"channels": 64, "kernel": (1, 1), "padding": (0, 0)}, " 1x1")])
def test_any_scratch(options, kind):
    """Scratch memory ranges from the minimum to more than the kernel uses. The maximum saves a tenth of
    the cycles (an estimate), with the same bytes. kind: see cycles.operator_of."""
    d = Draw(5)
    model = d.case((32, 18), outputs=6, **options)
    sizes = [*range(0, 16000, 700), 20000]
    cases = [Case(model.operator, *model.arguments, given=given) for given in sizes]
    assert_same(M4, cases)
    counts = [result.instructions for result in call_on_board(M4, cases)]
    assert counts[-1] <= 1.02 * min(counts)
    minimum, maximum = (count * factors("cortex-m4", model.operator + kind, RunConditions(
        has_less_temp=has_less))[1] for count, has_less in ((counts[0], True), (counts[-1], False)))
    assert maximum < 0.9 * minimum


@pytest.mark.parametrize("board", [M4, "mps2-an505"])
def test_rows_of_four_use_no_blocks_of_three(board):
    """Two blocks would compute six outputs of each row of four: 10 to 20 % more cycles than without
    scratch memory, if pixels are words."""
    d = Draw(11)
    for channels, kernel in ((16, 3), (64, 3), (32, 5)):
        case = d.case((8, 8), channels, outputs=16, kernel=(kernel, kernel), stride=(2, 2),
                      padding=(kernel // 2, kernel // 2))
        cases = [Case(case.operator, *case.arguments, given=given) for given in (0, 32768)]
        assert_same(board, cases)
        minimum, maximum = [result.instructions for result in call_on_board(board, cases)]
        assert maximum <= 1.001 * minimum
        assert preferred_scratch(case, board) < 16 * 1024


def preferred_scratch(case, board):
    """Return the bytes that the kernel prefers on a board, or the bytes that it needs if these are
    more."""
    context = case.call.context
    case.on_twin()
    core = PREFERRING_CORES[load_board(board).core]
    assert context.check(case.pack_weights, preferring_core=core) == 0
    return max(context.preferred_scratch(), context.scratch_needed())


def test_preferred_scratch_is_enough():
    d = Draw(6)
    for size, channels, stride, kernel in (((32, 32), 16, 1, 3), ((8, 8), 64, 1, 3), ((5, 40), 4, 1, 3),
                                           ((32, 32), 16, 2, 3), ((96, 96), 3, 2, 3),
                                           ((25, 5), 64, 1, 1), ((127, 8), 16, 1, 1)):
        for pack_weights in (False, True):
            case = d.case(size, channels, 8, (kernel, kernel), pack_weights=pack_weights,
                          stride=(stride, stride), padding=(kernel // 2, kernel // 2))
            preferred = preferred_scratch(case, M4)
            some, more, less = call_on_board(M4, [
                Case(case.operator, *case.arguments, pack_weights=pack_weights, given=given)
                for given in (preferred, 65536, preferred - 64)])
            assert some.instructions == more.instructions <= less.instructions
            assert pack_weights or some.instructions < less.instructions


@pytest.mark.parametrize("board", ["mps2-an385-m0plus", "mps2-an385"])
@pytest.mark.parametrize("size, channels, outputs, kernel", [
    ((8, 8), 64, 64, 3), ((16, 16), 32, 32, 3), ((16, 16), 16, 16, 3), ((25, 5), 64, 64, 1),
    ((7, 6), 8, 100, 3), ((12, 12), 3, 200, 3), ((4, 4), 64, 4, 3), ((8, 4), 64, 20, 3)])
def test_cores_without_variants_have_preferred_scratch_too(board, size, channels, outputs, kernel):
    case = Draw(7).case(size, channels, outputs, (kernel, kernel),
                        padding=(kernel // 2, kernel // 2))
    preferred = preferred_scratch(case, board)
    cases = [Case(case.operator, *case.arguments, given=given)
             for given in (0, preferred // 2, preferred - 4, preferred, preferred + 4, 65536)]
    assert_same(board, cases)
    minimum, _, _, *enough = [result.instructions for result in call_on_board(board, cases)]
    assert enough[0] <= minimum and max(enough) <= 1.001 * min(enough)
    assert channels < 64 or kernel == 1 or outputs < 24 or enough[0] < 0.95 * minimum


@pytest.mark.parametrize("size, channels, outputs, kernel, stride", [
    ((4, 1), 256, 64, 1, 1), ((6, 1), 256, 64, 1, 1), ((4, 4), 256, 64, 1, 1), ((4, 4), 64, 32, 1, 1),
    ((8, 4), 64, 64, 1, 1), ((49, 10), 3, 32, 3, 2), ((32, 32), 3, 32, 3, 1), ((32, 32), 3, 16, 3, 2),
    ((32, 32), 1, 64, 3, 2), ((9, 9), 32, 64, 3, 2), ((20, 20), 32, 64, 2, 2)])
def test_packed_weights_are_not_slower_with_more_scratch(size, channels, outputs, kernel, stride):
    case = Draw(9).case(size, channels, outputs, (kernel, kernel), bias=False, stride=(stride, stride),
                        padding=(kernel // 2, kernel // 2))
    cases = [Case(case.operator, *case.arguments, pack_weights=pack_weights, given=given)
             for pack_weights, given in ((True, 0), (True, 32768), (False, 32768))]
    assert_same(M4, cases)
    minimum, maximum, plain = [result.instructions for result in call_on_board(M4, cases)]
    assert maximum <= 1.01 * minimum and maximum <= 1.02 * plain


@pytest.mark.parametrize("channels, outputs, kernel", [(64, 32, 3), (128, 64, 1), (32, 4, 3)])
def test_packed_weights_use_at_most_the_preferred_scratch(channels, outputs, kernel):
    """On ARMv6-M, other convolutions make the packed weights in the temp memory. A scratch tensor of
    the program changes nothing."""
    board = "mps2-an385-m0plus"
    case = Draw(10).case((8, 8), channels, outputs, (kernel, kernel),
                         padding=(kernel // 2, kernel // 2))
    arguments = list(case.arguments)
    depth = kernel * kernel * channels
    arguments[-2] = Tensor(np.zeros(4 * depth, np.uint8), scratch=True)
    cases = [Case(case.operator, *arguments, pack_weights=True, given=given) for given in (0, 65536)]
    assert preferred_scratch(cases[0], board) == 0
    assert_same(board, cases)
    none, maximum = [result.instructions for result in call_on_board(board, cases)]
    assert maximum <= none <= maximum + 5  # more scratch memory has room for a channel's numbers, too


@pytest.mark.parametrize("name, forms", [
    ("int8_resnet8", {"winograd", "pointwise", "im2row"}),
    ("int8_mobilenet_v1_025", {"pointwise", "im2row"}),
    ("int8_ds_cnn", {"pointwise", "im2row"}), ("int8_deep_autoencoder", set())])
def test_which_models_gain(name, forms):
    program = open_program(benchmark_store.load(name).pte(M4))
    assert operators.conv_variants(program) == forms


# ---- models, compiled methods, and builds without the variants


def executed(file, **options):
    """Return the instructions of a run of resnet8 with correct outputs."""
    model = benchmark_store.load("int8_resnet8")
    result = running.run(Request(file, "int8_resnet8", model.inputs, pool_size=1 << 20, bare=True,
                                 **options), M4)
    assert (result.code, result.message) == (0, "")
    assert same_bits(result.outputs[0], model.expected[0])
    return result.instructions["execute"]


def test_a_ptm_file_uses_variants_with_packed_weights_only():
    model = benchmark_store.load("int8_resnet8").pte(M4)
    ptm = ptm_writer.compile_ptm(model, (), "cortex-m4").data
    fast, slow = executed(ptm), executed(ptm, temp_size=2048)
    assert fast < executed(model) and fast < 0.88 * slow


def test_a_ptm_file_with_some_packed_calls_has_preferred_scratch_for_the_others():
    core = "cortex-m0plus"
    model = benchmark_store.load("int8_resnet8").pte("mps2-an385-m0plus")
    full = ptm_writer.compile_ptm(model, (), core)
    (method, calls), = full.can_pack.items()
    some = ptm_writer.compile_ptm(model, (), core, {method: {min(calls)}})
    preferred = [preferred_temp(load_with_exact_memories(open_program(file), method), core)
              for file in (model, some.data, full.data)]
    assert preferred[0] == preferred[1] > preferred[2]


@pytest.fixture(scope="module")
def firmware_without(tmp_path_factory):
    output = tmp_path_factory.mktemp("without") / "fw.elf"
    program = open_program(benchmark_store.load("int8_resnet8").pte(M4))
    entry = selective.build(M4, {"int8_resnet8": program}, output, bare=True,
                            optimize=LEVELS["size"])
    with_them = selective.build(M4, {"int8_resnet8": program}, output.with_name("with.elf"), bare=True)
    assert with_them.flash - entry.flash == pytest.approx(7176, abs=400)
    assert with_them.kernels.kernels - entry.kernels.kernels == pytest.approx(7176, abs=400)
    return output


@pytest.mark.thorough
def test_a_build_without_the_forms(firmware_without):
    model = benchmark_store.load("int8_resnet8").pte(M4)
    for pack in (False, True):
        slow = executed(model, firmware=firmware_without, pack_weights=pack)
        assert slow == pytest.approx(executed(model, temp_size=2048, pack_weights=pack), rel=0.01)
        assert executed(model, pack_weights=pack) < 0.8 * slow
