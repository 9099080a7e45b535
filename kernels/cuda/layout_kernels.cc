// The ops that only move elements, on cards. Tensors of int32 are on the host.
#include "kernels/array/layout_ops.h"
#include "kernels/common/registration.h"
#include "kernels/cuda/cuda_kernels.h"

namespace troupe::cuda {

void RegisterLayout(Extension& extension) {
  const auto add = [&extension](const char* op, std::initializer_list<const char*> on_host,
                                KernelFactory factory) {
    KernelSpec spec = KernelSpec(op).Device("GPU").Types("T", MovedTypes());
    for (const char* argument : on_host) spec.HostMemory(argument);
    extension.Kernel(spec, factory);
  };
  add("Concat", {"concat_dim"}, MakeKernel<layout::Concat>);
  add("ConcatV2", {"axis"}, MakeKernel<layout::ConcatV2>);
  add("Pack", {}, MakeAttrKernel<layout::Pack, "axis">);
  add("Split", {"split_dim"}, MakeKernel<layout::Split>);
  add("SplitV", {"size_splits", "split_dim"}, MakeKernel<layout::SplitV>);
  add("Unpack", {}, MakeAttrKernel<layout::Unpack, "axis">);
  add("Slice", {"begin", "size"}, MakeKernel<layout::Slice>);
  add("StridedSlice", {"begin", "end", "strides"}, layout::StridedSlice);
  add("StridedSliceGrad", {"shape", "begin", "end", "strides"}, layout::StridedSliceGrad);
  add("TensorStridedSliceUpdate", {"begin", "end", "strides"}, layout::TensorStridedSliceUpdate);
  add("BroadcastTo", {"shape"}, MakeKernel<layout::BroadcastTo>);
  add("Pad", {"paddings"}, MakeKernel<layout::Pad>);
  add("PadV2", {"paddings", "constant_values"}, MakeKernel<layout::Pad>);
  add("ReverseV2", {"axis"}, MakeKernel<layout::ReverseV2>);
  add("Tile", {"multiples"}, MakeKernel<layout::Tile>);
  add("Transpose", {"perm"}, MakeKernel<layout::Transpose>);
  add("MatrixBandPart", {"num_lower", "num_upper"}, MakeKernel<layout::MatrixBandPart>);
  add("MatrixDiag", {}, MakeKernel<layout::MatrixDiag>);
  add("MatrixDiagPart", {}, MakeKernel<layout::MatrixDiagPart>);
  add("MatrixSetDiag", {}, MakeKernel<layout::MatrixSetDiag>);
}

}  // namespace troupe::cuda
