#include "tests/api/control_flow/flow_test_util.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;

class TensorArrayTest : public FlowTest {
 protected:
  Output Matrix(int rows, int columns) {
    std::vector<float> values(static_cast<size_t>(rows) * columns);
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
    return Const(s_, Tensor::FromValues<float>(values, Shape({rows, columns})).value());
  }
};
INSTANTIATE_TEST_SUITE_P(Optimize, TensorArrayTest, testing::Bool());

TEST_P(TensorArrayTest, IsFilledByALoop) {
  Output n = Placeholder(ElementType::kInt32);
  TensorArray array(s_, n, ElementType::kFloat);
  Outputs end = WhileLoop(
      s_, {0, array.flow()}, [&](const Scope& s, Variables v) { return ops::Less(s, v[0], n); },
      [&](const Scope& s, Variables v) {
        Output square = ops::Cast(s, ops::Mul(s, v[0], v[0]), ElementType::kFloat);
        return Outputs{ops::Add(s, v[0], 1), array.WithFlow(v[1]).Write(s, v[0], square).flow()};
      });
  ASSERT_EQ(end.size(), 2u) << s_.status();
  Output all = array.WithFlow(end[1]).Stack(s_);
  EXPECT_THAT(Vector<float>(all, {{n, Tensor::Scalar<int32_t>(5)}}), ElementsAre(0, 1, 4, 9, 16));
  EXPECT_EQ(array.element_shape(), PartialShape({})) << "inferred from what is written";
}

