// AddSparseToTensorsMap, AddManySparseToTensorsMap, TakeManySparseFromTensorsMap: sparse tensors
// that wait between two ops under a number each.
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "kernels/common/registration.h"
#include "kernels/sparse/sparse_stack.h"
#include "kernels/variable.h"

namespace troupe {
namespace {

/// Thread-safe.
class SparseTensorsMap final : public Resource {
 public:
  explicit SparseTensorsMap(std::string name) : name_(std::move(name)) {}
  std::string DebugString() const override { return StrCat("SparseTensorsMap '", name_, "'"); }

  int64_t Add(StoredSparse tensor) {
    std::lock_guard<std::mutex> lock(mutex_);
    tensors_.emplace(next_, std::move(tensor));
    return next_++;
  }
  /// Takes all or, if one of them is not there, none.
  absl::StatusOr<std::vector<StoredSparse>> Take(absl::Span<const int64_t> handles) {
    std::lock_guard<std::mutex> lock(mutex_);
    for (const int64_t handle : handles) {
      if (!tensors_.contains(handle)) {
        return InvalidArgument("there is no sparse tensor ", handle, " in ", DebugString());
      }
    }
    std::vector<StoredSparse> taken;
    for (const int64_t handle : handles) {
      const auto found = tensors_.find(handle);
      if (found == tensors_.end()) {
        return InvalidArgument("the sparse tensor ", handle, " is asked for twice");
      }
      taken.push_back(std::move(found->second));
      tensors_.erase(found);
    }
    return taken;
  }

 private:
  const std::string name_;
  std::mutex mutex_;
  absl::flat_hash_map<int64_t, StoredSparse> tensors_;
  int64_t next_ = 0;
};

/// A kernel of a map, which is made by the first who asks.
class TensorsMapKernel : public Kernel {
 public:
  explicit TensorsMapKernel(KernelConstruction& c)
      : container_(c.Attr<std::string>("container")), name_(c.Attr<std::string>("shared_name")) {
    if (name_.empty()) name_ = c.node_name();
  }

 protected:
  absl::StatusOr<RefPtr<SparseTensorsMap>> Map(KernelContext& ctx) const {
    TROUPE_ASSIGN_OR_RETURN(
        const RefPtr<Resource> resource,
        ctx.resources()->FindOrCreate(container_, name_, [&]() -> absl::StatusOr<RefPtr<Resource>> {
          return RefPtr<Resource>::Adopt(new SparseTensorsMap(name_));
        }));
    auto* map = dynamic_cast<SparseTensorsMap*>(resource.get());
    if (map == nullptr) {
      return InvalidArgument("'", name_, "' is ", resource->DebugString(),
                             ", not a map of sparse tensors");
    }
    return RefPtr<SparseTensorsMap>::Share(map);
  }

 private:
  std::string container_, name_;
};

class AddSparse final : public TensorsMapKernel {
 public:
  AddSparse(KernelConstruction& c, absl::Status*) : TensorsMapKernel(c) {}
  absl::Status Compute(KernelContext& ctx) override {
    TROUPE_RETURN_IF_ERROR(ReadSparse(ctx, 0, "sparse tensor").status());
    TROUPE_ASSIGN_OR_RETURN(const RefPtr<SparseTensorsMap> map, Map(ctx));
    return ctx.SetScalar(0, map->Add({ctx.input(0), ctx.input(1), ctx.input(2)}));
  }
};

class AddManySparse final : public TensorsMapKernel {
 public:
  AddManySparse(KernelConstruction& c, absl::Status*) : TensorsMapKernel(c) {}
  absl::Status Compute(KernelContext& ctx) override {
    TROUPE_ASSIGN_OR_RETURN(const SparseTensor tensor, ReadSparse(ctx, 0, "sparse tensor"));
    TROUPE_RETURN_IF_ERROR(CheckHasRows(tensor));
    TROUPE_ASSIGN_OR_RETURN(
        Tensor * output, ctx.AllocateOutput(0, ElementType::kInt64, Shape({tensor.shape.dim(0)})));
    TROUPE_ASSIGN_OR_RETURN(const RefPtr<SparseTensorsMap> map, Map(ctx));
    int64_t* handles = output->mutable_data<int64_t>();
    // TensorFlow numbers rows without elements after all others.
    for (const bool empty : {false, true}) {
      TROUPE_RETURN_IF_ERROR(ForEachRow(ctx, tensor, [&](int64_t row, StoredSparse part) {
        if ((part.values.num_elements() == 0) == empty) handles[row] = map->Add(std::move(part));
        return absl::OkStatus();
      }));
    }
    return absl::OkStatus();
  }
};

class TakeManySparse final : public TensorsMapKernel {
 public:
  TakeManySparse(KernelConstruction& c, absl::Status*)
      : TensorsMapKernel(c), type_(c.output_type(1)) {}
  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& handles = ctx.input(0);
    if (handles.rank() != 1) {
      return InvalidArgument("sparse_handles must be a vector, got shape ",
                             handles.shape().ToString());
    }
    TROUPE_ASSIGN_OR_RETURN(const RefPtr<SparseTensorsMap> map, Map(ctx));
    TROUPE_ASSIGN_OR_RETURN(const std::vector<StoredSparse> taken,
                            map->Take(handles.unchecked_values<int64_t>()));
    return PutStacked(ctx, taken, {handles.dim(0)}, type_);
  }

 private:
  const ElementType type_;
};

REGISTER_KERNEL(KernelSpec("AddSparseToTensorsMap"), MakeKernel<AddSparse>);
REGISTER_KERNEL(KernelSpec("AddManySparseToTensorsMap"), MakeKernel<AddManySparse>);
REGISTER_KERNEL(KernelSpec("TakeManySparseFromTensorsMap"), MakeKernel<TakeManySparse>);

}  // namespace
}  // namespace troupe
