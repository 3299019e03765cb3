"""Make the program of the tests of faults. It counts its executions in a buffer, then looks up an index
of its input, so that it can fail after it has changed its state."""

from support.flatbuffer_builder import bool_value, int_value
from support.programs import call, delegate_call, plan, program, tensor

INT, LONG = 3, 4
COUNT, INDEX, TABLE, FOUND, SEEN, FALSE, PADDING = range(7)


def named(name, value):
    value["val"][1]["extra_tensor_info"] = {"fully_qualified_name": name}
    return value


def faulty():
    """Return the program.

    - Input 0: index, int64[up to 2], unplanned.
    - Buffers: count, int32[1]; table, float32[3, 2], unplanned.
    - Instruction 0, a delegate, adds 1 to count. Instruction 1 looks up the rows of the table, which
      may lack such an index. Instruction 2, another delegate, copies count.
    - Outputs: the rows, unplanned; the count.
    """
    values = [
        named("count", tensor([1], 0, dtype=INT)),
        tensor([2], dtype=LONG, shape_dynamism=1),
        named("table", tensor([3, 2])),
        tensor([2, 2], shape_dynamism=1),
        tensor([1], 16, dtype=INT),
        bool_value(False), int_value(-1),
    ]
    instructions = [delegate_call(0, COUNT, COUNT),
                    call(0, TABLE, INDEX, PADDING, FALSE, FALSE, FOUND, FOUND),
                    delegate_call(1, COUNT, SEEN)]
    found = plan(values, instructions, ["aten::embedding.out"], [INDEX], [FOUND, SEEN], [32])
    found["delegates"] = [{"id": "Counter", "processed": {"location": 0, "index": i}}
                          for i in range(2)]
    return program(found, backend_delegate_data=[{"data": [1]}, {"data": [0]}])
