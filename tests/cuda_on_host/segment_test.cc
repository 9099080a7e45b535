// Reductions by segments, counts and histograms of cards against the CPU's: few rows and many, long
// segments and empty ones, rows of one element and of many, bad ids.
#include <gmock/gmock.h>

#include "tests/cuda_on_host/against_cpu.h"

namespace troupe::testing {
namespace {

using enum ElementType;

class Segments : public ::testing::Test {
 protected:
  void SetUp() override { LoadCards(); }
};

bool IsSmall(ElementType type) { return type == kHalf || type == kBfloat16; }

/// `id(i)` for i < n, of int32 or int64.
template <typename Id>
Tensor Ids(ElementType type, int64_t n, Id id) {
  Tensor ids = *Tensor::Allocate(type, Shape({n}));
  for (int64_t i = 0; i < n; ++i) {
    if (type == kInt64) {
      ids.mutable_data<int64_t>()[i] = id(i);
    } else {
      ids.mutable_data<int32_t>()[i] = static_cast<int32_t>(id(i));
    }
  }
  return ids;
}

/// Rows, elements of a row, segments.
struct Size {
  int64_t rows, length, segments;
};
// Beyond 512 rows ids are sorted; beyond 64 rows a segment a block's lines share it.
constexpr Size kAllSizes[] = {{1, 1, 1}, {7, 3, 5},   {90, 33, 9},    {600, 1, 3}, {520, 5, 40},
                              {0, 3, 4}, {600, 2, 1}, {520, 260, 70}, {5, 0, 2},   {600, 0, 2}};
constexpr Size kFewSizes[] = {{7, 3, 5}, {520, 2, 8}};
/// Every type has the same code: one goes through all sizes.
absl::Span<const Size> SizesFor(ElementType type, ElementType of_ids) {
  if (type == kFloat && of_ids == kInt32) return kAllSizes;
  return kFewSizes;
}

TEST_F(Segments, InAnyOrder) {
  for (const char* op :
       {"UnsortedSegmentSum", "UnsortedSegmentProd", "UnsortedSegmentMin", "UnsortedSegmentMax"}) {
    const std::string_view name = op;
    const bool extreme = name.ends_with("Min") || name.ends_with("Max");
    const bool product = name.ends_with("Prod");
    AgainstCpu both;
    for (const ElementType type : KernelTypes(op, "GPU")) {
      for (const ElementType of_ids : {kInt32, kInt64}) {
        for (const Size& size : SizesFor(type, of_ids)) {
          const double rows_each =
              static_cast<double>(size.rows) / static_cast<double>(size.segments);
          // Products of many numbers leave the range; the CPU rounds each of small ones.
          if (product && type != kInt32 && rows_each > (IsSmall(type) ? 3 : 40)) continue;
          if (!extreme && IsSmall(type) && rows_each > 20) continue;
          // Some rows belong nowhere, some segments have no rows.
          const Tensor ids = Ids(of_ids, size.rows, [&](int64_t i) {
            return i % 11 == 3 ? -1 : (i * 7 + i / 5) % std::max<int64_t>(1, size.segments - 1);
          });
          const Tensor data = Numbers(type, Shape({size.rows, size.length}), 1,
                                      extreme || type == kInt32 ? Values::kAny : Values::kPositive);
          both.Add(op, {{data}, {ids}, HostInt(static_cast<int32_t>(size.segments))},
                   {extreme || type == kInt32 ? 0.0
                    : IsSmall(type)           ? 8.0
                                              : 64.0});
        }
      }
    }
    // Ids of two dimensions.
    Tensor ids = Ids(kInt32, 12, [](int64_t i) { return i % 5; });
    ids.set_shape(Shape({3, 4}));
    both.Add(op, {{Numbers(kFloat, Shape({3, 4, 2}), 3, Values::kPositive)}, {ids}, HostInt(6)},
             {4});
    both.Compare();
  }
}

TEST_F(Segments, InOrder) {
  for (const char* op : {"SegmentSum", "SegmentMean", "SegmentProd", "SegmentMin", "SegmentMax"}) {
    const std::string_view name = op;
    const bool extreme = name.ends_with("Min") || name.ends_with("Max");
    const bool product = name.ends_with("Prod");
    AgainstCpu both;
    for (const ElementType type : KernelTypes(op, "GPU")) {
      for (const ElementType of_ids : {kInt32, kInt64}) {
        for (const Size& size : SizesFor(type, of_ids)) {
          const double rows_each =
              static_cast<double>(size.rows) / static_cast<double>(size.segments);
          if (product && rows_each > (IsSmall(type) ? 3 : 40)) continue;
          // Every other segment has no rows.
          const Tensor ids = Ids(of_ids, size.rows, [&](int64_t i) {
            return i * size.segments / std::max<int64_t>(size.rows, 1) * 2 + 1;
          });
          both.Add(op,
                   {{Numbers(type, Shape({size.rows, size.length}), 1,
                             extreme ? Values::kAny : Values::kPositive)},
                    {ids}},
                   {extreme         ? 0.0
                    : IsSmall(type) ? 8.0
                                    : 64.0});
        }
      }
    }
    both.Compare();
  }
}

TEST_F(Segments, BadIds) {
  const Tensor data = Numbers(kFloat, Shape({3, 2}), 1);
  const auto ids = [](std::initializer_list<int64_t> values) {
    return Operand(Tensor::Vector<int64_t>(values));
  };
  for (const char* op : {"UnsortedSegmentMax", "UnsortedSegmentProd"}) {
    const absl::Status status = AgainstCpu::StatusOf(op, {{data}, ids({0, 4, 1}), HostInt(4)});
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()),
                ::testing::HasSubstr("segment_ids[1] = 4 is out of range [0, 4)"));
  }
  for (const char* op : {"SegmentMax", "SegmentMean"}) {
    for (const std::initializer_list<int64_t> bad :
         {std::initializer_list<int64_t>{0, 2, 1}, {-1, 0, 0}, {0, 0, INT64_MAX}}) {
      EXPECT_EQ(AgainstCpu::StatusOf(op, {{data}, ids(bad)}).code(),
                absl::StatusCode::kInvalidArgument);
    }
  }
}

