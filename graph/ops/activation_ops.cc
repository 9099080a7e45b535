// Activation functions of neural networks and their gradients.
#include "graph/op_registry.h"
#include "graph/ops/shape_functions.h"
#include "graph/shape_inference.h"

namespace troupe {

REGISTER_OP("Elu")
    .Input("features: T")
    .Output("activations: T")
    .Attr("T: {half, bfloat16, float, double}")
    .SetShapeFn(UnchangedShape)
    .Doc("Computes x if x > 0, else exp(x) - 1, for each element. The shape stays.");

REGISTER_OP("EluGrad")
    .Input("gradients: T")
    .Input("outputs: T")
    .Output("backprops: T")
    .Attr("T: {half, bfloat16, float, double}")
    .SetShapeFn(MergeInputsShape)
    .Doc(
        "Gradient of `Elu` from its `outputs`: gradients * (outputs + 1) where they are "
        "negative, else `gradients`. All shapes are equal.");

REGISTER_OP("LeakyRelu")
    .Input("features: T")
    .Output("activations: T")
    .Attr("alpha: float = 0.2")
    .Attr("T: {half, bfloat16, float, double} = DT_FLOAT")
    .SetShapeFn(UnchangedShape)
    .Doc("Computes x if x > 0, else alpha * x, for each element. The shape stays.");

REGISTER_OP("LeakyReluGrad")
    .Input("gradients: T")
    .Input("features: T")
    .Output("backprops: T")
    .Attr("alpha: float = 0.2")
    .Attr("T: {half, bfloat16, float, double} = DT_FLOAT")
    .SetShapeFn(MergeInputsShape)
    .Doc("Gradient of `LeakyRelu` from its `features`. All shapes are equal.");

REGISTER_OP("LogSoftmax")
    .Input("logits: T")
    .Output("logsoftmax: T")
    .Attr("T: {half, bfloat16, float, double}")
    .SetShapeFn(SoftmaxShape)
    .Doc("Computes logits - log(sum(exp(logits))) along the last dimension. The shape stays.");

REGISTER_OP("Relu")
    .Input("features: T")
    .Output("activations: T")
    .Attr(
        "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, "
        "uint64, qint8}")
    .SetShapeFn(UnchangedShape)
    .Doc("Computes max(x, 0) for each element. The shape stays.");

REGISTER_OP("Relu6")
    .Input("features: T")
    .Output("activations: T")
    .Attr("T: realnumbertype")
    .SetShapeFn(UnchangedShape)
    .Doc("Computes min(max(x, 0), 6) for each element. The shape stays.");

REGISTER_OP("Relu6Grad")
    .Input("gradients: T")
    .Input("features: T")
    .Output("backprops: T")
    .Attr("T: realnumbertype")
    .SetShapeFn(MergeInputsShape)
    .Doc(
        "Gradient of `Relu6`: `gradients` where `features` lies between 0 and 6, else 0. All "
        "shapes are equal.");

REGISTER_OP("ReluGrad")
    .Input("gradients: T")
    .Input("features: T")
    .Output("backprops: T")
    .Attr("T: realnumbertype")
    .SetShapeFn(MergeInputsShape)
    .Doc(
        "Gradient of `Relu`: `gradients` where `features` is positive, else 0. All shapes are "
        "equal.");

REGISTER_OP("Selu")
    .Input("features: T")
    .Output("activations: T")
    .Attr("T: {half, bfloat16, float, double}")
    .SetShapeFn(UnchangedShape)
    .Doc(
        "Computes scale * x if x > 0, else scale * alpha * (exp(x) - 1), with the constants of "
        "self-normalising networks. The shape stays.");

REGISTER_OP("SeluGrad")
    .Input("gradients: T")
    .Input("outputs: T")
    .Output("backprops: T")
    .Attr("T: {half, bfloat16, float, double}")
    .SetShapeFn(MergeInputsShape)
    .Doc("Gradient of `Selu` from its `outputs`. All shapes are equal.");

REGISTER_OP("Softmax")
    .Input("logits: T")
    .Output("softmax: T")
    .Attr("T: {half, bfloat16, float, double}")
    .SetShapeFn(SoftmaxShape)
    .Doc("Computes exp(logits) / sum(exp(logits)) along the last dimension. The shape stays.");

REGISTER_OP("Softplus")
    .Input("features: T")
    .Output("activations: T")
    .Attr("T: {half, bfloat16, float, double}")
    .SetShapeFn(UnchangedShape)
    .Doc("Computes log(1 + exp(x)) for each element. The shape stays.");

REGISTER_OP("SoftplusGrad")
    .Input("gradients: T")
    .Input("features: T")
    .Output("backprops: T")
    .Attr("T: {half, bfloat16, float, double}")
    .SetShapeFn(MergeInputsShape)
    .Doc("Gradient of `Softplus`: gradients * sigmoid(features). All shapes are equal.");

REGISTER_OP("Softsign")
    .Input("features: T")
    .Output("activations: T")
    .Attr("T: {half, bfloat16, float, double}")
    .SetShapeFn(UnchangedShape)
    .Doc("Computes x / (1 + |x|) for each element. The shape stays.");

REGISTER_OP("SoftsignGrad")
    .Input("gradients: T")
    .Input("features: T")
    .Output("backprops: T")
    .Attr("T: {half, bfloat16, float, double}")
    .SetShapeFn(MergeInputsShape)
    .Doc("Gradient of `Softsign`: gradients / (1 + |features|)^2. All shapes are equal.");

}  // namespace troupe
