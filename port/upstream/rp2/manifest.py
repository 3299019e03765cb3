"""Freeze upstream's modules and picotorch into firmware of the rp2 port.

The drivers onewire, ds18x20, dht and neopixel are frozen only if the tree has micropython-lib.
"""

freeze("$(PORT_DIR)/modules")
include("$(MPY_DIR)/extmod/asyncio")
for _driver in ("onewire", "ds18x20", "dht", "neopixel"):
    try:
        require(_driver)
    except Exception:  # MicroPython's ManifestFileError, which has no name here
        print("without " + _driver + ": the tree has no micropython-lib")
include("../../manifest.py", parts=options.parts)
