# MicroPython's own RPI_PICO, without picotorch.
include(${CMAKE_CURRENT_LIST_DIR}/../../../../port/upstream/rp2/upstream.cmake)
set(MICROPY_FROZEN_MANIFEST ${CMAKE_CURRENT_LIST_DIR}/manifest.py)
