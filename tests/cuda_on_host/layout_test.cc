// Kernels of cards that move elements and slices, with what golden cases are too small for: the
// same bytes as on the CPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <numeric>
#include <random>

#include "api/troupe.h"

namespace troupe {
namespace {

using Build = std::function<std::vector<Output>(const Scope& scope, const std::vector<Output>& x)>;

constexpr ElementType kTypes[] = {ElementType::kInt8, ElementType::kHalf, ElementType::kFloat,
                                  ElementType::kDouble, ElementType::kComplex128};

/// Elements of any bytes, but no two neighbours alike.
Tensor Numbered(ElementType type, const Shape& shape) {
  Tensor tensor = *Tensor::Allocate(type, shape);
  auto* const bytes = static_cast<unsigned char*>(tensor.mutable_raw_data());
  for (size_t i = 0; i < tensor.bytes(); ++i) {
    bytes[i] = static_cast<unsigned char>((i * 2654435761u) >> 13);
  }
  return tensor;
}

/// Numbers whose sums show the order in which they are made.
Tensor Fractions(const Shape& shape) {
  Tensor tensor = *Tensor::Allocate(ElementType::kFloat, shape);
  uint32_t next = 1;
  for (float& value : tensor.mutable_values<float>()) {
    next = next * 1664525 + 1013904223;
    value = static_cast<float>(static_cast<int32_t>(next >> 8) - (1 << 23)) / 7;
  }
  return tensor;
}

Tensor Random(int64_t below, const Shape& shape, uint32_t seed = 1) {
  Tensor tensor = *Tensor::Allocate(ElementType::kInt64, shape);
  std::mt19937 random(seed);
  for (int64_t& value : tensor.mutable_values<int64_t>()) {
    value = static_cast<int64_t>(random() % static_cast<uint32_t>(below));
  }
  return tensor;
}

Output Ints(const Scope& scope, std::vector<int32_t> values) {
  return ops::Const(scope.WithDevice("/device:CPU:0"), Tensor::Vector<int32_t>(values));
}
Output Int(const Scope& scope, int32_t value) {
  return ops::Const(scope.WithDevice("/device:CPU:0"), Tensor::Scalar<int32_t>(value));
}

absl::StatusOr<std::vector<Tensor>> RunOn(const char* device, const std::vector<Tensor>& inputs,
                                          const Build& build) {
  Scope scope = Scope::NewRoot();
  std::vector<Output> x;
  FeedMap feeds;
  for (const Tensor& input : inputs) {
    x.push_back(ops::Placeholder(scope, input.type()));
    feeds.push_back({x.back(), input});
  }
  const std::vector<Output> y = build(scope.WithDevice(device), x);
  TROUPE_RETURN_IF_ERROR(scope.status());
  SessionOptions options;
  options.devices = {{"GPU", {.count = 1}}};
  TROUPE_ASSIGN_OR_RETURN(const auto session, Session::Create(scope.graph(), options));
  return session->Run(feeds, y);
}

void ExpectSame(const std::vector<Tensor>& inputs, const Build& build) {
  const auto here = RunOn("/device:CPU:0", inputs, build);
  const auto there = RunOn("/device:GPU:0", inputs, build);
  ASSERT_TRUE(here.ok()) << here.status();
  ASSERT_TRUE(there.ok()) << there.status();
  ASSERT_EQ(here->size(), there->size());
  for (size_t i = 0; i < here->size(); ++i) {
    const Tensor &a = (*here)[i], &b = (*there)[i];
    ASSERT_EQ(a.shape(), b.shape());
    ASSERT_EQ(std::memcmp(a.raw_data(), b.raw_data(), a.bytes()), 0)
        << "output " << i << ": " << a.ToString() << " and " << b.ToString();
  }
}

TEST(Layout, Transpose) {
  struct Case {
    std::vector<int64_t> dims;
    std::vector<int32_t> perm;
  };
  const std::vector<Case> cases = {{{70, 131}, {1, 0}},
                                   {{2, 33, 35, 3}, {0, 3, 1, 2}},
                                   {{2, 3, 33, 35}, {0, 2, 3, 1}},
                                   {{5, 100, 2}, {2, 1, 0}},
                                   {{70, 4, 9}, {2, 0, 1}},
                                   {{9, 40, 4}, {1, 0, 2}},
                                   {{3, 4, 5, 6, 7}, {4, 2, 0, 3, 1}}};
  for (const ElementType type : kTypes) {
    for (const Case& c : cases) {
      ExpectSame({Numbered(type, Shape(c.dims))}, [&](const Scope& s, const auto& x) {
        return std::vector<Output>{ops::Transpose(s, x[0], Ints(s, c.perm))};
      });
    }
  }
}

TEST(Layout, AViewIsNotAligned) {
  for (const ElementType type : kTypes) {
    ExpectSame({Numbered(type, Shape({5000, 3})), Random(4990, Shape({50}))}, [](const Scope& s,
                                                                                 const auto& x) {
      const Output part = ops::Slice(s, x[0], Ints(s, {3, 0}), Ints(s, {4995, 3}));
      return std::vector<Output>{
          ops::Transpose(s, part, Ints(s, {1, 0})),
          ops::Gather(s, part, x[1]),
          ops::Tile(s, part, Ints(s, {2, 3})),
          ops::ReverseV2(s, part, Ints(s, {0})),
          ops::ConcatV2(s, {part, part}, Int(s, 1)),
          ops::Pad(s, part,
                   ops::Const(s, *Tensor::FromValues<int32_t>({1, 2, 3, 0}, Shape({2, 2}))))};
    });
  }
}

TEST(Layout, MorePartsThanOneLaunchTakes) {
  for (const ElementType type : kTypes) {
    std::vector<Tensor> inputs;
    for (int i = 0; i < 150; ++i) inputs.push_back(Numbered(type, Shape({4, i % 7})));
    for (const int axis : {0, 1}) {
      ExpectSame({Numbered(type, Shape({150, 151}))}, [&](const Scope& s, const auto& x) {
        const OutputList parts = ops::Split(s, Int(s, 0), x[0], 150);
        std::vector<Output> all(parts.begin(), parts.end());
        all.push_back(
            ops::Pack(s, std::vector<Output>(parts.begin(), parts.end()), {.axis = axis}));
        return all;
      });
    }
    ExpectSame(inputs, [](const Scope& s, const auto& x) {
      return std::vector<Output>{ops::ConcatV2(s, x, Int(s, 1))};
    });
  }
}

TEST(Layout, SlicesWithStrides) {
  for (const ElementType type : kTypes) {
    ExpectSame({Numbered(type, Shape({40, 30, 20}))}, [](const Scope& s, const auto& x) {
      return std::vector<Output>{ops::StridedSlice(s, x[0], Ints(s, {30, 1, 0}),
                                                   Ints(s, {2, 29, 20}), Ints(s, {-3, 2, 1})),
                                 ops::StridedSlice(s, x[0], Ints(s, {0, 0, 19}),
                                                   Ints(s, {40, 30, 1}), Ints(s, {1, 1, -2}))};
    });
  }
}

TEST(Layout, NarrowTypes) {
  for (const ElementType type : {ElementType::kFloat8E5m2, ElementType::kFloat8E4m3fn}) {
    ExpectSame({Numbered(type, Shape({40, 30})), Random(40, Shape({7}))},
               [](const Scope& s, const auto& x) {
                 return std::vector<Output>{ops::Transpose(s, x[0], Ints(s, {1, 0})),
                                            ops::ConjugateTranspose(s, x[0], Ints(s, {1, 0})),
                                            ops::BroadcastTo(s, x[0], Ints(s, {3, 40, 30})),
                                            ops::ConcatV2(s, {x[0], x[0]}, Int(s, 1)),
                                            ops::Concat(s, Int(s, 0), {x[0], x[0]}),
                                            ops::Pack(s, {x[0], x[0]}, {.axis = 1}),
                                            ops::Gather(s, x[0], x[1]),
                                            ops::GatherV2(s, x[0], x[1], Int(s, 0))};
               });
  }
  for (const ElementType type : {ElementType::kInt4, ElementType::kUint4}) {
    ExpectSame({Numbered(type, Shape({}))}, [](const Scope& s, const auto& x) {
      return std::vector<Output>{ops::Fill(s, Ints(s, {5, 7}), x[0])};
    });
  }
}

TEST(Indexing, GatherAlongAnAxis) {
  for (const ElementType type : kTypes) {
    ExpectSame({Numbered(type, Shape({3, 50, 8})), Random(50, Shape({3, 40}))}, [](const Scope& s,
                                                                                   const auto& x) {
      return std::vector<Output>{ops::GatherV2(s, x[0], x[1], Int(s, 1)),
                                 ops::GatherV2(s, x[0], x[1], Int(s, 1), {.batch_dims = 1})};
    });
  }
}

TEST(Indexing, ABadIndexIsTheNodesError) {
  const Build build = [](const Scope& s, const auto& x) {
    const Output picked = ops::Gather(s.WithOpName("culprit"), x[0], x[1]);
    return std::vector<Output>{ops::Neg(s, picked)};
  };
  Tensor indices = Random(50, Shape({1000}));
  ASSERT_TRUE(RunOn("/device:GPU:0", {Fractions(Shape({50, 3})), indices}, build).ok());
  indices.mutable_data<int64_t>()[777] = 50;
  const absl::Status status =
      RunOn("/device:GPU:0", {Fractions(Shape({50, 3})), indices}, build).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              testing::HasSubstr("element 777 is 50, which is not in [0, 50)"));
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("culprit"));
}

