#include "graph/shape_inference.h"

#include <string>

#include "devices/status_macros.h"
#include "graph/op_args.h"
#include "graph/ops/shape_helpers.h"
#include "graph/protos/graph.pb.h"

namespace troupe {
namespace {

absl::Status WrongRank(const PartialShape& shape, std::string_view wanted, int rank) {
  return InvalidArgument("Shape must be ", wanted, " ", rank, " but is rank ", shape.rank(),
                         " (shape ", shape.ToString(), ")");
}

}  // namespace

InferenceContext::InferenceContext(const NodeDef* def, const OpDef* op_def,
                                   std::vector<PartialShape> inputs,
                                   std::vector<HandleShapes> input_handles, int num_outputs,
                                   ValueSource values)
    : attrs_(def),
      op_def_(op_def),
      inputs_(std::move(inputs)),
      outputs_(num_outputs),
      input_handles_(std::move(input_handles)),
      output_handles_(num_outputs),
      values_(std::move(values)) {
  input_handles_.resize(inputs_.size());
}

absl::StatusOr<std::pair<int, int>> InferenceContext::InputRange(std::string_view name) const {
  const std::pair<int, int> range = ArgRange(*op_def_, ArgSide::kInputs, attrs_, name);
  if (range.first < 0 || range.second > num_inputs()) {
    return InvalidArgument("op ", op_def_->name(), " has no input '", name, "'");
  }
  return range;
}

const Tensor& InferenceContext::input_tensor(int i) {
  if (tensors_.empty()) tensors_.resize(inputs_.size());
  if (!tensors_[i].has_value()) tensors_[i] = values_.tensor ? values_.tensor(i) : Tensor();
  return *tensors_[i];
}

absl::StatusOr<PartialShape> InferenceContext::TensorAsShape(const Tensor& tensor,
                                                             bool allow_scalar) {
  const std::optional<std::vector<int64_t>> values = IndexValues(tensor);
  if (!values) {
    return InvalidArgument("a shape must be given as int32 or int64, not as ",
                           ElementTypeName(tensor.type()));
  }
  const std::vector<int64_t>& sizes = *values;
  if (tensor.rank() == 0 && allow_scalar) {
    if (sizes[0] == -1) return PartialShape();
    return InvalidArgument("a shape given as a scalar must be -1 (unknown), not ", sizes[0]);
  }
  if (tensor.rank() != 1) {
    return InvalidArgument("a shape must be given as a vector, not as a tensor of rank ",
                           tensor.rank());
  }
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < -1) {
      return InvalidArgument("dimension ", i, " of a shape is ", sizes[i],
                             "; it must be at least -1 (unknown)");
    }
  }
  if (sizes.size() > Shape::kMaxRank) {
    return InvalidArgument("a shape has at most ", Shape::kMaxRank, " dimensions, not ",
                           sizes.size());
  }
  // That the number of elements may overflow is found when the tensor is made.
  return PartialShape(sizes);
}

absl::StatusOr<PartialShape> InferenceContext::InputAsShape(int i, bool allow_scalar) {
  const PartialShape& shape = input(i);
  if (!shape.unknown_rank() && shape.rank() == 0 && allow_scalar) {
    const Tensor& value = input_tensor(i);
    return value.valid() ? TensorAsShape(value, true) : PartialShape();
  }
  TROUPE_ASSIGN_OR_RETURN(PartialShape vector, WithRank(shape, 1));
  if (values_.shape) {
    TROUPE_ASSIGN_OR_RETURN(PartialShape known, values_.shape(i));
    if (!known.unknown_rank()) return known;
  }
  const Tensor& value = input_tensor(i);
  if (value.valid()) return TensorAsShape(value, allow_scalar);
  return vector.dim(0) < 0 || vector.dim(0) > Shape::kMaxRank
             ? PartialShape()
             : UnknownOfRank(static_cast<int>(vector.dim(0)));
}

absl::StatusOr<int64_t> InferenceContext::InputAsDim(int i) {
  const Tensor& value = input_tensor(i);
  if (!value.valid()) return -1;
  const std::optional<std::vector<int64_t>> size = IndexValues(value);
  if (value.rank() != 0 || !size) {
    return InvalidArgument("input ", i, " must be a scalar int32 or int64, not ",
                           ElementTypeName(value.type()), value.shape().ToString());
  }
  if (size->front() < 0) {
    return InvalidArgument("Dimension size, given by scalar input ", i,
                           ", must be non-negative but is ", size->front());
  }
  return size->front();
}

