#include "kernels/cuda/cudnn.h"

#include <dlfcn.h>

#include <string>
#include <type_traits>

#include "devices/status_macros.h"

namespace troupe::cuda {
namespace {

/// cuDNN 9.0: what is called here is as old. CUDNN_VERSION is that of the headers.
constexpr size_t kOldest = 90000;

absl::StatusOr<const Cudnn*> Open() {
  void* const library = dlopen("libcudnn.so.9", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return absl::FailedPreconditionError(
        StrCat("convolutions on GPUs need cuDNN 9, which cannot be loaded: ", dlerror(),
               "; name its folder in LD_LIBRARY_PATH"));
  }
  static Cudnn functions;
  bool all = true;
  const auto find = [&](const char* name, auto* function) {
    *function = reinterpret_cast<std::remove_pointer_t<decltype(function)>>(dlsym(library, name));
    all = all && *function != nullptr;
  };
  find("cudnnGetVersion", &functions.get_version);
  find("cudnnGetErrorString", &functions.error_string);
  find("cudnnGetLastErrorString", &functions.last_error_string);
  find("cudnnCreate", &functions.create);
  find("cudnnSetStream", &functions.set_stream);
  find("cudnnBackendCreateDescriptor", &functions.create_descriptor);
  find("cudnnBackendDestroyDescriptor", &functions.destroy_descriptor);
  find("cudnnBackendFinalize", &functions.finalize);
  find("cudnnBackendSetAttribute", &functions.set_attribute);
  find("cudnnBackendGetAttribute", &functions.get_attribute);
  find("cudnnBackendExecute", &functions.execute);
  if (!all) return absl::FailedPreconditionError("libcudnn.so.9 lacks functions");
  if (functions.get_version() < kOldest) {
    return absl::FailedPreconditionError(
        StrCat("libcudnn.so.9 is of version ", functions.get_version(),
               "; convolutions on GPUs need ", kOldest, " or newer"));
  }
  return &functions;
}

}  // namespace

absl::StatusOr<const Cudnn*> Cudnn::Get() {
  static const absl::StatusOr<const Cudnn*> opened = Open();
  return opened;
}

absl::Status Cudnn::StatusOf(cudnnStatus_t status, std::string_view what) const {
  if (status == CUDNN_STATUS_SUCCESS) return absl::OkStatus();
  char why[1024] = "";
  last_error_string(why, sizeof(why));
  const std::string message = StrCat(what, ": ", error_string(status), " ", why);
  if (status == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED ||
      status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED) {
    return absl::ResourceExhaustedError(message);
  }
  return CUDNN_STATUS_CATEGORY(status) == CUDNN_STATUS_NOT_SUPPORTED
             ? absl::UnimplementedError(message)
             : absl::InternalError(message);
}

absl::StatusOr<CudnnDescriptor> CudnnDescriptor::Make(const Cudnn& cudnn,
                                                      cudnnBackendDescriptorType_t type) {
  cudnnBackendDescriptor_t descriptor = nullptr;
  TROUPE_RETURN_IF_ERROR(
      cudnn.StatusOf(cudnn.create_descriptor(type, &descriptor), "making a descriptor of cuDNN"));
  return CudnnDescriptor(&cudnn, descriptor);
}

CudnnDescriptor& CudnnDescriptor::SetRaw(cudnnBackendAttributeName_t name,
                                         cudnnBackendAttributeType_t type, int64_t count,
                                         const void* values) {
  if (!status_.ok()) return *this;
  const cudnnStatus_t set = cudnn_->set_attribute(descriptor_, name, type, count, values);
  if (set != CUDNN_STATUS_SUCCESS) {
    status_ =
        cudnn_->StatusOf(set, StrCat("setting attribute ", static_cast<int>(name), " of cuDNN"));
  }
  return *this;
}

absl::Status CudnnDescriptor::Finalize() {
  if (!status_.ok()) return status_;
  return cudnn_->StatusOf(cudnn_->finalize(descriptor_), "preparing a convolution");
}

absl::StatusOr<int64_t> CudnnDescriptor::Get(cudnnBackendAttributeName_t name,
                                             cudnnBackendAttributeType_t type, int64_t room,
                                             void* values) const {
  int64_t count = 0;
  TROUPE_RETURN_IF_ERROR(
      cudnn_->StatusOf(cudnn_->get_attribute(descriptor_, name, type, room, &count, values),
                       StrCat("reading attribute ", static_cast<int>(name), " of cuDNN")));
  return count;
}

}  // namespace troupe::cuda
