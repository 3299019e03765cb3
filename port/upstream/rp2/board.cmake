# What the boards of this folder have besides MicroPython's own of the same name: picotorch, as C module
# and frozen, and a ROMFS partition, in which models are used in place.
#
# PT_OPERATORS, PT_MANIFEST: another list of operators, and another manifest.py.
include(${CMAKE_CURRENT_LIST_DIR}/upstream.cmake)

set(USER_C_MODULES ${CMAKE_CURRENT_LIST_DIR}/../../module)
set(MICROPY_FROZEN_MANIFEST ${CMAKE_CURRENT_LIST_DIR}/manifest.py)
if(PT_MANIFEST)
  set(MICROPY_FROZEN_MANIFEST ${PT_MANIFEST})
endif()
