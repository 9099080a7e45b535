#include "api/expr.h"

#include <limits>

#include <gmock/gmock.h>

#include "api/nn.h"
#include "tests/api/layers/run_graph.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ExprTest : public RunGraph {
 protected:
  const Expr x_{s_, Floats({1, 2, 3, 4, 5, 6}, {2, 3})};

  template <typename T>
  std::vector<T> All(const Output& output) {
    const Tensor value = Value(output);
    const auto span = value.unchecked_values<T>();
    return std::vector<T>(span.begin(), span.end());
  }
};

TEST_F(ExprTest, Operators) {
  const Output w = Const(s_, Floats({1, 10, 100}, {3}));
  const Output sum = x_ * w + 1;
  const Output mixed = 2.0 - x_ / 2;
  const Output negative = -x_;
  const Output rest = x_ % 4;
  const Output between = x_ > 2 && !(x_ >= 5);
  const Output equal = x_ == 3, other = 3 != x_, outside = x_ < 2 || x_ <= 1;
  const Output both = x_ + x_;
  Start();
  EXPECT_THAT(Numbers(sum), ElementsAre(2, 21, 301, 5, 51, 601));
  EXPECT_THAT(Numbers(mixed), ElementsAre(1.5, 1, .5, 0, -.5, -1));
  EXPECT_THAT(Numbers(negative), ElementsAre(-1, -2, -3, -4, -5, -6));
  EXPECT_THAT(Numbers(rest), ElementsAre(1, 2, 3, 0, 1, 2));
  EXPECT_THAT(All<bool>(between), ElementsAre(false, false, true, true, false, false));
  EXPECT_THAT(All<bool>(equal), ElementsAre(false, false, true, false, false, false));
  EXPECT_THAT(All<bool>(other), ElementsAre(true, true, false, true, true, true));
  EXPECT_THAT(All<bool>(outside), ElementsAre(true, false, false, false, false, false));
  EXPECT_THAT(Numbers(both), ElementsAre(2, 4, 6, 8, 10, 12));
}

