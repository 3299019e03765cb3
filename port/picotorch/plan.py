"""Parts of an execution plan: a method as the program's tables give it."""

from .errors import bad_program
from .schema import EXECUTION_PLAN_NON_CONST_BUFFER_SIZES


def evalue(reader, values, index):
    """Position of value `index`. Raises InvalidProgram."""
    if not 0 <= index < reader.length(values):
        raise bad_program("there is no such value", "value", index)
    return reader.item(values, index)


def planned_buffers(reader, plan):
    """How many planned buffers a plan has; entry 0 of the file's list is reserved."""
    count = reader.length(reader.table(plan, EXECUTION_PLAN_NON_CONST_BUFFER_SIZES))
    return count - 1 if count else 0


def planned_buffer_size(reader, plan, index):
    size = reader.i64_item(reader.table(plan, EXECUTION_PLAN_NON_CONST_BUFFER_SIZES),
                           index + 1)
    if size < 0:
        raise bad_program("has a negative size", "planned buffer", index)
    return size
