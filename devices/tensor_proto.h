/// Conversion between `Tensor` and the wire message `TensorProto`.
#ifndef TROUPE_DEVICES_TENSOR_PROTO_H_
#define TROUPE_DEVICES_TENSOR_PROTO_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "devices/export.h"
#include "devices/tensor.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

/// Accepts both forms that TensorFlow writes: `tensor_content` (little-endian) and the typed
/// `*_val` fields, of which the last value repeats up to the shape's size (none at all: zeros).
/// Values beyond the shape's size are ignored. Sizes are checked against what the message holds
/// before memory is taken; what is filled up beyond that is at most 1 GiB, else ResourceExhausted.
/// InvalidArgument for negative or overflowing shapes, wrong content length,
/// or a type that holds no tensors; Unimplemented for variants.
absl::StatusOr<Tensor> TensorFromProto(const TensorProto& proto);

/// The same, without copying large contents: `proto` is left empty, or with an error as it may be.
absl::StatusOr<Tensor> TakeTensorFromProto(TensorProto* proto);

/// The same of a message that holds every element, as `TensorToProto` writes them. InvalidArgument
/// if it claims more elements than it has bytes: memory grows with what messages hold, not with
/// what they claim.
absl::StatusOr<Tensor> TakeWholeTensorFromProto(TensorProto* proto);

/// Plain types go to `tensor_content` when they have more than a few elements, else to typed
/// fields, as TensorFlow's Python does for constants; both are read by TensorFlow.
void TensorToProto(const Tensor& tensor, TensorProto* proto);

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_DEVICES_TENSOR_PROTO_H_
