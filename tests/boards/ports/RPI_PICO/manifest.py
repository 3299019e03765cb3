"""Freeze upstream's modules for RPI_PICO, but for drivers of micropython-lib."""

freeze("$(PORT_DIR)/modules")
include("$(MPY_DIR)/extmod/asyncio")
