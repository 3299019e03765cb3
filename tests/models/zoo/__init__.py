"""The model zoo: small real programs, exported by ExecuTorch, that the tests run.

`registry` defines a fixture; `models/` has the fixtures, grouped by subject; `exporter` makes the
program, `reference` the expected outputs, `store` the files.
"""
