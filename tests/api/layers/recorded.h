/// What scripts/golden/record_layers.py has recorded, and the same inputs and weights.
#ifndef TROUPE_TESTS_API_LAYERS_RECORDED_H_
#define TROUPE_TESTS_API_LAYERS_RECORDED_H_

#include <cmath>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "api/nn.h"
#include "api/training/initializers.h"
#include "api/variable_scope.h"
#include "tests/api/layers/run_graph.h"

namespace troupe {

/// The recorded tensor, as floats; a failure and a scalar if there is none.
inline Tensor RecordedTensor(const std::string& name) {
  static const auto* const kAll = [] {
    auto* all = new std::map<std::string, Tensor>;
    std::ifstream file("tests/api/layers/testdata/recorded.txt");
    for (std::string line; std::getline(file, line);) {
      std::istringstream fields(line);
      std::string key, sizes, values;
      std::getline(std::getline(std::getline(fields, key, '|'), sizes, '|'), values);
      std::istringstream dims(sizes), numbers(values);
      Shape shape;
      for (int64_t size; dims >> size;) shape.AddDim(size);
      std::vector<float> floats;
      for (float x; numbers >> x;) floats.push_back(x);
      all->emplace(key, Floats(floats, shape));
    }
    return all;
  }();
  const auto found = kAll->find(name);
  if (found != kAll->end()) return found->second;
  ADD_FAILURE() << "nothing is recorded of " << name;
  return Tensor::Scalar(0.0f);
}

/// sin(frequency i + 1/2).
inline Tensor WaveOf(const Shape& shape, double frequency = 0.37) {
  std::vector<float> values;
  for (int64_t i = 0; i < shape.num_elements(); ++i) {
    values.push_back(static_cast<float>(std::sin(static_cast<double>(i) * frequency + 0.5)));
  }
  return Floats(values, shape);
}
/// cos(0.7 i) / 2.
inline Tensor CosineOf(const Shape& shape) {
  std::vector<float> values;
  for (int64_t i = 0; i < shape.num_elements(); ++i) {
    values.push_back(static_cast<float>(std::cos(static_cast<double>(i) * 0.7) * 0.5));
  }
  return Floats(values, shape);
}
inline Initializer Cosine() {
  return [](const Scope& scope, const Shape& shape, ElementType) {
    return Const(scope, CosineOf(shape));
  };
}

/// Graphs whose results are held against those recorded.
class RecordedTest : public RunGraph {
 protected:
  /// A variable scope in which biases are .1 and all else is cosines.
  Scope Given(Reuse reuse = Reuse::kNo) {
    return VariableScope(
        s_, "given",
        {.reuse = reuse,
         .getter = [](const Scope& scope, VariableRequest request, const auto& next) {
           request.options.initializer =
               request.name.ends_with("bias") ? ConstantInitializer(0.1) : Cosine();
           return next(scope, request);
         }});
  }

  /// The sum of y times a wave of its shape.
  Output WaveSum(const Output& y, const Shape& shape) {
    return ReduceSum(s_, ops::Mul(s_, y, WaveOf(shape, 0.3)));
  }

  void ExpectRecorded(const std::string& name, const Tensor& got, double tolerance = 1e-5) {
    const Tensor expected = RecordedTensor(name);
    ASSERT_EQ(got.shape(), expected.shape()) << name;
    const auto values = expected.unchecked_values<float>();
    for (size_t i = 0; i < values.size(); ++i) {
      const double x = got.type() == ElementType::kInt32 ? got.unchecked_values<int32_t>()[i]
                       : got.type() == ElementType::kInt64
                           ? static_cast<double>(got.unchecked_values<int64_t>()[i])
                           : got.unchecked_values<float>()[i];
      ASSERT_NEAR(x, values[i], tolerance * std::max(1.0, std::abs(double{values[i]})))
          << name << ", element " << i;
    }
  }
};

}  // namespace troupe

#endif  // TROUPE_TESTS_API_LAYERS_RECORDED_H_
