#include "graph/constant_values.h"

#include <algorithm>
#include <limits>

#include "devices/exceptions.h"
#include "devices/status_macros.h"
#include "graph/op_args.h"
#include "graph/ops/shape_helpers.h"
#include "graph/protos/graph.pb.h"

namespace troupe {
namespace {

// How far a search may go, so that a large constant sub-graph does not make building slow.
constexpr int kMaxNodes = 1000;
// Larger values are not looked at, and no node that would compute one is run.
constexpr int64_t kMaxBytes = 10 << 20;

bool KnownToBeLarge(const Node& node) {
  int64_t bytes = 0;
  for (int i = 0; i < node.num_outputs(); ++i) {
    const PartialShape& shape = node.output_shape(i);
    if (!shape.fully_known()) continue;
    const int64_t elements = InferenceContext::NumElements(shape);
    if (elements < 0 || elements > kMaxBytes) return true;
    bytes += elements * static_cast<int64_t>(ElementSize(RemoveRef(node.output_type(i))));
  }
  return bytes > kMaxBytes;
}

/// True if running the node while building gives what running it later gives.
bool MayEvaluate(const Node& node) {
  if (node.num_inputs() == 0 || node.stateful()) return false;
  for (std::string_view op : {"Merge", "RefMerge", "Exit", "RefExit", "NextIteration",
                              "RefNextIteration", "LoopCond", "PlaceholderWithDefault"}) {
    if (node.op() == op) return false;
  }
  for (int i = 0; i < node.num_inputs(); ++i) {
    if (IsRefType(node.input_type(i)) || node.in_data_edge(i) == nullptr) return false;
  }
  for (int i = 0; i < node.num_outputs(); ++i) {
    const ElementType type = node.output_type(i);
    if (IsRefType(type) || type == ElementType::kResource || type == ElementType::kVariant) {
      return false;
    }
  }
  return !KnownToBeLarge(node);
}

/// An integer of an output type that is int32 or int64; invalid if it does not fit.
Tensor IntegerTensor(ElementType type, absl::Span<const int64_t> values, const Shape& shape) {
  if (type == ElementType::kInt64) return Tensor::Vector<int64_t>(values).Reshaped(shape);
  if (type != ElementType::kInt32) return Tensor();
  std::vector<int32_t> narrow(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] > std::numeric_limits<int32_t>::max()) return Tensor();
    narrow[i] = static_cast<int32_t>(values[i]);
  }
  return Tensor::Vector<int32_t>(narrow).Reshaped(shape);
}

/// Dimensions begin, begin + stride, ... before end; negative positions count from the back.
absl::StatusOr<PartialShape> StridedSubshape(const PartialShape& shape, int64_t begin, int64_t end,
                                             int64_t stride) {
  if (shape.unknown_rank() || stride == 0) return PartialShape();
  const int64_t rank = shape.rank();
  begin = std::min(begin, rank);
  end = std::min(end, rank);
  if (stride < 0 && begin == rank) --begin;
  if (begin < 0) begin += rank;
  if (end < 0) end += rank;
  if (begin < 0 || end < 0 || (stride > 0 ? begin > end : begin < end)) {
    return InvalidArgument("the slice of a shape is out of bounds: the shape is ",
                           shape.ToString());
  }
  std::vector<int64_t> dims;
  for (int64_t i = begin; stride > 0 ? i < end : i > end; i += stride) {
    dims.push_back(shape.dim(static_cast<int>(i)));
    if (std::abs(stride) > rank) break;  // and i + stride might overflow
  }
  return PartialShape(dims);
}

/// A dimension of a shape as a scalar; invalid if it is not known.
Tensor SizeAt(const PartialShape& shape, int64_t at, ElementType type) {
  if (shape.unknown_rank()) return Tensor();
  if (at < 0) at += shape.rank();
  if (at < 0 || at >= shape.rank() || shape.dim(static_cast<int>(at)) < 0) return Tensor();
  return IntegerTensor(type, {shape.dim(static_cast<int>(at))}, Shape());
}

}  // namespace

Tensor* ConstantValues::Find(Output tensor) {
  auto found = known_.find(static_cast<uint64_t>(tensor.node->id()) << 32 | tensor.index);
  return found == known_.end() ? nullptr : &found->second;
}

