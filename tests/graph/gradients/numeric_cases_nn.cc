#include "graph/protos/graph.pb.h"
#include "tests/graph/gradients/numeric_cases.h"

namespace troupe::numeric {

namespace {

Attrs FractionalPool(bool overlapping) {
  return [=](NodeSpec& spec) {
    AttrValue ratios;
    for (const float ratio : {1.0f, 1.5f, 1.3f, 1.0f}) ratios.mutable_list()->add_f(ratio);
    spec.Attr("pooling_ratio", ratios)
        .Attr("overlapping", overlapping)
        .Attr("deterministic", true)
        .Attr("seed", 3)
        .Attr("seed2", 5);
  };
}

// Beside the ops on images: of volumes, depthwise, with windows of other kinds.
void AddWindowCases(std::vector<Case>* cases) {
  auto add = [&](Case c) { cases->push_back(std::move(c)); };
  const std::vector<int64_t> s1 = {1, 1, 1, 1}, s2 = {1, 2, 2, 1}, k2 = {1, 2, 2, 1};
  const std::vector<int64_t> v1 = {1, 1, 1, 1, 1}, v2 = {1, 2, 1, 2, 1}, w2 = {1, 2, 2, 2, 1};
  for (const Attrs& attrs : {Conv(s1, "VALID"), Conv(s2, "SAME")}) {
    add({"DepthwiseConv2dNative", {X({2, 4, 3, 2}), X({2, 2, 2, 2})}, attrs});
  }
  add({"DepthwiseConv2dNativeBackpropInput",
       {I({1, 4, 4, 2}), X({3, 3, 2, 1}), X({1, 2, 2, 2})},
       Conv(s2, "SAME")});
  add({"DepthwiseConv2dNativeBackpropFilter",
       {X({1, 4, 4, 2}), I({3, 3, 2, 1}), X({1, 2, 2, 2})},
       Conv(s2, "SAME")});
  const Attrs gaps = [=](NodeSpec& spec) {
    Conv(s1, "SAME")(spec);
    spec.Attr("dilations", Ints({1, 2, 3, 1}));
  };
  add({"DepthwiseConv2dNative", {X({1, 5, 6, 2}), X({2, 2, 2, 2})}, gaps});
  add({"DepthwiseConv2dNativeBackpropInput",
       {I({1, 5, 4, 2}), X({2, 2, 2, 1}), X({1, 5, 4, 2})},
       gaps});
  add({"DepthwiseConv2dNativeBackpropFilter",
       {X({1, 5, 4, 2}), I({2, 2, 2, 1}), X({1, 5, 4, 2})},
       gaps});
  for (const Attrs& attrs : {Conv(v1, "VALID"), Conv(v2, "SAME")}) {
    add({"Conv3D", {X({1, 3, 2, 3, 2}), X({2, 2, 2, 2, 1})}, attrs});
  }
  add({"Conv3DBackpropInputV2",
       {I({1, 3, 2, 3, 1}), X({2, 2, 2, 1, 2}), X({1, 2, 2, 2, 2})},
       Conv(v2, "SAME")});
  add({"Conv3DBackpropFilterV2",
       {X({1, 3, 2, 3, 1}), I({2, 2, 2, 1, 2}), X({1, 2, 2, 2, 2})},
       Conv(v2, "SAME")});
  add({"AvgPool3D", {X({1, 3, 2, 3, 2})}, Pool(w2, v2, "SAME")});
  add({"AvgPool3DGrad", {I({1, 3, 2, 3, 1}), X({1, 2, 1, 2, 1})}, Pool(w2, v1, "VALID")});
  Case max_pool = {"MaxPool3D", {Distinct({1, 3, 2, 3, 2})}, Pool(w2, v2, "SAME")};
  max_pool.type = kFloat;
  add(max_pool);
  Tensor volume = Tensor::Uninitialized(ElementType::kFloat, Shape({1, 2, 2, 2, 1}));
  for (int i = 0; i < 8; ++i) volume.mutable_data<float>()[i] = static_cast<float>((i * 3) % 8);
  Tensor largest = Tensor::Uninitialized(ElementType::kFloat, Shape({1, 1, 1, 1, 1}));
  *largest.mutable_data<float>() = 7;
  add({"MaxPool3DGrad",
       {C(volume), C(largest), X({1, 1, 1, 1, 1})},
       Pool(w2, v1, "VALID"),
       {},
       {},
       kFloat});
  add({"MaxPool3DGradGrad",
       {C(volume), C(largest), X({1, 2, 2, 2, 1})},
       Pool(w2, v1, "VALID"),
       {},
       {},
       kFloat});
  add({"ExtractVolumePatches", {X({1, 3, 2, 3, 2})}, [=](NodeSpec& spec) {
         spec.Attr("ksizes", Ints(w2)).Attr("strides", Ints(v2)).Attr("padding", "SAME");
       }});
  add(Once({"MaxPoolWithArgmax", {Distinct({2, 3, 4, 2})}, Pool(k2, s1, "SAME"), {}, {0}}));
  for (const bool overlapping : {false, true}) {
    add(Once({"FractionalAvgPool", {X({2, 5, 4, 2})}, FractionalPool(overlapping), {}, {0}}));
    add(Once(
        {"FractionalMaxPool", {Distinct({2, 5, 4, 2})}, FractionalPool(overlapping), {}, {0}}));
  }
  add(Once({"Dilation2D", {Distinct({1, 4, 3, 2}), X({2, 2, 2}, -0.01, 0.01)}, [=](NodeSpec& spec) {
              spec.Attr("strides", Ints(s1)).Attr("rates", Ints(k2)).Attr("padding", "SAME");
            }}));
  add(Once(
      {"LRN",
       {X({1, 2, 2, 5})},
       [](NodeSpec& spec) { spec.Attr("depth_radius", 1).Attr("alpha", 0.5f).Attr("beta", 0.75f); },
       {},
       {},
       kFloat}));
}

Attrs Lstm(bool use_peephole, float cell_clip) {
  return
      [=](NodeSpec& spec) { spec.Attr("use_peephole", use_peephole).Attr("cell_clip", cell_clip); };
}

// No cell state reaches a clip here: TensorFlow's gradients leave it out of account. Those of cell
// states, output 1, and of hidden states, 6, count, both or one of them.
void AddRecurrentCases(std::vector<Case>* cases) {
  auto add = [&](std::string op, std::vector<In> inputs, Attrs attrs, std::vector<int> outputs) {
    cases->push_back(
        Once({std::move(op), std::move(inputs), std::move(attrs), {}, std::move(outputs), kFloat}));
  };
  const In state = X({2, 2}), w = X({5, 8}), peephole = X({2}), bias = X({8});
  const In length = C(Tensor::Scalar<int64_t>(2));
  const std::vector<int> both = {1, 6};
  for (const auto& outputs : {both, {1}, {6}}) {
    for (const bool use_peephole : {false, true}) {
      add("BlockLSTM", {length, X({3, 2, 3}), state, state, w, peephole, peephole, peephole, bias},
          Lstm(use_peephole, 0), outputs);
      add("LSTMBlockCell", {X({2, 3}), state, state, w, peephole, peephole, peephole, bias},
          Lstm(use_peephole, 2.5f), outputs);
    }
  }
  for (const float forget_bias : {-0.5f, 2.0f}) {
    add(
        "LSTMBlockCell", {X({1, 3}), X({1, 2}), X({1, 2}), w, peephole, peephole, peephole, bias},
        [=](NodeSpec& spec) { spec.Attr("forget_bias", forget_bias); }, both);
  }
  add("GRUBlockCell", {X({2, 3}), state, X({5, 4}), X({5, 2}), X({4}), X({2})}, nullptr, {3});
}

void AddSequenceCases(std::vector<Case>* cases) {
  auto add = [&](Case c) { cases->push_back(std::move(c)); };
  Tensor indices = Tensor::FromValues<int64_t>({0, 0, 0, 1, 1, 0}, Shape({3, 2})).value();
  add(Once(
      {"CTCLoss", {X({4, 2, 3}), C(indices), I({0, 1, 1}), I({4, 3})}, nullptr, {}, {0}, kFloat}));
  AddRecurrentCases(cases);
}

}  // namespace

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
  for (const char* op : {"FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"}) {
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
  AddWindowCases(cases);
  AddSequenceCases(cases);
}

}  // namespace troupe::numeric
