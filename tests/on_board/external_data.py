"""Load a program with .ptd files, one after the other, and execute it.

Sections: model; data0, data1 ... Prints for each file the Error of the data map or of load, or the
bytes of output 0. The last file is valid. A copy of it in writable memory changes between two
executions, and the output changes, because a program reads external data in place.
"""


from picotorch import FlatTensorDataMap


class Attempt:
    """The method in memories that exist already."""

    def __init__(self, program):
        meta = program.method_meta("forward")
        planned = [take("planned", meta.memory_planned_buffer_size(i))
                   for i in range(meta.num_memory_planned_buffers())]
        self.program = program
        self.data_map = None
        self.method = Method(MemoryManager(MemoryAllocator(_board.memory("pool")),
                                           HierarchicalAllocator(planned)))
        self.outputs = [None] * meta.num_outputs()

    def load(self):
        self.method.load(self.program, "forward", data_map=self.data_map)

    def run(self):
        self.method.execute()
        self.method.get_outputs(self.outputs)

    def shown(self):
        return [int(x) for x in self.outputs[0].data]


def data_map(data):
    try:
        return FlatTensorDataMap.load(BufferDataLoader(data))
    except Error as error:
        return error


def attempt(found, data):
    found.data_map = data_map(data)
    if isinstance(found.data_map, Error):
        return found.data_map
    error = locked(found.load)
    if error is not None:
        return error
    return locked(found.run) or found.shown()


def main():
    found = Attempt(Program.load(BufferDataLoader(sections["model"])))
    print("none", locked(found.load) or "ok")
    number = 0
    while "data%d" % number in sections:
        print(number, attempt(found, sections["data%d" % number]))
        found.method.unload()
        number += 1
    data = sections["data%d" % (number - 1)]
    copy = take("planned", len(data))
    copy[:] = data
    print(attempt(found, copy))
    weight = found.data_map.get_data(found.data_map.get_key(0))
    before = bytes(weight)
    at = bytes(copy).find(before)
    copy[at : at + 16] = struct.pack("<4f", 5, 6, 7, -8)
    print(locked(found.run) or found.shown())


main()
