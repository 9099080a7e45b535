// Sparse tensors of cards against the CPU's: indices in any order and repeated, no elements,
// several ranks, bad indices.
#include <gmock/gmock.h>

#include "tests/cuda_on_host/against_cpu.h"

namespace troupe::testing {
namespace {

using enum ElementType;
using ::testing::HasSubstr;

class SparseTensors : public ::testing::Test {
 protected:
  void SetUp() override { LoadCards(); }
};

Tensor Places(std::vector<int64_t> values) {
  return Tensor::Vector<int64_t>(absl::MakeConstSpan(values));
}

/// `n` indices in a tensor of this shape, of which some are equal; in row-major order if `ordered`.
Tensor Indices(int64_t n, const std::vector<int64_t>& shape, bool ordered, uint64_t seed = 1) {
  std::mt19937_64 random(seed);
  std::vector<std::vector<int64_t>> rows(n);
  for (auto& row : rows) {
    for (const int64_t size : shape) row.push_back(static_cast<int64_t>(random() % size));
  }
  if (ordered) std::sort(rows.begin(), rows.end());
  Tensor indices = *Tensor::Allocate(kInt64, Shape({n, static_cast<int64_t>(shape.size())}));
  int64_t* to = indices.mutable_data<int64_t>();
  for (const auto& row : rows) to = std::copy(row.begin(), row.end(), to);
  return indices;
}
/// The same, each once.
Tensor DistinctIndices(int64_t every, const std::vector<int64_t>& shape) {
  const int64_t rank = static_cast<int64_t>(shape.size());
  std::vector<int64_t> flat;
  for (int64_t place = every / 2; place < Shape(shape).num_elements(); place += every) {
    int64_t rest = place;
    flat.resize(flat.size() + shape.size());
    for (int64_t d = rank - 1; d >= 0; --d) {
      *(flat.end() - rank + d) = rest % shape[d];
      rest /= shape[d];
    }
  }
  Tensor indices =
      *Tensor::Allocate(kInt64, Shape({static_cast<int64_t>(flat.size()) / rank, rank}));
  std::copy(flat.begin(), flat.end(), indices.mutable_data<int64_t>());
  return indices;
}
Tensor As32(const Tensor& indices) {
  Tensor narrow = *Tensor::Allocate(kInt32, indices.shape());
  std::copy_n(indices.unchecked_data<int64_t>(), indices.num_elements(),
              narrow.mutable_data<int32_t>());
  return narrow;
}

std::string Message(const absl::Status& status) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  return std::string(status.message());
}

TEST_F(SparseTensors, InOrderOfIndices) {
  AgainstCpu both;
  for (const ElementType type : KernelTypes("SparseReorder", "GPU")) {
    for (const std::vector<int64_t>& shape :
         std::vector<std::vector<int64_t>>{{5}, {3, 4}, {7, 300, 2}, {int64_t{1} << 40, 9}}) {
      for (const int64_t n : {0, 1, 9, 600}) {
        // Values are known by their size alone.
        if (type != kFloat && (n != 9 || shape.size() != 3)) continue;
        both.Add(
            "SparseReorder",
            {{Indices(n, shape, false)}, {Numbers(type, Shape({n}), 1)}, OnHost(Places(shape))});
      }
    }
  }
  both.Add("SparseReorder", {{Tensor(*Tensor::Allocate(kInt64, Shape({1, 0})))},
                             {Tensor::Vector<float>({3})},
                             OnHost(Places({}))});
  both.Compare();
  EXPECT_THAT(Message(AgainstCpu::StatusOf("SparseReorder", {{Indices(2, {3, 9}, true)},
                                                             {Tensor::Vector<float>({1, 2})},
                                                             OnHost(Places({3, 1}))})),
              HasSubstr("which is not in [0, 1)"));
  // Nothing is in an empty shape.
  EXPECT_THAT(Message(AgainstCpu::StatusOf("SparseReorder", {{Indices(2, {3, 9}, true)},
                                                             {Tensor::Vector<float>({1, 2})},
                                                             OnHost(Places({3, 0}))})),
              HasSubstr("which is not in [0, 0)"));
}

TEST_F(SparseTensors, Reshaped) {
  AgainstCpu both;
  for (const int64_t n : {0, 1, 50}) {
    for (const std::vector<int64_t>& to :
         std::vector<std::vector<int64_t>>{{4, 6, 5}, {120}, {-1, 2}, {3, 1, 5, 8}, {5, -1, 6}}) {
      both.Add("SparseReshape",
               {{Indices(n, {4, 6, 5}, false)}, OnHost(Places({4, 6, 5})), OnHost(Places(to))});
    }
  }
  both.Compare();
  EXPECT_THAT(Message(AgainstCpu::StatusOf("SparseReshape", {{Indices(4, {4, 6, 50}, false)},
                                                             OnHost(Places({4, 6, 5})),
                                                             OnHost(Places({20, 6}))})),
              HasSubstr("which is not in [0, 5)"));
}

TEST_F(SparseTensors, Joined) {
  AgainstCpu both;
  for (const ElementType type : KernelTypes("SparseConcat", "GPU")) {
    for (const int axis : {0, 1, -1}) {
      if (type != kFloat && axis != 1) continue;
      std::vector<Tensor> indices, values, shapes;
      for (const int64_t n : {4, 0, 7}) {
        std::vector<int64_t> shape = {3, 4, 5};
        shape[axis < 0 ? 2 : axis] += n;
        indices.push_back(Indices(n, shape, true, n + 1));
        values.push_back(Numbers(type, Shape({n}), n + 1));
        shapes.push_back(Places(shape));
      }
      both.AddLists("SparseConcat", {indices, values, shapes}, /*on_host=*/2,
                    [axis](NodeSpec& node) { node.Attr("concat_dim", int64_t{axis}); });
    }
  }
  both.Compare();
}

TEST_F(SparseTensors, Split) {
  AgainstCpu both;
  for (const ElementType type : KernelTypes("SparseSplit", "GPU")) {
    for (const int64_t axis : {0, 1, 2}) {
      for (const int64_t parts : {1, 3, 4}) {
        for (const int64_t n : {0, 1, 40}) {
          if (type != kFloat && (axis != 2 || parts != 4 || n != 40)) continue;
          both.Add("SparseSplit",
                   {OnHost(Tensor::Scalar<int64_t>(axis)),
                    {Indices(n, {7, 4, 9}, false)},
                    {Numbers(type, Shape({n}), 1)},
                    OnHost(Places({7, 4, 9}))},
                   {}, [parts](NodeSpec& node) { node.Attr("num_split", parts); });
        }
      }
    }
  }
  both.Compare();
  EXPECT_THAT(Message(AgainstCpu::StatusOf("SparseSplit",
                                           {OnHost(Tensor::Scalar<int64_t>(0)),
                                            {Indices(5, {7, 90}, false)},
                                            {Numbers(kFloat, Shape({5}), 1)},
                                            OnHost(Places({7, 1}))},
                                           [](NodeSpec& node) { node.Attr("num_split", 2); })),
              HasSubstr("which is not in [0, 1)"));
}

TEST_F(SparseTensors, Slices) {
  AgainstCpu both;
  for (const ElementType type : KernelTypes("SparseSlice", "GPU")) {
    for (const int64_t n : {0, 1, 40, 2000}) {
      if (n == 2000 && type != kDouble) continue;
      for (const auto& [start, size] :
           std::vector<std::pair<std::vector<int64_t>, std::vector<int64_t>>>{
               {{0, 0, 0}, {7, 4, 9}},
               {{2, 1, 3}, {2, 2, 100}},
               {{-1, 0, 0}, {3, 4, 9}},
               {{9, 0, 0}, {1, 1, 1}}}) {
        both.Add("SparseSlice", {{Indices(n, {7, 4, 9}, false)},
                                 {Numbers(type, Shape({n}), 1)},
                                 OnHost(Places({7, 4, 9})),
                                 OnHost(Places(start)),
                                 OnHost(Places(size))});
      }
    }
  }
  both.Compare();
  EXPECT_THAT(Message(AgainstCpu::StatusOf("SparseSlice", {{Indices(5, {7, 90}, false)},
                                                           {Numbers(kFloat, Shape({5}), 1)},
                                                           OnHost(Places({7, 1})),
                                                           OnHost(Places({0, 0})),
                                                           OnHost(Places({1, 1}))})),
              HasSubstr("which is not in [0, 1)"));
}

TEST_F(SparseTensors, GradientsOfSlices) {
  AgainstCpu both;
  // Of every other element of [6, 8] the slice from [2, 3] on.
  const Tensor input = DistinctIndices(2, {6, 8});
  std::vector<int64_t> inside;
  for (int64_t i = 0; i < input.dim(0); ++i) {
    const int64_t row = input.unchecked_data<int64_t>()[2 * i] - 2;
    const int64_t column = input.unchecked_data<int64_t>()[2 * i + 1] - 3;
    if (row >= 0 && column >= 0) inside.insert(inside.end(), {row, column});
  }
  Tensor output = Places(inside);
  const int64_t n = static_cast<int64_t>(inside.size()) / 2;
  output.set_shape(Shape({n, 2}));
  for (const ElementType type : KernelTypes("SparseSliceGrad", "GPU")) {
    both.Add("SparseSliceGrad",
             {{Numbers(type, Shape({n}), 1)}, {input}, OnHost(Places({2, 3})), {output}});
    both.Add("SparseSliceGrad", {{Numbers(type, Shape({0}), 1)},
                                 {input},
                                 OnHost(Places({2, 3})),
                                 {*Tensor::Allocate(kInt64, Shape({0, 2}))}});
  }
  both.Compare();
  EXPECT_EQ(AgainstCpu::StatusOf(
                "SparseSliceGrad",
                {{Numbers(kFloat, Shape({n}), 1)}, {input}, OnHost(Places({2, 4})), {output}})
                .code(),
            absl::StatusCode::kInternal);
}

TEST_F(SparseTensors, EmptyRows) {
  AgainstCpu both;
  for (const ElementType type : KernelTypes("SparseFillEmptyRows", "GPU")) {
    for (const int64_t n : {0, 1, 9, 700}) {
      if (n != 9 && type != kFloat) continue;
      for (const std::vector<int64_t>& shape :
           std::vector<std::vector<int64_t>>{{1}, {12, 3}, {20, 2, 2}, {900, 4}}) {
        for (const bool ordered : {false, true}) {
          if (ordered && type != kFloat) continue;
          both.Add("SparseFillEmptyRows", {{Indices(n, shape, ordered)},
                                           {Numbers(type, Shape({n}), 1)},
                                           OnHost(Places(shape)),
                                           {Numbers(type, Shape(), 2)}});
        }
      }
    }
    both.Add("SparseFillEmptyRows", {{Indices(0, {5, 3}, true)},
                                     {Numbers(type, Shape({0}), 1)},
                                     OnHost(Places({0, 3})),
                                     {Numbers(type, Shape(), 2)}});
  }
  both.Compare();
  Tensor indices = Places({0, 0, 5, 1});
  indices.set_shape(Shape({2, 2}));
  EXPECT_THAT(Message(AgainstCpu::StatusOf("SparseFillEmptyRows", {{indices},
                                                                   {Tensor::Vector<float>({1, 2})},
                                                                   OnHost(Places({5, 3})),
                                                                   {Tensor::Scalar(1.0f)}})),
              HasSubstr("indices[1,0] = 5 is not in [0, 5)"));
  // No memory has so many rows.
  for (const std::vector<int64_t>& shape : std::vector<std::vector<int64_t>>{
           {std::numeric_limits<int64_t>::max()}, {std::numeric_limits<int64_t>::max(), 0}}) {
    const int64_t rank = static_cast<int64_t>(shape.size());
    const absl::Status status =
        AgainstCpu::StatusOf("SparseFillEmptyRows", {{*Tensor::Allocate(kInt64, Shape({0, rank}))},
                                                     {*Tensor::Allocate(kFloat, Shape({0}))},
                                                     OnHost(Places(shape)),
                                                     {Tensor::Scalar(1.0f)}});
    EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  }
}

TEST_F(SparseTensors, GradientsOfEmptyRows) {
  AgainstCpu both;
  for (const ElementType type : KernelTypes("SparseFillEmptyRowsGrad", "GPU")) {
    const bool is_float = IsFloating(type);
    for (const int64_t n : {0, 1, 40}) {
      for (const int64_t more : {0, 3, 3000}) {
        if (more == 3000 && (type == kHalf || type == kBfloat16)) continue;
        std::vector<int64_t> map;
        for (int64_t i = 0; i < n; ++i) map.push_back((i * 7) % (n + more));
        both.Add(
            "SparseFillEmptyRowsGrad",
            {{Places(map)},
             {Numbers(type, Shape({n + more}), 1, is_float ? Values::kPositive : Values::kAny)}},
            {is_float ? 64.0 : 0.0});
      }
    }
  }
  both.Compare();
  EXPECT_THAT(Message(AgainstCpu::StatusOf("SparseFillEmptyRowsGrad",
                                           {{Places({0, 3})}, {Tensor::Vector<float>({1, 2, 3})}})),
              HasSubstr("reverse_index_map[1] = 3 is not in [0, 3)"));
}

TEST_F(SparseTensors, TimesDenseOnes) {
  AgainstCpu both;
  for (const ElementType type : KernelTypes("SparseTensorDenseMatMul", "GPU")) {
    const Within within{type == kHalf ? 2.0 : 128.0};
    for (const auto& [rows, inner, columns] : std::vector<std::array<int64_t, 3>>{
             {1, 1, 1}, {5, 7, 3}, {40, 33, 70}, {3, 5, 300}, {4, 0, 2}, {4, 3, 0}, {0, 3, 2}}) {
      for (const int64_t count : {0, 1, 50, 900}) {
        if (count > 0 && rows * inner == 0) continue;
        if (type != kFloat && count != 50) continue;
        for (const bool adjoint_a : {false, true}) {
          for (const bool adjoint_b : {false, true}) {
            const std::vector<int64_t> a =
                adjoint_a ? std::vector<int64_t>{inner, rows} : std::vector<int64_t>{rows, inner};
            const Tensor indices = Indices(count, a, adjoint_b);
            both.Add("SparseTensorDenseMatMul",
                     {{adjoint_a ? As32(indices) : indices},
                      {Numbers(type, Shape({count}), 1, Values::kPositive)},
                      OnHost(Places(a)),
                      {Numbers(type, adjoint_b ? Shape({columns, inner}) : Shape({inner, columns}),
                               2, Values::kPositive)}},
                     within, [=](NodeSpec& node) {
                       node.Attr("adjoint_a", adjoint_a).Attr("adjoint_b", adjoint_b);
                     });
          }
        }
      }
    }
  }
  both.Compare();
  for (const bool adjoint : {false, true}) {
    Tensor indices = Places({0, 0, 2, 4});
    indices.set_shape(Shape({2, 2}));
    EXPECT_THAT(Message(AgainstCpu::StatusOf(
                    "SparseTensorDenseMatMul",
                    {{indices},
                     {Tensor::Vector<float>({1, 2})},
                     OnHost(Places({3, 4})),
                     {Numbers(kFloat, adjoint ? Shape({3, 2}) : Shape({4, 2}), 1)}},
                    [=](NodeSpec& node) { node.Attr("adjoint_a", adjoint); })),
                HasSubstr("an index of element 1 is 4, which is not in [0, 4)"));
  }
}

}  // namespace
}  // namespace troupe::testing
