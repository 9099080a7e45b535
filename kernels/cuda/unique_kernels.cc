// Unique and UniqueWithCounts of GPUs.
#include <algorithm>
#include <utility>
#include <vector>

#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/indexing.h"
#include "kernels/cuda/late_shape_kernel.h"
#include "kernels/cuda/sort_memory.h"
#include "kernels/cuda/unique.h"
#include "kernels/cuda/where.h"

namespace troupe::cuda {
namespace {

absl::Status Launched(cudaError_t error) {
  return CudaStatus(error, "a search for distinct elements");
}

class UniqueKernel final : public LateShapeKernel {
 public:
  UniqueKernel(KernelConstruction& construction, absl::Status* status)
      : index_type_(construction.output_type(1)) {
    const absl::StatusOr<Number> type = NumberOf(construction.input_type(0));
    *status = type.status();
    if (type.ok()) type_ = *type;
  }

 protected:
  absl::StatusOr<Search> Begin(KernelContext& ctx) override {
    const Tensor& x = ctx.input(0);
    if (x.rank() != 1) {
      return InvalidArgument("x must be a vector, got shape ", x.shape().ToString());
    }
    const int64_t n = x.dim(0);
    if (n == 0) {
      TROUPE_RETURN_IF_ERROR(Allocate(ctx, 0));
      return Search();
    }
    const int bits = UniqueKeyBits(type_);
    TROUPE_ASSIGN_OR_RETURN(SortMemory sort, SortMemory::Allocate(ctx, n, bits == 64));
    Search search;
    TROUPE_ASSIGN_OR_RETURN(search.found, ctx.AllocateTemp(ElementType::kInt64, Shape({1})));
    TROUPE_ASSIGN_OR_RETURN(Tensor keep, ctx.AllocateTemp(ElementType::kUint8, Shape({Kept(n)})));
    const Parts parts = PartsOf(keep, n);
    search.keep = std::move(keep);
    auto* const found = search.found.mutable_data<int64_t>();
    const cudaStream_t stream = StreamOf(ctx);
    int result = 0;
    TROUPE_RETURN_IF_ERROR(
        Launched(LaunchUniqueKeys(type_, x.raw_data(), sort.buffers.keys[0], n, stream)));
    TROUPE_RETURN_IF_ERROR(
        Launched(LaunchSort(sort.buffers, n, bits, /*fresh=*/true, &result, stream)));
    TROUPE_RETURN_IF_ERROR(Launched(LaunchUniqueHeads(
        type_, sort.buffers.keys[result], sort.buffers.places[result], parts.order, stream)));
    TROUPE_RETURN_IF_ERROR(
        Launched(LaunchCount(FlagsAt(parts.order.heads, n), parts.head_counts, found, stream)));
    TROUPE_RETURN_IF_ERROR(
        Launched(LaunchCount(FlagsAt(parts.order.is_first, n), parts.first_counts, found, stream)));
    return search;
  }

  absl::Status End(KernelContext& ctx, const int64_t* found, const std::any& kept) override {
    auto keep = std::any_cast<Tensor>(kept);
    const Tensor& x = ctx.input(0);
    const int64_t n = x.dim(0), distinct = *found;
    TROUPE_RETURN_IF_ERROR(Allocate(ctx, distinct));
    const Parts parts = PartsOf(keep, n);
    TROUPE_ASSIGN_OR_RETURN(Tensor heads, ctx.AllocateTemp(ElementType::kInt64, Shape({distinct})));
    TROUPE_ASSIGN_OR_RETURN(Tensor first, ctx.AllocateTemp(ElementType::kInt64, Shape({distinct})));
    TROUPE_ASSIGN_OR_RETURN(Tensor numbers, ctx.AllocateTemp(ElementType::kInt32, Shape({n})));
    TROUPE_ASSIGN_OR_RETURN(const LateCheck check, CheckLate(ctx, BadIndex));
    const cudaStream_t stream = StreamOf(ctx);
    TROUPE_RETURN_IF_ERROR(Launched(LaunchPlaces(FlagsAt(parts.order.heads, n), parts.head_counts,
                                                 heads.mutable_data<int64_t>(), stream)));
    TROUPE_RETURN_IF_ERROR(
        Launched(LaunchPlaces(FlagsAt(parts.order.is_first, n), parts.first_counts,
                              first.mutable_data<int64_t>(), stream)));
    TROUPE_RETURN_IF_ERROR(Launched(LaunchGather(static_cast<int64_t>(ElementSize(x.type())),
                                                 {.limit = n, .indices = distinct}, x.raw_data(),
                                                 {first.raw_data(), Number::kInt64},
                                                 ctx.output(0).mutable_raw_data(), check, stream)));
    const UniqueFound all{distinct, heads.unchecked_data<int64_t>(),
                          first.unchecked_data<int64_t>(), numbers.mutable_data<int32_t>()};
    void* const counts = ctx.num_outputs() > 2 ? ctx.output(2).mutable_raw_data() : nullptr;
    return Launched(LaunchUniqueNumbers(parts.order, all, index_type_ == ElementType::kInt64,
                                        ctx.output(1).mutable_raw_data(), counts, stream));
  }

 private:
  absl::Status Allocate(KernelContext& ctx, int64_t distinct) const {
    const Tensor& x = ctx.input(0);
    TROUPE_RETURN_IF_ERROR(ctx.AllocateOutput(0, x.type(), Shape({distinct})).status());
    TROUPE_RETURN_IF_ERROR(ctx.AllocateOutput(1, index_type_, x.shape()).status());
    if (ctx.num_outputs() < 3) return absl::OkStatus();
    return ctx.AllocateOutput(2, index_type_, Shape({distinct})).status();
  }

  /// What the second part needs of the first one, in one block of memory.
  struct Parts {
    UniqueOrder order;
    uint64_t *head_counts, *first_counts;
  };
  static int64_t Kept(int64_t n) { return 16 * WhereCounts(n) + 6 * n; }
  static Parts PartsOf(Tensor& keep, int64_t n) {
    Parts parts;
    parts.head_counts = static_cast<uint64_t*>(keep.mutable_raw_data());
    parts.first_counts = parts.head_counts + WhereCounts(n);
    parts.order.n = n;
    parts.order.places = reinterpret_cast<uint32_t*>(parts.first_counts + WhereCounts(n));
    parts.order.heads = reinterpret_cast<uint8_t*>(parts.order.places + n);
    parts.order.is_first = parts.order.heads + n;
    return parts;
  }
  static WhereCall FlagsAt(const uint8_t* flags, int64_t n) {
    WhereCall call{flags, 1};
    call.mask = 1;
    call.n = n;
    call.rank = 1;
    call.dims[0] = n;
    return call;
  }

  const ElementType index_type_;
  Number type_ = Number::kFloat;
};

}  // namespace

void RegisterUnique(Extension& extension) {
  std::vector<ElementType> types = RealNumberTypes();
  std::erase(types, ElementType::kInt32);
  types.push_back(ElementType::kBool);
  for (const char* op : {"Unique", "UniqueWithCounts"}) {
    extension.Kernel(KernelSpec(op).Device("GPU").Types("T", types).Types("out_idx", IndexTypes()),
                     MakeKernel<UniqueKernel>);
  }
}

}  // namespace troupe::cuda
