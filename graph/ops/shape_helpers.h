/// Arithmetic on partly known sizes and shapes, for shape functions. Unknown sizes are -1. Errors
/// are InvalidArgument.
#ifndef TROUPE_GRAPH_OPS_SHAPE_HELPERS_H_
#define TROUPE_GRAPH_OPS_SHAPE_HELPERS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "devices/shape.h"
#include "devices/tensor.h"
#include "graph/shape_inference.h"

namespace troupe {

// --- sizes ---

/// a + b; the sum must fit 63 bits.
absl::StatusOr<int64_t> AddDims(int64_t a, int64_t b);
/// a - b; must not be negative.
absl::StatusOr<int64_t> SubtractDims(int64_t a, int64_t b);
/// a * b; 0 if either is 0; the product must fit 63 bits.
absl::StatusOr<int64_t> MultiplyDims(int64_t a, int64_t b);
/// a / b for a positive, known b; the remainder must be 0 if `exact`.
absl::StatusOr<int64_t> DivideDim(int64_t a, int64_t b, bool exact);
/// `size`, known to be `value`.
absl::StatusOr<int64_t> WithValue(int64_t size, int64_t value);

/// Product of the known sizes; `*unknown` is the position of the unknown one, -1 if all are known,
/// -2 if several are not. A size 0 makes the product 0, known whatever the others are.
absl::StatusOr<int64_t> KnownElements(const PartialShape& shape, int* unknown);

// --- shapes ---

/// `axis` in [-rank, rank), counted from the front. `what` names it in the message.
absl::StatusOr<int> CanonicalAxis(int64_t axis, int rank, std::string_view what);
/// Sets the common sizes of `shape` and of its prefix; the prefix must fit. Unknown ranks fit.
absl::Status MergePrefix(const PartialShape& shape, const PartialShape& prefix,
                         PartialShape* merged);
/// NumPy's broadcasting; shapes that contradict each other are an error, or give a scalar where
/// `tolerant`; sizes that might do so then give an unknown shape.
absl::StatusOr<PartialShape> BroadcastShapes(const PartialShape& a, const PartialShape& b,
                                             bool tolerant);

// --- values of inputs ---

/// The elements of an integer tensor of any integer type.
std::vector<int64_t> IntegerValues(const Tensor& tensor);
/// The elements of a tensor of int32 or int64; nullopt for other types.
std::optional<std::vector<int64_t>> IndexValues(const Tensor& tensor);
/// The only element of a constant scalar that is an integer; InvalidArgument if it is no scalar.
absl::StatusOr<int64_t> ScalarValue(const Tensor& tensor);
/// Input i, a scalar axis of a tensor of rank `rank` (-1: unknown), counted from the front; -1 if
/// it is not known.
absl::StatusOr<int64_t> AxisInput(InferenceContext* c, int i, int rank);
/// The shape behind the resource handle that is input i; unknown if nothing is known.
PartialShape HandleShape(InferenceContext* c, int i);

// --- windows of convolutions and poolings ---

enum class Padding { kSame, kValid, kExplicit };

/// Where batch, channels, height and width are among the 4 dimensions of an image batch.
struct ImageLayout {
  int batch = 0, channels = 3, height = 1, width = 2;
};

/// From the attribute `data_format`; the layout NHWC where it is absent.
absl::StatusOr<ImageLayout> ImageLayoutOf(InferenceContext* c);
/// From the attribute `padding`, checked against `explicit_paddings` (two for each dimension),
/// which is filled, with zeros unless the padding is explicit.
absl::StatusOr<Padding> PaddingOf(InferenceContext* c, const ImageLayout& layout,
                                  std::vector<int64_t>* explicit_paddings);
/// The integers of the attribute `name`, of which there must be 4.
absl::StatusOr<std::vector<int64_t>> FourIntegers(InferenceContext* c, std::string_view name);

/// Number of positions of a window of `window` elements, `dilation` apart, that moves by `stride`.
absl::StatusOr<int64_t> WindowPositions(int64_t input, int64_t window, int64_t dilation,
                                        int64_t stride, Padding padding, int64_t before,
                                        int64_t after);

/// The shape of the variable behind the handle that is input 0; its type must be the attribute
/// `dtype`.
absl::StatusOr<PartialShape> CheckedHandleShape(InferenceContext* c);

/// Gives output 0 the shape, or the error.
absl::Status SetShape(InferenceContext* c, absl::StatusOr<PartialShape> shape);

// Shape functions of ops in several files.
absl::Status ShapeAttrShape(InferenceContext* c);  ///< The attribute `shape`, for output 0.
absl::Status ShapesOfAttr(InferenceContext* c, std::string_view name);  ///< All; none: unknown.
absl::Status FirstInputAsShape(InferenceContext* c);  ///< Output 0: input 0, a vector of sizes.

/// Input 0 without the axes that input 1 names, which attribute `keep_dims` keeps with size 1.
absl::Status ReductionShape(InferenceContext* c);

}  // namespace troupe

#endif  // TROUPE_GRAPH_OPS_SHAPE_HELPERS_H_
