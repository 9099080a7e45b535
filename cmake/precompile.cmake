# Precompiled headers: parsing other people's headers is most of what compiling a file costs. They
# hold nothing of Troupe's own, so a changed header recompiles only the files that include it, and
# rooms cannot see one another through them. The tests of the API and the examples are the exception:
# most include all of it. Every file still includes what it uses: the debug preset
# (CMAKE_DISABLE_PRECOMPILE_HEADERS) builds without them.

set(troupe_precompiled_headers
    <algorithm> <atomic> <chrono> <cmath> <cstring> <functional> <limits> <map> <memory> <mutex>
    <optional> <set> <string> <unordered_map> <utility> <vector>
    <absl/container/flat_hash_map.h> <absl/container/inlined_vector.h>
    <absl/functional/any_invocable.h> <absl/status/statusor.h> <absl/strings/str_cat.h>
    <absl/types/span.h>
    <google/protobuf/extension_set.h> <google/protobuf/generated_enum_reflection.h>
    <google/protobuf/generated_message_reflection.h> <google/protobuf/map_entry.h>
    <google/protobuf/map_field_inl.h> <google/protobuf/repeated_field.h>
    <google/protobuf/text_format.h> <google/protobuf/unknown_field_set.h>)

# Of our own headers, for g++ only so far.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(troupe_precompiled_api <api/troupe.h>)
endif()

# Of targets that use Boost only; g++ takes a precompiled header only for the same definitions.
add_compile_definitions(BOOST_ALL_NO_LIB)

# troupe_precompile(NAME LIBRARY|PROGRAM HEADER...): precompiles HEADERs with the flags of a library
# or of a program; targets with the same flags use the result with troupe_use_precompiled.
function(troupe_precompile name kind)
  set(source ${PROJECT_BINARY_DIR}/generated/${name}.cc)
  file(CONFIGURE OUTPUT ${source} CONTENT "\n")
  add_library(${name} OBJECT ${source})
  target_link_libraries(${name} PRIVATE troupe_headers ${TROUPE_PRIVATE_LIBRARIES})
  target_precompile_headers(${name} PRIVATE ${ARGN})
  if(kind STREQUAL "PROGRAM")  # g++ refuses what was precompiled with -fPIC
    set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${name} PRIVATE ${CMAKE_CXX_COMPILE_OPTIONS_PIE})
  endif()
endfunction()

# troupe_use_precompiled(TARGET NAME)
function(troupe_use_precompiled target name)
  target_precompile_headers(${target} REUSE_FROM ${name})
endfunction()

troupe_precompile(troupe_library_headers LIBRARY ${troupe_precompiled_headers})
troupe_precompile(troupe_program_headers PROGRAM ${troupe_precompiled_headers})
