# Language, warnings, sanitizers, compiler cache and linker: how everything is compiled.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_SCAN_FOR_MODULES OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
if(NOT TROUPE_SANITIZE)  # what sanitizers see is not shipped, and tests look inside
  set(CMAKE_CXX_VISIBILITY_PRESET hidden)  # devices/export.h
endif()
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_LINK_DEPENDS_NO_SHARED ON)  # tests need no relinking when only libtroupe.so changed

set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
set(CMAKE_INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")

set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_CUDA_FLAGS_RELEASE "-O1 -DNDEBUG")  # of the host's code, which only launches kernels
set(CMAKE_CXX_FLAGS_DEBUG "-O0 -g")
set(CMAKE_CXX_FLAGS_SANITIZE "-O1 -g1 -fno-omit-frame-pointer")

# nvcc has options of its own.
add_compile_options(
    "$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wno-missing-field-initializers>")
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Collecting garbage only where a file takes more than 600 MB saves a tenth of the time to compile.
  add_compile_options(
      "$<$<COMPILE_LANGUAGE:CXX>:-fno-semantic-interposition;--param=ggc-min-heapsize=600000>")
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  add_compile_options(-Wno-unknown-pragmas)  # g++'s ivdep
endif()
if(TROUPE_WERROR)
  # g++ 12 takes what an absl::StatusOr holds for uninitialized, now and then.
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-Werror;$<$<CXX_COMPILER_ID:GNU>:-Wno-error=maybe-uninitialized>>"
                      "$<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings>")
endif()

if(TROUPE_SANITIZE STREQUAL "address")
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=undefined)
  add_link_options(-fsanitize=address,undefined)
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    # What compiling costs matters more than speed: without optimisation it is half as much. These checks are a third
    # of it, for mistakes that end the process anyway or that the address sanitizer sees.
    add_compile_options(-O0 -fno-sanitize=vptr,null,object-size,function)
    # What libFuzzer learns from, for rooms where bytes from outside are parsed (troupe_room). These are
    # what -fsanitize=fuzzer-no-link stands for, in a form that precompiled headers need not share.
    set(TROUPE_LIBFUZZER
        -fsanitize-coverage=inline-8bit-counters,indirect-calls,trace-cmp,pc-table,stack-depth)
  endif()
elseif(TROUPE_SANITIZE STREQUAL "thread")
  # protobuf's map fields are laid out otherwise when they see this macro, and Debian's library has not seen it.
  # g++ warns of the few hidden classes where nothing else is hidden.
  add_compile_options(-fsanitize=thread -U__SANITIZE_THREAD__ -Wno-attributes)
  add_link_options(-fsanitize=thread)
elseif(TROUPE_SANITIZE)
  message(FATAL_ERROR "TROUPE_SANITIZE is '${TROUPE_SANITIZE}'; expected '', 'address' or 'thread'")
endif()

find_program(TROUPE_CCACHE ccache)
if(TROUPE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Precompiled headers are large: the inode cache has each read only once.
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_INODECACHE=1 CCACHE_SLOPPINESS=pch_defines,time_macros)
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    # Clones share nothing: a precompiled header of clang's names its own place, which may be gone.
    add_compile_options("SHELL:-Xclang -fno-pch-timestamp")  # the cache restores other times
  else()
    # Paths inside the source folder are made relative, so that several build folders and clones share results.
    list(APPEND CMAKE_CXX_COMPILER_LAUNCHER CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1)
  endif()
  list(APPEND CMAKE_CXX_COMPILER_LAUNCHER ${TROUPE_CCACHE})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()

# Libraries that nothing calls yet are not loaded: start-up time and memory are measured.
add_link_options(-Wl,--as-needed)

find_program(TROUPE_BFD_LINKER ld.bfd)  # for object files of object files
find_program(TROUPE_MOLD mold)
find_program(TROUPE_LLD ld.lld)
if(TROUPE_MOLD AND (NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU"
                    OR CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 12.1))
  add_link_options(-fuse-ld=mold)
elseif(TROUPE_LLD)
  add_link_options(-fuse-ld=lld)
endif()
