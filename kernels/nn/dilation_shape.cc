#include "kernels/nn/dilation_shape.h"

#include <vector>

namespace troupe {

absl::Status DilationAttributes::Read(const KernelConstruction& construction) {
  std::vector<int64_t> strides, rates, paddings;
  TROUPE_RETURN_IF_ERROR(construction.GetAttr("strides", &strides));
  TROUPE_RETURN_IF_ERROR(construction.GetAttr("rates", &rates));
  if (strides.size() != 4 || rates.size() != 4) {
    return InvalidArgument("strides and rates must have 4 elements, got ", strides.size(), " and ",
                           rates.size());
  }
  if (strides[0] != 1 || strides[3] != 1 || rates[0] != 1 || rates[3] != 1) {
    return absl::UnimplementedError("strides and rates of batch and depth must be 1");
  }
  rows_ = {.stride = strides[1], .dilation = rates[1]};
  columns_ = {.stride = strides[2], .dilation = rates[2]};
  return ReadPadding(construction, &padding_, &paddings);
}

absl::StatusOr<DilationShape> DilationAttributes::Resolve(const Shape& input,
                                                          const Shape& filter) const {
  if (input.rank() != 4 || filter.rank() != 3 || input.dim(3) != filter.dim(2)) {
    return InvalidArgument("the input must be of rank 4, the filter of rank 3, with the same ",
                           "depth, got shapes ", input.ToString(), " and ", filter.ToString());
  }
  DilationShape s{input.dim(0), input.dim(3), rows_, columns_};
  s.rows.input = input.dim(1);
  s.rows.size = filter.dim(0);
  s.columns.input = input.dim(2);
  s.columns.size = filter.dim(1);
  TROUPE_RETURN_IF_ERROR(SlideBoth(padding_, {}, s.batch, s.depth, &s.rows, &s.columns));
  return s;
}

absl::StatusOr<DilationShape> DilationAttributes::ResolveGradient(const KernelContext& ctx) const {
  TROUPE_ASSIGN_OR_RETURN(const DilationShape s,
                          Resolve(ctx.input(0).shape(), ctx.input(1).shape()));
  const Shape& gradient = ctx.input(2).shape();
  if (gradient == s.output_shape()) return s;
  return InvalidArgument("out_backprop has shape ", gradient.ToString(), ", expected ",
                         s.output_shape().ToString());
}

}  // namespace troupe
