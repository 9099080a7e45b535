#include "api/extension.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <set>

#include "devices/device_loader.h"
#include "devices/exceptions.h"
#include "devices/status_macros.h"
#include "graph/protos/graph.pb.h"

namespace troupe {

template <int kMajor, int kMinor, int kPatch, uint64_t kLayout>
void BuiltFor() {}
template void BuiltFor<VersionPart(0), VersionPart(1), VersionPart(2), LayoutCode()>();

namespace {

/// One library or function at a time; a function may load the libraries that it needs.
std::recursive_mutex& ExtensionMutex() {
  static auto* mutex = new std::recursive_mutex;
  return *mutex;
}

/// The definition without its documentation.
std::string Definition(OpDef def) {
  def.clear_summary();
  def.clear_description();
  return def.SerializeAsString();
}

bool SameSpec(const KernelSpec& a, const KernelSpec& b) {
  return a.device_type == b.device_type && a.constraints == b.constraints &&
         a.priority == b.priority;
}

}  // namespace

Extension& Extension::Kernel(const KernelSpec& spec, KernelFactory factory) {
  kernels_.push_back({spec, factory});
  return *this;
}

/// Checks what an extension has collected, then registers it.
class ExtensionRegistration {
 public:
  absl::Status Run(const Extension& extension) {
    for (const OpDefBuilder& op : extension.ops_) TROUPE_RETURN_IF_ERROR(CheckOp(op));
    for (const KernelRegistration& kernel : extension.kernels_) {
      TROUPE_RETURN_IF_ERROR(CheckKernel(kernel));
    }
    for (const auto& [op, function] : extension.gradients_) {
      TROUPE_RETURN_IF_ERROR(CheckGradient(op, function));
    }
    for (const auto& [type, factory] : extension.devices_) {
      if (factory == nullptr) return InvalidArgument("the device type ", type, " has no factory");
      TROUPE_RETURN_IF_ERROR(DeviceRegistry::Global()->Check(type, *factory));
    }
    for (const OpDefBuilder* op : new_ops_) OpRegistry::Global()->Register(*op);
    for (const KernelRegistration* kernel : new_kernels_) {
      KernelRegistry::Global()->Register(kernel->spec, kernel->factory);
    }
    for (const auto& [op, function] : new_gradients_) {
      GradientRegistry::Global()->Register(op, function);
    }
    for (const auto& [type, factory] : extension.devices_) {
      TROUPE_RETURN_IF_ERROR(DeviceRegistry::Global()->Register(type, factory));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status CheckOp(const OpDefBuilder& op) {
    OpRegistration registration;
    TROUPE_RETURN_IF_ERROR(op.Build(&registration));
    auto [defined, first] = defined_.try_emplace(op.name(), *registration.def);
    absl::StatusOr<const OpRegistration*> known = OpRegistry::Global()->LookUp(op.name());
    if (!known.ok() && !absl::IsNotFound(known.status())) return known.status();
    const OpDef* other = known.ok() ? (*known)->def.get() : &defined->second;
    if (Definition(*other) != Definition(*registration.def)) {
      return absl::AlreadyExistsError(
          StrCat("op ", op.name(),
                 " exists already, with another definition: ", other->ShortDebugString()));
    }
    if (!known.ok() && first) new_ops_.push_back(&op);
    return absl::OkStatus();
  }

  /// The definition of an op that this extension or somebody before it defines.
  absl::StatusOr<const OpDef*> Find(const std::string& op, const char* what) const {
    if (auto found = defined_.find(op); found != defined_.end()) return &found->second;
    absl::StatusOr<const OpRegistration*> known = OpRegistry::Global()->LookUp(op);
    if (known.ok()) return (*known)->def.get();
    return WithContext(StrCat(what, " of op ", op, ": "), known.status());
  }

  absl::Status CheckKernel(const KernelRegistration& kernel) {
    const KernelSpec& spec = kernel.spec;
    TROUPE_ASSIGN_OR_RETURN(const OpDef* def, Find(spec.op, "a kernel"));
    if (kernel.factory == nullptr)
      return InvalidArgument("a kernel of op ", spec.op, " has no factory");
    for (const auto& [name, types] : spec.constraints) {
      const std::string& attr = name;
      const bool known = std::any_of(def->attr().begin(), def->attr().end(),
                                     [&](const auto& a) { return a.name() == attr; });
      if (!known) {
        return InvalidArgument("a kernel of op ", spec.op, " depends on the attribute '", attr,
                               "', which the op does not have");
      }
    }
    const auto others = KernelRegistry::Global()->ForOp(spec.op);
    const bool exists = std::any_of(others.begin(), others.end(),
                                    [&](const auto* k) { return SameSpec(k->spec, spec); });
    if (exists && defined_.count(spec.op) == 0) {
      return absl::AlreadyExistsError(
          StrCat("op ", spec.op, " has a kernel for ", spec.device_type,
                 " and the same element types already; give this one a higher Priority to replace "
                 "it"));
    }
    if (!exists) new_kernels_.push_back(&kernel);
    return absl::OkStatus();
  }

  absl::Status CheckGradient(const std::string& op, GradientFn function) {
    TROUPE_RETURN_IF_ERROR(Find(op, "a gradient").status());
    const bool exists = GradientRegistry::Global()->LookUp(op).ok();
    if (exists && defined_.count(op) == 0) {
      return absl::AlreadyExistsError(StrCat("op ", op, " has a gradient already"));
    }
    if (!exists) new_gradients_.emplace_back(op, function);
    return absl::OkStatus();
  }

  std::map<std::string, OpDef> defined_;
  std::vector<const OpDefBuilder*> new_ops_;
  std::vector<const KernelRegistration*> new_kernels_;
  std::vector<std::pair<std::string, GradientFn>> new_gradients_;
};

absl::Status RegisterExtension(ExtensionFunction function) {
  if (function == nullptr) return InvalidArgument("an extension without a function");
  std::lock_guard lock(ExtensionMutex());
  // Registered halfway for want of memory, it may be registered again: what is there already
  // counts.
  return CatchExceptions([&]() -> absl::Status {
    Extension extension;
    TROUPE_RETURN_IF_ERROR(function(extension));
    return ExtensionRegistration().Run(extension);
  });
}

namespace {

/// Why the loader refused a library: for lack of a `BuiltFor`, or in its own words.
absl::Status LoaderError() {
  const char* text = dlerror();
  const std::string words = text == nullptr ? "unknown error of the loader" : text;
  const size_t at = words.find("_ZN6troupe8BuiltFor");
  if (at == std::string::npos) return absl::InvalidArgumentError(words);
  int failed = 0;
  const std::unique_ptr<char, void (*)(void*)> name(
      abi::__cxa_demangle(words.c_str() + at, nullptr, nullptr, &failed), std::free);
  int version[3];
  if (failed != 0 || std::sscanf(name.get(), "void troupe::BuiltFor<%d, %d, %d", &version[0],
                                 &version[1], &version[2]) != 3) {
    return absl::InvalidArgumentError(words);
  }
  const std::string built_for = StrCat(version[0], ".", version[1], ".", version[2]);
  if (built_for == TROUPE_VERSION) {
    return absl::FailedPreconditionError(
        StrCat("it was built for Troupe ", built_for,
               " with another compiler or other headers: sizes of classes differ; build it again "
               "with the compiler and headers of this Troupe ",
               TROUPE_VERSION));
  }
  return absl::FailedPreconditionError(StrCat("it was built for Troupe ", built_for,
                                              ", but this is Troupe ", TROUPE_VERSION,
                                              ": build it again with this version's headers"));
}

absl::Status Load(const std::string& file) {
  if (access(file.c_str(), F_OK) != 0) return absl::NotFoundError(std::strerror(errno));
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return LoaderError();
  // A library is never unloaded, whatever comes: somebody may hold pointers into it.
  static auto* loaded = new std::set<void*>;
  if (loaded->count(library) > 0) return absl::OkStatus();
  const auto* info = static_cast<const ExtensionInfo*>(dlsym(library, "troupe_extension_info"));
  if (info == nullptr || info->magic != ExtensionInfo::kMagic) {
    return InvalidArgument("it is no extension: it does not have TROUPE_EXTENSION(function)");
  }
  TROUPE_RETURN_IF_ERROR(RegisterExtension(info->function));
  loaded->insert(library);
  return absl::OkStatus();
}

}  // namespace

absl::Status LoadLibrary(const std::string& path) {
  std::lock_guard lock(ExtensionMutex());
  // With a slash, so that the loader does not search for it elsewhere.
  const std::string file = path.find('/') == std::string::npos ? StrCat("./", path) : path;
  const absl::Status status = CatchExceptions([&] { return Load(file); });
  const bool named = status.message().find(file) != absl::string_view::npos;
  return named ? status : WithContext(StrCat("library '", path, "': "), status);
}

namespace {

/// GPUs are in libtroupe_cuda.so, beside libtroupe.so or where TROUPE_CUDA_LIBRARY says.
absl::Status LoadDeviceType(const std::string& type) {
  if (type != "GPU") return absl::OkStatus();
  if (const char* named = std::getenv("TROUPE_CUDA_LIBRARY")) return LoadLibrary(named);
  Dl_info here{};
  std::string folder = ".";
  if (dladdr(reinterpret_cast<const void*>(&LoadDeviceType), &here) != 0) {
    folder = std::filesystem::path(here.dli_fname).parent_path().string();
  }
  // Tests have a libtroupe.so of their own, one folder further down.
  for (const char* above : {"", "/.."}) {
    const std::string file = StrCat(folder, above, "/libtroupe_cuda.so");
    if (access(file.c_str(), F_OK) == 0) return LoadLibrary(file);
  }
  return absl::FailedPreconditionError(
      StrCat("GPUs need libtroupe_cuda.so, which is not in ", folder,
             ": build Troupe with CUDA, or say in TROUPE_CUDA_LIBRARY where it is"));
}

[[maybe_unused]] const bool loader_is_set = (SetDeviceLoader(LoadDeviceType), true);

}  // namespace

}  // namespace troupe
