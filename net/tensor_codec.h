/// The bytes in which tensors of strings, resources and variants travel. Other tensors travel as
/// they lie in memory.
#ifndef TROUPE_NET_TENSOR_CODEC_H_
#define TROUPE_NET_TENSOR_CODEC_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "devices/allocator.h"
#include "devices/tensor.h"

namespace troupe {

/// Serializes the elements of a tensor that is not plain. Strings: each its length as a varint and
/// its bytes. Resources: the fields of the handle; the resource itself stays where it is. Variants:
/// the name of what they hold, a tensor list or an optional, and its form. Unimplemented for
/// others.
absl::Status EncodeElements(const Tensor& tensor, std::string* out);

/// The reverse. Lengths are checked before memory is taken. InvalidArgument, ResourceExhausted.
absl::StatusOr<Tensor> DecodeElements(ElementType type, const Shape& shape, std::string_view bytes,
                                      Allocator* allocator = HostAllocator());

/// The memory that a tensor takes which travels as so many bytes: a string of one byte is an object
/// of 32. Both ends of a connection compute it in the same way, so that sizes of objects are part
/// of the protocol. `shape` has at most `wire_bytes` elements.
uint64_t DecodedBytes(ElementType type, const Shape& shape, uint64_t wire_bytes);

/// A whole tensor inside another value's form: type, shape and elements. An invalid tensor is kept
/// as such. `depth` counts the variants around it; InvalidArgument beyond 64 levels.
absl::Status EncodeNestedTensor(const Tensor& tensor, int depth, std::string* out);
/// Takes one from the front of `*bytes`.
absl::StatusOr<Tensor> DecodeNestedTensor(std::string_view* bytes, int depth, Allocator* allocator);

/// The bytes as a tensor of uint8 [size], without copying them.
Tensor AsTensor(std::string&& bytes);

}  // namespace troupe

#endif  // TROUPE_NET_TENSOR_CODEC_H_
