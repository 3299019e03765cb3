"""What is frozen into the firmware: its own scripts and, when it is there, the runtime."""

import os


def _scripts(folder):
    """Names, sorted: the order of a folder is another in every file system."""
    return tuple(sorted(name for name in os.listdir(folder) if name.endswith(".py")))


freeze("frozen", _scripts("frozen"))

# __main__.py is the command line of the host.
_package = os.path.join("..", "picotorch")
if os.path.isdir(_package):
    package(
        "picotorch",
        base_path="..",
        files=[name for name in _scripts(_package) if name != "__main__.py"],
    )
