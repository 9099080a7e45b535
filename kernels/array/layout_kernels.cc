// What the CPU has of the ops that only move elements, or slices by index, or make equal elements.
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

REGISTER_KERNEL(Spec("Concat"), MakeKernel<Concat>);
REGISTER_KERNEL(Indexed("ConcatV2", "Tidx"), MakeKernel<ConcatV2>);
REGISTER_KERNEL(Spec("Pack"), (MakeAttrKernel<Pack, "axis">));
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
REGISTER_KERNELS(Indexed("Pad", "Tpaddings"), MakeKernel<Pad>, "PadV2");
REGISTER_KERNEL(Indexed("ReverseV2", "Tidx"), MakeKernel<ReverseV2>);
REGISTER_KERNEL(Indexed("Tile", "Tmultiples"), MakeKernel<Tile>);
REGISTER_KERNEL(Indexed("Transpose", "Tperm"), MakeKernel<Transpose>);

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

REGISTER_KERNEL(OfMatrices("MatrixBandPart").Types("Tindex", IndexTypes()),
                MakeKernel<MatrixBandPart>);
REGISTER_KERNEL(OfMatrices("MatrixDiag"), MakeKernel<MatrixDiag>);
REGISTER_KERNEL(OfMatrices("MatrixDiagPart"), MakeKernel<MatrixDiagPart>);
REGISTER_KERNEL(OfMatrices("MatrixSetDiag"), MakeKernel<MatrixSetDiag>);

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
