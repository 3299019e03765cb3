"""Fuzz a target with atheris: libFuzzer, guided by the coverage of picotorch's Python and C.

    python engine.py file [options of libFuzzer] CORPUS

tools/fuzz.py calls this program with the sanitized extension and atheris' sanitizer library.
"""

import importlib
import os
import shlex
import sys

import atheris


def main():
    name = sys.argv.pop(1)
    preload = os.environ.pop("LD_PRELOAD", "")  # not for the symbolizer of reports
    # libFuzzer restarts itself with this command, as for -merge=1
    sys.argv[0] = f"env LD_PRELOAD={shlex.quote(preload)} " + shlex.join(
        [sys.executable, __file__, name])
    # _picotorch, the twin of a C module, is left out, since it would take five times as long
    with atheris.instrument_imports(include=["picotorch"]):
        target = importlib.import_module(name)

    @atheris.instrument_func
    def one_input(data):
        target.one_input(data)

    options = {}
    if hasattr(target, "mutate"):
        options["custom_mutator"] = lambda data, size, seed: target.mutate(
            data, size, seed, atheris.Mutate)
    atheris.Setup(sys.argv, one_input, **options)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
