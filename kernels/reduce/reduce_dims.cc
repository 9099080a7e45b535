#include "kernels/reduce/reduce_dims.h"

#include "devices/status_macros.h"
#include "kernels/common/integer_input.h"

namespace troupe {
namespace {

// Marks the dimensions named by `axes` (a scalar or a list; negative ones count from the back).
absl::Status MarkAxes(const Tensor& axes, int rank, absl::InlinedVector<bool, 8>* reduced) {
  reduced->assign(rank, false);
  auto mark = [&](int64_t axis) -> absl::Status {
    if (axis < -rank || axis >= rank) {
      return InvalidArgument("invalid reduction dimension ", axis, " for an input with ", rank,
                             " dimensions");
    }
    bool& flag = (*reduced)[axis < 0 ? axis + rank : axis];
    if (flag) return InvalidArgument("the reduction axes name dimension ", axis, " twice");
    flag = true;
    return absl::OkStatus();
  };
  const int64_t n = axes.num_elements();
  for (int64_t i = 0; i < n; ++i) {
    TROUPE_RETURN_IF_ERROR(mark(axes.type() == ElementType::kInt32
                                    ? axes.unchecked_data<int32_t>()[i]
                                    : axes.unchecked_data<int64_t>()[i]));
  }
  return absl::OkStatus();
}

}  // namespace

void ReduceDims::Add(int64_t size, bool reduced) {
  int64_t& count = reduced ? reduced_ : kept_;
  count = Multiply(count, size);
  if (size == 1) return;
  if (!dims_.empty() && dims_.back().reduced == reduced) {
    dims_.back().size = Multiply(dims_.back().size, size);
  } else {
    dims_.push_back({size, reduced});
  }
}

absl::StatusOr<ReducedShape> ReduceAlong(const Shape& shape, const Tensor& axes, bool keep_dims) {
  absl::InlinedVector<bool, 8> reduced;
  TROUPE_RETURN_IF_ERROR(MarkAxes(axes, shape.rank(), &reduced));
  ReducedShape result;
  absl::InlinedVector<int64_t, 8> sizes;
  for (int d = 0; d < shape.rank(); ++d) {
    result.dims.Add(shape.dim(d), reduced[d]);
    if (!reduced[d]) {
      sizes.push_back(shape.dim(d));
    } else if (keep_dims) {
      sizes.push_back(1);
    }
  }
  TROUPE_ASSIGN_OR_RETURN(result.output, Shape::Create(sizes));
  return result;
}

absl::StatusOr<ReducedShape> ReduceTiles(const Shape& shape, const Tensor& multiples) {
  TROUPE_ASSIGN_OR_RETURN(const auto tiles, ReadIntegerVector(multiples, "multiples"));
  bool fits = static_cast<int>(tiles.size()) == shape.rank();
  for (int d = 0; fits && d < shape.rank(); ++d) {
    fits = tiles[d] > 0 && shape.dim(d) % tiles[d] == 0;
  }
  if (!fits) {
    return InvalidArgument("multiples must have a positive divisor for each dimension of the ",
                           "input of shape ", shape.ToString());
  }
  ReducedShape result;
  result.output = shape;
  for (int d = 0; d < shape.rank(); ++d) {
    result.output.set_dim(d, shape.dim(d) / tiles[d]);
    result.dims.Add(tiles[d], true);
    result.dims.Add(result.output.dim(d), false);
  }
  return result;
}

}  // namespace troupe
