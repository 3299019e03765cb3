"""Make a program of the convolutions of a ResNet-18 for pictures of 224 x 224, one after the other. It
has a few kilobytes, since its weights are planned memory, which is zero."""

from support.flatbuffer_builder import NULL_VALUE, bool_value, int_value
from support.programs import call, plan, program, tensor

# input channels, output channels, kernel, stride, rows and columns of the output
_BLOCKS = [((channels, 2 * channels, 3, 2, size), *[(2 * channels, 2 * channels, 3, 1, size)] * 3,
            (channels, 2 * channels, 1, 2, size)) for channels, size in ((64, 28), (128, 14), (256, 7))]
CONVOLUTIONS = [(3, 64, 7, 2, 112), *[(64, 64, 3, 1, 56)] * 4, *sum(_BLOCKS, ())]
PRODUCTS = sum(inputs * outputs * kernel**2 * size**2
               for inputs, outputs, kernel, _, size in CONVOLUTIONS)


def resnet18():
    """Return the program. All inputs are in one memory, and all outputs in another; each layer has its
    own weights."""
    maximum = 4 * 64 * 112**2  # bytes of a picture
    values = [int_value(n) for n in range(4)]
    values += [{"val": ("IntList", {"items": [n, n]})} for n in range(4)]
    values += [NULL_VALUE, bool_value(False)]
    one, zeros, ones, none, false = 1, 4, 5, 8, 9
    calls, end = [], 2 * maximum
    for inputs, outputs, kernel, stride, size in CONVOLUTIONS:
        first = len(values)
        values += [tensor([1, inputs, size * stride, size * stride], 0),
                   tensor([outputs, inputs, kernel, kernel], end),
                   tensor([1, outputs, size, size], maximum)]
        end += 4 * outputs * inputs * kernel**2
        calls.append(call(0, first, first + 1, none, zeros + stride, zeros + kernel // 2, ones, false,
                          zeros, one, first + 2, first + 2))
    return program(plan(values, calls, ["aten::convolution.out"], [], [len(values) - 1], [end]))
