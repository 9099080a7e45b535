// Activation functions of neural networks and their gradients.
#include "devices/status_macros.h"
#include "graph/op_registry.h"
#include "graph/shape_inference.h"

namespace troupe {
namespace {

using C = InferenceContext;

absl::Status SoftmaxShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(C::WithRankAtLeast(c->input(0), 1).status());
  return UnchangedShape(c);
}

constexpr char kFloating[] = "T: {half, bfloat16, float, double}";

OpDefBuilder Activation(const char* name, const char* type, const char* doc) {
  OpDefBuilder op(name);
  op.Signature("features: T -> activations: T").Attr(type).SetShapeFn(UnchangedShape);
  op.Doc(StrCat(doc, " The shape stays."));
  return op;
}

/// A gradient by `from`: the `features` or the `outputs` of the activation function.
OpDefBuilder Gradient(const char* name, const char* from, const char* type, const char* doc) {
  OpDefBuilder op(name);
  op.Signature(StrCat("gradients: T, ", from, ": T -> backprops: T")).Attr(type);
  op.SetShapeFn(MergeInputsShape).Doc(StrCat(doc, " All shapes are equal."));
  return op;
}

[[maybe_unused]] const internal::OpRegistrar kFamilies[] = {
    Activation("Elu", kFloating, "Computes x if x > 0, else exp(x) - 1, for each element."),
    Activation("Relu",
               "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, "
               "uint32, uint64, qint8}",
               "Computes max(x, 0) for each element."),
    Activation("Relu6", "T: realnumbertype", "Computes min(max(x, 0), 6) for each element."),
    Activation("Selu", kFloating,
               "Computes scale * x if x > 0, else scale * alpha * (exp(x) - 1), with the constants "
               "of self-normalising networks."),
    Activation("Softplus", kFloating, "Computes log(1 + exp(x)) for each element."),
    Activation("Softsign", kFloating, "Computes x / (1 + |x|) for each element."),

    Gradient("EluGrad", "outputs", kFloating,
             "Gradient of `Elu` from its `outputs`: gradients * (outputs + 1) where they are "
             "negative, else `gradients`."),
    Gradient("Relu6Grad", "features", "T: realnumbertype",
             "Gradient of `Relu6`: `gradients` where `features` lies between 0 and 6, else 0."),
    Gradient("ReluGrad", "features", "T: realnumbertype",
             "Gradient of `Relu`: `gradients` where `features` is positive, else 0."),
    Gradient("SeluGrad", "outputs", kFloating, "Gradient of `Selu` from its `outputs`."),
    Gradient("SoftplusGrad", "features", kFloating,
             "Gradient of `Softplus`: gradients * sigmoid(features)."),
    Gradient("SoftsignGrad", "features", kFloating,
             "Gradient of `Softsign`: gradients / (1 + |features|)^2."),
};

}  // namespace

REGISTER_OP("LeakyRelu")
    .Signature("features: T -> activations: T")
    .Attr("alpha: float = 0.2")
    .Attr("T: {half, bfloat16, float, double} = DT_FLOAT")
    .SetShapeFn(UnchangedShape)
    .Doc("Computes x if x > 0, else alpha * x, for each element. The shape stays.");

REGISTER_OP("LeakyReluGrad")
    .Signature("gradients: T, features: T -> backprops: T")
    .Attr("alpha: float = 0.2")
    .Attr("T: {half, bfloat16, float, double} = DT_FLOAT")
    .SetShapeFn(MergeInputsShape)
    .Doc("Gradient of `LeakyRelu` from its `features`. All shapes are equal.");

REGISTER_OP("LogSoftmax")
    .Signature("logits: T -> logsoftmax: T")
    .Attr("T: {half, bfloat16, float, double}")
    .SetShapeFn(SoftmaxShape)
    .Doc("Computes logits - log(sum(exp(logits))) along the last dimension. The shape stays.");

REGISTER_OP("Softmax")
    .Signature("logits: T -> softmax: T")
    .Attr("T: {half, bfloat16, float, double}")
    .SetShapeFn(SoftmaxShape)
    .Doc("Computes exp(logits) / sum(exp(logits)) along the last dimension. The shape stays.");

}  // namespace troupe
