/// Tensors to protocol buffer messages: what EncodeProto does.
#ifndef TROUPE_KERNELS_IO_MESSAGE_ENCODER_H_
#define TROUPE_KERNELS_IO_MESSAGE_ENCODER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "devices/cpu/compute_pool.h"
#include "devices/tensor.h"
#include "kernels/io/field_codec.h"
#include "kernels/io/message_type.h"

namespace troupe {

/// Writes some fields of messages of one type. Immutable after `Create`; thread-safe.
class MessageEncoder {
 public:
  /// InvalidArgument if there is no field of such a name or if elements of its type, of which there
  /// are as many, are no values of it (`FindFieldCodec`).
  static absl::StatusOr<MessageEncoder> Create(MessageType type,
                                               absl::Span<const std::string> field_names,
                                               absl::Span<const ElementType> types);

  /// Serializes messages of the fields' first values: `sizes`, of shape `batch + [fields]`, says
  /// how many of each message, and `values[f]`, of shape `batch + [n]` and of the type that was
  /// given, holds those of field f. A size that is negative is none. Fields are in the order of
  /// their numbers. Gives strings of shape `batch`. InvalidArgument if the shapes do not agree, or
  /// for a size above n.
  absl::StatusOr<Tensor> Encode(const Tensor& sizes, absl::Span<const Tensor> values,
                                ComputePool* pool) const;

 private:
  struct Field {
    const google::protobuf::FieldDescriptor* descriptor;
    const FieldCodec* codec;
    int64_t input;  ///< Its place in the order in which fields were named.
  };

  /// The values of a field that one message has.
  struct Part {
    const Field* field;
    const void* values;
    int64_t count;
    size_t value_bytes;
  };

  explicit MessageEncoder(MessageType type) : type_(std::move(type)) {}
  absl::Status Check(const Tensor& sizes, absl::Span<const Tensor> values) const;
  static absl::Status Write(absl::Span<const Part> parts, std::string* to);

  MessageType type_;
  std::vector<Field> fields_;  // By number.
};

}  // namespace troupe

#endif  // TROUPE_KERNELS_IO_MESSAGE_ENCODER_H_
