/// Infers the shapes of one op from placeholders and constants, for tests.
#ifndef TROUPE_TESTS_GRAPH_OPS_INFERRED_H_
#define TROUPE_TESTS_GRAPH_OPS_INFERRED_H_

#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "graph/graph.h"

namespace troupe {

/// Inferred("Pack").List({{2, 3}, {2, -1}}).Attr("axis", 1).Shapes() == "[2,2,3]". Not thread-safe.
class Inferred {
 public:
  explicit Inferred(std::string op);

  /// The next input: a placeholder of this shape; without arguments one of unknown rank.
  Inferred& In(PartialShape shape = PartialShape(), ElementType type = ElementType::kFloat);
  Inferred& InScalar(ElementType type = ElementType::kFloat) {
    return In(InferenceContext::Scalar(), type);
  }
  /// The next input: a constant.
  Inferred& Value(const Tensor& value);
  Inferred& Scalar(int32_t value) { return Value(Tensor::Scalar<int32_t>(value)); }
  Inferred& Vector(std::initializer_list<int32_t> values) {
    return Value(Tensor::Vector<int32_t>(values));
  }
  /// The next input: a vector of which only some numbers are known (not those that are -1).
  Inferred& PartVector(std::initializer_list<int64_t> sizes);
  /// The next input: a list of placeholders.
  Inferred& List(const std::vector<PartialShape>& shapes, ElementType type = ElementType::kFloat);
  /// The next input: a handle to a variable, or a reference to one.
  Inferred& Handle(PartialShape shape, ElementType type = ElementType::kFloat);
  Inferred& Variable(PartialShape shape);

  template <typename T>
  Inferred& Attr(std::string_view name, const T& value) {
    spec_.Attr(name, value);
    return *this;
  }
  Inferred& Attr(std::string_view name, std::initializer_list<int64_t> values) {
    spec_.Attr(name, absl::MakeConstSpan(values.begin(), values.size()));
    return *this;
  }

  /// The outputs' shapes, "[2,?] <unknown>", or the code of the error.
  std::string Shapes();

 private:
  Output Add(const NodeSpec& spec);
  Output Placeholder(const PartialShape& shape, ElementType type);
  std::string NextName();

  std::shared_ptr<Graph> graph_;
  NodeSpec spec_;
  int names_ = 0;
};

}  // namespace troupe

#endif  // TROUPE_TESTS_GRAPH_OPS_INFERRED_H_
