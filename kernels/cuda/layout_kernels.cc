// The ops that only move elements, on cards. Tensors of int32 are on the host.
#include <utility>
#include <vector>

#include "kernels/array/layout_ops.h"
#include "kernels/common/registration.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/elementwise.h"

namespace troupe::cuda {
namespace {

absl::Status ConjugateTranspose(KernelContext& ctx) {
  TROUPE_RETURN_IF_ERROR(layout::Transpose(ctx));
  if (!IsComplex(ctx.output(0).type())) return absl::OkStatus();
  // A transposition that moves nothing passes its input on.
  const Tensor transposed = std::move(ctx.output(0));
  if (transposed.unique()) {
    ctx.set_output(0, transposed);
  } else {
    TROUPE_RETURN_IF_ERROR(ctx.AllocateOutput(0, transposed.type(), transposed.shape()).status());
  }
  TROUPE_ASSIGN_OR_RETURN(const Number type, NumberOf(transposed.type()));
  return CudaStatus(LaunchUnaryComplex(UnaryOp::kConj, type, transposed.raw_data(),
                                       ctx.output(0).mutable_raw_data(), transposed.num_elements(),
                                       StreamOf(ctx)),
                    "a conjugate transposition");
}

}  // namespace

void RegisterLayout(Extension& extension) {
  const auto with = [&extension](const char* op, std::vector<ElementType> types,
                                 std::initializer_list<const char*> on_host,
                                 KernelFactory factory) {
    KernelSpec spec = KernelSpec(op).Device("GPU").Types("T", std::move(types));
    for (const char* argument : on_host) spec.HostMemory(argument);
    extension.Kernel(spec, factory);
  };
  const auto add = [&with](const char* op, std::initializer_list<const char*> on_host,
                           KernelFactory factory) { with(op, MovedTypes(), on_host, factory); };
  std::vector<ElementType> diagonal = FloatAndComplexTypes();
  diagonal.push_back(ElementType::kInt64);
  std::vector<ElementType> narrow = MovedTypes();
  narrow.insert(narrow.end(), {ElementType::kFloat8E5m2, ElementType::kFloat8E4m3fn});
  with("Concat", narrow, {"concat_dim"}, MakeKernel<layout::Concat>);
  with("ConcatV2", narrow, {"axis"}, MakeKernel<layout::ConcatV2>);
  with("Pack", narrow, {}, MakeAttrKernel<layout::Pack, "axis">);
  add("ParallelConcat", {}, MakeAttrKernel<layout::ParallelConcat, "shape">);
  add("Split", {"split_dim"}, MakeKernel<layout::Split>);
  add("SplitV", {"size_splits", "split_dim"}, MakeKernel<layout::SplitV>);
  add("Unpack", {}, MakeAttrKernel<layout::Unpack, "axis">);
  add("Slice", {"begin", "size"}, MakeKernel<layout::Slice>);
  add("StridedSlice", {"begin", "end", "strides"}, layout::StridedSlice);
  add("StridedSliceGrad", {"shape", "begin", "end", "strides"}, layout::StridedSliceGrad);
  add("TensorStridedSliceUpdate", {"begin", "end", "strides"}, layout::TensorStridedSliceUpdate);
  with("BroadcastTo", narrow, {"shape"}, MakeKernel<layout::BroadcastTo>);
  add("MirrorPad", {"paddings"}, MakeAttrKernel<layout::MirrorPad, "mode">);
  with("MirrorPadGrad", FloatTypes(), {"paddings"}, MakeAttrKernel<layout::MirrorPadGrad, "mode">);
  add("Pad", {"paddings"}, MakeKernel<layout::Pad>);
  add("PadV2", {"paddings", "constant_values"}, MakeKernel<layout::Pad>);
  add("Reverse", {"dims"}, MakeKernel<layout::Reverse>);
  add("ReverseSequence", {}, MakeAttrKernel<layout::ReverseSequence, "seq_dim", "batch_dim">);
  add("ReverseV2", {"axis"}, MakeKernel<layout::ReverseV2>);
  add("Roll", {"shift", "axis"}, MakeKernel<layout::Roll>);
  add("Tile", {"multiples"}, MakeKernel<layout::Tile>);
  with("Transpose", narrow, {"perm"}, MakeKernel<layout::Transpose>);
  with("ConjugateTranspose", narrow, {"perm"}, MakeKernel<ConjugateTranspose>);
  add("BatchToSpace", {"crops"}, MakeAttrKernel<layout::BatchToSpace, "block_size">);
  add("BatchToSpaceND", {"block_shape", "crops"}, MakeKernel<layout::BatchToSpaceND>);
  add("DepthToSpace", {}, MakeAttrKernel<layout::DepthToSpace, "block_size", "data_format">);
  add("SpaceToBatch", {"paddings"}, MakeAttrKernel<layout::SpaceToBatch, "block_size">);
  add("SpaceToBatchND", {"block_shape", "paddings"}, MakeKernel<layout::SpaceToBatchND>);
  add("SpaceToDepth", {}, MakeAttrKernel<layout::SpaceToDepth, "block_size", "data_format">);
  with("Diag", diagonal, {}, MakeKernel<layout::Diag>);
  with("DiagPart", diagonal, {}, MakeKernel<layout::DiagPart>);
  add("MatrixBandPart", {"num_lower", "num_upper"}, MakeKernel<layout::MatrixBandPart>);
  add("MatrixDiag", {}, MakeKernel<layout::MatrixDiag>);
  add("MatrixDiagV2", {"k", "num_rows", "num_cols", "padding_value"},
      MakeKernel<layout::MatrixDiagV2>);
  add("MatrixDiagV3", {"k", "num_rows", "num_cols", "padding_value"},
      MakeAttrKernel<layout::MatrixDiagV3, "align">);
  add("MatrixDiagPart", {}, MakeKernel<layout::MatrixDiagPart>);
  add("MatrixDiagPartV2", {"k", "padding_value"}, MakeKernel<layout::MatrixDiagPartV2>);
  add("MatrixDiagPartV3", {"k", "padding_value"},
      MakeAttrKernel<layout::MatrixDiagPartV3, "align">);
  add("MatrixSetDiag", {}, MakeKernel<layout::MatrixSetDiag>);
  add("MatrixSetDiagV2", {"k"}, MakeKernel<layout::MatrixSetDiagV2>);
  add("MatrixSetDiagV3", {"k"}, MakeAttrKernel<layout::MatrixSetDiagV3, "align">);
}

}  // namespace troupe::cuda
