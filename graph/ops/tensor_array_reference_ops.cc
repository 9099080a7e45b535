// The first version of the tensor arrays' ops, with references to strings as handles.
#include <string>

#include "devices/status_macros.h"
#include "graph/op_registry.h"
#include "graph/shape_inference.h"

namespace troupe {
namespace {

OpDefBuilder Define(const char* name, const char* signature, int removed, const char* successor) {
  OpDefBuilder op(name);
  op.Signature(StrCat("handle: Ref(string)", signature))
      .Deprecated(removed, StrCat("Use ", successor))
      .SetShapeFn(UnknownShape);
  return op;
}

[[maybe_unused]] const internal::OpRegistrar kOps[] = {
    Define("TensorArrayClose", "", 16, "TensorArrayCloseV3")
        .Doc("Lets go of the tensors of an array; using it afterwards is an error."),
    Define("TensorArrayConcat", ", flow_in: float -> value: dtype, lengths: int64", 16,
           "TensorArrayGradV3")
        .Attr("dtype: type")
        .Attr("element_shape_except0: shape = { unknown_rank: true }")
        .Doc("Concatenates the elements of an array along their first dimension; `lengths`: their "
             "sizes in it."),
    Define("TensorArrayGather", ", indices: int32, flow_in: float -> value: dtype", 16,
           "TensorArrayGatherV3")
        .Attr("dtype: type")
        .Attr("element_shape: shape = { unknown_rank: true }")
        .Doc("Stacks the elements of an array at the vector `indices`."),
    Define("TensorArrayPack", ", flow_in: float -> value: dtype", 16,
           "TensorArrayGatherV3 with RangeOp")
        .Attr("dtype: type")
        .Attr("element_shape: shape = { unknown_rank: true }")
        .Doc("Stacks all elements of an array."),
    Define("TensorArrayRead", ", index: int32, flow_in: float -> value: dtype", 16,
           "TensorArrayReadV3")
        .Attr("dtype: type")
        .Doc("Gives the element of an array at the scalar `index`."),
    Define("TensorArrayScatter", ", indices: int32, value: T, flow_in: float -> flow_out: float",
           19, "TensorArrayGradV3")
        .Attr("T: type")
        .Doc("Writes the rows of `value` to the elements of an array at the vector `indices`."),
    Define("TensorArraySize", ", flow_in: float -> size: int32", 16, "TensorArraySizeV3")
        .Doc("Gives the number of elements of an array."),
    Define("TensorArraySplit", ", value: T, lengths: int64, flow_in: float -> flow_out: float", 16,
           "TensorArraySplitV3")
        .Attr("T: type")
        .Doc("Writes slices of `value` along its first dimension, of the sizes in the vector "
             "`lengths`, to the elements of an array."),
    Define("TensorArrayUnpack", ", value: T, flow_in: float -> flow_out: float", 20,
           "TensorArrayScatterV3 with RangeOp")
        .Attr("T: type")
        .Doc("Writes the rows of `value` to the elements of an array, of which there must be as "
             "many."),
    Define("TensorArrayWrite", ", index: int32, value: T, flow_in: float -> flow_out: float", 16,
           "TensorArrayWriteV3")
        .Attr("T: type")
        .Doc("Writes `value` to the element of an array at the scalar `index`."),
};

}  // namespace

REGISTER_OP("TensorArray")
    .Signature("size: int32 -> handle: Ref(string)")
    .Attr("dtype: type")
    .Attr("dynamic_size: bool = false")
    .Attr("clear_after_read: bool = true")
    .Attr("tensor_array_name: string = ''")
    .Attr("element_shape: shape = { unknown_rank: true }")
    .SetIsStateful()
    .Deprecated(16, "Use TensorArrayV3")
    .SetShapeFn(UnknownShape)
    .Doc(
        "Makes an array of `size` tensors of type `dtype`, which lives as long as the step. Each "
        "is written once and, with `clear_after_read`, read once.");

REGISTER_OP("TensorArrayGrad")
    .Signature("handle: string, flow_in: float -> grad_handle: Ref(string)")
    .Attr("source: string")
    .SetIsStateful()
    .Deprecated(16, "Use TensorArrayGradV3")
    .SetShapeFn(UnknownShape)
    .Doc(
        "Gives the array for the gradients of the elements of an array, one for each `source`: "
        "made by the first call, kept by the array. Writes to one index are added up.");

}  // namespace troupe
