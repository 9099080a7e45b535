# At install time: copies the public headers to TROUPE_HEADER_DESTINATION, which is include/troupe.
# What includes another header by its path from the root of the sources includes it by its path
# below include/ there, so that nothing is found in place of a header of the user's own.

cmake_minimum_required(VERSION 3.25)

foreach(header IN LISTS TROUPE_INSTALLED_HEADERS)
  set(path ${TROUPE_GENERATED_DIR}/troupe/${header})
  if(EXISTS ${TROUPE_SOURCE_DIR}/${header})
    set(path ${TROUPE_SOURCE_DIR}/${header})
  endif()
  file(READ ${path} text)
  string(REGEX REPLACE "(^|\n)#include \"((devices|graph|kernels|actors|net|api)/)"
                       "\\1#include \"troupe/\\2" text "${text}")
  string(REGEX MATCHALL "\n#include \"troupe/[^\"]+" includes "${text}")
  foreach(include IN LISTS includes)
    string(REGEX REPLACE ".*\"troupe/" "" include "${include}")
    if(NOT include IN_LIST TROUPE_INSTALLED_HEADERS)
      message(FATAL_ERROR "the public header ${header} includes ${include}, which is not public: "
                          "see cmake/public_headers.cmake")
    endif()
  endforeach()
  file(WRITE ${TROUPE_HEADER_STAGE}/${header} "${text}")
  cmake_path(GET header PARENT_PATH folder)
  file(INSTALL ${TROUPE_HEADER_STAGE}/${header} DESTINATION ${TROUPE_HEADER_DESTINATION}/${folder})
endforeach()
