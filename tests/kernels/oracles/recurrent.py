"""Define oracles of recurrent layers."""

import numpy as np
from test_recurrent import layer, random_layer

from .sample import Sample, oracle


@oracle("picotorch::gru.out", "picotorch::lstm.out")
def recurrent(draw, operator):
    steps, batch, width, hidden = draw.int(0, 4), draw.int(0, 3), draw.int(0, 5), draw.int(0, 6)
    arguments = random_layer(draw.random, operator, steps, batch, width, hidden,
                             **{flag: draw.chance() for flag in (
                                 "biases", "int8", "batch_first", "reverse", "sequence", "states")})
    expected = [one.astype(np.float32) for one in layer(operator, *arguments)]
    return Sample([draw.contiguous(one) if isinstance(one, np.ndarray) else one for one in arguments],
                  expected, 1e-5, 1e-6, order="contiguous")
