#include "api/expr.h"

#include "api/ops.h"
#include "devices/status_macros.h"

namespace troupe {

SliceItem Range(std::optional<int64_t> begin, std::optional<int64_t> end, int64_t stride) {
  SliceItem item(SliceItem::Kind::kRange);
  item.begin_ = begin;
  item.end_ = end;
  item.stride_ = stride;
  return item;
}
SliceItem NewAxis() { return SliceItem(SliceItem::Kind::kNewAxis); }
SliceItem Ellipsis() { return SliceItem(SliceItem::Kind::kEllipsis); }

Output SliceOf(const Scope& scope, const Output& x, const std::vector<SliceItem>& items) {
  using Kind = SliceItem::Kind;
  std::vector<int64_t> begin, end, stride;
  ops::StridedSliceAttrs masks;
  constexpr size_t kMost = 32;  // Bits of a mask.
  if (items.size() >= kMost) {
    scope.UpdateStatus(InvalidArgument("a slice of ", items.size(), " items"));
    return Output();
  }
  for (size_t i = 0; i < items.size(); ++i) {
    const SliceItem& item = items[i];
    const int64_t bit = int64_t{1} << i;
    begin.push_back(item.begin_.value_or(0));
    stride.push_back(item.stride_);
    switch (item.kind_) {
      case Kind::kPosition:
        end.push_back(begin.back() + 1);
        masks.shrink_axis_mask |= bit;
        // There is nothing after the last one that is called 0.
        if (begin.back() == -1) masks.end_mask |= bit;
        break;
      case Kind::kRange:
        end.push_back(item.end_.value_or(0));
        if (!item.begin_) masks.begin_mask |= bit;
        if (!item.end_) masks.end_mask |= bit;
        break;
      case Kind::kNewAxis:
        end.push_back(0);
        masks.new_axis_mask |= bit;
        break;
      case Kind::kEllipsis:
        end.push_back(0);
        masks.ellipsis_mask |= bit;
        break;
    }
  }
  return ops::StridedSlice(scope, x, Tensor::Vector<int64_t>(begin), Tensor::Vector<int64_t>(end),
                           Tensor::Vector<int64_t>(stride), masks);
}

Expr BinaryExpr(const Scope& scope, const char* op, const Input& a, const Input& b) {
  const Output x = a.ToOutput(scope, TypeOfOthers({&b}));
  const Output y = b.ToOutput(scope, TypeOfOthers({&a}));
  Node* const node = scope.AddNode(op, [&](ScopedSpec& spec) { spec.Input(x).Input(y); });
  return Expr(scope, Output(node));
}

Expr UnaryExpr(const char* op, const Expr& x) {
  Node* const node = x.scope().AddNode(op, [&](ScopedSpec& spec) { spec.Input(x.output()); });
  return Expr(x.scope(), Output(node));
}

}  // namespace troupe
