# MicroPython's own board of the same name as the board's folder, built with what Debian has.
get_filename_component(pt_board ${MICROPY_BOARD_DIR} NAME)
include(${MICROPY_PORT_DIR}/boards/${pt_board}/mpconfigboard.cmake)
set(GEN_PINS_BOARD_CSV ${MICROPY_PORT_DIR}/boards/${pt_board}/pins.csv)
set(GEN_PINS_CSV_ARG --board-csv ${GEN_PINS_BOARD_CSV})
if(NOT EXISTS ${MICROPY_DIR}/lib/micropython-lib/README.md)
  set(MICROPY_LIB_DIR ${CMAKE_CURRENT_LIST_DIR}/../../..)  # any folder with a README.md
endif()

# The UF2 file is written by picotorch.
set(PICO_NO_PICOTOOL 1)

# Nothing in it is C++, and Debian's compiler has no libstdc++.
add_compile_definitions(PICO_CXX_DISABLE_ALLOCATION_OVERRIDES=1)
cmake_language(DEFER CALL set_target_properties ${MICROPY_TARGET} PROPERTIES LINKER_LANGUAGE C)
cmake_language(DEFER CALL target_link_libraries ${MICROPY_TARGET} m)
