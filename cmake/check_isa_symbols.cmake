# Run as: cmake -DNM=nm -DVARIANT=v3 "-DOBJECTS=a.o;b.o" -P check_isa_symbols.cmake
#
# Code compiled for one instruction set must not define a symbol that the linker could merge with
# the same symbol compiled for another (a weak std:: function, say): the program would then run
# AVX-512 code on a machine without it. Every global or weak symbol must carry the variant's name,
# from the namespace TROUPE_ISA or from Eigen's renamed namespace.

cmake_minimum_required(VERSION 3.25)

set(bad "")
foreach(object IN LISTS OBJECTS)
  execute_process(COMMAND ${NM} --defined-only --extern-only --format=posix ${object}
                  OUTPUT_VARIABLE output COMMAND_ERROR_IS_FATAL ANY)
  string(REPLACE "\n" ";" lines "${output}")
  foreach(line IN LISTS lines)
    if(line MATCHES "^([^ ]+) ([A-Za-z]) ")
      set(symbol ${CMAKE_MATCH_1})
      # 2v3: a namespace v3 in a mangled name; 8Eigen_v3: Eigen's. DW.ref is the personality
      # routine's reference, the same data everywhere; so is what a sanitizer adds.
      if(NOT symbol MATCHES "2${VARIANT}|Eigen_${VARIANT}|^DW\\.ref\\.|^__odr_asan|^\\.L")
        list(APPEND bad "${object}: ${symbol}")
      endif()
    endif()
  endforeach()
endforeach()

if(bad)
  list(LENGTH bad count)
  list(SUBLIST bad 0 40 shown)
  list(JOIN shown "\n  " shown)
  message(FATAL_ERROR
      "${count} symbols do not name the instruction set ${VARIANT} and may be merged with those "
      "of another variant:\n  ${shown}\nPut them in namespace TROUPE_ISA or an unnamed namespace, "
      "and use no std:: containers, std::function or inline functions of shared headers there.")
endif()
