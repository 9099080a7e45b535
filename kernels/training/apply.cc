// ApplyAdam and its kin on the CPU. The formulas are in kernels/simd/update_formulas.h.
#include <algorithm>
#include <string>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "kernels/simd/updates.h"
#include "kernels/training/update_kernel.h"
#include "kernels/type_switch.h"

namespace troupe {
namespace {

template <typename T>
inline constexpr bool kVectorized = !IsComplex(kElementType<T>);

template <typename T>
const UpdateTable<T>& Table() {
  if constexpr (kVectorized<T>) {
    return Updates<T>();
  } else {
    return PlainUpdates<T>();
  }
}

template <typename T>
StoredAs<T>* Stored(T* elements) {
  return reinterpret_cast<StoredAs<T>*>(elements);
}
template <typename T>
const StoredAs<T>* Stored(const T* elements) {
  return reinterpret_cast<const StoredAs<T>*>(elements);
}

class ApplyKernel final : public UpdateKernel {
 public:
  ApplyKernel(KernelConstruction& construction, absl::Status* status)
      : UpdateKernel(construction, status) {}

 protected:
  absl::Status Update(KernelContext& ctx, Leases& leases) override {
    return SwitchType<float, double, half, bfloat16, complex64, complex128>(
        type(), [&]<typename T>() { return UpdateAs<T>(ctx, leases); });
  }

 private:
  template <typename T>
  absl::Status UpdateAs(KernelContext& ctx, Leases& leases) {
    T values[kMaxUpdateScalars] = {};
    for (size_t i = 0; i < scalars().size(); ++i) {
      const Tensor& input = ctx.input(scalars()[i]);
      if constexpr (std::is_floating_point_v<T>) {
        if (input.type() == ElementType::kInt64) {
          values[i] = static_cast<T>(input.unchecked_scalar<int64_t>());
          continue;
        }
      }
      values[i] = input.unchecked_scalar<T>();
      if constexpr (std::is_convertible_v<T, double>) {
        if (!IsMet(need(i), values[i])) return BadScalar(i, values[i]);
      }
    }
    const UpdateFn<T> update = Table<T>().rules[rule()][ByRow(ctx)][flag()];
    if (update == nullptr) {
      return absl::UnimplementedError(
          absl::StrCat(std::string(name()), " is not implemented for ", ElementTypeName(type())));
    }
    if (indices() >= 0) {
      return SwitchType<int32_t, int64_t>(ctx.input(indices()).type(), [&]<typename I>() {
        return UpdateRows<T, I>(ctx, leases, update, values);
      });
    }
    TROUPE_ASSIGN_OR_RETURN(const Arrays<T> variables, Borrow<T>(leases));
    const StoredAs<T>* gradient = Stored(ctx.input(grad()).template unchecked_data<T>());
    ctx.ParallelFor(ctx.input(grad()).num_elements(), KernelContext::GrainFor(Cost<T>()),
                    [&](int64_t begin, int64_t end) {
                      update(variables.From(begin).data, gradient + begin, Stored(values),
                             end - begin);
                    });
    return absl::OkStatus();
  }

  /// The elements of the variables.
  template <typename T>
  struct Arrays {
    StoredAs<T>* data[4] = {};
    Arrays From(int64_t i) const {
      Arrays result;
      for (int k = 0; k < 4 && data[k] != nullptr; ++k) result.data[k] = data[k] + i;
      return result;
    }
  };

  template <typename T>
  absl::StatusOr<Arrays<T>> Borrow(Leases& leases) const {
    Arrays<T> arrays;
    for (int i = 0; i < num_variables(); ++i) {
      TROUPE_ASSIGN_OR_RETURN(Tensor * value, leases[i].mutable_value());
      arrays.data[i] = Stored(value->mutable_data<T>());
    }
    return arrays;
  }

  /// Rows are updated in the order of the indices. Each of the shards, which may run at the same
  /// time, has rows of its own and skips the others.
  template <typename T, typename I>
  absl::Status UpdateRows(KernelContext& ctx, Leases& leases, UpdateFn<T> update,
                          const T* scalars) {
    const Tensor &grads = ctx.input(grad()), &positions = ctx.input(indices());
    const int64_t rows = leases[0].value().shape().dim(0), count = positions.num_elements();
    const I* index = positions.unchecked_data<I>();
    for (int64_t i = 0; i < count; ++i) {
      if (index[i] < 0 || index[i] >= rows) {
        return InvalidArgument("indices[", i, "] is ", index[i], ", but ", input_name(0),
                               " (the variable '", leases[0].variable()->name(), "') has ", rows,
                               " rows");
      }
    }
    if (grads.num_elements() == 0) return absl::OkStatus();
    TROUPE_ASSIGN_OR_RETURN(const Arrays<T> variables, Borrow<T>(leases));
    const StoredAs<T>* gradient = Stored(grads.unchecked_data<T>());
    const int64_t size = grads.num_elements() / count;
    const double row_cost = 2 + Cost<T>() * static_cast<double>(size);
    // Finding its rows should be little of a shard's work.
    const int64_t shards = row_cost > 8 && row_cost * static_cast<double>(count) > 50000 ? 8 : 1;
    ctx.ParallelFor(shards, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = 0; i < count; ++i) {
        const int64_t shard = index[i] & (shards - 1);
        if (shard < begin || shard >= end) continue;
        update(variables.From(index[i] * size).data, gradient + i * size, Stored(scalars), size);
      }
    });
    return absl::OkStatus();
  }

  /// Nanoseconds that an element takes.
  template <typename T>
  double Cost() const {
    return num_variables() * (kVectorized<T> ? 0.1 * std::max<size_t>(4, sizeof(T)) : 15);
  }
};

[[maybe_unused]] const bool kRegistered = [] {
  ForEachUpdateOp([](KernelSpec spec) {
    KernelRegistry::Global()->Register(std::move(spec), MakeKernel<ApplyKernel>);
  });
  return true;
}();

}  // namespace
}  // namespace troupe
