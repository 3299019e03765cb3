"""Load every method of a fixture and execute its runs in order, with the heap locked.

It follows loaded.py. Writes the files pool_<method> (after load), pool_<method>_after (after the runs)
and out<run>_<i>. Prints the outcome of every load and run, the stack that it used (0 on the twin),
every output that is not a tensor, and the sizes of dynamic outputs.
"""


class Written(Loaded):
    """A method whose pool and outputs become files."""

    def __init__(self, program, name, data_map):
        super().__init__(program, name, data_map)
        self.stack = 0  # bytes that the last load or execute used

    def load_method(self):
        _board.stack_paint()
        try:
            super().load_method()
        finally:
            self.stack = _board.stack_used()

    def execute(self):
        execute = self.method.execute
        _board.stack_paint()
        try:
            execute()
        finally:
            self.stack = _board.stack_used()

    def write_pool(self, path):
        _board.write_file(path, self.pool.buffer[: self.pool.used])

    def write_outputs(self, run):
        for i in range(len(self.results)):
            if isinstance(self.results[i], Tensor):
                _board.write_file("out%d_%d" % (run, i), self.results[i].data)
                if self.meta.output_tensor_meta(i).is_dynamic():
                    print("sizes", run, i, self.results[i].sizes())
            else:
                print("output", run, i, self.results[i])


def main():
    program = Program.load(BufferDataLoader(sections["model"]))
    data_map = read_data()
    methods = {}
    for name in names:
        loaded = Written(program, name, data_map)
        error = call("load", loaded.load)
        print("load", name, error or "ok")
        print("stack load", name, loaded.stack)
        if error is None:
            loaded.write_pool("pool_" + name)
            methods[name] = loaded
    run = 0
    while "run%d" % run in settings:
        loaded = methods.get(settings["run%d" % run])
        if loaded is not None:
            loaded.read_inputs(run)
            error = call("run", loaded.run)
            print("run", run, error or "ok")
            print("stack execute", loaded.name, loaded.stack)
            if error is None:
                loaded.write_outputs(run)
        run += 1
    for name in methods:
        methods[name].write_pool("pool_" + name + "_after")


main()
