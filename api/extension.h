/// Extending Troupe by ops, kernels, gradients and devices of one's own, in the application or in a
/// shared library that is loaded while it runs. `docs/extending.md` shows a whole one.
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
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "api/version.h"
#include "devices/device_registry.h"
#include "devices/export.h"
#include "devices/tensor.h"
#include "graph/gradients/gradient_registry.h"
#include "graph/op_registry.h"
#include "graph/shape_inference.h"
#include "kernels/kernel.h"
#include "kernels/kernel_registry.h"

TROUPE_EXPORT_BEGIN
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
  Extension& Kernel(const KernelSpec& spec, KernelFactory factory);
  /// A type of device, as REGISTER_DEVICE adds it.
  Extension& DeviceType(std::string type, std::shared_ptr<DeviceFactory> factory) {
    devices_.emplace_back(std::move(type), std::move(factory));
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
  std::vector<std::pair<std::string, std::shared_ptr<DeviceFactory>>> devices_;
};

using ExtensionFunction = absl::Status (*)(Extension& extension);

/// Calls `function` and registers what it has collected. An op that exists with the same
/// definition, and what there is for it already, is left as it is. Codes: AlreadyExists: an op that
/// exists with another definition, a kernel or gradient that exists for an op that the extension
/// does not define, a type of device that another factory makes; InvalidArgument: definitions that
/// are wrong; NotFound: a kernel or gradient of an op that does not exist; the function's own
/// error. Thread-safe.
absl::Status RegisterExtension(ExtensionFunction function);

/// Loads a shared library that has TROUPE_EXTENSION, for the life of the process; graphs that are
/// built or imported from then on may use what it registers. A library that was built for another
/// version of Troupe, or with another layout of what is passed between the two, is refused before
/// any of its code runs (FailedPrecondition, with both versions). Loading a library again does
/// nothing. Other codes: NotFound: no such file; InvalidArgument: no shared
/// library, no extension, or one that cannot be loaded (the loader's words); those of
/// RegisterExtension. Thread-safe.
absl::Status LoadLibrary(const std::string& path);

/// The sizes that an extension and Troupe must agree on.
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

/// One of three numbers of a version, "0.1.0".
constexpr int VersionPart(int part, std::string_view version = TROUPE_VERSION) {
  int number = 0;
  for (const char c : version) {
    if (c == '.' && part-- == 0) break;
    if (c == '.') number = 0;
    if (c >= '0' && c <= '9') number = 10 * number + (c - '0');
  }
  return number;
}

/// Stands for the sizes in a symbol's name (FNV-1a).
constexpr uint64_t LayoutCode(const std::array<uint32_t, 22>& layout = kExtensionLayout) {
  uint64_t code = 14695981039346656037u;
  for (const uint32_t size : layout) code = (code ^ size) * 1099511628211u;
  return code;
}

/// libtroupe defines this function for its own version and layout only. An extension refers to the
/// one of the headers that it is built with, so that the loader refuses an extension of others
/// before it runs any of its code, by a symbol whose name says what it was built for.
template <int kMajor, int kMinor, int kPatch, uint64_t kLayout>
__attribute__((visibility("default"))) void BuiltFor();

/// What a library exports as `troupe_extension_info`.
struct ExtensionInfo {
  static constexpr uint64_t kMagic = 0x4e58455055524f54;  ///< "TROUPEXN"

  uint64_t magic;
  void (*built_for)();
  ExtensionFunction function;
};

/// Makes the shared library that is being built an extension, registered by FUNCTION, an
/// `absl::Status (troupe::Extension&)`. Once per library, outside of namespaces. Such a library
/// uses no REGISTER_ macros: these take effect when it is loaded, whatever LoadLibrary says.
#define TROUPE_EXTENSION(FUNCTION)                                           \
  extern "C" __attribute__((visibility("default"), used))                    \
  const ::troupe::ExtensionInfo troupe_extension_info = {                    \
      ::troupe::ExtensionInfo::kMagic,                                       \
      ::troupe::BuiltFor<::troupe::VersionPart(0), ::troupe::VersionPart(1), \
                         ::troupe::VersionPart(2), ::troupe::LayoutCode()>,  \
      FUNCTION};

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_API_EXTENSION_H_
