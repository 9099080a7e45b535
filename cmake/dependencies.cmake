# Every library that Troupe uses, found in this one place. docs/dependencies.md gives the reasons,
# scripts/install-packages the Debian packages.

find_package(Threads REQUIRED)
find_package(absl REQUIRED)
find_package(Protobuf 3.21 REQUIRED)
find_package(Eigen3 3.4 REQUIRED NO_MODULE)
find_package(OneDnn 2.6 REQUIRED)
find_package(Boost 1.74 REQUIRED)
find_package(ZLIB REQUIRED)
find_package(PNG REQUIRED)
find_package(JPEG REQUIRED)
find_package(GIF 5 REQUIRED)
find_package(OpenSSL 3.0 REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(CLI11 2.1 REQUIRED)
find_package(spdlog 1.10 REQUIRED)  # its headers, for devices/log.cc
find_package(CAF 0.17.6 REQUIRED COMPONENTS core)
if(TROUPE_TESTS)
  find_package(GTest REQUIRED)
  find_package(benchmark REQUIRED)
  find_library(TROUPE_FFTW_LIBRARY fftw3 REQUIRED)  # beside our own transforms, in kernels_fft_test alone
endif()
if(TROUPE_CUDA STREQUAL "AUTO")
  # Sanitizers have nothing to see there.
  set(TROUPE_CUDA OFF)
  if(NOT TROUPE_SANITIZE)
    include(CheckLanguage)
    check_language(CUDA)
    if(CMAKE_CUDA_COMPILER)
      set(TROUPE_CUDA ON)
    endif()
  endif()
endif()
if(TROUPE_CUDA)
  set(CMAKE_CUDA_ARCHITECTURES 90 CACHE STRING "Of libtroupe_cuda.so.")  # scripts read it there.
  enable_language(CUDA)
  find_package(CUDAToolkit REQUIRED)
  message(STATUS "CUDA ${CUDAToolkit_VERSION}: libtroupe_cuda.so is built for ${CMAKE_CUDA_ARCHITECTURES}")
else()
  message(STATUS "No CUDA: libtroupe_cuda.so is not built")
endif()

# oneDNN runs its own loops with OpenMP; ours call into the same runtime to keep it at one thread.
find_library(TROUPE_GOMP_LIBRARY NAMES gomp libgomp.so.1
             HINTS /usr/lib/gcc/${CMAKE_LIBRARY_ARCHITECTURE}/12)

# Checkpoints. By file, not by target: leveldb's target defines a macro, and every file would be compiled with it.
find_library(TROUPE_LEVELDB_LIBRARY leveldb REQUIRED)
find_library(TROUPE_SNAPPY_LIBRARY snappy REQUIRED)
find_library(TROUPE_ISAL_LIBRARY isal REQUIRED)

# Regular expressions, fingerprints, letters of all scripts. Debian has no CMake files for the first two.
find_library(TROUPE_RE2_LIBRARY re2 REQUIRED)
find_library(TROUPE_FARMHASH_LIBRARY farmhash REQUIRED)
find_package(ICU REQUIRED COMPONENTS uc)

# What users of libtroupe.so compile and link against.
set(TROUPE_PUBLIC_LIBRARIES
    absl::any_invocable absl::base absl::bits absl::btree absl::cleanup absl::cord
    absl::core_headers absl::flat_hash_map absl::flat_hash_set absl::function_ref absl::hash
    absl::inlined_vector absl::int128 absl::memory absl::node_hash_map absl::optional absl::span
    absl::status absl::statusor absl::str_format absl::strings absl::synchronization absl::time
    absl::variant protobuf::libprotobuf Threads::Threads)

# What stays inside it.
set(TROUPE_PRIVATE_LIBRARIES
    CAF::core OneDnn::dnnl Eigen3::Eigen Boost::headers ZLIB::ZLIB PNG::PNG
    JPEG::JPEG GIF::GIF
    nlohmann_json::nlohmann_json OpenSSL::SSL OpenSSL::Crypto
    ${TROUPE_LEVELDB_LIBRARY} ${TROUPE_SNAPPY_LIBRARY} ${TROUPE_ISAL_LIBRARY}
    ${TROUPE_RE2_LIBRARY} ${TROUPE_FARMHASH_LIBRARY} ICU::uc ${TROUPE_GOMP_LIBRARY})

# How programs link what stays inside if the library is static.
set(TROUPE_STATIC_LINK_OPTIONS -lcaf_core -ldnnl -lssl -lcrypto -lpng -ljpeg -lgif -lz -lleveldb -lsnappy -lisal -lre2 -lfarmhash -licuuc -licudata -lgomp -ldl -lpthread)
