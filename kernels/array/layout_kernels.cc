// What the CPU has of the ops that only move elements, or slices by index, or make equal elements.
#include <string>
#include <utility>
#include <vector>

#include "kernels/array/layout_ops.h"
#include "kernels/common/quantized_types.h"
#include "kernels/common/registration.h"

namespace troupe::layout {
namespace {

KernelSpec Spec(const char* op) { return KernelSpec(op).Types("T", AllTypes()); }
KernelSpec Indexed(const char* op, const char* index_attr) {
  return Spec(op).Types(index_attr, IndexTypes());
}
KernelSpec Strided(const char* op) {
  return Spec(op).Types("Index", {ElementType::kInt16, ElementType::kInt32, ElementType::kInt64});
}
KernelSpec Gathering(const char* op) {
  return KernelSpec(op)
      .Types("Tparams", AllTypes())
      .Types("Tindices", {ElementType::kInt16, ElementType::kInt32, ElementType::kInt64});
}
KernelSpec Scattering(const char* op, std::vector<ElementType> types) {
  return KernelSpec(op).Types("T", std::move(types)).Types("Tindices", IndexTypes());
}
KernelSpec OfMatrices(const char* op) { return KernelSpec(op).Types("T", PlainTypes()); }
KernelSpec Batched(const char* op, std::initializer_list<const char*> index_attrs) {
  KernelSpec spec = KernelSpec(op).Types("T", PlainTypes());
  for (const char* attr : index_attrs) spec.Types(attr, IndexTypes());
  return spec;
}
KernelSpec Mirrored(const char* op, std::vector<ElementType> types) {
  return KernelSpec(op).Types("T", std::move(types)).Types("Tpaddings", IndexTypes());
}
std::vector<ElementType> DiagonalTypes() {
  std::vector<ElementType> types = FloatAndComplexTypes();
  types.insert(types.end(), {ElementType::kInt32, ElementType::kInt64});
  return types;
}

/// As in TensorFlow, the CPU takes the channels to be last.
template <absl::Status (*kMove)(KernelContext&, int64_t, const std::string&)>
absl::Status ChannelsLast(KernelContext& ctx, int64_t block, const std::string& format) {
  if (format == "NHWC") return kMove(ctx, block, format);
  return InvalidArgument("the CPU has only the data_format NHWC, not ", format);
}

REGISTER_KERNEL(Spec("Concat"), MakeKernel<Concat>);
REGISTER_KERNEL(Indexed("ConcatV2", "Tidx"), MakeKernel<ConcatV2>);
REGISTER_KERNEL(Spec("Pack"), (MakeAttrKernel<Pack, "axis">));
REGISTER_KERNEL(KernelSpec("ParallelConcat").Types("T", WithString(PlainTypes())),
                (MakeAttrKernel<ParallelConcat, "shape">));
REGISTER_KERNEL(Spec("Split"), MakeKernel<Split>);
REGISTER_KERNEL(Spec("SplitV").Types("Tlen", {ElementType::kInt8, ElementType::kInt32,
                                              ElementType::kInt64}),
                MakeKernel<SplitV>);
REGISTER_KERNEL(Spec("Unpack"), (MakeAttrKernel<Unpack, "axis">));

REGISTER_KERNEL(Indexed("Slice", "Index"), MakeKernel<Slice>);
REGISTER_KERNEL(Strided("StridedSlice"), StridedSlice);
REGISTER_KERNEL(Strided("StridedSliceGrad"), StridedSliceGrad);
REGISTER_KERNEL(Strided("TensorStridedSliceUpdate"), TensorStridedSliceUpdate);

REGISTER_KERNEL(Indexed("BroadcastTo", "Tidx"), MakeKernel<BroadcastTo>);
REGISTER_KERNEL(Mirrored("MirrorPad", WithQuantized(WithString(PlainTypes()))),
                (MakeAttrKernel<MirrorPad, "mode">));
REGISTER_KERNEL(Mirrored("MirrorPadGrad", NumberTypes()), (MakeAttrKernel<MirrorPadGrad, "mode">));
REGISTER_KERNELS(Indexed("Pad", "Tpaddings"), MakeKernel<Pad>, "PadV2");
REGISTER_KERNEL(KernelSpec("Reverse").Types("T", WithString(PlainTypes())), MakeKernel<Reverse>);
REGISTER_KERNEL(
    KernelSpec("ReverseSequence").Types("T", WithString(PlainTypes())).Types("Tlen", IndexTypes()),
    (MakeAttrKernel<ReverseSequence, "seq_dim", "batch_dim">));
REGISTER_KERNEL(Indexed("ReverseV2", "Tidx"), MakeKernel<ReverseV2>);
REGISTER_KERNEL(Indexed("Roll", "Tshift").Types("Taxis", IndexTypes()), MakeKernel<Roll>);
REGISTER_KERNEL(Indexed("Tile", "Tmultiples"), MakeKernel<Tile>);
REGISTER_KERNEL(Indexed("Transpose", "Tperm"), MakeKernel<Transpose>);

REGISTER_KERNEL(Batched("BatchToSpace", {"Tidx"}), (MakeAttrKernel<BatchToSpace, "block_size">));
REGISTER_KERNEL(Batched("BatchToSpaceND", {"Tblock_shape", "Tcrops"}), MakeKernel<BatchToSpaceND>);
REGISTER_KERNEL(Spec("DepthToSpace"),
                (MakeAttrKernel<ChannelsLast<DepthToSpace>, "block_size", "data_format">));
REGISTER_KERNEL(Batched("SpaceToBatch", {"Tpaddings"}),
                (MakeAttrKernel<SpaceToBatch, "block_size">));
REGISTER_KERNEL(Batched("SpaceToBatchND", {"Tblock_shape", "Tpaddings"}),
                MakeKernel<SpaceToBatchND>);
REGISTER_KERNEL(Spec("SpaceToDepth"),
                (MakeAttrKernel<ChannelsLast<SpaceToDepth>, "block_size", "data_format">));

REGISTER_KERNEL(Cheap("Bitcast")
                    .Types("T", WithQuantized(NumberTypes()))
                    .Types("type", WithQuantized(NumberTypes())),
                (MakeAttrKernel<Bitcast, "T", "type">));
REGISTER_KERNEL(KernelSpec("Empty").Types("dtype", WithString(PlainTypes())),
                (MakeAttrKernel<Empty, "dtype", "init">));
REGISTER_KERNEL(Indexed("Fill", "index_type"), MakeKernel<Fill>);
REGISTER_KERNEL(KernelSpec("OnesLike").Types("T", PlainTypes()), OnesLike);
REGISTER_KERNEL(KernelSpec("ZerosLike").Types("T", WithString(PlainTypes())),
                MakeKernel<ZerosLike>);

REGISTER_KERNEL(KernelSpec("Diag").Types("T", DiagonalTypes()), MakeKernel<Diag>);
REGISTER_KERNEL(KernelSpec("DiagPart").Types("T", DiagonalTypes()), MakeKernel<DiagPart>);
REGISTER_KERNEL(OfMatrices("MatrixBandPart").Types("Tindex", IndexTypes()),
                MakeKernel<MatrixBandPart>);
REGISTER_KERNEL(OfMatrices("MatrixDiag"), MakeKernel<MatrixDiag>);
REGISTER_KERNEL(OfMatrices("MatrixDiagV2"), MakeKernel<MatrixDiagV2>);
REGISTER_KERNEL(OfMatrices("MatrixDiagV3"), (MakeAttrKernel<MatrixDiagV3, "align">));
REGISTER_KERNEL(OfMatrices("MatrixDiagPart"), MakeKernel<MatrixDiagPart>);
REGISTER_KERNEL(OfMatrices("MatrixDiagPartV2"), MakeKernel<MatrixDiagPartV2>);
REGISTER_KERNEL(OfMatrices("MatrixDiagPartV3"), (MakeAttrKernel<MatrixDiagPartV3, "align">));
REGISTER_KERNEL(OfMatrices("MatrixSetDiag"), MakeKernel<MatrixSetDiag>);
REGISTER_KERNEL(OfMatrices("MatrixSetDiagV2"), MakeKernel<MatrixSetDiagV2>);
REGISTER_KERNEL(OfMatrices("MatrixSetDiagV3"), (MakeAttrKernel<MatrixSetDiagV3, "align">));

REGISTER_KERNEL(Spec("DynamicPartition"), MakeKernel<DynamicPartition>);
REGISTER_KERNELS(Spec("DynamicStitch"), MakeKernel<DynamicStitch>, "ParallelDynamicStitch");
REGISTER_KERNEL(Gathering("Gather"), MakeKernel<Gather>);
REGISTER_KERNEL(Gathering("GatherNd"), GatherNd);
REGISTER_KERNEL(Gathering("GatherV2").Types("Taxis", IndexTypes()),
                (MakeAttrKernel<GatherV2, "batch_dims">));
REGISTER_KERNEL(Spec("OneHot").Types("TI", {ElementType::kInt8, ElementType::kUint8,
                                            ElementType::kInt32, ElementType::kInt64}),
                (MakeAttrKernel<OneHot, "axis">));
REGISTER_KERNEL(Spec("RandomShuffle"), RandomShuffle);
REGISTER_KERNEL(Scattering("ScatterNd", WithString(PlainTypes())), ScatterNd);
REGISTER_KERNEL(Scattering("SparseToDense", WithQuantized(WithString(PlainTypes()))),
                (MakeAttrKernel<SparseToDense, "validate_indices">));
REGISTER_KERNEL(Scattering("TensorScatterAdd", NumberTypes()), TensorScatterAdd);
REGISTER_KERNEL(Scattering("ScatterNdNonAliasingAdd", PlainTypes()), TensorScatterAdd);
REGISTER_KERNEL(Scattering("TensorScatterMax", RealNumberTypes()), TensorScatterMax);
REGISTER_KERNEL(Scattering("TensorScatterMin", RealNumberTypes()), TensorScatterMin);
REGISTER_KERNEL(Scattering("TensorScatterSub", NumberTypes()), TensorScatterSub);
REGISTER_KERNEL(Scattering("TensorScatterUpdate", WithString(PlainTypes())), TensorScatterUpdate);

}  // namespace
}  // namespace troupe::layout