absl::StatusOr<PartialShape> InferenceContext::WithRank(const PartialShape& shape, int rank) {
  if (shape.unknown_rank()) return UnknownOfRank(rank);
  if (shape.rank() == rank) return shape;
  return WrongRank(shape, "rank", rank);
}

absl::StatusOr<PartialShape> InferenceContext::WithRankAtLeast(const PartialShape& shape,
                                                               int rank) {
  if (shape.unknown_rank() || shape.rank() >= rank) return shape;
  return WrongRank(shape, "at least rank", rank);
}

absl::StatusOr<PartialShape> InferenceContext::WithRankAtMost(const PartialShape& shape, int rank) {
  if (shape.unknown_rank() || shape.rank() <= rank) return shape;
  return WrongRank(shape, "at most rank", rank);
}

absl::StatusOr<int64_t> InferenceContext::MergeDim(int64_t a, int64_t b) {
  if (a < 0) return b;
  if (b < 0 || a == b) return a;
  return InvalidArgument("Dimensions must be equal, but are ", a, " and ", b);
}

absl::StatusOr<PartialShape> InferenceContext::Subshape(const PartialShape& shape, int64_t begin,
                                                        int64_t end) {
  if (shape.unknown_rank()) return PartialShape();
  const int64_t rank = shape.rank();
  const int64_t wanted_begin = begin, wanted_end = end;
  begin = std::min(begin, rank);
  end = std::min(end, rank);
  if (begin < 0) begin += rank;
  if (end < 0) end += rank;
  if (begin < 0 || end < 0 || begin > end) {
    return InvalidArgument("Dimensions [", wanted_begin, ", ", wanted_end, ") of shape ",
                           shape.ToString(), " do not exist");
  }
  return PartialShape(shape.dims().subspan(begin, end - begin));
}

PartialShape InferenceContext::ReplaceDim(PartialShape shape, int i, int64_t size) {
  if (shape.unknown_rank()) return shape;
  std::vector<int64_t> dims(shape.dims().begin(), shape.dims().end());
  if (i < 0) i += static_cast<int>(dims.size());
  if (i >= 0 && i < static_cast<int>(dims.size())) dims[i] = size;
  return PartialShape(dims);
}

int64_t InferenceContext::Multiply(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  if (a < 0 || b < 0) return -1;
  return MultiplyWithoutOverflow(a, b);
}

int64_t InferenceContext::NumElements(const PartialShape& shape) {
  if (!shape.fully_known()) return -1;
  int64_t count = 1;
  for (int64_t size : shape.dims()) count = Multiply(count, size);
  return count;
}

absl::StatusOr<PartialShape> InferenceContext::Broadcast(const PartialShape& a,
                                                         const PartialShape& b) {
  return BroadcastShapes(a, b, /*tolerant=*/false);
}

absl::Status UnchangedShape(InferenceContext* c) {
  for (int i = 0; i < c->num_outputs(); ++i) {
    c->set_output(i, c->input(0));
    if (!c->input_handle(0).empty()) c->set_output_handle(i, c->input_handle(0));
  }
  return absl::OkStatus();
}

absl::Status ScalarShape(InferenceContext* c) {
  for (int i = 0; i < c->num_outputs(); ++i) c->set_output(i, InferenceContext::Scalar());
  return absl::OkStatus();
}

absl::Status UnknownShape(InferenceContext* c) {
  for (int i = 0; i < c->num_outputs(); ++i) c->set_output(i, PartialShape());
  return absl::OkStatus();
}

absl::Status NoOutputs(InferenceContext*) { return absl::OkStatus(); }

absl::Status BroadcastBinaryShape(InferenceContext* c) {
  return SetShape(c, InferenceContext::Broadcast(c->input(0), c->input(1)));
}

absl::Status MergeInputsShape(InferenceContext* c) {
  PartialShape merged;
  for (int i = 0; i < c->num_inputs(); ++i) {
    TROUPE_ASSIGN_OR_RETURN(merged, InferenceContext::Merge(merged, c->input(i)));
  }
  return SetShape(c, std::move(merged));
}

}  // namespace troupe
