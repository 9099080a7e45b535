#include "graph/gradients/gradient_registry.h"

#include <limits>
#include <map>
#include <mutex>

#include "absl/strings/str_cat.h"
#include "devices/match_type.h"
#include "devices/status_macros.h"
#include "graph/gradients/gradient_ops.h"
#include "graph/protos/graph.pb.h"

namespace troupe {

struct GradientRegistry::Impl {
  mutable std::mutex mutex;
  std::map<std::string, GradientFn, std::less<>> functions;
};

GradientRegistry::GradientRegistry() : impl_(new Impl) {}

GradientRegistry* GradientRegistry::Global() {
  // Never destroyed: static registrars of other libraries may run at any time.
  static GradientRegistry* registry = new GradientRegistry;
  return registry;
}

void GradientRegistry::Register(std::string_view op, GradientFn fn) {
  std::lock_guard lock(impl_->mutex);
  impl_->functions[std::string(op)] = fn;
}

absl::StatusOr<GradientFn> GradientRegistry::LookUp(std::string_view op) const {
  std::lock_guard lock(impl_->mutex);
  auto found = impl_->functions.find(op);
  if (found == impl_->functions.end()) {
    return absl::NotFoundError(
        StrCat("no gradient is registered for op '", op, "': register one with REGISTER_GRADIENT"));
  }
  return found->second;
}

std::vector<std::string> GradientRegistry::Names() const {
  std::lock_guard lock(impl_->mutex);
  std::vector<std::string> names;
  for (const auto& [op, fn] : impl_->functions) names.push_back(op);
  return names;
}

std::string GradientBuilder::NewName(std::string_view op) {
  return graph_->UniqueName(StrCat(prefix_, "/", op));
}

Output GradientBuilder::Value(Output x) {
  if (!status_.ok() || place_ == nullptr || !x.valid()) return x;
  absl::StatusOr<Output> value = place_->Value(x);
  if (!value.ok()) {
    Fail(std::move(value).status());
    return Output();
  }
  return *value;
}

std::vector<Output> GradientBuilder::Values(absl::Span<const Output> xs) {
  std::vector<Output> values;
  for (const Output& x : xs) values.push_back(Value(x));
  return values;
}

Node* GradientBuilder::AddNode(NodeSpec spec) {
  if (!device_.empty()) spec.Device(device_);
  absl::StatusOr<Node*> node = graph_->AddNode(spec);
  if (!node.ok()) {
    Fail(std::move(node).status());
    return nullptr;
  }
  return *node;
}

Node* GradientBuilder::Add(NodeSpec spec) {
  if (!status_.ok()) return nullptr;
  Node* node = AddNode(std::move(spec));
  if (node == nullptr || place_ == nullptr) return node;
  // The specification hides its inputs: those that are not of this place show only now.
  bool moved = false;
  std::vector<Output> inputs;
  for (int i = 0; i < node->num_inputs(); ++i) {
    if (node->in_data_edge(i) == nullptr) continue;  // a loop's back edge, still missing
    inputs.push_back(Value(node->input(i)));
    if (!status_.ok()) return nullptr;
    moved |= inputs.back() != node->input(i);
  }
  if (moved) {
    NodeDef def = node->def();
    def.set_name(NewName(def.op()));
    for (const Output& input : inputs) def.add_input(input.name());
    absl::StatusOr<Node*> again = graph_->AddNode(def);
    if (!again.ok()) {
      Fail(std::move(again).status());
      return nullptr;
    }
    node = *again;
  }
  Fail(place_->Added(node));
  return node;
}

Node* GradientBuilder::Add(std::string_view op, absl::Span<const Output> inputs,
                           const std::function<void(NodeSpec&)>& attrs) {
  if (!status_.ok()) return nullptr;
  NodeSpec spec(std::string(op), NewName(op));
  const bool beside =
      place_ != nullptr && inputs.size() == 1 && place_->BelongsBeside(op, inputs[0]);
  for (const Output& input : inputs) {
    if (!input.valid()) {
      Fail(absl::InternalError(
          StrCat("a gradient function gave a node of op '", op, "' an input that does not exist")));
      return nullptr;
    }
    const Output value = beside ? input : Value(input);
    if (!status_.ok()) return nullptr;
    spec.Input(value);
  }
  if (attrs) attrs(spec);
  Node* node = AddNode(std::move(spec));
  if (node != nullptr && place_ != nullptr && !beside) Fail(place_->Added(node));
  return node;
}

Output GradientBuilder::Dense(const Gradient& gradient) {
  if (!gradient.sparse() || !status_.ok()) return gradient.values;
  using gradients::Sizes;
  const Output rows = Sizes::OfTensor(*this, gradient.dense_shape).Slice(0, 1).Scalar();
  return Op("UnsortedSegmentSum", {gradient.values, gradient.indices, rows});
}

Output GradientBuilder::Op(std::string_view op, std::initializer_list<Output> inputs,
                           const std::function<void(NodeSpec&)>& attrs) {
  return Output(Add(op, absl::MakeConstSpan(inputs.begin(), inputs.size()), attrs), 0);
}

Output GradientBuilder::Const(const Tensor& value) {
  return Op("Const", {}, [&](NodeSpec& spec) {
    spec.Attr("dtype", value.type());
    spec.Attr("value", value);
  });
}

Output GradientBuilder::ScalarOfType(ElementType type, double value) {
  Output scalar;
  const bool made =
      MatchType<float, double, half, bfloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t,
                uint32_t, uint64_t, complex64, complex128>(type, false, [&]<typename T>() {
        scalar = Scalar<T>(static_cast<T>(value));
        return true;
      });
  if (!made) Fail(InvalidArgument("no number of type ", ElementTypeName(type), " can be made"));
  return scalar;
}

Output GradientBuilder::IntVector(absl::Span<const int32_t> values) {
  return Const(Tensor::Vector<int32_t>(values));
}

Output GradientBuilder::Shape(Output x) {
  const PartialShape& shape = x.shape();
  if (shape.fully_known()) {
    std::vector<int32_t> sizes;
    for (int64_t size : shape.dims()) {
      if (size > std::numeric_limits<int32_t>::max()) break;
      sizes.push_back(static_cast<int32_t>(size));
    }
    if (static_cast<int>(sizes.size()) == shape.rank()) return IntVector(sizes);
  }
  return Op("Shape", {x});
}

Output GradientBuilder::ZerosLike(Output x) {
  if (!status_.ok()) return Output();
  // In a loop only the shape of x need be saved.
  if (place_ != nullptr && x.type() != ElementType::kVariant &&
      (x.shape().fully_known() || place_->BelongsBeside("Shape", x))) {
    return Op("Fill", {Shape(x), ScalarOfType(x.type(), 0)});
  }
  return Op("ZerosLike", {x});
}

Output GradientBuilder::OnesLike(Output x) {
  if (!status_.ok()) return Output();
  if (place_ != nullptr && (x.shape().fully_known() || place_->BelongsBeside("Shape", x))) {
    return Op("Fill", {Shape(x), ScalarOfType(x.type(), 1)});
  }
  return Op("OnesLike", {x});
}

Output GradientBuilder::Conj(Output x) {
  if (!status_.ok() || !IsComplex(x.type())) return x;
  return Op("Conj", {x});
}

}  // namespace troupe
