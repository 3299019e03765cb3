"""Test picotorch::gru and lstm: a layer has the bytes of its steps, and rejects unsuitable
arguments."""

import numpy as np
import pytest
from support.kernel_call import Call, KernelError, Tensor, call

pytestmark = pytest.mark.check

GRU, LSTM = "picotorch::gru.out", "picotorch::lstm.out"
GATES = {GRU: 3, LSTM: 4}
BATCH_FIRST, REVERSE, SEQUENCE, STATES = 7, 8, 9, 10  # arguments


def random_layer(random, operator, steps, batch, width, hidden, biases=True, int8=False,
                 batch_first=False, reverse=False, sequence=True, states=False):
    """Return the arguments of a layer, without outputs."""
    rows = GATES[operator] * hidden

    def floats(*sizes):
        return np.asarray(random.normal(size=sizes) / 2, np.float32)

    weights = [floats(rows, width), floats(rows, hidden)]
    scales = [None, None]
    if int8:
        weights = [random.integers(-127, 128, one.shape).astype(np.int8) for one in weights]
        scales = [np.asarray(random.uniform(1, 9, rows) / 1024, np.float32) for _ in range(2)]
    shape = (batch, steps, width) if batch_first else (steps, batch, width)
    return [floats(*shape), *weights, *([floats(rows), floats(rows)] if biases else [None, None]),
            *scales, batch_first, reverse, sequence,
            *(floats(batch, hidden) if states else None for _ in range(1 if operator == GRU else 2))]


def outputs(operator, arguments):
    given, hidden = arguments[0], arguments[2].shape[1]
    batch, steps = given.shape[:2] if arguments[BATCH_FIRST] else given.shape[1::-1]
    steps *= arguments[SEQUENCE]
    output = (batch, steps, hidden) if arguments[BATCH_FIRST] else (steps, batch, hidden)
    states = [(batch, hidden)] * (1 if operator == GRU else 2)
    return [np.full(sizes, 77, np.float32) for sizes in (output, *states)]


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def layer(operator, given, *rest):
    """Return output, h_n and perhaps c_n, in float64."""
    *weights, batch_first, reverse, sequence = rest[: SEQUENCE]
    w_ih, w_hh, b_ih, b_hh = (0 if one is None else one.astype(np.float64) for one in weights[:4])
    scales = [1 if one is None else one.astype(np.float64)[:, None] for one in weights[4:]]
    w_ih, w_hh = w_ih * scales[0], w_hh * scales[1]
    given = given.swapaxes(0, 1) if batch_first else given
    states = [np.zeros((given.shape[1], w_hh.shape[1])) if one is None else one.astype(np.float64)
              for one in rest[SEQUENCE:]]
    found = []
    for x in given[::-1] if reverse else given:
        by_x, by_h = x @ w_ih.T + b_ih, states[0] @ w_hh.T + b_hh
        if operator == GRU:
            x, h = (np.split(one, 3, axis=1) for one in (by_x, by_h))
            r, z = sigmoid(x[0] + h[0]), sigmoid(x[1] + h[1])
            n = np.tanh(x[2] + r * h[2])
            states = [(1 - z) * n + z * states[0]]
        else:
            i, f, g, o = np.split(by_x + by_h, 4, axis=1)
            c = sigmoid(f) * states[1] + sigmoid(i) * np.tanh(g)
            states = [sigmoid(o) * np.tanh(c), c]
        found.append(states[0])
    output = np.zeros((len(given) * sequence, *states[0].shape))
    if sequence and found:
        output[:] = found[::-1] if reverse else found
    return [output.swapaxes(0, 1) if batch_first else output, *states]


def operators(name, *arguments):
    """Compute an operator of aten in float32."""
    *arguments, shape = arguments
    return call(f"aten::{name}.out", *arguments, np.zeros(shape, np.float32))


def linear(x, weight, bias):
    return operators("linear", x, weight, bias, (len(x), len(weight)))


def step_by_operators(operator, x, weights, states):
    """Compute a step with the operators into which ExecuTorch's exporter decomposes it."""
    w_ih, w_hh, b_ih, b_hh = weights
    shape, gates = states[0].shape, GATES[operator]

    def each(name, *arguments):
        scalars = [1] if name in ("add", "sub") else []
        return operators(name, *map(np.ascontiguousarray, arguments), *scalars, shape)

    x, h = (np.split(one, gates, axis=1)
            for one in (linear(x, w_ih, b_ih), linear(states[0], w_hh, b_hh)))
    if operator == GRU:
        r, z = (each("sigmoid", each("add", h[i], x[i])) for i in range(2))
        n = each("tanh", each("add", x[2], each("mul", h[2], r)))
        return [each("add", each("mul", each("sub", states[0], n), z), n)]
    i, f, g, o = (each("add", one, other) for one, other in zip(h, x, strict=True))
    c = each("add", each("mul", each("sigmoid", f), states[1]),
             each("mul", each("sigmoid", i), each("tanh", g)))
    return [each("mul", each("sigmoid", o), each("tanh", c)), c]


@pytest.mark.parametrize("operator", GATES)
@pytest.mark.parametrize("batch, width, hidden", [(1, 16, 32), (1, 3, 5), (2, 4, 8), (7, 1, 1)])
def test_a_layer_has_the_bytes_of_its_steps(operator, batch, width, hidden):
    arguments = random_layer(np.random.default_rng(hidden), operator, 9, batch, width, hidden,
                             states=True)
    output, *last = call(operator, *arguments, *outputs(operator, arguments))
    states = arguments[STATES:]
    for i, x in enumerate(arguments[0]):
        states = step_by_operators(operator, x, arguments[1:5], states)
        assert states[0].tobytes() == output[i].tobytes()
    assert [one.tobytes() for one in states] == [one.tobytes() for one in last]


