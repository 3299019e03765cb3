# The user C module _picotorch, as micropython.mk has it: the binding in this folder, and kernels/.
# PT_OPERATORS names another list of operators (picotorch firmware --operators); else all. PT_MODELS_C:
# models in the firmware's flash, a C file that host/picotorch/host/frozen_models.py wrote.
add_subdirectory(${CMAKE_CURRENT_LIST_DIR}/../../kernels picotorch)
file(GLOB pt_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*.c)
# A port's own flags may read every constant as a float; where a source computes in double it means to.
target_compile_options(picotorch PRIVATE -fno-single-precision-constant)
set_source_files_properties(${pt_sources} PROPERTIES COMPILE_OPTIONS -fno-single-precision-constant)

add_library(usermod_picotorch INTERFACE)
target_sources(usermod_picotorch INTERFACE ${pt_sources} ${PT_MODELS_C})
target_include_directories(usermod_picotorch INTERFACE
                           ${CMAKE_CURRENT_LIST_DIR} ${CMAKE_CURRENT_LIST_DIR}/../../kernels/include
                           ${CMAKE_CURRENT_LIST_DIR}/../../kernels)
if(PICO_ON_DEVICE)
  include(${CMAKE_CURRENT_LIST_DIR}/../upstream/rp2/floats.cmake)
else()
  target_link_libraries(usermod_picotorch INTERFACE picotorch)
endif()
target_link_libraries(usermod INTERFACE usermod_picotorch)
