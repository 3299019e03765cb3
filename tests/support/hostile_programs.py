"""Make programs of hostile calls: well-formed files that no exporter would write.

    assembled(Draw(data))      # the bytes of a program

Some hostile calls (hostile_calls.py) become instructions of one method. The bytes of `data` place their
tensors in the same planned buffers. So an instruction may overwrite bytes that another one has checked,
reads or depends on: indices, masks, scratch, conditions. Numbers become variables that other
instructions write, and jumps, moves, views and delegates stand between the calls. A few arguments and
entries of the plan then get wrong values.
"""

import collections
import functools
import json
import sys
import time
import traceback

import _picotorch
from picotorch import register_backend
from picotorch.host.operators import SCRATCH
from support import exercise
from support.flatbuffer_builder import (
    NULL_VALUE,
    bool_value,
    build,
    double_value,
    int_value,
    string_value,
)
from support.hostile_calls import Draw, HostileCall, HostileTensor, random_data
from support.kernel_call import Variable
from support.programs import names_result, operator

MAX_CALLS = 5
LENGTH = 1200  # maximum bytes from which a program is drawn
BACKEND = "Curious"
SECONDS = 30
MAKE = {bool: bool_value, int: int_value, float: double_value, str: string_value}
WRITERS = ("executorch_prim::add.Scalar", "executorch_prim::lt.Scalar", "executorch_prim::mul.Scalar",
           "executorch_prim::sub.Scalar", "executorch_prim::floordiv.int",
           "executorch_prim::truediv.Scalar")
OUTPUTS = "OoWNA"


