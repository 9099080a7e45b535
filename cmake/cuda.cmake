# libtroupe_cuda.so: the devices and kernels of NVIDIA cards. An extension, which is loaded when GPUs are
# asked for; of CUDA's libraries it holds the runtime, and opens the others when they are used.
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know CUDA 13
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
endif()
file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/devices/cuda/*.cc
     ${PROJECT_SOURCE_DIR}/kernels/cuda/*.cc ${PROJECT_SOURCE_DIR}/kernels/cuda/*.cu)
# What it shares with the CPU's kernels is hidden in libtroupe.so.
foreach(shared IN ITEMS array/bitcast array/blocks array/concat array/constants array/data_format
        array/dynamic_partition array/dynamic_stitch array/gather array/mirror_pad array/one_hot
        array/pad array/rearrange array/reverse array/scatter_nd array/slice array/split
        array/strided_slice common/broadcast common/integer_input common/philox fft/fft_ops
        image/crop_shape image/extract_patches image/projective image/resize_axis image/resize_shape
        image/suppression linalg/batch linalg/diagonal linalg/diagonal_bands linalg/einsum
        nn/batch_norm_shape nn/conv_shape nn/conv_windows nn/depthwise_shape nn/dilation_shape
        nn/pool_shape nn/recurrent_shape nn/volume_patches nn/volume_windows nn/window
        random/random_shuffle random/random_stream_kernel random/stateless reduce/range_size
        reduce/reduce_dims sparse/sparse_to_dense state/assign_update state/gather_ops
        state/scatter_ops state/strided_slice_assign training/update_kernel)
  list(APPEND sources ${PROJECT_SOURCE_DIR}/kernels/${shared}.cc)
endforeach()
list(APPEND sources ${PROJECT_SOURCE_DIR}/graph/ops/einsum_equation.cc)
troupe_extension(troupe_cuda ${sources})
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
target_link_libraries(troupe_cuda PRIVATE CUDA::cudart_static Eigen3::Eigen ${CMAKE_DL_LIBS})
target_include_directories(troupe_cuda SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
install(TARGETS troupe_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT libtroupe)