void ConstantValues::Remember(Output tensor, Tensor value) {
  known_.insert_or_assign(static_cast<uint64_t>(tensor.node->id()) << 32 | tensor.index,
                          std::move(value));
}

Tensor ConstantValues::ElementOfShape(const Node& slice) {
  // The usual `shape[i]` of a shape of which only some sizes are known.
  const AttrReader attrs = slice.attrs();
  for (const char* mask : {"begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask"}) {
    if (attrs.GetOr<int64_t>(mask, 0) != 0) return Tensor();
  }
  if (attrs.GetOr<int64_t>("shrink_axis_mask", 0) != 1) return Tensor();
  const Node& shape_node = *slice.input(0).node;
  const Node& begin_node = *slice.input(1).node;
  if (shape_node.op() != "Shape" || begin_node.op() != "Const") return Tensor();
  const PartialShape& shape = shape_node.input(0).shape();
  int64_t at;
  if (shape.unknown_rank() || !Integer(slice.input(1), &at)) return Tensor();
  return SizeAt(shape, at, slice.output_type(0));
}

Tensor ConstantValues::FromShapes(Output tensor) {
  const Node& node = *tensor.node;
  if (!node.op_known()) return Tensor();
  const std::string& op = node.op();
  if (op == "Const") {
    if (KnownToBeLarge(node)) return Tensor();  // a few bytes may stand for gigabytes of one value
    Tensor value;
    const bool good = node.attrs().Get("value", &value).ok() && value.type() == node.output_type(0);
    return good ? value : Tensor();
  }
  if (node.num_inputs() == 0 || node.in_data_edge(0) == nullptr) return Tensor();
  if (op == "StridedSlice") return ElementOfShape(node);
  if (op == "Unpack") {
    const Node& shape_node = *node.input(0).node;
    if (shape_node.op() != "Shape" || node.attrs().GetOr<int64_t>("axis", 0) != 0) return Tensor();
    return SizeAt(shape_node.input(0).shape(), tensor.index, node.output_type(tensor.index));
  }
  if (op != "Shape" && op != "Rank" && op != "Size") return Tensor();
  const PartialShape& shape = node.input(0).shape();
  if (shape.unknown_rank()) return Tensor();
  const ElementType type = node.output_type(0);
  if (op == "Rank") return IntegerTensor(type, {shape.rank()}, Shape());
  if (!shape.fully_known()) return Tensor();
  if (op == "Shape") return IntegerTensor(type, shape.dims(), Shape({shape.rank()}));
  const int64_t elements = InferenceContext::NumElements(shape);
  return elements < 0 ? Tensor() : IntegerTensor(type, {elements}, Shape());
}

bool ConstantValues::Evaluate(const Node& node) {
  std::vector<Tensor> inputs;
  for (int i = 0; i < node.num_inputs(); ++i) inputs.push_back(*Find(node.input(i)));
  if (node.op() == "Enter") {
    Remember(Output(const_cast<Node*>(&node)), inputs[0]);
    return true;
  }
  if (node.op() == "Switch") {
    if (inputs[1].type() != ElementType::kBool || inputs[1].num_elements() != 1) return false;
    const int taken = inputs[1].unchecked_scalar<bool>() ? 1 : 0;
    Remember(Output(const_cast<Node*>(&node), taken), inputs[0]);
    Remember(Output(const_cast<Node*>(&node), 1 - taken), Tensor());
    return true;
  }
  const NodeEvaluator& evaluator = Graph::evaluator();
  if (!evaluator) return false;
  absl::StatusOr<std::vector<Tensor>> outputs = evaluator(node, inputs);
  if (!outputs.ok() || static_cast<int>(outputs->size()) != node.num_outputs()) return false;
  for (int i = 0; i < node.num_outputs(); ++i) {
    Remember(Output(const_cast<Node*>(&node), i), std::move((*outputs)[i]));
  }
  return true;
}

