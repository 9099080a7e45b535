#include "kernels/sparse/sparse_stack.h"

#include <algorithm>

#include "devices/status_macros.h"
#include "kernels/common/integer_input.h"
#include "kernels/type_switch.h"

namespace troupe {

namespace {

absl::StatusOr<StoredSparse> Row(KernelContext& ctx, const SparseTensor& tensor,
                                 absl::Span<const int64_t> elements, const Tensor& shape) {
  const int rank = tensor.rank() - 1;
  TROUPE_ASSIGN_OR_RETURN(
      Tensor indices,
      ctx.AllocateTemp(ElementType::kInt64, Shape({static_cast<int64_t>(elements.size()), rank})));
  int64_t* index = indices.mutable_data<int64_t>();
  for (const int64_t k : elements) index = std::copy_n(tensor.indices[k] + 1, rank, index);
  TROUPE_ASSIGN_OR_RETURN(Tensor values, TakeValues(ctx, tensor.values, elements));
  return StoredSparse{std::move(indices), std::move(values), shape};
}

}  // namespace

absl::Status CheckHasRows(const SparseTensor& tensor) {
  if (tensor.rank() >= 2) return absl::OkStatus();
  return InvalidArgument("a sparse tensor of the shape ", tensor.shape.ToString(),
                         " has no rows: the rank must be 2 at least");
}

absl::Status ForEachRow(KernelContext& ctx, const SparseTensor& tensor,
                        absl::FunctionRef<absl::Status(int64_t row, StoredSparse part)> visit) {
  TROUPE_RETURN_IF_ERROR(CheckHasRows(tensor));
  TROUPE_RETURN_IF_ERROR(tensor.CheckOrder("sparse tensor"));
  const Tensor shape = Tensor::Vector<int64_t>(tensor.shape.dims().subspan(1));
  TROUPE_ASSIGN_OR_RETURN(const StoredSparse empty, Row(ctx, tensor, {}, shape));
  std::vector<int64_t> of_row;
  for (int64_t row = 0, i = 0; row < tensor.shape.dim(0); ++row) {
    of_row.clear();
    for (; i < tensor.size() && tensor.indices[i][0] == row; ++i) of_row.push_back(i);
    StoredSparse part = empty;
    if (!of_row.empty()) {
      TROUPE_ASSIGN_OR_RETURN(part, Row(ctx, tensor, of_row, shape));
    }
    TROUPE_RETURN_IF_ERROR(visit(row, std::move(part)));
  }
  return absl::OkStatus();
}

absl::Status PutStacked(KernelContext& ctx, absl::Span<const StoredSparse> parts,
                        absl::Span<const int64_t> outer, ElementType type) {
  if (parts.empty()) return InvalidArgument("there is no sparse tensor to be put together");
  std::vector<SparseTensor> tensors;
  int64_t count = 0;
  DimVector sizes(outer.begin(), outer.end());
  for (size_t i = 0; i < parts.size(); ++i) {
    const std::string what = StrCat("sparse tensor ", i);
    const StoredSparse& part = parts[i];
    if (part.indices.type() != ElementType::kInt64 || part.shape.type() != ElementType::kInt64 ||
        part.values.type() != type) {
      return InvalidArgument(what, " must have indices and a shape of int64 and values of ",
                             ElementTypeName(type), ", got ", ElementTypeName(part.indices.type()),
                             ", ", ElementTypeName(part.shape.type()), " and ",
                             ElementTypeName(part.values.type()));
    }
    TROUPE_ASSIGN_OR_RETURN(SparseTensor tensor,
                            ReadSparse(part.indices, part.values, part.shape, what));
    TROUPE_RETURN_IF_ERROR(tensor.CheckBounds(what));
    if (i == 0) sizes.resize(outer.size() + tensor.rank(), 0);
    if (sizes.size() != outer.size() + tensor.rank()) {
      return InvalidArgument(what, " has the shape ", tensor.shape.ToString(),
                             ", but others have the rank ", sizes.size() - outer.size());
    }
    for (int d = 0; d < tensor.rank(); ++d) {
      sizes[outer.size() + d] = std::max(sizes[outer.size() + d], tensor.shape.dim(d));
    }
    count += tensor.size();
    tensors.push_back(std::move(tensor));
  }
  TROUPE_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(sizes));
  TROUPE_RETURN_IF_ERROR(PutIntegers(ctx, 2, ElementType::kInt64, shape.dims()));
  TROUPE_ASSIGN_OR_RETURN(Tensor * indices,
                          ctx.AllocateOutput(0, ElementType::kInt64, Shape({count, shape.rank()})));
  TROUPE_ASSIGN_OR_RETURN(Tensor * values, ctx.AllocateOutput(1, type, Shape({count})));
  int64_t* index = indices->mutable_data<int64_t>();
  DimVector place(outer.size());
  for (const SparseTensor& tensor : tensors) {
    for (int64_t i = 0; i < tensor.size(); ++i) {
      index = std::copy(place.begin(), place.end(), index);
      index = std::copy_n(tensor.indices[i], tensor.rank(), index);
    }
    for (int d = static_cast<int>(outer.size()) - 1; d >= 0 && ++place[d] == outer[d]; --d) {
      place[d] = 0;
    }
  }
  return SwitchBySize(type, [&]<typename T>() {
    T* value = static_cast<T*>(values->mutable_raw_data());
    for (const SparseTensor& tensor : tensors) {
      value = std::copy_n(static_cast<const T*>(tensor.values.raw_data()), tensor.size(), value);
    }
    return absl::OkStatus();
  });
}

}  // namespace troupe
