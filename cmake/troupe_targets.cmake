# The functions that the rooms' CMakeLists.txt call.

# What every file of Troupe is compiled with, and what whoever links libtroupe.so inherits. Here
# headers include one another by their path from the root; installed ones by the path below
# include/, as users do. The forwarding headers make the users' way work here too.
set(TROUPE_GENERATED_DIR ${PROJECT_BINARY_DIR}/generated)
include(public_headers)
foreach(header IN LISTS TROUPE_PUBLIC_HEADERS)
  file(CONFIGURE OUTPUT ${TROUPE_GENERATED_DIR}/troupe/${header} @ONLY
       CONTENT "#include \"${header}\"  // IWYU pragma: export\n")
endforeach()
file(CONFIGURE OUTPUT ${TROUPE_GENERATED_DIR}/troupe/troupe.h
     CONTENT "#include \"api/troupe.h\"  // IWYU pragma: export\n")
add_library(troupe_headers INTERFACE)
target_include_directories(troupe_headers INTERFACE
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
    $<BUILD_INTERFACE:${TROUPE_GENERATED_DIR}>
    $<BUILD_INTERFACE:${TROUPE_GENERATED_DIR}/troupe>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(troupe_headers INTERFACE cxx_std_20)
target_link_libraries(troupe_headers INTERFACE ${TROUPE_PUBLIC_LIBRARIES})

# troupe_room(NAME [EXCLUDE REGEX...]): one object library troupe_NAME of all .cc files below the
# calling folder. A room may be empty.
function(troupe_room name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "EXCLUDE")
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  list(FILTER sources EXCLUDE REGEX "\\.isa\\.cc$")
  list(FILTER sources EXCLUDE REGEX "/${name}/cuda/")  # libtroupe_cuda.so
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

# troupe_protos(TARGET FILE...): compiles .proto files. Their names, which all protobuf users of a
# process share, begin with troupe/; the stamp target TARGET_generated stands for the generated files.
# Messages whose header is public are exported.
function(troupe_protos target)
  set(sources "")
  foreach(proto IN LISTS ARGN)
    file(RELATIVE_PATH relative ${PROJECT_SOURCE_DIR} ${proto})
    string(REGEX REPLACE "\\.proto$" "" stem ${relative})
    set(options "")
    set(include_export "")
    if(${stem}.pb.h IN_LIST TROUPE_PUBLIC_MESSAGES)
      set(options dllexport_decl=TROUPE_EXPORT:)
      set(include_export "#include \"troupe/devices/export.h\"")
    endif()
    set(generated ${TROUPE_GENERATED_DIR}/troupe/${stem}.pb)
    add_custom_command(
        OUTPUT ${generated}.cc ${generated}.h
        COMMAND protobuf::protoc --cpp_out=${options}${TROUPE_GENERATED_DIR}
                -Itroupe=${PROJECT_SOURCE_DIR} troupe/${relative}
        COMMAND sed -i "s|// @@protoc_insertion_point(includes)|${include_export}|" ${generated}.h
        DEPENDS ${ARGN}
        COMMENT "Generating ${relative}"
        VERBATIM)
    list(APPEND sources ${generated}.cc ${generated}.h)
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
                           -Wno-uninitialized -Wno-unused-variable
                           $<$<CXX_COMPILER_ID:Clang>:-Wno-pass-failed>)  # -O1 vectorises no loop
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

