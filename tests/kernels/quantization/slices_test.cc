// Ops with a range or a scale for each slice along an axis: each slice must become what it becomes
// by itself, with all lengths of runs.
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "devices/quantized.h"
#include "gtest/gtest.h"
#include "tests/kernels/kernel_test_util.h"

namespace troupe::testing {
namespace {

/// The op, with and without an axis of data of 3 dimensions, on the inputs: the first `data` of
/// them have the shape of the output, the others an element for each slice.
struct SlicedOp {
  std::string name;
  std::function<void(OpTest&)> attributes;
  std::string axis = "axis";
  ElementType type = ElementType::kFloat;
  int data = 1;
  std::vector<std::vector<double>> of_slices;
  ElementType second_type = ElementType::kFloat;  ///< Of the second, fourth ... of `of_slices`.
};

/// Slice i of [:, i, :].
Tensor SliceOf(const Tensor& all, int64_t i) {
  const int64_t run = all.dim(2) * static_cast<int64_t>(all.bytes()) / all.num_elements();
  Tensor slice = Tensor::Uninitialized(all.type(), Shape({all.dim(0), 1, all.dim(2)}));
  for (int64_t o = 0; o < all.dim(0); ++o) {
    std::memcpy(static_cast<char*>(slice.mutable_raw_data()) + o * run,
                static_cast<const char*>(all.raw_data()) + (o * all.dim(1) + i) * run,
                static_cast<size_t>(run));
  }
  return slice;
}

/// Numbers from -4 to 4 in steps of 1/64; of other types any bits.
Tensor Numbers(ElementType type, const Shape& shape, uint32_t seed) {
  Tensor t = Tensor::Uninitialized(type, shape);
  for (size_t i = 0; i < t.bytes(); ++i) {
    seed = seed * 1664525 + 1013904223;
    static_cast<uint8_t*>(t.mutable_raw_data())[i] = static_cast<uint8_t>(seed >> 24);
  }
  for (int64_t i = 0; type == ElementType::kFloat && i < t.num_elements(); ++i) {
    seed = seed * 1664525 + 1013904223;
    t.mutable_data<float>()[i] = static_cast<float>(seed >> 23) / 64 - 4;
  }
  return t;
}

void ExpectEachSliceByItself(const SlicedOp& sliced, const Shape& shape, int threads) {
  SCOPED_TRACE(sliced.name + shape.ToString());
  const auto run = [&](int64_t first, int64_t count, const std::vector<Tensor>& data) {
    OpTest op(sliced.name, threads);
    sliced.attributes(op);
    op.Attr(sliced.axis, count == 1 ? int64_t{-1} : int64_t{1});
    for (const Tensor& tensor : data) op.Input(tensor);
    for (size_t k = 0; k < sliced.of_slices.size(); ++k) {
      std::vector<double> values;
      for (int64_t i = first; i < first + count; ++i) {
        values.push_back(sliced.of_slices[k][static_cast<size_t>(i) % sliced.of_slices[k].size()]);
      }
      op.Input(MakeTensor(k % 2 == 1 ? sliced.second_type : ElementType::kFloat,
                          count == 1 ? Shape() : Shape({count}), values));
    }
    EXPECT_EQ(op.Run(), absl::OkStatus());
    return op.output(0);
  };
  std::vector<Tensor> data;
  for (int k = 0; k < sliced.data; ++k) data.push_back(Numbers(sliced.type, shape, 7 + k));
  const Tensor all = run(0, shape.dim(1), data);
  ASSERT_EQ(all.shape(), shape);
  for (int64_t i = 0; i < shape.dim(1); ++i) {
    std::vector<Tensor> one;
    for (const Tensor& tensor : data) one.push_back(SliceOf(tensor, i));
    const Tensor got = SliceOf(all, i), want = run(i, 1, one);
    ASSERT_EQ(got.bytes(), want.bytes());
    EXPECT_EQ(std::memcmp(got.raw_data(), want.raw_data(), got.bytes()), 0) << "slice " << i;
  }
}

TEST(Slices, AreWhatEachIsByItself) {
  const std::vector<double> low = {-3, -0.5, -1, -2}, high = {2, 1, 3.5, 0.25, 5};
  const std::vector<double> scales = {0.5, 0.031, 2, 0.1}, zeros = {0, 3, -7};
  const auto uniform = [](ElementType out) {
    return [out](OpTest& op) {
      op.Attr("quantization_min_val", -100).Attr("quantization_max_val", 90).Attr("Tout", out);
    };
  };
  const auto to_and_fro = [](bool given) {
    return [given](OpTest& op) { op.Attr("range_given", given).Attr("num_bits", 5); };
  };
  const SlicedOp ops[] = {
      {.name = "QuantizeV2",
       .attributes = [](OpTest& op) { op.Attr("T", ElementType::kQint8).Attr("mode", "SCALED"); },
       .of_slices = {low, high}},
      {.name = "Dequantize",
       .attributes = [](OpTest&) {},
       .type = ElementType::kQuint8,
       .of_slices = {low, high}},
      {.name = "QuantizeAndDequantizeV2", .attributes = to_and_fro(true), .of_slices = {low, high}},
      {.name = "QuantizeAndDequantizeV2",
       .attributes = to_and_fro(false),
       .of_slices = {low, high}},
      {.name = "QuantizeAndDequantizeV4Grad",
       .attributes = [](OpTest&) {},
       .data = 2,
       .of_slices = {low, high}},
      {.name = "UniformQuantize",
       .attributes = uniform(ElementType::kQint8),
       .axis = "quantization_axis",
       .of_slices = {scales, zeros},
       .second_type = ElementType::kInt32},
      {.name = "UniformDequantize",
       .attributes = uniform(ElementType::kFloat),
       .axis = "quantization_axis",
       .type = ElementType::kQint8,
       .of_slices = {scales, zeros},
       .second_type = ElementType::kInt32},
  };
  for (const SlicedOp& op : ops) {
    for (const Shape& shape : {Shape({1, 3, 50}), Shape({1300, 3, 1}), Shape({700, 5, 7}),
                               Shape({40, 2000, 1}), Shape({5, 4, 31}), Shape({9, 3, 40})}) {
      ExpectEachSliceByItself(op, shape, 1);
    }
    ExpectEachSliceByItself(op, Shape({20000, 3, 2}), 3);
  }
}

}  // namespace
}  // namespace troupe::testing
