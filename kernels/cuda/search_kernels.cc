// TopK, TopKV2, InTopK, InTopKV2, Where and ListDiff of GPUs; Unique and its kin where they are on
// the host.
#include <bit>
#include <utility>
#include <vector>

#include "devices/cuda/cuda_device.h"
#include "devices/status_macros.h"
#include "kernels/argument_spaces.h"
#include "kernels/array/top_k_shape.h"
#include "kernels/cuda/late_shape_kernel.h"
#include "kernels/cuda/one_type_kernel.h"
#include "kernels/cuda/sort_memory.h"
#include "kernels/cuda/top_k.h"
#include "kernels/cuda/where.h"

namespace troupe::cuda {
namespace {

class TopKKernel final : public OneTypeKernel {
 public:
  TopKKernel(KernelConstruction& construction, absl::Status* status)
      : OneTypeKernel(construction, status), index_type_(construction.output_type(1)) {
    if (status->ok() && construction.op() == "TopK") *status = construction.GetAttr("k", &k_);
  }

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& input = ctx.input(0);
    TROUPE_ASSIGN_OR_RETURN(const Shape shape, k_ >= 0 ? TopKShape(input.shape(), k_)
                                                       : TopKShape(input.shape(), ctx.input(1)));
    const int64_t n = input.dim(input.rank() - 1), k = shape.dim(input.rank() - 1);
    TROUPE_ASSIGN_OR_RETURN(Tensor * values, ctx.AllocateOutput(0, input.type(), shape));
    TROUPE_ASSIGN_OR_RETURN(Tensor * indices, ctx.AllocateOutput(1, index_type_, shape));
    if (shape.num_elements() == 0) return absl::OkStatus();
    const TopKCall call{type_,
                        index_type_ == ElementType::kInt64,
                        input.raw_data(),
                        shape.num_elements() / k,
                        n,
                        k,
                        values->mutable_raw_data(),
                        indices->mutable_raw_data()};
    if (k <= kSmallK) return CudaStatus(LaunchTopFew(call, StreamOf(ctx)), "a top k");
    return BySorting(ctx, call, ElementSize(input.type()));
  }

 private:
  static absl::Status BySorting(KernelContext& ctx, const TopKCall& call, size_t size) {
    const int64_t n = call.rows * call.n;
    const bool wide = size == 8;
    TROUPE_ASSIGN_OR_RETURN(const SortMemory sort, SortMemory::Allocate(ctx, n, wide));
    SortBuffers buffers = sort.buffers;
    const cudaStream_t stream = StreamOf(ctx);
    cudaError_t error = LaunchTopKeys(call, buffers.keys[0], stream);
    int result = 0;
    if (error == cudaSuccess) {
      error = LaunchSort(buffers, n, wide ? 64 : 32, /*fresh=*/true, &result, stream);
    }
    if (error == cudaSuccess && call.rows > 1) {
      std::swap(buffers.keys[0], buffers.keys[result]);
      std::swap(buffers.places[0], buffers.places[result]);
      error = LaunchTopRows(call, buffers.places[0], wide, buffers.keys[0], stream);
      if (error == cudaSuccess) {
        const int bits = std::bit_width(static_cast<uint64_t>(call.rows - 1));
        error = LaunchSort(buffers, n, bits, /*fresh=*/false, &result, stream);
      }
    }
    if (error == cudaSuccess) error = LaunchTakeTop(call, buffers.places[result], stream);
    return CudaStatus(error, "a top k");
  }

  const ElementType index_type_;
  int64_t k_ = -1;  ///< Else it is an input.
};

class InTopKKernel final : public Kernel {
 public:
  InTopKKernel(KernelConstruction& construction, absl::Status*)
      : k_(construction.attrs().GetOr<int64_t>("k", 0)) {}

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor &predictions = ctx.input(0), &targets = ctx.input(1);
    int64_t k = k_;
    if (ctx.num_inputs() > 2) {
      TROUPE_ASSIGN_OR_RETURN(k, ReadIntegerScalar(ctx.input(2), "k"));
    }
    if (predictions.rank() != 2 || targets.rank() != 1 || predictions.dim(0) != targets.dim(0)) {
      return InvalidArgument("predictions must be a matrix and targets a vector with one element ",
                             "a row, got shapes ", predictions.shape().ToString(), " and ",
                             targets.shape().ToString());
    }
    const int64_t rows = predictions.dim(0);
    TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, ElementType::kBool, Shape({rows})));
    if (rows == 0) return absl::OkStatus();
    return CudaStatus(LaunchInTopK(targets.type() == ElementType::kInt64,
                                   predictions.unchecked_data<float>(), targets.raw_data(), rows,
                                   predictions.dim(1), k, out->mutable_data<bool>(), StreamOf(ctx)),
                      "a top k");
  }

 private:
  const int64_t k_;
};

