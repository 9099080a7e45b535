/// What numeric_gradient_test.cc compares with central differences: a table for each family of ops.
#ifndef TROUPE_TESTS_GRAPH_GRADIENTS_NUMERIC_CASES_H_
#define TROUPE_TESTS_GRAPH_GRADIENTS_NUMERIC_CASES_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "graph/graph.h"
#include "tests/graph/gradients/gradient_test_util.h"

namespace troupe::numeric {

using Attrs = std::function<void(NodeSpec&)>;
using Ints = absl::Span<const int64_t>;

/// An input of the op under test: numbers in [low, high), different from case to case, or a
/// constant.
struct In {
  Shape shape;
  double low = -1, high = 1;
  Tensor constant;
};
inline In X(Shape shape, double low = -1, double high = 1) {
  return {std::move(shape), low, high, {}};
}
/// Numbers without ties or near-ties, far from 0.
inline In Distinct(Shape shape) { return {std::move(shape), 7, 7, {}}; }
inline In C(Tensor constant) { return {constant.shape(), 0, 0, constant}; }
inline In I(std::initializer_list<int32_t> values) { return C(Tensor::Vector<int32_t>(values)); }
inline In I(int32_t value) { return C(Tensor::Scalar<int32_t>(value)); }
inline In I(std::initializer_list<int32_t> values, Shape shape) {
  return C(Tensor::FromValues<int32_t>(absl::MakeConstSpan(values.begin(), values.size()), shape)
               .value());
}
inline In B(std::initializer_list<bool> values) { return C(Tensor::Vector<bool>(values)); }

struct Case {
  std::string op;
  std::vector<In> inputs;
  Attrs attrs = nullptr;
  /// Sizes of the op's list arguments, in order.
  std::vector<int> lists = {};
  /// Outputs that are differentiated; empty: all of floating type.
  std::vector<int> outputs = {};
  ElementType type = ElementType::kDouble;
  /// TensorFlow differentiates the gradient once more.
  bool twice = true;
};

/// A case whose gradient TensorFlow does not differentiate.
inline Case Once(Case c) {
  c.twice = false;
  return c;
}

inline Attrs Bools(std::vector<std::pair<std::string, bool>> values) {
  return [values](NodeSpec& spec) {
    for (const auto& [name, value] : values) spec.Attr(name, value);
  };
}
inline Attrs Number(std::string name, int value) {
  return [name, value](NodeSpec& spec) { spec.Attr(name, value); };
}
inline Attrs Conv(std::vector<int64_t> strides, std::string padding) {
  return [=](NodeSpec& spec) { spec.Attr("strides", Ints(strides)).Attr("padding", padding); };
}
inline Attrs Pool(std::vector<int64_t> size, std::vector<int64_t> strides, std::string padding) {
  return [=](NodeSpec& spec) {
    spec.Attr("ksize", Ints(size)).Attr("strides", Ints(strides)).Attr("padding", padding);
  };
}
inline Attrs Text(std::string name, std::string value) {
  return [=](NodeSpec& spec) { spec.Attr(name, value); };
}
inline Attrs Training(bool training, std::string format = "NHWC") {
  return [=](NodeSpec& spec) {
    spec.Attr("is_training", training).Attr("data_format", format).Attr("epsilon", 0.01f);
  };
}
inline Attrs Type(std::string name, ElementType type) {
  return [=](NodeSpec& spec) { spec.Attr(name, type); };
}

inline constexpr ElementType kFloat = ElementType::kFloat;

void AddMathCases(std::vector<Case>* cases);
void AddReductionCases(std::vector<Case>* cases);
void AddArrayCases(std::vector<Case>* cases);
void AddLinalgCases(std::vector<Case>* cases);
void AddUpdateCases(std::vector<Case>* cases);
void AddNetworkCases(std::vector<Case>* cases);
void AddImageCases(std::vector<Case>* cases);
void AddSparseCases(std::vector<Case>* cases);
void AddRandomCases(std::vector<Case>* cases);

}  // namespace troupe::numeric

#endif  // TROUPE_TESTS_GRAPH_GRADIENTS_NUMERIC_CASES_H_
