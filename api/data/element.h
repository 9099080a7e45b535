/// What flows from stage to stage of a dataset.
#ifndef TROUPE_API_DATA_ELEMENT_H_
#define TROUPE_API_DATA_ELEMENT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "devices/tensor.h"
#include "devices/upload_ahead.h"

namespace troupe::data {

/// Copies of components in the memory of a device; none of those that stay on the host.
using UploadedComponents = std::vector<std::optional<UploadAhead>>;

/// A tuple of tensors. A value; tensors are shared.
struct Element {
  absl::InlinedVector<Tensor, 2> components;
  /// Bit i: component i, a string scalar, is held as its bytes: a vector of uint8.
  uint64_t as_bytes = 0;
  /// Tensors view memory that is shared by many elements and held by nobody else: whoever keeps the
  /// element for long makes it compact first.
  bool of_block = false;
  /// What users get in place of the components, once; null: these. Of the last stage only.
  std::shared_ptr<UploadedComponents> uploaded;

  bool is_bytes(size_t i) const { return i < 64 && ((as_bytes >> i) & 1) != 0; }
};

using Block = std::vector<Element>;

/// An element of one string, which is held as its bytes.
Element BytesElement(RefPtr<Buffer> buffer, const char* data, size_t size);
inline std::string_view BytesOf(const Tensor& bytes) {
  return {static_cast<const char*>(bytes.raw_data()), bytes.bytes()};
}

/// Appends the components of `from`.
void Append(Element from, Element* to);
/// Gives the element memory of its own, if it is of a block. ResourceExhausted.
absl::Status MakeCompact(Element* element);
/// Has the components that kernels of the device expect in its memory copied there. What the device
/// has no room for stays on the host.
void BeginUpload(Device* device, Element* element);
/// The tensors as users see them.
std::vector<Tensor> ToTensors(Element element);
/// InvalidArgument: a tensor that is none, or not in host memory.
absl::StatusOr<Element> ToElement(std::vector<Tensor> tensors);

/// Component `i` of all elements, stacked along a new dimension 0. InvalidArgument if their types
/// or shapes differ, unless `padding` is given, a scalar of their type (an invalid tensor stands
/// for zero, or ""): shapes of one rank are then filled up to `shape`, where that is known,
/// else to the largest.
absl::StatusOr<Tensor> Stack(const Block& elements, size_t i);
absl::StatusOr<Tensor> StackPadded(const Block& elements, size_t i, const PartialShape& shape,
                                   const Tensor& padding);

/// A batch of `n` whose elements come one after the other. Large ones are copied to their place at
/// once, while they are in the processor's cache, and give their memory back.
class BatchAhead {
 public:
  explicit BatchAhead(size_t n) : n_(n) {}
  /// Makes the components of those from `first` on views of the batch, where they are large and
  /// like those of the first.
  void Take(Block* elements, size_t first);
  /// Component `i` of the `n` elements, stacked, if all are such views; else an invalid tensor.
  Tensor Stacked(const Block& elements, size_t i);
  void Clear() { batch_.clear(); }

 private:
  const size_t n_;
  absl::InlinedVector<Tensor, 2> batch_;  ///< Invalid: a component that Take leaves alone.
};

}  // namespace troupe::data

#endif  // TROUPE_API_DATA_ELEMENT_H_
