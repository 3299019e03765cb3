"""Read the inputs, outputs and memory of a method from the program before anything is loaded."""

import _picotorch

from .errors import check_index, need, text_of
from .schema import KERNEL_TYPES_TENSOR
from .tensor import TensorInfo

backends = []  # (name, Backend), of delegates.register_backend

_INPUTS = _picotorch.INPUTS
_OUTPUTS = _picotorch.OUTPUTS


class MethodMeta:
    """Made by Program.method_meta. Indexes count from 0; one out of range raises InvalidArgument."""

    def __init__(self, program, plan):
        self.program = program
        self.plan = plan
        self._library = program.library
        self._named = None  # the values that are attributes, once _attributes has found them

    def _count(self, what):
        return self._library.count(self.plan, what)

    def _tensor(self, what, index):
        return TensorInfo(self._library.tensor(self.plan, what, index))

    def name(self):
        """Return the name of the method."""
        return text_of(self._library.method_name(self.plan))

    # ---- signature

    def num_inputs(self):
        """Return the number of inputs."""
        return self._count(_INPUTS)

    def input_tag(self, index):
        """Return the KernelTypes number of an input."""
        return self._library.item(self.plan, _INPUTS, index)[1]

    def input_tensor_meta(self, index):
        """Return the TensorInfo of an input. Raises InvalidArgument if it is not a tensor."""
        return self._tensor(_INPUTS, index)

    def input_value(self, index):
        """Return the index of an input among the method's values."""
        return self._library.item(self.plan, _INPUTS, index)[0]

    def num_outputs(self):
        """Return the number of outputs."""
        return self._count(_OUTPUTS)

    def output_tag(self, index):
        """Return the KernelTypes number of an output."""
        return self._library.item(self.plan, _OUTPUTS, index)[1]

    def output_tensor_meta(self, index):
        """Return the TensorInfo of an output. Raises InvalidArgument if it is not a tensor."""
        return self._tensor(_OUTPUTS, index)

    def output_value(self, index):
        """Return the index of an output among the method's values; an input's if it aliases that."""
        return self._library.item(self.plan, _OUTPUTS, index)[0]

    def unplanned_attributes(self):
        """Return the TensorInfo of each mutable buffer that needs set_attribute_data_ptr."""
        found = map(self.attribute_tensor_meta, range(self.num_attributes()))
        return [info for info in found if _needs_memory(info)]

    def is_output_dynamic(self, index):
        """Return True for a tensor whose sizes may differ between executions."""
        return (self.output_tag(index) == KERNEL_TYPES_TENSOR
                and self.output_tensor_meta(index).is_dynamic())

    def unplanned_outputs(self):
        """Return the indexes of the outputs for which Method.set_output_data_ptr has to provide memory.

        None of them is an input or a view of another tensor.
        """
        found = [i for i in range(self.num_outputs()) if self.output_tag(i) == KERNEL_TYPES_TENSOR
                 and _needs_memory(self.output_tensor_meta(i))]
        if not found:
            return found
        others = list(self._library.views(self.plan))
        others.extend(map(self.input_value, range(self.num_inputs())))
        return [i for i in found if self.output_value(i) not in others]

    # ---- quantized inputs and outputs

    def input_quantization(self, index):
        """Return (scale, zero_point) of an input of quantized values, None for any other.

        value = (integer - zero_point) * scale.

        The exporter stores them as constant methods ("input0_scale", or "encode_input0_scale" for a
        method that is not called forward). Allocates: call it before the heap is locked.
        """
        self.input_value(index)
        return self._quantization("input%d_" % index)

    def output_quantization(self, index):
        """Return (scale, zero_point) of an output of quantized values, None for any other."""
        self.output_value(index)
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
        """Return the number that is the only output of a method; None if there is no such method."""
        library = self._library
        plan = self.program.find_plan(name)
        if plan < 0 or library.count(plan, _OUTPUTS) != 1:
            return None
        number = library.item(plan, _OUTPUTS, 0)[2]
        return number if isinstance(number, (int, float)) else None

    # ---- attributes: tensors with a fully qualified name

    def _attributes(self):
        if self._named is None:
            item = self._library.item
            self._named = [i for i in range(self._count(_picotorch.VALUES))
                           if item(self.plan, _picotorch.VALUES, i)[3]]
        return self._named

    def num_attributes(self):
        """Return the number of parameters and buffers with a name."""
        return len(self._attributes())

    def attribute_tensor_meta(self, index):
        """Return the TensorInfo of a parameter or buffer with a name. Raises InvalidArgument."""
        check_index(index, self.num_attributes(), "attribute")
        return self._tensor(_picotorch.VALUES, self._attributes()[index])

    # ---- needs

    def num_memory_planned_buffers(self):
        """Return the number of planned buffers."""
        return self._count(_picotorch.PLANNED_BUFFERS)

    def memory_planned_buffer_size(self, index):
        """Return the bytes of planned buffer `index`."""
        return self._library.buffer_size(self.plan, index)

    def num_backends(self):
        """Return the number of delegates."""
        return self._count(_picotorch.DELEGATES)

    def get_backend_name(self, index):
        """Return the name of the backend of delegate `index`."""
        check_index(index, self.num_backends(), "backend")
        return text_of(self._library.backend(self.plan, index))

    def backend_names(self):
        """Return the name of the backend of each delegate."""
        return [self.get_backend_name(i) for i in range(self.num_backends())]

    def missing_backends(self):
        """Return the names of the backends that are not registered, each once."""
        known = [name for name, _ in backends]
        missing = []
        for name in self.backend_names():
            if name not in known and name not in missing:
                missing.append(name)
        return missing

    def max_delegate_arguments(self):
        """Return the maximum number of arguments of a delegate call."""
        return self._count(_picotorch.DELEGATE_ARGUMENTS)

    def num_instructions(self):
        """Return the number of instructions."""
        return self._count(_picotorch.INSTRUCTIONS)

    def num_operators(self):
        """Return the number of operators."""
        return self._count(_picotorch.OPERATORS)

    def operator_name(self, index):
        """Return the name of an operator, "aten::add.out" for instance."""
        name, overload, number = self._library.operator(self.plan, index)
        if not name:  # a .ptm file has its number only, and this build lacks it
            return "%s %d" % ("operator", ~number)
        return text_of(name + b"." + overload if overload else name)

    def missing_operators(self):
        """Return the names of the operators that this build has no kernel for."""
        return [self.operator_name(i) for i in range(self.num_operators())
                if self._library.operator(self.plan, i)[2] < 0]

    def instruction_name(self, index, argument=-1):
        """Return the name of an instruction's operator and of an argument, or "control flow"."""
        check_index(index, self.num_instructions(), "instruction")
        need(argument, int, "argument")
        operator = self._library.instruction_operator(self.plan, index)
        if operator < 0:
            return "control flow"
        name = self.operator_name(operator)
        if argument < 0:
            return name
        number = self._library.operator(self.plan, operator)[2]
        return "%s: argument %s" % (name, _picotorch.argument_name(number, argument) or argument)

    def __repr__(self):
        return "<MethodMeta %s: %d inputs, %d outputs, %d instructions, planned %s>" % (
            self.name(), self.num_inputs(), self.num_outputs(), self.num_instructions(),
            [self.memory_planned_buffer_size(i) for i in range(self.num_memory_planned_buffers())])


def _needs_memory(info):
    """Return True for a tensor for which the caller has to provide memory."""
    return info.nbytes() and not (info.is_memory_planned() or info.is_constant())
