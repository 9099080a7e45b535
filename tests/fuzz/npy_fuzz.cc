// A .npy file from outside: parsed, and if it is a tensor, written and read again.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "devices/npy.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::StatusOr<troupe::Tensor> tensor =
      troupe::ParseNpy(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!tensor.ok()) return 0;
  tensor->ToString();
  const absl::StatusOr<std::string> bytes = troupe::SerializeNpy(*tensor);
  if (!bytes.ok()) std::abort();
  const absl::StatusOr<troupe::Tensor> copy = troupe::ParseNpy(*bytes);
  if (!copy.ok() || copy->shape() != tensor->shape() || copy->type() != tensor->type())
    std::abort();
  return 0;
}
