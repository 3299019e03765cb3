# What a build of MicroPython would ask git and the clock for: the same sources give the same bytes,
# whatever the day and the checkout. host/picotorch/firmware/ports.py reads it, too.
export MICROPY_GIT_TAG = v1.25.0
export MICROPY_GIT_HASH =
export SOURCE_DATE_EPOCH = 1744675200
