"""What a method takes, gives and needs, read from the program before anything is loaded."""

import struct

from . import schema
from .backend import get_backend
from .errors import INVALID_ARGUMENT, fail
from .plan import evalue, planned_buffer_size, planned_buffers
from .tensor import TensorInfo

TAG_NAMES = {
    schema.KERNEL_TYPES_NULL: "None",
    schema.KERNEL_TYPES_INT: "Int",
    schema.KERNEL_TYPES_BOOL: "Bool",
    schema.KERNEL_TYPES_DOUBLE: "Double",
    schema.KERNEL_TYPES_TENSOR: "Tensor",
    schema.KERNEL_TYPES_STRING: "String",
    schema.KERNEL_TYPES_INT_LIST: "ListInt",
    schema.KERNEL_TYPES_DOUBLE_LIST: "ListDouble",
    schema.KERNEL_TYPES_BOOL_LIST: "ListBool",
    schema.KERNEL_TYPES_TENSOR_LIST: "ListTensor",
    schema.KERNEL_TYPES_OPTIONAL_TENSOR_LIST: "ListOptionalTensor",
}


_VIEW = "executorch_prim::et_view.default"


class MethodMeta:
    """Made by Program.method_meta(name). Indexes count from 0; one out of range is InvalidArgument."""

    def __init__(self, program, plan):
        self.program = program
        self.plan = plan
        self._named = None  # the values that are attributes, once they were looked for

    def _vector(self, slot):
        return self.program.reader.table(self.plan, slot)

    def _length(self, slot):
        return self.program.reader.length(self._vector(slot))

    def name(self):
        return self.program.string(self._vector(schema.EXECUTION_PLAN_NAME))

    def _value(self, index):
        return evalue(self.program.reader, self._vector(schema.EXECUTION_PLAN_VALUES), index)

    def _check_index(self, index, count, subject):
        if not 0 <= index < count:
            raise fail(INVALID_ARGUMENT, "the method has %d" % count, subject, index)

    def _value_index(self, slot, index, subject):
        self._check_index(index, self._length(slot), subject)
        return self.program.reader.i32_item(self._vector(slot), index)

    def _item(self, slot, index, subject):
        return self._value(self._value_index(slot, index, subject))

    def _tag(self, value):
        return self.program.reader.u8(value, schema.EVALUE_VAL_TYPE)

    def _info(self, value, subject, index):
        if self._tag(value) != schema.KERNEL_TYPES_TENSOR:
            raise fail(INVALID_ARGUMENT, "is no tensor", subject, index)
        return TensorInfo(self.program, self.program.reader.table(value, schema.EVALUE_VAL))

    # ---- signature

    def num_inputs(self):
        return self._length(schema.EXECUTION_PLAN_INPUTS)

    def input_tag(self, index):
        """KernelTypes number of an input; its name is in TAG_NAMES."""
        return self._tag(self._item(schema.EXECUTION_PLAN_INPUTS, index, "input"))

    def input_tensor_meta(self, index):
        """TensorInfo of an input. Raises InvalidArgument when it is no tensor."""
        return self._info(self._item(schema.EXECUTION_PLAN_INPUTS, index, "input"), "input", index)

    def input_value(self, index):
        """Which of the method's values an input is."""
        return self._value_index(schema.EXECUTION_PLAN_INPUTS, index, "input")

    def output_value(self, index):
        """Which of the method's values an output is; an input's when it aliases it."""
        return self._value_index(schema.EXECUTION_PLAN_OUTPUTS, index, "output")

    def num_outputs(self):
        return self._length(schema.EXECUTION_PLAN_OUTPUTS)

    def output_tag(self, index):
        return self._tag(self._item(schema.EXECUTION_PLAN_OUTPUTS, index, "output"))

    def output_tensor_meta(self, index):
        return self._info(self._item(schema.EXECUTION_PLAN_OUTPUTS, index, "output"), "output",
                          index)

    def unplanned_attributes(self):
        """TensorInfo of the mutable buffers for which set_attribute_data_ptr has to give memory."""
        found = [self.attribute_tensor_meta(i) for i in range(self.num_attributes())]
        return [info for info in found if info.nbytes() and not info.is_memory_planned()
                and not info.is_constant()]

    def is_output_dynamic(self, index):
        """True for a tensor whose sizes may be others after each execution."""
        return (self.output_tag(index) == schema.KERNEL_TYPES_TENSOR
                and self.output_tensor_meta(index).is_dynamic())

    def unplanned_outputs(self):
        """Indexes of the outputs for which Method.set_output_data_ptr has to give memory: no input, and
        no view of another tensor."""
        found = [i for i in range(self.num_outputs()) if self._is_unplanned(i)]
        if not found:
            return found
        others = set(self._views())
        for i in range(self.num_inputs()):
            others.add(self.input_value(i))
        return [i for i in found if self.output_value(i) not in others]

    def _views(self):
        """The values that instructions make views of others."""
        reader = self.program.reader
        operators = [self.operator_name(i) for i in range(self.num_operators())]
        chains = self._vector(schema.EXECUTION_PLAN_CHAINS)
        if _VIEW not in operators:
            return []
        found = []
        for i in range(reader.length(chains)):
            instructions = reader.table(reader.item(chains, i), schema.CHAIN_INSTRUCTIONS)
            for k in range(reader.length(instructions)):
                instruction = reader.item(instructions, k)
                kind = reader.u8(instruction, schema.INSTRUCTION_INSTR_ARGS_TYPE)
                if kind == schema.INSTRUCTION_ARGUMENTS_KERNEL_CALL:
                    call = reader.table(instruction, schema.INSTRUCTION_INSTR_ARGS)
                    arguments = reader.table(call, schema.KERNEL_CALL_ARGS)
                    operator = reader.i32(call, schema.KERNEL_CALL_OP_INDEX)
                    if 0 <= operator < len(operators) and operators[operator] == _VIEW:
                        found.append(reader.i32_item(arguments, reader.length(arguments) - 1))
        return found

    def _is_unplanned(self, index):
        if self.output_tag(index) != schema.KERNEL_TYPES_TENSOR:
            return False
        info = self.output_tensor_meta(index)
        return not (info.is_memory_planned() or info.is_constant() or info.nbytes() == 0)

    # ---- quantized inputs and outputs

    def input_quantization(self, index):
        """(scale, zero_point) of an input that takes quantized values: value = (integer - zero_point) *
        scale. None for any other input.

        The exporter keeps them as constant methods ("input0_scale", or "encode_input0_scale" for a
        method that is not called forward). Allocates: to be asked before the heap is locked.
        """
        self._check_index(index, self.num_inputs(), "input")
        return self._quantization("input%d_" % index)

    def output_quantization(self, index):
        """(scale, zero_point) of an output of quantized values, None for any other; see above."""
        self._check_index(index, self.num_outputs(), "output")
        return self._quantization("output%d_" % index)

    def _quantization(self, end):
        name = self.name()
        if name == "forward" and self._constant_method(end + "scale") is not None:
            prefix = end
        else:
            prefix = name + "_" + end
        scale = self._constant_method(prefix + "scale")
        zero_point = self._constant_method(prefix + "zp")
        return None if scale is None or zero_point is None else (scale, zero_point)

    def _constant_method(self, name):
        """The number that a method returns as its only output; None where there is no such method."""
        program = self.program
        reader = program.reader
        plan = program.find_plan(name)
        if plan < 0:
            return None
        outputs = reader.table(plan, schema.EXECUTION_PLAN_OUTPUTS)
        if reader.length(outputs) != 1:
            return None
        value = evalue(reader, reader.table(plan, schema.EXECUTION_PLAN_VALUES),
                       reader.i32_item(outputs, 0))
        table = reader.table(value, schema.EVALUE_VAL)
        if self._tag(value) == schema.KERNEL_TYPES_INT:
            return reader.i64(table, schema.INT_INT_VAL)
        if self._tag(value) != schema.KERNEL_TYPES_DOUBLE:
            return None
        position = reader.field(table, schema.DOUBLE_DOUBLE_VAL)
        if position + 8 > len(program.data):
            raise ValueError
        return struct.unpack_from("<d", program.data, position)[0] if position else 0.0

    # ---- attributes: tensors with a fully qualified name

    def _attributes(self):
        if self._named is None:
            self._named = self._find_attributes()
        return self._named

    def _find_attributes(self):
        reader = self.program.reader
        found = []
        for i in range(self._length(schema.EXECUTION_PLAN_VALUES)):
            value = self._value(i)
            if self._tag(value) != schema.KERNEL_TYPES_TENSOR:
                continue
            tensor = reader.table(value, schema.EVALUE_VAL)
            extra = reader.table(tensor, schema.TENSOR_EXTRA_TENSOR_INFO)
            if extra and reader.table(extra, schema.EXTRA_TENSOR_INFO_FULLY_QUALIFIED_NAME):
                found.append(value)
        return found

    def num_attributes(self):
        return len(self._attributes())

    def attribute_tensor_meta(self, index):
        found = self._attributes()
        self._check_index(index, len(found), "attribute")
        return self._info(found[index], "attribute", index)

    # ---- needs

    def num_memory_planned_buffers(self):
        return planned_buffers(self.program.reader, self.plan)

    def memory_planned_buffer_size(self, index):
        """Bytes of planned buffer `index`."""
        self._check_index(index, self.num_memory_planned_buffers(), "planned buffer")
        return planned_buffer_size(self.program.reader, self.plan, index)

    def _delegates(self):
        return self._vector(schema.EXECUTION_PLAN_DELEGATES)

    def num_backends(self):
        return self.program.reader.length(self._delegates())

    def get_backend_name(self, index):
        self._check_index(index, self.num_backends(), "backend")
        reader = self.program.reader
        return self.program.string(
            reader.table(reader.item(self._delegates(), index), schema.BACKEND_DELEGATE_ID))

    def backend_names(self):
        return [self.get_backend_name(i) for i in range(self.num_backends())]

    def uses_backend(self, name):
        return name in self.backend_names()

    def missing_backends(self):
        """Names of the backends that are not registered, each once."""
        missing = []
        for name in self.backend_names():
            if get_backend(name) is None and name not in missing:
                missing.append(name)
        return missing

    def max_delegate_arguments(self):
        """The most arguments that a call of a delegate has."""
        reader = self.program.reader
        most = 0
        for vector in self._chains():
            for i in range(reader.length(vector)):
                instruction = reader.item(vector, i)
                kind = reader.u8(instruction, schema.INSTRUCTION_INSTR_ARGS_TYPE)
                if kind == schema.INSTRUCTION_ARGUMENTS_DELEGATE_CALL:
                    call = reader.table(instruction, schema.INSTRUCTION_INSTR_ARGS)
                    most = max(most, reader.length(reader.table(call,
                                                                schema.DELEGATE_CALL_ARGS)))
        return most

    def _chains(self):
        """Positions of the chains' vectors of instructions."""
        reader = self.program.reader
        chains = self._vector(schema.EXECUTION_PLAN_CHAINS)
        return [reader.table(reader.item(chains, i), schema.CHAIN_INSTRUCTIONS)
                for i in range(reader.length(chains))]

    def num_instructions(self):
        return sum([self.program.reader.length(vector) for vector in self._chains()])

    def num_operators(self):
        return self._length(schema.EXECUTION_PLAN_OPERATORS)

    def operator_name(self, index):
        """"aten::add.out" """
        self._check_index(index, self.num_operators(), "operator")
        reader = self.program.reader
        operator = reader.item(self._vector(schema.EXECUTION_PLAN_OPERATORS), index)
        name = self.program.string(reader.table(operator, schema.OPERATOR_NAME))
        overload = self.program.string(reader.table(operator, schema.OPERATOR_OVERLOAD))
        return name + "." + overload if overload else name

    def _has_kernel(self, index):
        reader = self.program.reader
        operator = reader.item(self._vector(schema.EXECUTION_PLAN_OPERATORS), index)
        return reader.operator(reader.table(operator, schema.OPERATOR_NAME),
                               reader.table(operator, schema.OPERATOR_OVERLOAD)) >= 0

    def missing_operators(self):
        """Names of the operators that this build has no kernel for."""
        return [self.operator_name(i) for i in range(self.num_operators())
                if not self._has_kernel(i)]

    def __repr__(self):
        return "<MethodMeta %s: %d inputs, %d outputs, %d instructions, planned %s>" % (
            self.name(), self.num_inputs(), self.num_outputs(), self.num_instructions(),
            [self.memory_planned_buffer_size(i) for i in range(self.num_memory_planned_buffers())])
