/// Tensor arrays: the resource behind the TensorArray ops.
#ifndef TROUPE_KERNELS_DATA_TENSOR_ARRAY_H_
#define TROUPE_KERNELS_DATA_TENSOR_ARRAY_H_

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "devices/resource_handle.h"
#include "devices/tensor.h"
#include "kernels/data/element_memory.h"
#include "kernels/kernel.h"

namespace troupe {

/// `type_name` of the handles of tensor arrays.
inline constexpr char kTensorArrayTypeName[] = "TensorArray";
/// Container of the arrays with strings as handles in the step's resources.
inline constexpr char kTensorArrayContainer[] = "_tensor_arrays";

/// An array of tensors of one element type, each written once and read (perhaps once). Errors are
/// InvalidArgument and name the array. Thread-safe.
class TensorArrayResource final : public Resource {
 public:
  struct Options {
    std::string name;  ///< For messages.
    ElementType type = ElementType::kInvalid;
    PartialShape element_shape;
    bool dynamic_size = false;              ///< Writes past the end make it longer.
    bool clear_after_read = true;           ///< An element can be read once.
    bool identical_element_shapes = false;  ///< The first one written decides for all.
    bool aggregate = false;  ///< Several writes to one index are added up (gradients).
    /// In whose memory its elements are; only kernels of this device use it.
    const Device* device = nullptr;
  };
  /// Elements that memory is reserved for: a guard against indices that are mistakes.
  static constexpr int64_t kMaxStored = int64_t{1} << 25;

  TensorArrayResource(Options options, int64_t size) : options_(std::move(options)), size_(size) {}
  ~TensorArrayResource() override;

  const std::string& array_name() const { return options_.name; }
  ElementType type() const { return options_.type; }
  const Device* device() const { return options_.device; }
  std::string DebugString() const override;

  absl::Status Write(int64_t index, Tensor value, const ElementMemory& memory);
  /// Element `indices[k]` becomes `values[k]`, one after the other.
  absl::Status WriteMany(absl::Span<const int32_t> indices, std::vector<Tensor> values,
                         const ElementMemory& memory);
  /// What was written; zeros if nothing was and the shape is known.
  absl::StatusOr<Tensor> Read(int64_t index, const ElementMemory& memory);
  absl::Status ReadMany(absl::Span<const int32_t> indices, const ElementMemory& memory,
                        std::vector<Tensor>* values);
  absl::Status ReadAll(const ElementMemory& memory, std::vector<Tensor>* values);

  absl::StatusOr<int64_t> Size();
  bool dynamic_size();
  PartialShape element_shape();
  /// What is known of the elements' shape grows by `shape`.
  absl::Status MergeElementShape(const PartialShape& shape);
  /// Lets go of the elements; every later use is an error.
  void Close();

  /// The array for gradients called `source`: as long as this one, which cannot grow any more, with
  /// the shapes of its elements (`prepend`: dimensions before them). Made by the first call, kept
  /// as long as this array.
  absl::StatusOr<RefPtr<TensorArrayResource>> Gradient(std::string_view source,
                                                       absl::Span<const int64_t> prepend);

 private:
  struct Element {
    Tensor tensor;  ///< Not valid: zeros of `shape` if `written`.
    Shape shape;
    bool written = false, read = false, cleared = false;
  };

  // With the lock held.
  absl::Status CheckOpen() const;
  absl::Status StoreUpTo(int64_t size);
  absl::Status WriteLocked(int64_t index, Tensor value, const ElementMemory& memory);
  absl::StatusOr<Tensor> ReadLocked(int64_t index, const ElementMemory& memory);

  std::mutex mutex_;
  Options options_;
  int64_t size_;
  bool closed_ = false;
  bool added_up_ = false;        ///< An index of this array of gradients was written to repeatedly.
  std::vector<Element> stored_;  ///< The rest has not been written to.
  std::vector<std::pair<std::string, RefPtr<TensorArrayResource>>> gradients_;
};

/// The array that input 0 of a kernel is a handle to: a resource, or a vector of two strings, or a
/// reference to one, by which it is found among the step's resources. InvalidArgument, also if its
/// elements are in the memory of another device; NotFound.
absl::StatusOr<RefPtr<TensorArrayResource>> FindTensorArray(KernelContext& ctx);
/// The same; InvalidArgument if it does not hold elements of `type`.
absl::StatusOr<RefPtr<TensorArrayResource>> FindTensorArray(KernelContext& ctx, ElementType type);

}  // namespace troupe

#endif  // TROUPE_KERNELS_DATA_TENSOR_ARRAY_H_
