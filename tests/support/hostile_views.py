"""Make programs of a few tensors that are mostly views of one another: well-formed files that no
exporter would write. A load determines the data of a tensor from all of their instructions together.

    assembled(Draw(data))      # the bytes of a program
"""

from support import hostile_programs
from support.flatbuffer_builder import NULL_VALUE, bool_value, int_value
from support.programs import names_result, plan, program, tensor

PLANNED = 128  # bytes
CONSTANT = 64
# The kinds of the operators' arguments: Tensor, number, List of ints, Condition, lists of tensors, 0
# for None
OPERATORS = {
    "executorch_prim::et_view.default": "TLT", "aten::relu.out": "TT", "aten::view_copy.out": "TLT",
    "aten::add.out": "TTNT", "aten::cat.out": "VNT", "aten::clone.out": "T0T",
    "aten::permute_copy.out": "TLT", "aten::split_copy.Tensor_out": "TNNV",
    "aten::slice_copy.Tensor_out": "TN00NT", "aten::sym_size.int": "TNN",
    "executorch_prim::et_copy_index.tensor": "TTN", "executorch_prim::add.Scalar": "NNN",
}


class Views:
    def __init__(self, draw):
        self.draw = draw
        self.values, self.of_kind = [NULL_VALUE], {"0": [0]}
        self.elements = draw.pick((4, 8, 16))
        dynamic = draw.pick((0, 30, 80))  # percent
        for _ in range(3 + draw.below(3)):
            self.add("T", self.tensor(dynamic))
        for _ in range(4):
            self.add("N", int_value(draw.pick((0, 1, 2, 4, 8))))
        minus_1 = self.add("N", int_value(-1))
        for items in [[minus_1]] * 4 + [self.some("N", 4) for _ in range(3)]:
            self.add("L", {"val": ("IntList", {"items": items})})
        for _ in range(2):
            self.add("V", {"val": ("TensorList", {"items": self.some("T", 4)})})
        self.add("C", bool_value(draw.chance(50)))

    def add(self, kind, value):
        self.values.append(value)
        self.of_kind.setdefault(kind, []).append(len(self.values) - 1)
        return len(self.values) - 1

    def one(self, kind):
        return self.draw.below(len(self.values)) if self.draw.chance(1) else self.draw.pick(
            self.of_kind[kind])

    def some(self, kind, maximum):
        return [self.draw.pick(self.of_kind[kind]) for _ in range(self.draw.below(maximum))]

    def tensor(self, dynamic):
        draw = self.draw
        elements = draw.pick((self.elements,) * 12 + (self.elements // 2, 2 * self.elements, 0))
        sizes = draw.pick(([elements],) * 6 + ([elements // 2, 2], [1, elements]))
        fields = {"shape_dynamism": 1} if draw.chance(dynamic) else {}
        place = draw.below(20)
        if place < 3:
            return tensor(sizes, data_buffer_idx=1, **fields)
        return tensor(sizes, draw.pick((0, 0, 16, 32, 64)) if place < 9 else None, **fields)

    def instruction(self, operators):
        kind = self.draw.below(20)
        if kind == 0:
            return {"instr_args": ("JumpFalseCall", {"cond_value_index": self.one("C"),
                                                     "destination_instruction": self.draw.below(4)})}
        if kind < 4:
            letter = self.draw.pick("TTTN")
            return {"instr_args": ("MoveCall", {"move_from": self.one(letter),
                                                "move_to": self.one(letter)})}
        index = 0 if kind < 11 else self.draw.below(len(operators))
        signature = OPERATORS[operators[index]]
        arguments = [self.one(letter) for letter in signature]
        return {"instr_args": ("KernelCall", {
            "op_index": index, "args": arguments + arguments[-1:] * names_result(signature)})}

    def program(self):
        view, *others = OPERATORS
        operators = [view, *[self.draw.pick(others) for _ in range(3)]]
        instructions = [self.instruction(operators) for _ in range(1 + self.draw.below(7))]
        inputs = [self.one("T") for _ in range(1 + self.draw.below(3))]
        outputs = [self.one("T"), self.one(self.draw.pick("TNV"))]
        return program(plan(self.values, instructions, operators, inputs, outputs, [PLANNED]),
                       constant_buffer=[{}, {"storage": bytes(range(CONSTANT))}])


def assembled(draw):
    return Views(draw).program()


if __name__ == "__main__":
    hostile_programs.main(assembled)
