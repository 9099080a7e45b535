/// What gradient functions are written with: one-line ops, sizes that may be partly known while
/// the graph is built, and the inverse of broadcasting.
///
/// Everything here adds nodes to the context's graph and, after an error, does nothing. Not
/// thread-safe.
#ifndef TROUPE_GRAPH_GRADIENTS_GRADIENT_OPS_H_
#define TROUPE_GRAPH_GRADIENTS_GRADIENT_OPS_H_

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "graph/gradients/gradient_registry.h"

namespace troupe::gradients {

inline Output Add(GradientBuilder& g, Output a, Output b) { return g.Op("AddV2", {a, b}); }
inline Output Sub(GradientBuilder& g, Output a, Output b) { return g.Op("Sub", {a, b}); }
inline Output Mul(GradientBuilder& g, Output a, Output b) { return g.Op("Mul", {a, b}); }
inline Output Div(GradientBuilder& g, Output a, Output b) { return g.Op("RealDiv", {a, b}); }
inline Output Neg(GradientBuilder& g, Output a) { return g.Op("Neg", {a}); }
/// a * factor, the factor being made a number of a's type.
Output Scale(GradientBuilder& g, Output a, double factor);
inline Output Select(GradientBuilder& g, Output condition, Output then, Output otherwise) {
  return g.Op("SelectV2", {condition, then, otherwise});
}
/// Cast unless it is of that type already.
Output Cast(GradientBuilder& g, Output a, ElementType type);
/// `axes`: a vector or scalar of integers.
Output Sum(GradientBuilder& g, Output a, Output axes, bool keep_dims);
Output Sum(GradientBuilder& g, Output a, std::initializer_list<int32_t> axes, bool keep_dims);
/// 0, 1, ... count - 1, for a scalar int32.
Output Numbers(GradientBuilder& g, Output count);
/// Tensors joined along `axis`; the only one as it is.
Output Concat(GradientBuilder& g, const std::vector<Output>& parts, Output axis);
/// First output of a node of `op`, whose arguments are lists of tensors.
Output OfLists(GradientBuilder& g, std::string_view op,
               std::initializer_list<absl::Span<const Output>> lists,
               const std::function<void(NodeSpec&)>& attrs = nullptr);
/// Stacks tensors along a new dimension.
Output Pack(GradientBuilder& g, const std::vector<Output>& parts, int64_t axis);
/// Copies attributes of the node that is differentiated.
void CopyAttrs(const Node* node, std::initializer_list<std::string_view> names, NodeSpec& spec);
/// Those that say what a strided slice takes.
void CopyMasks(const Node* node, NodeSpec& spec);

/// True if both shapes are completely known, and equal.
bool SameKnownShape(const PartialShape& a, const PartialShape& b);

/// The value of a constant integer tensor, of either width, as a list; nullopt if not known.
std::optional<std::vector<int64_t>> ConstantInts(const GradientBuilder& g, Output tensor);

/// A vector of sizes (int32 in the graph), some or all of which may be known while building. Keeps
/// shape arithmetic out of the graph wherever it can be done now. -1 is an unknown size.
class Sizes {
 public:
  /// The sizes of x.
  static Sizes OfShape(GradientBuilder& g, Output x);
  /// The values of an integer vector (or scalar, taken as one size).
  static Sizes OfTensor(GradientBuilder& g, Output vector);
  static Sizes Known(GradientBuilder& g, std::vector<int64_t> values);

  /// True if even their number is known.
  bool count_known() const { return values_.has_value(); }
  int count() const { return static_cast<int>(values_->size()); }
  bool known() const;
  /// Only if `known()`.
  const std::vector<int64_t>& values() const { return *values_; }
  /// Size i, -1 if unknown. Only if `count_known()`.
  int64_t at(int i) const { return (*values_)[i]; }

  /// Sizes [begin, end), negative indices counting from the back; kEnd: to the end.
  static constexpr int kEnd = INT32_MAX;
  Sizes Slice(int begin, int end) const;
  /// Sizes [begin, begin + count), given by int32 vectors of size 1.
  Sizes Slice(Output begin, Output count) const;
  /// The sizes at `indices`.
  Sizes Gather(const Sizes& indices) const;
  Sizes Concat(const Sizes& other) const;
  /// One size: the product of all.
  Sizes Product() const;
  /// Element by element, for lists of one size.
  Sizes Times(const Sizes& other) const;

  /// As an int32 vector; as a scalar if there is one size.
  Output Vector() const;
  Output Scalar() const;
  /// A vector for Reshape: like Vector, but a single unknown size becomes -1 where that is safe.
  Output ReshapeVector() const;

 private:
  Sizes(GradientBuilder* g, std::optional<std::vector<int64_t>> values, Output tensor = {})
      : g_(g), values_(std::move(values)), tensor_(tensor) {}

  GradientBuilder* g_;
  std::optional<std::vector<int64_t>> values_;
  mutable Output tensor_;  // The vector in the graph, once it is needed.
  Output shape_of_;        // If set: `tensor_` is made by Shape of this.
};

/// `a` in the shape of `like`: nothing is added if that is known to be its shape.
Output ReshapeLike(GradientBuilder& g, Output a, Output like);
Output Reshape(GradientBuilder& g, Output a, const Sizes& sizes);
/// Broadcasts to known or computed sizes; nothing is added if `a` has them already.
Output BroadcastTo(GradientBuilder& g, Output a, const Sizes& sizes);
Output Transpose(GradientBuilder& g, Output a, const std::vector<int64_t>& permutation);

/// The inverse of broadcasting two operands against each other: sums gradients of the result over
/// the dimensions along which an operand was repeated. What is needed is found while building if
/// the shapes allow, else by BroadcastGradientArgs, once for both operands.
class Unbroadcast {
 public:
  Unbroadcast(GradientBuilder& g, Output x, Output y)
      : g_(g), operands_{Sizes::OfShape(g, x), Sizes::OfShape(g, y)} {}
  /// The same for bare sizes, which may be the leading ones of gradients that have more.
  Unbroadcast(GradientBuilder& g, Sizes x, Sizes y)
      : g_(g), operands_{std::move(x), std::move(y)} {}

  /// The gradient of operand 0 or 1, given that of the result; `target`: the operand's shape if it
  /// is not what was given to the constructor.
  Output Reduce(int operand, Output grad, const Sizes* target = nullptr);

 private:
  GradientBuilder& g_;
  Sizes operands_[2];
  Output axes_[2];  // BroadcastGradientArgs, once it is needed.
};

/// Sets the gradients of a binary op's two operands from those of the broadcast operands. Each is
/// asked for only if it is wanted.
template <typename ForX, typename ForY>
void SetBinary(GradientContext& g, ForX for_x, ForY for_y) {
  Unbroadcast unbroadcast(g, g.input(0), g.input(1));
  if (g.wanted(0)) g.set(0, unbroadcast.Reduce(0, for_x()));
  if (g.wanted(1)) g.set(1, unbroadcast.Reduce(1, for_y()));
}

/// Sets the gradients of two operands that are matrices below batch dimensions, given those of the
/// operands with the batch dimensions broadcast against each other.
void SetMatrices(GradientContext& g, Output grad_a, Output grad_b);

}  // namespace troupe::gradients

#endif  // TROUPE_GRAPH_GRADIENTS_GRADIENT_OPS_H_
