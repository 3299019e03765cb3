# What the boards of this folder have besides MicroPython's own of the same name: picotorch, as C module
# and frozen, and a ROMFS partition, in which models are used in place.
#
# PT_OPERATORS, PT_MANIFEST: another list of operators, and another manifest.py.
get_filename_component(pt_board ${MICROPY_BOARD_DIR} NAME)
include(${MICROPY_PORT_DIR}/boards/${pt_board}/mpconfigboard.cmake)
set(GEN_PINS_BOARD_CSV ${MICROPY_PORT_DIR}/boards/${pt_board}/pins.csv)
set(GEN_PINS_CSV_ARG --board-csv ${GEN_PINS_BOARD_CSV})

set(USER_C_MODULES ${CMAKE_CURRENT_LIST_DIR}/../../module)
set(MICROPY_FROZEN_MANIFEST ${CMAKE_CURRENT_LIST_DIR}/manifest.py)
if(PT_MANIFEST)
  set(MICROPY_FROZEN_MANIFEST ${PT_MANIFEST})
endif()
if(NOT EXISTS ${MICROPY_DIR}/lib/micropython-lib/README.md)
  set(MICROPY_LIB_DIR ${CMAKE_CURRENT_LIST_DIR}/../../..)  # any folder with a README.md
endif()

# The UF2 file is written by picotorch firmware.
set(PICO_NO_PICOTOOL 1)

# Nothing in it is C++, and Debian's compiler has no libstdc++.
add_compile_definitions(PICO_CXX_DISABLE_ALLOCATION_OVERRIDES=1)
cmake_language(DEFER CALL set_target_properties ${MICROPY_TARGET} PROPERTIES LINKER_LANGUAGE C)
cmake_language(DEFER CALL target_link_libraries ${MICROPY_TARGET} m)
