"""Test memory plans: random programs compute the same values in the new plan as in the old one."""

import random

import numpy as np
import pytest
from picotorch.export.planning import Step, find_blocks, minimum, plan

pytestmark = pytest.mark.check

ALIGNMENT = 16


def planned(places, inputs, steps, outputs, always=(), **longer):
    blocks = find_blocks(places, inputs, steps, outputs, always, **longer)
    offsets, size = plan(places, blocks, ALIGNMENT)
    new = {value: (offsets[value], places[value][1]) for value in offsets}
    assert all(offset + count <= size for offset, count in new.values())
    assert minimum(blocks, ALIGNMENT) <= size and size % ALIGNMENT == 0
    return new, size


def trace(places, inputs, steps, outputs, always=(), executions=2):
    """Return the result of every read. Written bytes depend on all bytes that were read before."""
    size = max(offset + count for offset, count in places.values())
    memory, seen = np.zeros(size, np.uint64), []
    state = np.uint64(1)

    def view(value):
        offset, count = places[value]
        return memory[offset : offset + count]

    def write(value):
        nonlocal state
        state = np.uint64(hash((int(state), value)) & 0xFFFFFFFFFFFF)
        view(value)[:] = np.arange(places[value][1], dtype=np.uint64) + state

    def read(value):
        nonlocal state
        seen.append(view(value).tobytes())
        state = np.uint64(hash((int(state), seen[-1])) & 0xFFFFFFFFFFFF)

    for value in always:
        write(value)
    for _ in range(executions):
        for value in inputs:
            write(value)
        for step in steps:
            for value in step.reads:
                read(value)
            for value in [*step.scratch, *step.writes]:
                write(value)
        for value in outputs:
            read(value)
    return seen


def random_program(seed):
    """Return values at random places of a small memory, so that many overlap bytes that another one
    wrote."""
    generator = random.Random(seed)
    values = list(range(generator.randint(2, 14)))
    spread = generator.choice([4, 12, 40])
    places = {value: (16 * generator.randrange(spread), generator.choice([0, 1, 16, 40, 64]))
              for value in values}
    some = [generator.choice(values) for _ in range(2)]
    inputs = sorted(set(some[: generator.randint(0, 2)]))
    written = list(inputs)
    steps = []
    for _ in range(generator.randint(1, 12)):
        # a program reads bytes that it wrote, and sometimes bytes that it never wrote
        known = written if generator.random() < 0.9 and written else values
        step = Step([generator.choice(known) for _ in range(generator.randint(0, 3))],
                    [generator.choice(values) for _ in range(generator.randint(0, 2))])
        used = {*step.reads, *step.writes}
        alone = [value for value in values
                 if value not in used and not any(_overlap(places, value, other) for other in used)]
        if alone and generator.random() < 0.3:
            step.scratch = [generator.choice(alone)]
        step.writes = _apart(places, step.writes)
        written += step.writes
        steps.append(step)
    return places, inputs, steps, sorted({generator.choice(values) for _ in range(2)})


def _overlap(places, one, other):
    (a, n), (b, m) = places[one], places[other]
    return a < b + m and b < a + n


def _apart(places, values):
    """Return values that overlap no other value of the list, since outputs of one instruction share no
    byte."""
    kept = []
    for value in values:
        if not any(_overlap(places, value, other) for other in kept):
            kept.append(value)
    return kept


@pytest.mark.parametrize("seed", range(400))
def test_every_read_sees_the_same_bytes(seed):
    places, inputs, steps, outputs = random_program(seed)
    new, _ = planned(places, inputs, steps, outputs)
    if any(size for _, size in new.values()):
        assert trace(new, inputs, steps, outputs) == trace(places, inputs, steps, outputs)


