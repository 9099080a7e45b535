#include "tests/graph/gradients/numeric_cases.h"

namespace troupe::numeric {

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
  add({"BatchToSpace", {X({4, 2, 2, 1}), I({0, 1, 1, 0}, {2, 2})}, Number("block_size", 2)});
  add({"BatchToSpaceND", {X({6, 2, 3}), I({3, 2}), I({1, 0, 0, 2}, {2, 2})}});
  add({"ConjugateTranspose", {X({2, 3, 4}), I({2, 0, 1})}});
  add({"DepthToSpace", {X({1, 1, 2, 8})}, Number("block_size", 2)});
  add({"Diag", {X({2, 3})}});
  add({"DiagPart", {X({2, 3, 2, 3})}});
  add({"NthElement", {Distinct({2, 4}), I(1)}});
  for (const char* mode : {"REFLECT", "SYMMETRIC"}) {
    add({"MirrorPad", {X({3, 4}), I({1, 2, 0, 3}, {2, 2})}, Text("mode", mode)});
    add({"MirrorPadGrad", {X({6, 7}), I({1, 2, 0, 3}, {2, 2})}, Text("mode", mode)});
  }
  add({"Reverse", {X({2, 3}), B({false, true})}});
  add({"ReverseSequence", {X({2, 4, 2}), I({3, 0})}, Number("seq_dim", 1)});
  add({"Roll", {X({3, 4}), I({1, -5, 1}), I({0, 1, 0})}});
  add({"SpaceToBatch", {X({1, 2, 4, 1}), I({1, 1, 0, 2}, {2, 2})}, Number("block_size", 2)});
  add({"SpaceToBatchND", {X({1, 5, 2}), I({3, 2}), I({1, 0, 0, 2}, {2, 2})}});
  add({"SpaceToDepth", {X({1, 2, 4, 1})}, Number("block_size", 2)});
  for (const char* op : {"TensorScatterMax", "TensorScatterMin", "TensorScatterSub"}) {
    add({op, {X({4, 2}), I({3, 1}, {2, 1}), X({2, 2})}});
  }
  add({"Tile", {X({2, 3}), I({2, 1})}});
  add({"Tile", {X({2, 3}), I({3, 2})}});
  add({"TopKV2", {Distinct({2, 4}), I(2)}});
  add({"TopKV2", {Distinct({5}), I(3)}});
  add({"Transpose", {X({2, 3, 4}), I({2, 0, 1})}});
  add({"Unpack", {X({2, 3})}, [](NodeSpec& spec) { spec.Attr("num", 3).Attr("axis", 1); }});
}

}  // namespace troupe::numeric
