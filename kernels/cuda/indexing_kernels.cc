// The ops that move slices by index, on cards. Tensors of int32 are on the host, but for indices.
#include <utility>

#include "kernels/array/layout_ops.h"
#include "kernels/common/registration.h"
#include "kernels/cuda/cuda_kernels.h"

namespace troupe::cuda {
namespace {

KernelSpec Spec(const char* op, const char* attr, std::vector<ElementType> types) {
  return KernelSpec(op).Device("GPU").Types(attr, std::move(types));
}
KernelSpec Indexed(const char* op, const char* attr, std::vector<ElementType> types) {
  return Spec(op, attr, std::move(types)).Types("Tindices", IndexTypes());
}

}  // namespace

void RegisterIndexing(Extension& extension) {
  // What is added.
  std::vector<ElementType> numbers = NumberTypes();
  std::erase(numbers, ElementType::kInt32);
  std::vector<ElementType> ordered = RealNumberTypes();
  std::erase(ordered, ElementType::kInt32);
  std::vector<ElementType> narrow = MovedTypes();
  narrow.insert(narrow.end(), {ElementType::kFloat8E5m2, ElementType::kFloat8E4m3fn});
  extension.Kernel(Spec("DynamicPartition", "T", MovedTypes()).HostMemory("partitions"),
                   MakeKernel<layout::DynamicPartition>);
  for (const char* op : {"DynamicStitch", "ParallelDynamicStitch"}) {
    extension.Kernel(Spec(op, "T", MovedTypes()).HostMemory("indices"),
                     MakeKernel<layout::DynamicStitch>);
  }
  extension.Kernel(Indexed("Gather", "Tparams", narrow), MakeKernel<layout::Gather>);
  extension.Kernel(Indexed("GatherNd", "Tparams", MovedTypes()), layout::GatherNd);
  extension.Kernel(Indexed("GatherV2", "Tparams", narrow).HostMemory("axis"),
                   MakeAttrKernel<layout::GatherV2, "batch_dims">);
  extension.Kernel(Spec("OneHot", "T", MovedTypes())
                       .Types("TI", {ElementType::kInt8, ElementType::kUint8, ElementType::kInt32,
                                     ElementType::kInt64})
                       .HostMemory("depth"),
                   MakeAttrKernel<layout::OneHot, "axis">);
  extension.Kernel(Spec("RandomShuffle", "T", MovedTypes()), layout::RandomShuffle);
  extension.Kernel(Indexed("ScatterNd", "T", numbers).HostMemory("shape"), layout::ScatterNd);
  extension.Kernel(Indexed("SparseToDense", "T", MovedTypes())
                       .HostMemory("output_shape")
                       .HostMemory("default_value"),
                   MakeAttrKernel<layout::SparseToDense, "validate_indices">);
  extension.Kernel(Indexed("ScatterNdNonAliasingAdd", "T", numbers), layout::TensorScatterAdd);
  extension.Kernel(Indexed("TensorScatterAdd", "T", numbers), layout::TensorScatterAdd);
  extension.Kernel(Indexed("TensorScatterMax", "T", ordered), layout::TensorScatterMax);
  extension.Kernel(Indexed("TensorScatterMin", "T", ordered), layout::TensorScatterMin);
  extension.Kernel(Indexed("TensorScatterSub", "T", numbers), layout::TensorScatterSub);
  extension.Kernel(Indexed("TensorScatterUpdate", "T", MovedTypes()), layout::TensorScatterUpdate);
}

}  // namespace troupe::cuda
