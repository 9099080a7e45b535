// Every gradient against central differences. A new op is one line in `Cases`.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <iterator>
#include <regex>
#include <set>

#include <gtest/gtest.h>

#include "api/session.h"
#include "graph/gradients/add_gradients.h"
#include "graph/protos/graph.pb.h"
#include "tests/graph/gradients/checked_elsewhere.h"
#include "tests/graph/gradients/gradient_test_util.h"

namespace troupe {
namespace {

using Attrs = std::function<void(NodeSpec&)>;
using Ints = absl::Span<const int64_t>;

/// An input of the op under test: numbers in [low, high), different from case to case, or a
/// constant.
struct In {
  Shape shape;
  double low = -1, high = 1;
  Tensor constant;
};
In X(Shape shape, double low = -1, double high = 1) { return {std::move(shape), low, high, {}}; }
/// Numbers without ties or near-ties, far from 0.
In Distinct(Shape shape) { return {std::move(shape), 7, 7, {}}; }
In C(Tensor constant) { return {constant.shape(), 0, 0, constant}; }
In I(std::initializer_list<int32_t> values) { return C(Tensor::Vector<int32_t>(values)); }
In I(int32_t value) { return C(Tensor::Scalar<int32_t>(value)); }
In I(std::initializer_list<int32_t> values, Shape shape) {
  return C(Tensor::FromValues<int32_t>(absl::MakeConstSpan(values.begin(), values.size()), shape)
               .value());
}
In B(std::initializer_list<bool> values) { return C(Tensor::Vector<bool>(values)); }

struct Case {
  std::string op;
  std::vector<In> inputs;
  Attrs attrs = nullptr;
  /// Sizes of the op's list arguments, in order.
  std::vector<int> lists = {};
  /// Outputs that are differentiated; empty: all of floating type.
  std::vector<int> outputs = {};
  ElementType type = ElementType::kDouble;
};

Attrs Bools(std::vector<std::pair<std::string, bool>> values) {
  return [values](NodeSpec& spec) {
    for (const auto& [name, value] : values) spec.Attr(name, value);
  };
}
Attrs Number(std::string name, int value) {
  return [name, value](NodeSpec& spec) { spec.Attr(name, value); };
}
Attrs Conv(std::vector<int64_t> strides, std::string padding) {
  return [=](NodeSpec& spec) { spec.Attr("strides", Ints(strides)).Attr("padding", padding); };
}
Attrs Pool(std::vector<int64_t> size, std::vector<int64_t> strides, std::string padding) {
  return [=](NodeSpec& spec) {
    spec.Attr("ksize", Ints(size)).Attr("strides", Ints(strides)).Attr("padding", padding);
  };
}
Attrs Text(std::string name, std::string value) {
  return [=](NodeSpec& spec) { spec.Attr(name, value); };
}
Attrs Training(bool training, std::string format = "NHWC") {
  return [=](NodeSpec& spec) {
    spec.Attr("is_training", training).Attr("data_format", format).Attr("epsilon", 0.01f);
  };
}
Attrs Type(std::string name, ElementType type) {
  return [=](NodeSpec& spec) { spec.Attr(name, type); };
}

const ElementType kFloat = ElementType::kFloat;

void AddMathCases(std::vector<Case>* cases) {
  for (const char* op : {"Abs", "Reciprocal", "Inv", "Log", "Log1p", "Rsqrt", "Sqrt"}) {
    cases->push_back({op, {X({2, 3}, 0.5, 2)}});
  }
  for (const char* op :
       {"Cos",      "Elu",    "Erf",       "Exp",     "Expm1",   "Neg",     "Relu",
        "Relu6",    "Selu",   "LeakyRelu", "Sigmoid", "Sign",    "Sin",     "Softplus",
        "Softsign", "Square", "Tan",       "Tanh",    "L2Loss",  "Softmax", "LogSoftmax",
        "Ceil",     "Floor",  "Rint",      "Round",   "Identity"}) {
    cases->push_back({op, {Distinct({2, 3})}});
  }
  for (const char* op :
       {"EluGrad", "Relu6Grad", "ReluGrad", "SeluGrad", "LeakyReluGrad", "SoftplusGrad"}) {
    cases->push_back({op, {X({2, 3}), Distinct({2, 3})}});
  }
  for (const char* op :
       {"InvGrad", "ReciprocalGrad", "RsqrtGrad", "SigmoidGrad", "SqrtGrad", "TanhGrad"}) {
    cases->push_back({op, {X({2, 3}, 0.5, 1), X({2, 3})}});
  }
  for (const char* op : {"Add", "AddV2", "Div", "DivNoNan", "FloorDiv", "FloorMod", "Maximum",
                         "Minimum", "Mul", "Pow", "RealDiv", "SquaredDifference", "Sub"}) {
    cases->push_back({op, {X({2, 3}, 1, 1.4), X({2, 3}, 0.5, 0.9)}});
    cases->push_back({op, {X({2, 3}, 1, 1.4), X({3}, 0.5, 0.9)}});
    cases->push_back({op, {X({2, 1}, 1, 1.4), X({4, 1, 3}, 0.5, 0.9)}});
    cases->push_back({op, {X({}, 1, 1.4), X({2, 2}, 0.5, 0.9)}});
  }
  cases->push_back({"TruncateDiv", {C(Tensor::Scalar<int32_t>(7)), I(2)}});
  cases->push_back({"AddN", {X({2, 3}), X({2, 3}), X({2, 3})}, nullptr, {3}});
  cases->push_back({"Cast", {X({2, 3})}, Type("DstT", kFloat), {}, {}, ElementType::kDouble});
  cases->push_back({"ClipByValue", {X({6}, -3, 3), X({}, -1, -0.9), X({}, 0.9, 1)}});
  cases->push_back({"Select", {B({true, false}), X({2, 3}), X({2, 3})}});
  cases->push_back({"SelectV2", {B({true, false, true}), X({2, 3}), X({3})}});
  cases->push_back({"SelectV2", {B({true, false, true}), X({}), X({2, 1})}});
}

void AddReductionCases(std::vector<Case>* cases) {
  for (const char* op : {"Max", "Mean", "Min", "Prod", "Sum"}) {
    for (bool keep : {false, true}) {
      cases->push_back({op, {Distinct({2, 3, 2}), I({1})}, Bools({{"keep_dims", keep}})});
      cases->push_back({op, {Distinct({2, 3, 2}), I({2, 0})}, Bools({{"keep_dims", keep}})});
      cases->push_back({op, {Distinct({2, 3}), I({-2, -1})}, Bools({{"keep_dims", keep}})});
    }
    cases->push_back({op, {Distinct({2, 3}), I(0)}});
    cases->push_back({op, {Distinct({3}), C(Tensor::Vector<int32_t>({}))}});
  }
  for (const char* op : {"Cumsum", "Cumprod"}) {
    for (bool exclusive : {false, true}) {
      for (bool reverse : {false, true}) {
        cases->push_back({op,
                          {X({3, 2}, 0.5, 1.5), I(0)},
                          Bools({{"exclusive", exclusive}, {"reverse", reverse}})});
      }
    }
  }
  cases->push_back({"UnsortedSegmentSum", {X({4, 2}), I({1, 0, -1, 1}), I(3)}});
  cases->push_back({"UnsortedSegmentSum", {X({2, 2}), I({1, 0, -1, 1}, {2, 2}), I(2)}});
  for (const char* op : {"ArgMax", "ArgMin"}) cases->push_back({op, {Distinct({2, 3}), I(1)}});
}

void AddArrayCases(std::vector<Case>* cases) {
  auto add = [&](Case c) { cases->push_back(std::move(c)); };
  add({"BroadcastTo", {X({2, 1}), I({3, 2, 2})}});
  add({"CheckNumerics", {X({2})}, Text("message", "bad")});
  add({"Concat", {I(1), X({2, 1}), X({2, 3})}, nullptr, {2}});
  add({"ConcatV2", {X({1, 2}), X({3, 2}), I(-2)}, nullptr, {2}});
  add({"DynamicStitch", {I({2, 0}), I(1), X({2, 3}), X({3})}, nullptr, {2, 2}});
  add({"EnsureShape", {X({2, 3})}, [](NodeSpec& spec) {
         spec.Attr("shape", PartialShape({-1, 3}));
       }});
  add({"ExpandDims", {X({2, 3}), I(-2)}});
  add({"Fill", {I({2, 3}), X({})}});
  add({"Gather", {X({4, 2}), I({3, 1, 1})}});
  add({"Gather", {X({4, 2}), I(2)}});
  add({"GatherV2", {X({4, 2}), I({3, 1, 1, 0}, {2, 2}), I(0)}});
  add({"GatherV2", {X({2, 4, 2}), I({3, 1, 1}), I(1)}});
  add({"GatherV2", {X({2, 4}), I(2), I(-1)}});
  add({"GatherV2", {X({2, 4, 2}), I({3, 1, 1, 0}, {2, 2}), I(1)}, Number("batch_dims", 1)});
  add({"GatherV2", {X({2, 2, 4}), I({3, 1, 1, 0}, {2, 2}), I(2)}, Number("batch_dims", 1)});
  add({"GatherV2", {X({1, 4, 2}), I({3, 1}, {1, 2}), I(1)}, Number("batch_dims", -1)});
  add({"IdentityN", {X({2}), X({3})}, nullptr, {2}});
  add({"Pack", {X({2, 3}), X({2, 3})}, Number("axis", 1), {2}});
  add({"Pad", {X({2, 3}), I({1, 0, 2, 1}, {2, 2})}});
  add({"PadV2", {X({2, 3}), I({1, 0, 2, 1}, {2, 2}), C(Tensor::Scalar<double>(5))}});
  add({"PlaceholderWithDefault", {X({2, 3})}, [](NodeSpec& spec) {
         spec.Attr("shape", PartialShape({2, 3}));
       }});
  add({"Reshape", {X({2, 3}), I({3, -1})}});
  add({"ReverseV2", {X({2, 3}), I({1})}});
  add({"ScatterNd", {I({1, 3, 1}, {3, 1}), X({3, 2}), I({4, 2})}});
  add({"ScatterNd", {I({0, 1, 1, 2}, {2, 2}), X({2}), I({2, 3})}});
  add({"Slice", {X({3, 4}), I({1, 0}), I({2, -1})}});
  add({"Split", {I(1), X({2, 4})}, Number("num_split", 2)});
  add({"SplitV", {X({2, 4}), I({1, 3}), I(1)}, Number("num_split", 2)});
  add({"Squeeze", {X({2, 1, 3})}});
  add({"StridedSlice",
       {X({4, 5}), I({3, 1}), I({0, 2}), I({-2, 1})},
       Number("shrink_axis_mask", 2)});
  add({"StridedSlice", {X({4, 5}), I({1, 0, 0}), I({3, 0, 4}), I({1, 1, 2})}, [](NodeSpec& spec) {
         spec.Attr("new_axis_mask", 2).Attr("begin_mask", 4);
       }});
  add({"StridedSliceGrad", {I({4, 5}), I({0, 1}), I({4, 4}), I({2, 1}), X({2, 3})}});
  add({"Tile", {X({2, 3}), I({2, 1})}});
  add({"Tile", {X({2, 3}), I({3, 2})}});
  add({"TopKV2", {Distinct({2, 4}), I(2)}});
  add({"TopKV2", {Distinct({5}), I(3)}});
  add({"Transpose", {X({2, 3, 4}), I({2, 0, 1})}});
  add({"Unpack", {X({2, 3})}, [](NodeSpec& spec) { spec.Attr("num", 3).Attr("axis", 1); }});
}

void AddProductCases(std::vector<Case>* cases) {
  for (bool a : {false, true}) {
    for (bool b : {false, true}) {
      const Shape x = a ? Shape({3, 2}) : Shape({2, 3}), y = b ? Shape({4, 3}) : Shape({3, 4});
      cases->push_back({"MatMul", {X(x), X(y)}, Bools({{"transpose_a", a}, {"transpose_b", b}})});
      Shape bx = x, by = y;
      bx.InsertDim(0, 2);
      by.InsertDim(0, 2);
      const Attrs attrs = Bools({{"adj_x", a}, {"adj_y", b}});
      cases->push_back({"BatchMatMul", {X(bx), X(by)}, attrs});
      cases->push_back({"BatchMatMulV2", {X(bx), X(by)}, attrs});
      cases->push_back({"BatchMatMulV2", {X(bx), X(y)}, attrs});
      bx.InsertDim(1, 1);
      cases->push_back({"BatchMatMulV2", {X(bx), X(by)}, attrs});
    }
  }
}

void AddMatrixCases(std::vector<Case>* cases) {
  auto add = [&](Case c) { cases->push_back(std::move(c)); };
  add({"MatrixBandPart", {X({2, 3, 4}), I(1), I(0)}});
  add({"MatrixBandPart", {X({3, 3}), I(-1), I(1)}});
  add({"MatrixDiag", {X({2, 3})}});
  add({"MatrixDiagPart", {X({2, 3, 3})}});
  add({"MatrixDiagPart", {X({2, 4, 3})}});
  add({"MatrixSetDiag", {X({2, 3, 4}), X({2, 3})}});
  for (bool adjoint : {false, true}) {
    add({"MatrixInverse", {Distinct({2, 3, 3})}, Bools({{"adjoint", adjoint}})});
    add({"MatrixSolve", {Distinct({2, 3, 3}), X({2, 3, 2})}, Bools({{"adjoint", adjoint}})});
    for (bool lower : {false, true}) {
      const Attrs attrs = Bools({{"lower", lower}, {"adjoint", adjoint}});
      add({"MatrixTriangularSolve", {X({3, 3}, 1, 2), X({3, 2})}, attrs});
      add({"MatrixTriangularSolve", {X({2, 3, 3}, 1, 2), X({3, 2})}, attrs});
      add({"MatrixTriangularSolve", {X({1, 2, 2}, 1, 2), X({2, 3, 2, 1})}, attrs});
    }
  }
}

void AddUpdateCases(std::vector<Case>* cases) {
  auto add = [&](Case c) { cases->push_back(std::move(c)); };
  const In pairs = I({0, 1, 1, 2, 0, 1}, {3, 2}), rows = I({2, 0}, {2, 1});
  add({"GatherNd", {X({2, 3}), pairs}});
  add({"GatherNd", {X({3, 2, 2}), rows}});
  add({"GatherNd", {X({3, 2, 2}), I({1, 0})}});
  add({"TensorScatterAdd", {X({2, 3}), pairs, X({3})}});
  add({"TensorScatterUpdate", {X({3, 2}), rows, X({2, 2})}});
  const In begin = I({1, 0}), end = I({3, 3}), strides = I({1, 2});
  add({"TensorStridedSliceUpdate", {X({3, 4}), begin, end, strides, X({2, 2})}});
  add({"TensorStridedSliceUpdate", {X({3, 4}), begin, end, strides, X({2, 1})}});
  add({"TensorStridedSliceUpdate",
       {X({3, 4}), begin, end, strides, X({2})},
       Number("shrink_axis_mask", 1)});
  add({"SparseToDense", {I({0, 1, 1, 2}, {2, 2}), I({2, 3}), X({2}), X({})}});
  add({"SparseToDense", {I({1, 3}), I({4}), X({}), X({})}});
}

void AddNetworkCases(std::vector<Case>* cases) {
  auto add = [&](Case c) { cases->push_back(std::move(c)); };
  const std::vector<int64_t> s1 = {1, 1, 1, 1}, s2 = {1, 2, 2, 1}, k2 = {1, 2, 2, 1};
  add({"BiasAdd", {X({2, 2, 3}), X({3})}});
  add({"BiasAdd", {X({2, 3, 2, 1}), X({3})}, Text("data_format", "NCHW")});
  add({"BiasAddV1", {X({2, 3}), X({3})}});
  add({"BiasAddGrad", {X({2, 2, 3})}});
  add({"BiasAddGrad", {X({2, 3, 2, 1})}, Text("data_format", "NCHW")});
  for (const Attrs& attrs : {Conv(s1, "SAME"), Conv(s1, "VALID")}) {
    add({"Conv2D", {X({1, 4, 4, 2}), X({2, 2, 2, 2})}, attrs});
  }
  add({"Conv2D", {X({1, 4, 4, 2}), X({3, 3, 2, 1})}, Conv(s2, "SAME")});
  add({"Conv2DBackpropInput",
       {I({1, 4, 4, 1}), X({3, 3, 1, 2}), X({1, 2, 2, 2})},
       Conv(s2, "SAME")});
  add({"Conv2DBackpropFilter",
       {X({1, 4, 4, 1}), I({3, 3, 1, 2}), X({1, 2, 2, 2})},
       Conv(s2, "SAME")});
  add({"AvgPool", {X({1, 4, 4, 2})}, Pool(k2, s1, "SAME")});
  add({"AvgPoolGrad", {I({1, 4, 4, 1}), X({1, 2, 2, 1})}, Pool(k2, s2, "VALID")});
  add({"MaxPool", {Distinct({1, 4, 4, 2})}, Pool(k2, s1, "SAME")});
  add({"MaxPoolV2",
       {Distinct({1, 4, 4, 1}), I({1, 2, 2, 1}), I({1, 2, 2, 1})},
       Text("padding", "VALID")});
  // Their second and third inputs are tied to the first: only what is linear is checked.
  Tensor image = Tensor::Uninitialized(ElementType::kDouble, Shape({1, 4, 4, 1}));
  for (int i = 0; i < 16; ++i) image.mutable_data<double>()[i] = (i * 7) % 16;
  Tensor largest = Tensor::Uninitialized(ElementType::kDouble, Shape({1, 2, 2, 1}));
  for (int i = 0; i < 4; ++i) {
    const int first = (i / 2) * 8 + (i % 2) * 2;
    double most = 0;
    for (int at : {first, first + 1, first + 4, first + 5}) {
      most = std::max(most, image.unchecked_data<double>()[at]);
    }
    largest.mutable_data<double>()[i] = most;
  }
  add({"MaxPoolGrad", {C(image), C(largest), X({1, 2, 2, 1})}, Pool(k2, s2, "VALID")});
  add({"MaxPoolGradGrad", {C(image), C(largest), X({1, 4, 4, 1})}, Pool(k2, s2, "VALID")});
  add({"MaxPoolGradV2",
       {C(image), C(largest), X({1, 2, 2, 1}), I({1, 2, 2, 1}), I({1, 2, 2, 1})},
       Text("padding", "VALID")});
  // The kernel's derivative for logits holds for labels that sum to 1.
  const In labels =
      C(Tensor::FromValues<double>({0.2, 0.5, 0.3, 0.9, 0.1, 0}, Shape({2, 3})).value());
  const In logits = C(Tensor::FromValues<double>({0.2, -1, 2, 0.7, 0.1, 0}, Shape({2, 3})).value());
  for (const Shape& shape : {Shape({2, 3}), Shape({1, 3})}) {
    add({"SoftmaxCrossEntropyWithLogits", {X(shape), labels}, nullptr, {}, {0}});
    add({"SoftmaxCrossEntropyWithLogits", {logits, X(shape)}, nullptr, {}, {0}});
  }
  add({"SparseSoftmaxCrossEntropyWithLogits", {X({2, 3}), I({2, 0})}});
  Tensor mean = Tensor::Vector<float>({0.25f, -0.5f}), variance = Tensor::Vector<float>({0.5f, 2});
  Tensor none = Tensor::Vector<float>({});
  for (const char* op : {"FusedBatchNorm", "FusedBatchNormV3"}) {
    for (const char* format : {"NHWC", "NCHW"}) {
      const Shape shape = format[1] == 'C' ? Shape({2, 2, 2, 1}) : Shape({2, 2, 1, 2});
      add({op,
           {X(shape), X({2}, 0.5, 2), X({2}), C(none), C(none)},
           Training(true, format),
           {},
           {0},
           kFloat});
      add({op,
           {X(shape), X({2}, 0.5, 2), X({2}), C(mean), C(variance)},
           Training(false, format),
           {},
           {0},
           kFloat});
    }
  }
}

/// Those of images come out as floats.
void AddImageCases(std::vector<Case>* cases) {
  auto add = [&](std::string op, std::vector<In> inputs, Attrs attrs = nullptr) {
    cases->push_back({std::move(op), std::move(inputs), std::move(attrs), {}, {}, kFloat});
  };
  const auto half_pixels = Bools({{"half_pixel_centers", true}});
  const auto corners = Bools({{"align_corners", true}});
  for (const char* op : {"ResizeBilinear", "ResizeBicubic", "ResizeNearestNeighbor"}) {
    for (const Attrs& attrs : {Attrs(), half_pixels, corners}) {
      add(op, {X({2, 4, 3, 2}), I({7, 5})}, attrs);
      add(op, {X({1, 7, 9, 3}), I({3, 4})}, attrs);
    }
  }
  const Tensor boxes =
      Tensor::FromValues<float>({0.1f, 0.2f, 0.9f, 0.7f, 0.8f, 1.3f, -0.1f, 0.3f}, Shape({2, 4}))
          .value();
  // The second is flipped, and partly outside.
  add("CropAndResize", {X({2, 5, 4, 2}), C(boxes), I({1, 0}), I({3, 4})});
  add("CropAndResize", {X({2, 5, 4, 2}), C(boxes), I({1, 0}), I({3, 4})},
      Text("method", "nearest"));
  // A plane is as steep everywhere.
  Tensor plane = Tensor::Uninitialized(kFloat, Shape({1, 6, 7, 1}));
  for (int i = 0; i < 42; ++i) {
    plane.mutable_data<float>()[i] =
        0.03f * static_cast<float>(i / 7) + 0.05f * static_cast<float>(i % 7);
  }
  add("CropAndResize", {C(plane), X({2, 4}, 0.1, 0.9), I({0, 0}), I({3, 2})});
  add("CropAndResize", {C(plane), X({2, 4}, 0.1, 0.9), I({0, 0}), I({1, 1})});
  const auto patches = [](std::vector<int64_t> sizes, std::vector<int64_t> strides,
                          std::vector<int64_t> rates, std::string padding) {
    return [=](NodeSpec& spec) {
      spec.Attr("ksizes", Ints(sizes)).Attr("strides", Ints(strides)).Attr("rates", Ints(rates));
      spec.Attr("padding", padding);
    };
  };
  add("ExtractImagePatches", {X({2, 4, 5, 2})},
      patches({1, 2, 3, 1}, {1, 1, 2, 1}, {1, 1, 1, 1}, "SAME"));
  add("ExtractImagePatches", {X({1, 5, 5, 1})},
      patches({1, 2, 2, 1}, {1, 2, 1, 1}, {1, 2, 1, 1}, "VALID"));
  // A shift, and a quarter turn: pixels come to lie on pixels.
  const Tensor moves =
      Tensor::FromValues<float>({1, 0, 1, 0, 1, -1, 0, 0, 0, 1, 0, -1, 0, 3, 0, 0}, Shape({2, 8}))
          .value();
  for (const char* interpolation : {"BILINEAR", "NEAREST"}) {
    const auto attrs = Text("interpolation", interpolation);
    add("ImageProjectiveTransformV2", {X({2, 4, 4, 2}), C(moves), I({4, 4})}, attrs);
    add("ImageProjectiveTransformV3",
        {X({2, 4, 4, 2}), C(moves), I({4, 4}), C(Tensor::Scalar(0.0f))}, attrs);
  }
  cases->push_back({"RGBToHSV", {X({2, 4, 3}, 0.2, 1)}});
}

std::vector<Case> Cases() {
  std::vector<Case> cases;
  AddMathCases(&cases);
  AddReductionCases(&cases);
  AddArrayCases(&cases);
  AddProductCases(&cases);
  AddMatrixCases(&cases);
  AddUpdateCases(&cases);
  AddNetworkCases(&cases);
  AddImageCases(&cases);
  return cases;
}

/// A sequence of numbers in [0, 1) that is the same everywhere.
class Numbers {
 public:
  double Next() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<double>(state_ >> 33) / (uint64_t{1} << 31);
  }

