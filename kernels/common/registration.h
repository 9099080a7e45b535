/// Shorthand for registrations: kernels that are functions of their attributes, and several ops
/// with one kernel.
#ifndef TROUPE_KERNELS_COMMON_REGISTRATION_H_
#define TROUPE_KERNELS_COMMON_REGISTRATION_H_

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

#include "kernels/kernel_registry.h"  // IWYU pragma: export

namespace troupe {

KernelSpec Cheap(const char* op);

namespace internal {

/// A string literal as a template argument.
template <size_t kSize>
struct Literal {
  constexpr Literal(const char (&from)[kSize]) { std::copy_n(from, kSize, text); }  // NOLINT
  char text[kSize];
};

template <auto kCompute, typename... Attrs>
struct AttrKernel final : Kernel {
  absl::Status Compute(KernelContext& ctx) override {
    return std::apply([&](const Attrs&... values) { return kCompute(ctx, values...); }, attrs);
  }
  std::tuple<Attrs...> attrs;
};

template <auto kCompute, typename... Parameters, typename... Names>
absl::StatusOr<std::unique_ptr<Kernel>> MakeAttrKernel(absl::Status (*)(KernelContext&,
                                                                        Parameters...),
                                                       KernelConstruction& construction,
                                                       Names... names) {
  auto kernel = std::make_unique<AttrKernel<kCompute, std::decay_t<Parameters>...>>();
  absl::Status status;
  std::apply(
      [&](std::decay_t<Parameters>&... values) {
        static_cast<void>(((status = construction.GetAttr(names, &values)).ok() && ...));
      },
      kernel->attrs);
  if (!status.ok()) return status;
  return kernel;
}

struct KernelsRegistrar {
  KernelsRegistrar(KernelSpec spec, KernelFactory factory,
                   std::initializer_list<const char*> others);
};

}  // namespace internal

/// A factory for a kernel without state: a function of the context and of the values of attributes,
/// the names of which follow it. (In parentheses, for the macro would take the comma for its own.)
///
///     absl::Status Pack(KernelContext& ctx, int64_t axis);
///     REGISTER_KERNEL(KernelSpec("Pack"), (MakeAttrKernel<Pack, "axis">));
template <auto kCompute, internal::Literal... kNames>
absl::StatusOr<std::unique_ptr<Kernel>> MakeAttrKernel(KernelConstruction& construction) {
  return internal::MakeAttrKernel<kCompute>(kCompute, construction, kNames.text...);
}

/// REGISTER_KERNEL for the op of `SPEC` and, with all else the same, for the ops that follow.
#define REGISTER_KERNELS(SPEC, FACTORY, ...)                                        \
  [[maybe_unused]] static const ::troupe::internal::KernelsRegistrar TROUPE_CONCAT( \
      troupe_kernels_registrar_, __COUNTER__)(SPEC, FACTORY, {__VA_ARGS__})

}  // namespace troupe

#endif  // TROUPE_KERNELS_COMMON_REGISTRATION_H_
