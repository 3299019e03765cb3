"""What is frozen into the firmware: its own scripts and the runtime, with all parts or some of them
(see ../manifest.py)."""

freeze("frozen", ("counter.py", "job.py", "main.py", "runner.py"), opt=3)
include("../manifest.py", parts=options.parts)