class WhereKernel final : public LateShapeKernel {
 protected:
  absl::StatusOr<Search> Begin(KernelContext& ctx) override {
    const Tensor& input = ctx.input(0);
    if (input.rank() == 0) return InvalidArgument("the input must have at least one dimension");
    if (input.rank() > WhereCall::kMaxRank) {
      return absl::UnimplementedError(StrCat("GPUs search at most ", WhereCall::kMaxRank,
                                             " dimensions, got ", input.shape().ToString()));
    }
    if (input.num_elements() == 0) {
      TROUPE_RETURN_IF_ERROR(
          ctx.AllocateOutput(0, ElementType::kInt64, Shape({0, input.rank()})).status());
      return Search();
    }
    Search search;
    TROUPE_ASSIGN_OR_RETURN(search.found, ctx.AllocateTemp(ElementType::kInt64, Shape({1})));
    TROUPE_ASSIGN_OR_RETURN(
        Tensor counts,
        ctx.AllocateTemp(ElementType::kUint64, Shape({WhereCounts(input.num_elements())})));
    TROUPE_RETURN_IF_ERROR(
        CudaStatus(LaunchCount(CallOf(input), counts.mutable_data<uint64_t>(),
                               search.found.mutable_data<int64_t>(), StreamOf(ctx)),
                   "a search"));
    search.keep = std::move(counts);
    return search;
  }

  absl::Status End(KernelContext& ctx, const int64_t* found, const std::any& keep) override {
    const Tensor& input = ctx.input(0);
    TROUPE_ASSIGN_OR_RETURN(
        Tensor * out, ctx.AllocateOutput(0, ElementType::kInt64, Shape({*found, input.rank()})));
    if (*found == 0) return absl::OkStatus();
    const auto* const counts = std::any_cast<const Tensor&>(keep).unchecked_data<uint64_t>();
    return CudaStatus(
        LaunchPlaces(CallOf(input), counts, out->mutable_data<int64_t>(), StreamOf(ctx)),
        "a search");
  }

 private:
  static WhereCall CallOf(const Tensor& input) {
    WhereCall call{input.raw_data(), static_cast<int64_t>(ElementSize(input.type()))};
    call.mask = ~uint64_t{0};
    // A zero may have a sign.
    switch (input.type()) {
      case ElementType::kHalf:
      case ElementType::kBfloat16:
        call.mask = 0x7fff;
        break;
      case ElementType::kFloat:
        call.mask = 0x7fffffff;
        break;
      case ElementType::kComplex64:
        call.words = 2;
        call.mask = 0x7fffffff;
        break;
      case ElementType::kDouble:
      case ElementType::kComplex128:
        call.words = input.type() == ElementType::kDouble ? 1 : 2;
        call.mask = ~uint64_t{0} >> 1;
        break;
      default:
        break;
    }
    call.n = input.num_elements();
    call.rank = input.rank();
    for (int d = 0; d < call.rank; ++d) call.dims[d] = input.dim(d);
    return call;
  }
};

/// The CPU's kernel, which has everything on the host.
absl::StatusOr<std::unique_ptr<Kernel>> MakeForHost(KernelConstruction& construction) {
  return KernelRegistry::Global()->Create(construction, "CPU");
}

}  // namespace

void RegisterSearch(Extension& extension) {
  extension.Kernel(KernelSpec("TopK").Device("GPU").Types("T", RealNumberTypes()),
                   MakeKernel<TopKKernel>);
  extension.Kernel(KernelSpec("TopKV2")
                       .Device("GPU")
                       .Types("T", RealNumberTypes())
                       .Types("index_type", IndexTypes())
                       .HostMemory("k"),
                   MakeKernel<TopKKernel>);
  extension.Kernel(KernelSpec("InTopK").Device("GPU").Types("T", IndexTypes()),
                   MakeKernel<InTopKKernel>);
  extension.Kernel(KernelSpec("InTopKV2").Device("GPU").Types("T", IndexTypes()).HostMemory("k"),
                   MakeKernel<InTopKKernel>);
  extension.Kernel(KernelSpec("Where").Device("GPU").Types("T", PlainTypes()),
                   MakeKernel<WhereKernel>);
  const auto on_host = [&extension](const char* op, std::vector<ElementType> types) {
    extension.Kernel(KernelSpec(op)
                         .Device("GPU")
                         .Types("T", std::move(types))
                         .HostMemory(std::string(kAllArguments)),
                     MakeForHost);
  };
  std::vector<ElementType> unique = WithString(RealNumberTypes());
  unique.push_back(ElementType::kBool);
  for (const char* op : {"Unique", "UniqueWithCounts"}) {  // Others: unique_kernels.cc.
    on_host(op, {ElementType::kInt32, ElementType::kString});
  }
  on_host("UniqueV2", unique);
  on_host("ListDiff", RealNumberTypes());
}

}  // namespace troupe::cuda
