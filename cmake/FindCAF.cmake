# Finds the C++ Actor Framework, whose Debian package brings no CMake files.
#
#   find_package(CAF 0.17.6 REQUIRED COMPONENTS core io)
#
# defines a target CAF::<component> for each component that was found.

find_path(CAF_INCLUDE_DIR caf/all.hpp)
mark_as_advanced(CAF_INCLUDE_DIR)

if(CAF_INCLUDE_DIR)
  file(STRINGS ${CAF_INCLUDE_DIR}/caf/config.hpp caf_version_line REGEX "#define CAF_VERSION ")
  if(caf_version_line MATCHES "CAF_VERSION ([0-9]+)")  # 1706 is 0.17.6
    math(EXPR caf_major "${CMAKE_MATCH_1} / 10000")
    math(EXPR caf_minor "${CMAKE_MATCH_1} / 100 % 100")
    math(EXPR caf_patch "${CMAKE_MATCH_1} % 100")
    set(CAF_VERSION ${caf_major}.${caf_minor}.${caf_patch})
  endif()
endif()

foreach(component IN LISTS CAF_FIND_COMPONENTS)
  find_library(CAF_${component}_LIBRARY caf_${component})
  mark_as_advanced(CAF_${component}_LIBRARY)
  set(caf_header caf/${component}/all.hpp)
  if(component STREQUAL "core")
    set(caf_header caf/all.hpp)
  endif()
  if(CAF_${component}_LIBRARY AND EXISTS ${CAF_INCLUDE_DIR}/${caf_header})
    set(CAF_${component}_FOUND TRUE)
  endif()
endforeach()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(CAF REQUIRED_VARS CAF_INCLUDE_DIR
                                  VERSION_VAR CAF_VERSION HANDLE_COMPONENTS)

if(CAF_FOUND)
  find_package(Threads REQUIRED)
  foreach(component IN LISTS CAF_FIND_COMPONENTS)
    if(CAF_${component}_FOUND AND NOT TARGET CAF::${component})
      add_library(CAF::${component} UNKNOWN IMPORTED)
      set_target_properties(CAF::${component} PROPERTIES
          IMPORTED_LOCATION ${CAF_${component}_LIBRARY}
          INTERFACE_INCLUDE_DIRECTORIES ${CAF_INCLUDE_DIR}
          INTERFACE_LINK_LIBRARIES Threads::Threads)
      if(component STREQUAL "io")
        target_link_libraries(CAF::io INTERFACE CAF::core)
      endif()
    endif()
  endforeach()
endif()
