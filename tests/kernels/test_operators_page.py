"""Compare docs/operators.md with the dtypes of the kernels."""

import numpy as np
from picotorch.host.operators import built_operators
from support.operators_page import ALL, EXECUTORCH, PAGE, cast, listed, page, refusal


def test_the_page_is_up_to_date():
    assert PAGE.read_text() == page(), "tests/support/operators_page.py writes it"


def test_every_operator_of_executorch_has_a_kernel():
    assert not set(EXECUTORCH) - built_operators().keys()
    assert len(EXECUTORCH) == 240


def test_probed_dtypes():
    assert refusal("aten::add.out", "bfloat16") is None
    assert refusal("aten::exp.out", "int8") is None  # to float32
    assert "dtype" in refusal("aten::gelu.out", "int8")
    assert listed(ALL) == "all"
    assert listed(["int8", "float32", "float16", "bfloat16", "float64"]) == "int8, floats"
    assert cast(np.float32([0.25]), "int8").array.tolist() == [1]
