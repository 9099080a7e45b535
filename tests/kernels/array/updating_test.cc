// Ops that write, deal out and tell apart slices at computed places.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/kernels/array/picks.h"
#include "tests/kernels/kernel_test_util.h"

namespace troupe::testing {
namespace {

using absl::StatusCode;

Tensor Ints(std::initializer_list<int32_t> values) { return Tensor::Vector<int32_t>(values); }
Tensor Ints(std::initializer_list<int32_t> values, const Shape& shape) {
  return Tensor::FromValues<int32_t>(absl::MakeConstSpan(values.begin(), values.size()), shape)
      .value();
}
Tensor Floats(std::initializer_list<double> values, const Shape& shape) {
  return MakeTensor(ElementType::kFloat, shape, values);
}

TEST(GatherNd, EveryDepth) {
  for (const ElementType type : TypesBySize()) {
    SCOPED_TRACE(ElementTypeName(type));
    const Shape shape({3, 2, 4});
    const Tensor params = Distinct(type, shape);
    OpTest all("GatherNd");
    all.Input(params).Input(Tensor::Uninitialized(ElementType::kInt32, Shape({1, 0})));
    ASSERT_TRUE(all.Run().ok());
    std::vector<int64_t> everything(24);
    for (int i = 0; i < 24; ++i) everything[i] = i;
    ExpectPicks(all.output(0), params, Shape({1, 3, 2, 4}), everything);
    OpTest rows("GatherNd");
    rows.Input(params).Input(Ints({2, 1, 0, 0}, Shape({2, 2})));
    ASSERT_TRUE(rows.Run().ok());
    ExpectPicks(rows.output(0), params, Shape({2, 4}), {20, 21, 22, 23, 0, 1, 2, 3});
    OpTest one("GatherNd");
    one.Input(params).Input(Ints({1, 1, 3}));
    ASSERT_TRUE(one.Run().ok());
    ExpectPicks(one.output(0), params, Shape(), {15});
  }
}

TEST(GatherNd, RowsOfAnyLength) {
  for (const ElementType type : TypesBySize()) {
    for (int64_t width = 1; width < 75; ++width) {
      SCOPED_TRACE(::testing::Message() << ElementTypeName(type) << " " << width);
      const Tensor params = Distinct(type, Shape({3, width}));
      std::vector<int64_t> picks;
      for (const int64_t row : {2, 0, 1, 2}) {
        for (int64_t i = 0; i < width; ++i) picks.push_back(row * width + i);
      }
      OpTest gather("GatherNd");
      gather.Input(params).Input(Ints({2, 0, 1, 2}, Shape({4, 1})));
      ASSERT_TRUE(gather.Run().ok());
      ExpectPicks(gather.output(0), params, Shape({4, width}), picks);
      OpTest stitch("DynamicStitch");
      stitch.Attr("N", 2).Input(Ints({1, 2, 0})).Input(Ints({3, 1, 4, 0}));
      stitch.Input(params).Input(gather.output(0));
      ASSERT_TRUE(stitch.Run().ok());
      picks.clear();
      for (const int64_t row : {2, 0, 1, 2, 1}) {
        for (int64_t i = 0; i < width; ++i) picks.push_back(row * width + i);
      }
      ExpectPicks(stitch.output(0), params, Shape({5, width}), picks);
    }
  }
}

TEST(GatherNd, IgnoresBadIndicesIfAskedTo) {
  const Tensor params = Floats({1, 2, 3, 4}, Shape({2, 2})), indices = Ints({1, 5, -1}, {3, 1});
  OpTest op("GatherNd");
  op.Attr("bad_indices_policy", "IGNORE").Input(params).Input(indices);
  ASSERT_TRUE(op.Run().ok());
  ExpectEqual(op.output(0), Floats({3, 4, 0, 0, 0, 0}, Shape({3, 2})));
  OpTest strict("GatherNd");
  strict.Input(params).Input(indices);
  const absl::Status status = strict.Run();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("indices[1,0] = 5"), std::string::npos) << status;
  OpTest unknown("GatherNd");
  unknown.Attr("bad_indices_policy", "GUESS").Input(params).Input(indices);
  EXPECT_EQ(unknown.Run().code(), StatusCode::kInvalidArgument);
}

TEST(GatherNd, BadInput) {
  const auto run = [](const Tensor& params, const Tensor& indices) {
    OpTest op("GatherNd");
    op.Input(params).Input(indices);
    return op.Run().code();
  };
  EXPECT_EQ(run(Tensor::Scalar(1.0f), Ints({0}, {1, 1})), StatusCode::kInvalidArgument);
  EXPECT_EQ(run(Floats({1}, {1}), Tensor::Scalar<int32_t>(0)), StatusCode::kInvalidArgument);
  EXPECT_EQ(run(Floats({1}, {1}), Ints({0, 0}, {1, 2})), StatusCode::kInvalidArgument);
  EXPECT_EQ(run(Floats({}, {0, 3}), Ints({0}, {1, 1})), StatusCode::kInvalidArgument);
  EXPECT_EQ(run(Floats({}, {0, 3}), Ints({}, {0, 1})), StatusCode::kOk);
}

TEST(TensorScatter, LeavesItsInputAlone) {
  const Tensor x = Floats({1, 2, 3, 4}, Shape({2, 2})), indices = Ints({1, 1}, {2, 1}),
               updates = Floats({10, 20, 30, 40}, Shape({2, 2}));
  OpTest add("TensorScatterAdd");
  add.Input(x).Input(indices).Input(updates);
  ASSERT_TRUE(add.Run().ok());
  ExpectEqual(add.output(0), Floats({1, 2, 43, 64}, Shape({2, 2})));
  OpTest update("TensorScatterUpdate");
  update.Input(x).Input(indices).Input(updates);
  ASSERT_TRUE(update.Run().ok());
  ExpectEqual(update.output(0), Floats({1, 2, 30, 40}, Shape({2, 2})));
  ExpectEqual(x, Floats({1, 2, 3, 4}, Shape({2, 2})));

  OpTest in_place("TensorScatterUpdate");
  in_place.Input(*x.Clone(), /*forwardable=*/true).Input(indices).Input(updates);
  ASSERT_TRUE(in_place.Run().ok());
  ExpectEqual(in_place.output(0), Floats({1, 2, 30, 40}, Shape({2, 2})));
}

TEST(TensorScatter, BadInput) {
  const auto run = [](const Tensor& x, const Tensor& indices, const Tensor& updates) {
    OpTest op("TensorScatterAdd");
    op.Input(x).Input(indices).Input(updates);
    return op.Run().code();
  };
  const Tensor x = Floats({1, 2, 3, 4}, {2, 2});
  EXPECT_EQ(run(x, Ints({1}), Floats({1, 1}, {2})), StatusCode::kInvalidArgument);
  EXPECT_EQ(run(x, Ints({}, {1, 0}), x.Reshaped({1, 2, 2})), StatusCode::kInvalidArgument);
  EXPECT_EQ(run(x, Ints({0, 0, 0}, {1, 3}), Floats({1}, {1})), StatusCode::kInvalidArgument);
  EXPECT_EQ(run(x, Ints({2}, {1, 1}), Floats({1, 1}, {1, 2})), StatusCode::kInvalidArgument);
  EXPECT_EQ(run(Floats({}, {0, 2}), Ints({0}, {1, 1}), Floats({1, 1}, {1, 2})),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(run(x, Ints({}, {0, 1}), Floats({}, {0, 2})), StatusCode::kOk);
}

TEST(TensorStridedSliceUpdate, BroadcastsItsValue) {
  const Tensor x = Floats({0, 0, 0, 0, 0, 0}, Shape({2, 3}));
  const auto run = [&](const Tensor& value, std::initializer_list<double> want) {
    OpTest op("TensorStridedSliceUpdate");
    op.Input(x).Input(Ints({0, 2})).Input(Ints({2, -4})).Input(Ints({1, -2})).Input(value);
    ASSERT_TRUE(op.Run().ok());
    ExpectEqual(op.output(0), Floats(want, Shape({2, 3})));
  };
  // Columns 2 and 0 of both rows.
  run(Floats({1, 2, 3, 4}, {2, 2}), {2, 0, 1, 4, 0, 3});
  run(Floats({1, 2}, {2}), {2, 0, 1, 2, 0, 1});
  run(Floats({1, 2}, {2, 1}), {1, 0, 1, 2, 0, 2});
  run(Floats({5}, {}), {5, 0, 5, 5, 0, 5});
  run(Floats({5}, {1, 1, 1}), {5, 0, 5, 5, 0, 5});
  OpTest wrong("TensorStridedSliceUpdate");
  wrong.Input(x).Input(Ints({0})).Input(Ints({1})).Input(Ints({1})).Input(
      Floats({1, 2}, Shape({2})));
  EXPECT_EQ(wrong.Run().code(), StatusCode::kInvalidArgument);
}

TEST(DynamicPartition, EveryElementSize) {
  for (const ElementType type : TypesBySize()) {
    SCOPED_TRACE(ElementTypeName(type));
    const Tensor data = Distinct(type, Shape({2, 3, 2}));
    OpTest op("DynamicPartition");
    op.Attr("num_partitions", 3).Input(data).Input(Ints({2, 0, 0, 2, 2, 0}, Shape({2, 3})));
    ASSERT_TRUE(op.Run().ok());
    ExpectPicks(op.output(0), data, Shape({3, 2}), {2, 3, 4, 5, 10, 11});
    ExpectPicks(op.output(1), data, Shape({0, 2}), {});
    ExpectPicks(op.output(2), data, Shape({3, 2}), {0, 1, 6, 7, 8, 9});
  }
}

TEST(DynamicPartition, BadInput) {
  const auto run = [](const Tensor& data, const Tensor& partitions) {
    OpTest op("DynamicPartition");
    op.Attr("num_partitions", 2).Input(data).Input(partitions);
    return op.Run();
  };
  const Tensor data = Floats({1, 2, 3}, {3});
  const absl::Status status = run(data, Ints({0, 2, 0}));
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("2 is not in [0, 2)"), std::string::npos) << status;
  EXPECT_EQ(run(data, Ints({0, -1, 0})).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(run(data, Ints({0, 1})).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(run(data, Ints({0, 0, 0}, {3, 1})).code(), StatusCode::kInvalidArgument);
}

TEST(Unique, EqualNumbersAndNumbersThatEqualNothing) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  OpTest op("Unique");
  op.Input(Tensor::Vector<float>({0.0f, nan, -0.0f, 1, nan, 1}));
  ASSERT_TRUE(op.Run().ok());
  ExpectEqual(op.output(0), Tensor::Vector<float>({0, nan, 1, nan}));
  ExpectEqual(op.output(1), Ints({0, 1, 0, 2, 3, 2}));
  OpTest words("Unique");
  words.Attr("out_idx", ElementType::kInt64)
      .Input(Tensor::Vector<std::string>({"a", "", "a", "b", ""}));
  ASSERT_TRUE(words.Run().ok());
  ExpectEqual(words.output(0), Tensor::Vector<std::string>({"a", "", "b"}));
  ExpectEqual(words.output(1), Tensor::Vector<int64_t>({0, 1, 0, 2, 1}));
}

TEST(Unique, SlicesAlongAnAxis) {
  const Tensor x = Ints({1, 2, 1, 3, 4, 3}, Shape({2, 3}));
  OpTest columns("UniqueV2");
  columns.Input(x).Input(Ints({-1}));
  ASSERT_TRUE(columns.Run().ok());
  ExpectEqual(columns.output(0), Ints({1, 2, 3, 4}, Shape({2, 2})));
  ExpectEqual(columns.output(1), Ints({0, 1, 0}));
  // Strings are told apart as a whole, not when they are joined.
  OpTest words("UniqueV2");
  words
      .Input(
          Tensor::FromValues<std::string>({"ab", "c", "a", "bc", "ab", "c"}, Shape({3, 2})).value())
      .Input(Ints({0}));
  ASSERT_TRUE(words.Run().ok());
  ExpectEqual(words.output(0),
              Tensor::FromValues<std::string>({"ab", "c", "a", "bc"}, Shape({2, 2})).value());
  ExpectEqual(words.output(1), Ints({0, 1, 0}));
  OpTest empty("UniqueV2");
  empty.Input(Floats({}, {3, 0})).Input(Ints({0}));
  ASSERT_TRUE(empty.Run().ok());
  EXPECT_EQ(empty.output(0).shape(), Shape({1, 0}));
}

TEST(Unique, BadInput) {
  const Tensor x = Ints({1, 2, 3, 4}, Shape({2, 2}));
  OpTest matrix("Unique");
  matrix.Input(x);
  EXPECT_EQ(matrix.Run().code(), StatusCode::kInvalidArgument);
  for (const Tensor& axis : {Ints({}), Ints({2}), Ints({-3}), Ints({0, 1}), Ints({0}, {})}) {
    OpTest op("UniqueV2");
    op.Input(x).Input(axis);
    EXPECT_EQ(op.Run().code(), StatusCode::kInvalidArgument) << axis.ToString();
  }
}

TEST(Bitcast, SharesBytes) {
  const Tensor x = Tensor::FromValues<uint32_t>({0x3f800000, 0xc0000000}, Shape({2})).value();
  OpTest same("Bitcast");
  same.Attr("type", ElementType::kFloat).Input(x);
  ASSERT_TRUE(same.Run().ok());
  ExpectEqual(same.output(0), Tensor::Vector<float>({1, -2}));
  EXPECT_EQ(same.output(0).raw_data(), x.raw_data());
  OpTest smaller("Bitcast");
  smaller.Attr("type", ElementType::kUint16).Input(x);
  ASSERT_TRUE(smaller.Run().ok());
  ExpectEqual(smaller.output(0),
              Tensor::FromValues<uint16_t>({0, 0x3f80, 0, 0xc000}, Shape({2, 2})).value());
  OpTest back("Bitcast");
  back.Attr("type", ElementType::kUint32).Input(smaller.output(0));
  ASSERT_TRUE(back.Run().ok());
  ExpectEqual(back.output(0), x);

  // Bytes that begin where a number may not are copied.
  Tensor bytes = Tensor::Uninitialized(ElementType::kUint8, Shape({3, 4}));
  for (int i = 0; i < 12; ++i) bytes.mutable_data<uint8_t>()[i] = static_cast<uint8_t>(i);
  const Tensor odd(ElementType::kUint8, Shape({4}), bytes.buffer(),
                   bytes.mutable_data<uint8_t>() + 1);
  OpTest moved("Bitcast");
  moved.Attr("type", ElementType::kInt32).Input(odd);
  ASSERT_TRUE(moved.Run().ok());
  ExpectEqual(moved.output(0), Tensor::Scalar<int32_t>(0x04030201));
  OpTest wrong("Bitcast");
  wrong.Attr("type", ElementType::kInt64).Input(odd);
  EXPECT_EQ(wrong.Run().code(), StatusCode::kInvalidArgument);
}

TEST(Empty, OfZerosIfAsked) {
  OpTest op("Empty");
  op.Attr("dtype", ElementType::kComplex64).Attr("init", true).Input(Ints({2, 1}));
  ASSERT_TRUE(op.Run().ok());
  ExpectEqual(op.output(0), Tensor::FromValues<complex64>({0, 0}, Shape({2, 1})).value());
  for (const Tensor& shape : {Ints({2, -1}), Ints({2}, {}), Ints({1 << 30, 1 << 30, 1 << 30})}) {
    OpTest bad("Empty");
    bad.Attr("dtype", ElementType::kFloat).Input(shape);
    EXPECT_EQ(bad.Run().code(), StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace troupe::testing
