"""Define a valid call of each operator of ExecuTorch's Cortex-M dialect, by its name without cortex_m::
and .out."""

import numpy as np
from support.kernel_call import channels_last


def int8(*sizes):
    return np.ones(sizes, np.int8)


def image(*sizes):
    return channels_last(int8(*sizes))


def ints(n):
    return np.ones(n, np.int32)


X = np.zeros((2, 3), np.float32)
BYTES = np.zeros(0, np.uint8)
VALID = {
    "quantize_per_tensor": (X, 1.0, 0, -128, 127, 1, int8(2, 3)),
    "dequantize_per_tensor": (int8(2, 3), 1.0, 0, -128, 127, 1, X),
    "quantized_add": (int8(2, 3), 0, 1 << 30, 0, int8(2, 3), 0, 1 << 30, 0, 0, 1 << 30, -20, -128, 127,
                      int8(2, 3)),
    "quantized_mul": (int8(2, 3), 0, int8(2, 3), 0, 0, 1 << 30, -7, int8(2, 3)),
    "quantized_div": (int8(2, 3), 0, int8(2, 3), 0, 0, 1.0, int8(2, 3)),
    "quantized_activation": (int8(2, 3), int8(256), int8(2, 3)),
    "softmax": (int8(2, 3), -1, 0, -128, 1 << 30, 20, -128, int8(2, 3)),
    "pad": (int8(2, 3), [0, 0, 1, 1], [0, 0, 0, 0], 0, int8(3, 4)),
    "quantized_linear": (int8(2, 3), int8(4, 3), ints(4), None, 0, 0, 0, [1 << 30], [-7], 127, -128,
                         int8(2, 4)),
    "quantized_batch_matmul": (int8(1, 2, 3), 0, int8(1, 4, 3), 0, 0, 1 << 30, -7, BYTES,
                               int8(1, 2, 4)),
    "quantized_conv2d": (image(1, 2, 4, 4), int8(3, 2, 2, 2), ints(3), [1, 1], [0, 0], [1, 1], 0, 0,
                         ints(3), ints(3), -128, 127, BYTES, image(1, 3, 3, 3)),
    "quantized_depthwise_conv2d": (image(1, 3, 4, 4), int8(1, 2, 2, 3), ints(3), [1, 1], [0, 0],
                                   [1, 1], 1, 0, 0, ints(3), ints(3), -128, 127, BYTES,
                                   image(1, 3, 3, 3)),
    "quantized_transpose_conv2d": (image(1, 2, 4, 4), int8(3, 2, 2, 2), ints(3), [1, 1], [0, 0],
                                   [0, 0], [1, 1], 0, 0, ints(3), ints(3), -128, 127, BYTES, BYTES,
                                   image(1, 3, 5, 5)),
    "quantized_avg_pool2d": (image(1, 2, 4, 4), [2, 2], [2, 2], [0, 0], False, 0, 1 << 30, -7, BYTES,
                             image(1, 2, 2, 2)),
    "quantized_max_pool2d": (image(1, 2, 4, 4), [2, 2], [2, 2], [0, 0], [1, 1], False, 0, 0, -128,
                             127, image(1, 2, 2, 2)),
}
