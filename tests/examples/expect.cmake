# Runs a program, which must succeed and print what matches PATTERN. If AT_LEAST or AT_MOST is given, the
# number that the pattern's first group has found has that bound.
#
#   cmake -DPATTERN=... [-DAT_LEAST=N] [-DAT_MOST=N] -P expect.cmake PROGRAM ARGUMENT...

set(command "")
set(behind_script FALSE)
math(EXPR last "${CMAKE_ARGC} - 1")
foreach(i RANGE ${last})
  if(behind_script)
    list(APPEND command "${CMAKE_ARGV${i}}")
  elseif(CMAKE_ARGV${i} MATCHES "expect\\.cmake$")
    set(behind_script TRUE)
  endif()
endforeach()

execute_process(COMMAND ${command} RESULT_VARIABLE result OUTPUT_VARIABLE output)
message("${output}")
if(NOT result EQUAL 0)
  message(FATAL_ERROR "exit status ${result}")
endif()
if(NOT output MATCHES "${PATTERN}")
  message(FATAL_ERROR "the output does not match ${PATTERN}")
endif()
set(number "${CMAKE_MATCH_1}")
if((NOT AT_LEAST STREQUAL "" AND NOT number GREATER_EQUAL AT_LEAST) OR
   (NOT AT_MOST STREQUAL "" AND NOT number LESS_EQUAL AT_MOST))
  message(FATAL_ERROR "${number} is out of bounds [${AT_LEAST}, ${AT_MOST}]")
endif()
