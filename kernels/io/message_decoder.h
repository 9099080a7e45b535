/// Protocol buffer messages to tensors: what DecodeProtoV2 does.
#ifndef TROUPE_KERNELS_IO_MESSAGE_DECODER_H_
#define TROUPE_KERNELS_IO_MESSAGE_DECODER_H_

#include <google/protobuf/dynamic_message.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "devices/cpu/compute_pool.h"
#include "devices/tensor.h"
#include "kernels/io/field_codec.h"
#include "kernels/io/message_type.h"

namespace troupe {

struct MessageDecoderOptions {
  bool text = false;      ///< Messages are in protobuf's text form.
  bool sanitize = false;  ///< Serialized messages are parsed as a whole and serialized anew first.
};

/// Reads some fields of messages of one type. Immutable after `Create`; thread-safe.
class MessageDecoder {
 public:
  /// Fields are named as in the message, extensions by their full names. InvalidArgument if there
  /// is no such field or if `types`, which are as many, cannot hold one's values
  /// (`FindFieldCodec`).
  static absl::StatusOr<std::unique_ptr<MessageDecoder>> Create(
      MessageType type, absl::Span<const std::string> field_names,
      absl::Span<const ElementType> types, const MessageDecoderOptions& options);

  /// Decodes strings of any shape. First comes the number of values of each field, int32 of shape
  /// `messages.shape + [fields]`; then the values of each field, of shape `messages.shape + [m]`,
  /// where m is the most values that a message has of it, 1 at least: the rest are the field's
  /// default. Of a field that is not repeated the last value counts. DataLoss for strings that are
  /// no messages of the type, as far as that is looked at; InvalidArgument if there is no string.
  absl::StatusOr<std::vector<Tensor>> Decode(const Tensor& messages, ComputePool* pool) const;

 private:
  struct Field {
    const google::protobuf::FieldDescriptor* descriptor;
    const FieldCodec* codec;
    int64_t output;  ///< Its place in the order in which fields were asked for.
    int32_t number;
    bool repeated;
  };
  struct Counts;
  struct Values;

  explicit MessageDecoder(MessageType type) : type_(std::move(type)) {}
  absl::Status PrepareParsing();
  absl::Status AddField(const std::string& name, ElementType type);
  const Field* Find(int32_t number) const;
  absl::StatusOr<std::string> Serialized(const std::string& message) const;
  template <typename Visitor>
  absl::Status Visit(std::string_view message, Visitor visitor) const;

  MessageType type_;
  std::vector<Field> fields_;  // By number; of several with one number the first is filled.
  MessageDecoderOptions options_;
  google::protobuf::DynamicMessageFactory factory_;
  const google::protobuf::Message* prototype_ = nullptr;  // nullptr: messages are read in place.
};

}  // namespace troupe

#endif  // TROUPE_KERNELS_IO_MESSAGE_DECODER_H_
