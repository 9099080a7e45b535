// Ops of cards that take tensors apart and put them together otherwise, and small ops of arrays:
// what the CPU gives.
#include <gmock/gmock.h>

#include "api/troupe.h"
#include "graph/protos/graph.pb.h"
#include "tests/cuda_on_host/against_cpu.h"

namespace troupe::testing {
namespace {

using ::testing::HasSubstr;
using enum ElementType;

Operand HostMatrix(std::initializer_list<int32_t> values) {
  return OnHost(*Tensor::FromValues<int32_t>({values.begin(), values.size()},
                                             Shape({static_cast<int64_t>(values.size()) / 2, 2})));
}
Operand HostLongs(std::initializer_list<int64_t> values) {
  return OnHost(Tensor::Vector<int64_t>(values));
}

/// Integers from 0 to `below` - 1.
Tensor Below(ElementType type, int64_t below, const Shape& shape, uint64_t seed) {
  Tensor tensor = *Tensor::Allocate(type, shape);
  std::mt19937_64 random(seed);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    const auto value = static_cast<int64_t>(random() % static_cast<uint64_t>(below));
    if (type == kInt64) tensor.mutable_data<int64_t>()[i] = value;
    if (type == kInt32) tensor.mutable_data<int32_t>()[i] = static_cast<int32_t>(value);
  }
  return tensor;
}

AgainstCpu::Attrs Mode(const std::string& mode) {
  return [mode](NodeSpec& node) { node.Attr("mode", mode); };
}
AgainstCpu::Attrs Align(const std::string& align) {
  return [align](NodeSpec& node) { node.Attr("align", align); };
}
AgainstCpu::Attrs Block(int64_t size) {
  return [size](NodeSpec& node) { node.Attr("block_size", size); };
}

/// What has kernels on cards is known when they are loaded.
class OnCards : public ::testing::Test {
 protected:
  void SetUp() override { LoadCards(); }
};
using Blocks = OnCards;
using Mirrors = OnCards;
using Order = OnCards;
using Diagonals = OnCards;
using Scatters = OnCards;
using Search = OnCards;
using CrossProducts = OnCards;
using Formats = OnCards;
using Tiles = OnCards;
using Casts = OnCards;
using Patches = OnCards;
using Join = OnCards;

constexpr Operand::As kWays[] = {Operand::kConstant, Operand::kView, Operand::kCopy};

TEST_F(Blocks, MoveToTheBatchAndBack) {
  AgainstCpu both;
  for (const ElementType type : KernelTypes("SpaceToBatchND", "GPU")) {
    for (const Operand::As as : {Operand::kConstant, Operand::kView}) {
      const auto numbers = [&](const Shape& shape) { return Operand(Numbers(type, shape, 1), as); };
      both.Add("SpaceToBatchND",
               {numbers(Shape({2, 7, 9, 8})), HostInts({2, 3}), HostMatrix({1, 2, 0, 3})});
      both.Add("BatchToSpaceND",
               {numbers(Shape({12, 5, 4, 8})), HostInts({2, 3}), HostMatrix({1, 2, 0, 3})});
    }
    const auto numbers = [&](const Shape& shape) { return Numbers(type, shape, 2); };
    // One dimension of space, without channels; three; padding alone; nothing at all.
    both.Add("SpaceToBatchND", {numbers(Shape({3, 5})), HostInts({4}), HostMatrix({3, 0})});
    both.Add("BatchToSpaceND", {numbers(Shape({12, 2})), HostInts({4}), HostMatrix({3, 0})});
    both.Add("SpaceToBatchND", {numbers(Shape({1, 4, 3, 6, 2, 3})), HostInts({2, 3, 1}),
                                HostMatrix({0, 0, 3, 0, 1, 2})});
    both.Add("BatchToSpaceND", {numbers(Shape({6, 2, 2, 9, 2, 3})), HostInts({2, 3, 1}),
                                HostMatrix({0, 0, 3, 0, 1, 2})});
    both.Add("SpaceToBatchND", {numbers(Shape({2, 3, 5, 7, 2})), HostInts({1, 1, 1, 2}),
                                HostMatrix({0, 0, 0, 0, 2, 1, 0, 0})});
    both.Add("SpaceToBatchND",
             {numbers(Shape({2, 3, 5})), HostInts({1, 1}), HostMatrix({0, 0, 0, 0})});
    // Places of a block that have nothing but padding.
    both.Add("SpaceToBatchND", {numbers(Shape({2, 1, 3})), HostInts({8}), HostMatrix({9, 6})});
    both.Add("BatchToSpaceND", {numbers(Shape({16, 2, 3})), HostInts({8}), HostMatrix({9, 6})});
    both.Add("SpaceToBatchND", {numbers(Shape({2, 0, 3})), HostInts({2}), HostMatrix({1, 3})});
    both.Add("SpaceToBatchND", {numbers(Shape({0, 2, 3})), HostInts({2}), HostMatrix({1, 1})});
    both.Add("SpaceToBatch", {numbers(Shape({2, 3, 5, 3})), HostMatrix({1, 2, 0, 1})}, {},
             Block(3));
    both.Add("BatchToSpace", {numbers(Shape({9, 2, 2, 3})), HostMatrix({1, 2, 0, 1})}, {},
             Block(3));
  }
  both.Compare();
}

TEST_F(Blocks, OfMoreDimensionsThanCardsTake) {
  const absl::Status status = AgainstCpu::StatusOf(
      "SpaceToBatchND", {Numbers(kFloat, Shape({1, 2, 2, 2, 2, 2}), 1), HostInts({2, 2, 2, 2, 2}),
                         HostMatrix({0, 0, 0, 0, 0, 0, 0, 0, 0, 0})});
  EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
}

TEST_F(Blocks, MoveToTheChannelsAndBack) {
  AgainstCpu both;
  for (const ElementType type : KernelTypes("SpaceToDepth", "GPU")) {
    for (const Operand::As as : {Operand::kConstant, Operand::kView}) {
      for (const int64_t depth : {1, 3, 8}) {
        both.Add("SpaceToDepth", {{Numbers(type, Shape({2, 6, 9, depth}), 1), as}}, {}, Block(3));
        both.Add("DepthToSpace", {{Numbers(type, Shape({2, 3, 5, 4 * depth}), 1), as}}, {},
                 Block(2));
      }
    }
    both.Add("SpaceToDepth", {Numbers(type, Shape({0, 6, 4, 3}), 1)}, {}, Block(2));
    both.Add("DepthToSpace", {Numbers(type, Shape({1, 0, 4, 4}), 1)}, {}, Block(2));
  }
  both.Compare();
}

TEST_F(Blocks, OfChannelsThatComeFirst) {
  const auto run = [](const char* op, const Tensor& x, int64_t block, bool card) {
    Scope scope = Scope::NewRoot().WithDevice("/device:CPU:0");
    const auto transposed = [&](const Output& value, std::vector<int32_t> perm) {
      return ops::Transpose(scope, value, ops::Const(scope, Tensor::Vector<int32_t>(perm)));
    };
    Output input = ops::Const(scope, x);
    if (!card) input = transposed(input, {0, 2, 3, 1});
    NodeSpec node(op, "moved");
    node.Input(input).Attr("block_size", block).Device(card ? "/device:GPU:0" : "/device:CPU:0");
    if (card) node.Attr("data_format", std::string("NCHW"));
    Output moved(*scope.graph()->AddNode(node));
    if (!card) moved = transposed(moved, {0, 3, 1, 2});
    const auto session =
        *Session::Create(scope.graph(), {.devices = {{"GPU", {.count = 1}}}, .optimize = false});
    return session->Run({moved});
  };
  for (const ElementType type : {kUint8, kHalf, kFloat, kComplex128}) {
    for (const auto& [op, shape, block] : std::vector<std::tuple<const char*, Shape, int64_t>>{
             {"SpaceToDepth", Shape({2, 3, 6, 9}), 3},
             {"SpaceToDepth", Shape({2, 1, 20, 30}), 10},
             {"DepthToSpace", Shape({2, 12, 3, 5}), 2},
             {"DepthToSpace", Shape({1, 100, 9, 8}), 10}}) {
      const Tensor x = Numbers(type, shape, 3);
      const auto want = run(op, x, block, false), got = run(op, x, block, true);
      ASSERT_TRUE(want.ok() && got.ok()) << want.status() << got.status();
      EXPECT_TRUE(SameValues(got->front(), want->front(), {})) << op;
    }
  }
}

TEST_F(Mirrors, ArePutAround) {
  AgainstCpu both;
  for (const ElementType type : KernelTypes("MirrorPad", "GPU")) {
    for (const char* mode : {"REFLECT", "SYMMETRIC"}) {
      const auto add = [&](const Shape& shape, const Operand& paddings,
                           Operand::As as = Operand::kConstant) {
        both.Add("MirrorPad", {{Numbers(type, shape, 1), as}, paddings}, {}, Mode(mode));
      };
      for (const Operand::As as : {Operand::kConstant, Operand::kView}) {
        add(Shape({2, 5, 6, 4}), HostMatrix({0, 0, 2, 3, 1, 4, 0, 0}), as);
        add(Shape({3, 8}), HostMatrix({2, 1, 0, 0}), as);
      }
      add(Shape({7}), HostMatrix({6, 5}));
      add(Shape({7}), HostMatrix({0, 3}));
      add(Shape({3, 4, 2}), HostMatrix({0, 2, 0, 0, 1, 1}));
      add(Shape({3, 4, 2}), HostMatrix({0, 0, 0, 0, 0, 0}));
      add(Shape({3, 0}), HostMatrix({1, 1, 0, 0}));
      add(Shape(), OnHost(*Tensor::Allocate(kInt64, Shape({0, 2}))));
    }
  }
  both.Compare();
  EXPECT_TRUE(absl::IsInvalidArgument(AgainstCpu::StatusOf(
      "MirrorPad", {Numbers(kFloat, Shape({3}), 1), HostMatrix({3, 0})}, Mode("REFLECT"))));
}

TEST_F(Mirrors, AreAdded) {
  AgainstCpu both;
  for (const ElementType type : KernelTypes("MirrorPadGrad", "GPU")) {
    for (const Values values : {Values::kAny, Values::kModerate}) {
      for (const char* mode : {"REFLECT", "SYMMETRIC"}) {
        // The order of additions is the CPU's: so are the bits.
        const auto add = [&](const Shape& shape, const Operand& paddings) {
          both.Add("MirrorPadGrad", {Numbers(type, shape, 1, values), paddings}, {}, Mode(mode));
        };
        add(Shape({2, 10, 11, 4}), HostMatrix({0, 0, 2, 3, 1, 4, 0, 0}));
        add(Shape({19}), HostMatrix({6, 6}));  // Most have two images.
        add(Shape({9, 12, 7}), HostMatrix({3, 2, 3, 3, 2, 0}));
        add(Shape({9, 3}), HostMatrix({0, 0, 0, 0}));
        add(Shape({2, 3, 2, 3, 2, 3}), HostMatrix({0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0}));
      }
    }
  }
  both.Compare();
}

TEST_F(Order, IsReversed) {
  AgainstCpu both;
  for (const ElementType type : KernelTypes("Reverse", "GPU")) {
    if (type == kInt32) continue;
    for (const Operand::As as : {Operand::kConstant, Operand::kView}) {
      both.Add("Reverse", {{Numbers(type, Shape({3, 5, 4}), 1), as},
                           OnHost(Tensor::Vector<bool>({true, false, false}))});
      both.Add("Reverse", {{Numbers(type, Shape({3, 5, 7}), 1), as},
                           OnHost(Tensor::Vector<bool>({false, true, true}))});
    }
    both.Add("Reverse",
             {Numbers(type, Shape({3, 0}), 1), OnHost(Tensor::Vector<bool>({true, true}))});
  }
  both.Compare();
}

TEST_F(Order, IsRolled) {
  AgainstCpu both;
  for (const ElementType type : KernelTypes("Roll", "GPU")) {
    if (type == kInt32) continue;
    for (const Operand::As as : kWays) {
      const auto add = [&](const Shape& shape, const Operand& shifts, const Operand& axes) {
        both.Add("Roll", {{Numbers(type, shape, 1), as}, shifts, axes});
      };
      add(Shape({7}), HostInt(3), HostInt(0));
      add(Shape({4, 6, 8}), HostInts({1, -2}), HostInts({0, 2}));
      add(Shape({4, 6, 8}), HostInt(4), HostInt(-1));
      add(Shape({4, 6, 5}), HostLongs({1, 2, 8}), HostInts({1, 1, 0}));
      add(Shape({4, 6, 8}), HostInts({8, 0}), HostInts({0, 2}));
      add(Shape({4, 0}), HostInt(3), HostInt(0));
    }
  }
  both.Compare();
}

TEST_F(Order, OfSequencesIsReversed) {
  AgainstCpu both;
  const auto attrs = [](int64_t seq, int64_t batch) -> AgainstCpu::Attrs {
    return [=](NodeSpec& node) { node.Attr("seq_dim", seq).Attr("batch_dim", batch); };
  };
  const Shape shape({3, 5, 4, 2});
  for (const ElementType type : KernelTypes("ReverseSequence", "GPU")) {
    for (const Operand::As as : {Operand::kConstant, Operand::kView}) {
      for (int seq = 0; seq < 4; ++seq) {
        for (int batch = 0; batch < 4; ++batch) {
          if (seq == batch) continue;
          Tensor lengths = Below(seq % 2 == 0 ? kInt64 : kInt32, shape.dim(seq) + 1,
                                 Shape({shape.dim(batch)}), 5);
          both.Add("ReverseSequence", {{Numbers(type, shape, 1), as}, lengths}, {},
                   attrs(seq, batch));
        }
      }
    }
    both.Add("ReverseSequence", {Numbers(type, Shape({2, 0}), 1), Tensor::Vector<int64_t>({0, 0})},
             {}, attrs(1, 0));
  }
  both.Compare();
  // A length that does not fit, even where there is nothing to move.
  for (const Shape& bad : {Shape({3, 5}), Shape({3, 0})}) {
    for (const int64_t length : {int64_t{-1}, bad.dim(1) + 1}) {
      const absl::Status status = AgainstCpu::StatusOf(
          "ReverseSequence", {Numbers(kFloat, bad, 1), Tensor::Vector<int64_t>({0, length, 0})},
          attrs(1, 0));
      EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
      EXPECT_THAT(std::string(status.message()),
                  HasSubstr(StrCat("seq_lengths[1] = ", length, " is not in [0, ", bad.dim(1))));
    }
  }
}

TEST_F(Order, OfDimensionsIsReversedAndNumbersConjugated) {
  AgainstCpu both;
  for (const ElementType type : KernelTypes("ConjugateTranspose", "GPU")) {
    if (type == kFloat8E5m2 || type == kFloat8E4m3fn) continue;  // See Layout.NarrowTypes.
    for (const Operand::As as : kWays) {
      both.Add("ConjugateTranspose",
               {{Numbers(type, Shape({3, 40, 5}), 1), as}, HostInts({2, 0, 1})});
      both.Add("ConjugateTranspose", {{Numbers(type, Shape({3, 4}), 1), as}, HostInts({0, 1})});
    }
    both.Add("ConjugateTranspose", {Numbers(type, Shape({0, 4}), 1), HostInts({1, 0})});
    both.Add("ConjugateTranspose", {Numbers(type, Shape(), 1), HostInts({})});
  }
  both.Compare();
}

TEST_F(Diagonals, OfTensors) {
  AgainstCpu both;
  for (const ElementType type : KernelTypes("Diag", "GPU")) {
    for (const Shape& shape : {Shape({5}), Shape({2, 3}), Shape({0}), Shape({2, 3, 2})}) {
      both.Add("Diag", {Numbers(type, shape, 1)});
      std::vector<int64_t> twice(shape.dims().begin(), shape.dims().end());
      twice.insert(twice.end(), shape.dims().begin(), shape.dims().end());
      both.Add("DiagPart", {Numbers(type, Shape(twice), 1)});
    }
  }
  both.Compare();
}

TEST_F(Diagonals, InBandsOfMatrices) {
  AgainstCpu both;
  const std::vector<std::string> aligns = {"RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT"};
  for (const ElementType type : KernelTypes("MatrixDiagV3", "GPU")) {
    const Operand padding = OnHost(Numbers(type, Shape(), 7));
    const auto numbers = [&](const Shape& shape, Operand::As as = Operand::kConstant) {
      return Operand(Numbers(type, shape, 1), as);
    };
    size_t next = 0;
    for (const Shape& shape :
         {Shape({4, 6}), Shape({2, 3, 7, 3}), Shape({5, 1}), Shape({0, 3, 3})}) {
      const auto rows = static_cast<int32_t>(shape.dim(shape.rank() - 2));
      const auto columns = static_cast<int32_t>(shape.dim(shape.rank() - 1));
      for (const auto& [lower, upper] : std::vector<std::pair<int32_t, int32_t>>{
               {0, 0}, {1 - rows, columns - 1}, {-1, 0}, {0, 2}, {2, 2}, {1 - rows, 1 - rows}}) {
        if (upper >= columns || lower <= -rows) continue;
        const std::string& align = aligns[next++ % aligns.size()];
        both.Add("MatrixDiagPartV3", {numbers(shape), HostInts({lower, upper}), padding}, {},
                 Align(align));
        // What comes out goes in.
        std::vector<int64_t> dims(shape.dims().begin(), shape.dims().end() - 2);
        if (upper > lower) dims.push_back(upper - lower + 1);
        const int64_t width = std::min(rows + std::min(upper, 0), columns - std::max(lower, 0));
        dims.push_back(width);
        for (const Operand::As as : kWays) {
          both.Add("MatrixSetDiagV3",
                   {numbers(shape, as), numbers(Shape(dims)), HostInts({lower, upper})}, {},
                   Align(align));
        }
        both.Add("MatrixDiagV3",
                 {numbers(Shape(dims)), HostInts({lower, upper}), HostInt(rows), HostInt(columns),
                  padding},
                 {}, Align(align));
      }
    }
    both.Add("MatrixDiagV2",
             {numbers(Shape({2, 3, 4})), HostInts({-1, 1}), HostInt(-1), HostInt(-1), padding});
    both.Add("MatrixDiagPartV2", {numbers(Shape({2, 3, 4})), HostInts({-1, 1}), padding});
    both.Add("MatrixSetDiagV2",
             {numbers(Shape({3, 4})), numbers(Shape({3, 3})), HostInts({-1, 1})});
  }
  both.Compare();
}

TEST_F(Scatters, OfTensors) {
  AgainstCpu both;
  for (const char* op :
       {"TensorScatterMax", "TensorScatterMin", "TensorScatterSub", "ScatterNdNonAliasingAdd"}) {
    for (const ElementType type : KernelTypes(op, "GPU")) {
      if (type == kInt32) continue;
      for (const Operand::As as : kWays) {
        // Rows that name one slot few times, and often: small types are rounded once here.
        for (const int64_t rows : {7, 700}) {
          both.Add(op,
                   {{Numbers(type, Shape({9, 3}), 1, Values::kModerate), as},
                    Below(rows == 7 ? kInt32 : kInt64, 9, Shape({rows, 1}), 2),
                    Numbers(type, Shape({rows, 3}), 3, Values::kModerate)},
                   {.absolute = type == kHalf       ? 0.25
                                : type == kBfloat16 ? 2.0
                                                    : 0.0});
        }
      }
      both.Add(op, {Numbers(type, Shape({4, 3}), 1), Below(kInt64, 3, Shape({5, 2}), 2),
                    Numbers(type, Shape({5}), 3)});
    }
    const absl::Status status = AgainstCpu::StatusOf(
        op, {Numbers(kFloat, Shape({4}), 1), *Tensor::FromValues<int64_t>({4}, Shape({1, 1})),
             Numbers(kFloat, Shape({1}), 1)});
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  }
  both.Compare();
}

TEST_F(Search, InSortedNumbers) {
  AgainstCpu both;
  for (const char* op : {"LowerBound", "UpperBound"}) {
    for (const ElementType type : KernelTypes(op, "GPU")) {
      for (const ElementType out : {kInt32, kInt64}) {
        const AgainstCpu::Attrs attrs = [out](NodeSpec& node) { node.Attr("out_type", out); };
        Tensor sorted = Numbers(type, Shape({3, 50}), 1, Values::kModerate);
        SwitchPlain(type, [&]<typename T>() {
          if constexpr (!kIsComplexNumber<T> && !std::is_same_v<T, bool>) {
            for (int r = 0; r < 3; ++r) {
              T* row = sorted.mutable_data<T>() + 50 * r;
              std::sort(row, row + 50);
            }
          }
        });
        both.Add(op, {sorted, Numbers(type, Shape({3, 41}), 2, Values::kModerate)}, {}, attrs);
        both.Add(op, {sorted, Numbers(type, Shape({3, 41}), 2)}, {}, attrs);
        // What is not sorted, and NaN, is not refused.
        both.Add(op, {Numbers(type, Shape({2, 9}), 1), Numbers(type, Shape({2, 30}), 2)}, {},
                 attrs);
        both.Add(op, {Numbers(type, Shape({2, 0}), 1), Numbers(type, Shape({2, 3}), 2)}, {}, attrs);
        both.Add(op, {Numbers(type, Shape({2, 4}), 1), Numbers(type, Shape({2, 0}), 2)}, {}, attrs);
      }
    }
    EXPECT_TRUE(absl::IsInvalidArgument(AgainstCpu::StatusOf(
        op, {Numbers(kFloat, Shape({2, 4}), 1), Numbers(kFloat, Shape({3, 4}), 1)})));
  }
  both.Compare();
}

TEST_F(Search, ForBuckets) {
  AgainstCpu both;
  for (const int count : {0, 1, 5, 512, 513, 1300}) {
    AttrValue boundaries;
    auto* const list = boundaries.mutable_list();
    for (int i = 0; i < count; ++i) {
      list->add_f(static_cast<float>(i / 2) / 8 - 1);  // Each one twice.
    }
    const AgainstCpu::Attrs attrs = [&](NodeSpec& node) { node.Attr("boundaries", boundaries); };
    for (const ElementType type : KernelTypes("Bucketize", "GPU")) {
      both.Add("Bucketize", {Numbers(type, Shape({5, 70}), 1)}, {}, attrs);
      both.Add("Bucketize", {Numbers(type, Shape({5, 70}), 1, Values::kModerate)}, {}, attrs);
      both.Add("Bucketize", {Numbers(type, Shape({0}), 1)}, {}, attrs);
    }
  }
  both.Compare();
}

TEST_F(Search, ForDistinctElements) {
  AgainstCpu both;
  const auto indices = [](ElementType out) -> AgainstCpu::Attrs {
    return [out](NodeSpec& node) { node.Attr("out_idx", out); };
  };
  for (const ElementType type : KernelTypes("UniqueWithCounts", "GPU")) {
    if (type == kInt32 || type == kString) continue;
    // Few values, many times; then all kinds of values, with NaNs and zeros of both signs.
    Tensor x = Numbers(type, Shape({300}), 1, Values::kModerate);
    const Tensor any = Numbers(type, Shape({150}), 2);
    std::copy_n(static_cast<const char*>(any.raw_data()), any.bytes(),
                static_cast<char*>(x.mutable_raw_data()) + any.bytes());
    both.Add("UniqueWithCounts", {{x, Operand::kView}}, {}, indices(kInt64));
  }
  both.Add("UniqueWithCounts", {Numbers(kFloat, Shape({0}), 3)}, {}, indices(kInt64));
  both.Add("Unique", {Numbers(kFloat, Shape({300}), 1)}, {}, indices(kInt32));
  both.Add("Unique", {Numbers(kBool, Shape({1}), 1)}, {}, indices(kInt64));
  // More than one block sorts.
  both.Add("UniqueWithCounts", {Numbers(kUint8, Shape({2100}), 1)});
  both.Compare();
}

TEST_F(Search, ForTheLargestOfOldGraphs) {
  AgainstCpu both(/*version=*/6);
  for (const ElementType type : KernelTypes("TopK", "GPU")) {
    // Few are found one after the other, many by sorting.
    for (const int64_t k : {0, 5, 20}) {
      if (k > 5 && type != kFloat) continue;
      both.Add("TopK", {Numbers(type, Shape({3, 40}), 1)}, {},
               [k](NodeSpec& node) { node.Attr("k", k); });
    }
  }
  both.Compare();
}

TEST_F(CrossProducts, OfVectors) {
  AgainstCpu both;
  for (const ElementType type : KernelTypes("Cross", "GPU")) {
    // Cards may join a product and a sum.
    const Within within = {.ulps = 4, .absolute = type == kHalf || type == kBfloat16 ? 0.0 : 1e-4};
    both.Add("Cross",
             {Numbers(type, Shape({70, 3}), 1, Values::kModerate),
              Numbers(type, Shape({70, 3}), 2, Values::kModerate)},
             within);
    both.Add("Cross",
             {{Numbers(type, Shape({2, 5, 3}), 1, Values::kModerate), Operand::kView},
              {Numbers(type, Shape({2, 5, 3}), 2, Values::kModerate), Operand::kView}},
             within);
    both.Add("Cross", {Numbers(type, Shape({0, 3}), 1), Numbers(type, Shape({0, 3}), 2)});
    if (type == kFloat || type == kDouble || type == kHalf || type == kBfloat16) continue;
    both.Add("Cross", {Numbers(type, Shape({70, 3}), 1), Numbers(type, Shape({70, 3}), 2)});
  }
  both.Compare();
}

TEST_F(Formats, OfDimensions) {
  AgainstCpu both;
  const auto formats = [](const std::string& from, const std::string& to) -> AgainstCpu::Attrs {
    return [=](NodeSpec& node) { node.Attr("src_format", from).Attr("dst_format", to); };
  };
  Tensor dims = *Tensor::Allocate(kInt64, Shape({30}));
  for (int64_t i = 0; i < 30; ++i) dims.mutable_data<int64_t>()[i] = i - 15;
  for (const Operand::As as : kWays) {
    both.Add("DataFormatDimMap", {{dims, as}}, {}, formats("NHWC", "NCHW"));
    both.Add("DataFormatDimMap", {{dims, as}}, {}, formats("NCDHW", "NDHWC"));
  }
  both.Add("DataFormatDimMap", {Tensor::Scalar<int64_t>(-1)}, {}, formats("NHWC", "NCHW"));
  for (const int64_t rows : {2, 4}) {
    both.Add("DataFormatVecPermute", {Numbers(kInt64, Shape({rows}), 1)}, {},
             formats("NHWC", "WHCN"));
    both.Add("DataFormatVecPermute", {Numbers(kInt64, Shape({rows, 2}), 1)}, {},
             formats("NHWC", "WHCN"));
  }
  both.Add("DataFormatVecPermute", {Numbers(kInt64, Shape({5, 2}), 1)}, {},
           formats("NCDHW", "NDHWC"));
  both.Compare();
  EXPECT_TRUE(absl::IsInvalidArgument(AgainstCpu::StatusOf(
      "DataFormatVecPermute", {Numbers(kInt64, Shape({3}), 1)}, formats("NHWC", "NCHW"))));
}

TEST_F(Tiles, AreAdded) {
  AgainstCpu both(/*version=*/2);
  for (const ElementType type : KernelTypes("TileGrad", "GPU")) {
    if (type == kInt32) continue;
    const Within within = {.ulps = 8,
                           .absolute = type == kHalf       ? 0.5
                                       : type == kBfloat16 ? 4
                                                           : 1e-3};
    both.Add("TileGrad",
             {Numbers(type, Shape({6, 40, 9}), 1, Values::kModerate), HostInts({2, 1, 3})}, within);
    both.Add("TileGrad", {Numbers(type, Shape({6, 4}), 1), HostInts({1, 1})}, within);
    both.Add("TileGrad", {Numbers(type, Shape({300}), 1, Values::kModerate), HostInts({100})},
             within);
    both.Add("TileGrad", {Numbers(type, Shape({6, 0}), 1), HostInts({2, 1})});
  }
  both.Compare();
}

/// Of floats of 8 bits.
bool IsNan(ElementType type, uint8_t bits) {
  if (type == kFloat8E5m2) return (bits & 0x7f) > 0x7c;
  return type == kFloat8E4m3fn && (bits & 0x7f) == 0x7f;
}

void ExpectSameCast(const Tensor& x, ElementType to, bool truncate) {
  SCOPED_TRACE(StrCat(ElementTypeName(x.type()), " to ", ElementTypeName(to),
                      truncate ? ", truncated" : ""));
  Tensor results[2];
  for (const bool card : {false, true}) {
    Scope scope = Scope::NewRoot();
    const Output input = ops::Placeholder(scope, x.type());
    NodeSpec node("Cast", "cast");
    node.Input(input).Attr("DstT", to).Attr("Truncate", truncate);
    node.Device(card ? "/device:GPU:0" : "/device:CPU:0");
    const Output cast(*scope.graph()->AddNode(node));
    const auto session = Session::Create(scope.graph(), {.devices = {{"GPU", {.count = 1}}}});
    ASSERT_TRUE(session.ok()) << session.status();
    const auto values = (*session)->Run({{input, x}}, {cast});
    ASSERT_TRUE(values.ok()) << values.status();
    results[card ? 1 : 0] = values->front();
  }
  ASSERT_EQ(results[0].shape(), results[1].shape());
  ASSERT_EQ(results[0].type(), results[1].type());
  if (to != kFloat8E5m2 && to != kFloat8E4m3fn && to != kInt4 && to != kUint4) {
    EXPECT_TRUE(SameValues(results[1], results[0], {}));
    return;
  }
  for (int64_t i = 0; i < results[0].num_elements(); ++i) {
    const auto byte = [&](int k) { return static_cast<const uint8_t*>(results[k].raw_data())[i]; };
    if (IsNan(to, byte(0)) && IsNan(to, byte(1))) continue;  // Of any sign.
    ASSERT_EQ(int{byte(0)}, int{byte(1)}) << "element " << i;
  }
}

TEST_F(Casts, OfNarrowTypes) {
  const std::vector<ElementType> narrow = {kFloat8E5m2, kFloat8E4m3fn, kInt4, kUint4};
  const auto is_float8 = [](ElementType type) {
    return type == kFloat8E5m2 || type == kFloat8E4m3fn;
  };
  for (const ElementType from : narrow) {
    for (const ElementType to : KernelTypes("Cast", "GPU", "DstT")) {
      // All bytes; but infinities and NaNs that become integers are any.
      std::vector<uint8_t> bytes;
      for (int bits = 0; bits < 256; ++bits) {
        const int magnitude = bits & 0x7f;
        const bool finite = from == kFloat8E5m2 ? magnitude < 0x7c : magnitude != 0x7f;
        const bool floating = IsFloating(to) || IsComplex(to) || is_float8(to) || to == kBool;
        const bool negative = bits >= 0x80 && is_float8(from);
        if (is_float8(from) && !floating && (!finite || (negative && to == kUint64))) continue;
        bytes.push_back(static_cast<uint8_t>(bits));
      }
      Tensor x = *Tensor::Allocate(from, Shape({static_cast<int64_t>(bytes.size())}));
      std::copy(bytes.begin(), bytes.end(), static_cast<uint8_t*>(x.mutable_raw_data()));
      for (const bool truncate : {false, true}) ExpectSameCast(x, to, truncate);
    }
  }
  for (const ElementType from : PlainTypes()) {
    for (const ElementType to : narrow) {
      for (const bool truncate : {false, true}) {
        const Values values = is_float8(to) ? Values::kAny : Values::kModerate;
        ExpectSameCast(Numbers(from, Shape({3001}), 1, values), to, truncate);
        ExpectSameCast(Numbers(from, Shape({0}), 1), to, truncate);
      }
    }
  }
  // Halfway between two numbers and beside it, of every exponent there is.
  std::vector<float> halfway;
  for (int exponent = -20; exponent < 18; ++exponent) {
    for (int eighths = 0; eighths < 64; ++eighths) {
      const float value = std::ldexp(1 + static_cast<float>(eighths) / 64, exponent);
      for (const float x : {value, std::nextafter(value, 0.0f), std::nextafter(value, 1e9f)}) {
        halfway.insert(halfway.end(), {x, -x});
      }
    }
  }
  const Tensor floats = Tensor::Vector<float>(halfway);
  const Tensor doubles =
      Tensor::Vector<double>(std::vector<double>(halfway.begin(), halfway.end()));
  for (const ElementType to : {kFloat8E5m2, kFloat8E4m3fn}) {
    for (const bool truncate : {false, true}) {
      ExpectSameCast(floats, to, truncate);
      ExpectSameCast(doubles, to, truncate);
    }
  }
}

TEST_F(Patches, OfImages) {
  AgainstCpu both;
  for (const ElementType type : KernelTypes("ExtractImagePatches", "GPU")) {
    for (const Operand::As as : {Operand::kConstant, Operand::kView}) {
      for (const char* padding : {"SAME", "VALID"}) {
        const auto add = [&](const Shape& shape, int64_t rows, int64_t columns, int64_t stride,
                             int64_t rate) {
          both.Add("ExtractImagePatches", {{Numbers(type, shape, 1), as}}, {}, [=](NodeSpec& node) {
            node.Attr("ksizes", std::vector<int64_t>{1, rows, columns, 1});
            node.Attr("strides", std::vector<int64_t>{1, stride, stride + 1, 1});
            node.Attr("rates", std::vector<int64_t>{1, rate, 1, 1});
            node.Attr("padding", std::string(padding));
          });
        };
        add(Shape({2, 9, 11, 3}), 3, 4, 2, 2);
        add(Shape({2, 8, 8, 16}), 2, 2, 1, 1);
        add(Shape({1, 5, 4, 1}), 1, 1, 3, 1);
        add(Shape({0, 9, 11, 3}), 3, 3, 1, 1);
      }
    }
  }
  both.Compare();
}

TEST_F(Patches, OfVolumes) {
  AgainstCpu both;
  for (const ElementType type : KernelTypes("ExtractVolumePatches", "GPU")) {
    for (const Operand::As as : {Operand::kConstant, Operand::kView}) {
      for (const char* padding : {"SAME", "VALID"}) {
        const auto add = [&](const Shape& shape, int64_t planes, int64_t rows, int64_t columns,
                             int64_t stride) {
          both.Add("ExtractVolumePatches", {{Numbers(type, shape, 1), as}}, {},
                   [=](NodeSpec& node) {
                     node.Attr("ksizes", std::vector<int64_t>{1, planes, rows, columns, 1});
                     node.Attr("strides", std::vector<int64_t>{1, stride, stride + 1, stride, 1});
                     node.Attr("padding", std::string(padding));
                   });
        };
        add(Shape({2, 5, 4, 6, 3}), 2, 3, 4, 2);
        add(Shape({1, 4, 4, 4, 8}), 2, 2, 2, 1);
        add(Shape({0, 5, 4, 6, 3}), 2, 2, 2, 1);
      }
    }
  }
  both.Compare();
}

TEST_F(Join, OnDifferentWays) {
  AgainstCpu both;
  for (const ElementType type : KernelTypes("ParallelConcat", "GPU")) {
    std::vector<Operand> rows;
    for (int i = 0; i < 70; ++i) rows.emplace_back(Numbers(type, Shape({1, 3}), i));
    for (const size_t count : {size_t{1}, size_t{3}, rows.size()}) {
      both.AddList("ParallelConcat", {rows.begin(), rows.begin() + static_cast<int64_t>(count)}, {},
                   [count](NodeSpec& node) {
                     node.Attr("shape", PartialShape({static_cast<int64_t>(count), 3}));
                   });
    }
  }
  both.Compare();
}

}  // namespace
}  // namespace troupe::testing
