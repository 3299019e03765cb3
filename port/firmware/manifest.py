"""What is frozen into the firmware: its own scripts and, when it is there, the runtime."""

import os

freeze("frozen")  # noqa: F821

# __main__.py is the command line of the host.
_package = os.path.join("..", "picotorch")
if os.path.isdir(_package):
    package(  # noqa: F821
        "picotorch",
        base_path="..",
        files=sorted(f for f in os.listdir(_package) if f.endswith(".py") and f != "__main__.py"),
    )