TEST(Indexing, ManyRowsOfOneSlot) {
  // Few rows, which look for one another; many, which are sorted by one digit and by several; slots
  // just below a power of the digit.
  for (const int64_t rows : {100, 600, 5000}) {
    for (const int64_t slots : {1, 7, 8, 16, 300, 4096}) {
      for (const int64_t inner : {1, 5}) {
        ExpectSame({Fractions(Shape({slots, inner})), Random(slots, Shape({rows, 1})),
                    Fractions(Shape({rows, inner}))},
                   [](const Scope& s, const auto& x) {
                     return std::vector<Output>{ops::TensorScatterAdd(s, x[0], x[1], x[2]),
                                                ops::TensorScatterUpdate(s, x[0], x[1], x[2])};
                   });
      }
    }
  }
}

TEST(Indexing, RowsThatAreLeftOutAmongManyThatAreSorted) {
  // As many slots as a digit has values: what is left out must not look like the last one.
  ExpectSame({Fractions(Shape({16, 3})), Random(20, Shape({2000, 1})), Fractions(Shape({2000, 3}))},
             [](const Scope& s, const auto& x) {
               return std::vector<Output>{
                   ops::TensorScatterAdd(s, x[0], x[1], x[2], {.bad_indices_policy = "IGNORE"}),
                   ops::TensorScatterUpdate(s, x[0], x[1], x[2], {.bad_indices_policy = "IGNORE"})};
             });
}

TEST(Indexing, StitchAndPartitionMoreThanOneLaunchTakes) {
  std::vector<Tensor> inputs;
  for (int i = 0; i < 150; ++i) {
    std::vector<int32_t> indices(i % 5);
    std::iota(indices.begin(), indices.end(), i);
    inputs.push_back(Tensor::Vector<int32_t>(indices));
  }
  for (int i = 0; i < 150; ++i) inputs.push_back(Fractions(Shape({i % 5, 3})));
  ExpectSame(inputs, [](const Scope& s, const auto& x) {
    const std::vector<Output> indices(x.begin(), x.begin() + 150), data(x.begin() + 150, x.end());
    return std::vector<Output>{ops::DynamicStitch(s, indices, data),
                               ops::ParallelDynamicStitch(s, indices, data)};
  });
  std::vector<int32_t> ids(1000);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>(i * i % 97 + 3);
  ExpectSame({Fractions(Shape({1000, 3})), Tensor::Vector<int32_t>(ids)},
             [](const Scope& s, const auto& x) {
               const OutputList parts = ops::DynamicPartition(s, x[0], x[1], 100);
               return std::vector<Output>(parts.begin(), parts.end());
             });
}

}  // namespace
}  // namespace troupe
