// Ops that give elements other places: mirrors, rotations, reversals, blocks, diagonals.
#include <cstdio>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "tests/kernels/array/picks.h"
#include "tests/kernels/kernel_test_util.h"

namespace troupe::testing {
namespace {

using absl::StatusCode;

Tensor Ints(std::vector<int32_t> values, const Shape& shape) {
  return Tensor::FromValues<int32_t>(absl::MakeConstSpan(values), shape).value();
}
Tensor Ints(std::vector<int32_t> values) { return Tensor::Vector<int32_t>(values); }

TEST(MirrorPad, Modes) {
  for (const ElementType type : TypesBySize()) {
    const Tensor input = Distinct(type, Shape({2, 3}));
    OpTest reflect("MirrorPad");
    reflect.Attr("mode", "REFLECT").Input(input).Input(Ints({1, 0, 0, 2}, Shape({2, 2})));
    ASSERT_TRUE(reflect.Run().ok());
    ExpectPicks(reflect.output(0), input, Shape({3, 5}),
                {3, 4, 5, 4, 3, 0, 1, 2, 1, 0, 3, 4, 5, 4, 3});
    OpTest symmetric("MirrorPad");
    symmetric.Attr("mode", "SYMMETRIC").Input(input).Input(Ints({0, 0, 3, 1}, Shape({2, 2})));
    ASSERT_TRUE(symmetric.Run().ok());
    ExpectPicks(symmetric.output(0), input, Shape({2, 7}),
                {2, 1, 0, 0, 1, 2, 2, 5, 4, 3, 3, 4, 5, 5});
  }
}

TEST(MirrorPad, Refuses) {
  const auto code = [](const char* op, const char* mode, std::vector<int32_t> paddings) {
    OpTest test(op);
    test.Attr("mode", mode).Input(Tensor::Vector<float>({1, 2, 3}));
    return test.Input(Ints(paddings, Shape({1, 2}))).Run().code();
  };
  EXPECT_EQ(code("MirrorPad", "REFLECT", {2, 2}), StatusCode::kOk);
  EXPECT_EQ(code("MirrorPad", "REFLECT", {3, 0}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code("MirrorPad", "SYMMETRIC", {3, 0}), StatusCode::kOk);
  EXPECT_EQ(code("MirrorPad", "SYMMETRIC", {0, 4}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code("MirrorPad", "SYMMETRIC", {-1, 0}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code("MirrorPad", "SYMMETRIC", {std::numeric_limits<int32_t>::max(), 0}),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(code("MirrorPadGrad", "SYMMETRIC", {1, 1}), StatusCode::kOk);
  EXPECT_EQ(code("MirrorPadGrad", "REFLECT", {1, 1}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code("MirrorPadGrad", "SYMMETRIC", {2, 2}), StatusCode::kInvalidArgument);
}

TEST(MirrorPadGrad, AddsUpWhatShowsAnElement) {
  for (const ElementType type : {ElementType::kFloat, ElementType::kHalf, ElementType::kInt8}) {
    OpTest op("MirrorPadGrad");
    op.Attr("mode", "SYMMETRIC").Input(MakeTensor(type, Shape({5}), {1, 2, 3, 4, 5}));
    op.Input(Ints({2, 1}, Shape({1, 2})));
    ASSERT_TRUE(op.Run().ok());
    ExpectEqual(op.output(0), MakeTensor(type, Shape({2}), {2 + 3, 1 + 4 + 5}));
  }
}

TEST(Reversals, PartsOfDimensions) {
  for (const ElementType type : TypesBySize()) {
    const Tensor input = Distinct(type, Shape({2, 3}));
    OpTest reverse("Reverse");
    reverse.Input(input).Input(Tensor::Vector<bool>({true, false}));
    ASSERT_TRUE(reverse.Run().ok());
    ExpectPicks(reverse.output(0), input, Shape({2, 3}), {3, 4, 5, 0, 1, 2});
    OpTest sequence("ReverseSequence");
    sequence.Attr("seq_dim", 1).Input(input).Input(Ints({3, 2}));
    ASSERT_TRUE(sequence.Run().ok());
    ExpectPicks(sequence.output(0), input, Shape({2, 3}), {2, 1, 0, 4, 3, 5});
    OpTest roll("Roll");
    roll.Input(input).Input(Ints({1, -4, 3})).Input(Ints({0, 1, -1}));
    ASSERT_TRUE(roll.Run().ok());
    ExpectPicks(roll.output(0), input, Shape({2, 3}), {4, 5, 3, 1, 2, 0});
  }
}

TEST(Reversals, BadInput) {
  const Tensor input = Tensor::Uninitialized(ElementType::kFloat, Shape({2, 3}));
  OpTest reverse("Reverse");
  reverse.Input(input).Input(Tensor::Vector<bool>({true}));
  EXPECT_EQ(reverse.Run().code(), StatusCode::kInvalidArgument);
  OpTest empty("Reverse");
  empty.Input(Tensor::Uninitialized(ElementType::kFloat, Shape({0})))
      .Input(Tensor::Vector<bool>({true}));
  EXPECT_EQ(empty.Run().code(), StatusCode::kInvalidArgument);
  for (const int32_t length : {-1, 4}) {
    OpTest sequence("ReverseSequence");
    sequence.Attr("seq_dim", 1).Input(input).Input(Ints({0, length}));
    EXPECT_EQ(sequence.Run().code(), StatusCode::kInvalidArgument);
  }
  for (const int seq_dim : {0, 2, -3}) {
    OpTest sequence("ReverseSequence");
    sequence.Attr("seq_dim", seq_dim).Input(input).Input(Ints({0, 0}));
    EXPECT_EQ(sequence.Run().code(), StatusCode::kInvalidArgument);
  }
  OpTest axis("Roll"), sizes("Roll"), huge("Roll");
  axis.Input(input).Input(Ints({1})).Input(Ints({2}));
  EXPECT_EQ(axis.Run().code(), StatusCode::kInvalidArgument);
  sizes.Input(input).Input(Ints({1, 2})).Input(Ints({0}));
  EXPECT_EQ(sizes.Run().code(), StatusCode::kInvalidArgument);
  const int64_t least = std::numeric_limits<int64_t>::min();
  huge.Input(input).Input(Tensor::Vector<int64_t>({least, least})).Input(Ints({1, 1}));
  EXPECT_TRUE(huge.Run().ok());
}

TEST(Blocks, ToTheBatchAndBack) {
  for (const ElementType type : {ElementType::kUint8, ElementType::kFloat, ElementType::kDouble}) {
    const Tensor input = Distinct(type, Shape({1, 2, 4}));
    OpTest to_batch("SpaceToBatchND"), back("BatchToSpaceND");
    to_batch.Input(input).Input(Ints({2, 2})).Input(Ints({0, 0, 0, 0}, Shape({2, 2})));
    ASSERT_TRUE(to_batch.Run().ok());
    const Tensor batched = to_batch.output(0);
    ExpectPicks(batched, input, Shape({4, 1, 2}), {0, 2, 1, 3, 4, 6, 5, 7});
    back.Input(batched).Input(Ints({2, 2})).Input(Ints({1, 0, 1, 1}, Shape({2, 2})));
    ASSERT_TRUE(back.Run().ok());
    ExpectPicks(back.output(0), input, Shape({1, 1, 2}), {5, 6});
  }
  OpTest padded("SpaceToBatch");
  padded.Attr("block_size", 2).Input(MakeTensor(ElementType::kFloat, Shape({1, 1, 2, 1}), {1, 2}));
  padded.Input(Ints({1, 0, 1, 1}, Shape({2, 2})));
  ASSERT_TRUE(padded.Run().ok());
  ExpectEqual(padded.output(0),
              MakeTensor(ElementType::kFloat, Shape({4, 1, 2, 1}), {0, 0, 0, 0, 0, 2, 1, 0}));
}

TEST(Blocks, BadInput) {
  const auto code = [](const char* op, std::vector<int32_t> block, std::vector<int32_t> margins) {
    OpTest test(op);
    test.Input(Tensor::Uninitialized(ElementType::kFloat, Shape({4, 2, 4}))).Input(Ints(block));
    return test.Input(Ints(margins, Shape({2, 2}))).Run().code();
  };
  constexpr int32_t kHuge = std::numeric_limits<int32_t>::max();
  EXPECT_EQ(code("SpaceToBatchND", {2, 4}, {0, 0, 0, 0}), StatusCode::kOk);
  EXPECT_EQ(code("SpaceToBatchND", {2, 3}, {0, 0, 0, 0}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code("SpaceToBatchND", {0, 1}, {0, 0, 0, 0}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code("SpaceToBatchND", {2, 2}, {-1, 1, 0, 0}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code("SpaceToBatchND", {kHuge, kHuge}, {0, kHuge - 2, 0, kHuge - 4}),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(code("BatchToSpaceND", {2, 2}, {0, 0, 0, 0}), StatusCode::kOk);
  EXPECT_EQ(code("BatchToSpaceND", {3, 1}, {0, 0, 0, 0}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code("BatchToSpaceND", {2, 2}, {0, 5, 0, 0}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code("BatchToSpaceND", {2, 2}, {0, 0, -1, 0}), StatusCode::kInvalidArgument);
}

TEST(Blocks, ToTheChannelsAndBack) {
  for (const ElementType type : TypesBySize()) {
    const Tensor input = Distinct(type, Shape({1, 2, 4, 1}));
    OpTest to_depth("SpaceToDepth"), back("DepthToSpace");
    to_depth.Attr("block_size", 2).Input(input);
    ASSERT_TRUE(to_depth.Run().ok());
    ExpectPicks(to_depth.output(0), input, Shape({1, 1, 2, 4}), {0, 1, 4, 5, 2, 3, 6, 7});
    back.Attr("block_size", 2).Input(to_depth.output(0));
    ASSERT_TRUE(back.Run().ok());
    ExpectPicks(back.output(0), input, Shape({1, 2, 4, 1}), {0, 1, 2, 3, 4, 5, 6, 7});
  }
  for (const char* op : {"SpaceToDepth", "DepthToSpace"}) {
    for (const int64_t block : {int64_t{3}, std::numeric_limits<int64_t>::max()}) {
      OpTest test(op);
      test.Attr("block_size", block);
      test.Input(Tensor::Uninitialized(ElementType::kFloat, Shape({1, 4, 4, 4})));
      EXPECT_EQ(test.Run().code(), StatusCode::kInvalidArgument);
    }
  }
}

TEST(Diagonals, OfSeveralDimensions) {
  const Tensor diagonal = MakeTensor(ElementType::kFloat, Shape({2}), {3, 4});
  OpTest diag("Diag"), part("DiagPart"), odd("DiagPart");
  diag.Input(diagonal);
  ASSERT_TRUE(diag.Run().ok());
  ExpectEqual(diag.output(0), MakeTensor(ElementType::kFloat, Shape({2, 2}), {3, 0, 0, 4}));
  const Tensor input = Distinct(ElementType::kInt64, Shape({2, 3, 2, 3}));
  part.Input(input);
  ASSERT_TRUE(part.Run().ok());
  ExpectPicks(part.output(0), input, Shape({2, 3}), {0, 7, 14, 21, 28, 35});
  odd.Input(Tensor::Uninitialized(ElementType::kFloat, Shape({2, 3})));
  EXPECT_EQ(odd.Run().code(), StatusCode::kInvalidArgument);
}

TEST(ConjugateTranspose, LeavesItsInputAlone) {
  using complex = complex64;
  const Tensor x = Tensor::FromValues<complex>({{1, 2}, {3, 4}}, Shape({1, 2})).value();
  const Tensor y = Tensor::FromValues<complex>({{1, -2}, {3, -4}}, Shape({2, 1})).value();
  OpTest op("ConjugateTranspose");
  op.Input(x).Input(Ints({1, 0}));
  ASSERT_TRUE(op.Run().ok());
  ExpectEqual(op.output(0), y);
  EXPECT_EQ(x.unchecked_data<complex>()[0], complex(1, 2));
}

TEST(ParallelConcat, JoinsRows) {
  OpTest op("ParallelConcat"), wrong("ParallelConcat");
  for (OpTest* test : {&op, &wrong}) {
    test->Attr("N", 2).Attr("shape", test == &op ? Shape({2, 2}) : Shape({3, 2}));
    test->Input(MakeTensor(ElementType::kFloat, Shape({1, 2}), {1, 2}));
    test->Input(MakeTensor(ElementType::kFloat, Shape({1, 2}), {3, 4}));
  }
  ASSERT_TRUE(op.Run().ok());
  ExpectEqual(op.output(0), MakeTensor(ElementType::kFloat, Shape({2, 2}), {1, 2, 3, 4}));
  EXPECT_EQ(wrong.Run().code(), StatusCode::kInvalidArgument);
}

TEST(ImmutableConst, ReadsItsFile) {
  const std::string file = ::testing::TempDir() + "immutable_const";
  std::ofstream(file, std::ios::binary) << std::string("\1\0\2\0\3\0", 6);
  const auto run = [&](const std::string& name, const Shape& shape) {
    OpTest op("ImmutableConst");
    op.Attr("dtype", ElementType::kInt16).Attr("shape", shape).Attr("memory_region_name", name);
    const absl::Status status = op.Run();
    if (status.ok()) {
      ExpectEqual(op.output(0), MakeTensor(ElementType::kInt16, Shape({3}), {1, 2, 3}));
    }
    return status.code();
  };
  EXPECT_EQ(run(file, Shape({3})), StatusCode::kOk);
  EXPECT_EQ(run(file, Shape({4})), StatusCode::kInvalidArgument);
  EXPECT_EQ(run(file + ".missing", Shape({3})), StatusCode::kNotFound);
  std::remove(file.c_str());
}

}  // namespace
}  // namespace troupe::testing
