// libtroupe_cuda.so: what it registers when it is loaded.
#include <memory>

#include "devices/cuda/cuda_device.h"
#include "kernels/cuda/cuda_kernels.h"

namespace troupe::cuda {

absl::Status Register(Extension& extension) {
  extension.DeviceType("GPU", std::make_shared<CudaFactory>());
  RegisterBatchNorm(extension);
  RegisterDecompositions(extension);
  RegisterEinsum(extension);
  RegisterElementwise(extension);
  RegisterFft(extension);
  RegisterFill(extension);
  RegisterIndexing(extension);
  RegisterLayout(extension);
  RegisterConv(extension);
  RegisterLinalg(extension);
  RegisterMatMul(extension);
  RegisterPooling(extension);
  RegisterRandom(extension);
  RegisterRecurrent(extension);
  RegisterReduce(extension);
  RegisterScan(extension);
  RegisterSearch(extension);
  RegisterSegment(extension);
  RegisterSoftmax(extension);
  RegisterSelect(extension);
  RegisterUpdates(extension);
  RegisterVariables(extension);
  return absl::OkStatus();
}

}  // namespace troupe::cuda

TROUPE_EXTENSION(troupe::cuda::Register)