TEST_P(TensorArrayTest, UnstacksReadsAndGathers) {
  TensorArray array = TensorArray(s_, 4, ElementType::kFloat, {.clear_after_read = false})
                          .Unstack(s_, Matrix(4, 2));
  ASSERT_TRUE(s_.ok()) << s_.status();
  EXPECT_EQ(array.Read(s_, 2).shape(), PartialShape({2}));
  EXPECT_THAT(Vector<float>(array.Read(s_, 2)), ElementsAre(4, 5));
  EXPECT_THAT(Vector<float>(array.Gather(s_, {3, 0})), ElementsAre(6, 7, 0, 1));
  EXPECT_THAT(Vector<float>(array.Concat(s_)), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_EQ(Scalar<int32_t>(array.Size(s_)), 4);
}

TEST_P(TensorArrayTest, GrowsAndSplits) {
  TensorArray array(s_, 0, ElementType::kFloat,
                    {.dynamic_size = true, .identical_element_shapes = false});
  array = array.Split(s_, Matrix(5, 1), {int64_t{2}, int64_t{0}, int64_t{3}});
  EXPECT_THAT(Vector<float>(array.Read(s_, 2)), ElementsAre(2, 3, 4));
  EXPECT_EQ(Scalar<int32_t>(array.Size(s_)), 3);
}

TEST_P(TensorArrayTest, WrongUseIsAnError) {
  TensorArray array(s_, 2, ElementType::kFloat);
  struct Case {
    Output fetch;
    const char* about;
  };
  const Case cases[] = {
      {array.Read(s_, 0), "read before it is written"},
      {array.Read(s_, 5), "read out of range"},
      {array.Write(s_, -1, 1.0f).flow(), "written out of range"},
      {array.Write(s_, 0, 1.0f).Write(s_, 0, 2.0f).flow(), "written twice"},
  };
  auto session = NewSession();
  for (const Case& c : cases) {
    auto result = session->Run({c.fetch});
    EXPECT_FALSE(result.ok()) << c.about;
    EXPECT_THAT(std::string(result.status().message()), HasSubstr(c.fetch.node->name())) << c.about;
  }
}

TEST_P(TensorArrayTest, ElementShapesMustAgree) {
  TensorArray array(s_, 2, ElementType::kFloat);
  array.Write(s_, 0, {1.0f, 2.0f}).Write(s_, 1, {1.0f, 2.0f, 3.0f});
  ExpectError("have the shape [2], but [3] is written");
}

TEST_P(TensorArrayTest, AnArrayThatWasNotMadeIsRefused) {
  TensorArray().Size(s_);
  ExpectError("has not been made");
}

// --- maps, folds and scans ---

TEST_P(TensorArrayTest, MapFn) {
  Output x = Matrix(5, 3);
  Output y = MapFn(
      s_, [](const Scope& s, Output row) { return ops::Sum(s, ops::Square(s, row), 0); }, x);
  EXPECT_EQ(y.shape(), PartialShape({5}));
  std::vector<float> want(5);
  for (int i = 0; i < 15; ++i) want[i / 3] += static_cast<float>(i * i);
  EXPECT_THAT(Vector<float>(y), ElementsAreArray(want));
}

TEST_P(TensorArrayTest, MapFnOfSeveralTensorsAndTypes) {
  Output a = Placeholder(ElementType::kFloat, PartialShape({-1, 2}));
  Output b = Placeholder(ElementType::kInt32, PartialShape({-1}));
  Outputs y =
      MapFn(s_,
            [&](const Scope& s, Variables rows) {
              return Outputs{ops::Mul(s, rows[0], ops::Cast(s, rows[1], ElementType::kFloat)),
                             ops::Less(s, rows[1], 0), ops::Add(s, rows[1], 1)};
            },
            {a, b}, {ElementType::kFloat, ElementType::kBool, ElementType::kInt32});
  ASSERT_EQ(y.size(), 3u) << s_.status();
  EXPECT_EQ(y[0].shape(), PartialShape({-1, 2}));
  const float rows[] = {1, 2, 3, 4, 5, 6};
  auto values = Run(y, {{a, Tensor::FromValues<float>(rows, Shape({3, 2})).value()},
                        {b, Tensor::Vector<int32_t>({2, -1, 0})}});
  ASSERT_TRUE(values[0].valid());
  EXPECT_THAT(
      std::vector<float>(values[0].unchecked_data<float>(), values[0].unchecked_data<float>() + 6),
      ElementsAre(2, 4, -3, -4, 0, 0));
  EXPECT_TRUE(values[1].unchecked_data<bool>()[1]);
  EXPECT_EQ(values[2].unchecked_data<int32_t>()[0], 3);
}

TEST_P(TensorArrayTest, MapFnInMapFn) {
  Output x = Matrix(3, 4);
  Output y = MapFn(
      s_,
      [&](const Scope& s, Output row) {
        return MapFn(
            s, [&](const Scope& t, Output v) { return ops::Add(t, v, ops::Sum(t, row, 0)); }, row);
      },
      x);
  std::vector<float> want;
  for (int i = 0; i < 12; ++i) {
    const int first = i / 4 * 4;
    want.push_back(static_cast<float>(i + 4 * first + 6));
  }
  EXPECT_THAT(Vector<float>(y), ElementsAreArray(want));
}

TEST_P(TensorArrayTest, MapFnOfNoRows) {
  Output x = Placeholder(ElementType::kFloat, PartialShape({-1, 3}));
  Output y = MapFn(
      s_, [](const Scope& s, Output row) { return ops::Neg(s, row); }, x);
  auto values = Run({y}, {{x, Tensor::FromValues<float>({}, Shape({0, 3})).value()}});
  ASSERT_TRUE(values[0].valid());
  EXPECT_EQ(values[0].shape(), Shape({0, 3}));
}

TEST_P(TensorArrayTest, FoldsGoFromEitherEnd) {
  Output x = Const(s_, Tensor::Vector<float>({1, 2, 3, 4}));
  SingleFoldFunction f = [](const Scope& s, Output acc, Output row) {
    return ops::Sub(s, ops::Mul(s, acc, 2.0f), row);
  };
  auto left = [](float acc, std::vector<float> rows) {
    for (float row : rows) acc = acc * 2 - row;
    return acc;
  };
  EXPECT_EQ(Scalar<float>(FoldL(s_, f, x)), left(1, {2, 3, 4}));
  EXPECT_EQ(Scalar<float>(FoldL(s_, f, x, 10.0f)), left(10, {1, 2, 3, 4}));
  EXPECT_EQ(Scalar<float>(FoldR(s_, f, x)), left(4, {3, 2, 1}));
  EXPECT_EQ(Scalar<float>(FoldR(s_, f, x, 10.0f)), left(10, {4, 3, 2, 1}));
}

TEST_P(TensorArrayTest, ScanKeepsWhatIsAccumulated) {
  Output x = Const(s_, Tensor::Vector<float>({1, 2, 3, 4}));
  SingleFoldFunction f = [](const Scope& s, Output acc, Output row) {
    return ops::Add(s, acc, row);
  };
  EXPECT_THAT(Vector<float>(Scan(s_, f, x)), ElementsAre(1, 3, 6, 10));
  EXPECT_THAT(Vector<float>(Scan(s_, f, x, 10.0f)), ElementsAre(11, 13, 16, 20));
  EXPECT_THAT(Vector<float>(Scan(s_, f, x, std::nullopt, {.reverse = true})),
              ElementsAre(10, 9, 7, 4));
  EXPECT_THAT(Vector<float>(Scan(s_, f, x, 10.0f, {.reverse = true})), ElementsAre(20, 19, 17, 14));
}

TEST_P(TensorArrayTest, ScanOfSeveral) {
  Output x = Const(s_, Tensor::Vector<int32_t>({1, 2, 3, 4, 5}));
  // Fibonacci's numbers, and their sums with x.
  Outputs y =
      Scan(s_,
           [](const Scope& s, Variables acc, Variables rows) {
             return Outputs{acc[1], ops::Add(s, acc[0], acc[1]), ops::Add(s, acc[0], rows[0])};
           },
           {x}, {0, 1, 0});
  ASSERT_EQ(y.size(), 3u) << s_.status();
  EXPECT_THAT(Vector<int32_t>(y[0]), ElementsAre(1, 1, 2, 3, 5));
  EXPECT_THAT(Vector<int32_t>(y[2]), ElementsAre(1, 3, 4, 6, 8));
}

TEST_P(TensorArrayTest, WrongMapsAndFoldsAreRefused) {
  SingleMapFunction neg = [](const Scope& s, Output row) { return ops::Neg(s, row); };
  MapFn(s_, neg, 1.0f);
  ExpectError("is a scalar");
  s_ = Scope::NewRoot();
  MapFn(s_, neg, Matrix(2, 2), ElementType::kInt32);
  ExpectError("result 0 of the function is float, but int32 is expected");
  s_ = Scope::NewRoot();
  MapFn(s_, [](const Scope&, Variables) { return Outputs{}; }, {Matrix(2, 2), Matrix(3, 2)});
  ExpectError("equally many rows");
  s_ = Scope::NewRoot();
  FoldL(
      s_, [](const Scope& s, Output, Output row) { return ops::Cast(s, row, ElementType::kInt32); },
      Matrix(2, 2));
  ExpectError("a variable keeps its type");
  s_ = Scope::NewRoot();
  Scan(s_, [](const Scope&, Variables, Variables) { return Outputs{}; }, {Matrix(2, 2)});
  ExpectError("gives 0 results for 1 accumulated values");
}

}  // namespace
}  // namespace troupe
