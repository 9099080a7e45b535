#include "kernels/sparse/sparse_tensor.h"

#include <numeric>

#include "absl/strings/str_join.h"
#include "devices/status_macros.h"
#include "kernels/common/integer_input.h"
#include "kernels/type_switch.h"

namespace troupe {
namespace {

std::string IndexText(const SparseIndices& indices, int64_t i) {
  return StrCat("[", absl::StrJoin(absl::MakeConstSpan(indices[i], indices.rank()), ","), "]");
}

bool InBounds(const SparseTensor& tensor, int64_t i) {
  for (int d = 0; d < tensor.rank(); ++d) {
    const int64_t index = tensor.indices[i][d];
    if (index < 0 || index >= tensor.shape.dim(d)) return false;
  }
  return true;
}

}  // namespace

absl::Status SparseTensor::CheckBounds(std::string_view what) const {
  for (int64_t i = 0; i < size(); ++i) {
    if (!InBounds(*this, i)) {
      return InvalidArgument(what, ": index ", i, ", ", IndexText(indices, i),
                             ", is out of bounds of the shape ", shape.ToString());
    }
  }
  return absl::OkStatus();
}

absl::Status SparseTensor::CheckOrder(std::string_view what) const {
  TROUPE_RETURN_IF_ERROR(CheckBounds(what));
  for (int64_t i = 1; i < size(); ++i) {
    const int order = CompareIndices(indices[i - 1], indices[i], rank());
    if (order >= 0) {
      return InvalidArgument(what, ": index ", i, ", ", IndexText(indices, i),
                             order == 0 ? ", is repeated" : ", is out of order",
                             "; SparseReorder brings indices into order");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckIndicesAndValues(const Tensor& indices, const Tensor& values,
                                   std::string_view what) {
  if (indices.rank() != 2) {
    return InvalidArgument(what, ": indices must be a matrix, got shape ",
                           indices.shape().ToString());
  }
  if (values.rank() != 1 || values.dim(0) != indices.dim(0)) {
    return InvalidArgument(what, ": values must be a vector with an element for each index, got ",
                           "shape ", values.shape().ToString(), " with indices of shape ",
                           indices.shape().ToString());
  }
  if (indices.dim(1) == 0 && indices.dim(0) > 1) {
    // So many indices would take no memory: they are not to be gone through one by one.
    return InvalidArgument(what, ": a scalar has one element at most, got ", indices.dim(0));
  }
  if (indices.dim(1) > Shape::kMaxRank) {
    return InvalidArgument(what, ": indices of shape ", indices.shape().ToString(),
                           " are for a rank above ", Shape::kMaxRank);
  }
  return absl::OkStatus();
}

absl::Status CheckRowsOf(const Tensor& indices, int64_t rank, std::string_view what) {
  if (indices.rank() == 2 && indices.dim(1) == rank) return absl::OkStatus();
  return InvalidArgument(what, " must be a matrix with rows of ", rank, ", got shape ",
                         indices.shape().ToString());
}

absl::StatusOr<SparseTensor> ReadSparse(const Tensor& indices, const Tensor& values,
                                        const Tensor& shape, std::string_view what) {
  TROUPE_RETURN_IF_ERROR(CheckIndicesAndValues(indices, values, what));
  TROUPE_ASSIGN_OR_RETURN(const Shape dense_shape, ReadShapeVector(shape, what));
  if (dense_shape.rank() != indices.dim(1)) {
    return InvalidArgument(what, ": indices of shape ", indices.shape().ToString(),
                           " are not for the shape ", dense_shape.ToString());
  }
  return SparseTensor(indices, values, dense_shape);
}

absl::Status PutIndices(KernelContext& ctx, int i, absl::Span<const int64_t> flat, int64_t rows,
                        int rank) {
  TROUPE_ASSIGN_OR_RETURN(Tensor * output,
                          ctx.AllocateOutput(i, ElementType::kInt64, Shape({rows, rank})));
  std::copy(flat.begin(), flat.end(), output->mutable_data<int64_t>());
  return absl::OkStatus();
}

absl::StatusOr<Tensor> TakeValues(KernelContext& ctx, const Tensor& values,
                                  absl::Span<const int64_t> places) {
  TROUPE_ASSIGN_OR_RETURN(
      Tensor taken, ctx.AllocateTemp(values.type(), Shape({static_cast<int64_t>(places.size())})));
  TROUPE_RETURN_IF_ERROR(SwitchBySize(values.type(), [&]<typename T>() {
    const T* in = static_cast<const T*>(values.raw_data());
    T* out = static_cast<T*>(taken.mutable_raw_data());
    for (size_t k = 0; k < places.size(); ++k) out[k] = in[places[k]];
    return absl::OkStatus();
  }));
  return taken;
}

absl::Status PutValues(KernelContext& ctx, int i, const Tensor& values,
                       absl::Span<const int64_t> places) {
  TROUPE_ASSIGN_OR_RETURN(Tensor taken, TakeValues(ctx, values, places));
  ctx.set_output(i, std::move(taken));
  return absl::OkStatus();
}

std::vector<int64_t> SortedPlaces(const SparseIndices& indices) {
  std::vector<int64_t> places(indices.size());
  std::iota(places.begin(), places.end(), 0);
  const auto before = [&](int64_t a, int64_t b) {
    return CompareIndices(indices[a], indices[b], indices.rank()) < 0;
  };
  if (!std::is_sorted(places.begin(), places.end(), before)) {
    std::stable_sort(places.begin(), places.end(), before);
  }
  return places;
}

}  // namespace troupe