// ---- Rows that are picked.

TEST_F(Segments, OfPickedRows) {
  for (const char* op : {"SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN"}) {
    AgainstCpu both;
    for (const ElementType type : KernelTypes(op, "GPU")) {
      const Within within{IsSmall(type) ? 1.0 : 64.0};
      for (const ElementType of_ids : {kInt32, kInt64}) {
        for (const Size& size : SizesFor(type, of_ids)) {
          if (IsSmall(type) && size.rows > 600) continue;
          const Tensor data = Numbers(type, Shape({17, size.length}), 1, Values::kPositive);
          const Tensor indices =
              Ids(of_ids, size.rows, [](int64_t i) { return (i * 5 + i / 3) % 17; });
          const Tensor ids = Ids(of_ids == kInt32 ? kInt64 : kInt32, size.rows, [&](int64_t i) {
            return i * size.segments / std::max<int64_t>(size.rows, 1) * 2 + 1;
          });
          both.Add(op, {{data}, {indices}, {ids}}, within);
          both.Add(std::string(op) + "WithNumSegments",
                   {{data}, {indices}, {ids}, HostInt(static_cast<int32_t>(2 * size.segments + 3))},
                   within);
        }
      }
    }
    both.Compare();
  }
}

TEST_F(Segments, GradientsOfPickedRows) {
  for (const char* op :
       {"SparseSegmentSumGrad", "SparseSegmentMeanGrad", "SparseSegmentSqrtNGrad"}) {
    AgainstCpu both;
    for (const ElementType type : KernelTypes(op, "GPU")) {
      const Within within{IsSmall(type) ? 1.0 : 64.0};
      for (const ElementType of_ids : {kInt32, kInt64}) {
        for (const Size& size : SizesFor(type, of_ids)) {
          if (IsSmall(type) && size.rows > 600) continue;
          const Tensor grad =
              Numbers(type, Shape({size.segments, size.length}), 1, Values::kPositive);
          // Every third row is not there.
          const Tensor indices =
              Ids(of_ids, size.rows, [](int64_t i) { return (i * 5 + i / 3) % 17 * 3; });
          const Tensor ids = Ids(of_ids == kInt32 ? kInt64 : kInt32, size.rows,
                                 [&](int64_t i) { return (i * 3 + 1) % size.segments; });
          for (const char* version : {"", "V2"}) {
            both.Add(StrCat(op, version), {{grad}, {indices}, {ids}, HostInt(50)}, within);
            both.Add(StrCat(op, version), {{grad}, {indices}, {ids}, HostInt(0)}, within);
          }
        }
      }
    }
    both.Compare();
  }
}

