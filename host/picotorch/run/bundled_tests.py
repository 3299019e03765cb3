"""Run every test set of a bundled program and compare its outputs: picotorch run MODEL.bpte."""

import dataclasses
from typing import Any

import click

from picotorch import Error, MethodMeta
from picotorch.errors import INVALID_ARGUMENT, fail

from ..host import show, twin
from ..host.inputs import checked_inputs
from ..host.report import MERGED, Report
from ..host.request import Request, Result
from . import running
from .bundled import BundledProgram, BundledTensor, Case, Value
from .report import show_result
from .verifying import Verdict, verify

# The defaults of ExecuTorch's verify_method_outputs


@dataclasses.dataclass(frozen=True)
class TestedMethod(Report):
    """A method, with its run and a verdict for each of its test sets."""

    result: Result = dataclasses.field(metadata=MERGED)
    test_sets: list[Verdict]


@dataclasses.dataclass(frozen=True)
class TestedProgram(Report):
    """A bundled program. passed: all test sets of all methods passed."""

    model: str
    board: str
    rtol: float
    atol: float
    passed: bool
    methods: list[TestedMethod]


def run(bundle: BundledProgram, method: str | None, board: str, rtol: float, atol: float,
        template: Request) -> TestedProgram:
    """Load each method with test sets, or the requested one, and execute the sets one by one.

    template: the fields that all requests share, such as the sizes of memories. Raises InvalidArgument
    without a test set, NotFound without such a method.
    """
    methods = bundle.methods() if method is None else [method]
    cases = {name: [case for case in bundle.sets if case.method == name] for name in methods}
    if not cases or not all(cases.values()):
        raise fail(INVALID_ARGUMENT, "no test set is bundled" if not cases else
                   f"no test set is bundled for it; there are some for {', '.join(bundle.methods())}",
                   method)
    program = twin.open_program(template.model)
    tested = [_run_method(program.method_meta(name), cases[name], board, rtol, atol,
                          dataclasses.replace(template, method=name)) for name in methods]
    passed = all(verdict.passed for method in tested for verdict in method.test_sets)
    return TestedProgram(template.name, board, rtol, atol, passed, tested)


def _run_method(meta: MethodMeta, cases: list[Case], board: str, rtol: float, atol: float,
                request: Request) -> TestedMethod:
    verdicts: dict[int, Verdict] = {}
    checked: list[Case] = []
    inputs: list[list[Any]] = []
    for case in cases:
        try:
            inputs.append(checked_inputs(meta, [_input_of(value) for value in case.inputs]))
            checked.append(case)
        except Error as error:
            verdicts[case.index] = Verdict(case.method, case.index, False, str(error))
    result = Result(request.name, request.method, board)
    if checked:
        request.inputs, request.further = inputs[0], inputs[1:]
        result = running.run(request, board)
    outputs = [result.outputs, *result.further] if result.outputs else []
    for number, case in enumerate(checked):
        if number < len(outputs):
            verdicts[case.index] = verify(case, outputs[number], rtol, atol)
        else:
            verdicts[case.index] = Verdict(
                case.method, case.index, False,
                f"{result.status} (0x{result.code:02X}): {result.message}")
    return TestedMethod(result, [verdicts[case.index] for case in cases])


def _input_of(value: Value) -> Any:
    return value.array() if isinstance(value, BundledTensor) else value


def show_text(tested: TestedProgram) -> None:
    """Print each method's log and ExecuTorch's line for each set, then a table of all sets."""
    for method in tested.methods:
        show_result(method.result)
        click.echo()
        for verdict in method.test_sets:
            _show_verdict(verdict)
    show.heading("Test sets")
    show.table(["method", "set>", "result", "max absolute error>", "max relative error>"], [
        [verdict.method, verdict.index, _word(verdict), _error(verdict.max_absolute_error),
         _error(verdict.max_relative_error)] for method in tested.methods
        for verdict in method.test_sets])


def _show_verdict(verdict: Verdict) -> None:
    level = "I" if verdict.passed else "E"
    if verdict.message:
        show.line(f"E [picotorch] {verdict.message}")
    show.line(f"{level} [picotorch] TEST: BundleIO index[{verdict.index}] "
              f"Test_result: {_word(verdict)}")


def _word(verdict: Verdict) -> str:
    return "PASS" if verdict.passed else "FAIL"


def _error(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"
