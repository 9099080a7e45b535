// The forms in which the values of variants travel: tensor lists and optionals.

#include <string>
#include <utility>
#include <vector>

#include "devices/status_macros.h"
#include "kernels/control/optional.h"
#include "kernels/data/tensor_list.h"
#include "net/tensor_codec.h"

namespace troupe {
namespace {

template <VariantValue::Kind kKind>
bool Handles(const Variant& value) {
  const VariantValue* held = ValueOf(value);
  return held != nullptr && held->kind() == kKind;
}

absl::Status Malformed(const char* what) {
  return InvalidArgument("a variant that holds a ", what, " is malformed");
}

// A list: element type, element shape, most elements, number of elements, how many are stored, and
// those.
absl::Status EncodeList(const Variant& value, int depth, std::string* out) {
  const auto& list = static_cast<const TensorList&>(*ValueOf(value));
  WireWriter writer(out);
  writer.Number(static_cast<uint8_t>(list.type()));
  EncodePartialShape(list.element_shape(), out);
  writer.Number(list.max_size());
  writer.Number(list.size());
  writer.Varint(list.stored().size());
  for (const Tensor& element : list.stored()) {
    TROUPE_RETURN_IF_ERROR(EncodeNestedTensor(element, depth, out));
  }
  return absl::OkStatus();
}

absl::StatusOr<Variant> DecodeList(std::string_view bytes, int depth, Allocator* allocator) {
  WireReader reader(bytes);
  uint8_t type = 0;
  PartialShape shape;
  int64_t max_size = 0, size = 0;
  uint64_t stored = 0;
  if (!reader.Number(&type) || !DecodePartialShape(&reader, &shape) || !reader.Number(&max_size) ||
      !reader.Number(&size) || !reader.Varint(&stored) || size < 0 || size > TensorList::kMaxSize ||
      stored > static_cast<uint64_t>(size) || stored > reader.left()) {
    return Malformed("tensor list");
  }
  auto list = MakeRef<TensorList>(static_cast<ElementType>(type), shape, max_size);
  list->Resize(size);
  bytes.remove_prefix(bytes.size() - reader.left());
  for (int64_t i = 0; i < static_cast<int64_t>(stored); ++i) {
    TROUPE_ASSIGN_OR_RETURN(Tensor element, DecodeNestedTensor(&bytes, depth, allocator));
    if (!element.valid()) continue;
    TROUPE_RETURN_IF_ERROR(list->Check(element, "append"));
    TROUPE_RETURN_IF_ERROR(list->Set(i, std::move(element)));
  }
  if (!bytes.empty()) return Malformed("tensor list");
  return Variant(RefPtr<VariantValue>(std::move(list)));
}

// An optional: 0, or the number of components plus 1, and those.
absl::Status EncodeOptional(const Variant& value, int depth, std::string* out) {
  const auto& optional = static_cast<const Optional&>(*ValueOf(value));
  WireWriter writer(out);
  writer.Varint(optional.has_value() ? optional.components().size() + 1 : 0);
  for (const Tensor& component : optional.components()) {
    TROUPE_RETURN_IF_ERROR(EncodeNestedTensor(component, depth, out));
  }
  return absl::OkStatus();
}

absl::StatusOr<Variant> DecodeOptional(std::string_view bytes, int depth, Allocator* allocator) {
  WireReader reader(bytes);
  uint64_t count = 0;
  if (!reader.Varint(&count) || count > reader.left() + 1) return Malformed("optional");
  bytes.remove_prefix(bytes.size() - reader.left());
  auto optional = MakeRef<Optional>();
  if (count > 0) {
    std::vector<Tensor> components;
    for (uint64_t i = 1; i < count; ++i) {
      TROUPE_ASSIGN_OR_RETURN(Tensor component, DecodeNestedTensor(&bytes, depth, allocator));
      components.push_back(std::move(component));
    }
    TROUPE_RETURN_IF_ERROR(optional->Set(std::move(components)));
  }
  if (!bytes.empty()) return Malformed("optional");
  return Variant(RefPtr<VariantValue>(std::move(optional)));
}

const bool kRegistered = [] {
  RegisterVariantCodec("TensorList", {Handles<VariantValue::Kind::kList>, EncodeList, DecodeList});
  RegisterVariantCodec("Optional",
                       {Handles<VariantValue::Kind::kOptional>, EncodeOptional, DecodeOptional});
  return true;
}();

}  // namespace
}  // namespace troupe
