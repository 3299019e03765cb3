"""Freeze into the firmware with the REPL its set-up of files, and all of the runtime."""

freeze("frozen", "job.py", opt=3)
freeze("frozen_repl", ("_boot.py", "_files.py"), opt=3)
include("../manifest.py")
