#include "kernels/common/broadcast.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace troupe {

absl::StatusOr<Shape> BroadcastShapes(const Shape& a, const Shape& b) {
  const int rank = std::max(a.rank(), b.rank());
  absl::InlinedVector<int64_t, 8> dims(rank);
  for (int i = 0; i < rank; ++i) {
    const int in_a = i - (rank - a.rank()), in_b = i - (rank - b.rank());
    const int64_t x = in_a < 0 ? 1 : a.dim(in_a), y = in_b < 0 ? 1 : b.dim(in_b);
    if (x != y && x != 1 && y != 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("Incompatible shapes: ", a.ToString(), " vs. ", b.ToString(),
                       "; dimensions must be equal, or one of them 1"));
    }
    dims[i] = x == 1 ? y : x;
  }
  return Shape::Create(dims);
}

BroadcastWalk::BroadcastWalk(const Shape& out, std::initializer_list<const Shape*> operands) {
  if (out.num_elements() == 0) {
    num_runs_ = 0;
    run_length_ = 0;
    return;
  }
  // From the last dimension to the first; `dims` holds merged ones, innermost first.
  absl::InlinedVector<Dim, 6> dims;
  Offsets sizes = {1, 1, 1};  // Elements of each operand inside the current dimension.
  for (int d = out.rank() - 1; d >= 0; --d) {
    const int64_t size = out.dim(d);
    if (size == 1) continue;
    Dim dim = {size, {}};
    int i = 0;
    for (const Shape* operand : operands) {
      const int at = d - (out.rank() - operand->rank());
      const bool moves = at >= 0 && operand->dim(at) != 1;
      dim.strides[i] = moves ? sizes[i] : 0;
      if (moves) sizes[i] *= size;
      ++i;
    }
    bool merge = !dims.empty();
    for (int k = 0; merge && k < i; ++k) {
      merge = dim.strides[k] == dims.back().strides[k] * dims.back().size;
    }
    if (merge) {
      dims.back().size *= size;
    } else {
      dims.push_back(dim);
    }
  }
  if (dims.empty()) {  // A single element.
    run_steps_ = {1, 1, 1};
    return;
  }
  run_length_ = dims[0].size;
  run_steps_ = dims[0].strides;
  outer_.assign(dims.rbegin(), dims.rend() - 1);
  for (const Dim& dim : outer_) num_runs_ *= dim.size;
}

}  // namespace troupe