class Assembly:
    def __init__(self, draw):
        self.draw = draw
        self.values, self.instructions, self.operators = [], [], []
        self.constants = [{"storage": b""}]  # 0: no constant
        self.indexes, self.tensors, self.variables, self.conditions = {}, [], [], []
        self.fixed = set()  # tensors that are constants
        self.alike = {}  # tensors by dtype, sizes and dim order
        self.inputs, self.outputs = [], []
        self.ends = [0, 0]  # ends of the planned buffers
        self.starting = []  # moves that write the initial values of tensors
        self.calls = []  # tensors by their ids
        for _ in range(1 + draw.below(MAX_CALLS)):
            self.calls.append(HostileCall(draw, changes=draw.pick((0, 0, 0, 1, 1, 3))))
            self.add_call(self.calls[-1])
        self.add_others()

    # ---- values

    def add_value(self, value):
        self.values.append(value)
        return len(self.values) - 1

    def index_of(self, argument, letter):
        """Return the index of the value of an argument of a call."""
        if argument is None:
            return self.add_value(NULL_VALUE)
        if isinstance(argument, HostileTensor):
            return self.tensor(argument, letter)
        if isinstance(argument, Variable):
            return self.variable()
        if isinstance(argument, list):
            return self.list(argument, letter.upper())
        if type(argument) is not str and self.draw.chance(20):
            return self.changing(argument)
        return self.add_value(MAKE[type(argument)](argument))

    def variable(self):
        draw = self.draw
        if self.variables and draw.chance(40):
            return draw.pick(self.variables)
        self.variables.append(self.add_value(int_value(draw.below(4))))
        return self.variables[-1]

    def changing(self, number):
        """Return a variable with the number as initial value, which an instruction changes to another
        one."""
        draw = self.draw
        index = self.add_value(MAKE[type(number)](number))
        self.variables.append(index)
        other = draw.int() if type(number) is int and draw.chance(30) else number
        operands = self.add_value(MAKE[type(number)](other)), self.add_value(int_value(0))
        writer = WRITERS[type(number) is bool]
        if draw.chance(20):
            operands, writer = (index, operands[0]), draw.pick(WRITERS)
        self.call(writer, [*operands, index], "SSN")
        return index

    def list(self, items, letter):
        if letter in "VWU":
            kind = "OptionalTensorList" if None in items else "TensorList"
            return self.add_value({"val": (kind, {"items": [
                -1 if item is None else self.tensor(item, letter) for item in items]})})
        if letter == "L":
            return self.add_value({"val": ("IntList", {"items": [
                self.index_of(int(item), "I") for item in items]})})
        kind = "BoolList" if letter == "Q" else "DoubleList"
        return self.add_value({"val": (kind, {"items": items})})

    def tensor(self, tensor, letter):
        """Return the index of a tensor of a call, or of another tensor that exists already."""
        draw = self.draw
        if id(tensor) in self.indexes:
            return self.indexes[id(tensor)]
        alike = self.alike.setdefault((tensor.dtype, *tensor.sizes, *tensor.order), [])
        others = alike if draw.chance(90) else self.tensors
        others = [other for other in others
                  if other not in self.fixed or letter not in OUTPUTS + SCRATCH]
        if others and draw.chance(25):
            return draw.pick(others)
        fields = {"scalar_type": tensor.dtype, "sizes": self.bounds_of(tensor),
                  "dim_order": list(tensor.order)}
        nbytes = tensor.nbytes()
        is_view = letter == "A"
        kind = draw.below(8)
        if tensor.bound is not None:
            fields["shape_dynamism"] = 1
        content = (tensor.data * (nbytes // max(1, len(tensor.data)) + 1))[:nbytes].ljust(nbytes, b"\0")
        if tensor.constant or (kind < 2 and letter not in OUTPUTS + SCRATCH):
            fields["data_buffer_idx"] = self.constant(content)
            self.fixed.add(len(self.values))
        elif not (is_view and draw.chance(80)) and kind != 7:
            fields["allocation_info"] = self.place(tensor, nbytes)
            if letter not in OUTPUTS and kind < 6:
                given = {name: value for name, value in fields.items() if name != "allocation_info"}
                first = self.add_value({"val": ("Tensor", given | {
                    "data_buffer_idx": self.constant(content)})})
                self.starting.append(("MoveCall", {"move_from": first, "move_to": len(self.values)}))
        index = self.indexes[id(tensor)] = self.add_value({"val": ("Tensor", fields)})
        self.tensors.append(index)
        alike.append(index)
        if tensor.dtype == 11:
            self.conditions.append(index)
        is_unplanned = not fields.keys() & {"data_buffer_idx", "allocation_info"} and not is_view
        if letter not in OUTPUTS and "data_buffer_idx" not in fields and (is_unplanned
                                                                          or draw.chance(30)):
            self.inputs.append(index)
        if letter in OUTPUTS and (is_unplanned or draw.chance(40)):
            self.outputs.append(index)
        return index

    @staticmethod
    def bounds_of(tensor):
        """Return sizes whose product is the bound."""
        if tensor.bound is None or not tensor.sizes:
            return list(tensor.sizes)
        rest = 1
        for size in tensor.sizes[1:]:
            rest *= max(size, 1)
        if rest > max(tensor.bound, 1):
            return [tensor.bound] + [1] * (len(tensor.sizes) - 1)
        return [tensor.bound // rest] + [max(size, 1) for size in tensor.sizes[1:]]

    def constant(self, content):
        self.constants.append({"storage": content})
        return len(self.constants) - 1

    def place(self, tensor, nbytes):
        draw = self.draw
        buffer = draw.below(2)
        end = self.ends[buffer]
        at = end if draw.chance(60) or not end else draw.below(end)
        at = -(-at // 8) * 8 if _picotorch.element_size(tensor.dtype) == 8 else -(-at // 4) * 4
        self.ends[buffer] = max(end, at + nbytes)
        return {"memory_id": buffer + 1, "memory_offset_low": at}

    # ---- instructions

    def call(self, name, arguments, signature):
        if name not in self.operators:
            self.operators.append(name)
        if names_result(signature):
            arguments = [*arguments, arguments[-1]]
        self.instructions.append(("KernelCall", {"op_index": self.operators.index(name),
                                                 "args": arguments}))

    def add_call(self, one):
        indexes = [self.index_of(argument, letter)
                   for argument, letter, of_form in zip(one.arguments, one.signature, one.form,
                                                        strict=True) if of_form != "-"]
        self.call(one.operator, indexes, one.signature)

    def other(self):
        """Add a jump, a move, a repeated call, a delegate call or a free call."""
        draw = self.draw
        kind = draw.below(6)
        if kind < 2:
            conditions = self.conditions + self.variables
            if not conditions or draw.chance(50):
                conditions = [self.add_value(bool_value(draw.chance(50)))]
            return ("JumpFalseCall", {"cond_value_index": draw.pick(conditions),
                                      "destination_instruction": draw.below(
                                          len(self.instructions) + 2)})
        if kind == 2:
            among = [self.variables, self.tensors, *self.alike.values()]
            among = draw.pick(among[2:] if self.alike and draw.chance(90) else among)
            among = among or self.tensors or [0]
            written = [index for index in among if index not in self.fixed or draw.chance(5)]
            return ("MoveCall", {"move_from": draw.pick(among), "move_to": draw.pick(written or among)})
        if kind == 3:
            return draw.pick(self.instructions)
        if kind == 4:
            count = draw.below(4)
            return ("DelegateCall", {"delegate_index": 0, "args": [
                draw.below(len(self.values)) for _ in range(count)]})
        return ("FreeCall", {"value_index": draw.below(len(self.values))})

    def add_others(self):
        draw = self.draw
        for _ in range(draw.below(5)):
            self.instructions.insert(draw.below(len(self.instructions) + 1), self.other())
        self.instructions[:0] = self.starting
        while draw.chance(12):
            self.swap(draw.pick(self.instructions)[1])

    def swap(self, fields):
        """Replace an argument by another value."""
        draw = self.draw
        other = draw.int() if draw.chance(10) else draw.below(len(self.values))
        other = max(-2**31, min(other, 2**31 - 1))
        if fields.get("args"):
            fields["args"] = list(fields["args"])
            fields["args"][draw.below(len(fields["args"]))] = other
        elif "args" not in fields:
            fields[draw.pick(sorted(fields))] = other

    def program(self):
        draw = self.draw
        inputs = sorted(set(self.inputs))
        outputs = self.outputs or self.tensors[:1] or [0]
        if draw.chance(20):
            outputs = [*outputs, draw.below(len(self.values))]
        if draw.chance(10):
            inputs = [*inputs, draw.below(len(self.values))]
        instructions = [{"instr_args": instruction} for instruction in self.instructions]
        middle = draw.below(len(instructions)) if draw.chance(15) else len(instructions)
        short = draw.pick((4, 1, 16)) if draw.chance(5) else 0
        return {"version": 0, "constant_buffer": self.constants,
                "backend_delegate_data": [{"data": bytes(8)}],
                "execution_plan": [{
                    "name": "forward", "values": self.values, "inputs": inputs, "outputs": outputs,
                    "chains": [{"inputs": inputs, "outputs": outputs, "instructions": part}
                               for part in (instructions[:middle], instructions[middle:])],
                    "operators": [operator(name) for name in self.operators],
                    "delegates": [{"id": BACKEND, "processed": {"location": 0, "index": 0}}],
                    "non_const_buffer_sizes": [0, *(max(end - short, 0) for end in self.ends)]}]}


def assembled(draw):
    return build(Assembly(draw).program())


@functools.cache
def set_up():
    register_backend(BACKEND, exercise.Curious())


def outcome(data, make=assembled):
    """Run the program drawn from these bytes, and return the name of the first Error, or "ok"."""
    set_up()
    return exercise.outcome(make(Draw(data)))


def main(make=assembled):
    """Use the programs of the seeds from first to last (without last), and print the outcomes as
    JSON."""
    outcomes, wrong, longest = collections.Counter(), [], 0
    for seed in range(int(sys.argv[1]), int(sys.argv[2])):
        start = time.process_time()
        print(seed, file=sys.stderr, flush=True)  # the last line names the program of a crash
        try:
            outcomes[outcome(random_data(seed, LENGTH), make)] += 1
        except Exception:
            wrong.append(f"{seed}: {traceback.format_exc(limit=-4)}")
        seconds = time.process_time() - start
        longest = max(longest, seconds)
        if seconds > SECONDS:
            wrong.append(f"{seed}: {seconds:.1f} s")
    print(json.dumps({"outcomes": outcomes, "wrong": wrong, "seconds": longest}))


if __name__ == "__main__":
    main()
