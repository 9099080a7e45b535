# libtroupe_cuda.so: the devices and kernels of NVIDIA cards. An extension, which is loaded when GPUs are
# asked for; of CUDA's libraries it holds the runtime, and opens the others when they are used.
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know CUDA 13
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
endif()
file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/devices/cuda/*.cc
     ${PROJECT_SOURCE_DIR}/kernels/cuda/*.cc ${PROJECT_SOURCE_DIR}/kernels/cuda/*.cu)
troupe_extension(troupe_cuda ${sources})
# What it shares with the CPU's kernels is hidden in libtroupe.so: the linker takes it from here.
add_library(troupe_shared_with_cuda STATIC EXCLUDE_FROM_ALL
            $<TARGET_OBJECTS:troupe_graph> $<TARGET_OBJECTS:troupe_kernels>)
set_target_properties(troupe_shared_with_cuda PROPERTIES LINKER_LANGUAGE CXX)
troupe_use_precompiled(troupe_cuda troupe_library_headers)
# The CPU's bits, or its choices: products and sums are rounded one after the other there.
foreach(exact IN ITEMS colors crop non_max_suppression projective random random_gamma resize)
  set_source_files_properties(${PROJECT_SOURCE_DIR}/kernels/cuda/${exact}.cu PROPERTIES
      COMPILE_OPTIONS -fmad=false)
endforeach()
# Eigen's special functions use the limits of the standard library, which are constant expressions.
foreach(special IN ITEMS special special_binary)
  set_source_files_properties(${PROJECT_SOURCE_DIR}/kernels/cuda/${special}.cu PROPERTIES
      COMPILE_OPTIONS --expt-relaxed-constexpr)
endforeach()
target_compile_options(troupe_cuda PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:--extended-lambda>)
set_target_properties(troupe_cuda PROPERTIES
    OUTPUT_NAME libtroupe_cuda CUDA_STANDARD 20 CUDA_VISIBILITY_PRESET hidden LINKER_LANGUAGE CXX
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
target_link_libraries(troupe_cuda PRIVATE troupe_shared_with_cuda CUDA::cudart_static Eigen3::Eigen ${CMAKE_DL_LIBS})
target_include_directories(troupe_cuda SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
install(TARGETS troupe_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT libtroupe)
