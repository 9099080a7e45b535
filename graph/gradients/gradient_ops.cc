#include "graph/gradients/gradient_ops.h"

#include <algorithm>
#include <limits>

#include "graph/ops/shape_helpers.h"

namespace troupe::gradients {
namespace {

/// An integer vector constant; 64 bits wide only if it must be.
Output IntConst(GradientBuilder& g, const std::vector<int64_t>& values) {
  std::vector<int32_t> narrow;
  for (int64_t value : values) {
    if (value > std::numeric_limits<int32_t>::max() ||
        value < std::numeric_limits<int32_t>::min()) {
      return g.Const(Tensor::Vector<int64_t>(values));
    }
    narrow.push_back(static_cast<int32_t>(value));
  }
  return g.IntVector(narrow);
}

}  // namespace

Output Scale(GradientBuilder& g, Output a, double factor) {
  return Mul(g, a, g.ScalarOfType(a.type(), factor));
}

Output Cast(GradientBuilder& g, Output a, ElementType type) {
  if (a.type() == type) return a;
  return g.Op("Cast", {a}, [&](NodeSpec& spec) { spec.Attr("DstT", type); });
}

Output Sum(GradientBuilder& g, Output a, Output axes, bool keep_dims) {
  return g.Op("Sum", {a, axes}, [&](NodeSpec& spec) { spec.Attr("keep_dims", keep_dims); });
}

Output Sum(GradientBuilder& g, Output a, std::initializer_list<int32_t> axes, bool keep_dims) {
  return Sum(g, a, g.IntVector(absl::MakeConstSpan(axes.begin(), axes.size())), keep_dims);
}

Output Numbers(GradientBuilder& g, Output count) {
  return g.Op("Range", {g.Scalar<int32_t>(0), count, g.Scalar<int32_t>(1)});
}

Output Concat(GradientBuilder& g, const std::vector<Output>& parts, Output axis) {
  if (parts.size() == 1) return parts[0];
  NodeSpec spec("ConcatV2", g.NewName("concat"));
  spec.Input(g.Values(parts)).Input(g.Value(axis));
  return Output(g.Add(std::move(spec)), 0);
}

Output OfLists(GradientBuilder& g, std::string_view op,
               std::initializer_list<absl::Span<const Output>> lists,
               const std::function<void(NodeSpec&)>& attrs) {
  NodeSpec spec(std::string(op), g.NewName(op));
  for (const absl::Span<const Output> list : lists) spec.Input(g.Values(list));
  if (attrs) attrs(spec);
  return Output(g.Add(std::move(spec)), 0);
}

Output Pack(GradientBuilder& g, const std::vector<Output>& parts, int64_t axis) {
  return OfLists(g, "Pack", {parts}, [&](NodeSpec& spec) { spec.Attr("axis", axis); });
}

void CopyAttrs(const Node* node, std::initializer_list<std::string_view> names, NodeSpec& spec) {
  for (std::string_view name : names) {
    if (const AttrValue* value = node->attrs().Find(name)) spec.Attr(name, *value);
  }
}

void CopyMasks(const Node* node, NodeSpec& spec) {
  CopyAttrs(node, {"begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"},
            spec);
}

bool SameKnownShape(const PartialShape& a, const PartialShape& b) {
  return a.fully_known() && a == b;
}

std::optional<std::vector<int64_t>> ConstantInts(const GradientBuilder& g, Output tensor) {
  if (!g.status().ok() || !tensor.valid()) return std::nullopt;
  return IndexValues(g.graph()->ConstantValue(tensor));
}

Sizes Sizes::OfShape(GradientBuilder& g, Output x) {
  Sizes sizes(&g, std::nullopt);
  const PartialShape& shape = x.shape();
  if (!shape.unknown_rank()) sizes.values_.emplace(shape.dims().begin(), shape.dims().end());
  sizes.shape_of_ = x;
  return sizes;
}

Sizes Sizes::OfTensor(GradientBuilder& g, Output vector) {
  std::optional<std::vector<int64_t>> values = ConstantInts(g, vector);
  const PartialShape& shape = vector.shape();
  if (!values && shape.rank() == 1 && shape.dim(0) >= 0) values.emplace(shape.dim(0), -1);
  if (!values && shape.rank() == 0) values.emplace(1, -1);
  Output tensor = Cast(g, vector, ElementType::kInt32);
  if (shape.rank() != 1) tensor = g.Op("Reshape", {tensor, g.IntVector({-1})});
  return Sizes(&g, std::move(values), tensor);
}

Sizes Sizes::Known(GradientBuilder& g, std::vector<int64_t> values) {
  return Sizes(&g, std::move(values));
}

bool Sizes::known() const {
  return values_ && std::all_of(values_->begin(), values_->end(), [](int64_t v) { return v >= 0; });
}

Output Sizes::Vector() const {
  if (!tensor_.valid()) {
    if (known()) {
      tensor_ = IntConst(*g_, *values_);
    } else if (shape_of_.valid()) {
      tensor_ = g_->Op("Shape", {shape_of_});
    }
  }
  return tensor_;
}

Output Sizes::Scalar() const {
  if (known()) return g_->ScalarOfType(ElementType::kInt32, static_cast<double>(at(0)));
  return g_->Op("Squeeze", {Vector()});
}

Output Sizes::ReshapeVector() const {
  if (!values_ || known()) return Vector();
  const bool zero = std::count(values_->begin(), values_->end(), 0) > 0;
  // The other sizes may not be 0: then any size could stand for -1.
  if (zero || std::count(values_->begin(), values_->end(), -1) != 1) return Vector();
  return IntConst(*g_, *values_);
}

Sizes Sizes::Slice(int begin, int end) const {
  std::optional<std::vector<int64_t>> part;
  if (values_) {
    auto index = [&](int i) { return std::clamp(i < 0 ? i + count() : i, 0, count()); };
    part.emplace();
    for (int i = index(begin); i < index(end); ++i) part->push_back(at(i));
  }
  Sizes sizes(g_, std::move(part));
  if (sizes.known()) return sizes;
  const bool to_end = end == kEnd;
  sizes.tensor_ = g_->Op(
      "StridedSlice",
      {Vector(), g_->IntVector({begin}), g_->IntVector({to_end ? 0 : end}), g_->IntVector({1})},
      [&](NodeSpec& spec) {
        spec.Attr("begin_mask", begin == 0 ? 1 : 0);
        spec.Attr("end_mask", to_end ? 1 : 0);
      });
  return sizes;
}

Sizes Sizes::Slice(Output begin, Output count) const {
  return Sizes(g_, std::nullopt, g_->Op("Slice", {Vector(), begin, count}));
}

Sizes Sizes::Gather(const Sizes& indices) const {
  std::optional<std::vector<int64_t>> values;
  if (values_ && indices.known()) {
    values.emplace();
    for (int64_t i : indices.values()) {
      if (i >= count()) return Sizes(g_, std::nullopt);
      values->push_back(at(static_cast<int>(i)));
    }
  }
  Sizes sizes(g_, std::move(values));
  if (sizes.known()) return sizes;
  sizes.tensor_ =
      g_->Op("GatherV2", {Vector(), indices.Vector(), g_->ScalarOfType(ElementType::kInt32, 0)});
  return sizes;
}

Sizes Sizes::Concat(const Sizes& other) const {
  if (values_ && values_->empty()) return other;
  if (other.values_ && other.values_->empty()) return *this;
  std::optional<std::vector<int64_t>> values;
  if (values_ && other.values_) {
    values = values_;
    values->insert(values->end(), other.values_->begin(), other.values_->end());
  }
  Sizes sizes(g_, std::move(values));
  if (sizes.known()) return sizes;
  sizes.tensor_ = gradients::Concat(*g_, {Vector(), other.Vector()}, g_->Scalar<int32_t>(0));
  return sizes;
}

Sizes Sizes::Product() const {
  if (known()) {
    int64_t product = 1;
    for (int64_t value : *values_) product = MultiplyWithoutOverflow(product, value);
    if (product >= 0) return Known(*g_, {product});
  }
  if (values_ && count() == 1) return *this;
  return Sizes(g_, std::vector<int64_t>{-1},
               g_->Op("Prod", {Vector(), g_->IntVector({0})},
                      [](NodeSpec& spec) { spec.Attr("keep_dims", true); }));
}

Sizes Sizes::Times(const Sizes& other) const {
  auto ones = [](const Sizes& sizes) {
    return sizes.known() && std::all_of(sizes.values_->begin(), sizes.values_->end(),
                                        [](int64_t value) { return value == 1; });
  };
  if (ones(*this)) return other;
  if (ones(other)) return *this;
  if (known() && other.known() && count() == other.count()) {
    std::vector<int64_t> values;
    for (int i = 0; i < count(); ++i) {
      values.push_back(MultiplyWithoutOverflow(at(i), other.at(i)));
    }
    return Known(*g_, std::move(values));
  }
  std::optional<std::vector<int64_t>> values;
  if (values_) values.emplace(values_->size(), -1);
  return Sizes(g_, std::move(values), Mul(*g_, Vector(), other.Vector()));
}

Output ReshapeLike(GradientBuilder& g, Output a, Output like) {
  if (SameKnownShape(a.shape(), like.shape())) return a;
  return g.Op("Reshape", {a, Sizes::OfShape(g, like).ReshapeVector()});
}

Output Reshape(GradientBuilder& g, Output a, const Sizes& sizes) {
  if (sizes.known() && a.shape() == PartialShape(absl::MakeConstSpan(sizes.values()))) return a;
  return g.Op("Reshape", {a, sizes.ReshapeVector()});
}

Output BroadcastTo(GradientBuilder& g, Output a, const Sizes& sizes) {
  if (sizes.known() && a.shape() == PartialShape(absl::MakeConstSpan(sizes.values()))) return a;
  return g.Op("BroadcastTo", {a, sizes.Vector()});
}

Output Transpose(GradientBuilder& g, Output a, const std::vector<int64_t>& permutation) {
  bool identity = true;
  for (size_t i = 0; i < permutation.size(); ++i) {
    if (permutation[i] != static_cast<int64_t>(i)) identity = false;
  }
  if (identity) return a;
  return g.Op("Transpose", {a, IntConst(g, permutation)});
}

Output Unbroadcast::Reduce(int operand, Output grad, const Sizes* target) {
  if (!g_.status().ok() || !grad.valid()) return Output();
  const Sizes& mine = operands_[operand];
  const Sizes& other = operands_[1 - operand];
  const Sizes& result = target ? *target : mine;
  if (result.known() && grad.shape() == PartialShape(absl::MakeConstSpan(result.values()))) {
    return grad;
  }
  bool decided = mine.count_known() && other.count_known();
  bool kept = false;  // Some axis that is summed over stays, with size 1.
  std::vector<int64_t> axes;
  const int missing = decided ? std::max(0, other.count() - mine.count()) : 0;
  if (decided) {
    for (int i = 0; i < missing; ++i) axes.push_back(i);
    for (int i = 0; i < mine.count(); ++i) {
      const int j = i + other.count() - mine.count();
      const int64_t other_size = j < 0 ? 1 : other.at(j);
      if (other_size == 1 || mine.at(i) > 1 || mine.at(i) == 0) continue;
      if (mine.at(i) < 0) decided = false;
      kept = true;
      axes.push_back(i + missing);
    }
  }
  if (decided) {
    if (axes.empty()) return grad;
    Output sum = Sum(g_, grad, IntConst(g_, axes), kept);
    return kept && missing > 0 ? Reshape(g_, sum, result) : sum;
  }
  if (!axes_[0].valid()) {
    Node* node = g_.Add("BroadcastGradientArgs", {operands_[0].Vector(), operands_[1].Vector()});
    axes_[0] = Output(node, 0);
    axes_[1] = Output(node, 1);
  }
  return g_.Op("Reshape", {Sum(g_, grad, axes_[operand], true), result.Vector()});
}

void SetMatrices(GradientContext& g, Output grad_a, Output grad_b) {
  Sizes a = Sizes::OfShape(g, g.input(0)), b = Sizes::OfShape(g, g.input(1));
  if (!(a.count_known() && b.count_known() && a.count() == 2 && b.count() == 2)) {
    Unbroadcast unbroadcast(g, a.Slice(0, -2), b.Slice(0, -2));
    if (g.wanted(0)) grad_a = unbroadcast.Reduce(0, grad_a, &a);
    if (g.wanted(1)) grad_b = unbroadcast.Reduce(1, grad_b, &b);
  }
  g.set(0, grad_a);
  g.set(1, grad_b);
}

}  // namespace troupe::gradients
