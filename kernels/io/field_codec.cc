#include "kernels/io/field_codec.h"

#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <bit>
#include <initializer_list>
#include <string>
#include <type_traits>

namespace troupe {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedOutputStream;
using Input = FieldCodec::Input;

/// How numbers lie on the wire: `kZigZag` is a varint in which small negative numbers are short.
enum class Form { kVarint, kZigZag, kFixed };

template <typename Value>
using BitsOf = std::conditional_t<sizeof(Value) == 4, uint32_t, uint64_t>;

template <Form kForm, typename Value>
bool ReadNumber(Input* from, Value* value) {
  if constexpr (kForm == Form::kFixed) {
    BitsOf<Value> bits = 0;
    if constexpr (sizeof(Value) == 4) {
      if (!from->ReadLittleEndian32(&bits)) return false;
    } else {
      if (!from->ReadLittleEndian64(&bits)) return false;
    }
    *value = std::bit_cast<Value>(bits);
  } else {
    uint64_t bits = 0;
    if (!from->ReadVarint64(&bits)) return false;
    if constexpr (kForm == Form::kVarint) {
      *value = static_cast<Value>(bits);
    } else if constexpr (sizeof(Value) == 4) {
      *value = WireFormatLite::ZigZagDecode32(static_cast<uint32_t>(bits));
    } else {
      *value = WireFormatLite::ZigZagDecode64(bits);
    }
  }
  return true;
}

template <Form kForm, typename Value, typename T>
bool Read(Input* from, uint32_t, void* values, int64_t index) {
  Value value{};
  if (!ReadNumber<kForm>(from, &value)) return false;
  static_cast<T*>(values)[index] = static_cast<T>(value);
  return true;
}

/// The number that is written for `value`: negative ones have all 64 bits.
template <Form kForm, typename Value>
uint64_t VarintOf(Value value) {
  if constexpr (kForm == Form::kVarint) {
    return static_cast<uint64_t>(value);
  } else if constexpr (sizeof(Value) == 4) {
    return WireFormatLite::ZigZagEncode32(value);
  } else {
    return WireFormatLite::ZigZagEncode64(value);
  }
}

template <Form kForm, typename Value, typename T>
size_t Size(const void* values, int64_t count) {
  if constexpr (kForm == Form::kFixed) return sizeof(Value) * static_cast<size_t>(count);
  size_t size = 0;
  const T* const numbers = static_cast<const T*>(values);
  for (int64_t i = 0; i < count; ++i) {
    size += CodedOutputStream::VarintSize64(VarintOf<kForm>(static_cast<Value>(numbers[i])));
  }
  return size;
}

template <Form kForm, typename Value, typename T>
uint8_t* Write(const void* values, int64_t index, uint8_t* to) {
  const auto value = static_cast<Value>(static_cast<const T*>(values)[index]);
  if constexpr (kForm != Form::kFixed) {
    return CodedOutputStream::WriteVarint64ToArray(VarintOf<kForm>(value), to);
  } else if constexpr (sizeof(Value) == 4) {
    return CodedOutputStream::WriteLittleEndian32ToArray(std::bit_cast<uint32_t>(value), to);
  } else {
    return CodedOutputStream::WriteLittleEndian64ToArray(std::bit_cast<uint64_t>(value), to);
  }
}

template <typename T>
T DefaultOf(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return static_cast<T>(field.default_value_int32());
    case FieldDescriptor::CPPTYPE_INT64:
      return static_cast<T>(field.default_value_int64());
    case FieldDescriptor::CPPTYPE_UINT32:
      return static_cast<T>(field.default_value_uint32());
    case FieldDescriptor::CPPTYPE_UINT64:
      return static_cast<T>(field.default_value_uint64());
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return static_cast<T>(field.default_value_double());
    case FieldDescriptor::CPPTYPE_FLOAT:
      return static_cast<T>(field.default_value_float());
    case FieldDescriptor::CPPTYPE_BOOL:
      return static_cast<T>(field.default_value_bool());
    case FieldDescriptor::CPPTYPE_ENUM:
      return static_cast<T>(field.default_value_enum()->number());
    default:
      return T{};
  }
}

template <typename T>
void Fill(const FieldDescriptor& field, void* values, int64_t begin, int64_t end) {
  T* const elements = static_cast<T*>(values);
  std::fill(elements + begin, elements + end, DefaultOf<T>(field));
}

/// `Packed` is what packed values are read as: TensorFlow takes an int32 among them for unsigned
/// where it widens it.
template <Form kForm, typename Value, typename T = Value, typename Packed = Value>
constexpr FieldCodec kNumbers = {kElementType<T>,
                                 sizeof(T),
                                 kForm != Form::kFixed ? WireFormatLite::WIRETYPE_VARINT
                                 : sizeof(Value) == 4  ? WireFormatLite::WIRETYPE_FIXED32
                                                       : WireFormatLite::WIRETYPE_FIXED64,
                                 Read<kForm, Value, T>,
                                 Read<kForm, Packed, T>,
                                 Fill<T>,
                                 Size<kForm, Value, T>,
                                 Write<kForm, Value, T>};

// --- strings -------------------------------------------------------------------------------------

