/// Arithmetic as it is written.
///
///     Expr x(s, images), w(s, weights.value());
///     Output y = x * w + 1.0;             // Literals get the type of the other operand.
///     Output first = x.Slice({0});        // Row 0.
///     Output rest = x.Slice({All(), Range(1, std::nullopt)});
#ifndef TROUPE_API_EXPR_H_
#define TROUPE_API_EXPR_H_

#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "api/scope.h"
#include "devices/export.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

/// One item of a slice of a tensor: what to take along an axis. A number takes that position, and
/// the axis goes; negative ones count from the end. A value.
class SliceItem {
 public:
  SliceItem(int64_t position) : kind_(Kind::kPosition), begin_(position) {}  // NOLINT: `Slice({0})`

 private:
  enum class Kind { kPosition, kRange, kNewAxis, kEllipsis };
  friend SliceItem Range(std::optional<int64_t>, std::optional<int64_t>, int64_t);
  friend SliceItem NewAxis();
  friend SliceItem Ellipsis();
  friend Output SliceOf(const Scope&, const Output&, const std::vector<SliceItem>&);
  explicit SliceItem(Kind kind) : kind_(kind) {}

  Kind kind_;
  std::optional<int64_t> begin_, end_;
  int64_t stride_ = 1;
};

/// From `begin` (absent: the first one, or the last one of a negative stride) to before `end`
/// (absent: all that follow).
SliceItem Range(std::optional<int64_t> begin, std::optional<int64_t> end, int64_t stride = 1);
inline SliceItem All() { return Range(std::nullopt, std::nullopt); }
/// An axis of size 1 that x does not have.
SliceItem NewAxis();
/// All of as many axes as the other items leave.
SliceItem Ellipsis();

/// Part of x, as NumPy's `x[...]` has it; axes without an item are taken whole.
Output SliceOf(const Scope& scope, const Output& x, const std::vector<SliceItem>& items);

/// A tensor, and the scope in which operators on it add nodes: that of the left operand, if both
/// have one. Where an `Output` is wanted it is one. Errors are the scope's. A value.
class Expr {
 public:
  Expr(const Scope& scope, const Input& x) : scope_(scope), output_(x.ToOutput(scope)) {}

  operator Output() const { return output_; }  // NOLINT: conversions are the point
  operator Input() const { return output_; }   // NOLINT
  const Output& output() const { return output_; }
  const Scope& scope() const { return scope_; }

  Expr Slice(const std::vector<SliceItem>& items) const {
    return Expr(scope_, SliceOf(scope_, output_, items));
  }

 private:
  Scope scope_;
  Output output_;
};

/// Adds a node of a binary op.
Expr BinaryExpr(const Scope& scope, const char* op, const Input& a, const Input& b);
Expr UnaryExpr(const char* op, const Expr& x);

template <typename A, typename B>
concept ExprOperands = (std::is_same_v<A, Expr> || std::is_same_v<B, Expr>)&&std::is_convertible_v<
    const A&, Input>&& std::is_convertible_v<const B&, Input>;

/// The scope of the left one that has one.
template <typename A, typename B>
const Scope& ExprScope(const A& a, const B& b) {
  if constexpr (std::is_same_v<A, Expr>) {
    return a.scope();
  } else {
    return b.scope();
  }
}

// Element by element, with broadcasting. Division of integers rounds towards zero, as in C++ (op
// "Div"); comparisons give bools.

#define TROUPE_EXPR_OPERATOR(symbol, op)                                     \
  template <typename A, typename B>                                          \
  requires ExprOperands<A, B> Expr operator symbol(const A& a, const B& b) { \
    return BinaryExpr(ExprScope(a, b), op, a, b);                            \
  }
TROUPE_EXPR_OPERATOR(+, "AddV2")
TROUPE_EXPR_OPERATOR(-, "Sub")
TROUPE_EXPR_OPERATOR(*, "Mul")
TROUPE_EXPR_OPERATOR(/, "Div")
TROUPE_EXPR_OPERATOR(%, "FloorMod")
TROUPE_EXPR_OPERATOR(<, "Less")
TROUPE_EXPR_OPERATOR(<=, "LessEqual")
TROUPE_EXPR_OPERATOR(>, "Greater")
TROUPE_EXPR_OPERATOR(>=, "GreaterEqual")
TROUPE_EXPR_OPERATOR(==, "Equal")
TROUPE_EXPR_OPERATOR(!=, "NotEqual")
TROUPE_EXPR_OPERATOR(&&, "LogicalAnd")
TROUPE_EXPR_OPERATOR(||, "LogicalOr")
#undef TROUPE_EXPR_OPERATOR
inline Expr operator-(const Expr& x) { return UnaryExpr("Neg", x); }
inline Expr operator!(const Expr& x) { return UnaryExpr("LogicalNot", x); }

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_API_EXPR_H_
