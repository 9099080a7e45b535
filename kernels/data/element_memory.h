/// Where the tensors that lists, arrays and optionals hold are kept, and what is computed with
/// them.
#ifndef TROUPE_KERNELS_DATA_ELEMENT_MEMORY_H_
#define TROUPE_KERNELS_DATA_ELEMENT_MEMORY_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "devices/device.h"
#include "kernels/argument_spaces.h"
#include "kernels/common/registration.h"
#include "kernels/kernel.h"

namespace troupe {

/// Elements of a tensor that is put together.
struct Part {
  const Tensor* from;  ///< Whose first elements they are; nullptr: zeros.
  int64_t count;
};

/// Kernels of a device that those of lists call; made when they are first needed, kept for what is
/// enqueued. Thread-safe.
class ElementKernels {
 public:
  /// Calls the device's kernel of `op` for tensors of `type` ("AddV2", "ZerosLike", "ConcatV2")
  /// within the call of `ctx`. NotFound if there is none.
  absl::StatusOr<Tensor> Run(KernelContext& ctx, const char* op, ElementType type,
                             std::vector<Tensor> inputs);
  /// True if the device has such a kernel.
  bool Has(Device* device, const char* op, ElementType type, int num_inputs) {
    return Find(device, op, type, num_inputs).status.ok();
  }

 private:
  struct Made {
    absl::Status status;
    std::unique_ptr<Kernel> kernel;  ///< nullptr if there is none: `status` says why.
    ArgumentSpaces spaces;
  };
  const Made& Find(Device* device, const char* op, ElementType type, int num_inputs);
  static absl::StatusOr<Made> Make(Device* device, const char* op, ElementType type,
                                   int num_inputs);

  std::mutex mutex_;
  std::map<std::tuple<const Device*, std::string, ElementType, int>, Made> made_;
};

/// For one call of a kernel. On the host elements are on the host. On a device with a memory of its
/// own those that live there (`LivesOnDevice`) stay where they were made: they are joined, added
/// and cleared by the device's kernels and copies, on its compute stream. Elements that have come
/// from elsewhere are on the host, and are copied when they are wanted. `Device` and list are one:
/// what leaves the device has been copied to the host (`DownloadValue`).
class ElementMemory {
 public:
  ElementMemory(KernelContext* ctx, ElementKernels* kernels)
      : ctx_(*ctx), kernels_(*kernels), device_(ctx->step().device) {
    if (device_ != nullptr && device_->memory_space() == MemorySpace::kHost) device_ = nullptr;
  }

  /// True if elements of this type are in the device's memory.
  bool IsThere(ElementType type) const { return device_ != nullptr && LivesOnDevice(type); }

  /// The element where kernels of this device want it. ResourceExhausted, or what the device says.
  absl::StatusOr<Tensor> Fetch(Tensor element) const {
    return device_ == nullptr ? element : Move(std::move(element));
  }
  /// Zeros (empty strings, empty variants).
  absl::StatusOr<Tensor> Zeros(ElementType type, const Shape& shape) const;
  /// Zeros of the type and shape of `tensor`: values in variants keep their structure.
  absl::StatusOr<Tensor> ZerosLike(const Tensor& tensor) const;
  /// `*sum` += `addend` element by element: in place if nobody else holds the elements, else in new
  /// memory. InvalidArgument if types or shapes differ, Unimplemented for types that cannot be
  /// added.
  absl::Status Add(Tensor* sum, const Tensor& addend) const;
  /// Output `out` becomes the parts one after another; they must fill it.
  absl::Status PutJoined(int out, ElementType type, const Shape& shape,
                         absl::Span<const Part> parts) const;

 private:
  absl::StatusOr<Tensor> Move(Tensor element) const;
  absl::Status AddVariants(Tensor* sum, const Tensor& addend) const;
  absl::StatusOr<Tensor> Join(ElementType type, const Shape& shape,
                              absl::Span<const Part> parts) const;

  KernelContext& ctx_;
  ElementKernels& kernels_;
  Device* device_;  ///< nullptr: the host's memory.
};

/// An element that others have kept, where kernels of the context's device want it: in its memory
/// if such elements live there, copied if it has come from the host. ResourceExhausted, or what the
/// device says; Internal for what is in a device's memory and must not be.
absl::StatusOr<Tensor> FetchElement(const KernelContext& ctx, Tensor element);
/// Makes them outputs, from output `first` on.
absl::Status PutElements(KernelContext& ctx, int first, std::vector<Tensor> elements);

/// Makes output i a scalar on the host.
template <typename T>
absl::Status PutHostScalar(KernelContext& ctx, int i, T value) {
  TROUPE_ASSIGN_OR_RETURN(Tensor * output, ctx.AllocateHostOutput(i, kElementType<T>, Shape()));
  *output->mutable_data<T>() = value;
  return absl::OkStatus();
}

/// Calls `done` once with `value` on the host: a tensor in the device's memory is copied, of a
/// variant what it holds (lists in lists too), everything else is given back at once. As `Download`
/// does it.
void DownloadValue(Device* device, const Tensor& value,
                   std::function<void(absl::StatusOr<Tensor>)> done);

/// Puts copies on the host in place of the tensors that are in the memory of `device`, and calls
/// `done` once. The tensors stay where they are until then.
void DownloadTensors(Device* device, const std::vector<Tensor*>& tensors,
                     std::function<void(absl::Status)> done);
/// The same for a tuple, which is given to `done`.
void DownloadTuple(Device* device, std::vector<Tensor> tuple,
                   std::function<void(absl::StatusOr<std::vector<Tensor>>)> done);

namespace internal {

template <auto kCompute, typename... Attrs>
struct ElementKernel final : Kernel {
  absl::Status Compute(KernelContext& ctx) override {
    ElementMemory memory(&ctx, &kernels);
    return std::apply([&](const Attrs&... values) { return kCompute(ctx, memory, values...); },
                      attrs);
  }
  std::tuple<Attrs...> attrs;
  ElementKernels kernels;
};

template <auto kCompute, typename... Parameters, typename... Names>
absl::StatusOr<std::unique_ptr<Kernel>> MakeElementKernel(
    absl::Status (*)(KernelContext&, ElementMemory&, Parameters...),
    KernelConstruction& construction, Names... names) {
  auto kernel = std::make_unique<ElementKernel<kCompute, std::decay_t<Parameters>...>>();
  absl::Status status;
  std::apply(
      [&](std::decay_t<Parameters>&... values) {
        static_cast<void>(((status = construction.GetAttr(names, &values)).ok() && ...));
      },
      kernel->attrs);
  if (!status.ok()) return status;
  return kernel;
}

}  // namespace internal

/// As `MakeAttrKernel`, for functions that take an `ElementMemory` after the context.
template <auto kCompute, internal::Literal... kNames>
absl::StatusOr<std::unique_ptr<Kernel>> MakeElementKernel(KernelConstruction& construction) {
  return internal::MakeElementKernel<kCompute>(kCompute, construction, kNames.text...);
}

}  // namespace troupe

#endif  // TROUPE_KERNELS_DATA_ELEMENT_MEMORY_H_
