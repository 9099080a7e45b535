// Gradients of the TensorArray ops. The gradients of an array's elements are elements of another
// array, which has the differentiation's name among those that the array keeps. What is written to
// it is ordered by its own flow: the gradient of a flow is a flow.
#include <string>
#include <string_view>

#include "graph/gradients/gradient_ops.h"

namespace troupe::gradients {
namespace {

/// Tells one differentiation from another: the prefix that all of its nodes' names have.
std::string SourceOf(const GradientContext& g) {
  const std::string& prefix = g.prefix();
  const std::string own = "/" + g.node()->name() + "_grad";
  if (prefix.size() > own.size() &&
      prefix.compare(prefix.size() - own.size(), own.size(), own) == 0) {
    return prefix.substr(0, prefix.size() - own.size());
  }
  // Nodes in a place of their own: as far as the last component that is called like a
  // differentiation.
  const size_t found = prefix.rfind("gradients");
  if (found == std::string::npos) return prefix;
  return prefix.substr(0, prefix.find('/', found));
}

/// An array of gradients and its flow.
struct GradientArray {
  Output handle, flow;
};

/// The op of the node's version: "TensorArrayReadV3".
std::string VersionOf(const GradientContext& g, std::string_view op) {
  const std::string& own = g.node()->op();
  const bool versioned = own.size() > 2 && own[own.size() - 2] == 'V';
  return std::string(op) + (versioned ? own.substr(own.size() - 2) : "");
}

/// The array of gradients for input 0 of the node, from after `flow` on.
GradientArray ArrayOfGradients(GradientContext& g, Output flow) {
  const std::string source = SourceOf(g);
  Node* array = g.Add(VersionOf(g, "TensorArrayGrad"), {g.input(0), flow},
                      [&](NodeSpec& spec) { spec.Attr("source", source); });
  if (!g.status().ok()) return {};
  // The array must be there, with its size and shapes, before the forward one changes again.
  Output after = g.Op("Identity", {flow}, [&](NodeSpec& spec) { spec.ControlInput(array); });
  return {Output(array, 0), after};
}

/// The shape of a tensor without its first dimension.
PartialShape RowShapeOf(Output value) {
  const PartialShape& shape = value.shape();
  return shape.rank() > 0 ? PartialShape(shape.dims().subspan(1)) : PartialShape();
}

void ReadGrad(GradientContext& g) {
  const GradientArray array = ArrayOfGradients(g, g.input(2));
  g.set(2,
        g.Op(VersionOf(g, "TensorArrayWrite"), {array.handle, g.input(1), g.grad(), array.flow}));
}
REGISTER_GRADIENT("TensorArrayRead", ReadGrad);
REGISTER_GRADIENT("TensorArrayReadV2", ReadGrad);
REGISTER_GRADIENT("TensorArrayReadV3", ReadGrad);

void WriteGrad(GradientContext& g) {
  const ElementType type = g.input(2).type();
  const GradientArray array = ArrayOfGradients(g, g.grad());
  g.set(2, g.Op(VersionOf(g, "TensorArrayRead"), {array.handle, g.input(1), array.flow},
                [type](NodeSpec& spec) { spec.Attr("dtype", type); }));
  g.set(3, g.grad());
}
REGISTER_GRADIENT("TensorArrayWrite", WriteGrad);
REGISTER_GRADIENT("TensorArrayWriteV2", WriteGrad);
REGISTER_GRADIENT("TensorArrayWriteV3", WriteGrad);

void GatherGrad(GradientContext& g) {
  const GradientArray array = ArrayOfGradients(g, g.input(2));
  g.set(2,
        g.Op(VersionOf(g, "TensorArrayScatter"), {array.handle, g.input(1), g.grad(), array.flow}));
}
REGISTER_GRADIENT("TensorArrayGather", GatherGrad);
REGISTER_GRADIENT("TensorArrayGatherV2", GatherGrad);
REGISTER_GRADIENT("TensorArrayGatherV3", GatherGrad);

void ScatterGrad(GradientContext& g) {
  const Output value = g.input(2);
  const ElementType type = value.type();
  const PartialShape element = RowShapeOf(value);
  const GradientArray array = ArrayOfGradients(g, g.grad());
  g.set(2, g.Op(VersionOf(g, "TensorArrayGather"), {array.handle, g.input(1), array.flow},
                [&](NodeSpec& spec) { spec.Attr("dtype", type).Attr("element_shape", element); }));
  g.set(3, g.grad());
}
REGISTER_GRADIENT("TensorArrayScatter", ScatterGrad);
REGISTER_GRADIENT("TensorArrayScatterV2", ScatterGrad);
REGISTER_GRADIENT("TensorArrayScatterV3", ScatterGrad);

void ConcatGrad(GradientContext& g) {
  if (!g.gradient(0).valid()) return;
  const GradientArray array = ArrayOfGradients(g, g.input(1));
  g.set(1,
        g.Op(VersionOf(g, "TensorArraySplit"), {array.handle, g.grad(), g.output(1), array.flow}));
}
REGISTER_GRADIENT("TensorArrayConcat", ConcatGrad);
REGISTER_GRADIENT("TensorArrayConcatV2", ConcatGrad);
REGISTER_GRADIENT("TensorArrayConcatV3", ConcatGrad);

void SplitGrad(GradientContext& g) {
  const Output value = g.input(1);
  const ElementType type = value.type();
  const PartialShape row = RowShapeOf(value);
  const GradientArray array = ArrayOfGradients(g, g.grad());
  g.set(1, g.Op(VersionOf(g, "TensorArrayConcat"), {array.handle, array.flow}, [&](NodeSpec& spec) {
    spec.Attr("dtype", type).Attr("element_shape_except0", row);
  }));
  g.set(3, g.grad());
}
REGISTER_GRADIENT("TensorArraySplit", SplitGrad);
REGISTER_GRADIENT("TensorArraySplitV2", SplitGrad);
REGISTER_GRADIENT("TensorArraySplitV3", SplitGrad);

}  // namespace
}  // namespace troupe::gradients