TEST_F(Segments, BadPickedRows) {
  const Operand data(Numbers(kFloat, Shape({3, 2}), 1));
  const auto ints = [](std::initializer_list<int32_t> values) {
    return Operand(Tensor::Vector<int32_t>(values));
  };
  const auto message = [](const absl::Status& status) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  using ::testing::HasSubstr;
  EXPECT_THAT(message(AgainstCpu::StatusOf("SparseSegmentSum", {data, ints({0, 3}), ints({0, 1})})),
              HasSubstr("indices[1] = 3 is not in [0, 3)"));
  EXPECT_THAT(
      message(AgainstCpu::StatusOf(
          "SparseSegmentSum", {{Numbers(kFloat, Shape({3, 0}), 1)}, ints({0, -1}), ints({0, 1})})),
      HasSubstr("indices[1] = -1 is not in [0, 3)"));
  EXPECT_THAT(
      message(AgainstCpu::StatusOf("SparseSegmentMean", {data, ints({0, 1}), ints({1, 0})})),
      HasSubstr("segment_ids[1] = 0 comes after 1"));
  EXPECT_THAT(message(AgainstCpu::StatusOf("SparseSegmentMeanWithNumSegments",
                                           {data, ints({0, 1}), ints({0, 4}), HostInt(4)})),
              HasSubstr("num_segments is 4 but the last of segment_ids is 4"));
  for (const char* op : {"SparseSegmentSumGrad", "SparseSegmentMeanGradV2"}) {
    EXPECT_THAT(message(AgainstCpu::StatusOf(op, {data, ints({0, 7}), ints({0, 1}), HostInt(7)})),
                HasSubstr("indices[1] = 7 is not in [0, 7)"));
    EXPECT_THAT(message(AgainstCpu::StatusOf(op, {data, ints({0, 1}), ints({0, 3}), HostInt(7)})),
                HasSubstr("segment_ids[1] = 3 is not in [0, 3)"));
  }
}

// ---- Counts.

TEST_F(Segments, Counts) {
  AgainstCpu both;
  for (const ElementType type : {kFloat, kInt32}) {
    for (const ElementType of_numbers : {kInt32, kInt64}) {
      for (const int64_t rows : {0, 1, 3}) {
        for (const int64_t length : {0, 1, 300}) {
          // Bins in shared memory, in global memory, fewer than numbers.
          for (const int32_t size : {0, 7, 5000}) {
            Tensor numbers = Ids(of_numbers, rows * length,
                                 [](int64_t i) { return (i * i * 31 + i) % 6000 % (i % 3 + 9); });
            Tensor weights = Numbers(type, Shape({rows * length}), 1,
                                     type == kInt32 ? Values::kAny : Values::kPositive);
            const Tensor none = Numbers(type, Shape({0}), 1);
            const auto bins =
                OnHost(of_numbers == kInt32 ? Tensor::Scalar(size) : Tensor::Scalar(int64_t{size}));
            if (of_numbers == kInt32) {
              both.Add("Bincount", {{numbers}, HostInt(size), {weights}}, {16});
              both.Add("Bincount", {{numbers}, HostInt(size), {none}});
            }
            numbers.set_shape(Shape({rows, length}));
            weights.set_shape(Shape({rows, length}));
            for (const bool binary : {false, true}) {
              const auto attrs = [binary](NodeSpec& node) { node.Attr("binary_output", binary); };
              both.Add("DenseBincount", {{numbers}, bins, {weights}}, {16}, attrs);
              both.Add("DenseBincount", {{numbers}, bins, {none}}, {}, attrs);
            }
          }
        }
      }
    }
  }
  both.Compare();
  const Operand numbers(Tensor::Vector<int32_t>({1, -3, 2})), none(Tensor::Vector<float>({}));
  for (const int32_t size : {0, 5, 5000}) {
    const absl::Status status = AgainstCpu::StatusOf("Bincount", {numbers, HostInt(size), none});
    EXPECT_THAT(std::string(status.message()),
                ::testing::HasSubstr("the numbers to be counted must not be negative, got -3"));
  }
}

TEST_F(Segments, Histograms) {
  AgainstCpu both;
  for (const int64_t n : {0, 1, 1000}) {
    for (const int32_t bins : {1, 10, 5000}) {
      both.Add("HistogramFixedWidth", {{Numbers(kFloat, Shape({n}), 1, Values::kModerate)},
                                       OnHost(Tensor::Vector<float>({-1.5f, 4.25f})),
                                       HostInt(bins)});
      both.Add("HistogramFixedWidth", {{Numbers(kDouble, Shape({2, n}), 2, Values::kModerate)},
                                       OnHost(Tensor::Vector<double>({0.1, 0.9})),
                                       HostInt(bins)});
    }
  }
  constexpr float kInfinite = std::numeric_limits<float>::infinity();
  both.Add("HistogramFixedWidth", {{Tensor::Vector<float>({kInfinite, -kInfinite, 0.5f})},
                                   OnHost(Tensor::Vector<float>({0.0f, 1.0f})),
                                   HostInt(4)});
  both.Compare();
  const auto status = [](float value, float low, float high) {
    return AgainstCpu::StatusOf("HistogramFixedWidth", {{Tensor::Vector<float>({0.5f, value})},
                                                        OnHost(Tensor::Vector<float>({low, high})),
                                                        HostInt(3)})
        .code();
  };
  EXPECT_EQ(status(0.7f, 0, 1), absl::StatusCode::kOk);
  EXPECT_EQ(status(std::nanf(""), 0, 1), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status(0.7f, 1, 0), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace troupe::testing
