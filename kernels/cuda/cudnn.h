/// cuDNN 9's graph interface, which is opened when the first convolution is made.
#ifndef TROUPE_KERNELS_CUDA_CUDNN_H_
#define TROUPE_KERNELS_CUDA_CUDNN_H_

#include <cudnn_graph.h>

#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace troupe::cuda {

/// The library's functions.
struct Cudnn {
  decltype(&cudnnGetVersion) get_version;
  decltype(&cudnnGetErrorString) error_string;
  decltype(&cudnnGetLastErrorString) last_error_string;
  decltype(&cudnnCreate) create;
  decltype(&cudnnSetStream) set_stream;
  decltype(&cudnnBackendCreateDescriptor) create_descriptor;
  decltype(&cudnnBackendDestroyDescriptor) destroy_descriptor;
  decltype(&cudnnBackendFinalize) finalize;
  decltype(&cudnnBackendSetAttribute) set_attribute;
  decltype(&cudnnBackendGetAttribute) get_attribute;
  decltype(&cudnnBackendExecute) execute;

  /// FailedPrecondition if it is not there, with the loader's words, or too old.
  static absl::StatusOr<const Cudnn*> Get();

  /// What the library says when `what` has failed.
  absl::Status StatusOf(cudnnStatus_t status, std::string_view what) const;
};

/// A descriptor of the library, owned. Attributes are set, then it is finalized, then read.
class CudnnDescriptor {
 public:
  static absl::StatusOr<CudnnDescriptor> Make(const Cudnn& cudnn,
                                              cudnnBackendDescriptorType_t type);
  ~CudnnDescriptor() {
    if (descriptor_ != nullptr) cudnn_->destroy_descriptor(descriptor_);
  }
  CudnnDescriptor(CudnnDescriptor&& other) noexcept
      : cudnn_(other.cudnn_),
        descriptor_(std::exchange(other.descriptor_, nullptr)),
        status_(std::move(other.status_)) {}
  CudnnDescriptor& operator=(CudnnDescriptor&& other) noexcept {
    std::swap(cudnn_, other.cudnn_);
    std::swap(descriptor_, other.descriptor_);
    std::swap(status_, other.status_);
    return *this;
  }

  /// Setters keep the first error for `Finalize`.
  template <typename T>
  CudnnDescriptor& Set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                       absl::Span<const T> values) {
    return SetRaw(name, type, static_cast<int64_t>(values.size()), values.data());
  }
  template <typename T>
  CudnnDescriptor& Set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                       const T& value) {
    return SetRaw(name, type, 1, &value);
  }
  CudnnDescriptor& Set(cudnnBackendAttributeName_t name, absl::Span<const int64_t> values) {
    return Set(name, CUDNN_TYPE_INT64, values);
  }
  CudnnDescriptor& Set(cudnnBackendAttributeName_t name, const CudnnDescriptor& value) {
    return Set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, value.descriptor_);
  }
  absl::Status Finalize();

  /// Up to `room` elements of an attribute, or as many as there are for a `room` of 0.
  absl::StatusOr<int64_t> Get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                              int64_t room, void* values) const;

  cudnnBackendDescriptor_t get() const { return descriptor_; }

 private:
  CudnnDescriptor(const Cudnn* cudnn, cudnnBackendDescriptor_t descriptor)
      : cudnn_(cudnn), descriptor_(descriptor) {}
  CudnnDescriptor& SetRaw(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                          int64_t count, const void* values);

  const Cudnn* cudnn_;
  cudnnBackendDescriptor_t descriptor_;
  absl::Status status_;
};

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_CUDNN_H_
