// Quantization with a scale and a zero point, for a whole tensor or each slice along an axis: the
// integer q stands for (q - zero_point) * scale.
#include "graph/op_registry.h"
#include "graph/ops/shape_helpers.h"

namespace troupe {

REGISTER_OP("UniformQuantize")
    .Signature("input: Tin, scales: float, zero_points: int32 -> output: Tout")
    .Attr("Tin: {float}")
    .Attr("Tout: {qint8, quint8, qint32}")
    .Attr("quantization_axis: int = -1")
    .Attr("quantization_min_val: int")
    .Attr("quantization_max_val: int")
    .SetShapeFn(UnchangedShape)
    .Doc(
        "The integers between quantization_min_val and quantization_max_val that are nearest to "
        "`input`, half up. `scales` and `zero_points` are scalars, or vectors with an element for "
        "each slice along the axis if that is not -1.");

REGISTER_OP("UniformDequantize")
    .Signature("input: Tin, scales: float, zero_points: int32 -> output: Tout")
    .Attr("Tin: {qint8, quint8, qint32}")
    .Attr("Tout: {float}")
    .Attr("quantization_axis: int = -1")
    .Attr("quantization_min_val: int")
    .Attr("quantization_max_val: int")
    .SetShapeFn(UnchangedShape)
    .Doc("What `input` stands for: the inverse of UniformQuantize. Limits are not used.");

REGISTER_OP("UniformRequantize")
    .Signature(
        "input: Tin, input_scales: float, input_zero_points: int32, output_scales: float, "
        "output_zero_points: int32 -> output: Tout")
    .Attr("Tin: {qint8, qint32}")
    .Attr("Tout: {qint8, qint32}")
    .Attr("input_quantization_axis: int = -1")
    .Attr("input_quantization_min_val: int")
    .Attr("input_quantization_max_val: int")
    .Attr("output_quantization_axis: int = -1")
    .Attr("output_quantization_min_val: int")
    .Attr("output_quantization_max_val: int")
    .SetShapeFn(UnchangedShape)
    .Doc(
        "What `input` stands for, in integers of other scales and zero points, by 31 bits of the "
        "quotient of the scales. If both have an axis it is the same.");

REGISTER_OP("UniformQuantizedClipByValue")
    .Signature("operand: T, min: T, max: T, scales: float, zero_points: int32 -> output: T")
    .Attr("T: {qint32}")
    .Attr("quantization_axis: int = -1")
    .Attr("quantization_min_val: int")
    .Attr("quantization_max_val: int")
    .SetShapeFn(UnchangedShape)
    .Doc(
        "min(max(operand, min), max) in integers; all inputs but `operand` are scalars, or vectors "
        "with an element for each slice along the axis if that is not -1.");

}  // namespace troupe