@pytest.mark.parametrize("seed", range(400))
def test_a_buffer_that_was_read_within_can_be_read_at_the_end(seed):
    """One value becomes an output. The instruction that read it is removed, but its bytes remain."""
    places, inputs, steps, outputs = random_program(seed)
    ended = random.Random(seed).randrange(len(steps))
    fresh = [value for step in steps[:ended] for value in step.writes if places[value][1]]
    if not fresh:
        return
    value = fresh[-1]
    steps.insert(ended, Step([value]))
    try:
        new, _ = planned(places, inputs, steps, outputs, late=[value])
    except ValueError:
        return
    if any(value in step.reads for step in steps[ended + 1 :]):
        return  # the value is read again later
    before = trace(places, inputs, steps, [value], executions=1)
    number = sum(len(step.reads) for step in steps[:ended])
    assert trace(new, inputs, steps, [value], executions=1)[-1] == before[number]


def test_a_value_that_others_of_its_block_overwrite_is_rejected():
    places = {0: (0, 16), 1: (16, 16), 2: (16, 16), 3: (0, 32), 4: (0, 32)}
    steps = [Step([0], [1]), Step([3]), Step([1]), Step([0], [2]), Step([4])]
    assert planned(places, [0], steps, [4])[1] == 32
    for longer in ({"late": [1]}, {"early": [2]}):
        with pytest.raises(ValueError):
            planned(places, [0], steps, [4], **longer)


def test_an_output_that_lives_longer_gets_memory_of_its_own():
    places = {0: (0, 16), 1: (16, 16), 2: (16, 16)}
    steps = [Step([0], [1]), Step([1]), Step([0], [2]), Step([2])]
    new, size = planned(places, [0], steps, [], late=[1, 2])
    assert size == 48 and new[1] != new[2]


def test_an_input_that_lives_longer_gets_memory_of_its_own():
    places = {0: (0, 16), 1: (16, 16), 2: (16, 16)}
    steps = [Step([], [1]), Step([1], [0]), Step([], [2]), Step([0, 2])]
    new, size = planned(places, [], steps, [], early=[1, 2])
    assert size == 48 and new[1] != new[2]


def test_a_chain_needs_two_neighbours_at_a_time():
    places = {i: (100 * i, 96) for i in range(6)}
    steps = [Step([i], [i + 1]) for i in range(5)]
    _, size = planned(places, [0], steps, [5])
    assert size == 192


def test_a_large_input_makes_way():
    places = {0: (0, 4096), 1: (4096, 1024), 2: (0, 512)}
    assert planned(places, [0], [Step([0], [1]), Step([1], [2])], [2])[1] == 5120
    assert planned({1: places[1], 2: places[2]}, [1], [Step([1], [2])], [2])[1] == 1536


def test_a_view_stays_with_its_source():
    places = {0: (0, 64), 1: (64, 64), 2: (80, 16), 3: (0, 16)}
    new, _ = planned(places, [0], [Step([0], [1]), Step([2], [3])], [3])
    assert new[2][0] - new[1][0] == 16


def test_an_output_in_the_place_of_an_input_stays_there():
    places = {0: (0, 64), 1: (0, 64), 2: (64, 64)}
    new, _ = planned(places, [0], [Step([0], [1]), Step([1], [2])], [2])
    assert new[0] == new[1] != new[2]


def test_scratch_lives_for_one_instruction():
    places = {0: (0, 64), 1: (64, 64), 2: (128, 256), 3: (384, 64), 4: (448, 256)}
    steps = [Step([0], [1], [2]), Step([1], [3], [4])]
    new, size = planned(places, [0], steps, [3])
    assert new[2] == new[4] and size == 384


def test_memory_that_outlives_an_execution_is_not_shared():
    places = {0: (0, 16), 1: (16, 16), 2: (32, 16), 3: (48, 16)}
    steps = [Step([0], [1]), Step([1, 3], [2]), Step([2], [3])]
    new, size = planned(places, [0], steps, [2], always=[3])
    assert size == 48
    assert [value for value in new if new[value] == new[3]] == [3]
    # even without `always`: buffer 3 is read before it is written
    assert planned(places, [0], steps, [2])[1] == 48


def test_a_buffer_that_is_written_early_is_kept_until_the_end():
    places = {0: (0, 16), 1: (16, 16), 2: (32, 64), 3: (96, 64)}
    steps = [Step([0, 3], [1, 3]), Step([1], [2])]
    assert planned(places, [0], steps, [2], always=[3])[1] == 144