TEST_F(ExprTest, Slices) {
  const Output row = x_.Slice({1}), last = x_.Slice({-1, -1});
  const Output column = x_.Slice({troupe::All(), 1});
  const Output back = x_.Slice({0, Range(std::nullopt, std::nullopt, -2)});
  const Output middle = x_.Slice({Ellipsis(), Range(1, 2)});
  const Output wide = x_.Slice({NewAxis(), 0});
  Start();
  EXPECT_THAT(Numbers(row), ElementsAre(4, 5, 6));
  EXPECT_EQ(Number(last), 6);
  EXPECT_THAT(Numbers(column), ElementsAre(2, 5));
  EXPECT_THAT(Numbers(back), ElementsAre(3, 1));
  EXPECT_THAT(Numbers(middle), ElementsAre(2, 5));
  EXPECT_EQ(Value(middle).shape(), Shape({2, 1}));
  EXPECT_EQ(Value(wide).shape(), Shape({1, 3}));
  x_.Slice(std::vector<SliceItem>(40, NewAxis()));
  EXPECT_EQ(s_.status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(ExprTest, LiteralsGetTheTypeOfTheOthers) {
  const Output halves = Const(s_, Tensor::Scalar<half>(half(3.0f)));
  const Output small = Const(s_, Tensor::Scalar<uint8_t>(200));
  const Output complex = Const(s_, Tensor::Scalar<complex64>({1, 2}));
  const Output a = ops::Mul(s_, halves, 0.5), b = ops::Add(s_, 55, small);
  const Output c = ops::Mul(s_, complex, 2);
  EXPECT_EQ(a.type(), ElementType::kHalf);
  EXPECT_EQ(b.type(), ElementType::kUint8);
  EXPECT_EQ(c.type(), ElementType::kComplex64);
  Start();
  EXPECT_EQ(static_cast<float>(All<half>(a)[0]), 1.5f);
  EXPECT_EQ(All<uint8_t>(b)[0], 255);
  EXPECT_EQ(All<complex64>(c)[0], complex64(2, 4));
}

TEST_F(ExprTest, ListsTakeLiterals) {
  const Output small = Const(s_, Tensor::Scalar<uint8_t>(200));
  const Output packed = ops::Pack(s_, {0, small, 255});
  const Output joined = ops::ConcatV2(s_, {x_.Slice({0}), {7, 8}}, 0);
  Start();
  EXPECT_THAT(All<uint8_t>(packed), ElementsAre(0, 200, 255));
  EXPECT_THAT(Numbers(joined), ElementsAre(1, 2, 3, 7, 8));
}

TEST_F(ExprTest, LiteralsInListsGetTheTypeThatTheOpAsksFor) {
  const Tensor first = Tensor::Vector<int64_t>({0, 1}).Reshaped(Shape({1, 2}));
  const auto joined =
      ops::SparseConcat(s_, {first, first}, {{7}, x_.Slice({0, Range(0, 1)})}, {{1, 2}, {1, 2}}, 1);
  EXPECT_EQ(joined.output_values.type(), ElementType::kFloat);
  Start();
  EXPECT_THAT(Numbers(joined.output_values), ElementsAre(7, 1));
  EXPECT_THAT(All<int64_t>(joined.output_shape), ElementsAre(1, 4));
}

TEST_F(ExprTest, NumbersInListsThatATypeDoesNotHaveAreRefused) {
  const Tensor first = Tensor::Vector<int64_t>({0, 1}).Reshaped(Shape({1, 2}));
  ops::SparseConcat(s_, {first, first}, {x_.Slice({0}), x_.Slice({0})}, {{1.5, 2.0}, {1, 2}}, 1);
  EXPECT_THAT(std::string(s_.status().message()), HasSubstr("1.5 is not a number of type int64"));
}

TEST_F(ExprTest, NumbersThatATypeDoesNotHaveAreRefused) {
  const auto refused = [](auto literal, Tensor other) {
    const Scope s = Scope::NewRoot();
    ops::Add(s, Const(s, std::move(other)), literal);
    EXPECT_EQ(s.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(s.status().message());
  };
  EXPECT_THAT(refused(0.5, Tensor::Scalar<int32_t>(1)), HasSubstr("0.5"));
  EXPECT_THAT(refused(256, Tensor::Scalar<uint8_t>(1)), HasSubstr("256"));
  EXPECT_THAT(refused(-1, Tensor::Scalar<uint64_t>(1)), HasSubstr("-1"));
  EXPECT_THAT(refused(9223372036854775808.0, Tensor::Scalar<int64_t>(1)), HasSubstr("int64"));
  EXPECT_THAT(refused(std::numeric_limits<double>::quiet_NaN(), Tensor::Scalar<int64_t>(1)),
              HasSubstr("int64"));
  // A tensor's type is meant.
  EXPECT_NE(refused(Tensor::Scalar(1.0), Tensor::Scalar<int64_t>(1)), "");
}

TEST_F(ExprTest, ReductionsOfAxes) {
  const Output rows = ReduceSum(s_, x_, {.axes = {{1}}});
  const Output kept = ReduceMean(s_, x_, {.axes = {{-2}}, .keep_dims = true});
  const Output most = ReduceMax(s_, x_), least = ReduceMin(s_, x_), all = ReduceProd(s_, x_);
  const Output large = Const(s_, Floats({1000, 1000, 0, -1e30f}, {2, 2}));
  const Output log = ReduceLogSumExp(s_, large, {.axes = {{1}}});
  const Output nothing =
      ReduceLogSumExp(s_, Const(s_, Floats({-std::numeric_limits<float>::infinity()}, {1})));
  const Output any = ReduceAny(s_, x_ > 5), every = ReduceAll(s_, x_ > 5, {.axes = {{0}}});
  Start();
  EXPECT_THAT(Numbers(rows), ElementsAre(6, 15));
  EXPECT_EQ(Value(kept).shape(), Shape({1, 3}));
  EXPECT_THAT(Numbers(kept), ElementsAre(2.5, 3.5, 4.5));
  EXPECT_EQ(Number(most), 6);
  EXPECT_EQ(Number(least), 1);
  EXPECT_EQ(Number(all), 720);
  EXPECT_THAT(Numbers(log), ElementsAre(::testing::FloatNear(1000.6931f, 1e-3f), 0));
  EXPECT_EQ(Number(nothing), -std::numeric_limits<float>::infinity());
  EXPECT_THAT(All<bool>(any), ElementsAre(true));
  EXPECT_THAT(All<bool>(every), ElementsAre(false, false, false));
}

}  // namespace
}  // namespace troupe
