"""Use Module and Tensor as people do: outputs that stay, indexes, lists, copies.

Sections: the programs of tests/runtime/test_module.py, by name. With the heap unlocked.
"""

from array import array

from picotorch import Module


def floats(*values):
    return array("f", values)


def outputs_stay(relu):
    first = relu(floats(-1, 2, -3, 4))
    second = relu.forward(floats(5, -6, 7, -8))
    print("first", first.tolist(), "second", second.tolist(), relu.method_names())


def indexes(tensor):
    print(tensor, tensor.tolist())
    print([tensor[i] for i in range(len(tensor))], tensor[0, 1], tensor[-1, -2], tensor[1, 2])
    for wrong in ((2, 0), (0, -4), (0,), (0, 0, 0)):
        print(wrong, unlocked(lambda wrong=wrong: tensor[wrong]))


def unlocked(function):
    """Return the value of a call, its Error, or "out of range" for an IndexError."""
    try:
        return function()
    except IndexError:
        return "out of range"
    except Error as error:
        return "out of range" if error.subject == "index" else error


numbers = floats(0, 1, 2, 3, 4, 5)
indexes(from_blob(numbers, [2, 3]))
indexes(from_blob(numbers, [2, 3], "Float", [1, 0]))
outputs_stay(Module(sections["relu"]))

tensor = from_blob(numbers, [3, 2])
copy = tensor.copy()
tensor[1, 1] = 30.0
print(tensor.tolist(), copy.tolist(), numbers[3])
print(from_blob(floats(1.5), []).tolist(), from_blob(floats(), [0, 3]).tolist())
print(from_blob(floats(), [2, 0]).copy())
bits = array("H", [0x3C00, 0xC100, 0x7BFF, 0x4900, 0x8000, 0xFC00])
print(from_blob(bits, [2, 3], "Half").tolist())
print(from_blob(array("H", [0x0001]), [1], "Half")[(0,)] * 16777216.0)  # the minimum
print(from_blob(bits, [6], "BFloat16").copy().tolist()[:2])

lists = Module(sections["lists"]).execute("forward", [])
print(lists[0], [item.tolist() for item in lists[1]])
for name, call in (("a loader", lambda: Program.load("model.pte")), ("a manager", lambda: Method(None)),
                   ("a name", lambda: Module(sections["relu"]).load_method(5)),
                   ("an index", lambda: Module(sections["relu"]).load_method().get_output("0")),
                   ("inputs", lambda: Module(sections["relu"]).execute("forward", "x"))):
    print(name, "->", unlocked(call))
