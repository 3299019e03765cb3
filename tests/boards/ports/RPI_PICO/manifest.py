"""Freeze upstream's modules for RPI_PICO, except the drivers of micropython-lib."""

freeze("$(PORT_DIR)/modules")
include("$(MPY_DIR)/extmod/asyncio")
