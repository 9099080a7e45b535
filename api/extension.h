/// Extending Troupe by ops, kernels and gradients of one's own, in the application or in a shared
/// library that is loaded while it runs. `docs/extending.md` shows a whole one.
///
///     absl::Status Register(troupe::Extension& extension) {
///       extension.Op("Cube").Input("x: T").Output("y: T").Attr("T: {float, double}");
///       extension.Kernel(troupe::KernelSpec("Cube"), troupe::MakeKernel<CubeKernel>);
///       extension.Gradient("Cube", CubeGrad);
///       return absl::OkStatus();
///     }
///     TROUPE_EXTENSION(Register)
#ifndef TROUPE_API_EXTENSION_H_
#define TROUPE_API_EXTENSION_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "api/version.h"
#include "devices/tensor.h"
#include "graph/gradients/gradient_registry.h"
#include "graph/op_registry.h"
#include "graph/shape_inference.h"
#include "kernels/kernel.h"
#include "kernels/kernel_registry.h"

namespace troupe {

/// What an extension adds, collected and then registered all at once or, after an error, not at
/// all. Used by one thread while its function runs.
class Extension {
 public:
  /// An op, as REGISTER_OP defines it.
  OpDefBuilder& Op(std::string name) {
    ops_.emplace_back(std::move(name));
    return ops_.back();
  }
  /// A kernel, for an op of this extension or one that is there, as REGISTER_KERNEL adds it.
  Extension& Kernel(KernelSpec spec, KernelFactory factory) {
    kernels_.push_back({std::move(spec), factory});
    return *this;
  }
  /// A gradient function, as REGISTER_GRADIENT adds it; nullptr: the op is known to have none.
  Extension& Gradient(std::string op, GradientFn function) {
    gradients_.emplace_back(std::move(op), function);
    return *this;
  }

 private:
  friend class ExtensionRegistration;
  std::deque<OpDefBuilder> ops_;  // whose addresses stay
  std::vector<KernelRegistration> kernels_;
  std::vector<std::pair<std::string, GradientFn>> gradients_;
};

using ExtensionFunction = absl::Status (*)(Extension& extension);

/// Calls `function` and registers what it has collected. An op that exists with the same
/// definition, and what there is for it already, is left as it is. Codes: AlreadyExists: an op that
/// exists with another definition, a kernel or gradient that exists for an op that the extension
/// does not define; InvalidArgument: definitions that are wrong; NotFound: a kernel or gradient of
/// an op that does not exist; the function's own error. Thread-safe.
absl::Status RegisterExtension(ExtensionFunction function);

/// Loads a shared library that has TROUPE_EXTENSION, for the life of the process; graphs that are
/// built or imported from then on may use what it registers. Before any of its code runs the file
/// is read: a library that was built for another version of Troupe, or with another layout of what
/// is passed between the two, is refused (FailedPrecondition, with both versions). Loading a
/// library again does nothing. Other codes: NotFound: no such file; InvalidArgument: no shared
/// library, no extension, or one that cannot be loaded (the loader's words); those of
/// RegisterExtension. Thread-safe.
absl::Status LoadLibrary(const std::string& path);

/// The sizes that an extension and Troupe must agree on, in the order of `kLayoutNames`
/// (`extension.cc`).
inline constexpr std::array<uint32_t, 22> kExtensionLayout = {
    sizeof(void*),
#ifdef _GLIBCXX_USE_CXX11_ABI
    _GLIBCXX_USE_CXX11_ABI,
#else
    2,  // another standard library
#endif
    sizeof(std::string),
    sizeof(std::function<void()>),
    sizeof(absl::Status),
    sizeof(absl::StatusOr<void*>),
    sizeof(Shape),
    sizeof(PartialShape),
    sizeof(Tensor),
    alignof(Tensor),
    sizeof(Slot),
    sizeof(StepContext),
    sizeof(KernelContext),
    sizeof(KernelConstruction),
    sizeof(Kernel),
    sizeof(AsyncKernel),
    sizeof(KernelSpec),
    sizeof(OpDefBuilder),
    sizeof(InferenceContext),
    sizeof(Gradient),
    sizeof(GradientContext),
    sizeof(Extension),
};

/// What a library exports as `troupe_extension`. All but the last member is plain data, which is
/// read from the file; `magic`, `interface`, `num_layout` and `version` stay where they are in all
/// versions.
struct ExtensionInfo {
  static constexpr char kMagic[] = "TROUPE extension";  ///< 16 characters.
  /// Counts changes of this struct and of what extensions are called with.
  static constexpr uint32_t kInterface = 1;

  char magic[16];
  uint32_t interface;
  uint32_t num_layout;
  char version[32];
  std::array<uint32_t, kExtensionLayout.size()> layout;
  ExtensionFunction function;
};

constexpr ExtensionInfo MakeExtensionInfo(ExtensionFunction function,
                                          std::string_view version = TROUPE_VERSION) {
  ExtensionInfo info{};
  for (size_t i = 0; i < sizeof(info.magic); ++i) info.magic[i] = ExtensionInfo::kMagic[i];
  info.interface = ExtensionInfo::kInterface;
  info.num_layout = static_cast<uint32_t>(kExtensionLayout.size());
  for (size_t i = 0; i + 1 < sizeof(info.version) && i < version.size(); ++i) {
    info.version[i] = version[i];
  }
  info.layout = kExtensionLayout;
  info.function = function;
  return info;
}

/// Makes the shared library that is being built an extension, registered by FUNCTION, an
/// `absl::Status (troupe::Extension&)`. Once per library, outside of namespaces. Such a library
/// uses no REGISTER_ macros: these take effect when it is loaded, whatever LoadLibrary says.
#define TROUPE_EXTENSION(FUNCTION)                                                            \
  extern "C" __attribute__((visibility("default"),                                            \
                            used)) constinit const ::troupe::ExtensionInfo troupe_extension = \
      ::troupe::MakeExtensionInfo(FUNCTION);

}  // namespace troupe

#endif  // TROUPE_API_EXTENSION_H_