# libtroupe from all rooms: shared, or static with BUILD_SHARED_LIBS off. No registration is dropped:
# the static library is one object file.
function(troupe_library)
  add_custom_target(troupe_generated)  # all generated headers
  foreach(generated IN ITEMS troupe_protos_generated troupe_ops_generated)
    if(TARGET ${generated})
      add_dependencies(troupe_generated ${generated})
    endif()
  endforeach()
  file(CONFIGURE OUTPUT ${TROUPE_GENERATED_DIR}/version.cc
       CONTENT "extern \"C\" __attribute__((visibility(\"default\"))) const char troupe_version[] =
    \"@PROJECT_VERSION@\";\n" @ONLY)
  add_library(troupe_version OBJECT ${TROUPE_GENERATED_DIR}/version.cc)
  troupe_add_objects(troupe_version)
  get_property(libraries GLOBAL PROPERTY TROUPE_OBJECT_LIBRARIES)
  list(TRANSFORM libraries REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>" OUTPUT_VARIABLE objects)

  add_executable(object_symbols ${PROJECT_SOURCE_DIR}/cmake/object_symbols.cc)
  if(BUILD_SHARED_LIBS)
    add_library(troupe SHARED ${objects})
    troupe_link_library(troupe)
    target_link_options(troupe PRIVATE -Wl,-Bsymbolic-functions)
    if(NOT TROUPE_SANITIZE)
      set(exports ${PROJECT_SOURCE_DIR}/cmake/exports.map)
      target_link_options(troupe PRIVATE -Wl,--version-script=${exports})
      set_target_properties(troupe PROPERTIES LINK_DEPENDS ${exports})
    endif()
    troupe_static_library(troupe_static "${objects}")
    if(NOT TROUPE_TESTS OR CMAKE_BUILD_TYPE STREQUAL "Debug")  # debug information takes the linker long
      set_target_properties(troupe_static PROPERTIES EXCLUDE_FROM_ALL ON)
    endif()
  else()
    troupe_static_library(troupe "${objects}")
  endif()
  add_library(troupe::troupe ALIAS troupe)
  if(TROUPE_TESTS)
    troupe_visible_library("${objects}")
  endif()
endfunction()

# libtroupe.a is one object file, so that whoever uses anything of it has every registration. What is
# hidden becomes local: the program may have other versions of Eigen, CAF or Boost.
function(troupe_static_library target objects)
  set(merged ${PROJECT_BINARY_DIR}/troupe_static.o)
  file(GENERATE OUTPUT ${merged}.rsp CONTENT "$<JOIN:${objects},\n>\n")
  add_custom_command(OUTPUT ${merged}
      COMMAND ${TROUPE_BFD_LINKER} -r --force-group-allocation -o ${merged} @${merged}.rsp
      COMMAND ${CMAKE_OBJCOPY} --localize-hidden ${merged}
      COMMAND object_symbols weaken ${merged}
      DEPENDS ${objects} ${merged}.rsp
      COMMENT "Linking ${merged}"
      VERBATIM)
  add_library(${target} STATIC ${merged})
  set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX OUTPUT_NAME troupe)
  target_link_libraries(${target} PUBLIC troupe_headers INTERFACE ${TROUPE_STATIC_LINK_OPTIONS})
  add_dependencies(${target} troupe_generated)
endfunction()

# What libtroupe.so and its twin for tests have in common.
function(troupe_link_library target)
  set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX OUTPUT_NAME troupe
      VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  target_link_libraries(${target} PUBLIC troupe_headers PRIVATE ${TROUPE_PRIVATE_LIBRARIES})
  if(NOT TROUPE_SANITIZE)  # a sanitizer's runtime comes with the program
    target_link_options(${target} PRIVATE -Wl,--no-undefined)
  endif()
  add_dependencies(${target} troupe_generated)
endfunction()

# troupe_visible: a twin of libtroupe.so for tests, which look inside. It has the same name, so that
# an extension that a test loads finds it in the place of the other, and the same object files, in
# which hidden symbols have been made visible. Sanitizers hide nothing: there it is libtroupe.so.
function(troupe_visible_library objects)
  if(TROUPE_SANITIZE)
    add_library(troupe_visible ALIAS troupe)
    return()
  endif()
  set(archive ${PROJECT_BINARY_DIR}/troupe_visible.a)
  file(GENERATE OUTPUT ${archive}.rsp CONTENT "$<JOIN:${objects},\n>\n")
  add_custom_command(OUTPUT ${archive}
      COMMAND ${CMAKE_COMMAND} -E rm -f ${archive}
      COMMAND ${CMAKE_AR} qcS ${archive} @${archive}.rsp
      COMMAND object_symbols show ${archive}
      COMMAND ${CMAKE_RANLIB} ${archive}
      DEPENDS ${objects} ${archive}.rsp
      COMMENT "Packing ${archive}"
      VERBATIM)
  add_custom_target(troupe_visible_archive DEPENDS ${archive})
  file(CONFIGURE OUTPUT ${TROUPE_GENERATED_DIR}/visible.cc CONTENT "")  # a target wants a source
  add_library(troupe_visible SHARED ${TROUPE_GENERATED_DIR}/visible.cc)
  troupe_link_library(troupe_visible)
  add_dependencies(troupe_visible troupe_visible_archive)
  set_target_properties(troupe_visible PROPERTIES LINK_DEPENDS ${archive})
  target_link_options(troupe_visible PRIVATE
      -Wl,-Bsymbolic -Wl,--whole-archive ${archive} -Wl,--no-whole-archive)
  set_target_properties(troupe_visible PROPERTIES
      LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib/visible)
endfunction()

# troupe_program(NAME SOURCE...): a program beside the others, linked against the library, as users'
# programs are, and what programs share.
function(troupe_program name)
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE troupe_program_support troupe)
  if(NOT BUILD_SHARED_LIBS)  # for extensions
    set_target_properties(${name} PROPERTIES ENABLE_EXPORTS ON)
  endif()
  troupe_use_precompiled(${name} troupe_program_headers)
  add_dependencies(${name} troupe_generated)
endfunction()

# troupe_extension(NAME SOURCE...): a library that programs load. It finds a static Troupe in the
# program, instead of a second one in itself.
function(troupe_extension name)
  add_library(${name} MODULE ${ARGN})
  set_target_properties(${name} PROPERTIES PREFIX "")
  target_link_libraries(${name} PRIVATE $<IF:$<BOOL:${BUILD_SHARED_LIBS}>,troupe,troupe_headers>)
  add_dependencies(${name} troupe_generated)
endfunction()
