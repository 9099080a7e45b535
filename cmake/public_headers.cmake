# The headers that are installed: the client API, and what an application needs to register ops and
# kernels of its own. install_headers.cmake makes sure that they include no other ones of Troupe.

set(TROUPE_PUBLIC_MESSAGES
    graph/protos/config.pb.h graph/protos/error_codes.pb.h graph/protos/graph.pb.h
    graph/protos/meta_graph.pb.h graph/protos/stats.pb.h graph/protos/summary.pb.h
    graph/protos/tensor.pb.h)

file(GLOB TROUPE_PUBLIC_HEADERS RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS
     ${PROJECT_SOURCE_DIR}/api/*.h ${PROJECT_SOURCE_DIR}/api/layers/*.h ${PROJECT_SOURCE_DIR}/api/training/*.h)
list(APPEND TROUPE_PUBLIC_HEADERS
    devices/allocator.h devices/buffer.h devices/device.h devices/device_figures.h devices/device_name.h
    devices/device_registry.h
    devices/element_type.h devices/export.h devices/half.h devices/log.h devices/memory_use.h devices/npy.h
    devices/ref_counted.h devices/resource_handle.h devices/shape.h devices/status_macros.h devices/tensor.h
    devices/tensor_proto.h
    devices/storage/checkpoint_state.h devices/storage/file_system.h devices/storage/file_system_registry.h
    devices/storage/path.h devices/storage/record_reader.h devices/storage/record_writer.h
    devices/storage/whole_file.h
    graph/attr_reader.h graph/gradients/add_gradients.h graph/gradients/gradient.h
    graph/gradients/gradient_registry.h graph/graph.h graph/graph_def.h graph/meta_graph.h graph/op_registry.h
    graph/shape_inference.h
    kernels/kernel.h kernels/kernel_registry.h kernels/late_errors.h kernels/late_record.h
    kernels/type_switch.h
    net/cluster_resolvers.h net/cluster_spec.h)
