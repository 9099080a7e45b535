// ScatterNd: a tensor of zeros with updates added at given places.
#include <complex>

#include "kernels/array/index_view.h"
#include "kernels/kernel_registry.h"
#include "kernels/type_switch.h"

namespace troupe {
namespace {

template <typename T>
void AddTo(T* to, const T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    *to = *to || value;
  } else {
    *to = T(*to + value);
  }
}

class ScatterNd : public Kernel {
 public:
  ScatterNd(KernelConstruction& construction, absl::Status* status) {
    const std::string policy = construction.Attr<std::string>("bad_indices_policy");
    ignore_bad_ = policy == "IGNORE";
    if (!ignore_bad_ && !policy.empty() && policy != "DEFAULT" && policy != "ERROR") {
      *status =
          InvalidArgument("bad_indices_policy must be DEFAULT, ERROR or IGNORE, got ", policy);
    }
  }
  absl::Status Compute(KernelContext& ctx) override {
    const Tensor &indices = ctx.input(0), &updates = ctx.input(1);
    if (ctx.input(2).rank() != 1) {
      return InvalidArgument("shape must be a vector, got shape ", ctx.input(2).shape().ToString());
    }
    TROUPE_ASSIGN_OR_RETURN(const Shape shape, ReadShape(ctx.input(2), "shape"));
    if (indices.rank() < 2 || updates.rank() < 1) {
      return InvalidArgument("indices must have at least two dimensions, updates one, got shapes ",
                             indices.shape().ToString(), " and ", updates.shape().ToString());
    }
    if (shape.num_elements() == 0 && (indices.num_elements() > 0 || updates.num_elements() > 0)) {
      return InvalidArgument("indices and updates are given for an output of shape ",
                             shape.ToString(), ", which is empty");
    }
    const int outer = indices.rank() - 1;
    const int64_t depth = indices.dim(outer);
    bool fits = depth <= shape.rank() && updates.rank() - outer == shape.rank() - depth;
    for (int d = 0; fits && d < outer; ++d) fits = updates.dim(d) == indices.dim(d);
    for (int d = outer; fits && d < updates.rank(); ++d) {
      fits = updates.dim(d) == shape.dim(d - outer + static_cast<int>(depth));
    }
    if (!fits) {
      return InvalidArgument("updates of shape ", updates.shape().ToString(),
                             " must have the outer dimensions of indices of shape ",
                             indices.shape().ToString(), ", then those of the output of shape ",
                             shape.ToString(), " that an index leaves");
    }
    TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, updates.type(), shape));
    ZeroElements(ctx, out->type(), out->mutable_raw_data(), out->num_elements());
    if (updates.num_elements() == 0) return absl::OkStatus();

    int64_t rows = 1;
    for (int d = 0; d < outer; ++d) rows *= indices.dim(d);
    const int64_t inner = updates.num_elements() / rows;
    TROUPE_ASSIGN_OR_RETURN(const DimVector offsets, Offsets(indices, shape, rows));
    return SwitchType<float, int32_t, int64_t, double, half, bfloat16, int8_t, int16_t, uint8_t,
                      uint16_t, uint32_t, uint64_t, complex64, complex128, bool, std::string>(
        updates.type(), [&]<typename T>() {
          const T* from = updates.data<T>();
          T* to = out->mutable_data<T>();
          // Threads share out the columns, so that equal indices are added in order.
          ctx.ParallelFor(inner, KernelContext::GrainFor(1.0 * rows),
                          [&](int64_t begin, int64_t end) {
                            for (int64_t r = 0; r < rows; ++r) {
                              if (offsets[r] < 0) continue;
                              for (int64_t i = begin; i < end; ++i) {
                                AddTo(to + offsets[r] + i, from[r * inner + i]);
                              }
                            }
                          });
          return absl::OkStatus();
        });
  }

 private:
  /// The element of the output at which each slice begins; -1 for one to be ignored.
  absl::StatusOr<DimVector> Offsets(const Tensor& indices, const Shape& shape, int64_t rows) const {
    const int64_t depth = indices.dim(indices.rank() - 1);
    const DimVector strides = RowMajorStrides(shape.dims());
    TROUPE_ASSIGN_OR_RETURN(const IndexView index, IndexView::Of(indices, "indices"));
    DimVector offsets(rows, 0);
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t k = 0; k < depth; ++k) {
        const int64_t at = index[r * depth + k];
        if (at < 0 || at >= shape.dim(static_cast<int>(k))) {
          if (!ignore_bad_) {
            return IndexOutOfRange(indices, "indices", r * depth + k, at,
                                   shape.dim(static_cast<int>(k)));
          }
          offsets[r] = -1;
          break;
        }
        offsets[r] += at * strides[k];
      }
    }
    return offsets;
  }

  bool ignore_bad_ = false;
};

std::vector<ElementType> WithString(std::vector<ElementType> types) {
  types.push_back(ElementType::kString);
  return types;
}

REGISTER_KERNEL(KernelSpec("ScatterNd")
                    .Types("T", WithString(PlainTypes()))
                    .Types("Tindices", {ElementType::kInt32, ElementType::kInt64})
                    .HostMemory("shape"),
                MakeKernel<ScatterNd>);

}  // namespace
}  // namespace troupe
