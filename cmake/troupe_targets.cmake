# The functions that the rooms' CMakeLists.txt call.

# What every file of Troupe is compiled with, and what whoever links libtroupe.so inherits.
add_library(troupe_headers INTERFACE)
set(TROUPE_GENERATED_DIR ${PROJECT_BINARY_DIR}/generated)
file(MAKE_DIRECTORY ${TROUPE_GENERATED_DIR}/include/troupe)
file(CONFIGURE OUTPUT ${TROUPE_GENERATED_DIR}/include/troupe/troupe.h
     CONTENT "#include \"api/troupe.h\"  // IWYU pragma: export\n")
target_include_directories(troupe_headers INTERFACE
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
    $<BUILD_INTERFACE:${TROUPE_GENERATED_DIR}>
    $<BUILD_INTERFACE:${TROUPE_GENERATED_DIR}/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/troupe>)
target_compile_features(troupe_headers INTERFACE cxx_std_20)
target_link_libraries(troupe_headers INTERFACE ${TROUPE_PUBLIC_LIBRARIES})

# troupe_room(NAME [EXCLUDE REGEX...]): one object library troupe_NAME of all .cc files below the
# calling folder. A room may be empty.
function(troupe_room name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "EXCLUDE")
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  list(FILTER sources EXCLUDE REGEX "\\.isa\\.cc$")
  if(NOT TROUPE_CUDA)
    list(FILTER sources EXCLUDE REGEX "/${name}/cuda/")
  endif()
  foreach(pattern IN LISTS arg_EXCLUDE)
    list(FILTER sources EXCLUDE REGEX ${pattern})
  endforeach()
  if(NOT sources)
    return()
  endif()
  add_library(troupe_${name} OBJECT ${sources})
  troupe_internal(troupe_${name})
  if(NOT name STREQUAL "kernels")
    target_compile_options(troupe_${name} PRIVATE ${TROUPE_LIBFUZZER})
  endif()
  troupe_use_precompiled(troupe_${name} troupe_library_headers)
  troupe_add_objects(troupe_${name})
endfunction()

# Compiles TARGET as a part of the library: all dependencies, generated messages first.
function(troupe_internal target)
  target_link_libraries(${target} PRIVATE troupe_headers ${TROUPE_PRIVATE_LIBRARIES})
  add_dependencies(${target} troupe_protos_generated)
endfunction()

# Adds the objects of TARGET, if there is such a target, to libtroupe.so.
function(troupe_add_objects target)
  if(NOT TARGET ${target})
    return()
  endif()
  set_property(GLOBAL APPEND PROPERTY TROUPE_OBJECT_LIBRARIES ${target})
endfunction()

# troupe_protos(TARGET DIRECTORY FILE...): compiles .proto files; they are included by their path
# below DIRECTORY, and the stamp target TARGET_generated stands for the generated files.
function(troupe_protos target directory)
  set(sources "")
  foreach(proto IN LISTS ARGN)
    file(RELATIVE_PATH relative ${directory} ${proto})
    string(REGEX REPLACE "\\.proto$" "" stem ${TROUPE_GENERATED_DIR}/${relative})
    add_custom_command(
        OUTPUT ${stem}.pb.cc ${stem}.pb.h
        COMMAND protobuf::protoc --cpp_out=${TROUPE_GENERATED_DIR} -I${directory} ${proto}
        DEPENDS ${ARGN}
        COMMENT "Generating ${relative}"
        VERBATIM)
    list(APPEND sources ${stem}.pb.cc ${stem}.pb.h)
  endforeach()
  add_custom_target(${target}_generated DEPENDS ${sources})
  if(NOT sources)
    return()
  endif()
  add_library(${target} OBJECT ${sources})
  target_link_libraries(${target} PUBLIC troupe_headers)
  # Generated, large and seldom hot; under sanitizers they would take half a minute each.
  target_compile_options(${target} PRIVATE
      -w $<IF:$<CONFIG:Sanitize>,-O0;-fno-sanitize=all,-O1>)
endfunction()