 private:
  uint64_t state_ = 42;
};

double Get(const Tensor& tensor, int64_t i) {
  return tensor.type() == kFloat ? tensor.unchecked_data<float>()[i]
                                 : tensor.unchecked_data<double>()[i];
}
void Set(Tensor& tensor, int64_t i, double value) {
  if (tensor.type() == kFloat) {
    tensor.mutable_data<float>()[i] = static_cast<float>(value);
  } else {
    tensor.mutable_data<double>()[i] = value;
  }
}
Tensor CopyOf(const Tensor& tensor) { return *tensor.Clone(); }

Tensor MakeInput(const In& in, ElementType type, Numbers& numbers) {
  Tensor value = Tensor::Uninitialized(type, in.shape);
  const int64_t count = value.num_elements();
  for (int64_t i = 0; i < count; ++i) {
    // Distinct: steps of a third, in mixed order, never near a whole number of any op's kinks.
    Set(value, i,
        in.low == in.high
            ? (static_cast<double>((i * 7 + 3) % count) - static_cast<double>(count) / 2 + 0.2) /
                  3.1
            : in.low + (in.high - in.low) * numbers.Next());
  }
  return value;
}

/// The graph of a case: sum over outputs of <output, weight> as a function of the inputs.
struct Function {
  TestGraph g;
  std::vector<Output> xs, ys, weights;
  std::vector<Tensor> values, weight_values;
};

void AddOutput(Output y, Numbers& numbers, Function* f) {
  ASSERT_TRUE(y.shape().fully_known()) << y.name();
  Tensor weight = MakeInput(X(*y.shape().ToShape()), y.type(), numbers);
  f->ys.push_back(y);
  f->weights.push_back(f->g.Const(weight));
  f->weight_values.push_back(weight);
}

void BuildFunction(const Case& c, Numbers& numbers, Function* f) {
  std::vector<Output> inputs;
  for (const In& in : c.inputs) {
    if (in.constant.valid()) {
      inputs.push_back(f->g.Const(in.constant));
      continue;
    }
    inputs.push_back(f->g.Placeholder(c.type, in.shape));
    f->xs.push_back(inputs.back());
    f->values.push_back(MakeInput(in, c.type, numbers));
  }
  NodeSpec spec(c.op, "op");
  size_t next = 0, list = 0;
  const OpDef& def = *(*OpRegistry::Global()->LookUp(c.op))->def;
  for (const auto& arg : def.input_arg()) {
    if (arg.number_attr().empty() && arg.type_list_attr().empty()) {
      spec.Input(inputs.at(next++));
    } else {
      const int size = c.lists.at(list++);
      spec.Input(absl::MakeConstSpan(inputs).subspan(next, size));
      next += size;
    }
  }
  if (c.attrs) c.attrs(spec);
  Node* node = f->g.Add(std::move(spec));
  ASSERT_TRUE(node != nullptr) << f->g.status();
  for (int i = 0; i < node->num_outputs(); ++i) {
    const bool chosen = c.outputs.empty()
                            ? IsFloating(node->output_type(i))
                            : std::find(c.outputs.begin(), c.outputs.end(), i) != c.outputs.end();
    if (chosen) AddOutput(Output(node, i), numbers, f);
  }
}

/// Replaces the function by its gradient.
absl::Status Differentiate(Numbers& numbers, Function* f) {
  std::vector<Output> grads;
  absl::Status status = AddSymbolicGradients(f->ys, f->xs, f->weights, &grads);
  f->ys.clear();
  f->weights.clear();
  f->weight_values.clear();
  for (const Output& grad : grads) {
    if (grad.valid()) AddOutput(grad, numbers, f);
  }
  return status;
}

/// Compares the function's gradient with differences of its values.
void CheckFunction(const Function& function) {
  Function f = function;
  std::vector<Output> grads;
  absl::Status status = AddSymbolicGradients(f.ys, f.xs, f.weights, &grads);
  ASSERT_TRUE(status.ok()) << status;
  SessionOptions options;
  options.threads = 1;
  auto session = Session::Create(f.g.shared_graph(), options);
  ASSERT_TRUE(session.ok()) << session.status();
  std::vector<Output> connected;
  for (const Output& grad : grads) {
    if (grad.valid()) connected.push_back(grad);
  }
  std::vector<Tensor> symbolic(connected.size());
  if (!connected.empty()) {
    auto symbolic_call = (*session)->MakeCallable(f.xs, connected);
    ASSERT_TRUE(symbolic_call.ok()) << symbolic_call.status();
    status = (*symbolic_call)(f.values, absl::MakeSpan(symbolic));
    ASSERT_TRUE(status.ok()) << status;
  }

  auto call = (*session)->MakeCallable(f.xs, f.ys);
  ASSERT_TRUE(call.ok()) << call.status();
  auto value = [&]() {
    std::vector<Tensor> ys(f.ys.size());
    absl::Status run = (*call)(f.values, absl::MakeSpan(ys));
    EXPECT_TRUE(run.ok()) << run;
    double sum = 0;
    for (size_t i = 0; i < ys.size() && run.ok(); ++i) {
      for (int64_t j = 0; j < ys[i].num_elements(); ++j) {
        sum += Get(ys[i], j) * Get(f.weight_values[i], j);
      }
    }
    return sum;
  };
  const bool coarse = f.ys[0].type() == kFloat || f.values[0].type() == kFloat;
  const double step = coarse ? 1e-2 : 1e-5, tolerance = coarse ? 5e-3 : 1e-7;
  size_t next = 0;
  for (size_t i = 0; i < f.xs.size(); ++i) {
    const bool has = grads[i].valid();
    const Tensor grad = has ? symbolic[next++] : Tensor();
    if (has) {
      ASSERT_EQ(grad.shape(), f.values[i].shape()) << "input " << i;
      ASSERT_EQ(grad.type(), f.values[i].type()) << "input " << i;
    }
    const Tensor original = f.values[i];
    for (int64_t j = 0; j < original.num_elements(); ++j) {
      const double x = Get(original, j);
      double at[2];
      for (int side : {0, 1}) {
        f.values[i] = CopyOf(original);
        Set(f.values[i], j, x + (side == 0 ? -step : step));
        at[side] = value();
      }
      const double numeric = (at[1] - at[0]) / (2 * step);
      EXPECT_NEAR(has ? Get(grad, j) : 0, numeric, tolerance * std::max(1.0, std::abs(numeric)))
          << "input " << i << ", element " << j;
    }
    f.values[i] = original;
  }
}

std::string Describe(const Case& c) {
  std::string text = c.op;
  for (const In& in : c.inputs) text += " " + in.shape.ToString();
  return text;
}

TEST(NumericGradient, EveryCase) {
  for (const Case& c : Cases()) {
    SCOPED_TRACE(Describe(c));
    Numbers numbers;
    Function f;
    BuildFunction(c, numbers, &f);
    if (!f.ys.empty() && !f.xs.empty()) CheckFunction(f);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

// So the ops of gradients are differentiated too ("FusedBatchNormGrad", "FusedBatchNormGradV3").
TEST(NumericGradient, SecondDerivatives) {
  for (const Case& c : Cases()) {
    SCOPED_TRACE(Describe(c));
    // TensorFlow has none for these.
    const std::set<std::string> none = {"Softsign", "CropAndResize", "ResizeBicubic",
                                        "ResizeNearestNeighbor"};
    if (none.count(c.op) > 0) continue;
    Numbers numbers;
    Function f;
    BuildFunction(c, numbers, &f);
    if (f.ys.empty() || f.xs.empty()) continue;
    absl::Status status = Differentiate(numbers, &f);
    ASSERT_TRUE(status.ok()) << status;
    if (!f.ys.empty()) CheckFunction(f);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

// As in TensorFlow, the gradient of a real y with respect to z is dy/d(re z) + i dy/d(im z).
TEST(NumericGradient, ComplexNumbers) {
  TestGraph g;
  const complex128 z0(0.75, -0.5), w(0.3, 0.9);
  Output z = g.Placeholder(ElementType::kComplex128, kScalar);
  Output weight = g.Scalar<complex128>(w);
  Output product = g.Op("Mul", {g.Op("Conj", {z}), g.Op("Tanh", {z})});
  Output ys[] = {g.Op("Conj", {z}),
                 g.Op("Exp", {z}),
                 g.Op("Square", {product}),
                 g.Op("RealDiv", {product, g.Op("Sqrt", {z})}),
                 g.Op("Pow", {z, product}),
                 g.Op("Log", {g.Op("Sigmoid", {z})}),
                 g.Op("Rsqrt", {g.Op("Sin", {z})}),
                 g.Op("Reciprocal", {g.Op("Cos", {z})}),
                 g.Op("Log1p", {g.Op("Expm1", {z})})};
  for (const Output& y : ys) {
    SCOPED_TRACE(y.node->op());
    Output grad = g.Gradients({y}, {z}, {weight})[0];
    auto session = Session::Create(g.shared_graph());
    ASSERT_TRUE(session.ok()) << session.status();
    auto run = [&](Output fetch, complex128 at) {
      const Output fetches[] = {fetch};
      auto values = (*session)->Run(FeedMap{{z, Tensor::Scalar(at)}}, fetches);
      EXPECT_TRUE(values.ok()) << values.status();
      return values.ok() ? (*values)[0].unchecked_scalar<complex128>() : complex128();
    };
    auto loss = [&](complex128 at) { return std::real(std::conj(w) * run(y, at)); };
    const double h = 1e-6;
    const double re = (loss(z0 + h) - loss(z0 - h)) / (2 * h);
    const complex128 ih(0, h);
    const double im = (loss(z0 + ih) - loss(z0 - ih)) / (2 * h);
    const complex128 got = run(grad, z0);
    EXPECT_NEAR(got.real(), re, 1e-7 * std::max(1.0, std::abs(re)));
    EXPECT_NEAR(got.imag(), im, 1e-7 * std::max(1.0, std::abs(im)));
  }
}

// By a case, by one of the tests that the list names, or because an op that is checked has the same
// function.
TEST(NumericGradient, EveryGradientIsChecked) {
  std::set<std::string> checked(std::begin(kCheckedByGoldenCases), std::end(kCheckedByGoldenCases));
  for (const auto& [op, file] : kCheckedByOtherTests) {
    std::ifstream test(std::string(TROUPE_SOURCE_DIR "/tests/") + file);
    const std::string text(std::istreambuf_iterator<char>(test), {});
    // As a name in a string, or as an op function: not within another op's.
    const bool there = std::regex_search(text, std::regex("[\":]" + std::string(op) + "[\"(/]"));
    EXPECT_TRUE(there) << file << " has nothing about " << op;
    checked.insert(op);
  }
  for (const Case& c : Cases()) checked.insert(c.op);
  std::set<GradientFn> functions = {nullptr};
  for (const std::string& op : checked) {
    const absl::StatusOr<GradientFn> function = GradientRegistry::Global()->LookUp(op);
    ASSERT_TRUE(function.ok()) << op << " has no gradient";
    functions.insert(*function);
  }
  for (const std::string& op : GradientRegistry::Global()->Names()) {
    EXPECT_TRUE(functions.count(GradientRegistry::Global()->LookUp(op).value()))
        << op << " has a gradient that no other op has, and no case";
  }
}

}  // namespace
}  // namespace troupe
