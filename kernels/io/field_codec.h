/// The values of a field of a protocol buffer message, on the wire and in a tensor.
#ifndef TROUPE_KERNELS_IO_FIELD_CODEC_H_
#define TROUPE_KERNELS_IO_FIELD_CODEC_H_

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <cstddef>
#include <cstdint>

#include "devices/element_type.h"

namespace troupe {

/// Moves values of one type of field from and to elements of one type. `values` is an array of such
/// elements.
struct FieldCodec {
  using Input = google::protobuf::io::CodedInputStream;
  using WireType = google::protobuf::internal::WireFormatLite::WireType;

  ElementType type;
  size_t element_size;
  /// How one value lies on the wire.
  WireType wire_type;
  /// Reads what follows `tag` into `values[index]`. False if the bytes are wrong.
  bool (*read)(Input* from, uint32_t tag, void* values, int64_t index);
  /// The same for a value among packed ones; nullptr for strings, messages and groups.
  bool (*read_packed)(Input* from, uint32_t tag, void* values, int64_t index);
  /// Writes the field's default into values [begin, end).
  void (*fill)(const google::protobuf::FieldDescriptor& field, void* values, int64_t begin,
               int64_t end);
  /// The bytes that `count` values take without their tags.
  size_t (*size)(const void* values, int64_t count);
  /// Writes `values[index]` without a tag; gives the end of what it has written.
  uint8_t* (*write)(const void* values, int64_t index, uint8_t* to);
};

/// The codec for a field's type and an element type; nullptr if elements of that type do not hold
/// such values. Numbers of 32 bits may be held in 64, and a float in a double; enumerations are
/// int32; strings, bytes, messages and groups are strings. A group is held with its tags.
const FieldCodec* FindFieldCodec(google::protobuf::FieldDescriptor::Type field, ElementType type);

}  // namespace troupe

#endif  // TROUPE_KERNELS_IO_FIELD_CODEC_H_
