/// Finding the kernel for a node.
///
///     REGISTER_KERNEL(KernelSpec("Neg").Device("CPU").Types("T", kNumberTypes), MakeNeg);
#ifndef TROUPE_KERNELS_KERNEL_REGISTRY_H_
#define TROUPE_KERNELS_KERNEL_REGISTRY_H_

#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "devices/element_type.h"
#include "devices/export.h"
#include "graph/op_registry.h"
#include "kernels/kernel.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

/// Makes a kernel for one node; it dispatches on the node's types itself.
using KernelFactory = absl::StatusOr<std::unique_ptr<Kernel>> (*)(KernelConstruction& construction);

/// How a kernel is expected to spend its time, before it has been measured.
enum class KernelCost : uint8_t {
  kCheap,      ///< Less than a microsecond on usual inputs, or independent of sizes (shape ops,
               ///< pass-through).
  kBySize,     ///< Grows with the elements (the default).
  kExpensive,  ///< Worth another thread even before it is measured (products, convolutions).
};

/// One registration: an op, a device type, the element types it serves. Nothing of it is inline,
/// for every kernel's file would compile it again.
struct KernelSpec {
  explicit KernelSpec(std::string_view op_name);
  KernelSpec(const KernelSpec&);
  KernelSpec(KernelSpec&&) noexcept;
  KernelSpec& operator=(const KernelSpec&);
  KernelSpec& operator=(KernelSpec&&) noexcept;
  ~KernelSpec();

  KernelSpec& Device(std::string_view type);
  /// Only nodes whose type attribute `attr` is one of `types` (for list(type): all of them are).
  /// Several constraints must all hold.
  KernelSpec& Types(std::string_view attr, absl::Span<const ElementType> types);
  /// An argument (input or output) that lives in host memory on a device that has a memory of its
  /// own. What is no plain bytes lives there anyway. A kernel of which all
  /// arguments do runs on the host, like one of the CPU.
  KernelSpec& HostMemory(std::string_view argument);
  KernelSpec& Cost(KernelCost c);
  /// Chosen over others that fit as well.
  KernelSpec& Priority(int p);

  std::string op;
  std::string device_type = "CPU";
  std::vector<std::pair<std::string, std::vector<ElementType>>> constraints;
  std::vector<std::string> host_arguments;
  KernelCost cost = KernelCost::kBySize;
  int priority = 0;
};

struct KernelRegistration {
  KernelSpec spec;
  KernelFactory factory;
};

/// Thread-safe.
class KernelRegistry {
 public:
  static KernelRegistry* Global();
  void Register(KernelSpec spec, KernelFactory factory);
  /// The registration that fits a node's attributes. NotFound lists what is registered for the op.
  absl::StatusOr<const KernelRegistration*> Find(std::string_view device_type,
                                                 const NodeDef& def) const;
  /// Finds and makes the kernel. NotFound / the factory's error, with node name and op.
  absl::StatusOr<std::unique_ptr<Kernel>> Create(KernelConstruction& construction,
                                                 std::string_view device_type) const;
  std::vector<const KernelRegistration*> ForOp(std::string_view op) const;

 private:
  KernelRegistry();
  struct TROUPE_LOCAL Impl;
  Impl* impl_;
};

namespace internal {
struct KernelRegistrar {
  KernelRegistrar(const KernelSpec& spec, KernelFactory factory);
};
}  // namespace internal

#define REGISTER_KERNEL(SPEC, FACTORY)                                             \
  [[maybe_unused]] static const ::troupe::internal::KernelRegistrar TROUPE_CONCAT( \
      troupe_kernel_registrar_, __COUNTER__)(SPEC, FACTORY)

/// A factory for a kernel class whose constructor is K(), or K(KernelConstruction&, absl::Status*).
template <typename K>
absl::StatusOr<std::unique_ptr<Kernel>> MakeKernel(KernelConstruction& construction) {
  if constexpr (std::is_default_constructible_v<K>) {
    return std::make_unique<K>();
  } else {
    absl::Status status;
    auto kernel = std::make_unique<K>(construction, &status);
    if (!status.ok()) return status;
    return kernel;
  }
}

/// The same for a kernel without attributes or state: a function that computes.
template <absl::Status (*kCompute)(KernelContext& ctx)>
absl::StatusOr<std::unique_ptr<Kernel>> MakeKernel(KernelConstruction&) {
  struct FunctionKernel final : Kernel {
    absl::Status Compute(KernelContext& ctx) override { return kCompute(ctx); }
  };
  return std::make_unique<FunctionKernel>();
}

/// Lists of element types for registrations.
std::vector<ElementType> IndexTypes();       ///< int32 and int64.
std::vector<ElementType> RealNumberTypes();  ///< All integers, half, bfloat16, float, double.
std::vector<ElementType> NumberTypes();      ///< And the complex types.
std::vector<ElementType> FloatTypes();       ///< half, bfloat16, float, double.
std::vector<ElementType> FloatAndComplexTypes();
std::vector<ElementType> PlainTypes();  ///< NumberTypes and bool.
std::vector<ElementType> AllTypes();    ///< And string, resource, variant, the quantized types.
std::vector<ElementType> WithString(std::vector<ElementType> types);

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_KERNELS_KERNEL_REGISTRY_H_
