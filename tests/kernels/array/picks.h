/// Checking ops whose output elements are copies of input elements.
#ifndef TROUPE_TESTS_KERNELS_ARRAY_PICKS_H_
#define TROUPE_TESTS_KERNELS_ARRAY_PICKS_H_

#include <complex>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "devices/tensor.h"
#include "gtest/gtest.h"

namespace troupe::testing {

/// One type of each element size, and strings.
inline std::vector<ElementType> TypesBySize() {
  return {ElementType::kUint8, ElementType::kHalf,       ElementType::kFloat,
          ElementType::kInt64, ElementType::kComplex128, ElementType::kString};
}

/// Different elements, as far as the type has them.
inline Tensor Distinct(ElementType type, const Shape& shape) {
  Tensor tensor = Tensor::Uninitialized(type, shape);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    if (type == ElementType::kString) {
      tensor.mutable_data<std::string>()[i] = "element " + std::to_string(i);
    } else {
      const size_t size = ElementSize(type);
      unsigned char bytes[16] = {};
      const int64_t value = i + 1;
      std::memcpy(bytes, &value, sizeof(value));
      std::memcpy(static_cast<char*>(tensor.mutable_raw_data()) + i * size, bytes, size);
    }
  }
  return tensor;
}

inline std::string Element(const Tensor& tensor, int64_t i) {
  if (tensor.type() == ElementType::kString) return tensor.unchecked_data<std::string>()[i];
  const size_t size = ElementSize(tensor.type());
  return std::string(static_cast<const char*>(tensor.raw_data()) + i * size, size);
}

/// Element i of `got` must be element picks[i] of `from`, or zero where that is negative.
inline void ExpectPicks(const Tensor& got, const Tensor& from, const Shape& shape,
                        const std::vector<int64_t>& picks) {
  ASSERT_EQ(got.type(), from.type());
  ASSERT_EQ(got.shape().ToString(), shape.ToString());
  ASSERT_EQ(got.num_elements(), static_cast<int64_t>(picks.size()));
  const std::string zero = from.type() == ElementType::kString
                               ? std::string()
                               : std::string(ElementSize(from.type()), '\0');
  const size_t size = ElementSize(from.type());
  for (size_t i = 0; i < picks.size(); ++i) {
    if (IsPlain(from.type()) &&
        std::memcmp(static_cast<const char*>(got.raw_data()) + i * size,
                    picks[i] < 0 ? zero.data()
                                 : static_cast<const char*>(from.raw_data()) + picks[i] * size,
                    size) == 0) {
      continue;
    }
    ASSERT_EQ(Element(got, static_cast<int64_t>(i)), picks[i] < 0 ? zero : Element(from, picks[i]))
        << "element " << i;
  }
}

using Index = std::vector<int64_t>;

/// Calls f(index) for every index of a shape, in row-major order.
template <typename F>
void ForEachIndex(const Shape& shape, F&& f) {
  Index index(shape.rank(), 0);
  for (int64_t i = 0; i < shape.num_elements(); ++i) {
    f(index);
    for (int d = shape.rank() - 1; d >= 0 && ++index[d] == shape.dim(d); --d) index[d] = 0;
  }
}

inline int64_t Flat(const Shape& shape, const Index& index) {
  int64_t flat = 0;
  for (int d = 0; d < shape.rank(); ++d) flat = flat * shape.dim(d) + index[d];
  return flat;
}

/// Reproducible random shapes and numbers.
class Dice {
 public:
  explicit Dice(uint32_t seed) : engine_(seed) {}
  int64_t Roll(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(engine_() % static_cast<uint64_t>(high - low + 1));
  }
  Shape RandomShape(int min_rank, int max_rank, int64_t low, int64_t high) {
    Shape shape;
    const int64_t rank = Roll(min_rank, max_rank);
    for (int64_t i = 0; i < rank; ++i) shape.AddDim(Roll(low, high));
    return shape;
  }

 private:
  std::mt19937 engine_;
};

inline Tensor IntVector(const Index& values) {
  return Tensor::Vector<int64_t>(absl::MakeConstSpan(values));
}
inline Tensor Int32Vector(const Index& values) {
  return Tensor::Vector<int32_t>(
      absl::MakeConstSpan(std::vector<int32_t>(values.begin(), values.end())));
}

}  // namespace troupe::testing

#endif  // TROUPE_TESTS_KERNELS_ARRAY_PICKS_H_