bool ReadBytes(Input* from, uint32_t, void* values, int64_t index) {
  // No more is allocated than there are bytes left.
  uint32_t length = 0;
  return from->ReadVarint32(&length) && length <= INT32_MAX &&
         from->ReadString(static_cast<std::string*>(values) + index, static_cast<int>(length));
}

bool ReadGroup(Input* from, uint32_t tag, void* values, int64_t index) {
  auto* const group = static_cast<std::string*>(values) + index;
  group->clear();  // Of several the last one counts.
  google::protobuf::io::StringOutputStream bytes(group);
  CodedOutputStream to(&bytes);
  return WireFormatLite::SkipField(from, tag, &to);
}

void FillStrings(const FieldDescriptor& field, void* values, int64_t begin, int64_t end) {
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) return;  // They are empty.
  auto* const strings = static_cast<std::string*>(values);
  std::fill(strings + begin, strings + end, field.default_value_string());
}

template <bool kWithLength>
size_t SizeOfStrings(const void* values, int64_t count) {
  size_t size = 0;
  const auto* const strings = static_cast<const std::string*>(values);
  for (int64_t i = 0; i < count; ++i) {
    size += strings[i].size();
    if constexpr (kWithLength) size += CodedOutputStream::VarintSize64(strings[i].size());
  }
  return size;
}

template <bool kWithLength>
uint8_t* WriteString(const void* values, int64_t index, uint8_t* to) {
  const std::string& value = static_cast<const std::string*>(values)[index];
  if constexpr (kWithLength) to = CodedOutputStream::WriteVarint64ToArray(value.size(), to);
  return std::copy(value.begin(), value.end(), to);
}

constexpr FieldCodec kBytes = {ElementType::kString,
                               sizeof(std::string),
                               WireFormatLite::WIRETYPE_LENGTH_DELIMITED,
                               ReadBytes,
                               nullptr,
                               FillStrings,
                               SizeOfStrings<true>,
                               WriteString<true>};
constexpr FieldCodec kGroup = {ElementType::kString,
                               sizeof(std::string),
                               WireFormatLite::WIRETYPE_START_GROUP,
                               ReadGroup,
                               nullptr,
                               FillStrings,
                               SizeOfStrings<false>,
                               WriteString<false>};

}  // namespace

const FieldCodec* FindFieldCodec(FieldDescriptor::Type field, ElementType type) {
  const auto one_of = [type](std::initializer_list<const FieldCodec*> codecs) {
    const auto* const found =
        std::find_if(codecs.begin(), codecs.end(),
                     [type](const FieldCodec* codec) { return codec->type == type; });
    return found == codecs.end() ? nullptr : *found;
  };
  constexpr Form kVarint = Form::kVarint, kZigZag = Form::kZigZag, kFixed = Form::kFixed;
  switch (field) {
    case FieldDescriptor::TYPE_DOUBLE:
      return one_of({&kNumbers<kFixed, double>});
    case FieldDescriptor::TYPE_FLOAT:
      return one_of({&kNumbers<kFixed, float>, &kNumbers<kFixed, float, double>});
    case FieldDescriptor::TYPE_INT64:
      return one_of({&kNumbers<kVarint, int64_t>});
    case FieldDescriptor::TYPE_UINT64:
      return one_of({&kNumbers<kVarint, uint64_t>});
    case FieldDescriptor::TYPE_INT32:
      return one_of({&kNumbers<kVarint, int32_t>, &kNumbers<kVarint, int32_t, int64_t, uint32_t>});
    case FieldDescriptor::TYPE_UINT32:
      return one_of({&kNumbers<kVarint, uint32_t>, &kNumbers<kVarint, uint32_t, uint64_t>});
    case FieldDescriptor::TYPE_SINT32:
      return one_of({&kNumbers<kZigZag, int32_t>, &kNumbers<kZigZag, int32_t, int64_t>});
    case FieldDescriptor::TYPE_SINT64:
      return one_of({&kNumbers<kZigZag, int64_t>});
    case FieldDescriptor::TYPE_FIXED32:
      return one_of({&kNumbers<kFixed, uint32_t>, &kNumbers<kFixed, uint32_t, uint64_t>});
    case FieldDescriptor::TYPE_FIXED64:
      return one_of({&kNumbers<kFixed, uint64_t>});
    case FieldDescriptor::TYPE_SFIXED32:
      return one_of({&kNumbers<kFixed, int32_t>, &kNumbers<kFixed, int32_t, int64_t>});
    case FieldDescriptor::TYPE_SFIXED64:
      return one_of({&kNumbers<kFixed, int64_t>});
    case FieldDescriptor::TYPE_BOOL:
      return one_of({&kNumbers<kVarint, bool>});
    case FieldDescriptor::TYPE_ENUM:
      return one_of({&kNumbers<kVarint, int32_t>});
    case FieldDescriptor::TYPE_STRING:
    case FieldDescriptor::TYPE_BYTES:
    case FieldDescriptor::TYPE_MESSAGE:
      return one_of({&kBytes});
    case FieldDescriptor::TYPE_GROUP:
      return one_of({&kGroup});
  }
  return nullptr;
}

}  // namespace troupe
