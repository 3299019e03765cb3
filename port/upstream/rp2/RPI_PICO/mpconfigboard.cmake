include(${CMAKE_CURRENT_LIST_DIR}/../board.cmake)
