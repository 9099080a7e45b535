// Random numbers of cards: the CPU's for the same seeds, run for run.
#include "tests/cuda_on_host/against_cpu.h"

namespace troupe::testing {
namespace {

using enum ElementType;

constexpr int64_t kLengths[] = {0, 1, 2, 3, 4, 5, 257, 10'003};
/// A run begins where the one before has reserved its last number.
constexpr int kRuns = 3;

class RandomNumbers : public ::testing::Test {
 protected:
  void SetUp() override { LoadCards(); }
};

AgainstCpu::Attrs Seeded(const char* attr, ElementType type, int64_t seed) {
  return [=](NodeSpec& node) {
    node.Attr(attr, type).Attr("seed", seed).Attr("seed2", seed * 77 + 1);
  };
}

TEST_F(RandomNumbers, OfFloatingPoint) {
  for (const char* op : {"RandomUniform", "RandomStandardNormal", "TruncatedNormal"}) {
    AgainstCpu both;
    for (const ElementType type : FloatTypes()) {
      // Logarithms and sines of doubles are the libraries' own.
      const Within within{type == kDouble && std::string(op) != "RandomUniform" ? 4.0 : 0.0};
      for (const int64_t seed : {1, 87654321}) {
        for (const int64_t n : kLengths) {
          both.Add(op, {OnHost(Tensor::Vector<int64_t>({n}))}, within, Seeded("dtype", type, seed));
        }
      }
    }
    both.Compare(kRuns);
  }
}

template <typename T>
void AddRanges(AgainstCpu* both) {
  constexpr T kLeast = std::numeric_limits<T>::min(), kMost = std::numeric_limits<T>::max();
  const std::pair<T, T> ranges[] = {{0, 10}, {-5, -4}, {kLeast, kMost}, {kMost - 3, kMost}};
  for (const auto& [low, high] : ranges) {
    for (const int64_t n : kLengths) {
      both->Add("RandomUniformInt",
                {OnHost(Tensor::Vector<int64_t>({n})), OnHost(Tensor::Scalar<T>(low)),
                 OnHost(Tensor::Scalar<T>(high))},
                {}, Seeded("Tout", kElementType<T>, 5));
    }
  }
}

TEST_F(RandomNumbers, Integers) {
  AgainstCpu both;
  AddRanges<int32_t>(&both);
  AddRanges<int64_t>(&both);
  both.Compare(kRuns);
  const absl::Status status = AgainstCpu::StatusOf(
      "RandomUniformInt", {HostInts({5}), HostInt(3), HostInt(3)}, Seeded("Tout", kInt32, 5));
  EXPECT_NE(status.message().find("minval must be less than maxval"), std::string::npos) << status;
}

TEST_F(RandomNumbers, Classes) {
  AgainstCpu both;
  for (const ElementType type : FloatTypes()) {
    for (const ElementType to : {kInt32, kInt64}) {
      for (const auto& [rows, classes] : {std::pair{1, 1}, {3, 7}, {5, 300}, {2, 5000}}) {
        for (const int32_t samples : {0, 1, 7, 500}) {
          // Some classes are infinite or none at all: they have no share.
          both.Add("Multinomial",
                   {{Numbers(type, Shape({rows, classes}), 3,
                             classes == 300 ? Values::kAny : Values::kModerate)},
                    HostInt(samples)},
                   {}, Seeded("output_dtype", to, 9));
        }
      }
    }
  }
  both.Compare(kRuns);
}

TEST_F(RandomNumbers, Rows) {
  AgainstCpu both;
  for (const ElementType type : {kFloat, kInt64, kComplex128}) {
    for (const int64_t rows : {1, 2, 5, 1000}) {
      both.Add("RandomShuffle", {{Numbers(type, Shape({rows, 3}), 1)}}, {},
               [](NodeSpec& node) { node.Attr("seed", 4).Attr("seed2", 5); });
    }
  }
  both.Compare(kRuns);
}

}  // namespace
}  // namespace troupe::testing
