/// What the kernels of GPUs share, and what registers them.
#ifndef TROUPE_KERNELS_CUDA_CUDA_KERNELS_H_
#define TROUPE_KERNELS_CUDA_CUDA_KERNELS_H_

#include <cuda_runtime_api.h>

#include <vector>

#include "api/extension.h"
#include "devices/cuda/cuda_device.h"
#include "kernels/cuda/number.h"
#include "kernels/kernel.h"
#include "kernels/late_errors.h"

namespace troupe::cuda {

/// Where a kernel enqueues; this thread's calls go to its card from now on.
inline cudaStream_t StreamOf(const KernelContext& ctx) {
  static_cast<const CudaDevice*>(ctx.step().device)->Use();
  return static_cast<cudaStream_t>(ctx.step().stream->native());
}

/// For a kernel whose launch may find an error (`ReportLate`), which `explain` makes a status of.
inline absl::StatusOr<LateCheck> CheckLate(const KernelContext& ctx, LateErrors::Explain explain) {
  return ctx.step().late_errors->Check(ctx.step().device->allocator(MemorySpace::kPinned), explain);
}
/// The usual one: values are the position of an index, the index and its limit.
absl::Status BadIndex(const int64_t* values);

/// InvalidArgument for a type that cards do not compute with here.
absl::StatusOr<Number> NumberOf(ElementType type);

/// The types of tensors in a card's memory: all that are plain, but for int32, which the host has.
std::vector<ElementType> MovedTypes();

void RegisterArray(Extension& extension);
void RegisterBatchNorm(Extension& extension);
void RegisterBincount(Extension& extension);
void RegisterBits(Extension& extension);
void RegisterColors(Extension& extension);
void RegisterComplex(Extension& extension);
void RegisterCrop(Extension& extension);
void RegisterDecompositions(Extension& extension);
void RegisterDepthwise(Extension& extension);
void RegisterDilation(Extension& extension);
void RegisterEinsum(Extension& extension);
void RegisterElementwise(Extension& extension);
void RegisterFft(Extension& extension);
void RegisterFill(Extension& extension);
void RegisterIndexing(Extension& extension);
void RegisterLayout(Extension& extension);
void RegisterConv(Extension& extension);
void RegisterLinalg(Extension& extension);
void RegisterLrn(Extension& extension);
void RegisterMatMul(Extension& extension);
void RegisterNarrowCast(Extension& extension);
void RegisterNonMaxSuppression(Extension& extension);
void RegisterPatches(Extension& extension);
void RegisterPoolArgmax(Extension& extension);
void RegisterPooling(Extension& extension);
void RegisterProjective(Extension& extension);
void RegisterRandom(Extension& extension);
void RegisterRecurrent(Extension& extension);
void RegisterReduce(Extension& extension);
void RegisterResize(Extension& extension);
void RegisterScan(Extension& extension);
void RegisterSearch(Extension& extension);
void RegisterSegment(Extension& extension);
void RegisterSoftmax(Extension& extension);
void RegisterSelect(Extension& extension);
void RegisterSparse(Extension& extension);
void RegisterSparseSegment(Extension& extension);
void RegisterSpecial(Extension& extension);
void RegisterStatefulRandom(Extension& extension);
void RegisterStatelessRandom(Extension& extension);
void RegisterUnique(Extension& extension);
void RegisterUpdates(Extension& extension);
void RegisterVariables(Extension& extension);
void RegisterVolumePooling(Extension& extension);

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_CUDA_KERNELS_H_