# Every kernels/simd/*.isa.cc once per instruction set, each with Eigen under a name of its own:
# otherwise the linker would keep one copy of Eigen's templates and all variants would run it.
function(troupe_isa_kernels)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/simd/*.isa.cc)
  if(NOT sources)
    return()
  endif()
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    set(variants v2 v3 v4)
  else()
    set(variants v2)  # the only variant, without an instruction set of its own
  endif()
  set(flags_v2 -march=x86-64-v2)
  set(flags_v3 -march=x86-64-v3)
  set(flags_v4 -march=x86-64-v4 -mprefer-vector-width=512)
  foreach(variant IN LISTS variants)
    set(target troupe_isa_${variant})
    add_library(${target} OBJECT ${sources})
    troupe_internal(${target})
    target_compile_definitions(${target} PRIVATE TROUPE_ISA=${variant} Eigen=Eigen_${variant})
    # Without errno and trapping comparisons loops vectorise; results are the same. g++ 12 takes the
    # undefined lanes of its own AVX-512 intrinsics for uninitialised variables.
    target_compile_options(${target} PRIVATE -fno-math-errno -fno-trapping-math
                           -Wno-uninitialized -Wno-unused-variable)
    # Contraction is off so that a multiplication and an addition round twice, as in TensorFlow's
    # plain kernels, with every instruction set.
    target_compile_options(${target} PRIVATE $<IF:$<CONFIG:Sanitize>,-O1,-O3> -fno-exceptions -ffp-contract=off)
    if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
      target_compile_options(${target} PRIVATE ${flags_${variant}})
    endif()
    troupe_add_objects(${target})
    if(TROUPE_TESTS AND NOT TROUPE_SANITIZE AND CMAKE_BUILD_TYPE STREQUAL "Release")
      add_test(NAME isa_symbols_${variant}
               COMMAND ${CMAKE_COMMAND} -DNM=${CMAKE_NM} -DVARIANT=${variant}
                       "-DOBJECTS=$<TARGET_OBJECTS:${target}>"
                       -P ${PROJECT_SOURCE_DIR}/cmake/check_isa_symbols.cmake)
      set_tests_properties(isa_symbols_${variant} PROPERTIES LABELS unit)
    endif()
  endforeach()
endfunction()

# All rooms in one shared library, so that no static registration is ever dropped by the linker.
function(troupe_shared_library)
  add_custom_target(troupe_generated)  # all generated headers
  foreach(generated IN ITEMS troupe_protos_generated troupe_ops_generated)
    if(TARGET ${generated})
      add_dependencies(troupe_generated ${generated})
    endif()
  endforeach()
  get_property(libraries GLOBAL PROPERTY TROUPE_OBJECT_LIBRARIES)
  file(CONFIGURE OUTPUT ${TROUPE_GENERATED_DIR}/version.cc
       CONTENT "extern \"C\" const char troupe_version[] = \"@PROJECT_VERSION@\";\n" @ONLY)
  add_library(troupe SHARED ${TROUPE_GENERATED_DIR}/version.cc)
  add_library(troupe::troupe ALIAS troupe)
  foreach(library IN LISTS libraries)
    target_sources(troupe PRIVATE $<TARGET_OBJECTS:${library}>)
  endforeach()
  set_target_properties(troupe PROPERTIES LINKER_LANGUAGE CXX VERSION ${PROJECT_VERSION}
                                          SOVERSION ${PROJECT_VERSION_MAJOR})
  target_link_libraries(troupe PUBLIC troupe_headers PRIVATE ${TROUPE_PRIVATE_LIBRARIES})
  target_link_options(troupe PRIVATE -Wl,-Bsymbolic-functions)
  if(NOT TROUPE_SANITIZE)  # a sanitizer's runtime comes with the program
    target_link_options(troupe PRIVATE -Wl,--no-undefined)
  endif()
  add_dependencies(troupe troupe_generated)
endfunction()

# troupe_program(NAME SOURCE...): a program beside the others, linked against the library and what
# programs share.
function(troupe_program name)
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE troupe_program_support troupe)
  troupe_use_precompiled(${name} troupe_program_headers)
  add_dependencies(${name} troupe_generated)
endfunction()
