// From one order of an image batch's dimensions to another.
#include <string>

#include "graph/op_registry.h"
#include "graph/shape_inference.h"

namespace troupe {
namespace {

OpDefBuilder FormatOp(const char* name, const char* doc) {
  OpDefBuilder op(name);
  op.Signature("x: T -> y: T")
      .Attr("T: {int32, int64} = DT_INT32")
      .Attr("src_format: string = 'NHWC'")
      .Attr("dst_format: string = 'NCHW'")
      .SetShapeFn(UnchangedShape)
      .Doc(StrCat(doc,
                  " `src_format` and `dst_format` are 4 or 5 letters, one for each dimension, the "
                  "same ones in both. `y` has the shape of `x`."));
  return op;
}

[[maybe_unused]] const internal::OpRegistrar kFormatOps[] = {
    FormatOp("DataFormatDimMap",
             "Gives the numbers in `dst_format` of the dimensions that have the numbers `x` in "
             "`src_format`; negative ones count from the back."),
    FormatOp("DataFormatVecPermute",
             "Puts what `x` has for each dimension of `src_format`, a number or a pair of them "
             "[n, 2], into the order of `dst_format`. `x` may have the sizes of space only."),
};

}  // namespace
}  // namespace troupe
