"""Find the operator of a float graph that the Cortex-M flow or the twin rejects in int8.

The operator then computes in float.

Importing it imports torch.
"""

import contextlib
import re
import traceback
from collections.abc import Iterator

import torch

from picotorch import Error
from picotorch.module import load_with_exact_memories

from ..host.twin import open_program
from .lower_float import Lowered, source_name


class Refused(Exception):  # noqa: N818
    """Operators that int8 rejects. names: their nodes in the float graph, which are to stay in float.

    error: the exception. lowered: the program that the twin rejected, None if the flow made none.
    """

    def __init__(self, names: set[str], error: Exception, lowered: Lowered | None = None) -> None:
        super().__init__(str(error))
        self.names, self.error, self.lowered = names, error, lowered


@contextlib.contextmanager
def of_nodes(graph: torch.fx.GraphModule) -> Iterator[None]:
    """Replace an exception by Refused, with the node of this float graph that was being lowered.

    Without such a node the exception stays as it is.
    """
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:
        names = _calls(graph)
        node = next((one for one in _nodes_at_work(error) if source_name(one) in names), None)
        if node is None:
            raise
        raise Refused({source_name(node)}, error) from error


def check(lowered: Lowered) -> None:
    """Load a program on the twin.

    Raises Refused with the value of an instruction that cannot be loaded. Other errors are the
    program's, whatever its dtypes.
    """
    try:
        meta = open_program(lowered.program).method_meta("forward")
        if not meta.missing_operators():
            load_with_exact_memories(open_program(lowered.program), "forward")
    except Error as error:
        number = re.search(r"\binstruction (\d+)\b", error.message)
        part = number and lowered.parts.get(int(number[1]))
        if part and part.node in _calls(lowered.reference):
            raise Refused({part.node}, error, lowered) from None


def _calls(graph: torch.fx.GraphModule) -> set[str]:
    return {node.name for node in graph.graph.nodes if node.op == "call_function"}


def _nodes_at_work(error: BaseException | None) -> Iterator[torch.fx.Node]:
    """Yield the nodes in the frames of an exception's traceback, the innermost frame first."""
    while error is not None:
        for frame, _ in reversed(list(traceback.walk_tb(error.__traceback__))):
            for name in ("node", "n", "target_node"):
                node = frame.f_locals.get(name)
                if isinstance(node, torch.fx.Node) and node.op == "call_function":
                    yield node
        error = error.__cause__ or error.__context__
