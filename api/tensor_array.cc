#include "api/control_flow.h"
#include "api/ops.h"
#include "devices/status_macros.h"

namespace troupe {

TensorArray::TensorArray(const Scope& scope, const Input& size, ElementType type,
                         const Options& options)
    : type_(type), shape_(std::make_shared<ElementShape>()) {
  shape_->same = options.identical_element_shapes;
  shape_->seen = !options.element_shape.unknown_rank();
  shape_->shape = options.element_shape;
  const Output size_tensor = size.ToOutput(scope);
  Node* node = scope.AddNode("TensorArrayV3", [&](ScopedSpec& spec) {
    spec.Input(size_tensor);
    spec.Attr("dtype", type);
    spec.Attr("element_shape", options.element_shape);
    spec.Attr("dynamic_size", options.dynamic_size);
    spec.Attr("clear_after_read", options.clear_after_read);
    spec.Attr("identical_element_shapes", options.identical_element_shapes);
    spec.Attr("tensor_array_name", options.name);
  });
  if (node == nullptr) return;
  handle_ = Output(node, 0);
  flow_ = Output(node, 1);
}

TensorArray TensorArray::WithFlow(Output flow) const {
  TensorArray array = *this;
  array.flow_ = flow;
  return array;
}

TensorArray TensorArray::Written(const Scope& scope, Output flow, const PartialShape& shape) const {
  if (scope.ok() && shape_ != nullptr && shape_->same && !shape.unknown_rank()) {
    if (!shape_->seen) {
      shape_->seen = true;
      shape_->shape = shape;
    } else if (auto merged = shape_->shape.MergeWith(shape); merged.ok()) {
      shape_->shape = *std::move(merged);
    } else {
      scope.UpdateStatus(InvalidArgument("the elements of TensorArray '", handle_.node->name(),
                                         "' have the shape ", shape_->shape.ToString(), ", but ",
                                         shape.ToString(),
                                         " is written; set identical_element_shapes to false "
                                         "for elements of different shapes"));
    }
  }
  return WithFlow(flow);
}

namespace {

/// The output of `op` on the array and `inputs` between its handle and its flow.
Output ArrayOp(const Scope& scope, std::string_view op, const TensorArray& array,
               std::initializer_list<Output> inputs,
               const std::function<void(ScopedSpec&)>& attrs = nullptr) {
  for (const Output& input : {array.handle(), array.flow()}) {
    if (scope.ok() && !input.valid()) {
      scope.UpdateStatus(
          InvalidArgument(op, ": the TensorArray has not been made, or has an invalid flow"));
    }
  }
  Node* node = scope.AddNode(op, [&](ScopedSpec& spec) {
    spec.Input(array.handle());
    for (const Output& input : inputs) spec.Input(input);
    spec.Input(array.flow());
    if (attrs) attrs(spec);
  });
  return Output(node);
}

}  // namespace

Output TensorArray::Read(const Scope& scope, const Input& index) const {
  const Output value = ArrayOp(scope, "TensorArrayReadV3", *this, {index.ToOutput(scope)},
                               [&](ScopedSpec& spec) { spec.Attr("dtype", type_); });
  if (value.valid() && shape_->same) {
    scope.UpdateStatus(scope.graph()->RefineShape(value, shape_->shape));
  }
  return value;
}

TensorArray TensorArray::Write(const Scope& scope, const Input& index, const Input& value) const {
  const Output at = index.ToOutput(scope), element = value.ToOutput(scope);
  const Output flow = ArrayOp(scope, "TensorArrayWriteV3", *this, {at, element});
  return Written(scope, flow, flow.valid() ? element.shape() : PartialShape());
}

Output TensorArray::Gather(const Scope& scope, const Input& indices) const {
  return ArrayOp(scope, "TensorArrayGatherV3", *this, {indices.ToOutput(scope)},
                 [&](ScopedSpec& spec) {
                   spec.Attr("dtype", type_);
                   spec.Attr("element_shape", element_shape());
                 });
}

TensorArray TensorArray::Scatter(const Scope& scope, const Input& indices,
                                 const Input& value) const {
  const Output at = indices.ToOutput(scope), rows = value.ToOutput(scope);
  const Output flow = ArrayOp(scope, "TensorArrayScatterV3", *this, {at, rows});
  PartialShape shape;
  if (flow.valid() && rows.shape().rank() > 0) shape = PartialShape(rows.shape().dims().subspan(1));
  return Written(scope, flow, shape);
}

Output TensorArray::Stack(const Scope& scope) const {
  return Gather(scope, ops::Range(scope, 0, Size(scope), 1));
}

TensorArray TensorArray::Unstack(const Scope& scope, const Input& value) const {
  const Output rows = value.ToOutput(scope);
  if (!rows.valid()) return *this;
  Output count;
  if (rows.shape().rank() > 0 && rows.shape().dim(0) >= 0 && rows.shape().dim(0) <= INT32_MAX) {
    count = Const(scope, static_cast<int32_t>(rows.shape().dim(0)));
  } else {
    count =
        ops::StridedSlice(scope, ops::Shape(scope, rows), {0}, {1}, {1}, {.shrink_axis_mask = 1});
  }
  return Scatter(scope, ops::Range(scope, 0, count, 1), rows);
}

Output TensorArray::Concat(const Scope& scope) const {
  return ArrayOp(scope, "TensorArrayConcatV3", *this, {}, [&](ScopedSpec& spec) {
    PartialShape rest;
    if (element_shape().rank() > 0) rest = PartialShape(element_shape().dims().subspan(1));
    spec.Attr("dtype", type_);
    spec.Attr("element_shape_except0", rest);
  });
}

TensorArray TensorArray::Split(const Scope& scope, const Input& value, const Input& lengths) const {
  const Output rows = value.ToOutput(scope), sizes = lengths.ToOutput(scope);
  return WithFlow(ArrayOp(scope, "TensorArraySplitV3", *this, {rows, sizes}));
}

Output TensorArray::Size(const Scope& scope) const {
  return ArrayOp(scope, "TensorArraySizeV3", *this, {});
}

Node* TensorArray::Close(const Scope& scope) const {
  return scope.WithControlDependencies({flow_}).AddNode(
      "TensorArrayCloseV3", [&](ScopedSpec& spec) { spec.Input(handle_); });
}

TensorArray TensorArray::Grad(const Scope& scope, const std::string& source) const {
  const Output handle = ArrayOp(scope, "TensorArrayGradV3", *this, {},
                                [&](ScopedSpec& spec) { spec.Attr("source", source); });
  TensorArray gradients;
  gradients.type_ = type_;
  if (shape_ != nullptr) gradients.shape_ = std::make_shared<ElementShape>(*shape_);
  if (!handle.valid()) return gradients;
  gradients.handle_ = handle;
  gradients.flow_ = Output(handle.node, 1);
  return gradients;
}

}  // namespace troupe
