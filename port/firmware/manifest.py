"""Freeze into the firmware its own scripts and the runtime, with all parts that are of use on
boards without files, or some of them (see ../manifest.py)."""

_parts = "data delegates module tracer" if options.parts is None else options.parts

freeze("frozen", ("board.py", "counter.py", "job.py", "main.py", "runner.py"), opt=3)
include("../manifest.py", parts=_parts)
