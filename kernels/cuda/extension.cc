// libtroupe_cuda.so: what it registers when it is loaded.
#include <memory>

#include "devices/cuda/cuda_device.h"
#include "kernels/cuda/cuda_kernels.h"

namespace troupe::cuda {

absl::Status Register(Extension& extension) {
  extension.DeviceType("GPU", std::make_shared<CudaFactory>());
  RegisterArray(extension);
  RegisterBatchNorm(extension);
  RegisterBincount(extension);
  RegisterBits(extension);
  RegisterColors(extension);
  RegisterComplex(extension);
  RegisterCrop(extension);
  RegisterDecompositions(extension);
  RegisterDepthwise(extension);
  RegisterDilation(extension);
  RegisterEinsum(extension);
  RegisterElementwise(extension);
  RegisterFft(extension);
  RegisterFill(extension);
  RegisterIndexing(extension);
  RegisterLayout(extension);
  RegisterConv(extension);
  RegisterLinalg(extension);
  RegisterLrn(extension);
  RegisterMatMul(extension);
  RegisterNarrowCast(extension);
  RegisterNonMaxSuppression(extension);
  RegisterPatches(extension);
  RegisterPoolArgmax(extension);
  RegisterPooling(extension);
  RegisterProjective(extension);
  RegisterRandom(extension);
  RegisterRecurrent(extension);
  RegisterReduce(extension);
  RegisterResize(extension);
  RegisterScan(extension);
  RegisterSearch(extension);
  RegisterSegment(extension);
  RegisterSoftmax(extension);
  RegisterSelect(extension);
  RegisterSparse(extension);
  RegisterSparseSegment(extension);
  RegisterSpecial(extension);
  RegisterStatefulRandom(extension);
  RegisterStatelessRandom(extension);
  RegisterUnique(extension);
  RegisterUpdates(extension);
  RegisterVariables(extension);
  RegisterVolumePooling(extension);
  return absl::OkStatus();
}

}  // namespace troupe::cuda

TROUPE_EXTENSION(troupe::cuda::Register)