Tensor ConstantValues::Value(Output wanted) {
  if (const Tensor* known = Find(wanted); known != nullptr) return *known;
  std::vector<Output> stack = {wanted};
  std::vector<Output> expanded;  // those of the stack whose inputs have been put on it
  int budget = kMaxNodes;
  auto give_up = [&](Output unknown) {
    // Whatever was expanded depends on what is not known; the other inputs of it may be known.
    expanded.push_back(unknown);
    for (const Output& output : expanded) {
      if (Find(output) == nullptr) Remember(output, Tensor());
    }
    return Tensor();
  };
  while (!stack.empty()) {
    const Output current = stack.back();
    if (const Tensor* known = Find(current); known != nullptr) {
      if (!known->valid()) return give_up(current);
      stack.pop_back();
      continue;
    }
    if (Tensor value = FromShapes(current); value.valid()) {
      if (value.bytes() > kMaxBytes) {
        if (current == wanted) return value;
        return give_up(current);
      }
      Remember(current, std::move(value));
      continue;
    }
    const Node& node = *current.node;
    if (!MayEvaluate(node)) return give_up(current);
    bool ready = true;
    for (int i = 0; i < node.num_inputs(); ++i) {
      const Output input = node.input(i);
      const Tensor* known = Find(input);
      if (known != nullptr && !known->valid()) return give_up(current);
      if (known == nullptr) {
        stack.push_back(input);
        ready = false;
      }
    }
    if (!ready) {
      expanded.push_back(current);
      if (--budget < 0) return give_up(current);
      continue;
    }
    if (!Evaluate(node)) return give_up(current);
  }
  return *Find(wanted);
}

bool ConstantValues::Integer(Output tensor, int64_t* value) {
  const Tensor constant = Value(tensor);
  const std::optional<std::vector<int64_t>> values = IndexValues(constant);
  if (!values || values->size() != 1) return false;
  *value = values->front();
  return true;
}

absl::StatusOr<PartialShape> ConstantValues::PackAsShape(const Node& pack) {
  std::vector<int64_t> dims;
  for (int i = 0; i < pack.num_inputs(); ++i) {
    int64_t size;
    dims.push_back(Integer(pack.input(i), &size) && size >= 0 ? size : -1);
  }
  return PartialShape(dims);
}

absl::StatusOr<PartialShape> ConstantValues::ConcatAsShape(const Node& concat, int* budget) {
  const int axis = concat.op() == "Concat" ? 0 : concat.num_inputs() - 1;
  std::vector<int64_t> dims;
  for (int i = 0; i < concat.num_inputs(); ++i) {
    if (i == axis) continue;
    TROUPE_ASSIGN_OR_RETURN(PartialShape part, AsShape(concat.input(i), budget));
    if (part.unknown_rank() || dims.size() + part.rank() > Shape::kMaxRank) return PartialShape();
    dims.insert(dims.end(), part.dims().begin(), part.dims().end());
  }
  return PartialShape(dims);
}

absl::StatusOr<PartialShape> ConstantValues::SliceAsShape(const Node& slice, int* budget) {
  for (int i = 1; i <= 3; ++i) {
    const PartialShape& shape = slice.input(i).shape();
    if (shape.unknown_rank() || shape.rank() != 1 || shape.dim(0) != 1) return PartialShape();
  }
  const AttrReader attrs = slice.attrs();
  const int64_t begin_mask = attrs.GetOr<int64_t>("begin_mask", 0);
  const int64_t end_mask = attrs.GetOr<int64_t>("end_mask", 0);
  if (begin_mask < 0 || begin_mask > 1 || end_mask < 0 || end_mask > 1) return PartialShape();
  for (const char* mask : {"ellipsis_mask", "new_axis_mask", "shrink_axis_mask"}) {
    if (attrs.GetOr<int64_t>(mask, 0) != 0) return PartialShape();
  }
  int64_t begin = 0, end = std::numeric_limits<int64_t>::max(), stride;
  if (begin_mask == 0 && !Integer(slice.input(1), &begin)) return PartialShape();
  if (end_mask == 0 && !Integer(slice.input(2), &end)) return PartialShape();
  if (!Integer(slice.input(3), &stride)) return PartialShape();
  TROUPE_ASSIGN_OR_RETURN(PartialShape whole, AsShape(slice.input(0), budget));
  return StridedSubshape(whole, begin, end, stride);
}

