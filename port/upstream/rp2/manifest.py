"""What is frozen into firmware of the rp2 port: what upstream freezes, and picotorch.

Of upstream's drivers onewire, ds18x20, dht and neopixel only those whose tree has micropython-lib.
"""

freeze("$(PORT_DIR)/modules")
include("$(MPY_DIR)/extmod/asyncio")
for _driver in ("onewire", "ds18x20", "dht", "neopixel"):
    try:
        require(_driver)
    except Exception:  # MicroPython's ManifestFileError, which has no name here
        print("without " + _driver + ": the tree has no micropython-lib")
include("../../manifest.py", parts=options.parts)