@pytest.mark.parametrize("operator", GATES)
def test_the_last_states_go_on_where_the_first_call_ended(operator):
    arguments = random_layer(np.random.default_rng(1), operator, 8, 2, 3, 4)
    output, *last = call(operator, *arguments, *outputs(operator, arguments))
    first, second = ([arguments[0][i : i + 4], *arguments[1:]] for i in (0, 4))
    half, *states = call(operator, *first, *outputs(operator, first))
    second[STATES:] = states
    rest, *states = call(operator, *second, *outputs(operator, second))
    assert np.concatenate([half, rest]).tobytes() == output.tobytes()
    assert [one.tobytes() for one in states] == [one.tobytes() for one in last]


@pytest.mark.parametrize("operator", GATES)
def test_a_state_may_be_changed_in_place(operator):
    arguments = random_layer(np.random.default_rng(2), operator, 3, 2, 3, 4, states=True)
    expected = call(operator, *arguments, *outputs(operator, arguments))
    output, *_ = outputs(operator, arguments)
    states = [Tensor(one.copy(), scratch=True) for one in arguments[STATES:]]
    found = call(operator, *arguments[:STATES], *states, output,
                 *(Tensor(one.array, alias=one) for one in states))
    assert [one.tobytes() for one in found] == [one.tobytes() for one in expected]


@pytest.mark.parametrize("operator", GATES)
def test_without_steps_the_states_stay(operator):
    arguments = random_layer(np.random.default_rng(3), operator, 0, 2, 3, 4, states=True)
    output, *last = call(operator, *arguments, *outputs(operator, arguments))
    assert output.size == 0
    assert [one.tobytes() for one in last] == [one.tobytes() for one in arguments[STATES:]]


def refused(operator, arguments, outs=None, **changes):
    changed = dict(enumerate(arguments)) | {int(key[1:]): value for key, value in changes.items()}
    with pytest.raises(KernelError) as error:
        call(operator, *changed.values(), *(outs or outputs(operator, arguments)))
    assert error.value.stage == "check"
    return error.value.reason


@pytest.mark.parametrize("operator", GATES)
@pytest.mark.parametrize("int8", [False, True])
def test_weights_that_do_not_fit_are_rejected(operator, int8):
    arguments = random_layer(np.random.default_rng(4), operator, 3, 2, 5, 4, int8=int8, states=True)
    w_ih, w_hh, bias = arguments[1], arguments[2], arguments[3]
    for place, wrong in ((1, w_ih[:, :4]), (1, w_ih[:-1]), (1, w_ih[0]), (1, w_ih[:-GATES[operator]]),
                         (2, w_hh[:, :3]), (2, w_hh[:-1]), (2, w_hh[None]),
                         (0, arguments[0][0]), (0, arguments[0][:, :, :4])):
        assert "weights do not fit" in refused(operator, arguments,
                                               **{f"_{place}": np.ascontiguousarray(wrong)})
    for place in (3, 4, 5, 6) if int8 else (3, 4):
        assert "bias or scale" in refused(operator, arguments, **{f"_{place}": bias[:-1]})
        assert "bias or scale" in refused(operator, arguments, **{f"_{place}": bias[None]})
    for place in range(STATES, len(arguments)):
        for wrong in (arguments[place][:1], arguments[place][:, :3], arguments[place][None]):
            assert "state does not fit" in refused(operator, arguments,
                                                   **{f"_{place}": np.ascontiguousarray(wrong)})


@pytest.mark.parametrize("operator", GATES)
def test_dtypes_and_dim_orders_are_rejected(operator):
    arguments = random_layer(np.random.default_rng(5), operator, 3, 2, 5, 4, states=True)
    for place in (0, 1, 2, 3, 4, STATES):
        for dtype in (np.float64, np.float16, np.int8):
            wrong = arguments[place].astype(dtype)
            assert "takes float32" in refused(operator, arguments, **{f"_{place}": wrong})
    scale = np.ones(len(arguments[1]), np.float32)
    assert "int8 weights that have scales" in refused(operator, arguments, _5=scale)
    turned = Tensor(arguments[1], (1, 0))
    assert "contiguous" in refused(operator, arguments, _1=turned)
    output, *states = outputs(operator, arguments)
    assert "takes float32" in refused(operator, arguments, [output.astype(np.float64), *states])
    assert "contiguous" in refused(operator, arguments, [Tensor(output, (1, 0, 2)), *states])
    assert refused(operator, arguments, [output[:2], *states])
    assert refused(operator, arguments, [output, states[0][:1], *states[1:]])


@pytest.mark.parametrize("operator", GATES)
def test_steps_without_elements_are_limited(operator):
    arguments = random_layer(np.random.default_rng(6), operator, 1 << 17, 1, 0, 4, sequence=False)
    assert "too many steps" in refused(operator, arguments)


@pytest.mark.parametrize("operator", GATES)
def test_features_of_int8_weights_are_limited(operator):
    """The limit ensures that no call runs for long without a poll."""
    for width in (1 << 14, (1 << 14) + 1):
        arguments = random_layer(np.random.default_rng(7), operator, 1, 1, width, 1, int8=True)
        if width == 1 << 14:
            call(operator, *arguments, *outputs(operator, arguments))
        else:
            assert "too many features" in refused(operator, arguments)


def test_scratch_is_that_of_one_step():
    for operator, gates in GATES.items():
        arguments = random_layer(np.random.default_rng(6), operator, 9, 2, 3, 5)
        one = Call(operator, [*arguments, *outputs(operator, arguments)])
        assert one.check() == 0
        assert one.context.scratch_needed() == 2 * gates * 2 * 5 * 4