absl::StatusOr<PartialShape> ConstantValues::AsShape(Output tensor) {
  int budget = kMaxNodes / 10;
  return AsShape(tensor, &budget);
}

absl::StatusOr<PartialShape> ConstantValues::AsShape(Output tensor, int* budget) {
  if (--*budget < 0) return PartialShape();
  const PartialShape& own = tensor.shape();
  if (!own.unknown_rank() && own.rank() == 0) {
    const Tensor value = Value(tensor);
    if (!value.valid()) {
      return InvalidArgument("a shape is given as the scalar '", tensor.name(),
                             "' of unknown value; only -1 (unknown) is allowed there");
    }
    return InferenceContext::TensorAsShape(value, /*allow_scalar=*/true);
  }
  TROUPE_ASSIGN_OR_RETURN(PartialShape vector, InferenceContext::WithRank(own, 1));
  const int64_t size = vector.dim(0);
  if (size == 0) return PartialShape({});
  const Node& node = *tensor.node;
  if (!node.op_known()) return PartialShape();
  const std::string& op = node.op();
  for (int i = 0; i < node.num_inputs(); ++i) {
    if (node.in_data_edge(i) == nullptr) return PartialShape();
  }
  if (op == "Shape") return node.input(0).shape();
  if (op == "ShapeN") return node.input(tensor.index).shape();
  if (op == "Pack") return PackAsShape(node);
  if (op == "Concat" || op == "ConcatV2") return ConcatAsShape(node, budget);
  if (op == "StridedSlice") return SliceAsShape(node, budget);
  if (op == "VariableShape") {
    const HandleShapes& handle = node.input(0).node->output_handle(node.input(0).index);
    return handle.empty() ? PartialShape() : handle[0].second;
  }
  const Tensor value = Value(tensor);
  if (op == "Cast" && !value.valid()) {
    const ElementType from = node.input_type(0);
    if (from == ElementType::kInt32 || from == ElementType::kInt64) {
      auto before = AsShape(node.input(0), budget);
      if (before.ok()) return before;
    }
  }
  if (value.valid()) return InferenceContext::TensorAsShape(value);
  if (size < 0 || size > Shape::kMaxRank) return PartialShape();
  return InferenceContext::UnknownOfRank(static_cast<int>(size));
}

absl::Status InferShapes(const NodeDef& def, const OpRegistration& registration,
                         absl::Span<const Output> inputs, int num_outputs, int graph_version,
                         ConstantValues* constants, InferredShapes* result) {
  result->shapes.resize(num_outputs);
  result->handles.resize(num_outputs);
  if (registration.shape_fn == nullptr) return absl::OkStatus();
  std::vector<PartialShape> shapes(inputs.size());
  std::vector<HandleShapes> handles(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].valid()) continue;
    shapes[i] = inputs[i].shape();
    handles[i] = inputs[i].node->output_handle(inputs[i].index);
  }
  InferenceContext::ValueSource values;
  values.tensor = [&inputs, constants](int i) {
    return inputs[i].valid() ? constants->Value(inputs[i]) : Tensor();
  };
  values.shape = [&inputs, constants](int i) -> absl::StatusOr<PartialShape> {
    if (!inputs[i].valid()) return PartialShape();
    return constants->AsShape(inputs[i]);
  };
  InferenceContext context(&def, registration.def.get(), std::move(shapes), std::move(handles),
                           num_outputs, std::move(values));
  context.set_graph_version(graph_version);
  const absl::Status status = CatchExceptions([&] { return registration.shape_fn(&context); });
  if (!status.ok()) {
    std::string list;
    for (int i = 0; i < context.num_inputs(); ++i) {
      list += StrCat(i == 0 ? "" : ", ", context.input(i).ToString());
    }
    return WithContext(
        "", status,
        StrCat("; for node '", def.name(), "' (op ", def.op(), ") with input shapes: ", list));
  }
  for (int i = 0; i < num_outputs; ++i) {
    result->shapes[i] = context.output(i);
    result->handles[i] = context.output_handle(i);
  }
  return absl::OkStatus();
}

}  // namespace troupe
