# pico-sdk has the linker put float arithmetic of the boot ROM, or of a coprocessor, in the place of
# libgcc's: it takes subnormal numbers as zero. The kernels' is libgcc's, on every board. So they are
# linked with libgcc here, into one object in which only names of picotorch are left to be seen, and
# each function is still a section, which is dropped where nothing calls it.
separate_arguments(pt_flags UNIX_COMMAND "${CMAKE_C_FLAGS}")
set(pt_object ${CMAKE_BINARY_DIR}/picotorch.o)
add_custom_command(
  OUTPUT ${pt_object}
  COMMAND ${CMAKE_C_COMPILER} ${pt_flags} -r -nostdlib -Wl,--unique=.text -o ${pt_object}
          -Wl,--whole-archive $<TARGET_FILE:picotorch> -Wl,--no-whole-archive -lgcc
  COMMAND ${CMAKE_OBJCOPY} --wildcard --keep-global-symbol=pt_* --remove-section=.ARM.ex*
          --remove-section=.rel.ARM.ex* ${pt_object}
  DEPENDS picotorch
  VERBATIM)
add_custom_target(picotorch_object DEPENDS ${pt_object})
add_dependencies(usermod_picotorch picotorch_object)
target_link_libraries(usermod_picotorch INTERFACE ${pt_object})
