"""The model zoo: small real programs, exported by ExecuTorch, that the tests run.

`registry` says what a fixture is; `models/` holds the fixtures, grouped by what they
exercise; `exporter` makes the program, `reference` the expected outputs, `store` the files.
"""
