# Run as: cmake -DNM=nm -DLIBRARY=libtroupe.so -P check_exports.cmake
#
# What libtroupe.so exports is named after Troupe, and none of it is in a namespace or class that is
# kept inside.

cmake_minimum_required(VERSION 3.25)

execute_process(COMMAND ${NM} --dynamic --defined-only --demangle ${LIBRARY}
                OUTPUT_VARIABLE output COMMAND_ERROR_IS_FATAL ANY)
string(REPLACE ";" "," output "${output}")
string(REPLACE "\n" ";" lines "${output}")
list(LENGTH lines count)
set(bad "")
foreach(line IN LISTS lines)
  if(line STREQUAL "")
    continue()
  endif()
  string(REGEX REPLACE "^[0-9a-f]+ . " "" symbol "${line}")
  string(REGEX REPLACE "std::complex<[a-z]+>" "complex" symbol "${symbol}")  # an element type
  if(NOT symbol MATCHES "troupe" OR symbol MATCHES "^[^(]*(std|Eigen|boost|caf|absl)::" OR
     symbol MATCHES "troupe::cluster::|Role::|::Impl::|::(FlowContext|ConstantValues)::")
    list(APPEND bad "${symbol}")
  endif()
endforeach()
list(LENGTH bad bad_count)
if(bad)
  list(SUBLIST bad 0 40 shown)
  list(JOIN shown "\n  " shown)
  message(FATAL_ERROR "${bad_count} of ${count} exported symbols should not be:\n  ${shown}")
endif()
message(STATUS "${count} symbols are exported")
