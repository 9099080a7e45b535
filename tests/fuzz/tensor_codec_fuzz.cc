// Elements of strings, resources and variants as another task sends them: what is accepted is
// written and read again. The first two bytes are the type and the shape.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "net/tensor_codec.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace troupe;  // NOLINT: a short program
  HostAllocator()->set_limit(64 << 20);
  if (size < 2) return 0;
  constexpr ElementType kTypes[] = {ElementType::kString, ElementType::kResource,
                                    ElementType::kVariant};
  const ElementType type = kTypes[data[0] % 3];
  const Shape shape = data[0] & 0x80 ? Shape({data[1] & 15, data[1] >> 4}) : Shape({data[1]});
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  const absl::StatusOr<Tensor> tensor = DecodeElements(type, shape, bytes);
  if (!tensor.ok()) return 0;
  if (tensor->type() != type || tensor->shape() != shape) std::abort();
  tensor->ToString();
  std::string written;
  if (!EncodeElements(*tensor, &written).ok()) std::abort();
  const absl::StatusOr<Tensor> copy = DecodeElements(type, shape, written);
  if (absl::IsResourceExhausted(copy.status())) return 0;
  std::string again;
  if (!copy.ok() || !EncodeElements(*copy, &again).ok() || again != written) std::abort();
  return 0;
}
