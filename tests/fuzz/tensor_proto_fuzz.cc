// A TensorProto from outside: parsed, and if it is a tensor, written and read again.

#include <cstdint>
#include <cstdlib>

#include "devices/tensor_proto.h"
#include "graph/protos/tensor.pb.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  troupe::HostAllocator()->set_limit(64 << 20);  // claims of gigabytes cost only time
  troupe::TensorProto proto;
  if (!proto.ParseFromArray(data, static_cast<int>(size))) return 0;
  const absl::StatusOr<troupe::Tensor> tensor = troupe::TensorFromProto(proto);
  if (!tensor.ok()) return 0;
  tensor->ToString();
  troupe::TensorProto again;
  troupe::TensorToProto(*tensor, &again);
  const absl::StatusOr<troupe::Tensor> copy = troupe::TensorFromProto(again);
  const bool exhausted = absl::IsResourceExhausted(copy.status());
  if (!exhausted && (!copy.ok() || copy->shape() != tensor->shape())) std::abort();
  return 0;
}
