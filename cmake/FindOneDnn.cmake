# Finds oneDNN 2.x as target OneDnn::dnnl. Debian's own dnnl-config.cmake asks for the OpenCL
# development files, which nothing here needs.

find_path(ONEDNN_INCLUDE_DIR oneapi/dnnl/dnnl.hpp)
find_library(ONEDNN_LIBRARY dnnl)
mark_as_advanced(ONEDNN_INCLUDE_DIR ONEDNN_LIBRARY)

if(ONEDNN_INCLUDE_DIR)
  file(READ ${ONEDNN_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h onednn_text)
  set(OneDnn_VERSION "")
  foreach(part IN ITEMS MAJOR MINOR PATCH)
    string(REGEX MATCH "DNNL_VERSION_${part} ([0-9]+)" unused "${onednn_text}")
    list(APPEND OneDnn_VERSION ${CMAKE_MATCH_1})
  endforeach()
  list(JOIN OneDnn_VERSION "." OneDnn_VERSION)
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(OneDnn REQUIRED_VARS ONEDNN_LIBRARY ONEDNN_INCLUDE_DIR
                                  VERSION_VAR OneDnn_VERSION)

if(OneDnn_FOUND AND NOT TARGET OneDnn::dnnl)
  add_library(OneDnn::dnnl UNKNOWN IMPORTED)
  set_target_properties(OneDnn::dnnl PROPERTIES
      IMPORTED_LOCATION ${ONEDNN_LIBRARY}
      INTERFACE_INCLUDE_DIRECTORIES ${ONEDNN_INCLUDE_DIR})
endif()
